"""`showhow setup`: everything a newcomer needs to annotate at once; what is there already is left as it is."""

from app.resources import database, settings
from app.verbs.output import progress
from db import projects

WORLD = "default"
PROJECT = "Fictional people"
PEOPLE, SEED = 300, 1


def setup() -> None:
    """Prepare the database and the default world with its questions; safe to repeat."""
    prepare()
    progress(f"ready: {settings().home}")


def prepare() -> None:
    """Bring the database up to date; make the default world and its project unless they are there."""
    store = database()
    with store.read() as session:
        known = projects.project_by_name(session, PROJECT)
    folder = settings().worlds
    if known is not None and (folder / WORLD / "world.toml").is_file():
        return
    progress("preparing the default world (once) ...")
    make_default_world(folder)


def make_default_world(folder: object) -> None:
    progress("...")
