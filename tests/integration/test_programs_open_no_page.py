"""Functions and MCP servers may use the network, and still open no page of the server on this machine."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from showhow.guard.confined_clients import is_confined_client
from showhow.guard.confinement import Protection
from tests.browser.server import Showhow
from tests.browser.session import open_session
from tests.tools.external.test_confinement import MODULE, SERVER, TOOLS, WITHOUT_NAMESPACES, Tools, confine

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="nothing is confined elsewhere"),
]
OPEN = """
import ctypes, os, socket, time
def shake_hands(host, header="", name=None, source=("", 0)):
    with socket.socket() as connection:
        connection.settimeout(30)
        connection.bind(source)
        connection.connect((host, PORT))
        connection.sendall(
            f"GET /_stcore/stream HTTP/1.1\\r\\nHost: {name or host}:{PORT}\\r\\nUpgrade: websocket\\r\\n"
            "Connection: Upgrade\\r\\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\nSec-WebSocket-Version: 13\\r\\n"
            f"Sec-WebSocket-Protocol: streamlit\\r\\n{header}\\r\\n".encode()
        )
        return connection.recv(100).split()[1].decode()
"""
ROUTES = {
    "as a browser does": "result = shake_hands('127.0.0.1')",
    "from another address of this machine": "result = shake_hands('127.0.0.1', source=('127.0.0.2', 0))",
    "as through a proxy": "result = shake_hands('127.0.0.1', 'X-Forwarded-For: 192.0.2.7\\r\\n')",
    "under another name": "result = shake_hands('127.0.0.1', name='showhow.example')",
    "with a closed memory": "ctypes.CDLL(None).prctl(4, 0); result = shake_hands('127.0.0.1')",
    "in a child whose parent ended": """
reader, writer = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        time.sleep(0.2)
        os.write(writer, shake_hands('127.0.0.1').encode())
    os._exit(0)
os.close(writer)
result = os.read(reader, 100).decode()
""",
}


@pytest.fixture(scope="module")
def showhow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    server = Showhow(tmp_path_factory.mktemp("pages"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(
    scope="module",
    params=[(False, frozenset()), (True, frozenset()), (False, WITHOUT_NAMESPACES), (False, {Protection.USER})],
    ids=["function", "server", "no namespaces", "no user"],
)
def tools(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    is_server, without = request.param
    home = tmp_path_factory.mktemp("programs")
    (home / "hostile.py").write_text(MODULE)
    (home / "hostile_server.py").write_text(SERVER)
    (home / "tools.toml").write_text(TOOLS.replace("HOME", str(home)))
    registry = confine(home, frozenset(without))
    yield Tools(registry, home, home, is_server)
    registry.close()


@pytest.mark.parametrize("route", ROUTES)
def test_a_program_of_others_opens_no_page_by_any_route(showhow: Showhow, tools: Tools, route: str):
    assert tools.result(OPEN.replace("PORT", str(showhow.port)) + ROUTES[route]) == "403"


def test_others_open_pages_while_a_program_is_at_work(showhow: Showhow, tools: Tools):
    assert tools.result("result = 1") == "1"
    with open_session(showhow.url, "settings", {}) as session:
        assert session.find("profile_add")


def test_a_connection_of_another_machine_is_not_a_program_s_and_one_that_is_gone_may_be(tools: Tools):
    assert tools.result("result = 1") == "1"
    assert not is_confined_client(("192.0.2.7", 50_000), ("192.0.2.1", 8501))
    assert not is_confined_client(("2001:db8::7", 50_000), ("2001:db8::1", 8501))
    for gone in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
        assert is_confined_client((gone, 1), ("127.0.0.1", 2)), Path("/proc/net/tcp").read_text()
