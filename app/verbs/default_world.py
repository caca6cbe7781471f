"""The default world and its project, made once."""

from collections.abc import Sequence
from importlib.resources import files

from app.gold import gold_world
from app.resources import database, settings
from app.verbs.output import CommandFailed, progress
from bench.datasets import read_questions
from bench.datasets.record import QuestionRecord
from bench.gold.demonstrations import demonstrations
from db import projects
from db.database import Conflict
from db.merge import merge
from db.models import Project
from db.record import TraceRecord
from worlds.folder import ABOUT, WorldExists
from worlds.generator.build import generate_world
from worlds.questions.question_file import QUESTIONS
from worlds.universe.options import Options

OPTIONS = Options(people=1000, seed=1, depth=6, per_template=4, split="text=50,graph=35,web=15")
"""A thousand people, of whose facts text, graph and web each hold a part, and three hundred questions."""
DEMONSTRATIONS = 20


def make(world: str, project: str) -> None:
    """Build the world and the project with its questions and demonstrations; what is there already stays."""
    if not (settings().worlds / world / ABOUT).is_file():
        _build(world)
    with database().read() as session:
        known = projects.project_by_name(session, project) is not None
    if known:
        return
    guidelines = files("app").joinpath("guidelines.md").read_text(encoding="utf-8")
    noun = Project(name=project, world=world, guidelines=guidelines)
    asked = read_questions(settings().worlds / world / QUESTIONS, "jsonl")
    progress("answering some of its questions for demonstrations ...")
    shown = list(demonstrations(asked, gold_world(world), noun, DEMONSTRATIONS))
    try:
        _add(noun, asked, shown)
    except Conflict:
        # Likewise the other one's project, unless it is something else that does not fit.
        with database().read() as session:
            if projects.project_by_name(session, project) is None:
                raise
    else:
        people = f"{OPTIONS.people:,} people"
        progress(
            f"made the world {world} ({people}) and the project {project}: {len(asked)} questions, "
            f"{len(shown)} generated demonstrations"
        )


def _build(world: str) -> None:
    folder = settings().worlds / world
    try:
        generate_world(settings().worlds, world, OPTIONS)
    except WorldExists as there:
        # Where two begin at once the other one's world is the same.
        if not (folder / ABOUT).is_file():
            raise CommandFailed(f"{folder} has no {ABOUT}, so it is no whole world; move it away") from there


def _add(project: Project, asked: Sequence[QuestionRecord], shown: Sequence[TraceRecord]) -> None:
    """The project, its questions and demonstrations in one transaction: all are there, or none."""
    with database().begin() as session:
        if projects.project_by_name(session, project.name) is None:
            made = projects.create_project(session, project.name, project.world, guidelines=project.guidelines)
            projects.add_questions(session, made.id, asked)
            for record in shown:
                merge(session, record)
