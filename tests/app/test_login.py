"""The door, as the server's middleware and the pages of the login keep it: by HTTP, with a database and real hashes."""

import asyncio
import shutil
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
from argon2 import PasswordHasher
from sqlalchemy import select, update
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from showhow.app import login_pages
from showhow.app.login import (
    COOKIE,
    PERSON,
    PERSON_MARK,
    SECRET_HEADER,
    LoginMiddleware,
    local_path,
    read_person_mark,
)
from showhow.app.login_pages import HASHES_AT_ONCE, LoginAttempts, LoginPages
from showhow.app.oidc import OidcPages
from showhow.app.origin import OriginMiddleware
from showhow.app.visitors import Allowance, Visitors
from showhow.db.audit import iterate_entries
from showhow.db.people import logins, users
from showhow.db.people.logins import Identity, Invitation
from showhow.db.storage.schema import upgrade
from showhow.db.types import utc_now
from showhow.runs.services import Services
from showhow.settings import OIDC_LOGIN, Settings

OWN = "http://showhow.test"
PAGE = {"Accept": "text/html"}
PASSWORD = "correct horse battery"  # noqa: S105 - of this test
SECRET = "0123456789abcdef-of-the-proxy"  # noqa: S105 - likewise


async def show_person(request: Request) -> PlainTextResponse:
    """What stands for every route: it says who asks."""
    marked = read_person_mark(request.headers.get(PERSON_MARK, ""))
    return PlainTextResponse(f"{request.scope.get(PERSON)} {marked} {request.headers.get(SECRET_HEADER)}")


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose database has the tables."""
    home = tmp_path_factory.mktemp("login")
    services = Services(Settings.from_env({"SHOWHOW_HOME": str(home)}))
    upgrade(services.database)
    services.close()
    return home


def serve(home: Path, **environ: str) -> tuple[Services, Starlette]:
    services = Services(Settings.from_env({"SHOWHOW_HOME": str(home), **environ}))
    is_oidc = services.settings.login == OIDC_LOGIN
    pages = (
        OidcPages(services).routes()
        if is_oidc
        else LoginPages(services, Visitors(b"a key", trusts_proxy=False)).routes()
    )
    paths = ["/{path:path}"]
    routes = [*pages, *(Route(path, show_person, methods=["GET", "POST", "PUT"]) for path in paths)]
    middleware = [Middleware(OriginMiddleware, local_addresses=()), Middleware(LoginMiddleware, services=services)]
    return services, Starlette(routes=routes, middleware=middleware)


def run_apart(work: Coroutine[Any, Any, Any]) -> Any:
    """Run in a thread of its own, since Playwright's event loop runs in that of the browser tests."""
    with ThreadPoolExecutor() as pool:
        return pool.submit(asyncio.run, work).result()


class Team:
    """A server with ada, an administrator, and ben, who annotates; both have a password."""

    def __init__(self, home: Path, **environ: str) -> None:
        self.services, self.app = serve(home, **environ)
        with self.services.database.begin() as session:
            self.ids = {name: users.register_user(session, name).id for name in ("ada", "ben")}

    def invite(self, name: str) -> str:
        with self.services.database.begin() as session:
            return logins.invite(session, self.ids[name])

    def client(self, **cookies: str) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(app=self.app, client=("192.0.2.7", 1))
        return httpx.AsyncClient(transport=transport, base_url=OWN, cookies=cookies)

    def ask(self, method: str, path: str, cookie: str = "", **options: Any) -> httpx.Response:
        """One request of a browser that has that cookie."""

        async def send() -> httpx.Response:
            async with self.client(**({COOKIE: cookie} if cookie else {})) as client:
                return await client.request(method, path, **options)

        reply: httpx.Response = run_apart(send())
        return reply

    def post(self, path: str, cookie: str = "", **fields: str) -> httpx.Response:
        """A form that a page of the server posts."""
        return self.ask("POST", path, cookie, data=fields, headers={"Origin": OWN})

    def enter(self, name: str, cookie: str = "") -> str:
        """Have the person log in, in a browser that has the cookie; returns the token of the login."""
        with self.services.database.begin() as session:
            logins.set_password(session, self.ids[name], hash_of_password())
            return logins.begin_login(session, self.ids[name], cookie)

    def log_in(self, name: str, password: str = PASSWORD, cookie: str = "", page: str = "/") -> httpx.Response:
        return self.post("/login", cookie, name=name, password=password, next=page)

    def who(self, cookie: str = "", **headers: str | bytes) -> str:
        """Who the server takes the sender for; empty for a stranger."""
        reply = self.ask("GET", "/library", cookie, headers={name.replace("_", "-"): v for name, v in headers.items()})
        return reply.text.split()[0] if reply.status_code == 200 else ""


