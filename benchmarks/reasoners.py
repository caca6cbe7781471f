"""Reasoners with gold replies: F1, calls as expected and as counted, and time with one call at a time and with many.

The world has the generator's own options, and the questions are as many of each of its kinds: chains, in which a call
waits for the one before, and comparisons, whose sides do not. Times are sums over all kinds. Beside them are the calls
of the concurrent runs and the rounds in which they waited for some of them: no run can be faster by more than that.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Event, Lock, Semaphore, Thread
from typing import Any

from showhow.db.models import Project, Question
from showhow.db.run_spec import RunLimits
from showhow.db.runs.runs import RunOutcome
from showhow.evaluation.datasets import read_questions
from showhow.evaluation.metrics import mean
from showhow.evaluation.scoring.scoring import QuestionScore, sample_questions, score_outcome
from showhow.fewshot_library.encoder import BUNDLED_MODEL, SentenceEncoder
from showhow.fiction.generator.build import generate_world
from showhow.fiction.questions.question_file import QUESTIONS_FILE
from showhow.fiction.universe.options import GenerationOptions
from showhow.oracles.gold_traces.traces import GoldWorld
from showhow.oracles.reasoning import GoldReasoning
from showhow.oracles.skills import OracleResponder
from showhow.reasoners.base import Task
from showhow.reasoners.registry import REASONERS, make_reasoner
from showhow.reasoners.skills.skill import Responder, SkillAttempt, SkillCall, SkillReply
from showhow.runs.recorders import MemoryRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.tools.registry import available_tools
from showhow.tools.tool import ToolContext
from showhow.worlds.open import open_world

WORLD_OPTIONS = GenerationOptions(people=300, seed=31, per_template=2)
SPREAD_OPTIONS = replace(WORLD_OPTIONS, split="text=45,graph=40,web=15")
"""A world of which no source states all facts."""
SPREAD_METHODS = ("atomr", "pdrr", "geek")
"""The methods that are measured in both worlds."""
SCORED_QUESTIONS, TIMED_QUESTIONS = 4, 1
"""Questions of each kind that are scored without waiting, and that are timed with a model of known latency."""
STOPPED_WIDTHS = (1, 50, 500)
LATENCY = 0.5
CONCURRENCY = 16
EXPLORING = {"geek": {"explore": 4, "rounds": 3}}
"""Options of the methods whose concurrency lies in lanes."""


@dataclass(slots=True)
class SlowResponder:
    """Replies like another responder after LATENCY seconds, as a model does, and counts its calls."""

    inner: OracleResponder
    calls: int = 0
    rounds: int = 0
    """How often a call began while no other was under way."""
    under_way: int = 0
    lock: Lock = field(default_factory=Lock)

    @property
    def name(self) -> str:
        """The name of the other responder."""
        return self.inner.name

    def reply(self, call: SkillCall[Any, Any], rejections: Sequence[SkillAttempt]) -> SkillReply:
        """Wait, then reply."""
        with self.lock:
            self.calls += 1
            self.rounds += not self.under_way
            self.under_way += 1
        time.sleep(LATENCY)
        with self.lock:
            self.under_way -= 1
        return self.inner.reply(call, rejections)


@dataclass(frozen=True, slots=True)
class HangingResponder:
    """Never replies until it is released; tells how many calls it has."""

    begun: Semaphore = field(default_factory=lambda: Semaphore(0))
    released: Event = field(default_factory=Event)
    name: str = "hanging"

    def reply(self, _call: SkillCall[Any, Any], _rejections: Sequence[SkillAttempt]) -> SkillReply:
        """Hang."""
        self.begun.release()
        self.released.wait()
        return SkillReply("")


@dataclass(frozen=True, slots=True)
class TimedRun:
    """The seconds of a question, the calls that were made and the rounds in which the run waited for them."""

    seconds: float
    calls: int
    rounds: int


@dataclass(frozen=True, slots=True)
class GoldGround:
    """A world with its universe and questions."""

    gold: GoldWorld
    questions: Sequence[Question]

    def score_question(self, method: str, question: Question) -> QuestionScore:
        """The score of a question, without waiting."""
        outcome = self._run(method, question, self._oracle(question), CONCURRENCY, {})
        return score_outcome(question, outcome)

    def time_question(self, method: str, question: Question, concurrency: int) -> TimedRun:
        """The time of a question with a model of LATENCY seconds."""
        responder = SlowResponder(self._oracle(question))
        started = time.perf_counter()
        self._run(method, question, responder, concurrency, EXPLORING.get(method, {}))
        return TimedRun(time.perf_counter() - started, responder.calls, responder.rounds)

    def _oracle(self, question: Question) -> OracleResponder:
        return OracleResponder(GoldReasoning(self.gold, question.text, question.details))

    def stop(self, width: int) -> float:
        """The seconds that a run with so many calls under way takes to end once it is stopped."""
        hanging, control = HangingResponder(), RunControl(RunLimits(steps=None, seconds=None), concurrency=width)
        context, question = self.gold.context, self.questions[0].text
        task = Task(question, context, available_tools(context.world), responder=hanging)
        reasoner = make_reasoner("cot-sc", {"samples": width})
        run = Thread(target=run_reasoner, args=(reasoner, task, MemoryRecorder(), control))
        run.start()
        for _ in range(width):
            hanging.begun.acquire()
        started = time.perf_counter()
        control.stop.set()
        run.join()
        seconds = time.perf_counter() - started
        hanging.released.set()
        return seconds

    def _run(
        self, method: str, question: Question, responder: Responder, concurrency: int, options: dict[str, Any]
    ) -> RunOutcome:
        context = self.gold.context
        task = Task(question.text, context, available_tools(context.world), responder=responder)
        control = RunControl(RunLimits(steps=None, seconds=None), concurrency=concurrency)
        return run_reasoner(make_reasoner(method, options), task, MemoryRecorder(), control)

    def sample(self, questions_of_each_kind: int) -> list[Question]:
        """As many questions of each kind, or all that there are."""
        kinds = Counter(question.kind for question in self.questions)
        size = sum(min(count, questions_of_each_kind) for count in kinds.values())
        return sample_questions(self.questions, size, seed=0)


def run_benchmark(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:  # noqa: ARG001 - the world is generated
    """Results per method: F1 with its calls; seconds a question with a model of LATENCY seconds, one or all at once."""
    ground = _generate_ground(home, "everywhere", WORLD_OPTIONS)
    for method in [entry.name for entry in REASONERS.values() if entry.skills]:
        yield _measure_calls(ground, method, method)
        yield from _measure_time(ground, method, method)
    yield from _measure_stops(ground)
    spread = _generate_ground(home, "spread", SPREAD_OPTIONS)
    for method in SPREAD_METHODS:
        yield _measure_calls(spread, method, f"{method}, facts spread")
        yield from _measure_time(spread, method, f"{method}, facts spread")


def _generate_ground(home: Path, name: str, options: GenerationOptions) -> GoldGround:
    generate_world(home, name, options)
    context = ToolContext(open_world(home, name), SentenceEncoder(BUNDLED_MODEL))
    project = Project(name=name, world=name)
    questions = [
        Question(
            project_id=project.id,
            position=position,
            text=row.text,
            kind=row.kind,
            gold_answers=row.gold_answers,
            details=row.details,
        )
        for position, row in enumerate(read_questions(home / name / QUESTIONS_FILE, "jsonl"), 1)
    ]
    return GoldGround(GoldWorld(home / name, context), questions)


def _measure_calls(ground: GoldGround, method: str, name: str) -> dict[str, Any]:
    scores = [ground.score_question(method, question) for question in ground.sample(SCORED_QUESTIONS)]
    answered = [0.0 if score.scores is None else score.scores["f1"] for score in scores]
    # A run that failed or met a limit has no plan that was carried out, so its calls are not expected.
    planned = [score for score in scores if score.model_calls_expected is not None]
    counted = sum(score.model_calls for score in planned)
    expected = sum(score.model_calls_expected or 0 for score in planned)
    others = sum(score.model_calls for score in scores) - counted
    retrievals = sum(score.retrievals for score in scores)
    return {
        "name": f"{name}, gold replies",
        "size": len(scores),
        "value": round(mean(answered), 4),
        "unit": "F1",
        "note": f"{len(planned)} planned: {counted:,} model calls, {expected:,} expected; {others:,} calls in the "
        f"others; {retrievals:,} retrievals",
    }


def _measure_stops(ground: GoldGround) -> Iterator[dict[str, Any]]:
    for width in STOPPED_WIDTHS:
        name = f"a run is stopped with {width} calls under way"
        yield {"name": name, "size": width, "value": round(ground.stop(width), 3), "unit": "s"}


def _measure_time(ground: GoldGround, method: str, name: str) -> Iterator[dict[str, Any]]:
    questions = ground.sample(TIMED_QUESTIONS)
    alone = [ground.time_question(method, question, 1) for question in questions]
    together = [ground.time_question(method, question, CONCURRENCY) for question in questions]
    started = time.perf_counter()
    with ThreadPoolExecutor(len(questions)) as threads:
        list(threads.map(partial(ground.time_question, method, concurrency=CONCURRENCY), questions))
    at_once = time.perf_counter() - started
    sequential, concurrent = (sum(run.seconds for run in runs) for runs in (alone, together))
    calls, rounds = (sum(counts) for counts in zip(*((run.calls, run.rounds) for run in together), strict=True))
    for kind, seconds, note in (
        ("one question", concurrent, f"; {calls:,} calls in {rounds:,} rounds: at most {calls / rounds:.2f} times"),
        ("all questions at once", at_once, ""),
    ):
        yield {
            "name": f"{name}, a model of {LATENCY} s, {kind}",
            "size": len(questions),
            "value": round(seconds / len(questions), 2),
            "unit": "s",
            "peer": "one call at a time",
            "peer_value": round(sequential / len(questions), 2),
            "ratio": round(seconds / sequential, 3),
            "note": f"{sequential / seconds:.2f} times as fast{note}"
            + (f", with {EXPLORING[method]}" if method in EXPLORING else ""),
        }
