"""The table of secrets and their destinations."""

import json
import stat
from pathlib import Path

import pytest

from showhow.guard.destinations import (
    DestinationError,
    Grant,
    InvalidOrigin,
    SecretTable,
    normalize_address,
    parse_origin,
)

OWNERS = {"OWN_API_KEY": "api.own.example"}


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        ("https://API.Own.Example.:443/v1", "https://api.own.example"),
        ("HTTPS://api.own.example:8443", "https://api.own.example:8443"),
        ("http://127.1:80/", "http://127.0.0.1"),
        ("http://0x7f.1:8080", "http://127.0.0.1:8080"),
        ("http://2130706433", "http://127.0.0.1"),
        ("http://0177.0.0.1", "http://127.0.0.1"),
        ("http://[::FFFF:127.0.0.1]:5", "http://127.0.0.1:5"),
        ("http://[0:0::1]", "http://[::1]"),
        ("https://bücher.example", "https://xn--bcher-kva.example"),
        ("https://ａｐｉ.own.example", "https://api.own.example"),
        ("https://127。0。0。1", "https://127.0.0.1"),
        ("https://evil.example#@api.own.example", "https://evil.example"),
        ("https://evil.example?.own.example", "https://evil.example"),
    ],
)
def test_an_origin_has_one_spelling_and_the_address_is_used_with_it(address: str, origin: str):
    assert str(parse_origin(address)) == origin
    assert normalize_address(address).startswith(origin)
    assert parse_origin(normalize_address(address)) == parse_origin(address)


@pytest.mark.parametrize(
    "address",
    [
        *("https://api.own.example@evil.example", "https://a:b@c.example", "https://evil.example\\@api.own.example"),
        *("https://evil.example\t.own.example", " https://a.example", "https://a.example\n", "https://%61.example"),
        *("ftp://a.example", "//a.example", "a.example", "https://", "https://a..example", "https://a.example:0"),
        *("https://a.example:99999", "https://1.2.3.4.5", "https://1.2.3.256", "https://[fe80::1%25eth0]"),
        *("https://[::1", f"https://{'a' * 64}.example", f"https://{'a.' * 127}aa", "https://-ü-"),
        "https://\u202ea.example",
    ],
)
def test_an_address_that_programs_read_in_different_ways_has_no_origin(address: str):
    with pytest.raises(InvalidOrigin):
        parse_origin(address)
    assert "is not sent to" in (SecretTable({}, stated=[Grant("A", address)]).find_refusal("A", address) or "")


@pytest.mark.parametrize(
    ("address", "is_private"),
    [
        ("https://any.example", True),
        ("http://localhost:8000", True),
        ("http://127.9.9.9", True),
        ("http://[::1]:8000", True),
        ("http://any.example", False),
        ("http://10.0.0.7", False),
        ("http://0.0.0.0", False),
        ("http://localhost.evil.example", False),
        ("http://127.0.0.1.evil.example", False),
        ("http://a.localhost", False),
    ],
)
def test_a_secret_goes_over_http_on_this_machine_only(address: str, is_private: bool):  # noqa: FBT001 - a case
    table = SecretTable({}, stated=[Grant("ANY_TOKEN", str(parse_origin(address)))])
    refusal = table.find_refusal("ANY_TOKEN", address)
    assert (refusal is None) == is_private
    assert is_private or ("ANY_TOKEN" in refusal and str(parse_origin(address)) in refusal and "https://" in refusal)


@pytest.mark.parametrize(
    ("address", "is_owners"),
    [
        ("https://api.own.example/v1", True),
        ("https://eu.api.own.example", True),
        ("https://API.OWN.EXAMPLE.", True),
        ("http://api.own.example", False),
        ("https://api.own.example:8443", False),
        ("https://own.example", False),
        ("https://evilapi.own.example", False),
        ("https://api.own.example.evil.example", False),
        ("http://127.0.0.1:8000", False),
    ],
)
def test_a_provider_gets_its_own_key_and_nobody_else_does(address: str, is_owners: bool):  # noqa: FBT001 - a case
    table = SecretTable({}, owners=OWNERS)
    assert (table.find_refusal("OWN_API_KEY", address) is None) == is_owners
    assert table.find_refusal("OTHER_API_KEY", address) is not None


def test_what_an_administrator_allows_is_recorded_once_for_that_variable_and_server(tmp_path: Path):
    file = tmp_path / "home" / "destinations.json"
    table = SecretTable({}, file)
    refusal = table.find_refusal("A_TOKEN", "https://a.example/v1", "ask Ada")
    assert refusal == "A_TOKEN is not sent to https://a.example, which is not allowed yet; ask Ada."
    table.allow([Grant("A_TOKEN", "https://A.example:443")])
    SecretTable({}, file).allow([Grant("B_TOKEN", "http://127.0.0.1:9")])
    assert table.find_refusal("A_TOKEN", "https://a.example/other") is None
    assert table.find_refusal("A_TOKEN", "https://a.example:8443") is not None
    assert table.find_refusal("A_TOKEN", "http://127.0.0.1:9") is not None
    assert table.find_refusal("a_token", "https://a.example") is not None
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(path.name for path in file.parent.iterdir()) == ["destinations.json", "destinations.lock"]
    assert [entry["variable"] for entry in json.loads(file.read_text())["allowed"]] == ["A_TOKEN", "B_TOKEN"]


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"allowed": [1]}', '{"allowed": [{"variable": "A_TOKEN"}]}'])
def test_a_damaged_table_allows_nothing_and_says_so(tmp_path: Path, text: str):
    file = tmp_path / "destinations.json"
    file.write_text(text)
    table = SecretTable({}, file)
    assert f"{file} cannot be read" in (table.find_refusal("A_TOKEN", "https://a.example") or "")
    with pytest.raises(DestinationError, match="remove it"):
        table.allow([Grant("A_TOKEN", "https://a.example")])
