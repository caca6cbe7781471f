"""`showhow db upgrade | check | backup FILE | restore FILE`, `showhow backup FOLDER` and `showhow restore FOLDER`.

A backup folder holds a database file, one folder for each world, and `backup.json`, which is written last: a backup
that is interrupted leaves the former one. A world whose content the folder holds already is not copied again.
"""

import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from filelock import FileLock, Timeout

from app.cli.output import CommandError, emit, open_atomically
from app.progress import print_progress
from app.services import authorize_verb, current_services
from db.backup import RestoredDatabase, back_up_database, restore_database
from db.database import Database
from db.projects import list_world_hashes
from db.schema import check_database, current_revision
from db.schema import upgrade as upgrade_schema
from db.users import ADMIN
from worlds.build import create_world_folder
from worlds.folder import WORLD_FILE, WorldError, list_world_names
from worlds.live.consent import CONSENT_FILE
from worlds.open import read_world_metadata

app = typer.Typer(no_args_is_help=True, help="Upgrade, check, back up and restore the database.")


@contextmanager
def _open_database() -> Iterator[Database]:
    """Open the database of the settings as it is, without an upgrade."""
    with closing(Database(current_services().settings.database_url)) as database:
        yield database


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def upgrade(*, as_json: AsJson = False) -> None:
    """Upgrade the database to the schema of this version; create it if there is none."""
    with _open_database() as database:
        changed = upgrade_schema(database)
        revision = current_revision(database)
    text = (
        f"the database is now at revision {revision}"
        if changed
        else f"nothing to do: the database is at revision {revision}"
    )
    emit({"revision": revision, "changed": changed}, text, as_json=as_json)


@app.command()
def check(*, as_json: AsJson = False) -> None:
    """Check the database for damage; exit status 1 if there is any."""
    with _open_database() as database:
        if database.is_sqlite and not Path(database.url.database or "").is_file():
            raise CommandError(f"there is no database at {database.url.database}; `showhow db upgrade` makes one")
        findings = check_database(database)
    emit({"findings": findings}, "\n".join(findings) or "the database is sound", as_json=as_json)
    if findings:
        raise CommandError(f"{len(findings)} findings; restore a backup, or repair them before you continue")


@app.command("backup")
def back_up_file(file: Annotated[Path, typer.Argument(help="A new file.")], *, as_json: AsJson = False) -> None:
    """Copy the database into a new file; the server may keep running. `showhow backup` copies the worlds too."""
    # Not upgraded before: a backup may be made in order to upgrade.
    with _open_database() as database:
        back_up_database(database, file)
    emit({"file": str(file), "bytes": file.stat().st_size}, f"backed up to {file}", as_json=as_json)


@app.command("restore")
def restore_file(
    file: Annotated[Path, typer.Argument(help="A file that `showhow db backup` made.")], *, as_json: AsJson = False
) -> None:
    """Replace the database by a backup, which is checked before; the former database is kept aside."""
    if file.is_dir():
        raise CommandError(f"{file} is a folder; `showhow restore {file}` restores the database and the worlds in it")
    with _open_database() as database:
        report = _report_restore(restore_database(database, file))
    emit(report, _format_restore(file, report), as_json=as_json)


def _report_restore(restored: RestoredDatabase) -> dict[str, Any]:
    """Collect what was restored, and the worlds that the restored database needs and this home lacks."""
    with _open_database() as database, database.read() as session:
        needed = list_world_hashes(session)
    names = list_world_names(current_services().settings.worlds_folder)
    missing = [{"name": name, "hash": content_hash} for name, content_hash in needed.items() if name not in names]
    return {
        "revision": restored.revision,
        "former": restored.former,
        "findings": restored.findings,
        "missing_worlds": missing,
    }


def _format_restore(source: Path, report: dict[str, Any]) -> str:
    """Describe the restore in lines for people."""
    lines = [f"restored {source}; the database is at revision {report['revision']}"]
    if report["former"]:
        lines.append(f"the former database is kept as {report['former']}")
    for world in report["missing_worlds"]:
        content = f" (content hash {world['hash']})" if world["hash"] else ""
        lines.append(f"missing world: {world['name']}{content}; restore it from a backup, or import or generate it")
    lines += [f"the backup has a finding: {finding}" for finding in report["findings"]]
    return "\n".join(lines)


