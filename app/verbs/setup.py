"""`showhow setup`: everything a newcomer needs to annotate at once; what is there already is left as it is."""

from contextlib import suppress

from app.resources import database, settings
from app.verbs.output import progress
from db import libraries, projects
from db.database import Conflict
from settings import DEFAULT_LIBRARY
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
        frozen = bool(libraries.versions(session, DEFAULT_LIBRARY))
    if not known or not (settings().worlds / WORLD / ABOUT).is_file():
        progress("preparing the default world (once) ...")
        from app.verbs.default_world import make  # noqa: PLC0415 - brings the generator's libraries, needed only once

        make(WORLD, PROJECT)
    if not frozen:
        _freeze_default()


def _freeze_default() -> None:
    """Freeze the demonstrations that were generated, so that questions can be answered with them at once."""
    from app.libraries import freeze_version  # noqa: PLC0415 - brings the encoder, needed only once
    from fewshot_library.card import Terms  # noqa: PLC0415 - likewise

    note = "made by really running the tools along the facts of the default world"
    with suppress(Conflict):  # Nothing is left to freeze where somebody has returned them all.
        freeze_version(
            DEFAULT_LIBRARY, libraries.Wanted(project=PROJECT, by=libraries.MODELS), Terms(by="setup", note=note)
        )
