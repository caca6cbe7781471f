"""Guesses: calls that would wait for each other are made at the same time, and a wrong guess changes no answer."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from threading import Barrier
from typing import Any
from zlib import crc32

import pytest

from showhow.db.models import Question, Step
from showhow.db.run_spec import RunLimits
from showhow.db.runs.runs import RunOutcome
from showhow.fiction.universe.options import GenerationOptions
from showhow.oracles.skills import OracleResponder
from showhow.reasoners.atomr.skills import OperateRequest
from showhow.reasoners.base import Task
from showhow.reasoners.geek.skills import NextActionReply
from showhow.reasoners.pdrr.facts import guess_relations
from showhow.reasoners.pdrr.skills import RelationsReply
from showhow.reasoners.pdrr.triples import ScheduledTriple, Triple
from showhow.reasoners.registry import make_reasoner
from showhow.reasoners.skills.skill import SkillAttempt, SkillCall, SkillReply
from showhow.reasoners.skills.values import AnswersReply, OfferedRelation
from showhow.runs.recorders import MemoryRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.tools.registry import available_tools
from tests.oracles.test_skills import Ground, make_ground

pytestmark = pytest.mark.long

OPTIONS = GenerationOptions(people=120, seed=17, depth=8, per_template=1)
UNLIMITED = RunLimits(steps=None, seconds=None)
LIMITED = RunLimits(steps=None, seconds=None, model_calls=10_000, retrievals=10_000)
"""Limits that no run reaches; within them nothing is guessed."""


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    yield from make_ground(OPTIONS)


def run(  # noqa: PLR0917 - each is a part of the run
    ground: Ground, method: str, question: Question, responder: Any, limits: RunLimits, steps: Sequence[Step] = ()
) -> tuple[RunOutcome, MemoryRecorder]:
    context = ground.gold.context
    task = Task(question.text, context, available_tools(context.world), responder=responder)
    recorder = MemoryRecorder(steps)
    return run_reasoner(make_reasoner(method, {}), task, recorder, RunControl(limits, concurrency=32)), recorder


@dataclass
class Meeting:
    """Gold replies; calls of these skills at these places are answered only once all of them were made."""

    oracle: OracleResponder
    places: frozenset[tuple[str, str]]
    name: str = "meeting"
    barrier: Barrier = field(init=False)

    def __post_init__(self) -> None:
        self.barrier = Barrier(len(self.places))

    def reply(self, call: SkillCall[Any, Any], rejections: Sequence[SkillAttempt]) -> SkillReply:
        if (call.skill.name, call.node) in self.places:
            self.barrier.wait(timeout=120)
        return self.oracle.reply(call, rejections)


def places_of(recorder: MemoryRecorder, *skills: str) -> list[tuple[str, str]]:
    calls = [(str(step.skill).partition("/")[0], str(step.node)) for step in recorder.steps if step.tool is None]
    return [call for call in calls if call[0] in skills]


def question_of(ground: Ground, kind: str) -> Question:
    return next(question for question in ground.questions if question.kind == kind)


def test_the_relations_of_a_chain_of_triples_are_chosen_at_the_same_time(ground: Ground):
    question = max(ground.questions, key=lambda question: len((question.details or {})["triples"]["decomposition"]))
    outcome, recorder = run(ground, "pdrr", question, ground.oracle(question), UNLIMITED)
    places = places_of(recorder, "relations")
    assert len(places) > 2
    again, _ = run(ground, "pdrr", question, Meeting(ground.oracle(question), frozenset(places)), UNLIMITED)
    assert again.answers == outcome.answers
    assert again.calls["model_calls"] == again.calls["model_calls_expected"]


def test_the_operations_of_a_chain_are_carried_out_at_the_same_time(ground: Ground):
    question = question_of(ground, "who")
    outcome, recorder = run(ground, "atomr", question, ground.oracle(question), UNLIMITED)
    places = places_of(recorder, "operate")
    assert len(places) > 2
    again, _ = run(ground, "atomr", question, Meeting(ground.oracle(question), frozenset(places)), UNLIMITED)
    assert again.answers == outcome.answers


@pytest.mark.parametrize(("skills", "position"), [
    (("needs_retrieval", "select_sources"), 0),
    (("next_action", "decompose"), 0),
    (("next_action", "conclude"), -1),
])  # fmt: skip
def test_a_lane_takes_its_likely_next_step_while_it_decides(ground: Ground, skills: tuple[str, str], position: int):
    question = question_of(ground, "who")
    outcome, recorder = run(ground, "geek", question, ground.oracle(question), UNLIMITED)
    places = frozenset(places_of(recorder, skill)[position] for skill in skills)
    again, _ = run(ground, "geek", question, Meeting(ground.oracle(question), places), UNLIMITED)
    assert again.answers == outcome.answers
    assert again.calls["model_calls"] == again.calls["model_calls_expected"]


@dataclass(frozen=True)
class Misleading:
    """Gold replies, of which the request alone decides whether they are spoilt: relations dropped, other answers."""

    oracle: OracleResponder
    seed: int
    name: str = "misleading"

    def reply(self, call: SkillCall[Any, Any], rejections: Sequence[SkillAttempt]) -> SkillReply:
        reply = self.oracle.reply(call, rejections)
        value: Any = reply.value
        asked = call.request.model_dump(mode="json", exclude={"passages"})
        if isinstance(call.request, OperateRequest):
            # Values are a set: their order, which the question repeats, is that of whoever found them.
            asked = [call.request.op, *(sorted(part.keys) for part in call.request.args)]
        if crc32(f"{self.seed} {json.dumps(asked, sort_keys=True)}".encode()) % 3:
            return reply
        if isinstance(value, RelationsReply):
            value = value.model_copy(update={"relations": value.relations[1:]})
        elif isinstance(value, NextActionReply) and call.request.state:
            value = NextActionReply(finish=True, why="The facts suffice.")
        elif call.skill.name == "operate" and isinstance(value, AnswersReply):
            gold = self.oracle._gold
            value = value.model_copy(update={"answers": [gold.to_value("person", self.seed)], "unknown": False})
        return SkillReply(value.model_dump_json(exclude_none=True), value)


def answer_set(outcome: RunOutcome) -> list[str]:
    """The answers in whatever order."""
    assert outcome.answers is not None
    return sorted(str(outcome.answers.final_answer).split(", "))


def completed_spans(recorder: MemoryRecorder) -> dict[str, list[str]]:
    """The values of each node or triple, by its place."""
    spans = [step for step in recorder.steps if step.skill == "span" and step.data]
    return {
        str(step.node): sorted(json.dumps(values, sort_keys=True) for values in (step.data or {}).get(name, ()))
        for step in spans
        for name in ("answers", "values")
        if name in (step.data or {})
    }


@pytest.mark.parametrize("method", ["pdrr", "atomr", "geek"])
def test_wrong_guesses_change_no_answer_and_only_add_calls(ground: Ground, method: str):
    in_vain = 0
    for question in ground.questions:
        for seed in range(4):
            responder = Misleading(ground.oracle(question), seed)
            guessing, with_guesses = run(ground, method, question, responder, UNLIMITED)
            waiting, without = run(ground, method, question, responder, LIMITED)
            assert (guessing.ending, guessing.failure) == (waiting.ending, waiting.failure), question.text
            if guessing.answers is not None and waiting.answers is not None:
                assert answer_set(guessing) == answer_set(waiting)
            assert completed_spans(with_guesses) == completed_spans(without)
            assert guessing.calls["model_calls_expected"] == waiting.calls["model_calls_expected"]
            in_vain += guessing.calls["model_calls"] - waiting.calls["model_calls"]
            places = [(step.node, step.skill or step.tool) for step in with_guesses.steps]
            assert len(set(places)) == len(places)
    assert in_vain > 0


@pytest.mark.parametrize("method", ["pdrr", "atomr", "geek"])
def test_a_run_with_a_wrong_guess_is_resumed_and_nothing_is_asked_twice(ground: Ground, method: str):
    question = question_of(ground, "who")
    whole = next(
        recorder
        for seed in range(40)
        for outcome, recorder in [run(ground, method, question, Misleading(ground.oracle(question), seed), UNLIMITED)]
        if outcome.ending == "answered" and outcome.calls["model_calls"] > outcome.calls["model_calls_expected"]
    )

    class Silent:
        name = "silent"

        def reply(self, call: SkillCall[Any, Any], _rejections: Sequence[SkillAttempt]) -> SkillReply:
            raise AssertionError(f"{call.skill.name} is asked again at {call.node}")

    outcome, again = run(ground, method, question, Silent(), UNLIMITED, whole.steps)
    assert outcome.ending == whole.result.ending  # type: ignore[union-attr]
    # Only tools that failed are called again.
    assert [step.node for step in again.steps if not step.tool] == [step.node for step in whole.steps if not step.tool]


@pytest.mark.parametrize(("relation", "known_is", "labels"), [
    ("mother", "subject", ["mother"]),
    ("Parent", "subject", ["father", "mother"]),
    ("daughter", "object", ["child"]),
    ("wife", "subject", ["spouse"]),
    ("grandmother", "subject", []),
    ("place where she grew up", "subject", []),
    ("born in", "subject", []),
])  # fmt: skip
def test_only_relations_that_the_words_name_are_guessed(relation: str, known_is: str, labels: list[str]):
    offered = [
        OfferedRelation.model_validate({"id": f"P{number}", "label": label, "direction": direction})
        for number, label in enumerate(["father", "mother", "child", "spouse", "parent of", "place of birth"])
        for direction in ("head", "tail")
    ]
    triple = Triple(subject="Ada", relation=relation, object="person#1")
    if known_is == "object":
        triple = Triple(subject="person#1", relation=relation, object="Ada")
    guessed = guess_relations(ScheduledTriple(0, triple, known_is == "subject"), offered)
    assert [relation.label for relation in guessed] == labels
    assert {relation.direction for relation in guessed} <= {"head" if known_is == "subject" else "tail"}
