"""Tasks that need no world: the examples of docs/how-to/any-task.md are recorded, frozen, asked, verified, exported."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from showhow.db.models import Question
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.questions.answer_formats import InvalidAnswer
from showhow.db.review import review
from showhow.db.runs.runs import trace_version
from showhow.db.traces import recording
from showhow.db.traces.recording import NewStep, TraceAnswers
from showhow.db.traces.traces import load_trace
from showhow.reasoners.base import to_step_result
from showhow.runs.services import Services
from showhow.settings import Settings
from tests.app.cli.in_process import run_in_process, shared_encoder
from tests.fixtures.any_task import prepare_examples
from tests.servers.model import ModelServer, Request, Says


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the files of the page and a database of the shop, after the commands that the page shows."""
    home = tmp_path_factory.mktemp("home")
    prepare_examples(home)
    return home


def run(home: Path, *words: str | Path, **environ: str) -> Any:
    """The JSON that a verb prints in that home."""
    done = run_in_process(home, *words, SHOP=str(home / "shop.db"), **environ)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def services(home: Path) -> Iterator[Services]:
    values = {"SHOWHOW_HOME": str(home), "SHOP": str(home / "shop.db")}
    services = Services(Settings.from_env(values), values)
    vars(services)["encoder"] = shared_encoder()
    yield services
    services.close()


def record(services: Services, project: str, source_id: str, call: tuple[str, dict[str, Any]], answer: str) -> Question:
    """Record one step and submit the answer, as the Annotate page does, then approve the trace as another person."""
    name, arguments = call
    database = services.database
    with database.begin() as session:
        stored = projects.get_project(session, project)
        (question,) = [q for q in projects.list_questions(session, stored.id) if q.source_id == source_id]
        # The first person is the administrator.
        lead, ann = (users.register_user(session, name).id for name in ("lead", "ann"))
        trace = recording.start_trace(session, question.id, ann)
        step = recording.begin_step(
            session, trace.id, NewStep("I look it up.", name, arguments), seen=trace.version, by=ann
        )
    (tool,) = services.tool_registry().offered_tools(services.open_world(""), [name])
    outcome = tool.call(services.tool_context(""), arguments)
    assert outcome.error is None
    with database.begin() as session:
        recording.complete_step(session, step.id, to_step_result(outcome), by=ann)
    with database.begin() as session:
        version = load_trace(session, trace.id).trace.version
        answers = TraceAnswers(answer, final_thought="So it is.")
        recording.submit_trace(session, trace.id, answers, seen=version, by=ann)
    with database.begin() as session:
        review.approve_trace(session, trace.id, seen=trace_version(session, trace.id), by=lead)
    return question


def answering(*calls: tuple[str, dict[str, Any]]) -> Callable[[Request], Says]:
    """A model that makes these calls, one a reply: the next one for each observation that it sees."""

    def reply(request: Request) -> Says:
        last_user = max(i for i, m in enumerate(request.body["messages"]) if m["role"] == "user")
        done = sum(message["role"] == "tool" for message in request.body["messages"][last_user:])
        return Says(calls=[calls[done]])

    return reply


def model_of(server: ModelServer) -> dict[str, str]:
    return {"SHOWHOW_MODEL": "scripted", "SHOWHOW_MODEL_BASE_URL": server.url}


@pytest.mark.long
def test_a_shop_is_asked_with_a_function_and_answers_in_free_text(home: Path, services: Services, tmp_path: Path):
    sql = "SELECT name FROM customer JOIN sale ON customer = id ORDER BY price DESC LIMIT 1"
    record(services, "Shop", "s1", ("query_shop", {"sql": sql}), "Ada Lund")
    assert run(home, "library", "freeze", "shop", "--project", "Shop", "--json")["card"]["demonstrations"] == 1
    question = "SELECT count(*) AS n FROM customer WHERE city = 'Bern'"
    finish = {"thought": "Two.", "answers": ["2"], "found": True, "steps": [1]}
    script = answering(("query_shop", {"thought": "I count.", "sql": question}), ("finish", finish))
    with ModelServer(script) as server:
        told = run(
            home, "ask", "How many customers live in Bern?", "--project", "Shop", "--reasoner", "humaniq",
            "--library", "shop", "--json", **model_of(server),
        )  # fmt: skip
        first = server.requests[0]
        verified = run(
            home, "verify", "--project", "Shop", "--reasoner", "humaniq", "--library", "shop", "--json",
            **model_of(server),
        )  # fmt: skip
    assert told["answer"] == "2"
    # The instruction and the demonstration are told; articles and graphs are not.
    assert "Answer the question from the shop's database with SELECT statements." in first.prompt
    assert "Which customer spent most?" in first.prompt
    assert "rticle" not in first.prompt
    assert first.tools == ["query_shop", "finish"]
    fields = next(tool for tool in first.body["tools"] if tool["function"]["name"] == "finish")["function"][
        "parameters"
    ]
    assert list(fields["properties"]) == ["thought", "answers", "cannot_be_answered", "found", "steps"]
    assert not any("from what you know" in request.prompt for request in server.requests)
    assert verified["right"] == 1
    out = tmp_path / "shop_traces.jsonl"
    done = run_in_process(home, "traces", "export", str(out), "--format", "openai", "--project", "Shop")
    assert done.returncode == 0, done.stderr
    assert "Ada Lund" in out.read_text(encoding="utf-8")


