"""Agents with a model of known latency: overhead per step and throughput of parallel agents."""

import itertools
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from showhow.benchmarks.servers import ScriptedCalls, run_model_server
from showhow.db.database import Database
from showhow.db.models import Project, Question, Run, Step, Trace
from showhow.db.run_spec import RunLimits
from showhow.db.runs.runs import RunOutcome, start_run, start_run_trace
from showhow.db.storage.schema import upgrade
from showhow.db.traces.recording import NewStep, StepResult
from showhow.db.traces.trace_record import TraceRecord
from showhow.evaluation.datasets import read_questions
from showhow.evaluation.scoring.gold_demonstrations import make_demonstrations
from showhow.fewshot_library.encoder import BUNDLED_MODEL, SentenceEncoder
from showhow.fewshot_library.selection import CandidatePool, select_demonstrations
from showhow.fewshot_library.sequence_similarity import encode_actions
from showhow.fiction.generator.build import generate_world
from showhow.fiction.universe.options import GenerationOptions
from showhow.llm.client import ChatClient, build_chat_client
from showhow.llm.types import ChatReply, FinishReason, ModelProfile, OutgoingRequest
from showhow.llm.usage import Usage
from showhow.oracles.gold_traces.traces import GoldWorld
from showhow.reasoners.base import Task
from showhow.reasoners.humaniq.agent import HumanIQ
from showhow.reasoners.humaniq.options import AgentOptions
from showhow.runs.model_call_recorder import StoreModelCallRecorder
from showhow.runs.recorders import MemoryRecorder, StoreRecorder
from showhow.runs.runner import RunControl, RunRecorder, run_reasoner
from showhow.tools.registry import available_tools
from showhow.tools.tool import ToolContext
from showhow.worlds.embedded.graph import EmbeddedGraph
from showhow.worlds.open import open_world

LIBRARY_SIZE, DEMONSTRATION_COUNT = 10_000, 3
AGENT_COUNT, SLOW_LATENCY, QUICK_LATENCY = 32, 0.5, 0.02
STORED_STEPS = 10
STORED_OBSERVATION = (
    "The quay was built in 1824 and rebuilt after the flood; its architect is buried in the chapel. " * 4
)
_WRITE_LOCK = Lock()
TIMED_QUESTIONS, QUESTIONS_PER_AGENT = 20, 3
"""Questions of the agent whose steps are timed, and of each parallel agent."""
RUN_CONTROL = RunControl(RunLimits(steps=50))
STREAMING_RUN_CONTROL = RunControl(RunLimits(steps=50), on_text=lambda _text: None)
RecorderFactory = Callable[[str], RunRecorder]
WORLD_OPTIONS = GenerationOptions(people=200, seed=7, depth=4, per_template=2, split="text=50,graph=35,web=15")


@dataclass(frozen=True)
class AgentWorkload:
    """The agents' world, a library of LIBRARY_SIZE demonstrations, and the scripted calls of the model."""

    context: ToolContext
    gold: list[TraceRecord]
    pool: CandidatePool
    calls: ScriptedCalls

    def task(self, question: str) -> Task:
        """A task with selected demonstrations."""
        row = self.context.encode([question])[0]
        picks = select_demonstrations(self.pool, row, AgentOptions(k=DEMONSTRATION_COUNT).selection_config()).picks
        demonstrations = [self.gold[pick.item % len(self.gold)] for pick in picks]
        return Task(question, self.context, available_tools(self.context.world), demonstrations)


