"""Branches: their order, their bounds, stops at any width, and runs that are resumed in the middle of a tree."""

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from random import Random
from threading import Event, Lock, Thread
from typing import Any

import pytest
from pydantic import BaseModel

from showhow.db.models import Step
from showhow.db.run_spec import RunLimits
from showhow.db.traces.recording import TraceAnswers
from showhow.reasoners.base import Action, Branch, FinalAnswer, Move, Parallel, ReasonerGenerator, StepCompletion, Task
from showhow.reasoners.skills.skill import Skill, SkillAttempt, SkillCall, SkillReply
from showhow.runs.recorders import MemoryRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.tools.tool import Observation, ToolContext
from tests.reasoners.scripted import NOWHERE, Hanging, tool_of

QUESTIONS = 200


class Asked(BaseModel):
    """A text."""

    text: str


GUESS: Skill[Asked, Asked] = Skill("guess", 1, "I guess.", "showhow.reasoners.skills", Asked, Asked)


@dataclass
class Delays:
    """A tool and a responder that take random times, and count what works at the same time."""

    seed: int
    longest: float = 0.004
    calls: list[str] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    name: str = "delays"
    lock: Lock = field(default_factory=Lock)

    def work(self, text: str) -> str:
        with self.lock:
            self.calls.append(text)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        time.sleep(Random(f"{self.seed} {text}").random() * self.longest)
        with self.lock:
            self.at_once -= 1
        return f"<{text}>"

    def reply(self, call: SkillCall[Any, Any], rejections: Sequence[SkillAttempt]) -> SkillReply:
        assert not rejections
        return SkillReply("", Asked(text=self.work(call.request.text)))

    def look(self, _context: ToolContext, text: str) -> Observation:
        """Look."""
        return Observation(self.work(text), {})

    def task(self, question: str) -> Task:
        return Task(question, NOWHERE, [tool_of(self.look)], responder=self)


class RandomTree:
    """Grows a tree from the question: spans, tools, skills, branches that wait for others; the answer joins all."""

    name = "random tree"

    def __init__(self, depth: int = 3) -> None:
        self.depth = depth

    def solve(self, task: Task) -> ReasonerGenerator:
        answer = yield from self._grow(Random(task.question), "0", self.depth)
        return FinalAnswer(TraceAnswers(answer))

    def _grow(self, chance: Random, node: str, depth: int) -> Generator[Move, Any, str]:
        opened = yield Action(f"node {node}", node=node, skill="node", open=True, reuse=True)
        asked = yield SkillCall(GUESS, Asked(text=f"guess {node}"), f"{node}/guess", opened.step_id)
        parts = [asked.reply.text]
        children = chance.randrange(4) if depth else 0
        branches = [
            Branch(
                str(number),
                self._grow(Random(chance.random()), f"{node}.{number}", depth - 1),
                frozenset({str(chance.randrange(number))} if number and chance.random() < 0.3 else ()),
            )
            for number in range(children)
        ]
        parts += yield Parallel(branches)
        seen = yield Action(
            "", "look", {"text": f"look {node}"}, parent=opened.step_id, node=f"{node}/look", reuse=True
        )
        parts.append(seen.observation.text)
        yield StepCompletion(opened.step_id, "done", {"parts": len(parts)})
        return "(" + " ".join(parts) + ")"


def drive(
    task: Task, concurrency: int, steps: Sequence[Step] = (), control: RunControl | None = None
) -> MemoryRecorder:
    recorder = MemoryRecorder()
    recorder.steps = list(steps)
    run_reasoner(RandomTree(), task, recorder, control or RunControl(RunLimits(steps=None), concurrency=concurrency))
    return recorder


def order(recorder: MemoryRecorder) -> list[tuple[int, str | None, str | None, str | None]]:
    return [(step.position, step.node, step.skill or step.tool, step.observation) for step in recorder.steps]


def answer(recorder: MemoryRecorder) -> str:
    assert recorder.result is not None
    assert recorder.result.answers is not None, recorder.result
    return recorder.result.answers.final_answer


@pytest.mark.long
def test_a_trace_and_its_answer_are_the_same_in_sequence_and_concurrently():
    widest = 0
    for number in range(QUESTIONS):
        alone, together = Delays(number, 0), Delays(number)
        first, second = drive(alone.task(f"q{number}"), 1), drive(together.task(f"q{number}"), 8)
        assert (order(first), answer(first)) == (order(second), answer(second))
        assert alone.most_at_once == 1
        widest = max(widest, together.most_at_once)
    assert 2 < widest <= 8


