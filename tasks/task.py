"""What tasks have in common. A task is a function of the services and one dataclass; pages and verbs both start it.

A page starts it as a job: `dump_call(generate, GenerateWorld(name="kin"))` is the JSON that `run_call` runs elsewhere.
"""

import importlib
import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from getpass import getuser
from pathlib import Path
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, BinaryIO, TypeVar, get_type_hints

from showhow.guard.files import partial_path, remove_abandoned_partials

if TYPE_CHECKING:
    from showhow.runs.services import Services

RequestT = TypeVar("RequestT")


class TaskError(Exception):
    """The work failed; the message is one sentence for whoever started it."""


def dump_call(task: "Callable[[Services, RequestT], object]", request: RequestT) -> str:
    """The task and its dataclass as JSON."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - verbs start without it

    place = f"{task.__module__}:{task.__qualname__}"
    return json.dumps({"task": place, "request": TypeAdapter(type(request)).dump_python(request, mode="json")})


def run_call(services: "Services", text: str) -> None:
    """Run what `dump_call` wrote in another process; TaskError also with the `problem` that its result may have."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - likewise

    call = json.loads(text)
    module, _, name = call["task"].partition(":")
    task = getattr(importlib.import_module(module), name)
    kind = get_type_hints(task)["request"]
    result = task(services, TypeAdapter(kind).validate_json(json.dumps(call["request"])))
    if problem := getattr(result, "problem", None):
        raise TaskError(problem)


def require_role(services: "Services", *accepted: str) -> None:
    """Conflict if a person acts who has none of these roles (users.py), or none at all; the command line has all.

    For tasks that change no row: the functions of the store check the others.
    """
    if services.actor is not None:
        from showhow.db.people.users import authorize  # noqa: PLC0415 - a world alone needs no store

        authorize(services.database, *accepted)


def author_name(services: "Services") -> str:
    """The name under which a task stores its work: of the person who acts, else of the account that typed the verb."""
    return getuser() if services.actor is None else services.actor.name


@contextmanager
def fail_on_interrupt(message: str) -> Iterator[None]:
    """Turn Ctrl+C and SIGTERM inside the block into a TaskError with this message."""
    handles_signals = current_thread() is main_thread()
    previous_handler = signal.signal(signal.SIGTERM, signal.default_int_handler) if handles_signals else None
    try:
        yield
    except KeyboardInterrupt:
        raise TaskError(message) from None
    finally:
        if handles_signals:
            signal.signal(signal.SIGTERM, previous_handler)


@contextmanager
def open_atomically(file: Path, *, force: bool) -> Iterator[BinaryIO]:
    """Open a file that appears under its name only once it is complete; an existing one is replaced only with force."""
    if file.is_dir() or (file.exists() and not force):
        raise TaskError(f"{file} exists already; name another file, or replace it with --force")
    partial_file = partial_path(file)
    try:
        remove_abandoned_partials(file.parent, file.name)
        with partial_file.open("xb") as stream:
            yield stream
            stream.flush()
            # Without it, a machine that stops right after the rename could leave an empty file under the name.
            os.fsync(stream.fileno())
        partial_file.replace(file)
    except OSError as error:
        raise TaskError(f"{file} cannot be written ({error.strerror}); name another file") from error
    finally:
        partial_file.unlink(missing_ok=True)
