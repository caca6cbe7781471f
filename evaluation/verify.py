"""Verification: a reasoner answers a project's questions with gold answers, in parallel and within a cost limit.

Each question has one trace in the verification's run. Steps are stored before their tools run, and model replies before
they are used, so a verification that was killed continues without losing a question, answering one twice or paying
twice for a reply.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any
from uuid import UUID

from db import attempts, leases, runs, verifications
from db.attempts import MetricScore
from db.database import Conflict, RowNotFound
from db.leases import Lease
from db.model_calls import list_unfinished_usages
from db.models import UNFINISHED_ENDINGS, Library, Project, Question, Run, Trace
from db.projects import add_questions, find_project, get_or_create_project, has_questions
from db.runs import RunOutcome
from db.trace_configuration import MODEL_SKILLS, TraceConfiguration
from db.verifications import VERIFICATION_NAME
from evaluation.answer_notation import DateNotations
from evaluation.bounded_scoring import score_within_limits
from evaluation.datasets import read_world_questions
from evaluation.datasets.gold_names import GoldNames
from evaluation.metrics import METRICS, GoldAnswer, Metric
from evaluation.metrics.metric import Unscorable
from evaluation.scoring import list_usages
from evaluation.shared_model import SharedModel, TotalLimits, answer_in_parallel, ignore_note
from evaluation.skill_sources import parse_skill_source
from runs.ask import record_model_calls
from runs.budget import MAX_CONCURRENT_QUESTIONS, RunLimits
from runs.preparation import RunConfig, build_run, check_pins, find_pin_conflict, prepare_task
from runs.process import LeaseKeeper, hold_run_lock, is_worker_gone
from runs.recorders import StoreRecorder
from runs.runner import RunControl, run_reasoner
from runs.services import Services
from worlds.open import read_world_metadata

DEFAULT_CONCURRENCY = 2
RETRYABLE_ENDINGS = ("failed", "limit")
"""Endings that a retry may change."""
_BUSY = "another process is running this verification; wait for it, or stop it"


@dataclass(frozen=True, slots=True)
class VerificationPlan:
    """The questions to verify, how they are answered, and within which limits."""

    project: str
    run_config: RunConfig
    question_limit: int | None = None
    """The number of questions, spread evenly over all; None for all."""
    limits: RunLimits = field(default_factory=RunLimits)
    """The limits of each question."""
    repetitions: int = 1
    """The number of times that each question is asked."""
    answerable: bool = False
    """Whether questions whose gold answer is that they cannot be answered are left out."""

    def to_json(self) -> dict[str, Any]:
        """The plan as the run's configuration stores it."""
        repetitions = {} if self.repetitions == 1 else {"repetitions": self.repetitions}
        limits = {"most": self.question_limit, "limits": self.limits.to_json()}
        skills = {} if self.run_config.skills == MODEL_SKILLS else {"skills": self.run_config.skills}
        answerable = {"answerable": True} if self.answerable else {}
        return {**self.run_config.to_json(), **limits, **repetitions, **skills, **answerable}


@dataclass(frozen=True, slots=True)
class ExecutionOptions:
    """How a verification is executed; it may differ each time that it is continued."""

    concurrency: int | None = DEFAULT_CONCURRENCY
    """The number of attempts at the same time; None for workers leaves it to their places."""
    limits: TotalLimits = field(default_factory=TotalLimits)
    """The limits of all questions together; no requests are sent to the model once one is reached."""
    retry: bool = False
    """Retry questions that failed or reached a limit."""
    on_note: Callable[[str], None] = ignore_note
    """Called with sentences about what happens meanwhile, from any thread."""
    asks_again: bool = False
    """Whether workers ask unfinished questions again, however many errors of the model's server there are."""
    priority: int = 0
    """Workers take the questions of verifications with a higher number first."""


def add_world_project(services: Services, world: str) -> Project:
    """The project with a world's own questions, which is made with the first verification of them.

    RowNotFound if the world has no questions.
    """
    name = f"Questions of {world}"
    records = read_world_questions(services.settings.worlds_folder, world)
    with services.database.begin() as session:
        stored = find_project(session, name)
        if stored is not None and not has_questions(session, stored.id, records):
            # Another world had this name: its questions, and what was made of them, stay as they are.
            content_hash = read_world_metadata(services.settings.worlds_folder, world).get("hash")
            name = f"{name}, {str(content_hash)[:12]}"
        project = get_or_create_project(session, name, world=world)
        add_questions(session, project.id, records)
    return project


