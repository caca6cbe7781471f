"""How many visitors the server takes: each holds file descriptors, of which a process has a limited number.

A visitor holds four: the connection of the page, and an event loop of Streamlit (three). The server keeps a reserve for
the work of those who are in: connections of the database, tools and worker processes. A new visitor is refused while
less than the reserve is free; whoever was served a page before may use half of the reserve, to reload or reconnect.
"""

import errno
import hmac
import resource
import secrets

import psutil
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_RESERVE = 256
"""Descriptors that are kept for the work of those who are in; a quarter of the limit if that is less."""
COOKIE = "showhow_visit"
SERVER_FULL = "Showhow is full: as many people are at work as this server can take. Try again in a few minutes."
_FULL_PAGE = (
    f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>Showhow is full</title><p>{SERVER_FULL}</p></html>"
)


_MACOS_MAX_LIMIT = 10_240
"""The highest limit that macOS accepts; it reports an unlimited one."""


def raise_descriptor_limit() -> None:
    """Raise the soft limit of open files to the hard one, for this process and those it becomes or starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (hard, max(soft, _MACOS_MAX_LIMIT)):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        except (OSError, ValueError):
            continue
        return


def count_free_descriptors() -> int:
    """The number of descriptors that this process can still open."""
    try:
        opened = psutil.Process().num_fds()
    except OSError as error:
        if error.errno == errno.EMFILE:
            return 0
        raise
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] - opened


def reserved_descriptors() -> int:
    """The number of descriptors that new visitors must leave free."""
    return min(MAX_RESERVE, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)


class CapacityMiddleware:
    """Answers a new visitor with one sentence while the server is full."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._visit = secrets.token_urlsafe(16)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, unless it is a new visitor's and the server is full."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        is_page = scope["type"] == "http" and "text/html" in connection.headers.get("accept", "")
        if not is_page and scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        was_served = hmac.compare_digest(connection.cookies.get(COOKIE, "").encode(), self._visit.encode())
        reserve = reserved_descriptors() // 2 if was_served else reserved_descriptors()
        if count_free_descriptors() < reserve:
            await self._refuse(scope, receive, send)
        else:
            await self._app(scope, receive, send if was_served or not is_page else self._set_cookie(send))

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1013, "reason": "the server is full"})
            return
        refusal = HTMLResponse(_FULL_PAGE, status_code=503, headers={"Retry-After": "60", "Connection": "close"})
        await refusal(scope, receive, send)

    def _set_cookie(self, send: Send) -> Send:
        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                cookie = f"{COOKIE}={self._visit}; Path=/; HttpOnly; SameSite=Lax"
                message["headers"] = [*message["headers"], (b"set-cookie", cookie.encode())]
            await send(message)

        return send_with_cookie
