"""The HTTP client of sessions with servers that run elsewhere; one answer has a limit."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import httpx

from tools.foreign.process import LONGEST

CONNECT = 10.0
"""Seconds to connect and to send; for an answer the limit of the call holds."""
Notify = Callable[[], None]


class _BoundedStream(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, notify: Notify) -> None:
        self._stream, self._notify = stream, notify

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = LONGEST
        async for piece in self._stream:
            left -= len(piece)
            if left < 0:
                # MCP's client takes a stream that ends for one that is to be opened again, so the session is told.
                self._notify()
                return
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


class _BoundedTransport(httpx.AsyncHTTPTransport):
    def __init__(self, notify: Notify) -> None:
        super().__init__()
        self._notify = notify

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await super().handle_async_request(request)
        if isinstance(answer.stream, httpx.AsyncByteStream):
            answer.stream = _BoundedStream(answer.stream, self._notify)
        return answer


@dataclass(frozen=True, slots=True)
class BoundedClients:
    """Makes clients that take no answer of more than the limit, and say when one was longer."""

    notify: Notify

    def __call__(
        self,
        headers: dict[str, str] | None = None,
        timeout: httpx.Timeout | None = None,
        auth: httpx.Auth | None = None,
    ) -> httpx.AsyncClient:
        waits = timeout or httpx.Timeout(CONNECT, read=None)
        return httpx.AsyncClient(headers=headers, timeout=waits, auth=auth, transport=_BoundedTransport(self.notify))
