"""The pages of the login: where people log in with a password, and where invited people choose one.

Forms are posted by the pages themselves only (Origin). A name that nobody has is answered as a wrong password is, after
as much work; after some attempts for a name, or from an address, the next ones are refused for a while.
"""

import asyncio
import hmac
import secrets
import unicodedata
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import cache
from urllib.parse import parse_qsl

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from showhow.app.home_secret import derive_key
from showhow.app.login import (
    COOKIE,
    INVITATION_PATH,
    LOGIN_PATH,
    SECURE_COOKIE,
    find_logged_in,
    local_path,
    read_token,
)
from showhow.app.origin import REFUSAL
from showhow.app.visitors import Allowance, Bucket, Visitors
from showhow.app.widgets.autosave import read_body
from showhow.app.widgets.page_layout import THEME_COOKIE, escape_html, read_asset
from showhow.db.database import Conflict, Database, StoreError
from showhow.db.models import User
from showhow.db.people import logins
from showhow.db.people.users import MAX_NAME_LENGTH
from showhow.runs.services import Services

MAX_FORM_BYTES = 32_768
"""The longest password twice, in letters that a form writes in twelve bytes."""
MIN_PASSWORD_CHARACTERS, MAX_PASSWORD_CHARACTERS = 10, 1_000
ATTEMPTS_FOR_NAME = Allowance(0.1, 5)
ATTEMPTS_FROM_ADDRESS = Allowance(0.5, 30)
MAX_COUNTED = 10_000
KNOWN_COOKIE = "showhow_known"
"""The cookie of a browser in which a person was logged in: the browser's number, and a signature of both."""
KNOWN_SECONDS = 365 * 86_400
WRONG = "The name or the password is wrong, or this person was not invited."
_hasher = PasswordHasher()
HASHES_AT_ONCE = 2
"""Each takes 64 MiB."""


class LoginAttempts:
    """The attempts that failed, for each name and from each address; the oldest are forgotten first.

    A browser in which the person was logged in before is counted by itself: nobody else's attempts keep them out.
    """

    def __init__(self) -> None:
        self._buckets: OrderedDict[tuple[str, str], Bucket] = OrderedDict()

    def take(self, name: str, address: str, browser: str = "") -> float:
        """Count an attempt; returns the seconds for which it is refused, and counts none if there are any."""
        taken = []
        for key in _keys(name, address, browser):
            taken.append(self._bucket(key))
            if wait := taken[-1].take(1):
                for bucket in taken:
                    bucket.take(-1)
                return wait
        return 0

    def succeed(self, name: str, address: str, browser: str = "") -> None:
        """Count the last attempt no more."""
        for key in _keys(name, address, browser):
            self._bucket(key).take(-1)

    def _bucket(self, key: tuple[str, str]) -> Bucket:
        bucket = self._buckets.setdefault(key, Bucket(_ALLOWANCES[key[0]]))
        self._buckets.move_to_end(key)
        if len(self._buckets) > MAX_COUNTED:
            self._buckets.popitem(last=False)
        return bucket


_ALLOWANCES = {"name": ATTEMPTS_FOR_NAME, "address": ATTEMPTS_FROM_ADDRESS, "browser": ATTEMPTS_FOR_NAME}


def _keys(name: str, address: str, browser: str) -> list[tuple[str, str]]:
    """What an attempt is counted for; the address first, so that one address makes others forgotten slowly only."""
    if browser:
        return [("browser", browser)]
    return [("address", address), ("name", name[:MAX_NAME_LENGTH].casefold())]