def run_benchmark(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:  # noqa: ARG001 - the world is generated
    """Overhead of a step, then throughput of parallel agents."""
    workload = _build_workload(home)
    try:
        yield from _measure_overhead(workload, home)
        yield from _measure_throughput(workload, home)
        yield from _measure_store(workload, home)
    finally:
        if isinstance(workload.context.world.graph, EmbeddedGraph):
            workload.context.world.graph.close()


def _build_workload(home: Path) -> AgentWorkload:
    generate_world(home / "worlds", "town", WORLD_OPTIONS)
    context = ToolContext(open_world(home / "worlds", "town"), SentenceEncoder(BUNDLED_MODEL))
    questions = read_questions(home / "worlds" / "town" / "questions.jsonl")
    gold_world = GoldWorld(home / "worlds" / "town", context)
    gold = make_demonstrations(questions, gold_world, Project(name="town", world="town"), 20)
    generator = np.random.default_rng(1)
    rows = generator.standard_normal((LIBRARY_SIZE, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    sequences = [tuple(step.tool or "" for step in gold[item % len(gold)].steps) for item in range(LIBRARY_SIZE)]
    longest = max(gold, key=lambda record: len(record.steps))
    calls = [(step.tool or "", step.arguments) for step in longest.steps]
    return AgentWorkload(context, gold, CandidatePool(rows, encode_actions(sequences)), calls)


def _measure_overhead(workload: AgentWorkload, home: Path) -> Iterator[dict[str, Any]]:
    with run_model_server(workload.calls, QUICK_LATENCY) as url:
        chat = _connect_model(url)
        for storage, make_recorder in _recorder_factories(home / "overhead.db"):
            for stream in (False, True):
                _time_steps(workload, chat, make_recorder, stream=stream, questions=2)
                timings = _time_steps(workload, chat, make_recorder, stream=stream, questions=TIMED_QUESTIONS)
                yield _overhead_result(timings, f"{storage}, replies {'streamed' if stream else 'not streamed'}")


def _overhead_result(timings: list[tuple[float, float]], setting: str) -> dict[str, Any]:
    overheads = sorted(total - model for total, model in timings)
    client = statistics.median(model - QUICK_LATENCY * 1000 for _, model in timings)
    parts = (
        f"k={DEMONSTRATION_COUNT} of {LIBRARY_SIZE:,}, {setting}",
        f"median of {len(overheads)} steps, without the tool and the model call",
        f"p90 {overheads[-len(overheads) // 10]:.1f} ms",
        f"LangChain, the provider's client and HTTP add {client:.1f} ms to the model's {QUICK_LATENCY * 1000:g} ms",
    )
    return {
        "name": "overhead of an agent's step",
        "size": LIBRARY_SIZE,
        "value": round(statistics.median(overheads), 2),
        "unit": "ms",
        "note": "; ".join(parts),
    }


def _time_steps(
    workload: AgentWorkload, chat: ChatClient, make_recorder: RecorderFactory, *, stream: bool, questions: int
) -> list[tuple[float, float]]:
    """For each step the milliseconds since the previous tool call ended, and those of its model call."""
    timings: list[tuple[float, float]] = []
    for number in range(questions):
        question = f"Who is number {number} of the town?"
        recorder = TimingRecorder(make_recorder(question))
        outcome = run_reasoner(
            _build_agent(chat), workload.task(question), recorder, STREAMING_RUN_CONTROL if stream else RUN_CONTROL
        )
        if outcome.ending != "answered":
            raise RuntimeError(f"the agent ended with: {outcome.failure}")
        timings += recorder.timings
    return timings


class TimingRecorder:
    """A recorder that measures the milliseconds from each step's result to the start of the next step.

    The second value of each pair is the part spent in the model call.
    """

    def __init__(self, recorder: RunRecorder) -> None:
        self.timings: list[tuple[float, float]] = []
        self._recorder = recorder
        self._since = time.perf_counter()
        self.trace_id = recorder.trace_id
        self.unused_replies, self.calls_of_no_step = recorder.unused_replies, recorder.calls_of_no_step

    @property
    def recorded_steps(self) -> list[Step]:
        return self._recorder.recorded_steps

    @property
    def reusable_steps(self) -> Sequence[Step]:
        return self._recorder.reusable_steps

    @property
    def usage(self) -> Usage:
        return self._recorder.usage

    def begin(self, new: NewStep) -> Step:
        step = self._recorder.begin(new)
        model_seconds = (new.usage or {}).get("seconds", 0.0)
        self.timings.append(((time.perf_counter() - self._since) * 1000, model_seconds * 1000))
        return step

    def complete(self, step: Step, result: StepResult) -> Step:
        self._since = time.perf_counter()
        return self._recorder.complete(step, result)

    def finish(self, outcome: RunOutcome) -> None:
        self._recorder.finish(outcome)


def _measure_throughput(workload: AgentWorkload, home: Path) -> Iterator[dict[str, Any]]:
    ideal = QUESTIONS_PER_AGENT * (len(workload.calls) + 1) * SLOW_LATENCY
    replies = AGENT_COUNT * QUESTIONS_PER_AGENT * (len(workload.calls) + 1)
    with run_model_server(workload.calls, SLOW_LATENCY) as url:
        chat = _connect_model(url)
        for storage, make_recorder in _recorder_factories(home / "many.db"):

            def answer_questions(agent: int, make_recorder: RecorderFactory = make_recorder) -> None:
                for number in range(QUESTIONS_PER_AGENT):
                    question = f"Who is number {agent} of house {number}?"
                    outcome = run_reasoner(
                        _build_agent(chat), workload.task(question), make_recorder(question), RUN_CONTROL
                    )
                    if outcome.ending != "answered":
                        raise RuntimeError(f"an agent ended with: {outcome.failure}")

            # The model client is imported on the first question of a process.
            answer_questions(AGENT_COUNT)
            with ThreadPoolExecutor(AGENT_COUNT) as agents:
                started, cpu = time.perf_counter(), time.process_time()
                list(agents.map(answer_questions, range(AGENT_COUNT)))
                seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
            parts = (
                f"{AGENT_COUNT} concurrent agents, {SLOW_LATENCY} s per reply, {storage}",
                f"{replies / seconds:.1f} of {AGENT_COUNT / SLOW_LATENCY:.0f} replies per second with tools",
                f"{cpu / replies * 1000:.1f} ms of CPU per reply",
            )
            yield {
                "name": "share of the ideal throughput",
                "size": AGENT_COUNT,
                "value": round(ideal / seconds, 3),
                "unit": "share",
                "note": "; ".join(parts),
            }


def _measure_store(workload: AgentWorkload, home: Path) -> Iterator[dict[str, Any]]:
    """CPU time of the store for a step with its model call: four commits, beside four of SQLite without Showhow."""
    database = Database(f"sqlite:///{home / 'store.db'}")
    traces = iter(_start_traces(database, AGENT_COUNT + 1))
    prompt = [{"role": role, "content": STORED_OBSERVATION * count} for role, count in (("system", 40), ("user", 1))]

    def record_steps(trace: Trace) -> None:
        steps = StoreRecorder(database, trace)
        calls = StoreModelCallRecorder(database, steps)
        messages = [*prompt]
        for number in range(STORED_STEPS):
            tool, arguments = workload.calls[number % len(workload.calls)]
            usage = Usage(calls=1, input_tokens=1000, output_tokens=100, seconds=SLOW_LATENCY)
            request = OutgoingRequest("step", "scripted:model", messages, {"temperature": 0})
            calls.take_unused_reply(request)
            handle = calls.begin(request, Usage())
            reply = ChatReply(f"Step {number}: {tool}", (), usage, FinishReason.STOP)
            calls.complete(handle, reply)
            step = steps.begin(NewStep("I look it up.", tool, arguments, usage=usage.to_json()))
            steps.complete(step, StepResult(STORED_OBSERVATION, {"hits": [STORED_OBSERVATION]}, None, 0.01))
            turns = (("assistant", reply.text), ("user", STORED_OBSERVATION))
            messages = messages + [{"role": role, "content": text} for role, text in turns]

    record_steps(next(traces))
    milliseconds = _time_threads(record_steps, list(traces))
    plain = _time_threads(lambda number: _commit_rows(home / "plain.db", number), range(AGENT_COUNT))
    yield {
        "name": "CPU time of a step in the store",
        "size": AGENT_COUNT,
        "value": round(milliseconds, 2),
        "unit": "ms",
        "note": f"{AGENT_COUNT} threads, {STORED_STEPS} steps each; four commits of two rows with sqlite3 alone: "
        f"{plain:.2f} ms, ratio {milliseconds / plain:.1f}",
    }


def _time_threads(record: Callable[[Any], None], items: Sequence[Any]) -> float:
    """Milliseconds of CPU time of a step, where each of the threads records the steps of one item."""
    with ThreadPoolExecutor(len(items)) as threads:
        cpu = time.process_time()
        list(threads.map(record, items))
        return (time.process_time() - cpu) / len(items) / STORED_STEPS * 1000


def _commit_rows(file: Path, number: int) -> None:
    with closing(sqlite3.connect(file, isolation_level=None, timeout=60)) as connection:
        with _WRITE_LOCK:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE IF NOT EXISTS row (number INTEGER, text TEXT)")
        connection.execute("PRAGMA synchronous = FULL")
        for _ in range(4 * STORED_STEPS):
            with _WRITE_LOCK:
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany("INSERT INTO row VALUES (?, ?)", [(number, STORED_OBSERVATION)] * 2)
                connection.execute("COMMIT")


def _start_traces(database: Database, count: int) -> list[Trace]:
    upgrade(database)
    with database.begin() as session:
        project = Project(name="store", world="town")
        session.add(project)
        session.flush()
        run = start_run(session, Run(name="store", reasoner="humaniq", world="town"))
        questions = [Question(project_id=project.id, position=place + 1, text=f"{place}?") for place in range(count)]
        session.add_all(questions)
        session.flush()
        return [start_run_trace(session, run, question.id, "") for question in questions]


def _build_agent(chat: ChatClient) -> HumanIQ:
    return HumanIQ(AgentOptions(response="none"), chat=chat)


def _connect_model(url: str) -> ChatClient:
    return build_chat_client(ModelProfile("scripted", url))


def _recorder_factories(file: Path) -> list[tuple[str, RecorderFactory]]:
    """Recorder factories: in memory, and in a new database with one question per run."""
    database = Database(f"sqlite:///{file}")
    upgrade(database)
    with database.begin() as session:
        project = Project(name="bench", world="town")
        session.add(project)
        session.flush()
        run = start_run(session, Run(name="bench", reasoner="humaniq", world="town"))
    positions = itertools.count(1)

    def in_store(text: str) -> RunRecorder:
        with database.begin() as session:
            question = Question(project_id=project.id, position=next(positions), text=text)
            session.add(question)
            session.flush()
            trace = start_run_trace(session, run, question.id, "")
        return StoreRecorder(database, trace)

    return [("recorded in memory", lambda _: MemoryRecorder()), ("recorded in the store", in_store)]
