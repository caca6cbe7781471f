"""Checks and backups of a database."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from db.assignments import select_completed_traces
from db.database import Database, StoreError, StoreUnavailable
from db.models import Question, Step, Trace
from db.schema import current_revision, latest_revision


def check_database(database: Database) -> list[str]:
    """Check the database and return its problems, a sentence each."""
    problems = []
    at = current_revision(database)
    with database.read() as session:
        if database.is_sqlite:
            problems += [
                f"SQLite: {row[0]}" for row in session.execute(text("PRAGMA integrity_check")) if row[0] != "ok"
            ]
            broken = session.execute(text("PRAGMA foreign_key_check")).all()
            problems += [f"table {row[0]}: row {row[1]} refers to a missing {row[2]}" for row in broken]
        if at == latest_revision():
            problems += [*_find_position_gaps(session), *_find_miscounted_questions(session)]
        else:
            revisions = f"the database is at revision {at or 'none'}, the program at {latest_revision()}"
            problems.append(f"{revisions}; run `showhow db upgrade`")
    return problems


def _find_position_gaps(session: Session) -> Iterator[str]:
    rows = session.execute(
        select(Step.trace_id, func.count(), func.min(Step.position), func.max(Step.position))
        .where(Step.removed_at.is_(None))
        .group_by(Step.trace_id)
        .having((func.count() != func.max(Step.position)) | (func.min(Step.position) != 1))
    )
    for trace_id, count, first, last in rows:
        yield f"trace {trace_id}: its {count} steps are numbered from {first} to {last}"


def _find_miscounted_questions(session: Session) -> Iterator[str]:
    counted = (
        select_completed_traces()
        .group_by(Trace.question_id)
        .with_only_columns(Trace.question_id, func.count(Trace.author_id.distinct()).label("people"))
        .subquery()
    )
    rows = session.execute(
        select(Question.id, Question.completed, func.coalesce(counted.c.people, 0))
        .outerjoin(counted, counted.c.question_id == Question.id)
        .where(Question.completed != func.coalesce(counted.c.people, 0))
    )
    for question_id, written, people in rows:
        yield f"question {question_id}: {people} people's traces of it stand, but {written} are counted"


def back_up_database(database: Database, path: Path) -> None:
    """Copy the whole database into a new file: a SQLite database, or a dump in the custom format of pg_dump."""
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
    except OSError as failed:
        raise StoreUnavailable(f"the backup to {path} cannot be written ({failed}); name another place") from failed
    finally:
        partial.unlink(missing_ok=True)


def _copy_sqlite(database: Database, target: Path) -> None:
    source_path = database.url.database
    if not source_path or not Path(source_path).is_file():
        raise StoreUnavailable(f"there is no database at {source_path}; run `showhow setup` first")
    source, copy = sqlite3.connect(source_path), sqlite3.connect(target)
    try:
        source.backup(copy)
        check = copy.execute("PRAGMA integrity_check").fetchone()[0]
    except sqlite3.Error as failed:
        raise StoreUnavailable(f"the backup to {target} failed ({failed}); see that there is room for it") from failed
    finally:
        source.close()
        copy.close()
    if check != "ok":
        raise StoreUnavailable(f"the copy does not pass its integrity check ({check}); run `showhow db check`")


def _dump_postgresql(database: Database, target: Path) -> None:
    program = shutil.which("pg_dump")
    if program is None:
        raise StoreUnavailable("pg_dump is not installed; install PostgreSQL's client programs, then back up again")
    url = database.url.set(drivername="postgresql", password=None)
    # The password is passed in the environment: every user of the machine can read a command line.
    environment = {**os.environ, **({"PGPASSWORD": str(database.url.password)} if database.url.password else {})}
    done = subprocess.run(  # noqa: S603 - pg_dump with the database's own address
        [program, "--format=custom", f"--file={target}", f"--dbname={url.render_as_string()}"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    if done.returncode != 0:
        raise StoreUnavailable(f"pg_dump failed: {done.stderr.strip().partition(chr(10))[0] or 'it gave no reason'}")
