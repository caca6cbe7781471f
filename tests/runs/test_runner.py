"""The driver: recorded steps, every ending, and stops and limits while a tool hangs."""

import time
from collections.abc import Callable
from threading import Event, Thread, current_thread
from threading import enumerate as enumerate_threads
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.db.run_spec import RunLimits
from showhow.db.traces.recording import TraceAnswers
from showhow.llm.types import TextDelta
from showhow.reasoners.base import Action, FinalAnswer, QuestionRefused, ReasonerError, Task
from showhow.runs.recorders import MemoryRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.tools.arguments import ToolError
from showhow.worlds.source import SourceTimeout
from tests.reasoners.scripted import NOWHERE, Hanging, Scripted, breaks, echo, fail, outage, tool_of, until

TOOLS = [tool_of(function) for function in (echo, fail, outage, breaks)]
USED = {"model": "m", "calls": 1, "input_tokens": 90, "output_tokens": 10, "seconds": 0.5, "cost": 0.01}
LOOK = Action("I look.", "echo", {"text": "a quay"})
END = FinalAnswer(TraceAnswers(final_answer="Ada", answer_text="Ada Reed"), details={"agreement": "all"})


def task(tools: Any = TOOLS) -> Task:
    return Task("Who built the quay?", NOWHERE, tools)


def done(moves: Any, control: RunControl | None = None) -> MemoryRecorder:
    recorder = MemoryRecorder()
    run_reasoner(Scripted(moves), task(), recorder, control)
    return recorder


def test_an_answered_run_keeps_its_steps_answers_and_usage():
    look = Action("I look.", "echo", {"text": "a quay"}, {"text": {"from": "typed"}}, usage=USED)
    recorder = done([look, Action("Now I know."), FinalAnswer(END.answers, USED, END.details)])
    looked, knew = recorder.steps
    assert (looked.thought, looked.tool, looked.arguments, looked.observation, looked.data) == (
        "I look.", "echo", {"text": "a quay"}, "a quay", {"value": "a quay"}
    )  # fmt: skip
    assert looked.origins == {"text": {"from": "typed"}}
    assert looked.usage == {"thought": USED}
    assert (knew.tool, knew.error, knew.finished_at is not None) == (None, None, True)
    assert recorder.result is not None
    assert (recorder.result.ending, recorder.result.failure, recorder.result.answers) == ("answered", None, END.answers)
    assert recorder.result.details == {"agreement": "all"}
    twice = {"calls": 2, "input_tokens": 180, "output_tokens": 20, "seconds": 1.0, "cost": 0.02}
    assert recorder.result.usage == {**USED, **twice}


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
def test_a_run_without_an_answer_keeps_its_steps_and_the_reason(end: Any, ending: str, failure: str):
    recorder = done([LOOK, end])
    assert recorder.result is not None
    assert (recorder.result.ending, recorder.result.failure, recorder.result.answers) == (ending, failure, None)
    assert len(recorder.steps) == 1


def test_a_fault_of_the_program_fails_the_run_and_is_raised():
    for moves in ([LOOK, KeyError("x")], [LOOK, Action("", "breaks", {"text": "x"})]):
        recorder = MemoryRecorder()
        with pytest.raises((KeyError, ZeroDivisionError)):
            run_reasoner(Scripted(moves), task(), recorder)
        assert recorder.result is not None
        assert recorder.result.ending == "failed"


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
def test_recorded_steps_equal_the_actions_and_their_results(moves: list[Any]):
    reasoner, recorder, streamed = Scripted(moves), MemoryRecorder(), []
    ended = run_reasoner(reasoner, task(), recorder, RunControl(on_text=streamed.append))
    actions = [move for move in moves if isinstance(move, Action)]
    assert streamed == [move.text for move in moves if isinstance(move, TextDelta)]
    assert [(s.position, s.thought, s.tool, s.arguments) for s in recorder.steps] == [
        (place, a.thought, a.tool, a.arguments) for place, a in enumerate(actions, 1)
    ]
    results = reasoner.results
    assert [(s.observation, s.error) for s in recorder.steps] == [
        (outcome.observation.text if outcome.observation else None, outcome.error) for outcome in results
    ]
    for step, action in zip(recorder.steps, actions, strict=True):
        assert step.finished_at is not None
        assert action.rejection is None or step.error == action.rejection
        if action.tool in ("fail", "outage") and action.rejection is None and "text" in action.arguments:
            assert step.error is not None
    calls = sum(action.usage is not None for action in actions)
    assert ended.usage.get("calls", 0) == calls
    assert ended.ending == "answered"


