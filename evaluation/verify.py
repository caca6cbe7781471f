"""Verification: a reasoner answers a project's questions with gold answers, in parallel and within a cost limit.

Each question has one trace in the verification's run. Steps are stored before their tools run, and model replies before
they are used, so a verification that was killed continues without losing a question, answering one twice or paying
twice for a reply.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any
from uuid import UUID

from filelock import FileLock, Timeout

from db import runs, verifications
from db.database import Conflict, RowNotFound
from db.models import UNFINISHED_ENDINGS, Library, Project, Question, Run, Trace
from db.projects import find_project
from db.runs import RunOutcome
from db.trace_configuration import TraceConfiguration
from db.verifications import VERIFICATION_NAME, VerificationOutcome
from evaluation.metrics import score_against_gold
from evaluation.shared_model import SharedModel, TotalLimits, answer_in_parallel, ignore_note
from llm.client import ChatClient
from llm.reply_cache import ReplyCache
from llm.usage import Usage
from runs.ask import record_model_calls
from runs.budget import RunLimits
from runs.preparation import RunConfig, build_run, check_pins, find_pin_conflict, prepare_task
from runs.process import current_worker_id
from runs.recorders import StoreRecorder
from runs.runner import RunControl, run_reasoner
from runs.services import Services

RESUMABLE_ENDINGS = (None, *UNFINISHED_ENDINGS)
"""Endings of unfinished traces: None if the process was killed."""
RETRYABLE_ENDINGS = ("failed", "limit")
"""Endings that a retry may change."""


@dataclass(frozen=True, slots=True)
class VerificationPlan:
    """The questions to verify, how they are answered, and within which limits."""

    project: str
    run_config: RunConfig
    question_limit: int | None = None
    """The number of questions, spread evenly over all; None for all."""
    limits: RunLimits = field(default_factory=RunLimits)
    """The limits of each question."""

    def to_json(self) -> dict[str, Any]:
        """The plan as the run's configuration stores it."""
        return {**self.run_config.to_json(), "most": self.question_limit, "limits": self.limits.to_json()}


@dataclass(frozen=True, slots=True)
class ExecutionOptions:
    """How a verification is executed; it may differ each time that it is continued."""

    concurrency: int = 2
    limits: TotalLimits = field(default_factory=TotalLimits)
    """The limits of all questions together; no requests are sent to the model once one is reached."""
    retry: bool = False
    """Retry questions that failed or reached a limit."""
    on_note: Callable[[str], None] = ignore_note
    """Called with sentences about what happens meanwhile, from any thread."""


