"""The backup of the database and the worlds into a folder.

A backup folder holds a database file, one folder for each world, and `backup.json`, which is written last: a backup
that is interrupted leaves the former one. A world whose content the folder holds already is not copied again.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from showhow.db.database import Database
from showhow.db.people.users import ADMIN
from showhow.db.storage.backup import back_up_database, record_backup
from showhow.option_fields import option
from showhow.runs.services import Services
from showhow.tasks.backup_manifest import MANIFEST_FILE, BackedUpWorld, BackupManifest
from showhow.tasks.progress import print_progress
from showhow.tasks.task import TaskError, open_atomically, require_role
from showhow.tasks.world_copies import copy_world_folder, measure_folder
from showhow.worlds.folder import list_world_names
from showhow.worlds.open import read_world_metadata

LOCK_FILE = ".showhow-backup.lock"
WORLDS_FOLDER = "worlds"
_CONTENT_HASH = re.compile(r"[0-9A-Za-z]{1,128}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeBackup:
    """Where the database and the worlds are copied to."""

    folder: Path = option(help="A new folder, or that of an earlier backup, which is replaced.", is_argument=True)
    keep_daily: int = option(
        0,
        "Make a folder of its own in FOLDER, and keep the last one of each of so many days.",
        minimum=0,
        maximum=10_000,
    )
    keep_weekly: int = option(
        0, "Likewise, keep the last one of each of so many weeks; the others are removed.", minimum=0, maximum=10_000
    )


class MadeBackup(NamedTuple):
    """A backup, and the folders of earlier ones that were removed for it."""

    folder: Path
    manifest: BackupManifest
    removed: list[Path]


@contextmanager
def open_database(services: Services) -> Iterator[Database]:
    """Open the database of the settings as it is, without an upgrade."""
    with closing(Database(services.settings.database_url, lambda: services.redactor)) as database:
        yield database


def back_up(services: Services, request: MakeBackup) -> MadeBackup:
    """Copy the database and the worlds into the folder, or into a new one in it; the server may keep running."""
    require_role(services, ADMIN)
    if not request.keep_daily and not request.keep_weekly:
        return MadeBackup(request.folder, _back_up_into(services, request.folder), [])
    with _lock_folder(request.folder):
        former = _list_complete(request.folder)
        folder = request.folder / f"{datetime.now(UTC):{_MOMENT}}"
        manifest = _back_up_into(services, folder, former[-1] if former else None)
        kept = choose_kept([*former, folder], request.keep_daily, request.keep_weekly)
        # Also what killed backups left: none of them is at work while the lock is held.
        removed = sorted(path for path in request.folder.iterdir() if _is_backup_name(path.name) and path not in kept)
        for path in removed:
            shutil.rmtree(path)
    return MadeBackup(folder, manifest, removed)


_MOMENT = "%Y-%m-%dT%H%M%SZ"


def choose_kept(folders: Sequence[Path], daily: int, weekly: int) -> set[Path]:
    """Of backups that are named by their moments: the newest, and the last of so many days and of so many weeks."""
    days: dict[str, Path] = {}
    weeks: dict[tuple[int, int], Path] = {}
    for folder in sorted(folders, reverse=True):
        moment = datetime.strptime(folder.name, _MOMENT).replace(tzinfo=UTC)
        days.setdefault(f"{moment:%Y-%m-%d}", folder)
        weeks.setdefault(moment.isocalendar()[:2], folder)
    return {max(folders), *[*days.values()][:daily], *[*weeks.values()][:weekly]}


def _list_complete(folder: Path) -> list[Path]:
    """The backups in the folder, the oldest first."""
    return sorted(path for path in folder.iterdir() if _is_backup_name(path.name) and (path / MANIFEST_FILE).exists())


def _is_backup_name(name: str) -> bool:
    try:
        return f"{datetime.strptime(name, _MOMENT).replace(tzinfo=UTC):{_MOMENT}}" == name
    except ValueError:
        return False


def _back_up_into(services: Services, folder: Path, linked: Path | None = None) -> BackupManifest:
    """Back up into one folder; worlds that the backup `linked` has share their files with it, and take no room."""
    worlds_folder = services.settings.worlds_folder
    with _lock_folder(folder):
        former = BackupManifest.read(folder) if (folder / MANIFEST_FILE).exists() else None
        _remove_unlisted(folder, former)
        known_worlds = _worlds_by_content(former)
        linked_worlds = _worlds_by_content(BackupManifest.read(linked)) if linked else {}
        worlds = []
        for name in list_world_names(worlds_folder):
            content_hash = read_content_hash(worlds_folder, name)
            known = known_worlds.get((name, content_hash)) if content_hash else None
            if known is None and linked is not None and content_hash:
                known = linked_worlds.get((name, content_hash))
                if known is not None:
                    _link_files(linked / WORLDS_FOLDER / known.folder, folder / WORLDS_FOLDER / known.folder)
            worlds.append(known or _back_up_world(worlds_folder, name, content_hash, folder))
        made = datetime.now(UTC)
        with open_database(services) as database:
            file = folder / f"database-{made:%Y%m%dT%H%M%S%f}{'.db' if database.is_sqlite else '.dump'}"
            record_backup(database if services.actor is None else database.acting_as(services.actor), file.name)
            back_up_database(database, file)
        manifest = BackupManifest(
            made=made.isoformat(timespec="seconds"),
            database=file.name,
            database_digest=_digest_file(file),
            database_bytes=file.stat().st_size,
            worlds=worlds,
        )
        os.sync()  # the manifest must not be on disk before what it lists
        with open_atomically(folder / MANIFEST_FILE, force=True) as stream:
            stream.write(json.dumps(manifest.model_dump(), ensure_ascii=False, indent=1).encode())
        _remove_unlisted(folder, manifest)
    return manifest


def _worlds_by_content(manifest: BackupManifest | None) -> dict[tuple[str, str | None], BackedUpWorld]:
    return {(world.name, world.hash): world for world in manifest.worlds} if manifest else {}


def _link_files(source: Path, target: Path) -> None:
    try:
        shutil.copytree(source, target, copy_function=_link_or_copy)
    except OSError as error:
        raise TaskError(f"{target} cannot be written ({error.strerror}); name another folder") from error


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        # A file system without links.
        shutil.copyfile(source, target)


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Make the folder, and write it in one process at a time."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # What a backup does not list is removed, so the folder must hold nothing else.
        if any(folder.iterdir()) and not (folder / LOCK_FILE).exists():
            raise TaskError(f"{folder} holds other files; name a new folder, or one that `showhow backup` made")
        lock = FileLock(folder / LOCK_FILE, timeout=0)
        lock.acquire()
    except Timeout as error:
        raise TaskError(f"another backup is being written to {folder}; wait until it has ended") from error
    except OSError as error:
        raise TaskError(f"{folder} cannot be written ({error.strerror}); name another folder") from error
    try:
        yield
    finally:
        lock.release()


def _back_up_world(worlds: Path, name: str, content_hash: str | None, folder: Path) -> BackedUpWorld:
    print_progress(f"copying the world {name} ...")
    label = content_hash[:16] if content_hash else f"live-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    target = folder / WORLDS_FOLDER / f"{name}-{label}"
    try:
        target.mkdir(parents=True)
    except OSError as error:
        raise TaskError(f"{target} cannot be made ({error.strerror}); name another folder") from error
    try:
        digest = copy_world_folder(worlds / name, target)
    # After every exception, also KeyboardInterrupt, the space is free again.
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    if read_content_hash(worlds, name) != content_hash:
        raise TaskError(f"the world {name} was replaced while it was copied; back up again")
    return BackedUpWorld(name=name, hash=content_hash, folder=target.name, digest=digest, bytes=measure_folder(target))


def read_content_hash(worlds: Path, name: str) -> str | None:
    """The hash of the content as world.toml says it; None for a live world, and for what can be no hash."""
    content_hash = read_world_metadata(worlds, name).get("hash")
    return content_hash if isinstance(content_hash, str) and _CONTENT_HASH.fullmatch(content_hash) else None


def _remove_unlisted(folder: Path, manifest: BackupManifest | None) -> None:
    """Remove what a killed backup left, and what the manifest replaced."""
    listed_files = {MANIFEST_FILE, LOCK_FILE, WORLDS_FOLDER, manifest.database if manifest else ""}
    listed_worlds = {world.folder for world in manifest.worlds} if manifest else set()
    with suppress(FileNotFoundError):
        for path in [path for path in folder.iterdir() if path.name not in listed_files]:
            if path.name.startswith(("database-", ".database-", f".{MANIFEST_FILE}")):
                path.unlink(missing_ok=True)
        for path in [path for path in (folder / WORLDS_FOLDER).iterdir() if path.name not in listed_worlds]:
            # The system may put files of its own there.
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)


def _digest_file(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
