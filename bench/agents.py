"""Agents on a model of known latency: what a step takes beside model and tool, and how many can work at once."""

import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.datasets import read_questions
from bench.gold.demonstrations import demonstrations
from bench.gold.traces import GoldWorld
from bench.model_server import Calls, model_server
from db.database import Database
from db.models import Project, Question, Run, Step
from db.record import TraceRecord
from db.recording import NewStep, Observed
from db.runs import Ended, start_run, start_run_trace
from db.schema import upgrade
from fewshot_library.encoder import BUNDLED, SentenceEncoder
from fewshot_library.kernel import actions
from fewshot_library.selection import Pool, select
from reasoners.humaniq import HumanIQ
from reasoners.keepers import InMemory, InStore
from reasoners.limits import Limits
from reasoners.reasoner import Task
from reasoners.run import Keeper, Reins, run
from reasoners.setup import Setup
from tools.chat import Chat, ModelSetup, build_chat
from tools.registry import offered
from tools.tool import Context
from tools.usage import Usage
from worlds.generator.build import generate_world
from worlds.graph import EmbeddedGraph
from worlds.open import open_world
from worlds.universe.options import Options

LIBRARY, K = 10_000, 3
AGENTS, SLOW, QUICK = 32, 0.5, 0.02
TURNS, ROUNDS = 20, 3
"""Questions of the one agent whose steps are timed, and of each of the many."""
REINS = Reins(Limits(steps=50))
NewKeeper = Callable[[str], Keeper]
OPTIONS = Options(people=200, seed=7, depth=4, per_template=2, split="text=50,graph=35,web=15")


@dataclass(frozen=True)
class Ground:
    """What the agents work on: a world, a library of 10,000, and what the model will do."""

    context: Context
    gold: list[TraceRecord]
    pool: Pool
    calls: Calls

    def task(self, question: str) -> Task:
        """The question with its demonstrations, chosen as for any."""
        row = self.context.encode([question])[0]
        picks = select(self.pool, row, Setup(k=K).wish()).picks
        shown = [self.gold[pick.item % len(self.gold)] for pick in picks]
        return Task(question, self.context, offered(self.context.world), shown)


