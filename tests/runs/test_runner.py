"""The driver: what is recorded is what happened, however a run ends, and a stop or a limit works while a tool hangs."""

import time
from collections.abc import Callable
from threading import Event, Thread, current_thread
from threading import enumerate as enumerate_threads
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db.recording import TraceAnswers
from llm.types import TextDelta
from reasoners.base import Action, FinalAnswer, QuestionRefused, ReasonerError, Task
from runs.budget import RunLimits
from runs.recorders import MemoryRecorder
from runs.runner import RunControl, run_reasoner
from tests.reasoners.scripted import NOWHERE, Hanging, Scripted, breaks, echo, fail, outage, tool_of, until
from tools.errors import ToolError
from worlds.source import SourceTimeout

TOOLS = [tool_of(function) for function in (echo, fail, outage, breaks)]
USED = {"model": "m", "calls": 1, "input_tokens": 90, "output_tokens": 10, "seconds": 0.5, "cost": 0.01}
LOOK = Action("I look.", "echo", {"text": "a quay"})
END = FinalAnswer(TraceAnswers(final_answer="Ada", answer_text="Ada Reed"), details={"agreement": "all"})


def task(tools: Any = TOOLS) -> Task:
    return Task("Who built the quay?", NOWHERE, tools)


def done(moves: Any, reins: RunControl | None = None) -> MemoryRecorder:
    keeper = MemoryRecorder()
    run_reasoner(Scripted(moves), task(), keeper, reins)
    return keeper


def test_an_answered_run_keeps_its_steps_its_answers_and_what_the_model_took():
    look = Action("I look.", "echo", {"text": "a quay"}, {"text": {"from": "typed"}}, usage=USED)
    keeper = done([look, Action("Now I know."), FinalAnswer(END.answers, USED, END.details)])
    looked, knew = keeper.steps
    assert (looked.thought, looked.tool, looked.arguments, looked.observation, looked.data) == (
        "I look.", "echo", {"text": "a quay"}, "a quay", {"value": "a quay"}
    )  # fmt: skip
    assert looked.origins == {"text": {"from": "typed"}}
    assert looked.usage == {"thought": USED}
    assert (knew.tool, knew.error, knew.finished_at is not None) == (None, None, True)
    assert keeper.result is not None
    assert (keeper.result.ending, keeper.result.failure, keeper.result.answers) == ("answered", None, END.answers)
    assert keeper.result.details == {"agreement": "all"}
    twice = {"calls": 2, "input_tokens": 180, "output_tokens": 20, "seconds": 1.0, "cost": 0.02}
    assert keeper.result.usage == {**USED, **twice}


@pytest.mark.parametrize(
    ("end", "ending", "failure"),
    [
        (QuestionRefused("I can't follow any demonstration here"), "refused", "I can't follow any demonstration here"),
        (ReasonerError("three replies did not parse"), "failed", "three replies did not parse"),
        (ToolError("the model does not answer"), "failed", "the model does not answer"),
        (SourceTimeout("the graph took too long"), "failed", "the graph took too long"),
        (FinalAnswer(TraceAnswers(final_answer=" ")), "failed", "scripted came to an end without an answer"),
    ],
)
def test_a_run_without_an_answer_tells_why_in_a_sentence_and_keeps_its_steps(end: Any, ending: str, failure: str):
    keeper = done([LOOK, end])
    assert keeper.result is not None
    assert (keeper.result.ending, keeper.result.failure, keeper.result.answers) == (ending, failure, None)
    assert len(keeper.steps) == 1


def test_a_fault_of_the_program_fails_the_run_and_is_raised():
    for moves in ([LOOK, KeyError("x")], [LOOK, Action("", "breaks", {"text": "x"})]):
        keeper = MemoryRecorder()
        with pytest.raises((KeyError, ZeroDivisionError)):
            run_reasoner(Scripted(moves), task(), keeper)
        assert keeper.result is not None
        assert keeper.result.ending == "failed"


WORDS = st.text(max_size=9)
ARGUMENTS = st.fixed_dictionaries({"text": WORDS})
CALLS = st.sampled_from(["echo", "fail", "outage", "nothing"])
MOVES = st.one_of(
    st.builds(Action, WORDS, CALLS, ARGUMENTS, usage=st.sampled_from([None, USED])),
    st.builds(Action, WORDS, st.just("echo"), st.just({"wrong": 1})),
    st.builds(Action, WORDS),
    st.builds(Action, WORDS, st.sampled_from([None, "echo"]), rejection=st.text(min_size=1, max_size=9)),
    st.builds(TextDelta, WORDS),
)


@given(st.lists(MOVES, max_size=12))
def test_what_is_recorded_is_what_was_decided_and_what_was_told(moves: list[Any]):
    reasoner, keeper, heard = Scripted(moves), MemoryRecorder(), []
    ended = run_reasoner(reasoner, task(), keeper, RunControl(on_text=heard.append))
    actions = [move for move in moves if isinstance(move, Action)]
    assert heard == [move.text for move in moves if isinstance(move, TextDelta)]
    assert [(s.position, s.thought, s.tool, s.arguments) for s in keeper.steps] == [
        (place, a.thought, a.tool, a.arguments) for place, a in enumerate(actions, 1)
    ]
    told = reasoner.told
    assert [(s.observation, s.error) for s in keeper.steps] == [
        (outcome.observation.text if outcome.observation else None, outcome.error) for outcome in told
    ]
    for step, action in zip(keeper.steps, actions, strict=True):
        assert step.finished_at is not None
        assert action.rejection is None or step.error == action.rejection
        if action.tool in ("fail", "outage") and action.rejection is None and "text" in action.arguments:
            assert step.error is not None
    calls = sum(action.usage is not None for action in actions)
    assert ended.usage.get("calls", 0) == calls
    assert ended.ending == "answered"