def stopped(reasoner: Any, tools: Any, control: RunControl, when: Callable[[], Any]) -> tuple[MemoryRecorder, float]:
    """Stop a run once `when` is true; return its recorder and the seconds from the stop to its end."""
    recorder = MemoryRecorder()
    thread = Thread(target=run_reasoner, args=(reasoner, task(tools), recorder, control), daemon=True)
    thread.start()
    until(when)
    began = time.monotonic()
    control.stop.set()
    thread.join(60)
    assert recorder.result is not None
    return recorder, time.monotonic() - began


def test_a_stop_works_at_once_while_a_tool_hangs_and_its_late_result_is_dropped():
    hanging, control = Hanging(), RunControl()
    reasoner = Scripted([LOOK, Action("I wait.", "hang", {"text": "late"}), LOOK])
    recorder, seconds = stopped(reasoner, [*TOOLS, hanging.tool], control, hanging.called.is_set)
    assert seconds < 5
    assert (recorder.result.ending, recorder.result.failure) == ("stopped", "it was stopped after 2 steps")  # type: ignore[union-attr]
    hanging.go.set()
    until(reasoner.closed.is_set)
    assert hanging.came_back.is_set()
    assert [(step.observation, step.finished_at is None) for step in recorder.steps] == [
        ("a quay", False),
        (None, True),
    ]


class Talks:
    """A reasoner that streams text until it is closed."""

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


def test_a_stop_ends_an_endless_stream():
    streamed: list[str] = []
    reasoner = Talks()
    recorder, seconds = stopped(reasoner, TOOLS, RunControl(on_text=streamed.append), lambda: len(streamed) > 3)
    assert seconds < 5
    assert recorder.result.ending == "stopped"  # type: ignore[union-attr]
    until(reasoner.closed.is_set)


def test_the_time_limit_ends_a_hanging_tool():
    hanging, recorder = Hanging(), MemoryRecorder()
    outcome = run_reasoner(
        Scripted([Action("I wait.", "hang", {"text": "x"})]),
        task([hanging.tool]),
        recorder,
        RunControl(RunLimits(seconds=0.2)),
    )
    assert outcome.ending == "limit"
    assert (outcome.failure or "").startswith("the limit of 0.2 seconds is reached")
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
    recorder = done([Action("again", "echo", {"text": "x"}, usage=USED)] * 9, RunControl(limits))
    assert recorder.result is not None
    assert recorder.result.ending == "limit"
    assert (recorder.result.failure or "").startswith(sentence)
    assert len(recorder.steps) == steps


def test_a_run_that_needs_exactly_its_limits_answers():
    recorder = done([LOOK, LOOK, END], RunControl(RunLimits(steps=2)))
    assert recorder.result is not None
    assert recorder.result.ending == "answered"


@pytest.mark.parametrize(
    ("limits", "unknown"), [(RunLimits(tokens=10_000), {"input_tokens": None}), (RunLimits(money=10), {"cost": None})]
)
def test_a_limit_on_an_unknown_usage_ends_the_run(limits: RunLimits, unknown: dict[str, None]):
    recorder = done([Action("", "echo", {"text": "x"}, usage={**USED, **unknown})] * 3, RunControl(limits))
    assert recorder.result is not None
    assert recorder.result.ending == "limit"
    assert "cannot be enforced" in (recorder.result.failure or "")
    assert len(recorder.steps) == 1


def test_a_run_has_one_worker_and_its_text_arrives_in_the_thread_that_drives_it():
    before, threads, readers = set(enumerate_threads()), set[Thread](), set[Thread]()

    def read(_text: str) -> None:
        readers.add(current_thread())
        threads.update(enumerate_threads())

    moves = [TextDelta("I look. "), LOOK, TextDelta("I know."), END]
    run_reasoner(Scripted(moves), task(), MemoryRecorder(), RunControl(on_text=read))
    assert readers == {current_thread()}
    assert [thread.name for thread in threads - before] == ["showhow run"]


def test_replies_are_not_streamed_without_a_listener():
    reasoner = Scripted([END])
    run_reasoner(reasoner, task(), MemoryRecorder(), RunControl())
    assert reasoner.task is not None
    assert reasoner.task.on_text is None
