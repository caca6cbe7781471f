"""`showhow evaluate`: how well a reasoner answers questions whose answers are known; nothing of it is kept."""

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
from app.cli.output import CommandError, emit, fail_on_interrupt, print_progress
from app.services import services
from db.models import Project, Question
from db.projects import find_project
from db.verifications import list_gold_questions
from evaluation.datasets import read_questions
from evaluation.runs import REFUSED, QuestionScore, sample_questions, score_outcome, summarize_scores
from fiction.questions.question_file import QUESTIONS_FILE
from runs.budget import RunLimits
from runs.preparation import RunConfig, prepare_task
from runs.recorders import MemoryRecorder
from runs.runner import RunControl, run_reasoner
from worlds.folder import world_folder

PROGRESS_INTERVAL = 10
MAX_FAILURE_REASONS = 5
"""Reasons for failures that are told, those that most questions had."""


def evaluate(  # noqa: PLR0913 - every option of the verb is one parameter
    *,
    world: Annotated[str | None, typer.Option(help="Whose own questions are asked.")] = None,
    project: Annotated[str | None, typer.Option(help="Whose questions are asked, in its world.")] = None,
    reasoner: ReasonerOption = None,
    library: LibraryOption = None,
    k: DemonstrationCountOption = None,
    mode: SelectionOption = None,
    option: ReasonerSettingsOption = None,
    limit: Annotated[int | None, typer.Option(min=1, help="How many questions, evenly over their kinds.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed asks the same questions.")] = 0,
    steps: StepLimitOption = None,
    seconds: TimeLimitOption = DEFAULT_TIME_LIMIT,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Have a reasoner answer questions with known answers, and tell how many it gets right, by kind."""
    way = parse_run_config(reasoner, library, k, mode, option)
    whose, questions = _load_questions(world, project)
    if not questions:
        raise CommandError(f"there is no question to ask in {world or project}")
    chosen = sample_questions(questions, limit, seed)
    with fail_on_interrupt("The evaluation was stopped; nothing of it is kept."):
        found = list(_answer_questions(chosen, whose, way, build_limits(way, steps, None, seconds, None)))
    told = summarize_scores(found)
    emit(told, "\n".join(_result_lines(told)), as_json=as_json)


def _load_questions(world: str | None, project: str | None) -> tuple[Project, list[Question]]:
    """The questions, and the project whose world and tools they are asked with."""
    if (world is None) == (project is None):
        raise typer.BadParameter("name either a world with --world or a project with --project")
    if project is not None:
        with services().database.read() as session:
            found = find_project(session, project)
            if found is None:
                raise CommandError(f"there is no project {project!r}")
            return found, list_gold_questions(session, found.id)
    noun = Project(name=str(world), world=str(world))
    file = world_folder(services().settings.worlds_folder, noun.world) / QUESTIONS_FILE
    if not file.is_file():
        raise CommandError(f"the world {world} has no questions of its own; give a project that has some")
    return noun, [
        Question(project_id=noun.id, position=place, text=each.text, kind=each.kind, gold_answers=each.gold_answers)
        for place, each in enumerate(read_questions(file, "jsonl"), 1)
    ]


def _answer_questions(
    questions: Sequence[Question], project: Project, way: RunConfig, limits: RunLimits
) -> Iterator[QuestionScore]:
    made = way.make_reasoner(heard=False)
    failures: Counter[str] = Counter()
    for place, question in enumerate(questions, 1):
        ended = run_reasoner(
            made, prepare_task(services(), question, project, way).task, MemoryRecorder(), RunControl(limits)
        )
        if place % PROGRESS_INTERVAL == 0 or place == len(questions):
            print_progress(f"{place:,} of {len(questions):,} questions")
        if ended.ending not in ("answered", REFUSED):
            failures[str(ended.failure)] += 1
        yield score_outcome(question, ended)
    for sentence, count in failures.most_common(MAX_FAILURE_REASONS):
        print_progress(f"{count:,} failed: {sentence}")


def _result_lines(told: dict[str, Any]) -> Iterator[str]:
    for name, each in (*told["by_kind"].items(), ("all", told)):
        f1 = "    -" if each["f1_answered"] is None else f"{each['f1_answered']:.3f}"
        yield (
            f"F1 {each['f1']:.3f}, of the answered {f1}  {each['answered']:4,} answered, {each['refused']:4,} refused, "
            f"{each['failed']:4,} failed of {each['questions']:4,}  {name}"
        )
