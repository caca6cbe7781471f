"""A SPARQL endpoint in a child process that answers every query with one row after a fixed delay."""

import asyncio
import json
import multiprocessing
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_CONTENT_LENGTH = re.compile(rb"content-length:\s*(\d+)", re.IGNORECASE)
_ROW = {"x": {"type": "uri", "value": "http://www.wikidata.org/entity/Q1"}}
_BODY = json.dumps({"head": {"vars": ["x"]}, "results": {"bindings": [_ROW]}}).encode()
_REPLY = (
    f"HTTP/1.1 200 OK\r\nContent-Type: application/sparql-results+json\r\nContent-Length: {len(_BODY)}\r\n\r\n".encode()
    + _BODY
)


@contextmanager
def run_slow_endpoint(seconds: float) -> Iterator[str]:
    """Run the endpoint; yields its URL."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_run_server, args=(seconds, theirs), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}/sparql"
    finally:
        process.kill()
        process.join()


def _run_server(seconds: float, pipe: Any) -> None:
    asyncio.run(_answer_requests(seconds, pipe))


async def _answer_requests(seconds: float, pipe: Any) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _CONTENT_LENGTH.search(head)
                await reader.readexactly(int(length[1]) if length else 0)
                await asyncio.sleep(seconds)
                writer.write(_REPLY)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, backlog=256)
    pipe.send(server.sockets[0].getsockname()[1])
    async with server:
        await server.serve_forever()
