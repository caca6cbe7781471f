"""`showhow verify` runs a reasoner on questions with gold answers and queues its failures for repair.

`showhow worker` works on the verifications that are shared with workers, on any machine.
"""

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event
from typing import Annotated, Any

import typer

from showhow.app.cli.drawn_options import draw_options
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
    format_usage,
    load_figures,
    load_verification_report,
)
from showhow.evaluation.verification.repairs import list_failures
from showhow.evaluation.verification.worker import Worker, WorkerOptions
from showhow.option_fields import group, option
from showhow.runs.budget import MAX_CONCURRENT_QUESTIONS
from showhow.runs.process import current_worker_id
from showhow.runs.services import Services
from showhow.tasks import verification as tasks
from showhow.tasks.progress import print_progress
from showhow.tasks.verification import AskedRun, ContinueRun, FinishRepairs, VerifyQuestions, load_run

AsJson = Annotated[bool, typer.Option("--json", help=f"Print JSON with {', '.join(METRICS)}.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerRuns:
    """What is done with a verification that exists, as the verbs `runs` and `repair` do it."""

    go_on: str | None = option(None, "Continue this verification, as `runs continue`.", metavar="ID")
    again: str | None = option(None, "Ask its failures with the repairs, as `repair finish`.", metavar="ID")
    freeze_as: str | None = option(None, "With --again: the name of the library.", metavar="NAME")
    pause: str | None = option(None, "Begin no question of it, as `runs pause`.", metavar="ID")
    resume: str | None = option(None, "End its pause, as `runs resume`.", metavar="ID")
    list_all: bool = option(default=False, help="List the verifications of the project.", flag="--list")


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyArguments:
    """A new verification, or what is done with one that exists."""

    questions: VerifyQuestions = group(VerifyQuestions, "")
    former: FormerRuns = group(FormerRuns, "Verifications that exist")


@draw_options
def verify(arguments: VerifyArguments, *, as_json: AsJson = False) -> None:
    """Ask a project's questions and score the answers; the same command again continues an interrupted verification.

    The short form of an evaluation that is kept, whose failures annotators repair. The exit status is 1 while questions
    are left, as when a limit of all questions is reached.
    """
    services, request, former = current_services(), arguments.questions, arguments.former
    how: dict[str, Any] = {"totals": request.totals, "asking": request.asking, "retry": request.retry}
    if former.list_all:
        _list_verifications(services, request.project, as_json=as_json)
    elif former.pause is not None or former.resume is not None:
        run = load_run(services, str(former.pause or former.resume))
        at_once = request.asking.at_once
        change_concurrency(services, run, is_paused=former.pause is not None, concurrency=at_once)
    elif former.again is not None:
        repairs = FinishRepairs(run=former.again, freeze_as=former.freeze_as, **how)
        print_asked(services, tasks.finish_repairs(services, repairs), as_json=as_json)
    elif former.go_on is not None:
        if request.name is not None or request.note is not None:
            with services.database.begin() as session:
                name_run(session, load_run(services, former.go_on).id, title=request.name, note=request.note)
        asked = tasks.continue_run(services, ContinueRun(run=former.go_on, **how))
        print_asked(services, asked, as_json=as_json)
    elif (request.project is None) == (request.world is None):
        raise typer.BadParameter(
            "name a project with --project or a world with --world, or a verification with --again"
        )
    else:
        print_asked(services, tasks.verify(services, request), as_json=as_json)


def print_asked(services: Services, asked: AskedRun, *, as_json: bool) -> None:
    """Print the figures of a verification that was worked on; CommandError if questions are left."""
    if asked.is_detached:
        emit({"id": str(asked.run.id)}, f"workers ask the questions of verification {asked.run.id}", as_json=as_json)
        return
    print_report(services, asked.run, as_json=as_json)
    if asked.problem:
        raise CommandError(asked.problem)


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


def print_report(services: Services, run: Run, *, as_json: bool) -> None:
    """Print the figures of a verification."""
    report = load_verification_report(services.database, run) | {"before": _previous_report(services, run)}
    emit(report, "\n".join(_format_report(services, report)), as_json=as_json)


def _previous_report(services: Services, run: Run) -> VerificationReport | None:
    """The scores of the same questions in the previous verification; None for a first verification."""
    previous_id = run.spec.repeats
    return None if previous_id is None else load_figures(services.database, previous_id, asked_in=run.id)


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
