"""`showhow setup`: prepares the database, the default world and its project; existing parts stay as they are."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path

from filelock import FileLock, Timeout

from showhow.app.cli.output import CommandError
from showhow.app.services import current_services
from showhow.db.database import Conflict, Database
from showhow.db.models import Project
from showhow.db.questions import projects
from showhow.db.questions.question_record import QuestionRecord
from showhow.db.storage.merge import TraceMerger
from showhow.db.traces import libraries
from showhow.db.traces.trace_record import TraceRecord
from showhow.evaluation.datasets import read_questions
from showhow.fewshot_library.library import FreezeOptions
from showhow.fiction.questions.question_file import QUESTIONS_FILE
from showhow.fiction.universe.options import GenerationOptions
from showhow.runs.services import Services
from showhow.settings import DEFAULT_LIBRARY
from showhow.tasks.progress import print_progress
from showhow.worlds.folder import WORLD_FILE, WorldExists

DEFAULT_WORLD = "default"
DEFAULT_PROJECT = "Fictional people"
WORLD_OPTIONS = GenerationOptions(people=1000, seed=1, depth=6, per_template=4, split="text=50,graph=35,web=15")
"""A thousand people, whose facts are split between text, graph and web, and three hundred questions."""
DEMONSTRATION_COUNT = 60


def setup() -> None:
    """Prepare the database and the default world with its questions; safe to repeat."""
    services = current_services()
    prepare(services)
    print_progress(f"ready: {services.settings.home}")


def prepare(services: Services) -> None:
    """Upgrade the database; make the default world, its project and its library unless they exist."""
    is_stored = _has_project(services.database, DEFAULT_PROJECT) and _has_library(services.database)
    if is_stored and (services.settings.worlds_folder / DEFAULT_WORLD / WORLD_FILE).is_file():
        return
    with _only_setup(services.settings.home):
        make_default_world(services, DEFAULT_WORLD, DEFAULT_PROJECT)
        if not _has_library(services.database):
            _freeze_default(services)


def _has_project(database: Database, name: str) -> bool:
    with database.read() as session:
        return projects.find_project(session, name) is not None


def _has_library(database: Database) -> bool:
    with database.read() as session:
        return bool(libraries.list_versions(session, DEFAULT_LIBRARY))


@contextmanager
def _only_setup(home: Path) -> Iterator[None]:
    """Wait for another process that prepares this home; what it has made is not made twice."""
    lock = FileLock(home / "setup.lock", mode=0o600)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        print_progress("waiting for another process that prepares the default world ...")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def make_default_world(services: Services, world: str, project: str) -> None:
    """Build the world and the project with its questions and demonstrations, unless they exist."""
    folder = services.settings.worlds_folder / world
    if not (folder / WORLD_FILE).is_file():
        print_progress("preparing the default world (only once) ...")
        _build_world(services, world)
    if _has_project(services.database, project):
        return
    # Loaded only when a world is built, so that the server starts faster in a prepared home.
    from showhow.evaluation.scoring.gold_demonstrations import make_demonstrations  # noqa: PLC0415
    from showhow.oracles.gold_traces.traces import open_gold_world  # noqa: PLC0415

    guidelines = files("showhow.app").joinpath("guidelines.md").read_text(encoding="utf-8")
    new_project = Project(name=project, world=world, guidelines=guidelines)
    questions = read_questions(folder / QUESTIONS_FILE, "jsonl")
    print_progress("answering some of its questions for demonstrations ...")
    records = make_demonstrations(questions, open_gold_world(services, world), new_project, DEMONSTRATION_COUNT)
    try:
        _add_project(services.database, new_project, questions, records)
    except Conflict:
        # A process with another home and the same database may have stored the project first.
        if not _has_project(services.database, project):
            raise
    else:
        print_progress(
            f"made the world {world} ({WORLD_OPTIONS.people:,} people) and the project {project}: "
            f"{len(questions)} questions, {len(records)} generated demonstrations"
        )


def _build_world(services: Services, world: str) -> None:
    from showhow.fiction.generator.build import generate_world  # noqa: PLC0415 - likewise

    folder = services.settings.worlds_folder / world
    try:
        generate_world(services.settings.worlds_folder, world, WORLD_OPTIONS)
    except WorldExists as error:
        # `showhow world generate` may have built a world of this name at the same time.
        if not (folder / WORLD_FILE).is_file():
            raise CommandError(
                f"{folder} has no {WORLD_FILE}, so the world is incomplete; move the folder away"
            ) from error


def _add_project(
    database: Database, project: Project, questions: Sequence[QuestionRecord], records: Sequence[TraceRecord]
) -> None:
    """Store the project, its questions and its demonstrations in one transaction."""
    with database.begin() as session:
        if projects.find_project(session, project.name) is None:
            stored = projects.create_project(session, project.name, project.world, guidelines=project.guidelines)
            projects.add_questions(session, stored.id, questions)
            merger = TraceMerger()
            for record in records:
                merger.merge(session, record)
            merger.end_batch(session)


def _freeze_default(services: Services) -> None:
    """Freeze the generated demonstrations, so that reasoners can use them immediately."""
    note = "generated by running the tools on the facts of the default world"
    with suppress(Conflict):  # A reviewer may have returned all of them.
        services.freeze_version(
            DEFAULT_LIBRARY,
            libraries.DemonstrationFilter(project=DEFAULT_PROJECT, by=libraries.MODELS),
            FreezeOptions(by="setup", note=note),
        )
