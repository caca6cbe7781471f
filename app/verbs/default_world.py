"""The default world and its project, made once."""

from importlib.resources import files

from app.resources import database, settings
from app.verbs.output import CommandFailed
from db import projects
from db.database import Conflict
from worlds.build import WorldExists
from worlds.folder import ABOUT
from worlds.generator import GeneratedWorld, build_generated, generate

PEOPLE, SEED = 300, 1


def make(world: str, project: str) -> None:
    """Build the world and the project with its questions; what is there already stays, whoever made it."""
    made = generate(PEOPLE, SEED)
    if not (settings().worlds / world / ABOUT).is_file():
        _build(world, made)
    try:
        _add(world, project, made)
    except Conflict:
        # Likewise the other one's project, unless it is something else that does not fit.
        with database().read() as session:
            if projects.project_by_name(session, project) is None:
                raise


def _build(world: str, made: GeneratedWorld) -> None:
    folder = settings().worlds / world
    try:
        build_generated(settings().worlds, world, made, {"people": PEOPLE, "seed": SEED}, replace=False)
    except WorldExists as there:
        # Where two begin at once the other one's world is the same.
        if not (folder / ABOUT).is_file():
            raise CommandFailed(f"{folder} has no {ABOUT}, so it is no whole world; move it away") from there


def _add(world: str, project: str, made: GeneratedWorld) -> None:
    """The project and its questions in one transaction: both are there, or neither."""
    guidelines = files("app").joinpath("guidelines.md").read_text(encoding="utf-8")
    with database().begin() as session:
        if projects.project_by_name(session, project) is None:
            found = projects.create_project(session, project, world, guidelines=guidelines)
            projects.add_questions(session, found.id, made.questions)
