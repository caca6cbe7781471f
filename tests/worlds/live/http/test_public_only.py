"""Requests to public addresses only: redirects, and names that change, in a network of its own with such addresses."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.worlds.live.http.client import RecordingHttpClient
from showhow.worlds.live.http.request import Access, HttpRequest, RequestPolicy
from showhow.worlds.live.http.response_cache import ResponseCache
from showhow.worlds.live.http.transport import is_public_address
from showhow.worlds.source import SourceError
from tests.servers.faulty_server import FaultyServer, run_faulty_server, says, status
from tests.servers.public_network import enter_network

ROOT = Path(__file__).parents[4]
PUBLIC, PRIVATE = "93.184.216.34", "10.1.2.3"
OLD_RELAYS = (IPv4Network("192.0.0.0/24"), IPv4Network("192.88.99.0/24"))
"""Special networks that the ipaddress module of Python 3.11 takes for global ones."""


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("93.184.216.34", True),
        ("172.15.255.255", True),
        ("172.16.0.0", False),
        ("172.32.0.0", True),
        ("100.64.0.1", False),
        ("169.254.169.254", False),
        ("0.0.0.0", False),  # noqa: S104 - an address that is not bound
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("192.0.0.8", False),
        ("2606:2800:220:1::1", True),
        ("::1", False),
        ("::", False),
        ("fe80::1%eth0", False),
        ("fc00::1", False),
        ("fec0::1", False),
        ("ff02::1", False),
        ("2001:db8::1", False),
        ("2001::1", False),
        ("::ffff:10.0.0.1", False),
        ("::ffff:93.184.216.34", True),
        ("::127.0.0.1", False),
        ("::ffff:0:127.0.0.1", False),
        ("64:ff9b::127.0.0.1", False),
        ("64:ff9b::93.184.216.34", True),
        ("64:ff9b:1::93.184.216.34", False),
        ("2002:7f00:1::1", False),
        ("2002:5db8:d822::1", True),
    ],
)
def test_an_address_is_public_or_special(address: str, expected: bool):  # noqa: FBT001 - a parameter of the test
    assert is_public_address(address) is expected


@given(number=st.integers(0, 2**32 - 1))
def test_ipv4_addresses_are_judged_as_by_python_and_alike_in_every_form_of_ipv6(number: int):
    address = IPv4Address(number)
    expected = address.is_global and not (address.is_multicast or address.is_reserved)
    expected = expected and not any(address in network for network in OLD_RELAYS)
    assert is_public_address(str(address)) is expected
    mapped, translated = IPv6Address(0xFFFF << 32 | number), IPv6Address(0x64FF9B << 96 | number)
    six_to_four = IPv6Address(0x2002 << 112 | number << 80 | 1)
    assert {is_public_address(str(form)) for form in (mapped, translated, six_to_four)} == {expected}


@given(number=st.integers(0, 2**128 - 1))
def test_no_ipv6_address_is_public_that_python_knows_as_special(number: int):
    address = IPv6Address(number)
    if is_public_address(str(address)):
        assert address.ipv4_mapped or address.sixtofour or address.is_global
        assert not any((address.is_multicast, address.is_link_local, address.is_loopback, address.is_unspecified))


def _outcomes(urls: list[str], client: RecordingHttpClient) -> list[Any]:
    outcomes = []
    for url in urls:
        try:
            outcomes.append(json.loads(client.send(HttpRequest(url)).body))
        except SourceError as error:
            outcomes.append(str(error))
    return outcomes


def _make_client(folder: Path, *, public_only: bool) -> RecordingHttpClient:
    policy = RequestPolicy(None, max_attempts=1, max_per_minute=10_000, timeout_seconds=60.0, public_only=public_only)
    cache = ResponseCache(folder / f"{public_only}.sqlite")
    return RecordingHttpClient(policy, cache, Access("tests@showhow.example"))


def _follow_redirects(folder: Path) -> list[Any]:
    """Two requests of a source that may go to private addresses, then redirects of a public server to such ones."""
    with run_faulty_server("0.0.0.0") as server:  # noqa: S104 - in a network of its own
        outcomes = _send_redirected(server, folder)
        return [*outcomes, [(request.headers["host"], request.path) for request in server.asked]]


def _send_redirected(server: FaultyServer, folder: Path) -> list[Any]:
    port = server.host.partition(":")[2]
    public, private = f"http://{PUBLIC}:{port}", f"http://{PRIVATE}:{port}"
    server.routes |= {
        "/page": says({"page": 1}),
        "/to-page": status(302, Location="/page"),
        "/to-loopback": status(302, Location=f"http://127.0.0.1:{port}/secret"),
        "/to-decimal": status(302, Location=f"http://2130706433:{port}/secret"),
        "/to-mapped": status(302, Location=f"http://[::ffff:127.0.0.1]:{port}/secret"),
        "/to-private": status(301, Location=f"{private}/secret"),
        "/in-two-steps": status(307, Location="/to-private"),
    }
    # An open connection to the same private address, made by a source that may go there, is not used.
    opened = _outcomes([f"http://127.0.0.1:{port}/page", f"{private}/page"], _make_client(folder, public_only=False))
    paths = ("page", "to-page", "to-loopback", "to-decimal", "to-mapped", "to-private", "in-two-steps")
    return opened + _outcomes([f"{public}/{path}" for path in paths], _make_client(folder, public_only=True))


def _resolve_anew(folder: Path) -> list[Any]:
    """A name with a public address at first, and then a private one; another one with both at once."""
    with run_faulty_server(PUBLIC) as server:
        port = int(server.host.partition(":")[2])
        server.routes["/page"] = says({"page": 1})
        with socket.create_server(("127.0.0.1", port)) as private:
            private.settimeout(0)
            outcomes = _send_to_changing_names(port, folder)
            try:
                private.accept()
            except BlockingIOError:
                return [*outcomes, "nothing private was connected to"]
            return [*outcomes, "a private address was connected to"]


def _send_to_changing_names(port: int, folder: Path) -> list[Any]:
    """The outcomes of both names, and the names that were looked up."""
    resolve, lookups = socket.getaddrinfo, []

    def resolve_anew(host: Any, *arguments: Any, **options: Any) -> Any:
        names = {"changing.example": [PUBLIC if "changing.example" not in lookups else "127.0.0.1"]}
        names["both.example"] = ["127.0.0.1", PUBLIC]
        name = host.decode() if isinstance(host, bytes) else host
        if name not in names:
            return resolve(host, *arguments, **options)
        lookups.append(name)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in names[name]]

    socket.getaddrinfo = resolve_anew  # type: ignore[assignment]
    try:
        urls = [f"http://changing.example:{port}/page", f"http://both.example:{port}/page"]
        return [*_outcomes(urls, _make_client(folder, public_only=True)), lookups]
    finally:
        socket.getaddrinfo = resolve


SCENARIOS: dict[str, Callable[[Path], list[Any]]] = {"redirects": _follow_redirects, "names": _resolve_anew}
CHILD = "import sys; from tests.worlds.live.http.test_public_only import main; main(*sys.argv[1:])"


def main(scenario: str, folder: str) -> None:
    """Run a scenario in a network of its own and print its outcomes."""
    enter_network([PUBLIC, PRIVATE])
    print(json.dumps(SCENARIOS[scenario](Path(folder))))  # noqa: T201 - read by the test


def _run(scenario: str, folder: Path) -> list[Any]:
    process = subprocess.run(
        [sys.executable, "-c", CHILD, scenario, str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if "no network namespace can be made" in process.stderr:
        pytest.skip("this machine allows no network namespaces")
    assert process.returncode == 0, process.stderr
    outcomes: list[Any] = json.loads(process.stdout)
    return outcomes


def test_every_redirect_is_checked_like_the_first_address_and_nothing_private_receives_a_request(tmp_path: Path):
    *outcomes, received = _run("redirects", tmp_path)
    assert outcomes[:4] == [{"page": 1}] * 4
    hosts = ["127.0.0.1", "2130706433", "::ffff:127.0.0.1", PRIVATE, PRIVATE]
    assert [text.partition(" ")[0] for text in outcomes[4:]] == hosts
    assert all("is not on the public internet" in text for text in outcomes[4:])
    assert {path for _, path in received}.isdisjoint({"/secret"})
    assert {host.partition(":")[0] for host, _ in received[2:]} == {PUBLIC}


def test_a_name_is_resolved_once_and_only_its_checked_address_is_connected_to(tmp_path: Path):
    *outcomes, lookups, private = _run("names", tmp_path)
    assert (outcomes, lookups) == ([{"page": 1}] * 2, ["changing.example", "both.example"])
    assert private == "nothing private was connected to"
