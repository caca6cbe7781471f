"""`showhow backup FOLDER` and `showhow restore FOLDER`: the database and the worlds.

A backup folder holds a database file, one folder for each world, and `backup.json`, which is written last: a backup
that is interrupted leaves the former one. A world whose content the folder holds already is not copied again.

A backup to restore may be anybody's. Its manifest is checked, its worlds are copied and compared with it, and its rows
are taken over, all beside what is there; only then is anything replaced.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from filelock import FileLock, Timeout

from app.cli.backup_manifest import MANIFEST_FILE, BackedUpWorld, BackupManifest
from app.cli.db import AsJson, format_restore, open_database, report_restore
from app.cli.output import CommandError, emit, open_atomically
from app.cli.world_copies import copy_brought_world, copy_world_folder, list_brought_files, measure_folder
from app.progress import print_progress
from app.services import authorize_verb, current_services
from db.backup import back_up_database
from db.database import StoreError
from db.prepared_database import RestoredDatabase
from db.restore import restore_database
from db.users import ADMIN
from guard.files import is_sparse, open_regular
from worlds.build import create_world_folder
from worlds.folder import WORLD_FILE, list_world_names
from worlds.open import read_world_metadata

LOCK_FILE = ".showhow-backup.lock"
WORLDS_FOLDER = "worlds"
INTERRUPTED_RESTORE_FILE = ".restoring"
_CONTENT_HASH = re.compile(r"[0-9A-Za-z]{1,128}")
_MAX_NOTE_BYTES = 10_000


def backup(
    folder: Annotated[Path, typer.Argument(help="A new folder, or that of an earlier backup, which is replaced.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Copy the database and the worlds into a folder; the server may keep running."""
    authorize_verb(ADMIN)
    settings = current_services().settings
    with _lock_folder(folder):
        former = BackupManifest.read(folder) if (folder / MANIFEST_FILE).exists() else None
        _remove_unlisted(folder, former)
        known_worlds = {(world.name, world.hash): world for world in former.worlds} if former and former.worlds else {}
        worlds = []
        for name in list_world_names(settings.worlds_folder):
            content_hash = _content_hash(settings.worlds_folder, name)
            known = known_worlds.get((name, content_hash)) if content_hash else None
            worlds.append(known or _back_up_world(settings.worlds_folder, name, content_hash, folder))
        made = datetime.now(UTC)
        with open_database() as database:
            file = folder / f"database-{made:%Y%m%dT%H%M%S%f}{'.db' if database.is_sqlite else '.dump'}"
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
    value = {"folder": str(folder), **manifest.model_dump()}
    emit(value, f"backed up the database and {len(worlds)} worlds to {folder}", as_json=as_json)


def restore(
    folder: Annotated[Path, typer.Argument(help="A folder that `showhow backup` made.")], *, as_json: AsJson = False
) -> None:
    """Replace the database by that of a backup and add the worlds that are missing; what is replaced is kept aside."""
    settings = current_services().settings
    manifest = BackupManifest.read(folder)
    file = folder / manifest.database
    missing = [world for world in manifest.worlds if not _is_present(settings.worlds_folder, world)]
    _check_sizes(folder, missing, settings.home)
    _check_database_file(file, manifest)
    with ExitStack() as copies:
        for world in missing:
            target = copies.enter_context(create_world_folder(settings.worlds_folder, world.name, replace=True))
            if copy_brought_world(folder / WORLDS_FOLDER / world.folder, target) != world.digest:
                raise CommandError(
                    f"the world {world.name} in {folder} is damaged or incomplete; restore another backup"
                )
        restored = _restore_database(settings.home, folder, file)
        former_worlds = [_set_aside(settings.worlds_folder, world) for world in missing]
        # At the end of this block, the copies get their names.
    (settings.home / INTERRUPTED_RESTORE_FILE).unlink(missing_ok=True)
    report = {
        **report_restore(restored),
        "restored_worlds": [world.name for world in missing],
        "former_worlds": [str(former) for former in former_worlds if former],
    }
    lines = [format_restore(folder, report)]
    lines += [f"restored the world {world.name}" for world in missing]
    lines += [f"a world of that name with other content is kept as {former}" for former in report["former_worlds"]]
    emit(report, "\n".join(lines), as_json=as_json)


