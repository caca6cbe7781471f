"""Verification: a reasoner answers a project's questions with gold answers, in parallel and within a cost limit.

Each question has one trace in the verification's run. Steps are stored before their tools run, and replies of the model
before they are used: a verification that was killed continues without losing a question, answering one twice or paying
twice for a reply.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any
from uuid import UUID

from filelock import FileLock, Timeout

from db import runs, verifications
from db.database import Conflict, RowNotFound
from db.models import Library, Project, Question, Run, Trace
from db.projects import find_project
from db.verifications import VERIFICATION_NAME, VerificationOutcome
from evaluation.metrics import score_against_gold
from llm.client import MAX_ATTEMPTS
from llm.errors import ChatAuthenticationError, ChatError, ChatModelNotFound, ChatRateLimited, ChatUnreachable
from llm.reply_cache import ReplyCache
from llm.types import ChatModel, ChatReply, ChatRequest
from runs.ask import record_model_calls
from runs.budget import RunLimits
from runs.preparation import RunConfig, build_run, check_pins, find_pin_conflict, prepare_task
from runs.recorders import StoreRecorder
from runs.runner import RunControl, RunStopped
from runs.runner import run_reasoner as drive
from runs.services import Services

RESUMABLE_ENDINGS = (None, "stopped")
"""Endings of unfinished traces: those that a process left behind, and those that were stopped."""
FATAL_MODEL_ERRORS = (ChatAuthenticationError, ChatModelNotFound)
"""Errors that every other question would meet too."""
RETRYABLE_ENDINGS = ("failed", "limit")
"""Endings that may change at the next try."""


@dataclass(frozen=True, slots=True)
class VerificationPlan:
    """The questions to verify, how they are answered, and within which limits."""

    project: str
    run_config: RunConfig
    question_limit: int | None = None
    """The number of questions, spread evenly over all; None for all."""
    limits: RunLimits = field(default_factory=RunLimits)
    """Of each question."""

    def to_json(self) -> dict[str, Any]:
        """The plan as the run's configuration stores it."""
        return {**self.run_config.to_json(), "most": self.question_limit, "limits": self.limits.to_json()}


@dataclass(frozen=True, slots=True)
class ExecutionOptions:
    """How a verification is executed; it may differ each time that it is continued."""

    concurrency: int = 2
    cost_limit: float | None = None
    """US dollars; once the verification has cost as much, no more requests are sent to the model."""
    retry: bool = False
    """Try questions again that failed or reached a limit."""


def start_verification(services: Services, plan: VerificationPlan) -> Run:
    """Return the unfinished verification of that plan with the same model and world, or start a new one."""
    plan_json = replace(plan, run_config=plan.run_config.pin(services)).to_json()
    with services.database.begin() as session:
        project = find_project(session, plan.project)
        if project is None:
            raise RowNotFound(f"there is no project {plan.project!r}; `showhow questions import` makes one")
        for run in verifications.list_verifications(session, project.id):
            is_same = run.finished_at is None and plan_json.items() <= run.configuration.items()
            if is_same and find_pin_conflict(services, run) is None:
                return run
        questions = _sample_evenly(verifications.list_gold_questions(session, project.id), plan.question_limit)
        if not questions:
            raise Conflict(f"no question of {plan.project!r} has a gold answer, so that nothing can be verified")
    configuration = {
        "project_id": str(project.id),
        "questions": [str(question.id) for question in questions],
        **plan_json,
    }
    run = _build_verification(services, plan.run_config, project, configuration)
    with services.database.begin() as session:
        return runs.start_run(session, run)


def _build_verification(services: Services, config: RunConfig, project: Project, configuration: dict[str, Any]) -> Run:
    return build_run(
        services,
        config,
        name=VERIFICATION_NAME,
        world=project.world,
        tools=project.tools,
        configuration=configuration,
    )