def stopped(reasoner: Any, tools: Any, reins: RunControl, when: Callable[[], Any]) -> tuple[MemoryRecorder, float]:
    """The record of a run that is stopped when that is true, and the seconds from the stop to its end."""
    keeper = MemoryRecorder()
    thread = Thread(target=run_reasoner, args=(reasoner, task(tools), keeper, reins), daemon=True)
    thread.start()
    until(when)
    began = time.monotonic()
    reins.stop.set()
    thread.join(60)
    assert keeper.result is not None
    return keeper, time.monotonic() - began


def test_a_stop_works_at_once_while_a_tool_hangs_and_its_late_result_is_dropped():
    hanging, reins = Hanging(), RunControl()
    reasoner = Scripted([LOOK, Action("I wait.", "hang", {"text": "late"}), LOOK])
    keeper, seconds = stopped(reasoner, [*TOOLS, hanging.tool], reins, hanging.called.is_set)
    assert seconds < 5
    assert (keeper.result.ending, keeper.result.failure) == ("stopped", "it was stopped after 2 steps")  # type: ignore[union-attr]
    hanging.go.set()
    until(reasoner.closed.is_set)
    assert hanging.came_back.is_set()
    assert [(step.observation, step.finished_at is None) for step in keeper.steps] == [("a quay", False), (None, True)]


class Talks:
    """Says something until it is closed."""

    name = "talks"

    def __init__(self) -> None:
        self.closed = Event()

    def solve(self, task: Task) -> Any:
        assert task.on_text is not None
        try:
            while True:
                time.sleep(0.01)
                task.on_text("la ")
            yield LOOK
        finally:
            self.closed.set()


def test_a_stop_ends_a_model_that_talks_without_end():
    heard: list[str] = []
    reasoner = Talks()
    keeper, seconds = stopped(reasoner, TOOLS, RunControl(on_text=heard.append), lambda: len(heard) > 3)
    assert seconds < 5
    assert keeper.result.ending == "stopped"  # type: ignore[union-attr]
    until(reasoner.closed.is_set)


def test_the_time_is_over_while_a_tool_hangs():
    hanging, keeper = Hanging(), MemoryRecorder()
    ended = run_reasoner(
        Scripted([Action("I wait.", "hang", {"text": "x"})]),
        task([hanging.tool]),
        keeper,
        RunControl(RunLimits(seconds=0.2)),
    )
    assert ended.ending == "limit"
    assert (ended.failure or "").startswith("the limit of 0.2 seconds is reached")
    hanging.go.set()


@pytest.mark.parametrize(
    ("limits", "steps", "sentence"),
    [
        (RunLimits(steps=3), 3, "the limit of 3 steps is reached"),
        (RunLimits(tokens=200), 2, "the limit of 200 tokens is reached"),
        (RunLimits(money=0.025), 3, "the limit of $0.025 is reached"),
    ],
)
def test_a_limit_ends_a_run_and_says_which(limits: RunLimits, steps: int, sentence: str):
    keeper = done([Action("again", "echo", {"text": "x"}, usage=USED)] * 9, RunControl(limits))
    assert keeper.result is not None
    assert keeper.result.ending == "limit"
    assert (keeper.result.failure or "").startswith(sentence)
    assert len(keeper.steps) == steps


def test_a_run_that_needs_just_what_it_may_answers():
    keeper = done([LOOK, LOOK, END], RunControl(RunLimits(steps=2)))
    assert keeper.result is not None
    assert keeper.result.ending == "answered"


@pytest.mark.parametrize(
    ("limits", "unknown"), [(RunLimits(tokens=10_000), {"input_tokens": None}), (RunLimits(money=10), {"cost": None})]
)
def test_a_limit_of_what_nobody_tells_ends_a_run_rather_than_be_passed_over(
    limits: RunLimits, unknown: dict[str, None]
):
    keeper = done([Action("", "echo", {"text": "x"}, usage={**USED, **unknown})] * 3, RunControl(limits))
    assert keeper.result is not None
    assert keeper.result.ending == "limit"
    assert "can be kept" in (keeper.result.failure or "")
    assert len(keeper.steps) == 1


def test_a_run_has_one_worker_and_its_text_arrives_in_the_thread_that_drives_it():
    before, threads, readers = set(enumerate_threads()), set[Thread](), set[Thread]()

    def read(_text: str) -> None:
        readers.add(current_thread())
        threads.update(enumerate_threads())

    moves = [TextDelta("I look. "), LOOK, TextDelta("I know."), END]
    run_reasoner(Scripted(moves), task(), MemoryRecorder(), RunControl(on_text=read))
    assert readers == {current_thread()}
    assert [thread.name for thread in threads - before] == ["showhow run"]


def test_without_a_reader_no_reply_is_streamed():
    reasoner = Scripted([END])
    run_reasoner(reasoner, task(), MemoryRecorder(), RunControl())
    assert reasoner.task is not None
    assert reasoner.task.on_text is None
