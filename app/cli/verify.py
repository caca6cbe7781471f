"""`showhow verify` runs a reasoner on questions with gold answers and queues its failures for repair.

`showhow worker` works on the verifications that are shared with workers, on any machine.
"""

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event
from typing import Annotated, ClassVar
from uuid import UUID

import typer

from showhow.app.cli.options import (
    LimitOptions,
    PlayedMethodArguments,
    SampleOptions,
    TotalOptions,
    parse_spec,
    with_options,
)
from showhow.app.cli.output import CommandError, emit
from showhow.app.services import current_services
from showhow.db.models import Run
from showhow.db.questions.projects import find_project
from showhow.db.removal.renaming import name_run
from showhow.db.runs import runs, verifications
from showhow.db.runs.leases import LEASE_SECONDS
from showhow.evaluation.metrics import METRICS, format_means
from showhow.evaluation.scoring.scoring import (
    VerificationReport,
    describe_power,
    format_usage,
    load_figures,
    load_verification_report,
)
from showhow.evaluation.verification.repairs import freeze_repairs, list_failures
from showhow.evaluation.verification.verify import (
    DEFAULT_CONCURRENCY,
    ExecutionOptions,
    add_world_project,
    run_verification,
    start_repair_verification,
    start_verification,
)
from showhow.evaluation.verification.worker import Worker, WorkerOptions, follow_workers, share_verification
from showhow.fewshot_library.library import LeakageError
from showhow.runs.budget import MAX_CONCURRENT_QUESTIONS
from showhow.runs.process import current_worker_id
from showhow.runs.services import Services
from showhow.tasks.progress import print_count, print_progress
from showhow.tasks.task import author_name, fail_on_interrupt


@dataclass(frozen=True)
class ExecutionArguments:
    """How the questions are asked."""

    TITLE: ClassVar[str] = "How the questions are asked"
    at_once: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MAX_CONCURRENT_QUESTIONS,
            help=f"Questions at the same time, by default {DEFAULT_CONCURRENCY}; with --workers as many as they can.",
        ),
    ] = None
    workers: Annotated[
        bool, typer.Option("--workers", help="Have `showhow worker` processes, on any machine, ask the questions.")
    ] = False
    detach: Annotated[bool, typer.Option("--detach", help="With --workers: do not wait for them.")] = False
    priority: Annotated[
        int, typer.Option(min=-1000, max=1000, help="With --workers: higher numbers are worked on first.")
    ] = 0


AsJson = Annotated[bool, typer.Option("--json", help=f"Print JSON with {', '.join(METRICS)}.")]


@with_options
def verify(  # noqa: PLR0913 - every option of the verb is one parameter
    *,
    project: Annotated[str | None, typer.Option(help="Ask the questions of this project.")] = None,
    world: Annotated[
        str | None, typer.Option(help="Ask a world's own questions, in a project that is made for them.")
    ] = None,
    method: PlayedMethodArguments,
    sample: SampleOptions,
    limits: LimitOptions,
    totals: TotalOptions,
    execution: ExecutionArguments,
    repetitions: Annotated[
        int, typer.Option(min=1, max=100, help="Ask each question so many times, and report pass@k and pass^k.")
    ] = 1,
    retry: Annotated[
        bool, typer.Option("--retry", help="Ask again the questions that failed or reached a limit.")
    ] = False,
    go_on: Annotated[
        str | None, typer.Option(metavar="ID", help="Continue this verification, as `runs continue`.")
    ] = None,
    again: Annotated[
        str | None, typer.Option(metavar="ID", help="Freeze the repairs of a verification and ask its failures again.")
    ] = None,
    freeze_as: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --again: the name of the library.")
    ] = None,
    pause: Annotated[str | None, typer.Option(metavar="ID", help="Begin no question of it, as `runs pause`.")] = None,
    resume: Annotated[str | None, typer.Option(metavar="ID", help="End its pause, as `runs resume`.")] = None,
    name: Annotated[str | None, typer.Option(help="The name of the verification, by which lists show it.")] = None,
    note: Annotated[str | None, typer.Option(help="A note on it.")] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the verifications of the project.")] = False,
    as_json: AsJson = False,
) -> None:
    """Ask a project's questions and score the answers; the same command again continues an interrupted verification.

    The exit status is 1 while questions are left, as when a limit of all questions is reached.

    With --again the approved repairs of a verification's failures are frozen as the next version of the library, and
    the failures are asked again with it.
    """
    services = current_services()
    if list_all:
        _list_verifications(services, project, as_json=as_json)
        return
    if pause is not None or resume is not None:
        run = load_run(services, str(pause or resume))
        change_concurrency(services, run, is_paused=pause is not None, concurrency=execution.at_once)
        return
    if again is not None:
        run = _start_repairs(services, load_run(services, again), freeze_as)
    elif go_on is not None:
        run = load_run(services, go_on)
    elif (project is None) == (world is None):
        raise typer.BadParameter(
            "name a project with --project or a world with --world, or a verification with --again"
        )
    else:
        chosen = add_world_project(services, str(world)).name if project is None else project
        spec = sample.choose(parse_spec(services, method, limits)).replace(repetitions=repetitions)
        run = start_verification(services, chosen, spec)
    if name is not None or note is not None:
        with services.database.begin() as session:
            run = name_run(session, run.id, title=name, note=note)
    execute_run(services, run, execution, totals, retry=retry, as_json=as_json)