def start_repair_verification(services: Services, run: Run, freeze: Callable[[], Library]) -> Run:
    """Start a verification over the failures of `run`, with the library version that `freeze` makes of their repairs.

    An unfinished one over these failures is returned instead.
    """
    with services.database.read() as session:
        failed = [
            str(outcome.question_id) for outcome in verifications.list_outcomes(session, run) if outcome.is_failed
        ]
        project_id = UUID(run.configuration["project_id"])
        for later in verifications.list_verifications(session, project_id):
            is_same = later.finished_at is None and later.configuration.get("again_of") == str(run.id)
            if is_same and find_pin_conflict(services, later) is None:
                return later
    version = freeze()
    configuration = {
        **run.configuration,
        "questions": failed,
        "again_of": str(run.id),
        "library": f"{version.name}:{version.number}",
    }
    with services.database.read() as session:
        project = session.get_one(Project, project_id)
    later = _build_verification(services, RunConfig.from_json(configuration), project, configuration)
    with services.database.begin() as session:
        return runs.start_run(session, later)


def _sample_evenly(questions: list[Question], most: int | None) -> list[Question]:
    """At most so many questions, evenly over all, so that each kind has its share."""
    if most is None or len(questions) <= most:
        return questions
    return [questions[place * len(questions) // most] for place in range(most)]


def run_verification(
    services: Services, run_id: UUID, pace: ExecutionOptions, stop: Event, tell: Callable[[int, int], None]
) -> list[VerificationOutcome]:
    """Answer the remaining questions and return the outcomes of all; `tell` gets the finished and the total count.

    Conflict when another process works on it, or when the model or the world changed since it was started. When it is
    stopped or reaches its cost limit, the rest remains for the next time.
    """
    with _hold_run_lock(services, run_id):
        with services.database.read() as session:
            run = verifications.find_verification(session, run_id)
        check_pins(services, run)
        every = len(verifications.verified_question_ids(run))
        with ReplyCache(_reply_cache_path(services, run)) as reply_cache, ThreadPoolExecutor(pace.concurrency) as pool:
            work = _VerificationWorker(services, run, pace, stop, reply_cache)
            left = [outcome.question_id for outcome in work.outcomes() if outcome.ending in work.open_endings]
            begun = [pool.submit(work.answer_question, question) for question in left]
            for done in _iterate_completed(begun, stop):
                done.result()
                tell(sum(outcome.is_finished for outcome in work.outcomes()), every)
        work.score_missing_answers()
        if work.model_error:
            raise Conflict(f"{work.model_error} The same command again continues the verification.")
        outcomes = work.outcomes()
        if all(outcome.is_finished for outcome in outcomes):
            with services.database.begin() as session:
                runs.finish_run(session, run_id)
            _reply_cache_path(services, run).unlink(missing_ok=True)
        return outcomes


def _iterate_completed(begun: list[Future[None]], stop: Event) -> Iterator[Future[None]]:
    try:
        yield from as_completed(begun)
    finally:
        # Whatever ends the waiting, those at work are stopped and those that wait are not begun.
        if any(not future.done() for future in begun):
            stop.set()
            for future in begun:
                future.cancel()


@contextmanager
def _hold_run_lock(services: Services, run_id: UUID) -> Iterator[None]:
    folder = services.settings.home / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    # The system lets go of the lock when the process ends, however it ends.
    lock = FileLock(folder / f"{run_id}.lock")
    try:
        with lock.acquire(timeout=0):
            yield
    except Timeout:
        raise Conflict(
            "this verification is being worked on by another process; wait for it, or stop that one"
        ) from None


def _reply_cache_path(services: Services, run: Run) -> Any:
    return services.settings.home / "runs" / f"{run.id}.replies"


class _GuardedModel:
    """A model that sends no more requests once the cost limit is reached or the model is not available."""

    def __init__(self, model: ChatModel, work: "_VerificationWorker") -> None:
        self._model = model
        self._work = work

    def reply(self, request: ChatRequest, seconds: float) -> ChatReply:
        """Return the model's reply; RunStopped where the question is to be continued later."""
        if self._work.model_error or self._work.remaining_limits() is None:
            raise RunStopped
        try:
            reply = self._model.reply(request, seconds)
        except ChatError as failed:
            if self._work.register_model_failure(failed):
                raise RunStopped from failed
            raise
        self._work.unreachable_count = 0
        return reply


class _VerificationWorker:
    """Executes one verification."""

    def __init__(
        self, services: Services, run: Run, pace: ExecutionOptions, stop: Event, reply_cache: ReplyCache
    ) -> None:
        self._services = services
        self._run = run
        self._pace = pace
        self._stop = stop
        self._kept = reply_cache
        self._model = services.chat
        self.model_error: str | None = None
        """Why the model is not available at all."""
        self.unreachable_count = 0
        """Successive requests that did not reach the model."""
        self._way = RunConfig.from_json(run.configuration)
        self._limits = RunLimits(**{"steps": None, "seconds": None, **run.configuration["limits"]})
        self.open_endings = (*RESUMABLE_ENDINGS, *(RETRYABLE_ENDINGS if pace.retry else ()))

    def outcomes(self) -> list[VerificationOutcome]:
        """The outcome of every question."""
        with self._services.database.read() as session:
            return verifications.list_outcomes(session, self._run)

    def score_missing_answers(self) -> None:
        """Score the answers that a process stored without a score before it ended."""
        for outcome in self.outcomes():
            if outcome.answer is not None and outcome.score is None and outcome.trace_id is not None:
                with self._services.database.begin() as session:
                    verifications.save_score(
                        session, outcome.trace_id, score_against_gold(outcome.answer, outcome.gold)
                    )

    def answer_question(self, question_id: UUID) -> None:
        """Let the reasoner answer the question, or continue, and store the score of its answer."""
        limits = self.remaining_limits()
        if self._stop.is_set() or limits is None:
            return
        trace, question, project = self._open_trace(question_id)
        task = prepare_task(self._services, question, project, self._way).task
        if self._model is not None and task.context.chat is not None:
            # Stored replies cost nothing, so that the guard stands behind the cache.
            watched = self._model.with_model_wrapper(lambda model: _GuardedModel(model, self))
            task = replace(task, context=replace(task.context, chat=self._kept.caching_client(watched, str(trace.id))))
        recorder = StoreRecorder(self._services.database, trace)
        ended = drive(
            self._way.make_reasoner(),
            record_model_calls(self._services, task, recorder),
            recorder,
            RunControl(limits=limits, stop=self._stop),
        )
        if ended.answers is not None:
            with self._services.database.begin() as session:
                verifications.save_score(
                    session, trace.id, score_against_gold(ended.answers.final_answer, question.gold_answers)
                )

    def remaining_limits(self) -> RunLimits | None:
        """The limits of the next question within the remaining cost limit; None when nothing remains."""
        if self._pace.cost_limit is None:
            return self._limits
        left = self._pace.cost_limit - self._total_cost()
        if left <= 0:
            return None
        mine = self._limits.money
        return replace(self._limits, money=left if mine is None else min(left, mine))

    def register_model_failure(self, failed: ChatError) -> bool:
        """Whether the failure concerns every question, so that all are stopped."""
        self.unreachable_count += isinstance(failed, ChatUnreachable)
        if (
            isinstance(failed, FATAL_MODEL_ERRORS)
            or self.unreachable_count >= MAX_ATTEMPTS
            or (isinstance(failed, ChatRateLimited) and not failed.retryable)
        ):
            self.model_error = str(failed)
            self._stop.set()
        return self.model_error is not None

    def _total_cost(self) -> float:
        """The cost so far: by the traces, or by the stored replies, some of which belong to no trace yet."""
        costs = [outcome.cost.get("cost") for outcome in self.outcomes() if outcome.cost]
        used, price = self._kept.total_usage, self._model.price if self._model else None
        replies = price.cost_of(used.input_tokens, used.output_tokens) if price else None
        known_costs = [float(cost) for cost in costs if cost is not None]
        if len(known_costs) < len(costs) or (replies is None and used.calls):
            raise Conflict("no price of the model is known, so that no cost can be bounded; set SHOWHOW_MODEL_PRICE")
        return max(sum(known_costs), replies or 0.0)

    def _open_trace(self, question_id: UUID) -> tuple[Trace, Question, Any]:
        with self._services.database.begin() as session:
            trace = verifications.find_run_trace(session, self._run, question_id)
            if trace is None:
                trace = runs.start_run_trace(session, self._run, question_id, {})
            else:
                trace = runs.reopen_run_trace(session, trace.id)
            return trace, *verifications.load_question(session, question_id)
