"""`showhow verify`: runs a reasoner on a project's questions with gold answers and queues its failures for repair."""

import getpass
from collections.abc import Iterator
from dataclasses import replace
from threading import Event
from typing import Annotated
from uuid import UUID

import typer

from app.cli.options import (
    DEFAULT_TIME_LIMIT,
    ConcurrencyOption,
    CostLimitOption,
    DemonstrationCountOption,
    LibraryOption,
    ModelCallLimitOption,
    ProfileOption,
    ReasonerOption,
    ReasonerSettingsOption,
    RetrievalLimitOption,
    SelectionOption,
    StepLimitOption,
    TimeLimitOption,
    TokenLimitOption,
    TotalCostLimitOption,
    TotalTimeLimitOption,
    TotalTokenLimitOption,
    build_limits,
    parse_run_config,
)
from app.cli.output import CommandError, emit, fail_on_interrupt
from app.progress import print_count, print_progress
from app.services import services
from db import runs, verifications
from db.models import Run
from db.projects import find_project
from db.trace_configuration import MODEL_SKILLS, TraceConfiguration
from evaluation.metrics import METRICS, format_means
from evaluation.repairs import freeze_repairs, list_failures
from evaluation.scoring import (
    VerificationReport,
    describe_power,
    format_usage,
    load_figures,
    load_verification_report,
)
from evaluation.shared_model import TotalLimits
from evaluation.skill_sources import SKILL_CHOICES, parse_skill_source
from evaluation.verify import (
    ExecutionOptions,
    VerificationPlan,
    run_verification,
    start_repair_verification,
    start_verification,
)
from fewshot_library.library import LeakageError
from runs.budget import RunLimits
from runs.services import Services


def verify(  # noqa: PLR0913 - every option of the verb is one parameter
    *,
    project: Annotated[str | None, typer.Option(help="Ask the questions of this project.")] = None,
    reasoner: ReasonerOption = None,
    library: LibraryOption = None,
    k: DemonstrationCountOption = None,
    mode: SelectionOption = None,
    option: ReasonerSettingsOption = None,
    profile: ProfileOption = None,
    skills: Annotated[
        str, typer.Option(help=f"What replies to the skills of a reasoner: {SKILL_CHOICES}.")
    ] = MODEL_SKILLS,
    limit: Annotated[int | None, typer.Option(min=1, help="Sample size, drawn evenly from all questions.")] = None,
    steps: StepLimitOption = None,
    tokens: TokenLimitOption = None,
    seconds: TimeLimitOption = DEFAULT_TIME_LIMIT,
    money: CostLimitOption = None,
    model_calls: ModelCallLimitOption = None,
    retrievals: RetrievalLimitOption = None,
    at_once: ConcurrencyOption = 2,
    most_money: TotalCostLimitOption = None,
    most_tokens: TotalTokenLimitOption = None,
    most_seconds: TotalTimeLimitOption = None,
    repetitions: Annotated[
        int, typer.Option(min=1, max=100, help="Ask each question so many times, and report pass@k and pass^k.")
    ] = 1,
    retry: Annotated[
        bool, typer.Option("--retry", help="Ask again the questions that failed or reached a limit.")
    ] = False,
    go_on: Annotated[str | None, typer.Option(metavar="ID", help="Continue this verification.")] = None,
    again: Annotated[
        str | None, typer.Option(metavar="ID", help="Freeze the repairs of a verification and ask its failures again.")
    ] = None,
    freeze_as: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --again: the name of the library.")
    ] = None,
    pause: Annotated[
        str | None, typer.Option(metavar="ID", help="Have the process that works on a verification begin no question.")
    ] = None,
    resume: Annotated[
        str | None, typer.Option(metavar="ID", help="End its pause; --at-once changes its questions at the same time.")
    ] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the verifications of the project.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help=f"Print JSON with {', '.join(METRICS)}.")] = False,
) -> None:
    """Ask a project's questions and score the answers; the same command again continues an interrupted verification.

    With --again the approved repairs of a verification's failures are frozen as the next version of the library, and
    the failures are asked again with it.
    """
    parts = services()
    if list_all:
        _list_verifications(parts, project, as_json=as_json)
        return
    if pause is not None or resume is not None:
        _change_concurrency(parts, _parse_run_id(str(pause or resume)), None if pause is not None else at_once)
        return
    if again is not None:
        run = _start_repairs(parts, _parse_run_id(again), freeze_as)
    elif go_on is not None:
        run = _load_run(parts, _parse_run_id(go_on))
    elif project is None:
        raise typer.BadParameter("name a project with --project, or a verification with --again")
    else:
        uses_model = parse_skill_source(skills) is None
        config = parse_run_config(parts, reasoner, library, k, mode, option, profile, uses_model=uses_model)
        config = replace(config, skills=skills)
        limits = build_limits(config, RunLimits(steps, tokens, seconds, money, model_calls, retrievals))
        run = start_verification(parts, VerificationPlan(project, config, limit, limits, repetitions))
    totals = TotalLimits(most_money, most_tokens, most_seconds)
    _execute(parts, run, ExecutionOptions(at_once, totals, retry, print_progress), as_json=as_json)


