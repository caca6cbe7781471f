"""Tasks of verifications: ask questions with gold answers, ask what is left, and ask repaired failures again."""

from dataclasses import dataclass
from threading import Event
from uuid import UUID

from showhow.db.models import Run
from showhow.db.removal.renaming import name_run
from showhow.db.runs import verifications
from showhow.evaluation.scoring.scoring import describe_power, load_figures
from showhow.evaluation.shared_model import TotalLimits
from showhow.evaluation.verification.repairs import freeze_repairs
from showhow.evaluation.verification.verify import (
    DEFAULT_CONCURRENCY,
    ExecutionOptions,
    add_world_project,
    run_verification,
    start_repair_verification,
    start_verification,
)
from showhow.evaluation.verification.worker import follow_workers, share_verification
from showhow.fewshot_library.library import LeakageError
from showhow.option_fields import group, option
from showhow.runs.budget import MAX_CONCURRENT_QUESTIONS
from showhow.runs.services import Services
from showhow.tasks.method import PlayedMethod, QuestionLimits, QuestionSample, build_spec
from showhow.tasks.progress import print_count, print_progress
from showhow.tasks.task import TaskError, author_name, fail_on_interrupt


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How the questions of a verification are asked."""

    at_once: int | None = option(
        None,
        f"Questions at the same time, by default {DEFAULT_CONCURRENCY}; with --workers as many as they can.",
        label="Parallel",
        minimum=1,
        maximum=MAX_CONCURRENT_QUESTIONS,
    )
    workers: bool = option(default=False, help="Have `showhow worker` processes, on any machine, ask the questions.")
    detach: bool = option(default=False, help="With --workers: do not wait for them.")
    priority: int = option(0, "With --workers: higher numbers are worked on first.", minimum=-1000, maximum=1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyQuestions:
    """Questions with gold answers, and how they are answered."""

    project: str | None = option(None, "Ask the questions of this project.")
    world: str | None = option(None, "Ask a world's own questions, in a project that is made for them.")
    method: PlayedMethod = group(PlayedMethod, "Reasoner and model")
    sample: QuestionSample = group(QuestionSample, "Choice of questions")
    limits: QuestionLimits = group(QuestionLimits, "Limits of each question")
    totals: TotalLimits = group(TotalLimits, "Limits of all questions together")
    asking: Asking = group(Asking, "How the questions are asked")
    repetitions: int = option(
        1, "Ask each question so many times, and report pass@k and pass^k.", minimum=1, maximum=100
    )
    retry: bool = option(default=False, help="Ask again the questions that failed or reached a limit.")
    name: str | None = option(None, "The name of the verification, by which lists show it.")
    note: str | None = option(None, "A note on it.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinueRun:
    """A verification whose questions are asked that are left."""

    run: str = option(help="The id of a verification; `runs list` lists them.", is_argument=True)
    totals: TotalLimits = group(TotalLimits, "Limits of all questions together")
    asking: Asking = group(Asking, "How the questions are asked")
    retry: bool = False
    """Whether those that failed or reached a limit are asked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishRepairs:
    """A verification whose approved repairs are frozen, and whose failures are asked again."""

    run: str = option(help="The id of a verification; `runs list` lists them.", is_argument=True)
    freeze_as: str | None = option(None, "The name of the library; default: the next version of the run's.")
    totals: TotalLimits = group(TotalLimits, "Limits of all questions together")
    asking: Asking = group(Asking, "How the questions are asked")
    retry: bool = False


@dataclass(frozen=True, slots=True)
class AskedRun:
    """A verification that was worked on, or left to workers."""

    run: Run
    is_detached: bool
    left: int
    """The number of questions that are not answered."""

    @property
    def problem(self) -> str:
        """Which questions are left, in one sentence; empty if none is."""
        if self.is_detached or not self.left:
            return ""
        return f"{self.left:,} questions are left; `showhow verify --go-on {self.run.id}` continues"


def verify(services: Services, request: VerifyQuestions) -> AskedRun:
    """Ask the questions of a project or a world; the same request again continues an interrupted verification."""
    project = add_world_project(services, str(request.world)).name if request.project is None else request.project
    spec = request.sample.choose(build_spec(services, request.method, request.limits.build()))
    run = start_verification(services, project, spec.replace(repetitions=request.repetitions))
    if request.name is not None or request.note is not None:
        with services.database.begin() as session:
            run = name_run(session, run.id, title=request.name, note=request.note)
    return _ask_questions(services, run, request)


def continue_run(services: Services, request: ContinueRun) -> AskedRun:
    """Ask the questions of a verification that are left."""
    return _ask_questions(services, load_run(services, request.run), request)


def finish_repairs(services: Services, request: FinishRepairs) -> AskedRun:
    """Freeze the approved repairs of a verification's failures, and ask the failures again with that library."""
    run = load_run(services, request.run)
    try:
        repeated = start_repair_verification(
            services, run, lambda: freeze_repairs(services, run, author_name(services), request.freeze_as)
        )
    except LeakageError as error:
        raise TaskError(str(error)) from error
    return _ask_questions(services, repeated, request)


def load_run(services: Services, text: str) -> Run:
    """The verification with this id."""
    try:
        run_id = UUID(text)
    except ValueError as error:
        raise TaskError(f"{text!r} is not the id of a verification; `showhow verify --list` lists them") from error
    with services.database.read() as session:
        return verifications.find_verification(session, run_id)


def _ask_questions(services: Services, run: Run, request: VerifyQuestions | ContinueRun | FinishRepairs) -> AskedRun:
    """Ask the questions that are left, here or by workers."""
    asking = request.asking
    concurrency = asking.at_once if asking.workers else asking.at_once or DEFAULT_CONCURRENCY
    options = ExecutionOptions(concurrency, request.totals, request.retry, print_progress, priority=asking.priority)
    if asking.workers and asking.detach:
        share_verification(services, run.id, options)
        return AskedRun(run, is_detached=True, left=0)
    count = load_figures(services.database, run.id)["questions"]
    print_progress(f"verification {run.id} over {count:,} questions with {run.spec.model or 'no model'}")
    print_progress(describe_power(count // run.spec.repetitions))
    with fail_on_interrupt("the verification was stopped; the same command continues it"):
        if asking.workers:
            share_verification(services, run.id, options)
            follow_workers(services, run.id, options, _print_progress)
        else:
            run_verification(services, run.id, options, Event(), _print_progress)
    return AskedRun(run, is_detached=False, left=load_figures(services.database, run.id)["left"])


def _print_progress(done: int, total: int) -> None:
    print_count(done, total, "questions")
