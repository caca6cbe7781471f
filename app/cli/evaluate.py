"""`showhow evaluate`: how well a reasoner answers questions with gold answers; nothing is stored."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from app.cli.options import (
    DEFAULT_TIME_LIMIT,
    DemonstrationCountOption,
    LibraryOption,
    ReasonerOption,
    ReasonerSettingsOption,
    SelectionOption,
    StepLimitOption,
    TimeLimitOption,
    build_limits,
    parse_run_config,
)
from app.cli.output import CommandError, emit, fail_on_interrupt
from app.progress import print_count, print_progress
from app.services import services
from db.models import Project, Question
from db.projects import find_project
from db.verifications import list_gold_questions
from evaluation.datasets import read_questions
from evaluation.metrics import METRICS, format_means
from evaluation.runs import REFUSED, QuestionScore, sample_questions, score_outcome, summarize_scores
from fiction.questions.question_file import QUESTIONS_FILE
from runs.budget import RunLimits
from runs.preparation import RunConfig, prepare_task
from runs.recorders import MemoryRecorder
from runs.runner import RunControl, run_reasoner
from runs.services import Services
from worlds.folder import world_folder

PROGRESS_INTERVAL = 10
MAX_FAILURE_REASONS = 5
"""The most frequent reasons of failure that are printed."""


def evaluate(  # noqa: PLR0913 - every option of the verb is one parameter
    *,
    world: Annotated[str | None, typer.Option(help="Ask the questions that this generated world has.")] = None,
    project: Annotated[str | None, typer.Option(help="Ask the questions of this project, in its world.")] = None,
    reasoner: ReasonerOption = None,
    library: LibraryOption = None,
    k: DemonstrationCountOption = None,
    mode: SelectionOption = None,
    option: ReasonerSettingsOption = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Sample size, evenly over the kinds of questions; default: all.")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed of the sample; the same seed gives the same questions.")
    ] = 0,
    steps: StepLimitOption = None,
    seconds: TimeLimitOption = DEFAULT_TIME_LIMIT,
    as_json: Annotated[bool, typer.Option("--json", help=f"Print JSON with {', '.join(METRICS)}.")] = False,
) -> None:
    """Have a reasoner answer questions with gold answers, and print its scores by kind of question."""
    parts = services()
    config = parse_run_config(parts, reasoner, library, k, mode, option)
    owner, questions = _load_questions(parts, world, project)
    if not questions:
        raise CommandError(f"there is no question to ask in {world or project}")
    sample = sample_questions(questions, limit, seed)
    limits = build_limits(config, steps, None, seconds, None)
    with fail_on_interrupt("The evaluation was stopped; nothing of it is stored."):
        scores = list(_answer_questions(parts, sample, owner, config, limits))
    summary = summarize_scores(scores)
    emit(summary, "\n".join(_result_lines(summary)), as_json=as_json)


def _load_questions(parts: Services, world: str | None, project: str | None) -> tuple[Project, list[Question]]:
    """The questions, and the project whose world and tools they are asked with."""
    if (world is None) == (project is None):
        raise typer.BadParameter("name either a world with --world or a project with --project")
    if project is not None:
        with parts.database.read() as session:
            owner = find_project(session, project)
            if owner is None:
                raise CommandError(f"there is no project {project!r}")
            return owner, list_gold_questions(session, owner.id)
    owner = Project(name=str(world), world=str(world))
    file = world_folder(parts.settings.worlds_folder, owner.world) / QUESTIONS_FILE
    if not file.is_file():
        raise CommandError(f"the world {world} has no questions of its own; give a project that has some")
    return owner, [
        Question(project_id=owner.id, position=position, text=row.text, kind=row.kind, gold_answers=row.gold_answers)
        for position, row in enumerate(read_questions(file, "jsonl"), 1)
    ]


def _answer_questions(
    parts: Services, questions: Sequence[Question], project: Project, config: RunConfig, limits: RunLimits
) -> Iterator[QuestionScore]:
    reasoner = config.make_reasoner()
    failures: Counter[str] = Counter()
    for done, question in enumerate(questions, 1):
        task = prepare_task(parts, question, project, config).task
        outcome = run_reasoner(reasoner, task, MemoryRecorder(), RunControl(limits))
        if done % PROGRESS_INTERVAL == 0 or done == len(questions):
            print_count(done, len(questions), "questions")
        if outcome.ending not in ("answered", REFUSED):
            failures[str(outcome.failure)] += 1
        yield score_outcome(question, outcome)
    for reason, count in failures.most_common(MAX_FAILURE_REASONS):
        print_progress(f"{count:,} failed: {reason}")


def _result_lines(summary: dict[str, Any]) -> Iterator[str]:
    for name, group in (*summary["by_kind"].items(), ("all", summary)):
        yield (
            f"{format_means(group, decimals=3)}, F1 (answered only) {_format_score(group['f1_answered'])}  "
            f"{group['answered']:4,} answered, {group['refused']:4,} refused, "
            f"{group['failed']:4,} failed of {group['questions']:4,}  {name}"
        )


def _format_score(score: float | None) -> str:
    return "    -" if score is None else f"{score:.3f}"