def worker(
    *,
    at_once: Annotated[
        int, typer.Option(min=1, max=MAX_CONCURRENT_QUESTIONS, help="Questions at the same time, of all verifications.")
    ] = 8,
    lease: Annotated[
        float,
        typer.Option(
            min=1.0,
            help="Seconds without a sign of life after which other workers take its questions.",
            metavar="SECONDS",
        ),
    ] = LEASE_SECONDS,
    as_json: Annotated[bool, typer.Option("--json", help="Print how many questions it worked on as JSON.")] = False,
) -> None:
    """Work on the questions of `showhow verify --workers`, until it is stopped by Ctrl+C or SIGTERM.

    Any number of workers on any machines share a PostgreSQL database (SHOWHOW_DATABASE_URL). Each needs the same
    worlds and model profiles. A stopped worker sends no further request, and stores the replies to those under way.
    """
    stop = Event()
    process = Worker(current_services(), WorkerOptions(at_once, lease, print_progress))
    former = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    print_progress(f"worker {current_worker_id()} works on up to {at_once:,} questions at a time")
    try:
        process.run(stop)
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
    report = {"worker": current_worker_id(), "questions": process.finished_count}
    emit(report, f"the worker was stopped after {process.finished_count:,} questions", as_json=as_json)


def change_concurrency(services: Services, run: Run, *, is_paused: bool, concurrency: int | None) -> None:
    """Pause the verification, or have it work on so many questions at the same time; None leaves their number."""
    if run.finished_at is not None:
        raise CommandError("this verification is finished; there is nothing to pause or to resume")
    with services.database.begin() as session:
        runs.pause_run(session, run.id, is_paused=is_paused)
        if concurrency is not None:
            runs.set_concurrency(session, run.id, concurrency)
    number = "on as many questions as before" if concurrency is None else f"on {concurrency:,} questions"
    change = "no further question is begun" if is_paused else f"work goes on {number} at a time"
    print_progress(f"verification {run.id}: {change}")


