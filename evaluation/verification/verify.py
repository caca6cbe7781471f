"""Verification: a reasoner answers a project's questions with gold answers, in parallel and within a cost limit.

Each question has one trace in the verification's run. Steps are stored before their tools run, and model replies before
they are used, so a verification that was killed continues without losing a question, answering one twice or paying
twice for a reply.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from tempfile import TemporaryDirectory
from threading import Event
from uuid import UUID

from showhow.db.database import Conflict, Database, RowNotFound
from showhow.db.models import UNFINISHED_ENDINGS, Library, Project, Question, Run, Trace
from showhow.db.questions.projects import add_questions, find_project, get_or_create_project, get_project, has_questions
from showhow.db.run_spec import RunSpec
from showhow.db.runs import attempts, leases, runs, verifications
from showhow.db.runs.attempts import MetricScore
from showhow.db.runs.leases import Lease
from showhow.db.runs.runs import RunOutcome
from showhow.db.runs.verifications import VERIFICATION_NAME
from showhow.db.serialization import field_values, insert_rows
from showhow.db.storage.schema import upgrade
from showhow.db.traces.model_calls import list_unfinished_usages
from showhow.evaluation.datasets import read_world_questions
from showhow.evaluation.datasets.gold_names import GoldNames
from showhow.evaluation.metrics import METRICS, GoldAnswer, Metric
from showhow.evaluation.metrics.metric import Unscorable
from showhow.evaluation.scoring.answer_notation import DateNotations
from showhow.evaluation.scoring.bounded_scoring import score_within_limits
from showhow.evaluation.scoring.scoring import QuestionScore, describe_outcome, list_usages, sample_questions
from showhow.evaluation.shared_model import SharedModel, TotalLimits, answer_in_parallel, ignore_note
from showhow.llm.usage import Usage
from showhow.oracles.skill_sources import SKILL_SOURCES, parse_skill_source
from showhow.runs.ask import record_model_calls
from showhow.runs.budget import MAX_CONCURRENT_QUESTIONS
from showhow.runs.preparation import build_reasoner, build_run, check_pins, find_pin_conflict, needs_model, prepare_task
from showhow.runs.process import LeaseKeeper, hold_run_lock, is_worker_gone
from showhow.runs.recorders import StoreRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.runs.services import Services
from showhow.worlds.open import read_world_metadata

DEFAULT_CONCURRENCY = 2
RETRYABLE_ENDINGS = ("failed", "limit")
"""Endings that a retry may change."""
_BUSY = "another process is running this verification; wait for it, or stop it"


class NoQuestion(Conflict):
    """A project has no question with a gold answer."""


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


def start_verification(services: Services, project_name: str, spec: RunSpec, *, goes_on: bool = True) -> Run:
    """Start a run over the project's questions with gold answers, as many and as often as `spec` says.

    With `goes_on`, an unfinished run is returned instead that asks the same with the same model and world.
    """
    with services.database.begin() as session:
        project = find_project(session, project_name)
        if project is None:
            raise RowNotFound(f"there is no project {project_name!r}; `showhow questions import` makes one")
        listed = verifications.list_gold_questions(session, project.id, answerable=spec.answerable_only)
        begun = verifications.list_verifications(session, project.id) if goes_on else []
    plugins = METRICS.record(*METRICS) | SKILL_SOURCES.record(spec.skills.partition(":")[0])
    run = build_run(
        services, spec.replace(project_id=project.id, plugins=plugins), name=VERIFICATION_NAME, project=project
    )
    questions = sample_questions(listed, spec.sample, spec.seed)
    former = next((other for other in begun if _asks_same(other, run) and not find_pin_conflict(services, other)), None)
    if former is not None:
        return _add_attempts(services, former, questions)
    if not questions:
        raise NoQuestion(f"no question of {project_name!r} has a gold answer, so nothing can be verified")
    return _start_run(services, run, questions)


_WHAT_IS_ASKED = (
    *("reasoner", "options", "library", "skills", "person_skills", "limits", "profile_name"),
    *("project_id", "sample", "seed", "answerable_only", "repetitions", "repeats"),
)


def _asks_same(begun: Run, run: Run) -> bool:
    """Whether an unfinished run asks the same in the same way."""
    pairs = [(getattr(begun.spec, name), getattr(run.spec, name)) for name in _WHAT_IS_ASKED]
    return begun.finished_at is None and all(there == here for there, here in pairs)


def _start_run(services: Services, run: Run, questions: Sequence[Question]) -> Run:
    run.questions_hash = attempts.hash_questions(questions)
    with services.database.begin() as session:
        started = runs.start_run(session, run)
    return _add_attempts(services, started, questions)


def _add_attempts(services: Services, run: Run, questions: Sequence[Question]) -> Run:
    """Store the attempts that the run lacks, which are all of a new one, unless its questions have changed."""
    repetitions = run.spec.repetitions
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
        outcomes = verifications.list_outcomes(session, run)
        # A question that is asked several times may fail several times.
        failed_ids = dict.fromkeys(row.question_id for row in outcomes if row.is_finished and not row.is_correct)
        stored = [session.get(Question, question_id) for question_id in failed_ids]
        failed = [question for question in stored if question is not None and question.removal_id is None]
        project = session.get_one(Project, run.spec.project_id)
        begun = verifications.list_verifications(session, project.id)
    for later in begun:
        is_same = later.finished_at is None and later.spec.repeats == run.id
        if is_same and find_pin_conflict(services, later) is None:
            return _add_attempts(services, later, failed)
    version = freeze()
    spec = run.spec.replace(repeats=run.id, library=f"{version.name}:{version.number}")
    return _start_run(services, build_run(services, spec, name=VERIFICATION_NAME, project=project), failed)


@contextmanager
def open_temporary_store(services: Services) -> Iterator[Services]:
    """The same parts, with a database for runs that are not to be kept; it is removed after the block."""
    with TemporaryDirectory(prefix="showhow-evaluation-") as folder:
        store = Database(f"sqlite:///{folder}/showhow.db", lambda: services.redactor, is_durable=False)
        try:
            upgrade(store)
            yield services.recording_in(store)
        finally:
            store.close()


def copy_project(services: Services, recording: Services, name: str) -> None:
    """Copy a project with its questions to the store in which runs over them are recorded."""
    with services.database.read() as session:
        project = get_project(session, name)
        questions = verifications.list_gold_questions(session, project.id)
    with recording.database.begin() as session:
        insert_rows(session, Project, [field_values(project)])
        insert_rows(session, Question, [field_values(question) for question in questions])


class Execution:
    """Answers the open attempts of a run in this process."""

    def __init__(self, services: Services, run_id: UUID, options: ExecutionOptions, stop: Event) -> None:
        self._services, self._run_id, self._options, self._stop = services, run_id, options, stop
        self.finished = self.total = 0
        """The attempts that have ended, and all of the run."""
        self.used = Usage()
        """The usage of all model calls, those of earlier executions too."""
        self.error: str | None = None
        """Why the model is not available for any question; None while it is."""
        self.reason: str | None = None
        """Why questions are left at the end, as a sentence, if a limit or the model's server is the cause."""

    def answer(self) -> Iterator[QuestionScore]:
        """Answer the remaining questions, and yield how each ended.

        Conflict if another process works on it, or if the model, the world or a question changed since it was started.
        If it is stopped or reaches a limit, or the model's server fails, it can be continued later: such questions have
        not failed.
        """
        services, run_id, options = self._services, self._run_id, self._options
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
                    f"{next(iter(at_work))} is still at work on this verification; try again in a minute, or follow "
                    "its workers with --workers"
                )
            with services.database.begin() as session:
                runs.set_concurrency(session, run_id, options.concurrency)
                runs.pause_run(session, run_id, is_paused=False)
                if options.retry:
                    attempts.reopen_attempts(session, run_id, RETRYABLE_ENDINGS)
            worker = AttemptWorker(services, run, keeper, options, self._stop)
            shared = worker.shared_model
            with services.database.read() as session:
                open_attempts = attempts.list_unfinished_attempts(session, run_id)
                self.total = sum(group.attempts for group in attempts.group_attempts(session, run_id))
            self.finished = self.total - len(open_attempts)
            for score in answer_in_parallel(open_attempts, worker.work, shared, worker.get_concurrency, self._stop):
                self.finished += 1
                yield score
            is_finished = finish_verification(services, run_id)
            self.used, self.error = shared.used, shared.error
            self.reason = None if is_finished else shared.error or shared.reason_for_stopping