def start_verification(services: Services, plan: VerificationPlan, sample: Sequence[Question] | None = None) -> Run:
    """Return the unfinished verification with this plan, model and world, or start a new one.

    With a `sample` of the project's questions a new one is started over these.
    """
    plan_json = replace(plan, run_config=plan.run_config.pin(services)).to_json()
    profile = plan.run_config.model_profile(services)
    with services.database.begin() as session:
        project = find_project(session, plan.project)
        if project is None:
            raise RowNotFound(f"there is no project {plan.project!r}; `showhow questions import` makes one")
        listed = verifications.list_gold_questions(session, project.id, answerable=plan.answerable)
        questions = _sample_evenly(listed if sample is None else list(sample), plan.question_limit)

        def is_begun(run: Run) -> bool:
            is_same = run.finished_at is None and plan_json.items() <= run.configuration.items()
            recorded = TraceConfiguration.from_json(run.configuration)
            is_same &= (recorded.repetitions, recorded.skills) == (plan.repetitions, plan.run_config.skills)
            is_same &= run.configuration.get("answerable", False) == plan.answerable
            has_same_profile = profile is None or recorded.profile is None or recorded.profile["name"] == profile.name
            return is_same and has_same_profile and find_pin_conflict(services, run) is None

        begun = verifications.list_verifications(session, project.id) if sample is None else []
        run = next(filter(is_begun, begun), None)
        if run is None and not questions:
            raise Conflict(f"no question of {plan.project!r} has a gold answer, so nothing can be verified")
    if run is not None:
        return _add_attempts(services, run, questions)
    configuration = {"project_id": str(project.id), **plan_json}
    return _start_verification(services, plan.run_config, project, configuration, questions)


def _start_verification(
    services: Services,
    config: RunConfig,
    project: Project,
    configuration: dict[str, Any],
    questions: Sequence[Question],
) -> Run:
    run = build_run(
        services,
        config,
        name=VERIFICATION_NAME,
        project=project,
        configuration=configuration,
    )
    run.questions_hash = attempts.hash_questions(questions)
    with services.database.begin() as session:
        started = runs.start_run(session, run)
    return _add_attempts(services, started, questions)


def _add_attempts(services: Services, run: Run, questions: Sequence[Question]) -> Run:
    """Store the attempts that the run lacks, which are all of a new one, unless its questions have changed."""
    repetitions = TraceConfiguration.from_json(run.configuration).repetitions
    with services.database.read() as session:
        stored = attempts.count_attempts(session, run.id)
    if stored < len(questions) * repetitions and run.questions_hash == attempts.hash_questions(questions):
        with hold_run_lock(services.settings.home, str(run.id), _BUSY):
            attempts.add_attempts(services.database, run, questions, repetitions)
    return run


def start_repair_verification(services: Services, run: Run, freeze: Callable[[], Library]) -> Run:
    """Start a verification over the failures of `run`, with the library version that `freeze` returns.

    An unfinished verification over these failures is returned instead.
    """
    with services.database.read() as session:
        failed = [
            question
            for outcome in verifications.list_outcomes(session, run)
            if outcome.is_finished
            and not outcome.is_correct
            and (question := session.get(Question, outcome.question_id)) is not None
            and question.removal_id is None
        ]
        project_id = UUID(run.configuration["project_id"])
        for later in verifications.list_verifications(session, project_id):
            is_same = later.finished_at is None and later.configuration.get("again_of") == str(run.id)
            if is_same and find_pin_conflict(services, later) is None:
                return _add_attempts(services, later, failed)
    version = freeze()
    configuration = {
        **run.configuration,
        "again_of": str(run.id),
        "library": f"{version.name}:{version.number}",
    }
    with services.database.read() as session:
        project = session.get_one(Project, project_id)
    config = RunConfig.from_stored(TraceConfiguration.from_json(configuration))
    return _start_verification(services, config, project, configuration, failed)


