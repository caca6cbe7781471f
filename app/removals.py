"""Archive, delete, restore and rename for pages and verbs: the rows by removals.py, and the folders of worlds."""

import shutil
from pathlib import Path
from uuid import UUID

from showhow.db.database import Conflict
from showhow.db.removal import purging, removals, renaming
from showhow.db.removal.purging import PurgeReport
from showhow.db.removal.removal_kinds import KEPT_DAYS, Kind
from showhow.db.removal.removals import Removal, RemovalEffect
from showhow.runs.services import Services
from showhow.worlds.folder import WORLD_FILE, WorldError, WorldNotFound, new_world_folder, world_folder

DELETION_NOTE = f"Can be restored for {KEPT_DAYS} days."
ARCHIVE_NOTE = "In no list until it is restored."


def describe(services: Services, kind: Kind, key: UUID | str) -> RemovalEffect:
    """What archiving or deleting it would do to the rest."""
    if kind == Kind.WORLD:
        _existing_folder(services, str(key))
    with services.database.read() as session:
        return removals.describe_removal(session, kind, key)


def remove(services: Services, kind: Kind, key: UUID | str, *, archives: bool = False) -> Removal:
    """Archive or delete it; the folder of a world is moved aside in the transaction that notes it."""
    folder = _existing_folder(services, str(key)) if kind == Kind.WORLD else None
    with services.database.begin() as session:
        removal = removals.remove(session, kind, key, archives=archives)
        if folder is not None:
            _move(folder, _folder_aside(services, removal))
    return removal


def restore(services: Services, removal_id: UUID) -> Removal:
    """Bring back what a removal took away; Conflict if its name is used or its folder is not on this machine."""
    with services.database.begin() as session:
        removal = removals.restore(session, removal_id)
        if removal.kind == Kind.WORLD:
            aside, folder = (
                _folder_aside(services, removal),
                new_world_folder(services.settings.worlds_folder, removal.name),
            )
            if folder.exists():
                raise Conflict(f"there is another world {removal.name!r} now; rename it, then restore this one")
            if not aside.is_dir():
                raise Conflict(f"the folder of the world {removal.name!r} is not on this machine ({aside})")
            _move(aside, folder)
    return removal


def rename_world(services: Services, name: str, new_name: str) -> None:
    """Rename a world: its folder, and what names it in the database."""
    folder = _existing_folder(services, name)
    target = new_world_folder(services.settings.worlds_folder, new_name)
    if target.exists():
        raise Conflict(f"there is a world {new_name!r} already; choose another name")
    with services.database.begin() as session:
        renaming.rename_world(session, name, new_name)
        _move(folder, target)


def purge(services: Services, *, now: bool = False) -> PurgeReport:
    """Delete for good what was deleted too long ago to be restored, or all deletions now."""
    report = purging.purge(services.database, now=now)
    for removal_id in report.worlds:
        shutil.rmtree(services.settings.home / "removed_worlds" / removal_id.hex, ignore_errors=True)
    return report


def _existing_folder(services: Services, world: str) -> Path:
    folder = world_folder(services.settings.worlds_folder, world)
    if not (folder / WORLD_FILE).is_file():
        raise WorldNotFound(f"There is no world {world!r}; `showhow world list` lists them.")
    return folder


def _folder_aside(services: Services, removal: Removal) -> Path:
    return services.settings.home / "removed_worlds" / removal.id.hex


def _move(folder: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        folder.rename(target)
    except OSError as error:
        raise WorldError(
            f"The folder {folder} cannot be moved to {target} ({error.strerror}); nothing changed."
        ) from error
