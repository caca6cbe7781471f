"""The default world and its project, made once."""

from contextlib import suppress
from importlib.resources import files

from app.resources import database, settings
from db import projects
from worlds.build import WorldExists
from worlds.folder import ABOUT
from worlds.generator import build_generated, generate

PEOPLE, SEED = 300, 1


def make(world: str, project: str) -> None:
    """Build the world and add the project with its questions; what is there already stays."""
    made = generate(PEOPLE, SEED)
    if not (settings().worlds / world / ABOUT).is_file():
        about = {"people": PEOPLE, "seed": SEED}
        # Where two begin at once the other one's world is the same.
        with suppress(WorldExists):
            build_generated(settings().worlds, world, made, about, replace=False)
    guidelines = files("app").joinpath("guidelines.md").read_text(encoding="utf-8")
    with database().begin() as session:
        found = projects.project_by_name(session, project)
        if found is None:
            found = projects.create_project(session, project, world, guidelines=guidelines)
        projects.add_questions(session, found.id, made.questions)
