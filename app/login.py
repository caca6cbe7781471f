"""The door: with a login, every route but the login itself is for people who are logged in.

Who sends a request is known by the cookie of their login, or by the header of a proxy that also sends the secret of the
settings. They are looked up in the database at every request and every message of a WebSocket, so that who is switched
off, or whose login has ended, is out at the next run of a page.
"""

import asyncio
import hmac
import secrets
from collections.abc import Mapping
from urllib.parse import quote, urlencode, urlsplit
from uuid import UUID

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from showhow.app.run_queue import current_seat
from showhow.db.database import Database, StoreError
from showhow.db.models import User
from showhow.db.people import logins, users
from showhow.db.types import utc_now
from showhow.runs.services import Services
from showhow.settings import OIDC_LOGIN, PROXY_LOGIN

COOKIE = "showhow_login"
"""The cookie with the token of a login."""
SECURE_COOKIE = f"__Host-{COOKIE}"
"""Its name over https: browsers take it from no other host, and not over http."""
SECRET_HEADER = "x-showhow-secret"  # noqa: S105 - a name
"""The header with the secret of the proxy."""
LOGIN_PATH = "/login"
INVITATION_PATH = "/invite/"
START_PATH, CALLBACK_PATH = "/login/start", "/login/callback"
"""Where a login at a provider begins, and where the provider sends the browser back to."""
HEALTH_PATHS = {"/healthz", "/readyz"}
PERSON_MARK = "x-showhow-person"
"""The header by which the middleware tells pages who asks; its value begins with an unguessable token."""
PERSON = "showhow.person"
"""The key of the scope with the name of the person who asks."""
_MARK_TOKEN = secrets.token_urlsafe(32)
_FILE_PATHS = ("/_stcore", "/static", "/media")
NOT_LOGGED_IN = "You are not logged in: open this server's first page."
NOT_NAMED = (
    "Open Showhow at the address of its proxy, which knows who you are; whom it names must have been invited here."
)


def read_person_mark(value: str) -> UUID | None:
    """The id of the person whom the middleware has marked; None for any other text."""
    token, _, key = value.partition(" ")
    return UUID(key) if hmac.compare_digest(token.encode(), _MARK_TOKEN.encode()) else None


def local_path(written: str) -> str:
    """The page to go to after a login: a path of this server without a name in it; the first page for anything else."""
    try:
        parts = urlsplit(written)
    except ValueError:
        return "/"
    is_path = written.startswith("/") and not written.startswith("//") and not parts.scheme and not parts.netloc
    return written if is_path and written.isprintable() and "\\" not in written else "/"


class LoginMiddleware:
    """Lets people in who are logged in, and marks their requests; without a login, every request passes."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app = app
        self._database = services.database
        self._settings = services.settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its mark, or refuse it."""
        if not self._settings.login or scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        removed = {PERSON_MARK.encode(), SECRET_HEADER.encode()}
        headers = [(name, value) for name, value in scope["headers"] if name.lower() not in removed]
        person = None
        if scope["type"] != "http" or not self._is_open(scope["path"]):
            try:
                person = await asyncio.to_thread(self._identify, connection)
            except StoreError as error:
                await _refuse(PlainTextResponse(f"{error}.", status_code=503), scope, receive, send)
                return
            if person is None:
                await _refuse(self._answer_stranger(connection), scope, receive, send)
                return
            headers.append((PERSON_MARK.encode(), f"{_MARK_TOKEN} {person.id}".encode()))
        marked = {**scope, "headers": headers, PERSON: person.name if person else None}
        if person is None or scope["type"] != "websocket":
            await self._app(marked, receive, send)
            return
        person_id = person.id
        if seat := current_seat.get():
            seat.person = person_id

        async def receive_while_logged_in() -> Message:
            message = await receive()
            if message["type"] != "websocket.receive" or await self._is_still(person_id, connection):
                return message
            await send({"type": "websocket.close", "code": 1008, "reason": "logged out"})
            return {"type": "websocket.disconnect", "code": 1008}

        await self._app(marked, receive_while_logged_in, send)

    def _is_open(self, path: str) -> bool:
        """Whether strangers are answered there, by endpoints of ours."""
        invitation = path.removeprefix(INVITATION_PATH)
        is_login = path == LOGIN_PATH or (path != invitation and "/" not in invitation)
        is_provider = path in (START_PATH, CALLBACK_PATH) and self._settings.login == OIDC_LOGIN
        return path in HEALTH_PATHS or is_provider or (is_login and self._settings.login != PROXY_LOGIN)

    async def _is_still(self, person_id: UUID, connection: HTTPConnection) -> bool:
        try:
            person = await asyncio.to_thread(self._identify, connection)
        except StoreError:
            return False
        return person is not None and person.id == person_id

    def _identify(self, connection: HTTPConnection) -> User | None:
        """The person who asks; None for a stranger."""
        if self._settings.login != PROXY_LOGIN:
            return find_logged_in(connection, self._database)
        name = self._read_proxy(connection.headers)
        if not name:
            return None
        with self._database.read() as session:
            person = users.find_user(session, name)
        return person if logins.may_enter(person) else None

    def _read_proxy(self, headers: Headers) -> str:
        """The name that the proxy gives; nothing without its secret, or where a header comes twice."""
        sent, names = headers.getlist(SECRET_HEADER), headers.getlist(self._settings.login_header)
        secret = self._settings.login_secret.encode()
        is_proxy = len(sent) == 1 and hmac.compare_digest(sent[0].encode(errors="replace"), secret)
        return _decode(names[0]).strip() if is_proxy and len(names) == 1 else ""

    def _answer_stranger(self, connection: HTTPConnection) -> Response:
        """The login page for a page, and a refusal for everything else."""
        if self._settings.login == PROXY_LOGIN:
            return PlainTextResponse(NOT_NAMED, status_code=401, headers={"Connection": "close"})
        scope = connection.scope
        is_page = (
            scope["type"] == "http"
            and scope["method"] in ("GET", "HEAD")
            and "text/html" in connection.headers.get("accept", "")
            and not scope["path"].startswith(_FILE_PATHS)
        )
        if not is_page:
            return PlainTextResponse(NOT_LOGGED_IN, status_code=401, headers={"Connection": "close"})
        # Not the URL of the connection, which a Host that is no host makes unreadable.
        query = scope["query_string"].decode("latin-1")
        page = local_path(f"{quote(scope['path'])}{'?' if query else ''}{query}")
        return RedirectResponse(f"{LOGIN_PATH}?{urlencode({'next': page})}", status_code=303)


def _decode(value: str) -> str:
    """The text of a header, which is read as Latin-1, in UTF-8 if it is that."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeDecodeError:
        return value


def read_token(cookies: Mapping[str, str]) -> str:
    """The token of the browser's login, empty without one."""
    return cookies.get(SECURE_COOKIE) or cookies.get(COOKIE, "")


def find_logged_in(connection: HTTPConnection, database: Database) -> User | None:
    """The person whose login the cookie names; its use is noted."""
    token = read_token(connection.cookies)
    if not token:
        return None
    with database.read() as session:
        login = logins.find_login(session, token)
    if login is None:
        return None
    row, person = login
    if utc_now() - row.used_at > logins.NOTED_USE:
        with database.begin() as session:
            logins.note_use(session, row.id)
    return person


async def _refuse(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": "not logged in"})
        return
    await response(scope, receive, send)
