"""`showhow evaluate`: scores a reasoner's answers to questions with gold answers; the run is kept with --keep only."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from threading import Event
from typing import Annotated, Any

import typer

from showhow.app.cli.drawn_options import draw_options
from showhow.app.cli.output import CommandError, emit
from showhow.app.services import current_services
from showhow.db.models import Run
from showhow.db.questions.projects import find_project
from showhow.db.run_spec import RunSpec
from showhow.evaluation.metrics import METRICS, format_means
from showhow.evaluation.scoring.scoring import (
    REFUSED,
    QuestionScore,
    format_usage,
    summarize_calls,
    summarize_refusals,
    summarize_retrieved,
    summarize_scores,
    summarize_usage,
)
from showhow.evaluation.shared_model import TotalLimits
from showhow.evaluation.value_format import format_seconds
from showhow.evaluation.verification.verify import (
    DEFAULT_CONCURRENCY,
    Execution,
    ExecutionOptions,
    NoQuestion,
    add_world_project,
    copy_project,
    open_temporary_store,
    start_verification,
)
from showhow.option_fields import group, option
from showhow.runs.budget import MAX_CONCURRENT_QUESTIONS
from showhow.runs.preparation import warn_of_tested_world
from showhow.runs.services import Services
from showhow.tasks.method import PlayedMethod, QuestionLimits, QuestionSample, build_spec, require_demonstrations
from showhow.tasks.progress import print_count, print_progress
from showhow.tasks.task import fail_on_interrupt

PROGRESS_INTERVAL = 10
MAX_REASONS = 5
"""The most frequent reasons of failure, and of refusal, that are printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateQuestions:
    """Questions with gold answers, how they are answered, and whether the run is kept."""

    world: str | None = option(None, "Ask the questions of this generated world.")
    project: str | None = option(None, "Ask the questions of this project, in its world.")
    method: PlayedMethod = group(PlayedMethod, "Reasoner and model")
    sample: QuestionSample = group(QuestionSample, "Choice of questions")
    limits: QuestionLimits = group(QuestionLimits, "Limits of each question")
    totals: TotalLimits = group(TotalLimits, "Limits of all questions together")
    at_once: int = option(
        DEFAULT_CONCURRENCY, "Number of questions answered in parallel.", minimum=1, maximum=MAX_CONCURRENT_QUESTIONS
    )
    keep: bool = option(
        default=False,
        help="Store the run with its traces and scores as a verification, for the pages Verify and Compare.",
    )


@draw_options
def evaluate(
    request: EvaluateQuestions,
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help=f"Print JSON with the model, its usage, {', '.join(METRICS)}.")
    ] = False,
) -> None:
    """Have a reasoner answer questions with gold answers, and print its scores by kind of question.

    Questions that a limit or the server of the model left unfinished are counted as left, not as failed; the exit
    status is then 1.
    """
    services, started, keep = current_services(), time.monotonic(), request.keep
    spec = request.sample.choose(build_spec(services, request.method, request.limits.build()))
    with nullcontext(services) if keep else open_temporary_store(services) as recording:
        run = _start_run(services, recording, request.world, request.project, spec)
        if warning := warn_of_tested_world(services, spec, run.world):
            print_progress(warning)
        how_to_continue = "its results are not stored, and --keep would store them"
        if keep:
            print_progress(f"the answers are stored in verification {run.id}")
            how_to_continue = f"`showhow verify --go-on {run.id}` continues it"
        options = ExecutionOptions(request.at_once, request.totals, on_note=print_progress)
        execution = Execution(recording, run.id, options, Event())
        with fail_on_interrupt(f"The evaluation was stopped; {how_to_continue}."):
            scores = list(_count_results(execution))
    left = execution.total - len(scores)
    if not scores:
        raise CommandError(f"no question was answered: {execution.reason}; {how_to_continue}")
    model = {"reasoner": run.reasoner, "model": run.spec.model, "profile": run.spec.profile, "skills": run.spec.skills}
    counts = summarize_scores(scores) | {"refusals": summarize_refusals(scores), "left": left}
    spent = summarize_usage(execution.used) | {"seconds": round(time.monotonic() - started, 3)}
    summary = (
        model
        | counts
        | spent
        | summarize_calls(scores)
        | summarize_retrieved(scores)
        | ({"run": str(run.id)} if keep else {})
    )
    emit(summary, "\n".join(_result_lines(summary)), as_json=as_json)
    if left:
        raise CommandError(f"{left:,} questions are left: {execution.reason}; {how_to_continue}")


def _start_run(services: Services, recording: Services, world: str | None, project: str | None, spec: RunSpec) -> Run:
    """Start a run over the questions of a project, or of a world, in the store where it is recorded."""
    if (world is None) == (project is None):
        raise typer.BadParameter("name either a world with --world or a project with --project")
    if project is None:
        project = add_world_project(recording, str(world)).name
    else:
        with services.database.read() as session:
            if find_project(session, project) is None:
                raise CommandError(f"there is no project {project!r}")
        if recording is not services:
            copy_project(services, recording, project)
    require_demonstrations(services, spec)
    try:
        return start_verification(recording, project, spec, goes_on=False)
    except NoQuestion as error:
        raise CommandError(f"there is no question to ask in {world or project}") from error


def _count_results(execution: Execution) -> Iterator[QuestionScore]:
    """The results, with progress and the most frequent reasons of failure on stderr."""
    failures: Counter[str] = Counter()
    for done, score in enumerate(execution.answer(), 1):
        if done % PROGRESS_INTERVAL == 0 or done == execution.total:
            print_count(done, execution.total, "questions")
        if score.ending not in ("answered", REFUSED):
            failures[str(score.failure)] += 1
        yield score
    for reason, count in failures.most_common(MAX_REASONS):
        print_progress(f"{count:,} failed: {reason}")


def _result_lines(summary: dict[str, Any]) -> Iterator[str]:
    for name, scores in (*summary["by_kind"].items(), ("all", summary)):
        yield (
            f"{format_means(scores, decimals=3)}, F1 (answered only) {_format_score(scores['f1_answered'])}  "
            f"{scores['answered'] - scores['cannot_be_answered']:4,} answered, "
            f"{scores['cannot_be_answered']:4,} cannot be answered, {scores['refused']:4,} refused, "
            f"{scores['failed']:4,} failed of {scores['questions']:4,}  {name}"
        )
    for reason, count in list(summary["refusals"].items())[:MAX_REASONS]:
        yield f"{count:4,} refused: {reason}"
    if "f1_from_retrieved" in summary:
        yield f"F1 {summary['f1_from_retrieved']:.3f} from what was retrieved alone, without the rest of the gold facts"
        for reason, count in summary["not_retrieved"].items():
            yield f"{count:4,} lack: {reason}"
    if summary["left"]:
        yield f"{summary['left']:,} questions are left unanswered and are not counted"
    if "run" in summary:
        yield f"stored as verification {summary['run']}: see the pages Verify and Compare, or `showhow compare`"
    yield f"{summary['reasoner']}, {format_usage(summary)}, {format_seconds(summary['seconds'])}"


def _format_score(score: float | None) -> str:
    return "    -" if score is None else f"{score:.3f}"
