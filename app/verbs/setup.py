"""`showhow setup`: everything a newcomer needs to annotate at once; what is there already is left as it is."""

from app.resources import database, settings
from app.verbs.output import progress
from db import projects
from worlds.folder import ABOUT

WORLD = "default"
PROJECT = "Fictional people"


def setup() -> None:
    """Prepare the database and the default world with its questions; safe to repeat."""
    prepare()
    progress(f"ready: {settings().home}")


def prepare() -> None:
    """Bring the database up to date; make the default world and its project unless they are there."""
    with database().read() as session:
        known = projects.project_by_name(session, PROJECT) is not None
    if known and (settings().worlds / WORLD / ABOUT).is_file():
        return
    progress("preparing the default world (once) ...")
    from app.verbs.default_world import make  # noqa: PLC0415 - brings the generator's libraries, needed only once

    make(WORLD, PROJECT)