@pytest.mark.long
def test_an_inbox_is_triaged_over_mcp_with_answers_of_a_schema(home: Path, services: Services, tmp_path: Path):
    call = ("inbox_find_messages", {"word": "down"})
    with pytest.raises(InvalidAnswer, match=r"does not fit the schema at \$\.urgency: 'soon' is not one of"):
        record(services, "Inbox", "t1", call, '{"urgency": "soon", "team": "operations"}')
    with pytest.raises(InvalidAnswer, match="The answer is not JSON"):
        record(services, "Inbox", "t1", call, "high")
    record(services, "Inbox", "t1", call, '{"urgency":"high",\n"team":"operations"}')
    run(home, "library", "freeze", "inbox", "--project", "Inbox", "--json")
    wrong = ("finish", {"thought": "Low.", "value": {"urgency": "low"}, "found": True})
    verdicts = {"down": {"team": "operations", "urgency": "high"}, "address": {"team": "accounts", "urgency": "low"}}

    def reply(request: Request) -> Says:
        task = max(
            i for i, m in enumerate(request.body["messages"]) if m["role"] == "user" and "essage:" in m["content"]
        )
        word = next(word for word in verdicts if word in request.body["messages"][task]["content"])
        later = request.body["messages"][task + 1 :]
        if not any(message["role"] == "tool" for message in later):
            return Says(calls=[("inbox_find_messages", {"thought": "Who wrote it?", "word": word})])
        if word == "address" and not any("required property" in str(message) for message in later):
            return Says(calls=[wrong])
        return Says(calls=[("finish", {"thought": "So.", "value": verdicts[word], "found": True})])

    with ModelServer(reply) as server:
        verified = run(
            home, "verify", "--project", "Inbox", "--reasoner", "humaniq", "--library", "inbox", "--at-once", "1",
            "--json", **model_of(server),
        )  # fmt: skip
        first = server.requests[0]
    assert verified["right"] == 2
    schema = first.body["tools"][-1]["function"]["parameters"]["properties"]["value"]
    assert schema == json.loads((home / "triage.json").read_text(encoding="utf-8"))
    assert "message:\nThe shop has been down since nine." in first.prompt
    # An export carries the task to another home.
    out, other = tmp_path / "inbox.jsonl", tmp_path / "other"
    other.mkdir()
    assert run_in_process(home, "traces", "export", str(out), "--project", "Inbox").returncode == 0
    assert run_in_process(other, "traces", "import", str(out)).returncode == 0
    kept = ("instruction", "answer", "tools", "world")
    here, there = (run(place, "project", "show", "Inbox", "--json") for place in (home, other))
    assert [here[name] for name in kept] == [there[name] for name in kept]


@pytest.mark.long
def test_a_task_without_an_answer_ends_with_what_was_done(home: Path, services: Services):
    (home / "close.jsonl").write_text('{"id": "c1", "question": "Close what is settled."}\n', encoding="utf-8")
    create = ("project", "create", "Chores", "--tools", "inbox_find_messages", "--answer", "none", "--json")
    assert run(home, *create)["answer"]["kind"] == "none"
    run(home, "questions", "import", "close.jsonl", "--project", "Chores", "--without-gold", "--json")
    question = record(services, "Chores", "c1", ("inbox_find_messages", {"word": "settled"}), "is ignored")
    script = answering(
        ("inbox_find_messages", {"thought": "What is settled?", "word": "settled"}),
        ("finish", {"thought": "Nothing is settled.", "found": True}),
    )
    with ModelServer(script) as server:
        asked = ("ask", question.text, "--project", "Chores", "--reasoner", "humaniq", "--json")
        told = run(home, *asked, **model_of(server))
        fields = server.requests[0].body["tools"][-1]["function"]["parameters"]["properties"]
    assert list(fields) == ["thought", "found", "steps"]
    assert (told["answer"], told["ending"]) == ("", "answered")


def test_what_a_project_cannot_be_is_refused(home: Path, tmp_path: Path):
    (tmp_path / "no.json").write_text('{"type": "nothing"}', encoding="utf-8")
    (tmp_path / "far.json").write_text('{"$ref": "http://127.0.0.1:9/schema.json"}', encoding="utf-8")
    refusals = {
        ("--world", "nowhere"): "There is no world 'nowhere'",
        (): "has no world, so it needs tools of its own",
        ("--tools", "wikisearch"): "wikisearch needs a world with articles",
        ("--tools", "nothing"): "There is no tool 'nothing'",
        ("--tools", "query_shop", "--answer", str(tmp_path / "no.json")): "is not a JSON Schema",
        ("--tools", "query_shop", "--answer", str(tmp_path / "far.json")): "refers to another document",
        ("--tools", "query_shop", "--answer", str(tmp_path / "missing.json")): "cannot be read",
    }
    for options, message in refusals.items():
        done = run_in_process(home, "project", "create", "New", *options)
        assert done.returncode == 1, options
        assert message in done.stderr
        assert done.stderr.count("\n") == 1
