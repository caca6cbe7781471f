"""The login at a provider of identities, which runs in a process of its own."""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from showhow.app.login import COOKIE
from showhow.app.oidc import STATE_COOKIE
from showhow.db.people import logins
from tests.app.test_login import OWN, Team, migrated  # noqa: F401 - a fixture
from tests.servers.loopback import free_port

SECRET = "the secret of this client"  # noqa: S105 - of this test


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """The issuer of a provider that lets everybody log in as the subject that they type."""
    port = free_port()
    command = [sys.executable, "-W", "ignore", "-m", "oidc_provider_mock", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        issuer = f"http://127.0.0.1:{port}"
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                httpx.get(f"{issuer}/.well-known/openid-configuration")
                break
            except httpx.HTTPError:
                assert process.poll() is None
                time.sleep(0.05)
        yield issuer
        process.terminate()


@pytest.fixture
def team(migrated: Path, tmp_path: Path, provider: str) -> Iterator[Team]:  # noqa: F811 - a fixture
    shutil.copytree(migrated, tmp_path, dirs_exist_ok=True)
    settings = {"SHOWHOW_OIDC_ISSUER": provider, "SHOWHOW_OIDC_CLIENT": "showhow", "SHOWHOW_OIDC_SECRET": SECRET}
    served = Team(tmp_path, SHOWHOW_LOGIN="oidc", SHOWHOW_URL=OWN, **settings)
    yield served
    served.services.close()


def start(team: Team, **query: str) -> tuple[str, str]:
    """Begin a login; returns the address at the provider, and the browser's cookie of it."""
    reply = team.ask("GET", "/login/start", params=query)
    assert reply.status_code == 303, reply.text
    return reply.headers["Location"], reply.cookies[STATE_COOKIE]


def consent(address: str, subject: str) -> str:
    """Log in at the provider; returns the path and the query to which it sends the browser back."""
    reply = httpx.post(address, data={"sub": subject})
    assert reply.status_code == 302, reply.text
    assert reply.headers["Location"].startswith(f"{OWN}/login/callback?")
    return str(reply.headers["Location"]).removeprefix(OWN)


def come_back(team: Team, path: str, state: str, **cookies: str) -> httpx.Response:
    sent = "; ".join(f"{name}={value}" for name, value in {STATE_COOKIE: state, **cookies}.items())
    return team.ask("GET", path, headers={"Cookie": sent})


def log_in(team: Team, subject: str, **query: str) -> httpx.Response:
    address, state = start(team, **query)
    return come_back(team, consent(address, subject), state)


def test_an_invited_person_links_an_account_and_comes_back_with_it(team: Team):
    link = f"/invite/{team.invite('ben')}"
    page = team.ask("GET", link)
    begin = re.search(r'href="/login/start\?invitation=([^"]+)"', page.text)
    assert begin is not None
    first = log_in(team, "subject of ben", invitation=begin[1])
    assert (first.status_code, first.headers["Location"]) == (303, "/"), first.text
    assert team.who(first.cookies[COOKIE]) == "ben"
    again = log_in(team, "subject of ben", next="/library?x=1")
    assert (again.status_code, again.headers["Location"]) == (303, "/library?x=1")
    assert team.who(again.cookies[COOKIE]) == "ben"
    # The link was used, by whomever.
    assert team.ask("GET", link).status_code == 410
    used = log_in(team, "subject of ada", invitation=begin[1])
    assert (used.status_code, COOKIE in used.cookies) == (403, False)
    with team.services.database.begin() as session:
        logins.switch(session, "ben", on=False)
    assert team.who(again.cookies[COOKIE]) == ""
    assert log_in(team, "subject of ben").status_code == 403


def test_an_account_that_nobody_invited_does_not_get_in_whatever_it_is_called(team: Team):
    for subject in ("stranger", "ada", str(team.ids["ada"]), "ada@example.org"):
        reply = log_in(team, subject)
        assert (reply.status_code, COOKIE in reply.cookies) == (403, False)
        assert "Nobody has invited this account" in reply.text


def test_a_callback_without_the_login_that_this_browser_began_is_refused(team: Team):
    log_in(team, "eve", invitation=team.invite("ben"))
    address, state = start(team)
    path = consent(address, "eve")
    other_state = start(team)[1]
    forged = jwt.encode(dict.fromkeys(("state", "nonce", "verifier", "next", "invitation"), ""), "x" * 32)
    stolen = f"/login/callback?{path.partition('?')[2].replace('state=', 'state=x')}"
    for sent_path, cookie in (
        (path, ""),
        (path, other_state),
        (path, forged),
        (stolen, state),
        ("/login/callback", state),
    ):
        reply = come_back(team, sent_path, cookie)
        assert (reply.status_code, COOKIE in reply.cookies) == (403, False), sent_path
    assert come_back(team, path, state).status_code == 303
    assert come_back(team, path, state).status_code == 403, "a code is used once"


def test_a_code_of_another_login_is_not_taken(team: Team):
    """Its nonce is that of the login for which the provider made it."""
    log_in(team, "eve", invitation=team.invite("ben"))
    others = consent(start(team)[0], "eve")
    code = re.search(r"code=([^&]+)", others)
    address, state = start(team)
    own = re.search(r"state=([^&]+)", address)
    assert code is not None
    assert own is not None
    reply = come_back(team, f"/login/callback?code={code[1]}&state={own[1]}", state)
    assert (reply.status_code, "did not work" in reply.text) == (403, True)


@pytest.mark.parametrize(
    "issuer", ["http://127.0.0.1:9", "http://idp.example", "https://u:p@127.0.0.1", "{provider}/elsewhere", "nothing"]
)
def test_a_provider_that_does_not_answer_as_one_is_told_in_a_sentence(
    migrated: Path,  # noqa: F811 - a fixture
    tmp_path: Path,
    provider: str,
    issuer: str,
    caplog: Any,
):
    shutil.copytree(migrated, tmp_path, dirs_exist_ok=True)
    settings = {"SHOWHOW_OIDC_ISSUER": issuer.format(provider=provider), "SHOWHOW_OIDC_CLIENT": "showhow"}
    served = Team(tmp_path, SHOWHOW_LOGIN="oidc", SHOWHOW_URL=OWN, SHOWHOW_OIDC_SECRET=SECRET, **settings)
    reply = served.ask("GET", "/login/start")
    assert (reply.status_code, "The login did not work" in reply.text) == (403, True)
    assert "the login provider: " in caplog.text
    assert SECRET not in caplog.text
    served.services.close()