@cache
def hash_of_password() -> str:
    return PasswordHasher().hash(PASSWORD)


def taken_in(reply: httpx.Response) -> str:
    assert reply.status_code == 303, reply.text
    return reply.cookies[COOKIE]


@pytest.fixture
def team(migrated: Path, tmp_path: Path) -> Iterator[Team]:
    shutil.copytree(migrated, tmp_path, dirs_exist_ok=True)
    served = Team(tmp_path, SHOWHOW_LOGIN="password")
    yield served
    served.services.close()


@pytest.fixture
def behind_proxy(migrated: Path, tmp_path: Path) -> Iterator[Team]:
    shutil.copytree(migrated, tmp_path, dirs_exist_ok=True)
    served = Team(tmp_path, SHOWHOW_LOGIN="proxy", SHOWHOW_LOGIN_SECRET=SECRET, SHOWHOW_LOGIN_HEADER="X-User")
    yield served
    served.services.close()


ROUTES = [
    ("GET", "/"),
    ("GET", "/annotate"),
    ("GET", "/_stcore/host-config"),
    ("GET", "/_stcore/health"),
    ("PUT", "/_stcore/upload_file/a/b"),
    ("POST", "/drafts/00000000-0000-4000-8000-000000000000"),
    ("GET", "/help/tutorial.md"),
    ("GET", "/static/js/index.js"),
    ("GET", "/media/a.png"),
    ("GET", "/healthz/"),
    ("GET", "/login/x"),
    ("GET", "/invite/x/y"),
    ("GET", "/invite/..%2Flibrary"),
    ("POST", "/invite/x%2F..%2F..%2Fdrafts"),
    ("GET", "/LOGIN"),
    ("POST", "/"),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_every_route_is_closed_to_strangers_and_open_to_who_is_logged_in(team: Team, method: str, path: str):
    for headers in ({}, PAGE):
        reply = team.ask(method, path, headers=headers)
        assert reply.status_code in (401, 303), path
        if reply.status_code == 303:
            assert reply.headers["Location"].startswith("/login?next=%2F")
            assert (method, headers) == ("GET", PAGE)
    assert team.ask(method, path, team.enter("ben")).text.startswith(f"ben {team.ids['ben']} None")


def test_only_the_login_and_the_health_checks_are_open(team: Team):
    for path in ("/healthz", "/readyz"):
        assert team.ask("GET", path).text == "None None None"
    page = team.ask("GET", "/login?next=/library")
    assert (page.status_code, page.headers["Cache-Control"]) == (200, "no-store")
    assert 'value="/library"' in page.text
    assert "<script" not in page.text
    assert "http" not in page.text.replace("http://www.w3.org/2000/svg", "")


def test_an_invited_person_chooses_a_password_and_logs_in_with_it(team: Team):
    link = f"/invite/{team.invite('ben')}"
    assert 'value="ben"' in team.ask("GET", link).text
    for password, again in (("short", "short"), ("x" * 1001, "x" * 1001), (PASSWORD, PASSWORD + " ")):
        assert team.post(link, password=password, again=again).status_code == 400
    first = taken_in(team.post(link, password=PASSWORD, again=PASSWORD))
    second = taken_in(team.log_in("ben"))
    assert first != second
    assert [team.who(first), team.who(second), team.who()] == ["ben", "ben", ""]
    for reply in (team.ask("GET", link), team.post(link, password=PASSWORD, again=PASSWORD)):
        assert (reply.status_code, "used already or has expired" in reply.text) == (410, True)
    # A new link ends what the former password opened.
    third = taken_in(team.post(f"/invite/{team.invite('ben')}", first, password=PASSWORD, again=PASSWORD))
    assert [team.who(token) for token in (first, second, third)] == ["", "", "ben"]


def test_an_expired_an_unknown_and_a_void_invitation_are_refused_alike(team: Team):
    void, expired = team.invite("ben"), team.invite("ben")
    with team.services.database.begin() as session:
        session.execute(update(Invitation).values(expires_at=utc_now() - timedelta(seconds=1)))
    for token in (void, expired, "x" * 43, "%00"):
        reply = team.post(f"/invite/{token}", password=PASSWORD, again=PASSWORD)
        assert reply.status_code == 410, token
        assert COOKIE not in reply.cookies


def test_the_cookie_is_for_this_server_only_and_over_https_for_nothing_else(team: Team):
    team.enter("ben")
    plain = team.log_in("ben").headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= set(plain.split("; "))
    assert "Secure" not in plain
    fields = {"name": "ben", "password": PASSWORD}
    headers = {"Origin": OWN.replace("http", "https"), "X-Forwarded-Proto": "https"}
    assert "Secure" in team.ask("POST", "/login", data=fields, headers=headers).headers["Set-Cookie"].split("; ")


def test_a_forged_cookie_and_a_forged_mark_open_nothing(team: Team):
    token = team.enter("ben")
    forged = [
        "x" * 43,
        token[:-1],
        token + "=",
        logins.hash_token(token),
        str(team.ids["ben"]),
        "' OR 1=1",
    ]
    assert [team.who(cookie) for cookie in forged] == [""] * len(forged)
    mark = team.ask("GET", "/", headers={PERSON_MARK: f"x {team.ids['ada']}", "X-Forwarded-User": "ada"})
    assert mark.status_code == 401
    # What a person who is logged in adds is removed.
    own = team.ask("GET", "/", token, headers={PERSON_MARK: f"x {team.ids['ada']}"})
    assert own.text.startswith(f"ben {team.ids['ben']}")


def test_a_wrong_password_and_an_unknown_name_are_answered_alike(team: Team):
    team.enter("ben")
    replies = [team.log_in(name, "wrong password") for name in ("ben", "ada", "nobody", "")]
    texts = {
        reply.text.replace(f'value="{name}"', "")
        for reply, name in zip(replies, ("ben", "ada", "nobody", ""), strict=True)
    }
    assert {reply.status_code for reply in replies} == {401}
    assert len({text.replace(" autofocus", "") for text in texts}) == 1
    with team.services.database.read() as session:
        entries = [entry for entry in iterate_entries(session) if entry["action"] == "failed to log in"]
    assert [entry["object_id"] for entry in entries] == [str(team.ids["ben"]), str(team.ids["ada"]), "", ""]
    assert {entry["details"]["address"] for entry in entries} == {"192.0.2.7"}
    with team.services.database.begin() as session:
        logins.switch(session, "ben", on=False)
    assert team.log_in("ben").text == replies[0].text


def test_after_some_attempts_the_next_ones_wait_for_a_name_and_for_an_address(
    team: Team, monkeypatch: pytest.MonkeyPatch
):
    attempts = LoginAttempts()
    assert [attempts.take("Ada", str(number)) for number in range(5)] == [0] * 5
    assert 0 < attempts.take("ada", "6") <= 10
    assert 0 < attempts.take("ada", "7") <= 10, "a refused attempt does not make the wait longer"
    assert [attempts.take(f"name {number}", "8") for number in range(30)] == [0] * 30
    assert 0 < attempts.take("another", "8") <= 2
    assert attempts.take("another", "9") == 0
    # A busy machine takes long for a password.
    monkeypatch.setattr(login_pages, "ATTEMPTS_FOR_NAME", Allowance(0.0001, 5))
    for _ in range(5):
        team.log_in("ada", "wrong password")
    reply = team.log_in("ada", "wrong password")
    assert (reply.status_code, "Too many attempts" in reply.text) == (429, True)
    for _ in range(8):
        assert attempts.take("ben", "7") == 0, "who knows the password does not wait"
        attempts.succeed("ben", "7")


def test_no_more_passwords_are_hashed_at_once_than_memory_is_meant_for(team: Team, monkeypatch: pytest.MonkeyPatch):
    at_work, most = 0, 0
    verify = login_pages._verify

    def count(password_hash: str, password: str) -> bool:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        try:
            return verify(password_hash, password)
        finally:
            at_work -= 1

    monkeypatch.setattr(login_pages, "_verify", count)

    async def rush() -> None:
        async with team.client() as client:
            form = {"password": "wrong password"}
            posts = (client.post("/login", data={**form, "name": f"n{n}"}, headers={"Origin": OWN}) for n in range(4))
            assert {reply.status_code for reply in await asyncio.gather(*posts)} == {401}

    run_apart(rush())
    assert most == HASHES_AT_ONCE


def test_a_password_hashed_with_other_parameters_is_hashed_anew_at_the_next_login(team: Team):
    with team.services.database.begin() as session:
        weak = PasswordHasher(time_cost=1, memory_cost=1024, parallelism=1).hash(PASSWORD)
        logins.set_password(session, team.ids["ben"], weak)
    taken_in(team.log_in("ben"))
    with team.services.database.read() as session:
        stored = session.scalar(select(Identity.password_hash))
    assert stored != weak
    assert "m=65536,t=3,p=4" in stored
    taken_in(team.log_in("ben"))


@pytest.mark.parametrize(
    "origin", [None, "https://evil.example", "null", "http://showhow.test.evil.example", OWN + ":81"]
)
def test_another_servers_page_logs_nobody_in_and_chooses_no_password(team: Team, origin: str | None):
    link = f"/invite/{team.invite('ada')}"
    team.enter("ben")
    headers = {"Origin": origin} if origin else {}
    for path, fields in (
        ("/login", {"name": "ben", "password": PASSWORD}),
        (link, {"password": PASSWORD, "again": PASSWORD}),
    ):
        reply = team.ask("POST", path, data=fields, headers=headers)
        assert (reply.status_code, COOKIE in reply.cookies) == (403, False)
    assert team.ask("GET", link).status_code == 200, "the link is still good"


@pytest.mark.parametrize(
    "written",
    [
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "javascript:alert(1)",
        "http:evil",
        "/\t/evil.example",
        "/x\r\nSet-Cookie: a=b",
        "evil.example",
        "",
        "http://[",
    ],
)
def test_a_login_leads_to_a_page_of_this_server_only(team: Team, written: str):
    team.enter("ben")
    assert team.log_in("ben", page=written).headers["Location"] == "/"
    assert local_path(written) == "/"


def test_a_login_leads_to_the_page_that_was_asked_for(team: Team):
    token = team.enter("ben")
    asked = team.ask("GET", "/review?project=A+B&trace=1", headers=PAGE).headers["Location"]
    form = team.ask("GET", asked).text
    assert 'value="/review?project=A+B&amp;trace=1"' in form
    assert team.log_in("ben", page="/review?project=A+B&trace=1").headers["Location"] == "/review?project=A+B&trace=1"
    assert team.ask("GET", "/login?next=/review", token).headers["Location"] == "/review"


def test_a_token_from_before_the_login_is_worth_nothing_after_it(team: Team):
    team.enter("ben")
    planted = "p" * 43
    token = taken_in(team.log_in("ben", cookie=planted))
    assert token != planted
    assert [team.who(planted), team.who(token)] == ["", "ben"]
    # The same browser logs in again, as somebody else too: what it had before is ended.
    team.enter("ada")
    ada = taken_in(team.log_in("ada", cookie=token))
    assert [team.who(token), team.who(ada)] == ["", "ada"]


def test_who_is_switched_off_is_out_at_the_next_request(team: Team):
    token = team.enter("ben")
    assert team.who(token) == "ben"
    with team.services.database.begin() as session:
        logins.switch(session, "ben", on=False)
    assert team.who(token) == ""
    assert team.log_in("ben").status_code == 401


def test_a_form_that_is_no_form_is_refused(team: Team):
    for body in (b"\xff" * 100, b"name=" + b"x" * 20_000, b"", b"{}"):
        reply = team.ask("POST", "/login", content=body, headers={"Origin": OWN})
        assert reply.status_code in (401, 403)
    assert team.log_in("<script>alert(1)</script>").text.count("<script") == 0


def test_without_a_login_every_request_passes(migrated: Path):
    services, app = serve(migrated)
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=OWN)
    reply = run_apart(client.get("/x"))
    assert reply.text == "None None None"
    services.close()


