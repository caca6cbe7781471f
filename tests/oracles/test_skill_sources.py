"""Scripts and stored runs reply to skills: round trips of runs, rejected attempts, and named failures."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import pytest

from showhow.db.models import Question, Step
from showhow.db.runs.runs import RunOutcome
from showhow.fiction.universe.options import GenerationOptions
from showhow.oracles.reasoning import GoldReasoning
from showhow.oracles.skill_sources import (
    Fault,
    FaultyResponder,
    ScriptedReply,
    ScriptResponder,
    ScriptSource,
    StoredResponder,
    StoredSource,
    UnknownSkillSource,
    list_skill_choices,
    parse_skill_source,
)
from showhow.reasoners.skills.skill import read_reply
from showhow.runs.recorders import MemoryRecorder
from showhow.runs.services import Services
from showhow.settings import Settings
from tests.oracles.test_skills import Ground, is_short, make_ground

OPTIONS = GenerationOptions(people=80, seed=9, depth=4, per_template=1)
METHODS = ["atomr", "pdrr", "geek", "tog"]


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    yield from make_ground(OPTIONS, sampled=500)


@pytest.fixture(scope="module")
def question(ground: Ground) -> Question:
    return next(question for question in ground.questions if question.kind == "composition" and is_short(question))


def write_script(recorder: MemoryRecorder, *, with_nodes: bool) -> list[dict[str, Any]]:
    """The replies of a run as the lines of a script."""
    return [
        {"skill": str(step.skill).partition("/")[0], "reply": reply} | ({"node": step.node} if with_nodes else {})
        for step in recorder.steps
        if (reply := read_reply(step)) is not None and step.tool is None
    ]


def play_script(
    ground: Ground,
    method: str,
    question: Question,
    lines: list[dict[str, Any]],
    concurrency: int = 8,
) -> tuple[RunOutcome, MemoryRecorder]:
    replies = [ScriptedReply.model_validate(line) for line in lines]
    return ground.run(method, question, ScriptResponder(replies, "script.jsonl"), concurrency)


def comparable(steps: list[Step]) -> list[tuple[Any, ...]]:
    return [(step.node, step.skill, step.tool, step.arguments, step.observation, step.data) for step in steps]


@pytest.mark.parametrize("method", METHODS)
def test_a_script_with_nodes_repeats_a_run_whatever_the_order_of_its_lines(
    ground: Ground, question: Question, method: str
):
    _, recorder = ground.run(method, question, ground.oracle(question))
    lines = write_script(recorder, with_nodes=True)
    Random(3).shuffle(lines)
    outcome, again = play_script(ground, method, question, lines)
    assert outcome.ending == "answered", outcome.failure
    assert comparable(again.steps) == comparable(recorder.steps)


def test_lines_without_nodes_are_taken_in_order(ground: Ground, question: Question):
    # Calls that are made at the same time have no order.
    _, recorder = ground.run("pdrr", question, ground.oracle(question), concurrency=1)
    lines = write_script(recorder, with_nodes=False)
    outcome, _ = play_script(ground, "pdrr", question, lines, concurrency=1)
    assert outcome.answers == recorder.result.answers  # type: ignore[union-attr]


def test_a_reply_that_the_check_rejects_is_an_attempt(ground: Ground, question: Question):
    _, recorder = ground.run("atomr", question, ground.oracle(question))
    lines = write_script(recorder, with_nodes=True)
    bad: list[dict[str, Any]] = [{"skill": "plan", "reply": {"nodes": []}}, {"skill": "plan", "reply": "Two parts."}]
    for line in bad:
        line["node"] = lines[0]["node"]
    outcome, again = play_script(ground, "atomr", question, [*bad, *lines])
    assert outcome.ending == "answered", outcome.failure
    data = again.steps[0].data or {}
    assert data["calls"] == 3
    assert data["rejected"][0] == {
        "text": '{"nodes": []}',
        "error": "There is no node 0, which is the question itself.",
    }
    assert data["rejected"][1]["text"] == "Two parts."
    assert outcome.calls["model_calls"] == recorder.result.calls["model_calls"] + 2  # type: ignore[union-attr]


def test_a_missing_line_fails_the_run_and_names_the_skill_and_its_place(ground: Ground, question: Question):
    _, recorder = ground.run("atomr", question, ground.oracle(question))
    lines = write_script(recorder, with_nodes=True)
    place = lines[-1]["node"]
    outcome, _ = play_script(ground, "atomr", question, lines[:-1])
    assert outcome.ending == "failed"
    assert outcome.failure == (
        f"The script script.jsonl has no reply for the skill {lines[-1]['skill']} at {place}; add a line."
    )


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "line 2 of the script .*, the line: "),
        ('{"skill": "plan"}', "line 2 of the script .*, reply: field required"),
        ('{"skill": "plan", "reply": {}, "nod": "1"}', "line 2 of the script .*, nod: "),
    ],
)
def test_a_line_of_another_form_is_named(ground: Ground, tmp_path: Path, line: str, told: str):
    file = tmp_path / "script.jsonl"
    file.write_text('{"skill": "plan", "reply": {}}\n' + line + "\n")
    with pytest.raises(UnknownSkillSource, match=told):
        ScriptSource(file).open(None, "gold")  # type: ignore[arg-type]


def test_a_script_tells_the_questions_apart(tmp_path: Path):
    file = tmp_path / "script.jsonl"
    lines = [{"skill": "plan", "reply": "every"}, {"skill": "plan", "reply": "one", "question": "Who?"}]
    file.write_text("\n".join(map(json.dumps, lines)))
    make_responder = ScriptSource(file).open(None, "gold")  # type: ignore[arg-type]
    project = uuid4()
    lengths = [
        len(make_responder(Question(project_id=project, position=1, text=text))._left)  # type: ignore[attr-defined]
        for text in ("Who?", "What?")
    ]
    assert lengths == [2, 1]


@pytest.mark.parametrize("method", METHODS)
def test_stored_replies_repeat_a_run_with_its_rejected_attempts(ground: Ground, question: Question, method: str):
    gold = GoldReasoning(ground.gold, question.text, question.details)
    faulty = FaultyResponder(ground.oracle(question), Fault("malformed", 0.4, seed=2), gold)
    outcome, recorder = ground.run(method, question, faulty)
    assert any((step.data or {}).get("rejected") for step in recorder.steps)
    again_outcome, again = ground.run(method, question, StoredResponder(recorder.steps))
    assert (again_outcome.ending, again_outcome.answers) == (outcome.ending, outcome.answers)
    assert comparable(again.steps) == comparable(recorder.steps)


def test_a_request_that_was_not_stored_fails_the_run(ground: Ground, question: Question):
    _, recorder = ground.run("atomr", question, ground.oracle(question))
    stored = [step for step in recorder.steps if step.skill != "operate/3"]
    outcome, again = ground.run("atomr", question, StoredResponder(stored))
    assert outcome.ending == "failed"
    assert (outcome.failure or "").startswith("The stored run has no reply to this request of the skill operate at "), (
        outcome.failure
    )
    assert [step.skill for step in again.steps if step.finished_at is None and step.skill == "operate/3"]
    assert ground.run("pdrr", question, StoredResponder(recorder.steps))[0].ending == "failed"


def test_sources_are_listed_and_parsed():
    assert parse_skill_source("script:a.jsonl") == ScriptSource(Path("a.jsonl"))
    first, second = uuid4(), uuid4()
    assert parse_skill_source(f"stored:{first},{second}") == StoredSource((first, second))
    assert "script:FILE: " in list_skill_choices()
    assert "stored:TRACE" in list_skill_choices()
    for text in ("script", "script:", "stored:", "stored:x"):
        with pytest.raises(UnknownSkillSource, match="there are no skills"):
            parse_skill_source(text)
    with pytest.raises(UnknownSkillSource, match="no person can be asked"):
        parse_skill_source("person:plan")


def test_a_script_that_cannot_be_read_is_one_sentence(tmp_path: Path):
    services = Services(Settings.from_env({"SHOWHOW_HOME": str(tmp_path)}), {})
    source = parse_skill_source(f"script:{tmp_path}/none.jsonl")
    assert source is not None
    with pytest.raises(UnknownSkillSource, match=r"none\.jsonl cannot be read: "):
        source.open(services, "gold")
    services.close()
