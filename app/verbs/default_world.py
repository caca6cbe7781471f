"""The default world and its project, made once."""

from importlib.resources import files

from app.resources import database, settings
from app.verbs.output import CommandFailed
from bench.datasets import read_questions
from db import projects
from db.database import Conflict
from worlds.build import WorldExists
from worlds.folder import ABOUT
from worlds.generator.build import generate_world
from worlds.questions.question_file import QUESTIONS
from worlds.universe.options import Options

OPTIONS = Options(people=300, seed=1, depth=6, per_template=2)


def make(world: str, project: str) -> None:
    """Build the world and the project with its questions; what is there already stays, whoever made it."""
    if not (settings().worlds / world / ABOUT).is_file():
        _build(world)
    try:
        _add(world, project)
    except Conflict:
        # Likewise the other one's project, unless it is something else that does not fit.
        with database().read() as session:
            if projects.project_by_name(session, project) is None:
                raise


def _build(world: str) -> None:
    folder = settings().worlds / world
    try:
        generate_world(settings().worlds, world, OPTIONS)
    except WorldExists as there:
        # Where two begin at once the other one's world is the same.
        if not (folder / ABOUT).is_file():
            raise CommandFailed(f"{folder} has no {ABOUT}, so it is no whole world; move it away") from there


def _add(world: str, project: str) -> None:
    """The project and its questions in one transaction: both are there, or neither."""
    guidelines = files("app").joinpath("guidelines.md").read_text(encoding="utf-8")
    asked = read_questions(settings().worlds / world / QUESTIONS, "jsonl")
    with database().begin() as session:
        if projects.project_by_name(session, project) is None:
            found = projects.create_project(session, project, world, guidelines=guidelines)
            projects.add_questions(session, found.id, asked)
