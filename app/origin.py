"""Where a request comes from: from this machine itself or from elsewhere, and from a page of this server or of another.

Only a browser on this machine opens pages as the machine's account (app/widgets/person.py). A proxy connects from this
machine too, so a header that proxies add, or a Host that is not this machine's own name, means elsewhere. The pages of
another server, also of one on this machine, can neither open a WebSocket here nor post anything.
"""

import asyncio
import secrets
from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from showhow.app.capacity import CONNECTION
from showhow.guard.confined_clients import is_confined_client
from showhow.settings import LOOPBACK

LOCAL_MARK = "x-showhow-local"
"""The header by which the middleware tells pages that a request comes from this machine; its value is LOCAL_TOKEN."""
LOCAL_TOKEN = secrets.token_urlsafe(32)
"""Unguessable, and the middleware removes the header from what clients send."""
_SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
_FORWARDING_HEADERS = {
    "forwarded",
    "via",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-original-host",
    "x-original-forwarded-for",
    "true-client-ip",
    "cf-connecting-ip",
    "fastly-client-ip",
}
"""Headers that proxies add, beside those that begin with x-forwarded-."""
REFUSAL = "This server takes changes from its own pages only: open it at the address at which you want to use it."


def is_from_this_machine(scope: Scope, local_addresses: Collection[str]) -> bool:
    """Whether a program on this machine sent the request, without a proxy in between.

    `local_addresses` are those of clients that count as this machine: LOOPBACK, and addresses such as a container's
    gateway, through which the port may have another number.
    """
    headers = Headers(scope=scope)
    if any(name in _FORWARDING_HEADERS or name.startswith("x-forwarded") for name in headers):
        return False
    peer = _parse_address((scope.get("client") or ("",))[0])
    is_loopback = peer is not None and peer.is_loopback and LOOPBACK in local_addresses
    if peer is None or not (is_loopback or str(peer) in local_addresses):
        return False
    hosts = headers.getlist("host")
    try:
        host = urlsplit(f"//{hosts[0]}")
        name, port = host.hostname or "", host.port or 80
    except (IndexError, ValueError):
        return False
    address = _parse_address(name)
    is_own_name = name == "localhost" or (address is not None and (address.is_loopback or address.is_unspecified))
    served_port = (scope.get("server") or ("", None))[1]
    return len(hosts) == 1 and is_own_name and (port == served_port or not is_loopback)


def _parse_address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def is_from_own_page(scope: Scope, *, is_local: bool) -> bool:
    """Whether no browser sent the request, or one that shows a page of the server that it asks."""
    headers = Headers(scope=scope)
    origins = headers.getlist("origin")
    if not origins:
        return True
    try:
        origin = urlsplit(origins[0])
    except ValueError:
        return False
    # A proxy may speak TLS and not say so; nothing else serves this machine's own names.
    schemes = {"http"} if is_local else {"http", "https"}
    if forwarded := headers.get("x-forwarded-proto"):
        schemes = {forwarded.partition(",")[0].strip().lower()}
    return (
        len(origins) == 1
        and origin.scheme in schemes
        and origin.netloc.lower() == headers.get("host", "").lower() != ""
    )


def _is_confined(scope: Scope) -> bool:
    """Whether a function or an MCP server opens the connection."""
    # uvicorn takes the client of the scope from a header that every program can send.
    connection = scope.get("extensions", {}).get(CONNECTION)
    return connection is not None and is_confined_client(connection.client[:2], connection.server[:2])


class OriginMiddleware:
    """Refuses other servers' pages and confined programs, and marks the requests that come from this machine."""

    def __init__(self, app: ASGIApp, local_addresses: Collection[str]) -> None:
        self._app = app
        self._local_addresses = local_addresses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its mark, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        is_local = is_from_this_machine(scope, self._local_addresses)
        changes = scope["type"] == "websocket" or scope["method"] not in _SAFE_METHODS
        if changes and not is_from_own_page(scope, is_local=is_local):
            await _refuse(scope, receive, send)
            return
        # A page is used through its WebSocket only. The search for the other end takes some hundredths of a second.
        if scope["type"] == "websocket" and await asyncio.to_thread(_is_confined, scope):
            await _refuse(scope, receive, send)
            return
        headers = [(name, value) for name, value in scope["headers"] if name.lower() != LOCAL_MARK.encode()]
        if is_local:
            headers.append((LOCAL_MARK.encode(), LOCAL_TOKEN.encode()))
        await self._app({**scope, "headers": headers}, receive, send)


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": "not a page of this server"})
        return
    # The rest of the request may be unread, so the connection cannot be used again.
    refusal = PlainTextResponse(REFUSAL, status_code=403, headers={"Connection": "close"})
    await refusal(scope, receive, send)