def run_verification(
    services: Services, run_id: UUID, options: ExecutionOptions, stop: Event, on_progress: Callable[[int, int], None]
) -> None:
    """Answer the remaining questions (Execution); `on_progress` gets the finished and the total count.

    Conflict, too, for an error of the model that every question would meet.
    """
    execution = Execution(services, run_id, options, stop)
    for _ in execution.answer():
        on_progress(execution.finished, execution.total)
    if execution.error:
        raise Conflict(f"{execution.error} The same command again continues the verification.")
    if execution.reason:
        options.on_note(execution.reason)


def open_verification(services: Services, run_id: UUID) -> Run:
    """Load a verification to continue it; Conflict if its model, its world or a question changed since its start."""
    with services.database.read() as session:
        run = verifications.find_verification(session, run_id)
        questions = attempts.list_asked_questions(session, run_id)
        count = attempts.count_attempts(session, run_id)
    check_pins(services, run)
    if count < len(questions) * run.spec.repetitions:
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
    scored = (metric for metric in metrics if metric.name in scores)
    return [MetricScore(metric.name, metric.version, scores[metric.name]) for metric in scored]


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
        spec = run.spec
        model = services.chat_client(spec.profile_name) if needs_model(spec) else None
        skill_source = parse_skill_source(spec.skills)
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

    def work(self, attempt_id: UUID, abandon: Event | None = None) -> QuestionScore | None:
        """Run the reasoner on the attempt's question, or continue its trace; store and return the scores of the answer.

        None if another worker has it, or if it is to be continued later. `abandon`, by default `stop`, ends it at once.
        """
        if not self.shared_model.accepts_requests:
            return None
        taken = self._take(attempt_id)
        if taken is None:
            return None
        lease, trace, question, project = taken
        try:
            return self._answer(lease, trace, question, project, abandon or self._stop)
        except Conflict:
            if self._keeper.has_lost(lease):
                return None
            raise

    def _answer(
        self, lease: Lease, trace: Trace, question: Question, project: Project, abandon: Event
    ) -> QuestionScore | None:
        with self._keeper.hold(lease, abandon) as lost:
            task = prepare_task(self._services, question, project, self._run.spec).task
            task = replace(task, date_notation=self._notations.find(question))
            if self._make_responder is not None:
                task = replace(task, responder=self._make_responder(question), context=replace(task.context, chat=None))
            elif task.context.chat is not None:
                chat = self.shared_model.guard(question.text)
                task = replace(task, context=replace(task.context, chat=chat))
            recorder = StoreRecorder(self._services.database, trace)
            outcome = run_reasoner(
                build_reasoner(self._run.spec),
                record_model_calls(self._services, task, recorder, lease),
                recorder,
                RunControl(limits=self._run.spec.limits, stop=lost),
            )
            return self._store_scores(lease, question, outcome)

    def _store_scores(self, lease: Lease, question: Question, outcome: RunOutcome) -> QuestionScore | None:
        """Store and return the scores of the answer; of an unfinished attempt, store when it is asked again."""
        answers = outcome.answers
        gold = self.gold_names.name_all(question.gold_answers)
        scores = [] if answers is None else _score_by(answers.final_answer, gold, METRICS.values())
        with self._services.database.begin() as session:
            if answers is not None:
                attempts.save_scores(session, lease.attempt_id, lease.token, scores)
            elif outcome.ending in UNFINISHED_ENDINGS and lease.for_workers:
                leases.release_attempt(session, lease, self.shared_model.retry_delay)
        if outcome.ending in UNFINISHED_ENDINGS:
            return None
        return describe_outcome(question, outcome, {score.metric: score.value for score in scores} or None)

    def _take(self, attempt_id: UUID) -> tuple[Lease, Trace, Question, Project] | None:
        taker = self._keeper.taker
        with self._services.database.begin() as session:
            attempt = leases.take_attempt(session, attempt_id, taker)
            if attempt is None:
                return None
            if attempt.trace_id is None:
                trace = runs.start_run_trace(session, self._run, attempt.question_id, taker.worker)
                attempt.trace_id = trace.id
            else:
                runs.reopen_run_trace(session, attempt.trace_id)
                trace = runs.update_result(session, attempt.trace_id, worker=taker.worker)
            lease = Lease(attempt.id, attempt.run_id, trace.id, attempt.lease_token, taker.for_workers)
            return lease, trace, *verifications.load_question(session, attempt.question_id)
