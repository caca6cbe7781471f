"""Where requests come from, as the server's middleware decides it."""

import asyncio
from typing import Any

import pytest

from showhow.app.origin import LOCAL_MARK, LOCAL_TOKEN, OriginMiddleware
from showhow.settings import LOOPBACK

PORT = 8501
OWN = "http://127.0.0.1:8501"


def send(
    *headers: tuple[str, str],
    kind: str = "http",
    method: str = "GET",
    peer: str = "127.0.0.1",
    allowed: tuple[str, ...] = (LOOPBACK,),
) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """Send a request through the middleware; returns the scope that reached the app, None if none, and the replies."""
    names = {name.lower() for name, _ in headers}
    sent = [*headers, *([] if "host" in names else [("Host", f"127.0.0.1:{PORT}")])]
    scope = {
        "type": kind,
        "method": method,
        "path": "/",
        "client": (peer, 50_000),
        "server": ("127.0.0.1", PORT),
        "headers": [(name.lower().encode(), value.encode()) for name, value in sent],
    }
    reached: list[dict[str, Any]] = []
    replies: list[dict[str, Any]] = []

    async def app(scope: dict[str, Any], *_: Any) -> None:
        reached.append(scope)

    async def reply(message: dict[str, Any]) -> None:
        replies.append(message)

    asyncio.run(OriginMiddleware(app, allowed)(scope, None, reply))  # type: ignore[arg-type]
    return (reached[0] if reached else None), replies


def is_local(*headers: tuple[str, str], peer: str = "127.0.0.1", allowed: tuple[str, ...] = (LOOPBACK,)) -> bool:
    scope, _ = send(*headers, peer=peer, allowed=allowed)
    assert scope is not None
    marks = [value for name, value in scope["headers"] if name == LOCAL_MARK.encode()]
    assert marks in ([], [LOCAL_TOKEN.encode()]), "the mark that a client sends is removed"
    return bool(marks)


@pytest.mark.parametrize("host", ["127.0.0.1:8501", "localhost:8501", "LOCALHOST:8501", "[::1]:8501", "0.0.0.0:8501"])
def test_a_browser_on_this_machine_that_asks_for_this_machine_is_local(host):
    assert is_local(("Host", host))
    assert is_local(("Host", host), peer="::ffff:127.0.0.1")
    assert is_local(("Host", host), peer="::1")


@pytest.mark.parametrize(
    "header",
    [
        ("X-Forwarded-For", "127.0.0.1"),
        ("x-forwarded-for", ""),
        ("X-Forwarded-Host", "localhost"),
        ("X-Forwarded-Proto", "http"),
        ("X-Forwarded-Server", "me"),
        ("Forwarded", "for=127.0.0.1"),
        ("X-Real-IP", "127.0.0.1"),
        ("Via", "1.1 me"),
        ("CF-Connecting-IP", "127.0.0.1"),
        ("Host", "showhow.example"),
        ("Host", "showhow.example:8501"),
        ("Host", "localhost"),
        ("Host", "localhost:80"),
        ("Host", "127.0.0.1:9000"),
        ("Host", "localhost.evil.example:8501"),
        ("Host", "evil@localhost.example:8501"),
        ("Host", "127.0.0.1.nip.io:8501"),
        ("Host", "localhost:x"),
        ("Host", "["),
        ("Host", ""),
    ],
)
def test_a_header_of_a_proxy_or_another_name_means_elsewhere(header):
    assert not is_local(header)


def test_a_second_host_another_peer_and_a_forged_mark_mean_elsewhere():
    assert not is_local(("Host", "localhost:8501"), ("Host", "showhow.example"))
    for peer in ("192.168.1.7", "172.17.0.1", "::ffff:10.0.0.1", "testclient", ""):
        assert not is_local(peer=peer)
    assert not is_local((LOCAL_MARK, LOCAL_TOKEN), peer="192.168.1.7"), "even if the token were known"
    assert not is_local((LOCAL_MARK.upper(), "yes"), ("Via", "1.1 me"))


def test_the_settings_say_which_addresses_count_as_this_machine():
    container = (LOOPBACK, "172.17.0.1")
    assert is_local(("Host", "localhost:9000"), peer="172.17.0.1", allowed=container)
    assert not is_local(("Host", "showhow.example"), peer="172.17.0.1", allowed=container)
    assert not is_local(("X-Forwarded-For", "10.0.0.1"), peer="172.17.0.1", allowed=container)
    assert not is_local(allowed=()), "every visitor comes through a proxy"


@pytest.mark.parametrize(
    ("kind", "method"), [("websocket", "GET"), ("http", "POST"), ("http", "PUT"), ("http", "DELETE")]
)
@pytest.mark.parametrize(
    ("origin", "accepted"),
    [
        (OWN, True),
        ("http://localhost:3000", False),
        ("http://127.0.0.1:3000", False),
        ("http://localhost:8501", False),
        ("https://127.0.0.1:8501", False),
        ("http://127.0.0.1:8501.evil.example", False),
        ("http://127.0.0.1", False),
        ("null", False),
        ("", False),
        ("file://", False),
        ("http://[", False),
    ],
)
def test_only_the_pages_of_the_server_itself_change_anything(kind, method, origin, accepted):
    scope, replies = send(("Origin", origin), kind=kind, method=method)
    assert (scope is not None) == accepted
    if not accepted:
        refusal = replies[0]
        assert refusal.get("status") == 403 or refusal == {
            "type": "websocket.close",
            "code": 1008,
            "reason": "not a page of this server",
        }


def test_behind_a_proxy_the_name_that_the_browser_asked_for_is_the_origin():
    behind = (("Host", "showhow.example"), ("X-Forwarded-For", "10.0.0.1"))
    for origin, proto, accepted in (
        ("https://showhow.example", "https", True),
        ("http://showhow.example", "https", False),
        ("https://showhow.example", None, True),
        ("https://other.example", "https", False),
        ("https://showhow.example:8443", "https", False),
    ):
        headers = [*behind, ("Origin", origin), *([("X-Forwarded-Proto", proto)] if proto else [])]
        assert (send(*headers, kind="websocket")[0] is not None) == accepted, (origin, proto)


def test_a_program_that_is_no_browser_sends_no_origin_and_a_page_is_read_from_anywhere():
    assert send(kind="websocket")[0] is not None
    assert send(("Origin", "http://localhost:3000"))[0] is not None, "a GET changes nothing"
