"""The HTTP client of sessions with servers that run elsewhere; one answer has a limit."""

from collections.abc import AsyncIterator

import httpx

from tools.foreign.process import LONGEST
from tools.tool_error import ToolError

CONNECT = 10.0
"""Seconds to connect and to send; for an answer the limit of the call holds."""


class _BoundedStream(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = LONGEST
        async for piece in self._stream:
            left -= len(piece)
            if left < 0:
                raise ToolError(f"it sent more than {LONGEST:,} bytes at once; ask it for less")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


class _BoundedTransport(httpx.AsyncHTTPTransport):
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await super().handle_async_request(request)
        if isinstance(answer.stream, httpx.AsyncByteStream):
            answer.stream = _BoundedStream(answer.stream)
        return answer


def bounded_client(
    headers: dict[str, str] | None = None, timeout: httpx.Timeout | None = None, auth: httpx.Auth | None = None
) -> httpx.AsyncClient:
    """A client that takes no answer of more than the limit."""
    waits = timeout or httpx.Timeout(CONNECT, read=None)
    return httpx.AsyncClient(headers=headers, timeout=waits, auth=auth, transport=_BoundedTransport())
