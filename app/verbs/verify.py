"""`showhow verify`: a reasoner over a project's questions with gold answers, its failures in the annotators' queue."""

import getpass
from collections.abc import Iterator
from threading import Event
from typing import Annotated
from uuid import UUID

import typer

from app import verifying
from app.repairs import failures, freeze_repairs
from app.resources import database
from app.verbs.output import CommandFailed, emit, progress
from app.verbs.stages import stoppable
from app.verbs.way import (
    SECONDS_DEFAULT,
    K,
    LibraryName,
    Mode,
    Money,
    Options,
    Reasoner,
    Seconds,
    Steps,
    Tokens,
    limits_of,
    way_of,
)
from app.verification_report import Report, figures, report_of
from app.verifying import Pace, Plan
from db import verifications
from db.models import Run
from db.projects import project_by_name
from fewshot_library.card import Leaking


def verify(  # noqa: PLR0913 - every option of the verb is one parameter
    *,
    project: Annotated[str | None, typer.Option(help="Whose questions are asked.")] = None,
    reasoner: Reasoner = None,
    library: LibraryName = None,
    k: K = None,
    mode: Mode = None,
    option: Options = None,
    limit: Annotated[int | None, typer.Option(min=1, help="How many questions, spread over all.")] = None,
    steps: Steps = None,
    tokens: Tokens = None,
    seconds: Seconds = SECONDS_DEFAULT,
    money: Money = None,
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
        _list(project, as_json=as_json)
        return
    if again is not None:
        run = _again(_id(again), freeze_as)
    elif go_on is not None:
        run = _known(_id(go_on))
    elif project is None:
        raise typer.BadParameter("name a project with --project, or a verification with --again")
    else:
        way = way_of(reasoner, library, k, mode, option)
        run = verifying.begin(Plan(project, way, limit, limits_of(way, steps, tokens, seconds, money)))
    stop = Event()
    progress(f"verification {run.id} over {len(verifications.question_ids(run)):,} questions")
    with stoppable("the verification was stopped; the same words again go on with it"):
        found = verifying.carry_on(run.id, Pace(at_once, most_money, retry), stop, _tell)
    report = report_of(run, found) | {"before": _before(run)}
    emit(report, "\n".join(_told(report)), as_json=as_json)


def _before(run: Run) -> Report | None:
    """The figures that these questions had the time before; None where they are asked for the first time."""
    earlier = run.configuration.get("again_of")
    if earlier is None:
        return None
    asked = set(verifications.question_ids(run))
    with database().read() as session:
        every = verifications.outcomes(session, verifications.verification(session, UUID(earlier)))
    return figures([each for each in every if each.question_id in asked])


def _tell(done: int, of: int) -> None:
    progress(f"{done:,} of {of:,} questions")


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as wrong:
        raise CommandFailed(f"{text!r} is no id of a verification; `showhow verify --list` has them") from wrong


def _known(run_id: UUID) -> Run:
    with database().read() as session:
        return verifications.verification(session, run_id)


def _again(run_id: UUID, name: str | None) -> Run:
    run = _known(run_id)
    try:
        return verifying.begin_again(run, lambda: freeze_repairs(run, getpass.getuser(), name))
    except Leaking as leaking:
        raise CommandFailed(str(leaking)) from leaking


def _list(project: str | None, *, as_json: bool) -> None:
    with database().read() as session:
        found = None if project is None else project_by_name(session, project)
        if found is None:
            raise CommandFailed("name a project that there is with --project, to list its verifications")
        every = [
            report_of(run, verifications.outcomes(session, run))
            for run in verifications.verifications(session, found.id)
        ]
    emit(every, "\n".join(_line(each) for each in every) or "no verification yet", as_json=as_json)


def _told(report: Report) -> Iterator[str]:
    yield from (f"{_figures(kind)}  {name or 'no kind'}" for name, kind in report["by_kind"].items())
    if report["before"] is not None:
        yield f"{_figures(report['before'])}  all, before"
    yield f"{_figures(report)}  all"
    if report["left"]:
        yield f"{report['left']:,} questions are left; the same words again go on with them"
    left = [each for each in failures(_known(UUID(report["id"]))) if each.open]
    if left:
        yield f"{len(left):,} failures are in the annotators' queue; first: {left[0].outcome.question}"


def _figures(told: Report) -> str:
    f1 = "   -" if told["f1"] is None else f"{told['f1']:.2f}"
    rest = f"{told['refused']:,} refused, {told['failed']:,} failed"
    return f"F1 {f1}  {told['right']:5,} right of {told['questions']:5,}, {rest}"


def _line(report: Report) -> str:
    again = f", again after {report['again_of']}" if report["again_of"] else ""
    way = f"{report['reasoner']}, {report['library'] or 'no library'}"
    return f"{report['id']}  {report['started_at']}  {_figures(report)}  {way}{again}"
