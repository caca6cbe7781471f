"""Runs in the store: what is recorded, how they resume, and concurrent access to a trace."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from showhow.db.database import Conflict, Database, StoreError
from showhow.db.models import Run, Trace
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.run_spec import RunLimits, RunResult
from showhow.db.runs import runs
from showhow.db.storage.schema import check_database, upgrade
from showhow.db.traces import recording, traces
from showhow.db.traces.model_calls import list_model_calls
from showhow.db.traces.trace_record import TraceRecord
from showhow.llm.types import ChatReply, Message, OutgoingRequest, TokenLogprob
from showhow.llm.usage import Usage
from showhow.reasoners.base import Action, FinalAnswer, ReasonerError, ReasonerGenerator, Task
from showhow.runs.model_call_recorder import StoreModelCallRecorder
from showhow.runs.recorders import MemoryRecorder, StoreRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.tools.tool import Observation, ToolContext
from tests.reasoners.scripted import NOWHERE, Hanging, Scripted, breaks, echo, tool_of
from tests.runs.killed_tree import DEPTH, QUESTION
from tests.runs.test_branches import Delays, RandomTree
from tests.servers.model import Fails, ModelServer, Reply, Request, Says

MOST = Usage("m", 1, unreported_calls=1, token_bound=500)
USED = {"model": "m", "calls": 1, "input_tokens": 90, "output_tokens": 10, "seconds": 0.5, "cost": 0.01}
LOOK = [Action(f"Look {n}.", "echo", {"text": f"quay {n}"}, usage=USED) for n in (1, 2, 3)]
END = FinalAnswer(recording.TraceAnswers(final_answer="Ada", answer_graph="Ada Reed"), USED, {"agreement": "all"})
TOOLS = [tool_of(echo), tool_of(breaks)]


@dataclass
class Scene:
    """A store with a question that a run has begun to answer."""

    url: str
    store: Database
    run: Run
    trace: Trace

    def record(self, trace_id: UUID | None = None) -> TraceRecord:
        with self.store.read() as session:
            return traces.load_trace(session, trace_id or self.trace.id)

    def drive(
        self, moves: list[Any], trace: Trace | None = None, control: RunControl | None = None, tools: Any = TOOLS
    ) -> Any:
        task = Task("Who built the quay?", NOWHERE, tools)
        return run_reasoner(Scripted(moves), task, StoreRecorder(self.store, trace or self.trace), control)

    def reopened(self) -> Trace:
        with self.store.begin() as session:
            return runs.reopen_run_trace(session, self.trace.id)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    url = f"sqlite:///{tmp_path / 'showhow.db'}"
    store = Database(url)
    upgrade(store)
    plain = {"source_id": None, "dataset": None, "split": None, "kind": None, "gold_answers": [], "decomposition": []}
    with store.begin() as session:
        project = projects.create_project(session, "p", "nowhere")
        projects.add_questions(session, project.id, [SimpleNamespace(text="Who built the quay?", details={}, **plain)])
        (question,) = projects.list_questions(session, project.id)
        begun = runs.start_run(session, Run(name="ask", reasoner="scripted", world="nowhere"))
        trace = runs.start_run_trace(session, begun, question.id, "1:2:here")
    yield Scene(url, store, begun, trace)
    assert check_database(store) == []
    store.close()


def test_an_answered_run_is_submitted_with_answers_cost_and_result(scene: Scene):
    scene.drive([*LOOK, END])
    record = scene.record()
    trace = record.trace
    assert (trace.status, trace.ending, trace.failure, trace.author_id) == ("submitted", "answered", None, None)
    assert (trace.final_answer, trace.answer_graph) == ("Ada", "Ada Reed")
    calls = trace.result.calls
    assert trace.result == RunResult(worker="1:2:here", calls=calls, details={"agreement": "all"})
    assert (calls["model_calls"], calls["retrievals"]) == (4, 3)
    assert (trace.cost["calls"], trace.cost["input_tokens"]) == (4, 360)
    assert [(s.position, s.observation, s.usage) for s in record.steps] == [
        (n, f"quay {n}", {"thought": USED}) for n in (1, 2, 3)
    ]
    assert next(record.find_inconsistencies(), None) is None


def test_a_fault_of_the_program_fails_the_trace(scene: Scene):
    with pytest.raises(ZeroDivisionError):
        scene.drive([LOOK[0], Action("", "breaks", {"text": "x"})])
    trace = scene.record().trace
    assert (trace.status, trace.ending) == ("failed", "failed")
    assert "ZeroDivisionError" in (trace.failure or "")


def test_a_stopped_run_resumes_at_the_unfinished_step_and_pays_nothing_twice(scene: Scene):
    hanging, control = Hanging(), RunControl()
    wait = Action("I wait.", "hang", {"text": "late"}, usage=USED)
    moves = [LOOK[0], wait, LOOK[1], END]
    hanging.on_call = control.stop.set
    scene.drive(moves, control=control, tools=[*TOOLS, hanging.tool])
    stopped = scene.record()
    assert (stopped.trace.status, stopped.trace.ending, len(stopped.steps)) == ("failed", "stopped", 2)
    assert stopped.steps[1].finished_at is None
    hanging.go.set()

    scene.drive(moves, scene.reopened(), tools=[*TOOLS, hanging.tool])
    record = scene.record()
    assert [step.observation for step in record.steps] == ["quay 1", "late", "quay 2"]
    assert record.steps[0].id == stopped.steps[0].id
    assert record.trace.cost["calls"] == 4
    assert (record.trace.ending, record.trace.failure) == ("answered", None)
    assert (record.trace.wall_seconds or 0) > 0


def test_a_model_call_of_a_tool_that_is_run_again_belongs_to_the_step_of_the_tool(scene: Scene):
    hanging, control = Hanging(), RunControl()
    hanging.on_call = control.stop.set
    moves = [LOOK[0], Action("I wait.", "hang", {"text": "late"}), END]
    scene.drive(moves, control=control, tools=[*TOOLS, hanging.tool])
    hanging.go.set()
    recorder = StoreRecorder(scene.store, scene.reopened())
    model_calls = StoreModelCallRecorder(scene.store, recorder)

    def hang(_context: ToolContext, text: str) -> Observation:
        """Ask a model."""
        call = model_calls.begin(OutgoingRequest("tool:hang", "m", [{"role": "user", "content": text}], {}), MOST)
        model_calls.complete(call, ChatReply("late", (), Usage(**USED), "stop"))
        return Observation("late", {})

    run_reasoner(Scripted(moves), Task("?", NOWHERE, [*TOOLS, tool_of(hang)]), recorder)
    with scene.store.read() as session:
        (call,) = list_model_calls(session, scene.trace.id)
    assert call.step_id == scene.record().steps[1].id


def test_a_paid_reply_that_was_not_used_keeps_its_log_probabilities(scene: Scene):
    request = OutgoingRequest("skill:plan", "m", [{"role": "user", "content": "Plan."}], {"logprobs": True})
    logprobs = (TokenLogprob(0, 2, -0.5), TokenLogprob(2, 5, -1.25))
    reply = ChatReply("A no", (), Usage(**USED), "stop", logprobs=logprobs)
    first = StoreModelCallRecorder(scene.store, StoreRecorder(scene.store, scene.trace))
    first.complete(first.begin(request, MOST), reply)
    second = StoreModelCallRecorder(scene.store, StoreRecorder(scene.store, scene.trace))
    taken = second.take_unused_reply(request)
    assert taken is not None
    assert (taken.text, taken.logprobs) == ("A no", logprobs)
    assert second.take_unused_reply(request) is None


def test_a_step_limit_counts_prior_steps_and_a_higher_one_lets_the_run_resume(scene: Scene):
    scene.drive([*LOOK, END], control=RunControl(RunLimits(steps=2)))
    assert scene.record().trace.ending == "limit"
    scene.drive([*LOOK, END], scene.reopened(), RunControl(RunLimits(tokens=200)))
    assert (scene.record().trace.failure or "").startswith("the limit of 200 tokens")
    assert len(scene.record().steps) == 2
    scene.drive([*LOOK, END], scene.reopened())
    trace = scene.record().trace
    assert trace.ending == "answered"
    # The third look was paid for twice, since the limit left no room for it the first time.
    assert trace.cost["calls"] == len(LOOK) + 2


def test_a_run_whose_trace_was_reopened_writes_nothing_more(scene: Scene):
    former = StoreRecorder(scene.store, scene.trace)
    scene.drive([LOOK[0], END], scene.reopened())
    with pytest.raises(Conflict):
        run_reasoner(Scripted(LOOK), Task("?", NOWHERE, TOOLS), former)
    assert [step.thought for step in scene.record().steps] == ["Look 1."]
    assert scene.record().trace.ending == "answered"


def test_a_rerun_from_a_step_copies_the_steps_before_and_pays_only_for_its_own(scene: Scene):
    scene.drive([*LOOK, END])
    with scene.store.begin() as session:
        again = runs.start_run(session, Run(name="ask", reasoner="scripted", world="nowhere"))
        child = runs.fork_run_trace(session, scene.trace.id, 1, again)
    scene.drive([LOOK[0], LOOK[2], END], child)
    record = scene.record(child.id)
    assert (record.trace.parent_id, record.trace.parent_position) == (scene.trace.id, 1)
    assert [step.observation for step in record.steps] == ["quay 1", "quay 3"]
    assert record.trace.cost["calls"] == 2
    assert record.trace.author_id is None
    assert len(scene.record().steps) == 3


def test_only_an_unanswered_trace_of_a_run_is_resumed(scene: Scene):
    scene.drive([END])
    with pytest.raises(Conflict, match="submitted"):
        scene.reopened()
    with scene.store.begin() as session:
        ada = users.register_user(session, "ada")
        hers = recording.start_trace(session, scene.trace.question_id, ada.id)
    with pytest.raises(Conflict, match="does not belong to a run"), scene.store.begin() as session:
        runs.reopen_run_trace(session, hers.id)


def test_a_run_killed_at_any_moment_resumes_without_repeating_finished_steps(scene: Scene, tmp_path):
    steps, deaths = 240, 15
    calls = tmp_path / "calls"
    script = Path(__file__).with_name("killed_run.py")
    words = [sys.executable, script, scene.url, scene.trace.id.hex, calls, str(steps), str(deaths)]
    subprocess.run(words, check=True, timeout=120)
    record = scene.record()
    assert (record.trace.status, record.trace.ending) == ("submitted", "answered")
    assert [(s.position, s.arguments, s.observation) for s in record.steps] == [
        (n, {"number": n}, f"counted to {n}") for n in range(1, steps + 1)
    ]
    called = Counter(map(int, calls.read_text().split()))
    assert sorted(called) == list(range(1, steps + 1))
    # A step is only run again where the runner died between its call and its record: at most once a death.
    assert sum(called.values()) - steps <= deaths


MODEL_REPLIES = 7
"""Of the run below: three steps whose tool asks the model too, and the answer."""


def reply_of_agent(request: Request) -> Reply:
    if not request.tools:
        return Says(f"Nothing: {request.prompt}", usage=(10, 1))
    looked_up = sum(message["role"] == "tool" for message in request.body["messages"])
    if looked_up < 3:
        return Says("I look.", calls=[("lookup", {"name": f"person {looked_up}"})], usage=(100, 5))
    return Says("Now I know.\n\nFinal Answer: Ada", usage=(100, 5))


@pytest.mark.long
@pytest.mark.parametrize(("when", "paid_twice"), [("stored", 0), ("lost", MODEL_REPLIES)])
def test_no_stored_reply_is_paid_again_after_a_kill(scene: Scene, when: str, paid_twice: int):
    script = Path(__file__).with_name("killed_model_run.py")
    with ModelServer(reply_of_agent) as server:
        words = [sys.executable, script, scene.url, scene.trace.id.hex, server.url, when]
        done = subprocess.run(words, check=True, timeout=300, capture_output=True, text=True)
        assert len(server.requests) == MODEL_REPLIES + paid_twice
    assert int(done.stdout) == MODEL_REPLIES + paid_twice
    record = scene.record()
    assert (record.trace.ending, record.trace.final_answer) == ("answered", "Ada")
    assert [(step.tool, step.arguments, step.error) for step in record.steps] == [
        ("lookup", {"name": f"person {number}"}, None) for number in range(3)
    ]
    cost = record.trace.cost
    assert cost is not None
    # Each reply counts once, whichever process used it.
    assert (cost["calls"], cost["input_tokens"], cost["output_tokens"]) == (7, 430, 23)
    with scene.store.read() as session:
        states = Counter(call.state for call in list_model_calls(session, scene.trace.id))
    assert states == Counter({"answered": MODEL_REPLIES, "lost": paid_twice} if paid_twice else {"answered": 7})


def test_a_reply_of_a_run_that_failed_is_not_used_again(scene: Scene):
    def ask_and_fail(context: ToolContext) -> ReasonerGenerator:
        assert context.chat is not None
        raise ReasonerError(context.chat.ask([Message("user", "Which quay?")]).text)
        yield

    with ModelServer(lambda request: Says(f"No {request.place}.")) as server:
        for number in range(2):
            steps = StoreRecorder(scene.store, scene.trace if not number else scene.reopened())
            chat = server.chat().recording(StoreModelCallRecorder(scene.store, steps))
            task = Task("Who built the quay?", replace(NOWHERE, chat=chat), TOOLS)
            reasoner = SimpleNamespace(name="asking", solve=lambda task: ask_and_fail(task.context))
            assert run_reasoner(reasoner, task, steps).failure == f"No {number}."
        assert len(server.requests) == 2


@dataclass
class Asking:
    """Asks the model one question after the other without a step, and answers with the last reply."""

    questions: list[str]
    before_second: Callable[[], object] = lambda: None
    name: str = "asking"

    def solve(self, task: Task) -> ReasonerGenerator:
        assert task.context.chat is not None
        replies: list[ChatReply] = []
        for question in self.questions:
            if replies:
                self.before_second()
            replies.append(task.context.chat.ask([Message("user", question)]))
        usage = sum((reply.usage for reply in replies), Usage())
        return FinalAnswer(recording.TraceAnswers(final_answer=replies[-1].text), usage.to_json())
        yield


QUAY, BUILDER = "Which quay?", "Who built it?"


@pytest.mark.parametrize("again", [QUAY, "Which of the quays?"], ids=["asked again", "not asked again"])
@pytest.mark.parametrize("ending", ["failed", "limit", "stopped", "killed"])
def test_a_resumed_run_counts_each_request_of_the_servers_log_once(scene: Scene, ending: str, again: str):
    """It begins with a reply that no step has, which a run that failed does not use again."""
    may_end, first = Event(), RunControl(RunLimits(model_calls=1 if ending == "limit" else None))

    def interrupt() -> None:
        if ending == "stopped":
            first.stop.set()
            may_end.wait()
        if ending in ("stopped", "killed"):
            raise StoreError("the database is gone")

    def reply(request: Request) -> Reply:
        is_refused = ending == "failed" and request.place == 1
        return Fails(400, "there is no such quay") if is_refused else Says("Ada", usage=(90, 10))

    lives = [(Asking([QUAY, BUILDER], interrupt), first, ending), (Asking([again, BUILDER]), RunControl(), "answered")]
    with ModelServer(reply) as server:
        for asking, control, expected in lives:
            steps = StoreRecorder(scene.store, scene.trace if control is first else scene.reopened())
            chat = server.chat().recording(StoreModelCallRecorder(scene.store, steps))
            task = Task("Who built the quay?", replace(NOWHERE, chat=chat), TOOLS)
            if expected == "killed":
                with pytest.raises(StoreError):
                    run_reasoner(asking, task, steps, control)
                continue
            assert run_reasoner(asking, task, steps, control).ending == expected
            may_end.set()
            trace, sent = scene.record().trace, len(server.requests)
            assert (trace.cost["calls"], trace.result.calls["model_calls"]) == (sent, sent)
            replies = sent - (ending == "failed")
            assert (trace.cost["input_tokens"], trace.cost["output_tokens"]) == (90 * replies, 10 * replies)
    assert sent == (4 if ending == "failed" else 2 + (again != QUAY))


def test_any_user_may_rate_the_steps_of_a_run_and_former_ratings_are_kept(scene: Scene):
    scene.drive([*LOOK, END])
    first = scene.record().steps[0]
    with scene.store.begin() as session:
        ada = users.register_user(session, "ada")
        for stars in (2, 5):
            runs.rate_run_step(session, first.id, stars, by=ada.id)
    with pytest.raises(Conflict, match="from 1 to 5"), scene.store.begin() as session:
        runs.rate_run_step(session, first.id, 6, by=ada.id)
    record = scene.record()
    assert record.steps[0].rating == 5
    assert [edit.before for edit in record.edits if edit.action == "rating"] == [{"rating": 2}]
    with scene.store.begin() as session:
        hers = recording.start_trace(session, scene.trace.question_id, ada.id)
        step = recording.begin_step(session, hers.id, recording.NewStep("hm"), seen=hers.version, by=hers.author_id)
    with pytest.raises(Conflict, match="the trace of a person"), scene.store.begin() as session:
        runs.rate_run_step(session, step.id, 3, by=ada.id)


def test_a_tree_killed_at_any_moment_resumes_without_repeating_answered_calls(scene: Scene, tmp_path):
    deaths, at_once = 12, 8
    calls = tmp_path / "calls"
    script = Path(__file__).with_name("killed_tree.py")
    words = [sys.executable, script, scene.url, scene.trace.id.hex, calls, str(deaths)]
    subprocess.run(words, check=True, timeout=300)
    alone = MemoryRecorder()
    run_reasoner(RandomTree(DEPTH), Delays(0, 0).task(QUESTION), alone, RunControl(RunLimits(steps=None)))
    record = scene.record()
    assert record.trace.ending == "answered"
    assert alone.result is not None
    assert alone.result.answers is not None
    assert record.trace.final_answer == alone.result.answers.final_answer
    assert sorted((s.node or "", s.observation or "") for s in record.steps) == sorted(
        (s.node or "", s.observation or "") for s in alone.steps
    )
    assert all(step.finished_at is not None for step in record.steps)
    called = Counter(calls.read_text().splitlines())
    worked = sum(step.tool is not None or str(step.skill).startswith("guess") for step in alone.steps)
    assert len(called) == worked
    # Only what was under way at a death is repeated.
    assert sum(called.values()) - worked <= deaths * at_once
