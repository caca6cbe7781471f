"""Homes: the folder of worlds, libraries, traces, runs and model profiles, and its store."""

import os
import tempfile
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from shutil import rmtree
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from showhow.guard.environment import read_environment
from showhow.interface.errors import ShowhowError, in_one_sentence
from showhow.runs.services import Services
from showhow.settings import Settings

if TYPE_CHECKING:
    import pandas as pd

ResultT = TypeVar("ResultT")


class Home:
    """A home, opened. Functions without one use that of the verbs: `SHOWHOW_HOME`, or the user's data folder.

    >>> with Home.temporary() as other:
    ...     len(other.traces())
    0
    """

    def __init__(self, services: Services, *, is_temporary: bool = False) -> None:
        """For `open` and `temporary`."""
        self.services = services
        self._close = weakref.finalize(self, _close, services, is_temporary=is_temporary)

    @classmethod
    @in_one_sentence()
    def open(cls, folder: str | os.PathLike[str] | None = None) -> "Home":
        """Open a folder as home, made with its first entry; by default the home of the verbs.

        A folder has its store in showhow.db. That of the verbs may be in PostgreSQL; the other settings of the
        environment, keys of models too, apply to both.
        """
        environ = read_environment()
        if folder is not None:
            path = Path(folder).expanduser().resolve()
            environ |= {"SHOWHOW_HOME": str(path), "SHOWHOW_DATABASE_URL": f"sqlite:///{path / 'showhow.db'}"}
        return cls(Services(Settings.from_env(environ, Path.cwd() / ".env"), environ))

    @classmethod
    def temporary(cls) -> "Home":
        """An empty home that is removed when it is closed, or when Python ends."""
        home = cls.open(tempfile.mkdtemp(prefix="showhow-"))
        home._close.detach()
        return cls(home.services, is_temporary=True)

    @property
    def folder(self) -> Path:
        """Where it is."""
        return self.services.settings.home

    def close(self) -> None:
        """Close the store and the worlds; remove a temporary home."""
        self._close()

    def __enter__(self) -> "Home":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Home({str(self.folder)!r})"

    def traces(
        self, *, project: str | None = None, status: str | Sequence[str] | None = None, run: str | None = None
    ) -> "pd.DataFrame":
        """One row for each trace: question, author, answers, status, times.

        `status` is one of draft, submitted, approved, rejected and failed, or several; `run` the id of a run.
        """
        return self._tabulate("trace", project=project, status=status, run=run)

    def steps(
        self, *, project: str | None = None, status: str | Sequence[str] | None = None, run: str | None = None
    ) -> "pd.DataFrame":
        """One row for each step of these traces, in order: thought, tool, arguments, observation, error, rating."""
        return self._tabulate("step", project=project, status=status, run=run)

    def attempts(self, run: str | None = None) -> "pd.DataFrame":
        """One row for each question that a run asked, or all runs, and each repetition: ending, answer, calls, cost."""
        return self._tabulate("attempt", run=run)

    def scores(self, run: str | None = None) -> "pd.DataFrame":
        """One row for each metric of each answered attempt of a run, or of all runs."""
        return self._tabulate("score", run=run)

    @in_one_sentence()
    def _tabulate(
        self, kind: str, *, status: str | Sequence[str] | None = None, **conditions: str | None
    ) -> "pd.DataFrame":
        import pandas as pd  # noqa: PLC0415 - it takes half a second to import

        from showhow.db.runs.frames import TABLES, RowConditions, list_rows  # noqa: PLC0415 - as above

        statuses = (status,) if isinstance(status, str) else status
        with self.services.database.read() as session:
            rows = list_rows(session, kind, RowConditions(statuses=statuses, **conditions))
        return pd.DataFrame.from_records(rows, columns=list(TABLES[kind].columns))


_opened: dict[Settings, Home] = {}
_lock = Lock()


def find_home(*homes: Home | None) -> Home:
    """The first home that is given, else that of the verbs, which is opened once; ShowhowError for different ones."""
    given = [home for home in homes if home is not None]
    if given:
        if any(home.services is not given[0].services for home in given):
            raise ShowhowError(f"{given[0]!r} and {given[1]!r} are different homes; open both parts in the same one")
        return given[0]
    home = Home.open()
    with _lock:
        return _opened.setdefault(home.services.settings, home)


def run_interruptibly(work: Callable[[], ResultT], stop: Callable[[], None]) -> ResultT:
    """Run the work in a thread of its own; Ctrl+C calls `stop` and waits, so that what was done is stored.

    In a notebook the calling thread has an event loop, which the work may not have.
    """
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(copy_context().run, work)
        try:
            return future.result()
        except KeyboardInterrupt:
            stop()
            raise


def _close(services: Services, *, is_temporary: bool) -> None:
    services.close()
    if is_temporary:
        rmtree(services.settings.home, ignore_errors=True)
