"""`showhow verify`: a reasoner over a project's questions with gold answers, its failures in the annotators' queue."""

import getpass
from collections.abc import Iterator
from threading import Event
from typing import Annotated
from uuid import UUID

import typer

from app.cli.options import (
    DEFAULT_TIME_LIMIT,
    CostLimitOption,
    DemonstrationCountOption,
    LibraryOption,
    ReasonerOption,
    ReasonerSettingsOption,
    SelectionOption,
    StepLimitOption,
    TimeLimitOption,
    TokenLimitOption,
    build_limits,
    parse_run_config,
)
from app.cli.output import CommandError, emit, fail_on_interrupt, print_progress
from app.services import services
from db import verifications
from db.models import Run
from db.projects import find_project
from evaluation import verify as verifying
from evaluation.repairs import freeze_repairs, list_failures
from evaluation.verification_report import VerificationReport, build_verification_report, summarize_outcomes
from evaluation.verify import ExecutionOptions, VerificationPlan
from fewshot_library.card import LeakageError


def verify(  # noqa: PLR0913 - every option of the verb is one parameter
    *,
    project: Annotated[str | None, typer.Option(help="Whose questions are asked.")] = None,
    reasoner: ReasonerOption = None,
    library: LibraryOption = None,
    k: DemonstrationCountOption = None,
    mode: SelectionOption = None,
    option: ReasonerSettingsOption = None,
    limit: Annotated[int | None, typer.Option(min=1, help="How many questions, spread over all.")] = None,
    steps: StepLimitOption = None,
    tokens: TokenLimitOption = None,
    seconds: TimeLimitOption = DEFAULT_TIME_LIMIT,
    money: CostLimitOption = None,
    at_once: Annotated[int, typer.Option(min=1, max=64, help="Questions that are answered at the same time.")] = 2,
    most_money: Annotated[float | None, typer.Option(min=0, help="US dollars of the whole verification.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Try failed ones again, and those at a limit.")] = False,
    go_on: Annotated[str | None, typer.Option(metavar="ID", help="Go on with this verification.")] = None,
    again: Annotated[str | None, typer.Option(metavar="ID", help="The failures of a verification, repaired.")] = None,
    freeze_as: Annotated[str | None, typer.Option(metavar="NAME", help="With --again: the library's name.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the project's verifications.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Ask a project's questions and score the answers; the same words again go on where it was broken off.

    With --again the approved repairs of a verification's failures are frozen as the library's next version, and the
    failures are asked again with it.
    """
    if listed:
        _list_verifications(project, as_json=as_json)
        return
    if again is not None:
        run = _start_repair_verification(_parse_run_id(again), freeze_as)
    elif go_on is not None:
        run = _load_run(_parse_run_id(go_on))
    elif project is None:
        raise typer.BadParameter("name a project with --project, or a verification with --again")
    else:
        way = parse_run_config(reasoner, library, k, mode, option)
        run = verifying.start_verification(
            services(), VerificationPlan(project, way, limit, build_limits(way, steps, tokens, seconds, money))
        )
    stop = Event()
    print_progress(f"verification {run.id} over {len(verifications.verified_question_ids(run)):,} questions")
    with fail_on_interrupt("the verification was stopped; the same words again go on with it"):
        found = verifying.run_verification(
            services(), run.id, ExecutionOptions(at_once, most_money, retry), stop, _print_progress
        )
    report = build_verification_report(run, found) | {"before": _previous_figures(run)}
    emit(report, "\n".join(_format_report(report)), as_json=as_json)


def _previous_figures(run: Run) -> VerificationReport | None:
    """The figures that these questions had the time before; None where they are asked for the first time."""
    earlier = run.configuration.get("again_of")
    if earlier is None:
        return None
    asked = set(verifications.verified_question_ids(run))
    with services().database.read() as session:
        every = verifications.list_outcomes(session, verifications.find_verification(session, UUID(earlier)))
    return summarize_outcomes([each for each in every if each.question_id in asked])


def _print_progress(done: int, of: int) -> None:
    print_progress(f"{done:,} of {of:,} questions")


def _parse_run_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as wrong:
        raise CommandError(f"{text!r} is no id of a verification; `showhow verify --list` has them") from wrong


def _load_run(run_id: UUID) -> Run:
    with services().database.read() as session:
        return verifications.find_verification(session, run_id)


def _start_repair_verification(run_id: UUID, name: str | None) -> Run:
    run = _load_run(run_id)
    try:
        return verifying.start_repair_verification(
            services(), run, lambda: freeze_repairs(services(), run, getpass.getuser(), name)
        )
    except LeakageError as leaking:
        raise CommandError(str(leaking)) from leaking


def _list_verifications(project: str | None, *, as_json: bool) -> None:
    with services().database.read() as session:
        found = None if project is None else find_project(session, project)
        if found is None:
            raise CommandError("name a project that there is with --project, to list its verifications")
        every = [
            build_verification_report(run, verifications.list_outcomes(session, run))
            for run in verifications.list_verifications(session, found.id)
        ]
    emit(every, "\n".join(_format_verification(each) for each in every) or "no verification yet", as_json=as_json)


def _format_report(report: VerificationReport) -> Iterator[str]:
    yield from (f"{_format_figures(kind)}  {name or 'no kind'}" for name, kind in report["by_kind"].items())
    if report["before"] is not None:
        yield f"{_format_figures(report['before'])}  all, before"
    yield f"{_format_figures(report)}  all"
    if report["left"]:
        yield f"{report['left']:,} questions are left; the same words again go on with them"
    left = [each for each in list_failures(services(), _load_run(UUID(report["id"]))) if each.is_open]
    if left:
        yield f"{len(left):,} failures are in the annotators' queue; first: {left[0].outcome.question}"


def _format_figures(told: VerificationReport) -> str:
    f1 = "   -" if told["f1"] is None else f"{told['f1']:.2f}"
    rest = f"{told['refused']:,} refused, {told['failed']:,} failed"
    return f"F1 {f1}  {told['right']:5,} right of {told['questions']:5,}, {rest}"


def _format_verification(report: VerificationReport) -> str:
    again = f", again after {report['again_of']}" if report["again_of"] else ""
    way = f"{report['reasoner']}, {report['library'] or 'no library'}"
    return f"{report['id']}  {report['started_at']}  {_format_figures(report)}  {way}{again}"
