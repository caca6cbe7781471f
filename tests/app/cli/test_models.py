"""`showhow models list | check`, and profiles that ask, evaluate and verify use and record."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from showhow.llm.profiles import PROFILES_FILE_NAME, ProfileFile
from showhow.llm.types import ModelProfile
from showhow.llm.usage import TokenPrice
from showhow.worlds.article_files import read_articles
from showhow.worlds.build import WorldContents, build_world
from tests.app.cli.in_process import run_in_process
from tests.servers.model import ModelServer, Request, Says

HARBOUR = Path(__file__).parents[2] / "tools"
KEY = "planted-key-of-a-profile"
BOTH = Says(
    "I look up both cities.",
    calls=[("population", {"city": city, "year": 2020, "unit": "people"}) for city in ("Oslo", "Lima")],
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    sources = WorldContents(read_articles(HARBOUR / "harbour.jsonl"), HARBOUR / "harbour.ttl")
    build_world(tmp_path / "worlds", "harbour", sources)
    questions = tmp_path / "questions.jsonl"
    questions.write_text(json.dumps({"question": "Where was Ada Reed born?", "answer": "Gullhaven"}), encoding="utf-8")
    run(tmp_path, "questions", "import", str(questions), "--project", "Harbour", "--world", "harbour")
    return tmp_path


def run(home: Path, *words: str, **environ: str) -> tuple[int, str, str]:
    done = run_in_process(home, *words, **environ)
    return done.returncode, done.stdout, done.stderr


def save(home: Path, profile: ModelProfile, replaces: ModelProfile | None = None) -> ModelProfile:
    ProfileFile(home / PROFILES_FILE_NAME).save(profile, replaces=replaces)
    return profile


def allow(home: Path, name: str) -> None:
    assert run(home, "models", "allow", name, "--yes")[0] == 0


def answer(request: Request) -> Says:
    if not request.tools:
        return Says("Answer: Gullhaven")
    return Says("I know it.\nFinal Answer: Gullhaven\nText says: Gullhaven")


def test_profiles_are_listed_with_the_limits_that_are_used(tmp_path: Path):
    assert "There is no profile" in run(tmp_path, "models", "list")[1]
    save(tmp_path, ModelProfile("openai:own", "http://127.0.0.1:9/v1", name="local", price=TokenPrice(1.0, 2.0)))
    environ = {"SHOWHOW_MODEL": "openai:gpt-4.1", "OPENAI_API_KEY": KEY}
    status, stdout, _ = run(tmp_path, "models", "list", **environ)
    assert status == 0
    assert stdout.splitlines() == [
        "default: openai:gpt-4.1",
        "    context 1,047,576 tokens, replies of at most 8,192; no price",
        "local: openai:own at http://127.0.0.1:9/v1",
        "    context 16,000 tokens (assumed), replies of at most 4,000; $1 / $2 per million tokens",
    ]
    default, local = json.loads(run(tmp_path, "models", "list", "--json", **environ)[1])
    assert (default["name"], default["model"], default["temperature"]) == ("default", "openai:gpt-4.1", 0.0)
    assert local == {
        "name": "local",
        "model": "openai:own",
        "base_url": "http://127.0.0.1:9/v1",
        "seconds": 120.0,
        "price": {"input": 1.0, "output": 2.0},
        "context_window": 16_000,
        "reply_limit": 4_000,
    }


def test_a_check_prints_what_the_server_can_do_and_fails_where_one_does_not_answer(tmp_path: Path):
    with ModelServer(lambda _: BOTH, key=KEY) as server:
        profile = save(tmp_path, ModelProfile("openai:own", server.url, key_variable="LOCAL_API_KEY", name="local"))
        allow(tmp_path, "local")
        status, stdout, _ = run(tmp_path, "models", "check", "local", "--json", LOCAL_API_KEY=KEY)
        (report,) = json.loads(stdout)
        assert status == 0
        assert {
            name: report[name] for name in ("tools", "parallel_calls", "schema", "streaming", "usage")
        } == dict.fromkeys(("tools", "parallel_calls", "schema", "streaming", "usage"), True)
        save(tmp_path, replace(profile, base_url="http://127.0.0.1:9/v1", name="gone"))
        allow(tmp_path, "gone")
        status, stdout, stderr = run(tmp_path, "models", "check", LOCAL_API_KEY=KEY)
    assert status == 1
    assert "    Tools: yes\n" in stdout
    assert "gone: openai:own" in stdout
    assert "127.0.0.1:9 does not answer" in stdout
    assert stderr.splitlines()[-1] == "showhow: 1 of 2 models do not answer; see above"
    assert KEY not in stdout + stderr
    status, _, stderr = run(tmp_path, "models", "check", "nowhere")
    assert (status, "There is no model profile 'nowhere'; there are local, gone." in stderr) == (1, True)


def test_ask_uses_the_profile_and_its_trace_and_exports_name_it(home: Path):
    with ModelServer(answer, key=KEY) as server:
        profile = ModelProfile(
            "openai:own",
            server.url,
            key_variable="LOCAL_API_KEY",
            name="local",
            temperature=0.3,
            reasoning_effort="low",
            reply_limit=700,
            context_window=9_000,
            price=TokenPrice(10.0, 100.0),
            extra_body={"top_k": 20},
        )
        save(home, profile)
        allow(home, "local")
        words = ("ask", "Where was Ada Reed born?", "--world", "harbour", "--profile", "local", "--json")
        # The environment names another model, which is not asked.
        status, stdout, _ = run(
            home, *words, LOCAL_API_KEY=KEY, SHOWHOW_MODEL="openai:gpt-4.1", OPENAI_API_KEY="other-key"
        )
    result = json.loads(stdout)
    assert (status, result["answer"], result["model"]) == (0, "Gullhaven", "openai:own")
    assert result["usage"]["cost"] == pytest.approx(2 * (100 * 10 + 10 * 100) / 1e6)
    for request in server.requests:
        sent = {
            name: request.body[name] for name in ("model", "temperature", "reasoning_effort", "max_tokens", "top_k")
        }
        assert sent == {
            "model": "own",
            "temperature": 0.3,
            "reasoning_effort": "low",
            "max_tokens": 700,
            "top_k": 20,
        }
    recorded = {
        "name": "local",
        "model": "openai:own",
        "base_url": server.url,
        "seconds": 120.0,
        "temperature": 0.3,
        "price": {"input": 10.0, "output": 100.0},
        "reply_limit": 700,
        "key_variable": "LOCAL_API_KEY",
        "reasoning_effort": "low",
        "context_window": 9_000,
        "extra_body": {"top_k": 20},
    }
    assert result["profile"] == recorded
    assert "by humaniq with local (openai:own)" in run(home, "traces", "show", result["trace"])[1]
    for name, path in (
        ("showhow", ("run", "spec")),
        ("atif", ("extra", "showhow", "run", "spec")),
    ):
        file = home / f"{name}.jsonl"
        assert run(home, "traces", "export", str(file), "--format", name, "--status", "all")[0] == 0
        document: Any = json.loads(file.read_text(encoding="utf-8").splitlines()[0])
        if name == "atif":
            assert document["agent"]["model_name"] == "openai:own"
        for key in path:
            document = document[key]
        assert document["profile"] == recorded
    assert not any(KEY.encode() in file.read_bytes() for file in home.rglob("*") if file.is_file())


def test_without_the_environment_the_oldest_profile_is_the_default(home: Path):
    with ModelServer(answer) as server:
        save(home, ModelProfile("openai:first", server.url, name="zeta"))
        save(home, ModelProfile("openai:second", server.url, name="alpha"))
        status, stdout, stderr = run(home, "ask", "Where was Ada Reed born?", "--world", "harbour", "--json")
    assert (status, json.loads(stdout)["profile"]["name"]) == (0, "zeta")
    assert "the reasoner is humaniq" in stderr


def test_an_unknown_profile_and_one_for_a_reasoner_without_a_model_are_refused(home: Path):
    words = ("ask", "Who?", "--world", "harbour", "--profile", "nowhere")
    environ = {"SHOWHOW_MODEL": "openai:own", "SHOWHOW_MODEL_BASE_URL": "http://127.0.0.1:9/v1"}
    status, _, stderr = run(home, *words, **environ)
    assert (status, "There is no model profile 'nowhere'; there are default." in stderr) == (1, True)
    status, _, stderr = run(home, *words, "--reasoner", "replay", **environ)
    assert (status, "replay needs no language model; leave out --profile" in stderr) == (1, True)


def test_evaluate_names_the_profile(home: Path):
    with ModelServer(answer) as server:
        save(home, ModelProfile("openai:own", server.url, name="local"))
        words = ("evaluate", "--project", "Harbour", "--reasoner", "humaniq", "--profile", "local")
        status, stdout, _ = run(home, *words, "--json")
        summary = json.loads(stdout)
        assert (status, summary["right"], summary["profile"]["name"]) == (0, 1, "local")
        assert "model local (openai:own): 2 calls" in run(home, *words)[1]


def test_a_verification_continues_only_with_the_profile_that_it_was_started_with(home: Path):
    def verify(*words: str) -> tuple[int, dict[str, Any] | None, str]:
        status, stdout, stderr = run(home, "verify", "--project", "Harbour", "--reasoner", "humaniq", *words, "--json")
        return status, json.loads(stdout) if stdout else None, stderr

    with ModelServer(answer) as server, ModelServer(answer, key=KEY) as refusing:
        local = save(home, ModelProfile("openai:own", refusing.url, name="local"))
        other = save(home, ModelProfile("openai:own", refusing.url, name="other"))
        assert verify("--profile", "local")[0] == 1
        (first,) = json.loads(run(home, "verify", "--project", "Harbour", "--list", "--json")[1])
        assert (first["profile"]["name"], first["left"]) == ("local", 1)
        # Prices and rates may change; the address of the server may not.
        local = save(home, replace(local, price=TokenPrice(1.0, 1.0), concurrency=1), replaces=local)
        status, _, stderr = verify("--profile", "local")
        assert (status, f"verification {first['id']}" in stderr) == (1, True)
        local = save(home, replace(local, base_url=server.url), replaces=local)
        status, _, stderr = verify("--go-on", first["id"])
        message = "the model profile local was changed since this run was started: base url was"
        assert (status, message in stderr) == (1, True)
        # Another profile, and a changed one, have verifications of their own.
        save(home, replace(other, base_url=server.url), replaces=other)
        status, second, _ = verify("--profile", "other")
        assert second is not None
        assert (status, second["profile"]["name"], second["right"]) == (0, "other", 1)
        status, third, _ = verify("--profile", "local")
        assert third is not None
        assert (status, third["profile"]["base_url"], third["right"]) == (0, server.url, 1)
    assert len({first["id"], second["id"], third["id"]}) == 3


def test_a_broken_file_of_profiles_is_one_sentence(home: Path):
    (home / PROFILES_FILE_NAME).write_text("{", encoding="utf-8")
    for words in (
        ("models", "list"),
        ("ask", "Who?", "--world", "harbour"),
        ("tool", "getLabel", "--world", "harbour"),
    ):
        status, _, stderr = run(home, *words)
        assert (status, "models.json is no JSON" in stderr.splitlines()[-1]) == (1, True)


def test_a_key_goes_to_a_server_once_it_was_allowed_and_not_to_another(tmp_path: Path):
    with ModelServer(lambda _: BOTH, key=KEY) as server, ModelServer(lambda _: BOTH) as other:
        profile = save(tmp_path, ModelProfile("openai:own", server.url, key_variable="LOCAL_API_KEY", name="local"))
        environ = {"LOCAL_API_KEY": KEY}
        status, stdout, _ = run(tmp_path, "models", "check", "local", **environ)
        origin = server.url.removesuffix("/v1")
        assert (status, server.requests) == (1, [])
        assert f"LOCAL_API_KEY is not sent to {origin}, which is not allowed yet" in stdout
        assert "`showhow models allow local`" in stdout
        status, _, stderr = run(tmp_path, "models", "allow", "local", **environ)
        assert (status, server.requests) == (1, [])
        assert f"the profile local would send the environment variable LOCAL_API_KEY to {origin}" in stderr
        assert "--yes" in stderr
        assert f"LOCAL_API_KEY to {origin} is allowed" in run(tmp_path, "models", "allow", "local", "--yes")[1]
        assert "needs nothing" in run(tmp_path, "models", "allow", "local")[1]
        assert run(tmp_path, "models", "check", "local", **environ)[0] == 0
        # Another server is another question.
        save(tmp_path, replace(profile, base_url=other.url), profile)
        assert run(tmp_path, "models", "check", "local", **environ)[0] == 1
        assert other.requests == []


def test_nobody_can_allow_a_key_to_go_over_http_beyond_this_machine(tmp_path: Path):
    (tmp_path / "models.json").write_text(
        json.dumps(
            {"profiles": {"lan": {"model": "openai:a", "base_url": "http://10.0.0.7/v1", "key_variable": "A_API_KEY"}}}
        )
    )
    status, _, stderr = run(tmp_path, "models", "allow", "lan", "--yes")
    assert (status, "A_API_KEY is not sent to http://10.0.0.7, since http://" in stderr) == (1, True)
    assert not (tmp_path / "destinations.json").exists()