def lines(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:  # noqa: ARG001 - the world is generated
    """The overhead of a step, then the throughput of many agents."""
    ground = _ground(home)
    try:
        yield from _overhead(ground, home)
        yield from _throughput(ground, home)
    finally:
        if isinstance(ground.context.world.graph, EmbeddedGraph):
            ground.context.world.graph.close()


def _ground(home: Path) -> Ground:
    generate_world(home / "worlds", "town", OPTIONS)
    context = Context(open_world(home / "worlds", "town"), SentenceEncoder(BUNDLED))
    asked = read_questions(home / "worlds" / "town" / "questions.jsonl")
    known = GoldWorld(home / "worlds" / "town", context)
    gold = list(demonstrations(asked, known, Project(name="town", world="town"), 20))
    chance = np.random.default_rng(1)
    rows = chance.standard_normal((LIBRARY, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    sequences = [tuple(step.tool or "" for step in gold[item % len(gold)].steps) for item in range(LIBRARY)]
    longest = max(gold, key=lambda record: len(record.steps))
    calls = [(step.tool or "", step.arguments) for step in longest.steps]
    return Ground(context, gold, Pool(rows, actions(sequences)), calls)


def _overhead(ground: Ground, home: Path) -> Iterator[dict[str, Any]]:
    with model_server(ground.calls, QUICK) as url:
        chat = _chat(url)
        for kept, keeper in _keepers(home / "overhead.db"):
            for stream in (False, True):
                _timed(ground, chat, keeper, stream=stream, questions=2)
                took = _timed(ground, chat, keeper, stream=stream, questions=TURNS)
                way = "its words heard as they come" if stream else "asked whole"
                ours = [whole - model for whole, model in took]
                client = statistics.median(model - QUICK * 1000 for _, model in took)
                slowest = sorted(ours)[-len(ours) // 10]
                yield {
                    "name": "overhead of an agent's step",
                    "size": LIBRARY,
                    "value": round(statistics.median(ours), 2),
                    "unit": "ms",
                    "note": f"k={K} of {LIBRARY:,}, {kept}, the model {way}; median of {len(ours)} steps, beside the "
                    f"tool and the model's call; a tenth took {slowest:.1f} ms or more; beside the model's own "
                    f"{QUICK * 1000:g} ms the call takes {client:.1f} ms of LangChain, the provider's client and HTTP",
                }


def _timed(ground: Ground, chat: Chat, keeper: NewKeeper, *, stream: bool, questions: int) -> list[tuple[float, float]]:
    """For each step the milliseconds between the end of the tool before and its own, and those of the model's call."""
    took: list[tuple[float, float]] = []
    for number in range(questions):
        question = f"Who is number {number} of the town?"
        watch = Stopwatch(keeper(question))
        ended = run(_agent(chat, stream=stream), ground.task(question), watch, REINS)
        if ended.ending != "answered":
            raise RuntimeError(f"the agent ended with: {ended.failure}")
        took += watch.took
    return took


class Stopwatch:
    """A keeper that notes the milliseconds from each step's result to the moment at which the next one has been begun,
    and those of them in which the model was asked.
    """

    def __init__(self, keeper: Keeper) -> None:
        self.took: list[tuple[float, float]] = []
        self._keeper = keeper
        self._since = time.perf_counter()

    @property
    def taken(self) -> list[Step]:
        return self._keeper.taken

    @property
    def used(self) -> Usage:
        return self._keeper.used

    def begin(self, new: NewStep) -> Step:
        step = self._keeper.begin(new)
        asked = (new.usage or {}).get("seconds", 0.0)
        self.took.append(((time.perf_counter() - self._since) * 1000, asked * 1000))
        return step

    def complete(self, step: Step, observed: Observed) -> Step:
        self._since = time.perf_counter()
        return self._keeper.complete(step, observed)

    def conclude(self, ended: Ended) -> None:
        self._keeper.conclude(ended)


def _throughput(ground: Ground, home: Path) -> Iterator[dict[str, Any]]:
    ideal = ROUNDS * (len(ground.calls) + 1) * SLOW
    replies = AGENTS * ROUNDS * (len(ground.calls) + 1)
    with model_server(ground.calls, SLOW) as url:
        chat = _chat(url)
        for kept, keeper in _keepers(home / "many.db"):

            def work(agent: int, keeper: NewKeeper = keeper) -> None:
                for number in range(ROUNDS):
                    question = f"Who is number {agent} of house {number}?"
                    ended = run(_agent(chat, stream=False), ground.task(question), keeper(question), REINS)
                    if ended.ending != "answered":
                        raise RuntimeError(f"an agent ended with: {ended.failure}")

            # The model's package loads at the first question, once in a process.
            work(AGENTS)
            with ThreadPoolExecutor(AGENTS) as agents:
                began, cpu = time.perf_counter(), time.process_time()
                list(agents.map(work, range(AGENTS)))
                seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
            yield {
                "name": "share of the ideal throughput",
                "size": AGENTS,
                "value": round(ideal / seconds, 3),
                "unit": "share",
                "note": f"{AGENTS} agents at once, {SLOW} s a reply, {kept}; {replies / seconds:.1f} of "
                f"{AGENTS / SLOW:.0f} replies a second with tools; {cpu / replies * 1000:.1f} ms of a core a reply",
            }


def _agent(chat: Chat, *, stream: bool) -> HumanIQ:
    return HumanIQ(Setup(response="none"), stream=stream, chat=chat)


def _chat(url: str) -> Chat:
    return build_chat(ModelSetup("scripted", url))


def _keepers(file: Path) -> list[tuple[str, NewKeeper]]:
    """Where a record can be kept: in memory, and in a new database, each with a question of its own."""
    database = Database(f"sqlite:///{file}")
    upgrade(database)
    with database.begin() as session:
        project = Project(name="bench", world="town")
        session.add(project)
        session.flush()
        made = start_run(session, Run(name="bench", reasoner="humaniq", world="town"))
    places = itertools.count(1)

    def in_store(text: str) -> Keeper:
        with database.begin() as session:
            question = Question(project_id=project.id, position=next(places), text=text)
            session.add(question)
            session.flush()
            trace = start_run_trace(session, made, question.id, {})
        return InStore(database, trace)

    return [("kept in memory", lambda _: InMemory()), ("kept in the store", in_store)]