def _check_sizes(folder: Path, missing: Sequence[BackedUpWorld], home: Path) -> None:
    """Compare the sizes with the manifest and with the free space, before any content is read."""
    total = 0
    for world in missing:
        size = sum(size for _, size in list_brought_files(folder / WORLDS_FOLDER / world.folder))
        if world.bytes is not None and size != world.bytes:
            raise CommandError(f"the world {world.name} in {folder} is damaged or incomplete; restore another backup")
        total += size
    home.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(home).free
    if total > free:
        raise CommandError(f"the worlds in {folder} have {total:,} bytes, and {home} has {free:,} free; make room")


def _check_database_file(file: Path, manifest: BackupManifest) -> None:
    damaged = CommandError(f"{file} is damaged or missing; restore another backup")
    try:
        with open_regular(file, follow_links=False) as stream:
            size = os.fstat(stream.fileno()).st_size
            if manifest.database_bytes is not None and size != manifest.database_bytes:
                raise damaged
            if is_sparse(stream):
                raise CommandError(
                    f"{file} has {size:,} bytes, mostly holes; if you trust it, copy it with `cp --sparse=never`"
                )
            if hashlib.file_digest(stream, "sha256").hexdigest() != manifest.database_digest:
                raise damaged
    except OSError as error:
        raise CommandError(f"{file} cannot be restored ({error.strerror}); restore another backup") from error


def _restore_database(home: Path, folder: Path, file: Path) -> RestoredDatabase:
    """Replace the database; from here until the worlds have their names, a note says that the restore is unfinished."""
    note = home / INTERRUPTED_RESTORE_FILE
    note.write_text(str(folder.absolute()), encoding="utf-8", errors="surrogateescape")
    try:
        with open_database() as database:
            return restore_database(database, file)
    except StoreError:
        # Nothing was replaced.
        note.unlink(missing_ok=True)
        raise


def report_interrupted_restore(home: Path) -> list[str]:
    """Say which restore was killed between the database and the worlds; to restore again completes it."""
    try:
        with open_regular(home / INTERRUPTED_RESTORE_FILE, follow_links=False) as stream:
            folder = stream.read(_MAX_NOTE_BYTES).decode(errors="replace")
    except FileNotFoundError:
        return []
    return [f"The restore of {folder} was interrupted; run `showhow restore {folder}` again to complete it."]


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Make the folder, and write it in one process at a time."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # What a backup does not list is removed, so the folder must hold nothing else.
        if any(folder.iterdir()) and not (folder / LOCK_FILE).exists():
            raise CommandError(f"{folder} holds other files; name a new folder, or one that `showhow backup` made")
        lock = FileLock(folder / LOCK_FILE, timeout=0)
        lock.acquire()
    except Timeout as error:
        raise CommandError(f"another backup is being written to {folder}; wait until it has ended") from error
    except OSError as error:
        raise CommandError(f"{folder} cannot be written ({error.strerror}); name another folder") from error
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
        raise CommandError(f"{target} cannot be made ({error.strerror}); name another folder") from error
    try:
        digest = copy_world_folder(worlds / name, target)
    # After every exception, also KeyboardInterrupt, the space is free again.
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    if _content_hash(worlds, name) != content_hash:
        raise CommandError(f"the world {name} was replaced while it was copied; back up again")
    return BackedUpWorld(name=name, hash=content_hash, folder=target.name, digest=digest, bytes=measure_folder(target))


def _set_aside(worlds: Path, world: BackedUpWorld) -> Path | None:
    """Keep a world of that name with other content under another name, which is returned."""
    if not (worlds / world.name).exists():
        return None
    # A name with a dot at its beginning is no world's.
    former = worlds / f".{world.name}-before-restore-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    return (worlds / world.name).rename(former)


def _is_present(worlds: Path, world: BackedUpWorld) -> bool:
    """Whether the home has this content; a live world of that name stays as it is."""
    if not (worlds / world.name / WORLD_FILE).is_file():
        return False
    return world.hash is None or _content_hash(worlds, world.name) == world.hash


def _content_hash(worlds: Path, name: str) -> str | None:
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