class LoginPages:
    """The endpoints of the login page and of invitations."""

    def __init__(self, services: Services, visitors: Visitors) -> None:
        self._database: Database = services.database
        self._visitors = visitors
        self._attempts = LoginAttempts()
        self._hashing = asyncio.Semaphore(HASHES_AT_ONCE)
        self._known_key = derive_key(services.settings.home, "known browsers")

    def routes(self) -> list[Route]:
        """Their routes."""
        pages = ((LOGIN_PATH, self._log_in), (f"{INVITATION_PATH}{{token}}", self._invite))
        return [Route(path, answer_errors(page), methods=["GET", "POST"]) for path, page in pages]

    async def _log_in(self, request: Request) -> Response:
        if request.method != "POST":
            page = local_path(request.query_params.get("next", "/"))
            if await asyncio.to_thread(find_logged_in, request, self._database) is not None:
                return RedirectResponse(page, status_code=303)
            return forget_login(request, _show_login(request, page))
        form = await _read_form(request)
        if form is None:
            return PlainTextResponse(REFUSAL, status_code=403)
        page, name, password = local_path(form.get("next", "/")), form.get("name", "").strip(), form.get("password", "")
        if len(password) > MAX_PASSWORD_CHARACTERS:
            password = ""
        counted = name, self._visitors.address_of(request), self._read_known(request, name)
        if wait := self._attempts.take(*counted):
            problem = f"Too many attempts. Wait {wait:.0f} seconds, then try again."
            return _show_login(request, page, name, problem, status=429)
        token = await self._begin_login(name, password, read_token(request.cookies))
        if token is None:
            await asyncio.to_thread(self._record_failure, name, self._visitors.address_of(request))
            return _show_login(request, page, name, WRONG, status=401)
        self._attempts.succeed(*counted)
        return self._enter(request, page, token, name)

    def _enter(self, request: Request, page: str, token: str, name: str) -> Response:
        """Go to the page, logged in, in a browser that is known from now on."""
        response = enter(page, token, is_secure=is_https(request))
        browser = self._read_known(request, name) or secrets.token_hex(16)
        options = {"httponly": True, "samesite": "lax", "secure": is_https(request), "path": LOGIN_PATH}
        signed = f"{browser}.{self._sign_known(browser, name)}"
        response.set_cookie(KNOWN_COOKIE, signed, max_age=KNOWN_SECONDS, **options)  # type: ignore[arg-type]
        return response

    def _read_known(self, request: Request, name: str) -> str:
        """The number of a browser in which that person was logged in; empty for any other browser."""
        browser, _, signature = request.cookies.get(KNOWN_COOKIE, "").partition(".")
        return browser if hmac.compare_digest(signature.encode(), self._sign_known(browser, name).encode()) else ""

    def _sign_known(self, browser: str, name: str) -> str:
        return hmac.digest(self._known_key, f"{browser} {name}".encode(errors="replace"), "sha256").hex()

    def _record_failure(self, name: str, address: str) -> None:
        with self._database.begin() as session:
            logins.record_failure(session, name, address)

    async def _begin_login(self, name: str, password: str, former: str) -> str | None:
        """The token of a new login; None if the password is not that of the person of this name."""
        stored = await asyncio.to_thread(self._find_password, name)
        async with self._hashing:
            is_right = await asyncio.to_thread(_verify, stored[1] if stored else _hash_of_nobody(), password)
        if stored is None or not is_right:
            return None
        person, password_hash = stored
        renewed = await self._hash(password) if _hasher.check_needs_rehash(password_hash) else None

        def store() -> str:
            with self._database.begin() as session:
                if renewed is not None:
                    logins.set_password(session, person.id, renewed)
                return logins.begin_login(session, person.id, former)

        return await asyncio.to_thread(store)

    async def _hash(self, password: str) -> str:
        async with self._hashing:
            return await asyncio.to_thread(_hasher.hash, _encode(password))

    def _find_password(self, name: str) -> tuple[User, str] | None:
        if "\0" in name:
            # PostgreSQL stores no such text, and takes none in a query.
            return None
        with self._database.read() as session:
            return logins.find_password(session, name)

    async def _invite(self, request: Request) -> Response:
        token = request.path_params["token"]
        name = await asyncio.to_thread(find_invited_name, self._database, token)
        if name is None:
            return show_invalid_invitation(request)
        if request.method != "POST":
            return _show_invitation(request, name)
        form = await _read_form(request)
        if form is None:
            return PlainTextResponse(REFUSAL, status_code=403)
        password = form.get("password", "")
        if not MIN_PASSWORD_CHARACTERS <= len(password) <= MAX_PASSWORD_CHARACTERS:
            problem = f"A password has {MIN_PASSWORD_CHARACTERS} to {MAX_PASSWORD_CHARACTERS:,} characters."
            return _show_invitation(request, name, problem)
        if password != form.get("again"):
            return _show_invitation(request, name, "The two passwords differ; type them again.")
        password_hash = await self._hash(password)

        def store() -> str:
            with self._database.begin() as session:
                person = logins.use_invitation(session, token)
                logins.set_password(session, person.id, password_hash)
                return logins.begin_login(session, person.id, read_token(request.cookies))

        return self._enter(request, "/", await asyncio.to_thread(store), name)