def _change_concurrency(parts: Services, run_id: UUID, concurrency: int | None) -> None:
    """Pause the verification, or have it work on so many questions at the same time."""
    run = _load_run(parts, run_id)
    if run.finished_at is not None:
        raise CommandError("this verification is finished; there is nothing to pause or to resume")
    with parts.database.begin() as session:
        runs.pause_run(session, run.id, is_paused=concurrency is None)
        if concurrency is not None:
            runs.set_concurrency(session, run.id, concurrency)
    change = "begins no further question" if concurrency is None else f"works on {concurrency:,} questions at a time"
    print_progress(f"the process of verification {run.id} {change}")


def _execute(parts: Services, run: Run, options: ExecutionOptions, *, as_json: bool) -> None:
    """Ask the questions that are left, and print the report."""
    count = load_figures(parts.database, run.id)["questions"]
    print_progress(f"verification {run.id} over {count:,} questions with {run.model or 'no model'}")
    print_progress(describe_power(count // TraceConfiguration.from_json(run.configuration).repetitions))
    with fail_on_interrupt("the verification was stopped; the same command continues it"):
        run_verification(parts, run.id, options, Event(), _print_progress)
    report = load_verification_report(parts.database, run) | {"before": _previous_report(parts, run)}
    emit(report, "\n".join(_format_report(parts, report)), as_json=as_json)


def _previous_report(parts: Services, run: Run) -> VerificationReport | None:
    """The scores of the same questions in the previous verification; None for a first verification."""
    previous_id = run.configuration.get("again_of")
    if previous_id is None:
        return None
    return load_figures(parts.database, UUID(previous_id), asked_in=run.id)


def _print_progress(done: int, total: int) -> None:
    print_count(done, total, "questions")


def _parse_run_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise CommandError(f"{text!r} is not the id of a verification; `showhow verify --list` lists them") from error


def _load_run(parts: Services, run_id: UUID) -> Run:
    with parts.database.read() as session:
        return verifications.find_verification(session, run_id)


def _start_repairs(parts: Services, run_id: UUID, name: str | None) -> Run:
    run = _load_run(parts, run_id)
    try:
        return start_repair_verification(parts, run, lambda: freeze_repairs(parts, run, getpass.getuser(), name))
    except LeakageError as error:
        raise CommandError(str(error)) from error


def _list_verifications(parts: Services, project: str | None, *, as_json: bool) -> None:
    with parts.database.read() as session:
        stored = None if project is None else find_project(session, project)
        if stored is None:
            raise CommandError("name an existing project with --project to list its verifications")
        stored_runs = verifications.list_verifications(session, stored.id)
    reports = [load_verification_report(parts.database, run) for run in stored_runs]
    emit(reports, "\n".join(map(_format_verification, reports)) or "no verification yet", as_json=as_json)


def _format_report(parts: Services, report: VerificationReport) -> Iterator[str]:
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
        yield f"{report['left']:,} questions are left; the same command continues with them"
    if report["unavailable"]:
        yield f"{report['unavailable']:,} questions met an unavailable source; they are not in the annotators' queue"
    failures = [failure for failure in list_failures(parts, _load_run(parts, UUID(report["id"]))) if failure.is_open]
    if failures:
        yield f"{len(failures):,} failures are in the annotators' queue; first: {failures[0].outcome.question}"


def _format_scores(report: VerificationReport) -> str:
    counts = f"{report['refused']:,} refused, {report['failed']:,} failed"
    return f"{format_means(report)}  {report['right']:5,} right of {report['questions']:5,}, {counts}"


def _format_verification(report: VerificationReport) -> str:
    again = f", again after {report['again_of']}" if report["again_of"] else ""
    method = f"{report['reasoner']}, {report['library'] or 'no library'}, {format_usage(report)}"
    return f"{report['id']}  {report['started_at']}  {_format_scores(report)}  {method}{again}"