MANIFEST_FILE = "backup.json"
LOCK_FILE = ".showhow-backup.lock"
WORLDS_FOLDER = "worlds"
_SQLITE_MAGIC = b"SQLite format 3\x00"
_SIDE_SUFFIXES = ("-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class BackedUpWorld:
    """A world in a backup: the hash of its content (None for a live world), its folder, the digest of its files."""

    name: str
    hash: str | None
    folder: str
    digest: str


@dataclass(frozen=True, slots=True)
class BackupManifest:
    """The contents of a backup folder."""

    made: str
    database: str
    database_digest: str
    worlds: tuple[BackedUpWorld, ...]

    @classmethod
    def read(cls, folder: Path) -> "BackupManifest":
        """Read the manifest of the folder; CommandError if it is no backup."""
        try:
            values = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
            worlds = tuple(BackedUpWorld(**world) for world in values.pop("worlds"))
            return cls(**values, worlds=worlds)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise CommandError(f"{folder} is no backup that `showhow backup` completed ({error})") from error


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
        with _open_database() as database:
            file = folder / f"database-{made:%Y%m%dT%H%M%S%f}{'.db' if database.is_sqlite else '.dump'}"
            back_up_database(database, file)
        manifest = BackupManifest(made.isoformat(timespec="seconds"), file.name, _digest_file(file), tuple(worlds))
        os.sync()  # the manifest must not be on disk before what it lists
        with open_atomically(folder / MANIFEST_FILE, force=True) as stream:
            stream.write(json.dumps(asdict(manifest), ensure_ascii=False, indent=1).encode())
        _remove_unlisted(folder, manifest)
    value = {"folder": str(folder), **asdict(manifest)}
    emit(value, f"backed up the database and {len(worlds)} worlds to {folder}", as_json=as_json)


def restore(
    folder: Annotated[Path, typer.Argument(help="A folder that `showhow backup` made.")], *, as_json: AsJson = False
) -> None:
    """Replace the database by that of a backup and add the worlds that are missing; what is replaced is kept aside."""
    settings = current_services().settings
    manifest = BackupManifest.read(folder)
    file = folder / manifest.database
    if not file.is_file() or _digest_file(file) != manifest.database_digest:
        raise CommandError(f"{file} is damaged or missing; restore another backup")
    missing = [world for world in manifest.worlds if not _is_present(settings.worlds_folder, world)]
    for world in missing:
        if digest_folder(folder / WORLDS_FOLDER / world.folder) != world.digest:
            raise CommandError(f"the world {world.name} in {folder} is damaged or incomplete; restore another backup")
    # First, since it is refused while the database is in use.
    with _open_database() as database:
        restored = restore_database(database, file)
    former_worlds = [_restore_world(settings.worlds_folder, world, folder) for world in missing]
    report = {
        **_report_restore(restored),
        "restored_worlds": [world.name for world in missing],
        "former_worlds": [str(former) for former in former_worlds if former],
    }
    lines = [_format_restore(folder, report)]
    lines += [f"restored the world {world.name}" for world in missing]
    lines += [f"a world of that name with other content is kept as {former}" for former in report["former_worlds"]]
    emit(report, "\n".join(lines), as_json=as_json)


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
    return BackedUpWorld(name, content_hash, target.name, digest)


def _restore_world(worlds: Path, world: BackedUpWorld, folder: Path) -> Path | None:
    """Copy the world into the home; returns the folder in which a world of that name with other content is kept."""
    former = None
    if (worlds / world.name).exists():
        # A name with a dot at its beginning is no world's.
        former = worlds / f".{world.name}-before-restore-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
        (worlds / world.name).rename(former)
    with create_world_folder(worlds, world.name) as target:
        if copy_world_folder(folder / WORLDS_FOLDER / world.folder, target) != world.digest:
            raise WorldError(f"the world {world.name} in {folder} changed while it was copied; restore again")
    return former


def _is_present(worlds: Path, world: BackedUpWorld) -> bool:
    """Whether the home has this content; a live world of that name stays as it is."""
    if not (worlds / world.name / WORLD_FILE).is_file():
        return False
    return world.hash is None or _content_hash(worlds, world.name) == world.hash


def _content_hash(worlds: Path, name: str) -> str | None:
    content_hash: str | None = read_world_metadata(worlds, name).get("hash")
    return content_hash


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


def copy_world_folder(source: Path, target: Path) -> str:
    """Copy the files of a world into an existing empty folder; returns the digest of the copy.

    A SQLite file, such as the stored responses of a live world, is copied as a whole while others write it. What a link
    leads to is copied in its place. The consent to send headers is not copied: it is given on each machine.
    """
    try:
        for file in _list_files(source):
            copy = target / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            if not file.name.endswith(_SIDE_SUFFIXES):
                _copy_file(file, copy)
    except (OSError, sqlite3.Error) as error:
        raise WorldError(
            f"The world in {source} cannot be copied to {target} ({error}); check the free space, and that no other "
            "process replaces this world."
        ) from error
    return digest_folder(target)


def digest_folder(folder: Path) -> str:
    """SHA-256 over the names and contents of all files but the consent to send headers."""
    digest = hashlib.sha256()
    for file in _list_files(folder):
        with file.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").hexdigest()
        digest.update(f"{file.relative_to(folder).as_posix()}\x00{content}\n".encode())
    return digest.hexdigest()


def _list_files(folder: Path) -> list[Path]:
    """The files of a folder and of the folders that its links lead to, but for the consent to send headers."""
    files: list[Path] = []
    entered: set[Path] = set()
    for parent, folders, names in os.walk(folder, followlinks=True):
        # A link to a folder above it would be followed for ever.
        entered.add(Path(parent).resolve())
        folders[:] = [name for name in folders if Path(parent, name).resolve() not in entered]
        files += [Path(parent, name) for name in names if name != CONSENT_FILE]
    return sorted(files)


def _copy_file(file: Path, copy: Path) -> None:
    with file.open("rb") as stream:
        is_sqlite = stream.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
    if not is_sqlite:
        shutil.copyfile(file, copy)
        return
    with (
        closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as original,
        closing(sqlite3.connect(copy)) as stored,
    ):
        original.backup(stored)
        stored.execute("PRAGMA journal_mode = DELETE")
