"""Attacks on the login, and what keeps people out without an attack: each test is one that somebody tried."""

import shutil
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from showhow.app import login_pages
from showhow.app.login import COOKIE, SECURE_COOKIE
from showhow.app.login_pages import KNOWN_COOKIE, MAX_COUNTED, LoginAttempts
from showhow.app.visitors import Allowance
from showhow.db.people import users
from tests.app.test_login import (
    OWN,
    PAGE,
    PASSWORD,
    SECRET,
    Team,
    behind_proxy,  # noqa: F401 - a fixture
    migrated,  # noqa: F401 - a fixture
    taken_in,
)

HTTPS = OWN.replace("http", "https")


@pytest.fixture
def team(migrated: Path, tmp_path: Path) -> Iterator[Team]:  # noqa: F811 - a fixture
    shutil.copytree(migrated, tmp_path, dirs_exist_ok=True)
    served = Team(tmp_path, SHOWHOW_LOGIN="password")
    yield served
    served.services.close()


def wrong(team: Team, name: str, count: int) -> None:
    for _ in range(count):
        team.log_in(name, "wrong password")


def test_over_https_the_cookie_is_of_this_host_alone_though_the_proxy_does_not_say_https(team: Team):
    team.enter("ben")
    fields = {"name": "ben", "password": PASSWORD}
    reply = team.ask("POST", "/login", data=fields, headers={"Origin": HTTPS})
    written = next(line for line in reply.headers.get_list("Set-Cookie") if line.startswith(SECURE_COOKIE))
    assert {"HttpOnly", "SameSite=lax", "Path=/", "Secure"} <= set(written.split("; "))
    assert "Domain" not in written
    assert COOKIE not in reply.cookies
    own = reply.cookies[SECURE_COOKIE]
    # Another host of the domain can plant the plain name only.
    planted = team.enter("ada")
    for cookies in (f"{SECURE_COOKIE}={own}; {COOKIE}={planted}", f"{COOKIE}={planted}; {SECURE_COOKIE}={own}"):
        assert team.who(Cookie=cookies) == "ben"
    # A login over https ends the one before, which had the same name.
    again = team.ask("POST", "/login", data=fields, headers={"Origin": HTTPS, "Cookie": f"{SECURE_COOKIE}={own}"})
    assert [team.who(Cookie=f"{SECURE_COOKIE}={token}") for token in (own, again.cookies[SECURE_COOKIE])] == ["", "ben"]


@pytest.mark.parametrize("name", [COOKIE, SECURE_COOKIE])
def test_the_login_page_takes_a_dead_cookie_and_leaves_a_living_one(team: Team, name: str):
    dead = team.ask("GET", "/login", headers={"Cookie": f"{name}={'x' * 43}"}).headers.get_list("Set-Cookie")
    assert [line.partition("=")[0] for line in dead] == [name]
    assert "Max-Age=0" in dead[0]
    assert ("Secure" in dead[0]) == (name == SECURE_COOKIE)
    living = team.ask("GET", "/login", headers={"Cookie": f"{name}={team.enter('ben')}"})
    assert (living.status_code, "Set-Cookie" in living.headers) == (303, False)
    assert "Set-Cookie" not in team.ask("GET", "/login").headers


def test_nobody_elses_attempts_keep_people_out_of_browsers_that_know_them(team: Team, monkeypatch: pytest.MonkeyPatch):
    for kind in ("name", "browser"):
        # However slow this machine is, no attempt comes back meanwhile.
        monkeypatch.setitem(login_pages._ALLOWANCES, kind, Allowance(1e-6, 5))
    team.enter("ada")
    team.enter("ben")
    known = {name: team.log_in(name).cookies[KNOWN_COOKIE] for name in ("ada", "ben")}
    wrong(team, "ada", 5)
    fields = {"name": "ada", "password": PASSWORD}

    def come_with(cookie: str, **changed: str) -> int:
        headers = {"Origin": OWN, "Cookie": f"{KNOWN_COOKIE}={cookie}".encode()}
        return team.ask("POST", "/login", data=fields | changed, headers=headers).status_code

    browser, _, signature = known["ada"].partition(".")
    for forged in ("", ".", known["ben"], f"{'0' * 32}.{signature}", f"{browser}.{'0' * 64}", f"{browser}.é"):
        assert come_with(forged) == 429, forged
    assert come_with(known["ada"]) == 303
    # It is no way to try more passwords.
    assert [come_with(known["ada"], password="wrong password") for _ in range(6)] == [401] * 5 + [429]  # noqa: S106
    assert come_with(known["ada"]) == 429