def test_children_follow_their_parents_and_every_span_is_finished():
    recorder = drive(Delays(0).task("q7"), 8)
    positions = {step.id: step.position for step in recorder.steps}
    assert all(step.finished_at is not None for step in recorder.steps)
    children = [step for step in recorder.steps if step.parent_id is not None]
    assert children
    assert all(positions[step.parent_id] < step.position for step in children if step.parent_id is not None)


def test_an_interrupted_tree_is_resumed_and_nothing_answered_is_asked_twice():
    whole = drive(Delays(0, 0).task("q3"), 4)
    assert len(whole.steps) > 20
    for kept in range(len(whole.steps)):
        delays = Delays(0, 0)
        steps = [copy_of(step) for step in whole.steps[:kept]]
        # Of the last round, only every second result was stored.
        for step in steps[-3::2]:
            step.observation, step.data, step.finished_at = None, None, None
        finished = {place(step) for step in steps if step.finished_at is not None}
        resumed = drive(delays.task("q3"), 4, steps)
        assert answer(resumed) == answer(whole)
        assert sorted(map(place, resumed.steps)) == sorted(map(place, whole.steps))
        asked_again = {call for call in delays.calls if call in {argument for _, argument in finished}}
        assert not asked_again


def copy_of(step: Step) -> Step:
    names = [column.name for column in Step.__table__.columns]
    return Step(**{name: getattr(step, name) for name in names})


def place(step: Step) -> tuple[str, str]:
    return str(step.node), str(step.arguments.get("text"))


def test_a_run_stops_at_once_while_fifty_branches_hang():
    hanging, control = Hanging(), RunControl(RunLimits(steps=None), concurrency=50)
    called = []
    hanging.on_call = lambda: called.append(1)

    class Wide:
        name = "wide"

        def solve(self, _task: Task) -> ReasonerGenerator:
            yield Parallel([Branch(str(number), self._hang()) for number in range(50)])
            return FinalAnswer(TraceAnswers("never"))

        @staticmethod
        def _hang() -> Generator[Move, Any, None]:
            yield Action("", "hang", {"text": "x"})

    recorder = MemoryRecorder()
    thread = Thread(target=run_reasoner, args=(Wide(), Task("?", NOWHERE, [hanging.tool]), recorder, control))
    thread.start()
    wait_for(lambda: len(called) == 50)
    control.stop.set()
    thread.join(timeout=60)
    hanging.go.set()
    assert recorder.result is not None
    assert recorder.result.ending == "stopped"
    assert len(recorder.steps) == 50


def wait_for(condition: Any) -> None:
    waiting = Event()
    for _ in range(6000):
        if condition():
            return
        waiting.wait(0.01)
    raise AssertionError("the condition was not met in time")


@pytest.mark.parametrize(("limits", "failure"), [
    (RunLimits(steps=None, model_calls=3), "the limit of 3 calls of the model is reached"),
    (RunLimits(steps=None, retrievals=2), "the limit of 2 retrievals is reached"),
    (RunLimits(steps=5), "the limit of 5 steps is reached"),
])  # fmt: skip
def test_a_limit_ends_a_tree_with_its_steps_kept(limits: RunLimits, failure: str):
    recorder = drive(Delays(0).task("q3"), 4, control=RunControl(limits))
    assert recorder.result is not None
    assert recorder.result.ending == "limit"
    assert failure in str(recorder.result.failure)
    assert recorder.steps


def test_branches_that_wait_for_each_other_fail_the_run_with_one_sentence():
    class Circle:
        name = "circle"

        def solve(self, _task: Task) -> ReasonerGenerator:
            tree = RandomTree()
            first = Branch("a", tree._grow(Random(0), "a", 0), frozenset("b"))
            second = Branch("b", tree._grow(Random(0), "b", 0), frozenset("a"))
            yield Parallel([first, second])
            return FinalAnswer(TraceAnswers("never"))

    recorder = MemoryRecorder()
    run_reasoner(Circle(), Delays(0).task("?"), recorder)
    assert recorder.result is not None
    assert (recorder.result.ending, recorder.result.failure) == (
        "failed",
        "the branches of a move wait for each other, so none can begin",
    )


@pytest.mark.long
def test_ten_thousand_branches_in_a_chain_end():
    class Chain:
        name = "chain"

        def solve(self, _task: Task) -> ReasonerGenerator:
            results = yield Parallel(
                [
                    Branch(str(number), self._count(number), frozenset({str(number - 1)}) if number else frozenset())
                    for number in range(10_000)
                ]
            )
            return FinalAnswer(TraceAnswers(str(sum(results))))

        @staticmethod
        def _count(number: int) -> Generator[Move, Any, int]:
            yield from ()
            return number

    recorder = MemoryRecorder()
    run_reasoner(Chain(), Task("?", NOWHERE, []), recorder, RunControl(RunLimits(seconds=None)))
    assert answer(recorder) == str(sum(range(10_000)))
