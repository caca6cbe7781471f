"""Servers of the benchmarks, each in a child process.

- `showhow run` itself.
- A SPARQL endpoint that answers every query with one row after a fixed delay.
- A scripted language model of known latency: it makes scripted calls, then answers. A reply depends only on the number
  of calls in the prompt, so any number of agents can use the server concurrently.
"""

import asyncio
import json
import multiprocessing
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx

_CONTENT_LENGTH = re.compile(rb"content-length:\s*(\d+)", re.IGNORECASE)
_ROW = {"x": {"type": "uri", "value": "http://www.wikidata.org/entity/Q1"}}
_BODY = json.dumps({"head": {"vars": ["x"]}, "results": {"bindings": [_ROW]}}).encode()
_REPLY = (
    f"HTTP/1.1 200 OK\r\nContent-Type: application/sparql-results+json\r\nContent-Length: {len(_BODY)}\r\n\r\n".encode()
    + _BODY
)


Responder = Callable[[bytes], bytes]
"""What a request with this body is answered with, head and body."""


@contextmanager
def _run_server(make_responder: Callable[..., Responder], latency: float, *arguments: Any) -> Iterator[str]:
    """Serve the responder in a child process, each reply after the latency; yields the address."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe()
    process = context.Process(target=_serve, args=(make_responder, latency, sender, *arguments), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{receiver.recv()}"
    finally:
        process.kill()
        process.join()


def _serve(make_responder: Callable[..., Responder], latency: float, pipe: Any, *arguments: Any) -> None:
    asyncio.run(_answer_requests(make_responder(*arguments), latency, pipe))


async def _answer_requests(respond: Responder, latency: float, pipe: Any) -> None:
    loop = asyncio.get_running_loop()

    async def handle_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                due = loop.time() + latency
                length = _CONTENT_LENGTH.search(head)
                reply = respond(await reader.readexactly(int(length[1]) if length else 0))
                await asyncio.sleep(due - loop.time())
                writer.write(reply)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(handle_connection, "127.0.0.1", 0, backlog=256)
    pipe.send(server.sockets[0].getsockname()[1])
    async with server:
        await server.serve_forever()


@contextmanager
def run_slow_endpoint(seconds: float) -> Iterator[str]:
    """Run the slow SPARQL endpoint; yields its URL."""
    with _run_server(_make_endpoint, seconds) as url:
        yield f"{url}/sparql"


def _make_endpoint() -> Responder:
    return lambda _body: _REPLY


ScriptedCalls = Sequence[tuple[str, dict[str, Any]]]
_MADE_CALL = re.compile(rb'"tool_call_id":\s*"call_')
_STREAM_FLAG = re.compile(rb'"stream":\s*true')
_USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
FINAL_REPLY = "I have seen enough.\n\nFinal Answer: that\nText says: that\nGraph says: none"


@contextmanager
def run_model_server(calls: ScriptedCalls, latency: float) -> Iterator[str]:
    """Run the scripted model's server; yields its base URL."""
    with _run_server(_make_model, latency, calls) as url:
        yield f"{url}/v1"


def _make_model(calls: ScriptedCalls) -> Responder:
    replies = [*(_encode_reply("I go on.", call) for call in calls), _encode_reply(FINAL_REPLY, None)]

    def respond(body: bytes) -> bytes:
        complete, streamed = replies[min(len(_MADE_CALL.findall(body)), len(replies) - 1)]
        return streamed if _STREAM_FLAG.search(body) else complete

    return respond


def _encode_reply(text: str, call: tuple[str, dict[str, Any]] | None) -> tuple[bytes, bytes]:
    """Encode a reply as a single response, and as an event stream of words."""
    reason = "stop" if call is None else "tool_calls"
    calls = [] if call is None else [_encode_call(*call)]
    completion = _completion_object("message", {"content": text, **({"tool_calls": calls} if calls else {})}, reason)
    words = [_completion_object("delta", {"content": word}, None) for word in re.findall(r"\S+\s*", text)]
    call_deltas = [_completion_object("delta", {"tool_calls": [{"index": 0, **call}]}, None) for call in calls]
    end = {**_completion_object("delta", {}, reason), "usage": _USAGE}
    events = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in (*words, *call_deltas, end))
    return (
        _http_response("application/json", json.dumps({**completion, "usage": _USAGE}).encode()),
        _http_response("text/event-stream", events + b"data: [DONE]\n\n"),
    )


def _encode_call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def _completion_object(part: str, message: dict[str, Any], reason: str | None) -> dict[str, Any]:
    choice = {"index": 0, part: {"role": "assistant", **message}, "finish_reason": reason}
    kind = "chat.completion" if part == "message" else "chat.completion.chunk"
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "scripted", "choices": [choice]}


def _http_response(kind: str, body: bytes) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


SHOWHOW_COMMAND = Path(sys.executable).with_name("showhow")
START_TIMEOUT = 120


@dataclass(frozen=True, slots=True)
class AppServer:
    """A running server: URL and process id."""

    url: str
    process_id: int

    def peak_mb(self) -> float:
        """Peak resident memory of the process in MB."""
        for line in Path(f"/proc/{self.process_id}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        raise RuntimeError(f"/proc/{self.process_id}/status has no VmHWM")


def server_environment(home: Path) -> dict[str, str]:
    """Environment for a child process: this one's without SHOWHOW_ variables, with the given home."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SHOWHOW_")}
    return {**inherited, "SHOWHOW_HOME": str(home)}


@contextmanager
def run_app_server(home: Path, environ: Mapping[str, str] = MappingProxyType({})) -> Iterator[AppServer]:
    """Run a server for this home on a free port, with these variables too."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    started = time.perf_counter()
    with (home / "server.log").open("ab") as log:
        command = [str(SHOWHOW_COMMAND), "run", "--port", str(port)]
        env = {**server_environment(home), **environ}
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log, cwd=home)  # noqa: S603 - our own
    try:
        _wait_until_ready(url, process, started)
        yield AppServer(url, process.pid)
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], started: float) -> None:
    while time.perf_counter() - started < START_TIMEOUT:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with status {process.returncode}")
        try:
            if httpx.get(f"{url}/healthz", timeout=5).text == "ok":
                return
        except httpx.TransportError:
            time.sleep(0.02)
    raise RuntimeError(f"the server did not answer within {START_TIMEOUT} s")
