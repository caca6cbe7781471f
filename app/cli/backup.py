"""`showhow backup FOLDER` and `showhow restore FOLDER`: the database and the worlds.

A backup to restore may be anybody's. Its manifest is checked, its worlds are copied and compared with it, and its rows
are taken over, all beside what is there; only then is anything replaced.
"""

import hashlib
import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from showhow.app.cli.db import format_restore, report_restore
from showhow.app.cli.drawn_options import draw_options
from showhow.app.cli.output import AsJson, CommandError, emit
from showhow.app.services import current_services
from showhow.db.database import StoreError
from showhow.db.storage.prepared_database import RestoredDatabase
from showhow.db.storage.restore import restore_database
from showhow.guard.files import is_sparse, open_regular
from showhow.tasks.backup import WORLDS_FOLDER, MakeBackup, back_up, open_database, read_content_hash
from showhow.tasks.backup_manifest import BackedUpWorld, BackupManifest
from showhow.tasks.world_copies import copy_brought_world, list_brought_files
from showhow.worlds.build import create_world_folder
from showhow.worlds.folder import WORLD_FILE

INTERRUPTED_RESTORE_FILE = ".restoring"
_MAX_NOTE_BYTES = 10_000


@draw_options
def backup(request: MakeBackup, *, as_json: AsJson = False) -> None:
    """Copy the database and the worlds into a folder; the server may keep running."""
    folder, manifest, removed = back_up(current_services(), request)
    value = {"folder": str(folder), **manifest.model_dump(), "removed": [str(path) for path in removed]}
    lines = [f"backed up the database and {len(manifest.worlds)} worlds to {folder}"]
    lines += [f"removed the earlier backup {path}" for path in removed]
    emit(value, "\n".join(lines), as_json=as_json)


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
        with open_database(current_services()) as database:
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
    return world.hash is None or read_content_hash(worlds, world.name) == world.hash
