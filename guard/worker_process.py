"""The process of one bounded worker: `python -m showhow.guard.worker_process FD PARENT`; guard/worker.py starts it.

On the socket FD come frames, each with its length in 8 bytes first. A request is two of them: the call as JSON
{"function", "seconds", "megabytes", "reply_bytes"} and the pickled arguments. Replies are JSON alone, so that nothing
foreign is unpickled by the parent: {"begun": true} once the function is imported, then one of
    {"value": ...}
    {"limit": "megabytes" or "reply_bytes"}
    {"error": "module:Class", "arguments": [...], "text": ...}
"""

import importlib
import json
import os
import pickle
import resource
import signal
import socket
import sys
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from showhow.guard.limits import disable_network, end_with_parent, limit_memory, limit_processor_time

_GRACE_SECONDS = 2.0
"""Seconds past its time limit after which a call ends its process, even if nobody waits for it any more."""
PATIENCE = 5
"""How many times its limit of processor time a call may take where other processes have the processors."""
_MAX_ERROR_CHARACTERS = 2_000
HEADER_BYTES = 8
_is_worker = False


def is_worker() -> bool:
    """Whether this process has limits of its own, so that bounded work is simply done here."""
    return _is_worker


def become_worker() -> None:
    """Say that this process has limits of its own."""
    global _is_worker  # noqa: PLW0603 - a process becomes one once
    _is_worker = True


def send_frame(connection: socket.socket, *frames: bytes) -> None:
    """Send frames, each with its length before it."""
    connection.sendall(b"".join(part for frame in frames for part in (len(frame).to_bytes(HEADER_BYTES), frame)))


def _receive_frame(connection: socket.socket) -> bytes:
    header = _receive(connection, HEADER_BYTES)
    return _receive(connection, int.from_bytes(header))


def _receive(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(min(size - len(data), 1 << 20))
        if not part:
            # The parent has closed its end or died.
            os._exit(0)
        data += part
    return bytes(data)


def import_function(place: str) -> Callable[..., Any]:
    """The function at module:name."""
    module, _, name = place.partition(":")
    function: Callable[..., Any] = attrgetter(name)(importlib.import_module(module))
    return function


def _call(function: Callable[..., Any], arguments: bytes, reply_bytes: int) -> bytes:
    try:
        reply = json.dumps({"value": function(*pickle.loads(arguments))}).encode()  # noqa: S301 - the parent's own
    except MemoryError:
        return b'{"limit": "megabytes"}'
    # The function may raise any exception, which is raised again in the parent.
    except Exception as error:  # noqa: BLE001
        return _encode_error(error)
    return reply if len(reply) <= reply_bytes else b'{"limit": "reply_bytes"}'


def _encode_error(error: Exception) -> bytes:
    kind = type(error)
    text = str(error)[:_MAX_ERROR_CHARACTERS]
    arguments = [value[:_MAX_ERROR_CHARACTERS] if isinstance(value, str) else value for value in error.args]
    message: dict[str, Any] = {"error": f"{kind.__module__}:{kind.__qualname__}", "text": text}
    try:
        encoded = json.dumps(message | {"arguments": arguments}).encode()
    except (TypeError, ValueError):
        return json.dumps(message | {"arguments": [text]}).encode()
    return encoded if len(encoded) < 8 * _MAX_ERROR_CHARACTERS else json.dumps(message | {"arguments": [text]}).encode()


def _serve(connection: socket.socket) -> None:
    while True:
        request = json.loads(_receive_frame(connection))
        arguments = _receive_frame(connection)
        function = import_function(request["function"])
        send_frame(connection, b'{"begun": true}')
        # The default action of both signals ends the process, whatever it is doing: a regular expression that holds
        # the interpreter runs no handler.
        signal.setitimer(signal.ITIMER_REAL, PATIENCE * request["seconds"] + _GRACE_SECONDS)
        limit_processor_time(request["seconds"] + _GRACE_SECONDS)
        limit_memory(request["megabytes"], is_final=False)
        reply = _call(function, arguments, request["reply_bytes"])
        resource.setrlimit(resource.RLIMIT_AS, (resource.getrlimit(resource.RLIMIT_AS)[1],) * 2)
        signal.setitimer(signal.ITIMER_REAL, 0)
        send_frame(connection, reply)


def main(descriptor: int, parent: int, modules: str) -> None:
    """Import these modules, and answer requests until the parent closes the socket or dies."""
    become_worker()
    if not end_with_parent(parent):
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    disable_network()
    for module in modules.split():
        importlib.import_module(module)
    _serve(socket.socket(fileno=descriptor))


if __name__ == "__main__":
    # The module under its own name, which run_bounded asks whether it is in a worker.
    import_function("showhow.guard.worker_process:main")(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
