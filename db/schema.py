"""The shape of the database: brought up to date, checked, and copied to safety."""

import shutil
import sqlite3
import subprocess
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import func, select, text

from db.database import Database, StoreError, StoreUnavailable
from db.models import Step

MIGRATIONS = Path(__file__).resolve().parents[1] / "migrations"


def _config(database: Database) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["engine"] = database.engine
    return config


def head() -> str:
    """The newest revision that the program knows."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    found = ScriptDirectory.from_config(config).get_current_head()
    if found is None:
        raise StoreError(f"there are no migrations in {MIGRATIONS}; install Showhow again")
    return found


def revision(database: Database) -> str | None:
    """The revision that the database is at; None when it is empty."""
    with database.read() as session:
        return MigrationContext.configure(session.connection()).get_current_revision()


def upgrade(database: Database, to: str = "head") -> bool:
    """Bring the database to that revision; False when there was nothing to do."""
    if to == "head" and revision(database) == head():
        return False
    command.upgrade(_config(database), to)
    return True


def downgrade(database: Database, to: str) -> None:
    """Take the database back to an older revision; what that one cannot hold is lost."""
    command.downgrade(_config(database), to)


def check(database: Database) -> list[str]:
    """What is wrong with the database, a sentence each; [] when nothing is."""
    found = []
    at = revision(database)
    if at != head():
        found.append(f"the database is at revision {at or 'none'}, the program at {head()}; run `showhow db upgrade`")
    with database.read() as session:
        if database.is_sqlite:
            found += [f"SQLite: {row[0]}" for row in session.execute(text("PRAGMA integrity_check")) if row[0] != "ok"]
            broken = session.execute(text("PRAGMA foreign_key_check")).all()
            found += [f"table {row[0]}: row {row[1]} refers to a missing {row[2]}" for row in broken]
        if at == head():
            gaps = session.execute(
                select(Step.trace_id, func.count(), func.max(Step.position))
                .where(Step.removed_at.is_(None))
                .group_by(Step.trace_id)
                .having(func.count() != func.max(Step.position))
            )
            found += [f"trace {trace_id}: {count} steps, but numbered up to {last}" for trace_id, count, last in gaps]
    return found


def backup(database: Database, path: Path) -> None:
    """Copy the whole database into a new file: a SQLite database, or what pg_dump writes in its custom format."""
    if path.exists():
        raise StoreError(f"{path} is there already; name a new file for the backup")
    if not path.parent.is_dir():
        raise StoreError(f"there is no folder {path.parent}; make it, or name another place for the backup")
    partial = path.with_name(path.name + ".part")
    partial.unlink(missing_ok=True)
    try:
        if database.is_sqlite:
            _copy_sqlite(database, partial)
        else:
            _dump_postgresql(database, partial)
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)


def _copy_sqlite(database: Database, target: Path) -> None:
    source_path = database.url.database
    if not source_path or not Path(source_path).is_file():
        raise StoreUnavailable(f"there is no database at {source_path}; run `showhow setup` first")
    source, copy = sqlite3.connect(source_path), sqlite3.connect(target)
    try:
        source.backup(copy)
        said = copy.execute("PRAGMA integrity_check").fetchone()[0]
    except sqlite3.Error as failed:
        raise StoreUnavailable(f"the backup to {target} failed: {failed}") from failed
    finally:
        source.close()
        copy.close()
    if said != "ok":
        raise StoreUnavailable(f"the copy does not pass its integrity check: {said}")


def _dump_postgresql(database: Database, target: Path) -> None:
    program = shutil.which("pg_dump")
    if program is None:
        raise StoreUnavailable("pg_dump is not installed; install PostgreSQL's client programs, then back up again")
    url = database.url.set(drivername="postgresql").render_as_string(hide_password=False)
    done = subprocess.run(  # noqa: S603 - pg_dump with the database's own address
        [program, "--format=custom", f"--file={target}", f"--dbname={url}"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise StoreUnavailable(f"pg_dump failed: {done.stderr.strip().splitlines()[-1] if done.stderr else 'no word'}")