def execute_run(  # noqa: PLR0913 - what the verbs say about it
    services: Services,
    run: Run,
    execution: ExecutionArguments,
    totals: TotalOptions,
    *,
    retry: bool = False,
    as_json: bool = False,
) -> None:
    """Ask the questions that are left, here or by workers, and print the report."""
    concurrency = execution.at_once if execution.workers else execution.at_once or DEFAULT_CONCURRENCY
    options = ExecutionOptions(concurrency, totals.build(), retry, print_progress, priority=execution.priority)
    if execution.workers and execution.detach:
        share_verification(services, run.id, options)
        emit({"id": str(run.id)}, f"workers ask the questions of verification {run.id}", as_json=as_json)
        return
    count = load_figures(services.database, run.id)["questions"]
    print_progress(f"verification {run.id} over {count:,} questions with {run.spec.model or 'no model'}")
    print_progress(describe_power(count // run.spec.repetitions))
    with fail_on_interrupt("the verification was stopped; the same command continues it"):
        if execution.workers:
            share_verification(services, run.id, options)
            follow_workers(services, run.id, options, _print_progress)
        else:
            run_verification(services, run.id, options, Event(), _print_progress)
    report = print_report(services, run, as_json=as_json)
    if report["left"]:
        raise CommandError(f"{report['left']:,} questions are left; `showhow verify --go-on {run.id}` continues")


def print_report(services: Services, run: Run, *, as_json: bool) -> VerificationReport:
    """Print the figures of a verification, and return them."""
    report = load_verification_report(services.database, run) | {"before": _previous_report(services, run)}
    emit(report, "\n".join(_format_report(services, report)), as_json=as_json)
    return report


def _previous_report(services: Services, run: Run) -> VerificationReport | None:
    """The scores of the same questions in the previous verification; None for a first verification."""
    previous_id = run.spec.repeats
    return None if previous_id is None else load_figures(services.database, previous_id, asked_in=run.id)


def _print_progress(done: int, total: int) -> None:
    print_count(done, total, "questions")


def load_run(services: Services, text: str) -> Run:
    """The verification with this id."""
    try:
        run_id = UUID(text)
    except ValueError as error:
        raise CommandError(f"{text!r} is not the id of a verification; `showhow verify --list` lists them") from error
    with services.database.read() as session:
        return verifications.find_verification(session, run_id)


def _start_repairs(services: Services, run: Run, name: str | None) -> Run:
    try:
        return start_repair_verification(
            services, run, lambda: freeze_repairs(services, run, author_name(services), name)
        )
    except LeakageError as error:
        raise CommandError(str(error)) from error


def _list_verifications(services: Services, project: str | None, *, as_json: bool) -> None:
    with services.database.read() as session:
        stored = None if project is None else find_project(session, project)
        if stored is None:
            raise CommandError("name an existing project with --project to list its verifications")
        stored_runs = verifications.list_verifications(session, stored.id)
    reports = [load_verification_report(services.database, run) for run in stored_runs]
    emit(reports, "\n".join(map(_format_verification, reports)) or "no verification yet", as_json=as_json)


def _format_report(services: Services, report: VerificationReport) -> Iterator[str]:
    yield from (f"{_format_scores(scores)}  {kind or 'no kind'}" for kind, scores in report["by_kind"].items())
    if report["before"] is not None:
        yield f"{_format_scores(report['before'])}  all, before"
    yield f"{_format_scores(report)}  all"
    if report.get("pass_at_k"):
        k = report["repetitions"]
        shares = f"{report['pass_at_k'][k]:.2f}, each time {report['pass_hat_k'][k]:.2f}"
        yield f"of the questions, right at least once in {k} answers {shares} (pass@{k}, pass^{k})"
    yield format_usage(report)
    if report["left"]:
        yield f"{report['left']:,} questions are left"
    if report["unavailable"]:
        yield f"{report['unavailable']:,} questions met an unavailable source; they are not in the list of repairs"
    failures = [failure for failure in list_failures(services, load_run(services, report["id"])) if failure.is_open]
    if failures:
        first = failures[0].outcome.question
        yield f"{len(failures):,} failures are in the annotators' list of repairs; first: {first}"


def _format_scores(report: VerificationReport) -> str:
    unanswerable = f"{report['cannot_be_answered']:,} cannot be answered, " if report["cannot_be_answered"] else ""
    counts = f"{unanswerable}{report['refused']:,} refused, {report['failed']:,} failed"
    return f"{format_means(report)}  {report['right']:5,} right of {report['questions']:5,}, {counts}"


def _format_verification(report: VerificationReport) -> str:
    again = f", again after {report['again_of']}" if report["again_of"] else ""
    name = f"{report['name']}: " if report["name"] else ""
    method = f"{name}{report['reasoner']}, {report['library'] or 'no library'}, {format_usage(report)}"
    return f"{report['id']}  {report['started_at']}  {_format_scores(report)}  {method}{again}"
