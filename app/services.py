"""The services of this process, built once from its environment.

Pages, verbs and the server call `current_services()` once and pass the value, or parts of it, as parameters.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from uuid import UUID

from showhow.app.jobs import JobRegistry
from showhow.guard import plugins
from showhow.guard.environment import read_environment
from showhow.guard.redaction import NOTHING_SECRET, Redactor
from showhow.runs.services import Services
from showhow.settings import Settings, SettingsError

HOME_CONTENTS = {"showhow.db", "worlds", "tools.toml"}
"""A folder with one of these is a home that was made before."""
_override: ContextVar[Services | None] = ContextVar("services", default=None)


def current_services() -> Services:
    """The current services: those of `use_services` inside its block, else those of the process."""
    return _override.get() or _process_services()


@contextmanager
def use_services(value: Services) -> Iterator[None]:
    """Use these services in this thread, instead of those of the process, until the block ends."""
    token = _override.set(value)
    try:
        yield
    finally:
        _override.reset(token)


def act_as(person_id: UUID) -> None:
    """Have the services of this context act as a stored person, for whom a page started this process as a job."""
    from showhow.db.people.users import ActingPerson, get_user  # noqa: PLC0415 - SQLAlchemy takes long to load

    services = current_services()
    with services.database.read() as session:
        person = ActingPerson(get_user(session, person_id).name, is_local=False)
    _override.set(services.acting_as(person))


@cache
def _process_services() -> Services:
    # What this process writes, exports included, is readable by its owner only.
    os.umask(0o077)
    environ = read_environment()
    settings = Settings.from_env(environ, Path.cwd() / ".env")
    _close_home(settings.home)
    return Services(settings, environ)


def output_redactor() -> Redactor:
    """What removes secrets from the output of this process; nothing before its services are built."""
    services = _override.get()
    if services is None and _process_services.cache_info().currsize:
        services = _process_services()
    return NOTHING_SECRET if services is None else services.redactor


def _close_home(home: Path) -> None:
    """Close a home that exists to other users; a folder that holds something else than a home stays as it is."""
    with suppress(OSError):  # not our folder, or none yet
        names = {path.name for path in home.iterdir()}
        is_home = not names or not names.isdisjoint(HOME_CONTENTS)
        mode = home.stat().st_mode
        if is_home and mode & 0o077 and not mode & stat.S_ISVTX:
            home.chmod(0o700)


def _plugins_are_on() -> bool:
    if _override.get() is not None or _process_services.cache_info().currsize:
        return current_services().settings.plugins
    # The help of a verb lists plugins, too: it needs no settings that can be used, and builds no services.
    with suppress(SettingsError):
        return Settings.from_env(read_environment(), Path.cwd() / ".env").plugins
    return False


plugins.use_setting(_plugins_are_on)


@cache
def jobs() -> JobRegistry:
    """The background jobs of this server, which run independently of the page that started them."""
    return JobRegistry()
