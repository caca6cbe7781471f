"""Options of the verbs that take a reasoner: groups in --help, presets, and one sentence for what does not fit."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import click
import pytest
import typer

from showhow.app.cli.main import VERBS, build_command_line
from showhow.db.run_spec import RunSpec
from showhow.db.traces.traces import load_trace
from showhow.reasoners.registry import REASONERS
from showhow.runs.services import Services
from showhow.settings import Settings
from showhow.tasks.method import Method, build_spec
from tests.app.cli.in_process import run_in_process

MODEL = {
    "SHOWHOW_MODEL": "openai:scripted",
    "SHOWHOW_MODEL_BASE_URL": "http://127.0.0.1:9/v1",
    "OPENAI_API_KEY": "none",
}


def iterate_commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """The command and its commands."""
    members = getattr(command, "commands", None)
    if members is None:
        yield name, command
    for member, own in (members or {}).items():
        yield from iterate_commands(own, f"{name} {member}")


def test_no_verb_has_more_than_a_dozen_options_of_its_own():
    """Those in the groups that --help shows are declared once."""
    for verb in VERBS:
        command = typer.main.get_command(build_command_line(verb)).commands[verb]  # type: ignore[attr-defined]
        for name, own in iterate_commands(command, verb):
            options = [
                parameter.opts[0]
                for parameter in own.params
                if parameter.param_type_name == "option" and not getattr(parameter, "rich_help_panel", None)
            ]
            assert len(options) <= 12, (name, options)


def test_the_help_of_every_verb_with_a_reasoner_lists_the_options_of_all_reasoners(tmp_path: Path):
    for verb in ("ask", "evaluate", "verify"):
        shown = run_in_process(tmp_path, verb, "--help", COLUMNS="4000").stdout.replace("│", " ")
        words = " ".join(shown.split())
        for entry in REASONERS.values():
            assert ", ".join(entry.option_names) in words, (verb, entry.name)
        for title in ("Reasoner and model", "Limits of each question"):
            assert title in shown
        assert "--preset" in shown


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a world of one article."""
    folder = tmp_path_factory.mktemp("options")
    (folder / "articles.jsonl").write_text('{"title": "Ada", "text": "Ada built the quay."}\n')
    assert run_in_process(folder, "world", "import", "quay", "--articles", "articles.jsonl").returncode == 0
    return folder


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--reasoner direct --option bogus=1", "direct does not take --option bogus=1; it has no options"),
        ("--reasoner direct -k 2", "direct does not take -k; it has no options"),
        ("--reasoner atomr --mode random", "atomr does not take --mode random; its options are passages, shots, own"),
        ("--reasoner cot --mode dpp", "cot does not take --mode dpp; it has no options"),
        ("--reasoner humaniq --option merge=model", "humaniq does not take --option merge=model; its options are"),
        ("--reasoner replay --option slots=a", "replay does not take --option slots=a; its options are threshold"),
        ("--reasoner atomr --option passages", "--option passages has no value; write it as NAME=VALUE"),
        ("--reasoner atomr --option passages=x", "--option passages=x is invalid: passages takes a whole number"),
        (
            "--reasoner atomr --option passages=99999999999999999999",
            "passages is 99999999999999999999; it must be at most 2,147,483,647",
        ),
        (f"--reasoner atomr --option passages={'9' * 5000}", "is invalid: passages takes a whole number"),
        ("--reasoner replay --option threshold=nan", "threshold is nan; it must be a number"),
        ("--reasoner humaniq --option own_answer=maybe", "own_answer takes yes or no"),
        ("--reasoner atomr --preset paper", "atomr has no preset 'paper'; there are showhow"),
    ],
)
def test_what_a_reasoner_does_not_take_is_said_in_the_words_that_the_user_wrote(home: Path, words: str, sentence: str):
    done = run_in_process(home, "ask", "Who built the quay?", "--world", "quay", *words.split(), **MODEL)
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    assert sentence in done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(
    "words", ["--seconds nan", "--money inf", "--steps 99999999999999999999", "-k 99999999999999999999"]
)
def test_a_number_beyond_all_use_is_wrong_usage(home: Path, words: str):
    done = run_in_process(home, "ask", "Who?", "--world", "quay", *words.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert words.split(maxsplit=1)[0] in done.stderr


@pytest.mark.parametrize("question", ["", "  ", "?!", "\u200b"])
def test_a_question_without_a_word_is_refused_and_nothing_is_stored(home: Path, question: str):
    done = run_in_process(home, "ask", question, "--world", "quay", "--reasoner", "replay", "--json")
    assert (done.returncode, done.stdout) == (1, "")
    assert "which has no word; write a question" in done.stderr


def build(home: Path, **method: object) -> RunSpec:
    """The specification of a method with a scripted model."""
    services = Services(Settings.from_env({"SHOWHOW_HOME": str(home), **MODEL}), MODEL)
    try:
        return build_spec(services, Method(**method), None)  # type: ignore[arg-type]
    finally:
        services.close()


def test_a_preset_sets_what_is_not_given_and_the_run_stores_both(home: Path, monkeypatch: pytest.MonkeyPatch):
    published = {"published": {"selection": "random", "k": 4, "response": "none"}}
    monkeypatch.setitem(REASONERS, "humaniq", replace(REASONERS["humaniq"], presets=published))
    free = {"published": {"threshold": 0.5}}
    monkeypatch.setitem(REASONERS, "replay", replace(REASONERS["replay"], presets=free))
    spec = build(home, reasoner="humaniq", preset="published", mode="relevance", options=("response=short",))
    assert (spec.preset, spec.options) == ("published", {"selection": "relevance", "k": 4, "response": "short"})
    spec = build(home, reasoner="humaniq", preset="published", k=1, values={"response": "normal"})
    assert spec.options == {"selection": "random", "k": 1, "response": "normal"}
    assert build(home, reasoner="humaniq", preset="showhow").options == {}
    words = ("--reasoner", "replay", "--preset", "published", "--json")
    done = run_in_process(home, "ask", "Who built the quay?", "--world", "quay", *words)
    services = Services(Settings.from_env({"SHOWHOW_HOME": str(home)}), {})
    with services.database.read() as session:
        stored = load_trace(session, UUID(json.loads(done.stdout)["trace"])).spec
    services.close()
    assert (stored.preset, stored.options) == ("published", {"threshold": 0.5})
    assert RunSpec.from_json(stored.to_json()) == stored
    shown = run_in_process(home, "reasoners", "show", "replay")
    assert "--option threshold=0.0, 0.5 with --preset published" in shown.stdout


def test_every_preset_sets_options_that_its_reasoner_takes():
    for entry in REASONERS.values():
        for name, values in entry.presets.items():
            entry.parse_options(values)
            assert set(values) <= set(entry.option_names), (entry.name, name)
