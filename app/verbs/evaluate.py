"""`showhow evaluate`: how well a reasoner answers questions whose answers are known; nothing of it is kept."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from app.resources import database, settings
from app.solving import Way, given
from app.verbs.output import CommandFailed, emit, progress
from app.verbs.stages import stoppable
from app.verbs.way import SECONDS_DEFAULT, K, LibraryName, Mode, Options, Reasoner, Seconds, Steps, limits_of, way_of
from bench.datasets import read_questions
from bench.evaluation import REFUSED, Scored, figures, sample, scored
from db.models import Project, Question
from db.projects import project_by_name
from db.verifications import gold_questions
from reasoners.keepers import InMemory
from reasoners.limits import Limits
from reasoners.run import Reins, run
from worlds.folder import world_folder
from worlds.questions.question_file import QUESTIONS

TOLD_EVERY = 10
MOST_FAILURES = 5
"""Reasons for failures that are told, those that most questions had."""


def evaluate(  # noqa: PLR0913 - every option of the verb is one parameter
    *,
    world: Annotated[str | None, typer.Option(help="Whose own questions are asked.")] = None,
    project: Annotated[str | None, typer.Option(help="Whose questions are asked, in its world.")] = None,
    reasoner: Reasoner = None,
    library: LibraryName = None,
    k: K = None,
    mode: Mode = None,
    option: Options = None,
    limit: Annotated[int | None, typer.Option(min=1, help="How many questions, evenly over their kinds.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed asks the same questions.")] = 0,
    steps: Steps = None,
    seconds: Seconds = SECONDS_DEFAULT,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Have a reasoner answer questions with known answers, and tell how many it gets right, by kind."""
    way = way_of(reasoner, library, k, mode, option)
    whose, questions = _questions(world, project)
    if not questions:
        raise CommandFailed(f"there is no question to ask in {world or project}")
    chosen = sample(questions, limit, seed)
    with stoppable("The evaluation was stopped; nothing of it is kept."):
        found = list(_answered(chosen, whose, way, limits_of(way, steps, None, seconds, None)))
    told = figures(found)
    emit(told, "\n".join(_lines(told)), as_json=as_json)


def _questions(world: str | None, project: str | None) -> tuple[Project, list[Question]]:
    """The questions, and the project whose world and tools they are asked with."""
    if (world is None) == (project is None):
        raise typer.BadParameter("name either a world with --world or a project with --project")
    if project is not None:
        with database().read() as session:
            found = project_by_name(session, project)
            if found is None:
                raise CommandFailed(f"there is no project {project!r}")
            return found, gold_questions(session, found.id)
    noun = Project(name=str(world), world=str(world))
    file = world_folder(settings().worlds, noun.world) / QUESTIONS
    if not file.is_file():
        raise CommandFailed(f"the world {world} has no questions of its own; give a project that has some")
    return noun, [
        Question(project_id=noun.id, position=place, text=each.text, kind=each.kind, gold_answers=each.gold_answers)
        for place, each in enumerate(read_questions(file, "jsonl"), 1)
    ]


def _answered(questions: Sequence[Question], project: Project, way: Way, limits: Limits) -> Iterator[Scored]:
    made = way.make(heard=False)
    failures: Counter[str] = Counter()
    for place, question in enumerate(questions, 1):
        ended = run(made, given(question, project, way).task, InMemory(), Reins(limits))
        if place % TOLD_EVERY == 0 or place == len(questions):
            progress(f"{place:,} of {len(questions):,} questions")
        if ended.ending not in ("answered", REFUSED):
            failures[str(ended.failure)] += 1
        yield scored(question, ended)
    for sentence, count in failures.most_common(MOST_FAILURES):
        progress(f"{count:,} failed: {sentence}")


def _lines(told: dict[str, Any]) -> Iterator[str]:
    for name, each in (*told["by_kind"].items(), ("all", told)):
        f1 = "    -" if each["f1_answered"] is None else f"{each['f1_answered']:.3f}"
        yield (
            f"F1 {each['f1']:.3f}, of the answered {f1}  {each['answered']:4,} answered, {each['refused']:4,} refused, "
            f"{each['failed']:4,} failed of {each['questions']:4,}  {name}"
        )