def test_a_proxy_names_people_with_its_secret_only(behind_proxy: Team):
    assert behind_proxy.who(X_User="ben", X_Showhow_Secret=SECRET) == "ben"
    for headers in (
        {},
        {"X_User": "ada"},
        {"X_User": "ada", "X_Showhow_Secret": ""},
        {"X_User": "ada", "X_Showhow_Secret": SECRET[:-1]},
        {"X_User": "ada", "X_Showhow_Secret": f"{SECRET}é".encode()},
        {"X_Forwarded_User": "ada", "X_Showhow_Secret": SECRET},
        {"X_User": "", "X_Showhow_Secret": SECRET},
        {"X_User": "stranger", "X_Showhow_Secret": SECRET},
    ):
        assert behind_proxy.who(**headers) == ""
    for path in ("/login", "/invite/x"):
        assert behind_proxy.ask("GET", path).status_code == 401
    twice = [("X-User", "ben"), ("X-User", "ada"), ("X-Showhow-Secret", SECRET)]
    assert behind_proxy.ask("GET", "/", headers=twice).status_code == 401
    assert behind_proxy.ask("GET", "/", headers=[*twice[1:], twice[2]]).status_code == 401


def test_the_proxys_secret_reaches_no_page_and_who_has_no_role_stays_outside(behind_proxy: Team):
    headers = {"X-User": "ben", SECRET_HEADER: SECRET}
    assert behind_proxy.ask("GET", "/", headers=headers).text == f"ben {behind_proxy.ids['ben']} None"
    with behind_proxy.services.database.begin() as session:
        users.find_or_add_author(session, "grace")
        users.set_roles(session, "ben", [])
    for name in ("grace", "ben"):
        reply = behind_proxy.ask("GET", "/", headers={**headers, "X-User": name, **PAGE})
        assert (reply.status_code, "must have been invited" in reply.text) == (401, True)