def answer_errors(page: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint with a page in place of an error of the store."""

    async def endpoint(request: Request) -> Response:
        try:
            return await page(request)
        except StoreError as error:
            status = 403 if isinstance(error, Conflict) else 503
            return show_page("This did not work", f"<p>{escape_html(_sentence(str(error)))}</p>", request, status)

    return endpoint


def _verify(password_hash: str, password: str) -> bool:
    try:
        return _hasher.verify(password_hash, _encode(password))
    except (Argon2Error, InvalidHashError):
        return False


def _encode(password: str) -> bytes:
    """What is hashed; systems write one letter in several ways, such as an umlaut as one character or as two."""
    return unicodedata.normalize("NFC", password).encode(errors="replace")


@cache
def _hash_of_nobody() -> str:
    return _hasher.hash(secrets.token_hex())


async def _read_form(request: Request) -> dict[str, str] | None:
    """The fields of a form; None unless a page of this server posts it (app/origin.py compares them)."""
    body = await read_body(request, MAX_FORM_BYTES)
    if body is None or "origin" not in request.headers:
        return None
    return dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))


def enter(page: str, token: str, *, is_secure: bool) -> Response:
    """Go to the page, logged in."""
    response = RedirectResponse(page, status_code=303)
    name = SECURE_COOKIE if is_secure else COOKIE
    age = logins.LOGIN_DAYS * 86_400
    response.set_cookie(name, token, max_age=age, httponly=True, secure=is_secure, samesite="lax")
    return response


def forget_login(request: Request, response: Response) -> Response:
    """The response, which takes from the browser what is left of a login that has ended."""
    for name in {COOKIE, SECURE_COOKIE} & request.cookies.keys():
        response.delete_cookie(name, httponly=True, secure=name == SECURE_COOKIE, samesite="lax")
    return response


def is_https(request: Request) -> bool:
    """Whether the browser uses https, as the page that it posts says, or else a proxy."""
    origin = request.headers.get("origin") or request.headers.get("x-forwarded-proto", request.scope["scheme"])
    return origin.partition(",")[0].partition(":")[0].strip().lower() == "https"


def find_invited_name(database: Database, token: str) -> str | None:
    """The name of the person whom a link invites."""
    with database.read() as session:
        person = logins.find_invited(session, token)
        return person.name if person else None


def show_invalid_invitation(request: Request) -> Response:
    """The page of a link that was used, has expired or never was."""
    return show_page("This link is not valid", f"<p>{_sentence(logins.INVALID_INVITATION)}</p>", request, 410)


def _show_login(request: Request, page: str, name: str = "", problem: str = "", status: int = 200) -> Response:
    focus = ("", " autofocus") if name else (" autofocus", "")
    fields = (
        f'<label>Name<input name="name" value="{escape_html(name)}" autocomplete="username" required{focus[0]}></label>'
        '<label>Password<input name="password" type="password" autocomplete="current-password" required'
        f'{focus[1]}></label><input type="hidden" name="next" value="{escape_html(page)}">'
        "<button>Log in</button>"
    )
    note = "<p class=note>No account, or the password is forgotten? An administrator sends you a link.</p>"
    return show_page("Log in", _form(fields, problem) + note, request, status)


def _show_invitation(request: Request, name: str, problem: str = "") -> Response:
    fields = (
        f'<label>Name<input name="name" value="{escape_html(name)}" autocomplete="username" readonly></label>'
        '<label>Password<input name="password" type="password" autocomplete="new-password" required autofocus '
        f'minlength="{MIN_PASSWORD_CHARACTERS}"></label>'
        '<label>Password again<input name="again" type="password" autocomplete="new-password" required></label>'
        "<button>Save and log in</button>"
    )
    note = f"<p class=note>At least {MIN_PASSWORD_CHARACTERS} characters. You log in with this name and password.</p>"
    return show_page("Choose a password", _form(fields, problem) + note, request, 400 if problem else 200)


def _form(fields: str, problem: str) -> str:
    alert = f'<p role="alert">{escape_html(problem)}</p>' if problem else ""
    return f'<form method="post">{alert}{fields}</form>'


def show_page(title: str, body: str, request: Request, status: int = 200) -> Response:
    """A page of the login."""
    theme = request.cookies.get(THEME_COOKIE, "")
    scheme = f' data-scheme="{theme}"' if theme in ("light", "dark") else ""
    document = (
        f'<!DOCTYPE html><html lang="en"{scheme}><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{title} · Showhow</title>'
        f"<style>{read_asset('login.css')}</style></head><body><main>"
        f'<p class="brand">{read_asset("icon.svg")}Showhow</p><h1>{title}</h1>{body}</main></body></html>'
    )
    return HTMLResponse(document, status_code=status, headers={"Cache-Control": "no-store"})


def _sentence(message: str) -> str:
    return f"{message[0].upper()}{message[1:]}."