def start_verification(services: Services, plan: VerificationPlan) -> Run:
    """Return the unfinished verification with this plan, model and world, or start a new one."""
    plan_json = replace(plan, run_config=plan.run_config.pin(services)).to_json()
    profile = plan.run_config.model_profile(services)
    with services.database.begin() as session:
        project = find_project(session, plan.project)
        if project is None:
            raise RowNotFound(f"there is no project {plan.project!r}; `showhow questions import` makes one")
        for run in verifications.list_verifications(session, project.id):
            is_same = run.finished_at is None and plan_json.items() <= run.configuration.items()
            recorded = TraceConfiguration.from_json(run.configuration).profile
            has_same_profile = profile is None or recorded is None or recorded["name"] == profile.name
            if is_same and has_same_profile and find_pin_conflict(services, run) is None:
                return run
        questions = _sample_evenly(verifications.list_gold_questions(session, project.id), plan.question_limit)
        if not questions:
            raise Conflict(f"no question of {plan.project!r} has a gold answer, so nothing can be verified")
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
    """Start a verification over the failures of `run`, with the library version that `freeze` returns.

    An unfinished verification over these failures is returned instead.
    """
    with services.database.read() as session:
        failed = [
            str(outcome.question_id)
            for outcome in verifications.list_outcomes(session, run)
            if outcome.is_finished and not outcome.is_correct
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
    later = _build_verification(
        services, RunConfig.from_stored(TraceConfiguration.from_json(configuration)), project, configuration
    )
    with services.database.begin() as session:
        return runs.start_run(session, later)


def _sample_evenly(questions: list[Question], limit: int | None) -> list[Question]:
    """At most `limit` questions at even distances, so that each kind has its share."""
    if limit is None or len(questions) <= limit:
        return questions
    return [questions[index * len(questions) // limit] for index in range(limit)]


def run_verification(
    services: Services, run_id: UUID, options: ExecutionOptions, stop: Event, on_progress: Callable[[int, int], None]
) -> list[VerificationOutcome]:
    """Answer the remaining questions and return all outcomes; `on_progress` gets the finished and the total count.

    Conflict if another process works on it, or if the model or the world changed since it was started. If it is stopped
    or reaches a limit, or the model's server fails, it can be continued later: such questions have not failed.
    """
    with _hold_run_lock(services, run_id):
        with services.database.read() as session:
            run = verifications.find_verification(session, run_id)
        check_pins(services, run)
        total = len(verifications.verified_question_ids(run))
        with ReplyCache(_reply_cache_path(services, run)) as reply_cache:
            worker = _VerificationWorker(services, run, options, stop, reply_cache)
            shared, concurrency = worker.shared_model, options.concurrency
            for _ in answer_in_parallel(worker.open_questions(), worker.answer_question, shared, concurrency, stop):
                on_progress(sum(outcome.is_finished for outcome in worker.outcomes()), total)
        worker.score_missing_answers()
        if shared.error:
            raise Conflict(f"{shared.error} The same command again continues the verification.")
        outcomes = worker.outcomes()
        if any(not outcome.is_finished for outcome in outcomes) and (reason := shared.reason_for_stopping):
            options.on_note(reason)
        if all(outcome.is_finished for outcome in outcomes):
            with services.database.begin() as session:
                runs.finish_run(session, run_id)
            _reply_cache_path(services, run).unlink(missing_ok=True)
        return outcomes


@contextmanager
def _hold_run_lock(services: Services, run_id: UUID) -> Iterator[None]:
    folder = services.settings.home / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    # The operating system releases the lock when the process ends, even if it is killed.
    lock = FileLock(folder / f"{run_id}.lock")
    try:
        with lock.acquire(timeout=0):
            yield
    except Timeout:
        raise Conflict("another process is running this verification; wait for it, or stop it") from None


def _reply_cache_path(services: Services, run: Run) -> Any:
    return services.settings.home / "runs" / f"{run.id}.replies"


class _VerificationWorker:
    """Executes one verification."""

    def __init__(
        self, services: Services, run: Run, options: ExecutionOptions, stop: Event, reply_cache: ReplyCache
    ) -> None:
        self._services = services
        self._run = run
        self._options = options
        self._stop = stop
        self._reply_cache = reply_cache
        self._run_config = RunConfig.from_stored(TraceConfiguration.from_json(run.configuration))
        self._limits = RunLimits(**{"steps": None, "seconds": None, **run.configuration["limits"]})
        config = self._run_config
        model = services.chat_client(config.profile) if config.entry.needs_model else None
        self.shared_model = SharedModel(
            model, options.limits, stop, used=self._earlier_usage(model), on_note=options.on_note
        )

    def open_questions(self) -> list[UUID]:
        """The questions that are not finished, or are to be retried."""
        endings = (*RESUMABLE_ENDINGS, *(RETRYABLE_ENDINGS if self._options.retry else ()))
        return [outcome.question_id for outcome in self.outcomes() if outcome.ending in endings]

    def _earlier_usage(self, model: ChatClient | None) -> list[Usage]:
        """The usage so far, by the ended traces or by the cached replies, which may belong to unfinished traces."""
        by_traces = [Usage(**outcome.cost) for outcome in self.outcomes() if outcome.cost]
        by_replies = self._reply_cache.total_usage
        if model is not None and model.price is not None:
            by_replies = replace(by_replies, cost=model.price.cost_of(by_replies))
        return max(by_traces, [by_replies], key=lambda usages: sum(usage.max_tokens or 0 for usage in usages))

    def outcomes(self) -> list[VerificationOutcome]:
        """The outcomes of all questions."""
        with self._services.database.read() as session:
            return verifications.list_outcomes(session, self._run)

    def score_missing_answers(self) -> None:
        """Score the answers that were stored before the process ended, but not scored."""
        for outcome in self.outcomes():
            if outcome.answer is not None and outcome.score is None and outcome.trace_id is not None:
                with self._services.database.begin() as session:
                    verifications.save_score(
                        session, outcome.trace_id, score_against_gold(outcome.answer, outcome.gold)
                    )

    def answer_question(self, question_id: UUID) -> RunOutcome | None:
        """Run the reasoner on the question, or continue its trace, and store the score of the answer.

        None if the question has to be continued later.
        """
        if not self.shared_model.accepts_requests:
            return None
        trace, question, project = self._open_trace(question_id)
        task = prepare_task(self._services, question, project, self._run_config).task
        if task.context.chat is not None:
            # The guard is behind the cache, since cached replies cost nothing.
            chat = self._reply_cache.caching_client(self.shared_model.guard(question.text), str(trace.id))
            task = replace(task, context=replace(task.context, chat=chat))
        recorder = StoreRecorder(self._services.database, trace)
        outcome = run_reasoner(
            self._run_config.make_reasoner(),
            record_model_calls(self._services, task, recorder),
            recorder,
            RunControl(limits=self._limits, stop=self._stop),
        )
        if outcome.answers is not None:
            with self._services.database.begin() as session:
                verifications.save_score(
                    session, trace.id, score_against_gold(outcome.answers.final_answer, question.gold_answers)
                )
        return None if outcome.ending in UNFINISHED_ENDINGS else outcome

    def _open_trace(self, question_id: UUID) -> tuple[Trace, Question, Any]:
        worker = {"worker": current_worker_id()}
        with self._services.database.begin() as session:
            trace = verifications.find_run_trace(session, self._run, question_id)
            if trace is None:
                trace = runs.start_run_trace(session, self._run, question_id, worker)
            else:
                runs.reopen_run_trace(session, trace.id)
                trace = runs.update_configuration(session, trace.id, worker)
            return trace, *verifications.load_question(session, question_id)