def test_an_invitation_makes_the_browser_known(team: Team):
    cookie = team.post(f"/invite/{team.invite('ben')}", password=PASSWORD, again=PASSWORD).headers.get_list(
        "Set-Cookie"
    )
    written = next(line for line in cookie if line.startswith(KNOWN_COOKIE))
    assert {"HttpOnly", "Path=/login"} <= set(written.split("; "))


def test_the_counters_of_attempts_stay_small_and_one_address_forgets_nobody_elses():
    attempts = LoginAttempts()
    for _ in range(5):
        attempts.take("ada", "192.0.2.1")
    for number in range(2 * MAX_COUNTED):
        attempts.take(f"{number} " + "\U0001f600" * 4_000, "192.0.2.2")
    kept = attempts._buckets
    assert max(len(key) for _, key in kept) <= users.MAX_NAME_LENGTH
    assert len(kept) < 100
    assert attempts.take("ada", "192.0.2.3") > 0, "the attempts for ada still count"


def test_a_password_is_the_same_however_its_letters_are_composed(team: Team):
    password = "Zoë’s über-pässword"  # noqa: S105 - of this test
    composed, decomposed = (unicodedata.normalize(form, password) for form in ("NFC", "NFD"))
    assert composed != decomposed
    taken_in(team.post(f"/invite/{team.invite('ben')}", password=decomposed, again=decomposed))
    for typed in (composed, decomposed):
        taken_in(team.log_in("ben", typed))
    assert team.log_in("ben", "Zoe’s uber-password").status_code == 401


def test_the_longest_password_is_taken_whole(team: Team):
    longest = "\U0001f600" * 1_000
    taken_in(team.post(f"/invite/{team.invite('ben')}", password=longest, again=longest))
    taken_in(team.log_in("ben", longest))
    for other in (f"{longest}x", longest[:-1], longest[:-1] + "x", "\0" + longest[1:]):
        assert team.log_in("ben", other).status_code == 401


@pytest.mark.parametrize("name", ["ben\0", "\0", "ben" + " x" * 5_000, "\ud800".encode(errors="surrogatepass")])
def test_a_name_that_nobody_can_have_is_answered_as_a_wrong_one(team: Team, name: str | bytes):
    team.enter("ben")
    reply = team.ask("POST", "/login", data={"name": name, "password": PASSWORD}, headers={"Origin": OWN})
    assert (reply.status_code, "is wrong, or this person was not invited" in reply.text) == (401, True)


@pytest.mark.parametrize("host", ["[", "a]b", "", "a b", "showhow.test:99999999"])
def test_a_host_that_is_none_is_answered_as_a_strangers(team: Team, host: str):
    for path in ("/library?x=1", "/login", "/invite/x"):
        reply = team.ask("GET", path, headers={**PAGE, "Host": host})
        assert reply.status_code in (200, 303, 410), (path, reply.text)
    assert team.ask("GET", "/a%20b/%C3%A9?x=1", headers={**PAGE, "Host": host}).headers["Location"] == (
        "/login?next=%2Fa%2520b%2F%25C3%25A9%3Fx%3D1"
    )


@pytest.mark.parametrize("name", ["Zoë Müller", "李明", "José"])
def test_a_proxy_names_people_in_utf_8(behind_proxy: Team, name: str):  # noqa: F811 - a fixture
    with behind_proxy.services.database.begin() as session:
        id_ = users.register_user(session, name).id
    reply = behind_proxy.ask("GET", "/library", headers={"X-User": name.encode(), "X-Showhow-Secret": SECRET})
    assert (reply.status_code, str(id_) in reply.text) == (200, True)
    if name == "José":
        latin = {"X-User": name.encode("latin-1"), "X-Showhow-Secret": SECRET}
        assert behind_proxy.ask("GET", "/library", headers=latin).status_code == 200