def _sample_evenly(questions: list[Question], limit: int | None) -> list[Question]:
    """At most `limit` questions in their order, of each kind, and of each template of a kind, its share."""
    if limit is None or len(questions) <= limit:
        return questions
    # Files repeat their templates in turn, so even distances in the order of the file would meet some kinds only.
    by_kind = sorted(questions, key=lambda question: (question.kind or "", str(question.details.get("template", ""))))
    chosen = {by_kind[index * len(by_kind) // limit].id for index in range(limit)}
    return [question for question in questions if question.id in chosen]


def run_verification(
    services: Services, run_id: UUID, options: ExecutionOptions, stop: Event, on_progress: Callable[[int, int], None]
) -> None:
    """Answer the remaining questions; `on_progress` gets the finished and the total count.

    Conflict if another process works on it, or if the model, the world or a question changed since it was started. If
    it is stopped or reaches a limit, or the model's server fails, it can be continued later: such questions have not
    failed.
    """
    with hold_run_lock(services.settings.home, str(run_id), _BUSY), LeaseKeeper(services.database) as keeper:
        run = open_verification(services, run_id)
        with services.database.begin() as session:
            leases.stop_workers(session, run_id)
            # This process holds the lock of the run, so a lease of its own is left over.
            leases.end_leases_of(
                session, run_id, lambda worker: worker == keeper.taker.worker or is_worker_gone(worker)
            )
            at_work = leases.count_leased_by_worker(session, run_id)
        if at_work:
            raise Conflict(
                f"{next(iter(at_work))} is still at work on this verification; try again in a minute, or follow its "
                "workers with --workers"
            )
        with services.database.begin() as session:
            runs.set_concurrency(session, run_id, options.concurrency)
            runs.pause_run(session, run_id, is_paused=False)
            if options.retry:
                attempts.reopen_attempts(session, run_id, RETRYABLE_ENDINGS)
        worker = AttemptWorker(services, run, keeper, options, stop)
        shared = worker.shared_model
        with services.database.read() as session:
            open_attempts = attempts.list_unfinished_attempts(session, run_id)
            total = sum(group.attempts for group in attempts.group_attempts(session, run_id))
        finished = total - len(open_attempts)
        for _ in answer_in_parallel(open_attempts, worker.work, shared, worker.get_concurrency, stop):
            finished += 1
            on_progress(finished, total)
        is_finished = finish_verification(services, run_id)
        if shared.error:
            raise Conflict(f"{shared.error} The same command again continues the verification.")
        if not is_finished and (reason := shared.reason_for_stopping):
            options.on_note(reason)


def open_verification(services: Services, run_id: UUID) -> Run:
    """Load a verification to continue it; Conflict if its model, its world or a question changed since its start."""
    with services.database.read() as session:
        run = verifications.find_verification(session, run_id)
        questions = attempts.list_asked_questions(session, run_id)
        count = attempts.count_attempts(session, run_id)
    check_pins(services, run)
    if count < len(questions) * TraceConfiguration.from_json(run.configuration).repetitions:
        raise Conflict("this verification was interrupted while it was started; start it again to complete it")
    if run.questions_hash not in (None, attempts.hash_questions(questions)):
        raise Conflict(
            "questions or gold answers changed since this verification was started, or its start was interrupted, so "
            "its scores would not compare; start it again"
        )
    return run


def finish_verification(services: Services, run_id: UUID) -> bool:
    """Score what is not scored yet, and mark the run as finished if all its attempts have ended; whether they have."""
    score_missing_answers(services, run_id)
    with services.database.begin() as session:
        is_finished = not attempts.count_unfinished_attempts(session, run_id)
        if is_finished:
            runs.finish_run(session, run_id)
    return is_finished


_ANSWERS_A_COMMIT = 500


def score_missing_answers(services: Services, run_id: UUID) -> None:
    """Score the stored answers of a run that have no score by the present version of a metric; nothing is asked."""
    with services.database.read() as session:
        names = GoldNames.of_world(services, session.get_one(Run, run_id).world)
    for metric in METRICS.values():
        unscorable = set[UUID]()
        while True:
            with services.database.read() as session:
                limit = len(unscorable) + _ANSWERS_A_COMMIT
                rows = attempts.list_answers_without_score(session, run_id, metric.name, metric.version, limit)
            rows = [row for row in rows if row.attempt_id not in unscorable]
            scored = [(row, _score_by(row.answer, names.name_all(row.gold), [metric])) for row in rows]
            if not scored:
                break
            unscorable |= {row.attempt_id for row, values in scored if not values}
            with services.database.begin() as session:
                for row, values in scored:
                    attempts.save_scores(session, row.attempt_id, row.lease_token, values)


def _score_by(answer: str, gold: Sequence[GoldAnswer], metrics: Iterable[Metric]) -> list[MetricScore]:
    """The scores of an answer; none if it cannot be scored, so that it stays an answer without a score."""
    try:
        scores = score_within_limits(answer, gold)
    except Unscorable:
        return []
    return [MetricScore(metric.name, metric.version, scores[metric.name]) for metric in metrics]


class AttemptWorker:
    """Works on the attempts of one verification: in `showhow verify`, or in `showhow worker` on any machine."""

    def __init__(
        self, services: Services, run: Run, keeper: LeaseKeeper, options: ExecutionOptions, stop: Event
    ) -> None:
        """After `stop` no request is sent; Conflict if the cost is to be limited and has no known price."""
        self._services = services
        self._run = run
        self._keeper = keeper
        self._options = options
        self._stop = stop
        self._run_config = RunConfig.from_stored(TraceConfiguration.from_json(run.configuration))
        self._limits = RunLimits(**{"steps": None, "seconds": None, **run.configuration["limits"]})
        config = self._run_config
        model = services.chat_client(config.profile) if config.needs_model else None
        skill_source = parse_skill_source(config.skills)
        self._make_responder = None if skill_source is None else skill_source.open(services, run.world)
        with services.database.read() as session:
            used = list_usages(attempts.group_attempts(session, run.id), list_unfinished_usages(session, run.id))
            asked = attempts.list_asked_questions(session, run.id)
        self._notations = DateNotations(asked)
        self.gold_names = GoldNames.of_world(services, run.world)
        # A graph that cannot be asked says so before a question is.
        self.gold_names.look_up(question.gold_answers for question in asked)
        self.shared_model = SharedModel(model, options.limits, stop, used=used, on_note=options.on_note)
        self.shared_model.asks_again = options.asks_again

    def get_concurrency(self) -> int:
        """The number of attempts at the same time: what was set for the run meanwhile, else as it was started."""
        with self._services.database.read() as session:
            concurrency = runs.get_concurrency(session, self._run.id)
        return (self._options.concurrency or MAX_CONCURRENT_QUESTIONS) if concurrency is None else concurrency

    def work(self, attempt_id: UUID, abandon: Event | None = None) -> RunOutcome | None:
        """Run the reasoner on the attempt's question, or continue its trace, and store the scores of the answer.

        None if another worker has it, or if it is to be continued later. `abandon`, by default `stop`, ends it at once.
        """
        if not self.shared_model.accepts_requests:
            return None
        taken = self._take(attempt_id)
        if taken is None:
            return None
        lease, trace, question, project = taken
        try:
            outcome = self._answer(lease, trace, question, project, abandon or self._stop)
        except Conflict:
            if self._keeper.has_lost(lease):
                return None
            raise
        return None if outcome.ending in UNFINISHED_ENDINGS else outcome

    def _answer(self, lease: Lease, trace: Trace, question: Question, project: Project, abandon: Event) -> RunOutcome:
        with self._keeper.hold(lease, abandon) as lost:
            task = prepare_task(self._services, question, project, self._run_config).task
            task = replace(task, date_notation=self._notations.find(question))
            if self._make_responder is not None:
                task = replace(task, responder=self._make_responder(question), context=replace(task.context, chat=None))
            elif task.context.chat is not None:
                chat = self.shared_model.guard(question.text)
                task = replace(task, context=replace(task.context, chat=chat))
            recorder = StoreRecorder(self._services.database, trace)
            outcome = run_reasoner(
                self._run_config.make_reasoner(),
                record_model_calls(self._services, task, recorder, lease),
                recorder,
                RunControl(limits=self._limits, stop=lost),
            )
            self._store_scores(lease, question, outcome)
            return outcome

    def _store_scores(self, lease: Lease, question: Question, outcome: RunOutcome) -> None:
        """Store the scores of the answer; of an unfinished attempt, when it is asked again."""
        answers = outcome.answers
        gold = self.gold_names.name_all(question.gold_answers)
        scores = [] if answers is None else _score_by(answers.final_answer, gold, METRICS.values())
        with self._services.database.begin() as session:
            if answers is not None:
                attempts.save_scores(session, lease.attempt_id, lease.token, scores)
            elif outcome.ending in UNFINISHED_ENDINGS and lease.for_workers:
                leases.release_attempt(session, lease, self.shared_model.retry_delay)

    def _take(self, attempt_id: UUID) -> tuple[Lease, Trace, Question, Project] | None:
        taker = self._keeper.taker
        with self._services.database.begin() as session:
            attempt = leases.take_attempt(session, attempt_id, taker)
            if attempt is None:
                return None
            if attempt.trace_id is None:
                trace = runs.start_run_trace(session, self._run, attempt.question_id, {"worker": taker.worker})
                attempt.trace_id = trace.id
            else:
                runs.reopen_run_trace(session, attempt.trace_id)
                trace = runs.update_configuration(session, attempt.trace_id, {"worker": taker.worker})
            lease = Lease(attempt.id, attempt.run_id, trace.id, attempt.lease_token, taker.for_workers)
            return lease, trace, *verifications.load_question(session, attempt.question_id)
