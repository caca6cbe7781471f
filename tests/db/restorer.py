"""Restores backups over a database and is killed at random moments; after each death the database is read.

`python restorer.py DATABASE BACKUP_A BACKUP_B ROUNDS` restores the two in turn, each in a process of its own that is
forked from a warm one, and writes the names of the projects that the database has after each death.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from showhow.db.database import Database
from showhow.db.questions import projects
from showhow.db.storage.restore import restore_database
from showhow.db.storage.schema import check_database


def restore_and_die(url: str, backup: Path, life: float | None) -> None:
    """Restore in a child process, which is killed after `life` seconds (None: not at all)."""
    child = os.fork()
    if child == 0:
        try:
            restore_database(Database(url), backup)
        finally:
            os._exit(0)
    if life is not None:
        time.sleep(life)
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def read_projects(url: str) -> str:
    """The names of the projects of a sound database, or what is wrong with it."""
    store = Database(url)
    try:
        findings = check_database(store)
        with store.read() as session:
            names = [project.name for project in projects.list_projects(session)]
    finally:
        store.close()
    return ",".join(findings or names)


def main(url: str, backups: list[Path], rounds: int) -> None:
    """Let one restore after the other begin and be killed."""
    chance = random.Random(20261122)
    started = time.monotonic()
    restore_and_die(url, backups[1], None)
    longest_life = (time.monotonic() - started) * 1.2
    for number in range(rounds):
        restore_and_die(url, backups[number % 2], chance.uniform(0, longest_life))
        sys.stdout.write(read_projects(url) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], [Path(sys.argv[2]), Path(sys.argv[3])], int(sys.argv[4]))
