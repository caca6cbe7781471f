"""`showhow setup`: everything a newcomer needs to annotate at once; what is there already is left as it is.

The default world and its project, made once.
"""

from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files

from app.cli.output import CommandError, print_progress
from app.services import services
from db import libraries, projects
from db.database import Conflict
from db.merge import merge_trace
from db.models import Project
from db.trace_record import TraceRecord
from evaluation.datasets import read_questions
from evaluation.datasets.record import QuestionRecord
from evaluation.gold_traces.demonstrations import make_demonstrations
from evaluation.gold_traces.world import open_gold_world
from fiction.generator.build import generate_world
from fiction.questions.question_file import QUESTIONS_FILE
from fiction.universe.options import GenerationOptions
from settings import DEFAULT_LIBRARY
from worlds.folder import WORLD_FILE, WorldExists

WORLD_OPTIONS = GenerationOptions(people=1000, seed=1, depth=6, per_template=4, split="text=50,graph=35,web=15")
"""A thousand people, of whose facts text, graph and web each hold a part, and three hundred questions."""
DEMONSTRATION_COUNT = 20


def make_default_world(world: str, project: str) -> None:
    """Build the world and the project with its questions and demonstrations; what is there already stays."""
    if not (services().settings.worlds_folder / world / WORLD_FILE).is_file():
        _build_world(world)
    with services().database.read() as session:
        known = projects.find_project(session, project) is not None
    if known:
        return
    guidelines = files("app").joinpath("guidelines.md").read_text(encoding="utf-8")
    noun = Project(name=project, world=world, guidelines=guidelines)
    asked = read_questions(services().settings.worlds_folder / world / QUESTIONS_FILE, "jsonl")
    print_progress("answering some of its questions for demonstrations ...")
    shown = list(make_demonstrations(asked, open_gold_world(services(), world), noun, DEMONSTRATION_COUNT))
    try:
        _add_project(noun, asked, shown)
    except Conflict:
        # Likewise the other one's project, unless it is something else that does not fit.
        with services().database.read() as session:
            if projects.find_project(session, project) is None:
                raise
    else:
        people = f"{WORLD_OPTIONS.people:,} people"
        print_progress(
            f"made the world {world} ({people}) and the project {project}: {len(asked)} questions, "
            f"{len(shown)} generated demonstrations"
        )


def _build_world(world: str) -> None:
    folder = services().settings.worlds_folder / world
    try:
        generate_world(services().settings.worlds_folder, world, WORLD_OPTIONS)
    except WorldExists as there:
        # Where two begin at once the other one's world is the same.
        if not (folder / WORLD_FILE).is_file():
            raise CommandError(f"{folder} has no {WORLD_FILE}, so it is no whole world; move it away") from there


def _add_project(project: Project, asked: Sequence[QuestionRecord], shown: Sequence[TraceRecord]) -> None:
    """The project, its questions and demonstrations in one transaction: all are there, or none."""
    with services().database.begin() as session:
        if projects.find_project(session, project.name) is None:
            made = projects.create_project(session, project.name, project.world, guidelines=project.guidelines)
            projects.add_questions(session, made.id, asked)
            for record in shown:
                merge_trace(session, record)


DEFAULT_WORLD = "default"
DEFAULT_PROJECT = "Fictional people"


def setup() -> None:
    """Prepare the database and the default world with its questions; safe to repeat."""
    prepare()
    print_progress(f"ready: {services().settings.home}")


def prepare() -> None:
    """Bring the database up to date; make the default world and its project unless they are there."""
    with services().database.read() as session:
        known = projects.find_project(session, DEFAULT_PROJECT) is not None
        frozen = bool(libraries.list_versions(session, DEFAULT_LIBRARY))
    if not known or not (services().settings.worlds_folder / DEFAULT_WORLD / WORLD_FILE).is_file():
        print_progress("preparing the default world (once) ...")

        make_default_world(DEFAULT_WORLD, DEFAULT_PROJECT)
    if not frozen:
        _freeze_default()


def _freeze_default() -> None:
    """Freeze the demonstrations that were generated, so that questions can be answered with them at once."""
    from fewshot_library.card import FreezeOptions  # noqa: PLC0415 - likewise

    note = "made by really running the tools along the facts of the default world"
    with suppress(Conflict):  # Nothing is left to freeze where somebody has returned them all.
        services().freeze_version(
            DEFAULT_LIBRARY,
            libraries.DemonstrationFilter(project=DEFAULT_PROJECT, by=libraries.MODELS),
            FreezeOptions(by="setup", note=note),
        )
