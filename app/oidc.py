"""The login at a provider of identities (OpenID Connect): the code flow with PKCE, in requests of our own server.

Streamlit's st.login would need a page, and so a WebSocket, that is open to strangers; its cookie could not be ended. A
person is known by the provider's issuer and their subject there, never by an address; both are stored when they accept
an invitation.
"""

import asyncio
import hmac
import logging
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

import httpx
import jwt
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from showhow.app.login import (
    CALLBACK_PATH,
    INVITATION_PATH,
    LOGIN_PATH,
    START_PATH,
    find_logged_in,
    local_path,
    read_token,
)
from showhow.app.login_pages import (
    answer_errors,
    enter,
    find_invited_name,
    forget_login,
    is_https,
    show_invalid_invitation,
    show_page,
)
from showhow.app.widgets.page_layout import escape_html
from showhow.db.database import Conflict
from showhow.db.people import logins
from showhow.guard.destinations import InvalidOrigin, parse_origin
from showhow.guard.json_input import load_json
from showhow.guard.proxy import choose_proxy
from showhow.runs.services import Services

STATE_COOKIE = "showhow_login_state"
STATE_SECONDS = 600
MAX_REPLY_BYTES = 1_000_000
_PROVIDER_SECONDS = 10.0
_ASKED_AT_ONCE = 8
"""Requests of strangers that wait for a slow provider at the same time; the threads are those of drafts too."""
_STATE_ALGORITHM = "HS256"
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
_CLOCK_SECONDS = 60
NOT_INVITED = "nobody has invited this account; ask an administrator for a link"
FAILED = "the login did not work; try it again, and if it fails again tell an administrator"


_log = logging.getLogger(__name__)


class ProviderError(Exception):
    """The provider does not answer as it should."""


class OidcPages:
    """The endpoints of the login at a provider."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._database = services.database
        settings = services.settings
        self._issuer, self._client, self._secret = settings.oidc_issuer, settings.oidc_client, settings.oidc_secret
        self._redirect = f"{settings.url}{CALLBACK_PATH}"
        self._asking = asyncio.Semaphore(_ASKED_AT_ONCE)
        # All processes that serve have the same.
        self._state_key = hmac.digest(self._secret.encode(), b"the state of a login", "sha256")

    def routes(self) -> list[Route]:
        """Their routes."""
        pages = {
            LOGIN_PATH: self._show_login,
            START_PATH: self._start,
            CALLBACK_PATH: self._finish,
            f"{INVITATION_PATH}{{token}}": self._show_invitation,
        }
        return [Route(path, answer_errors(_log_provider(page))) for path, page in pages.items()]

    async def _show_login(self, request: Request) -> Response:
        page = local_path(request.query_params.get("next", "/"))
        if await run_in_threadpool(find_logged_in, request, self._database) is not None:
            return RedirectResponse(page, status_code=303)
        return forget_login(request, show_page("Log in", _link({"next": page}, "Log in"), request))

    async def _show_invitation(self, request: Request) -> Response:
        token = request.path_params["token"]
        name = await run_in_threadpool(find_invited_name, self._database, token)
        if name is None:
            return show_invalid_invitation(request)
        text = f"<p>You are invited as <b>{escape_html(name)}</b>. Log in, and your account there is yours here.</p>"
        return show_page("You are invited", text + _link({"invitation": token}, "Log in"), request)

    async def _start(self, request: Request) -> Response:
        async with self._asking:
            metadata = await run_in_threadpool(self._read_metadata)
        address = _require_encrypted(metadata.get("authorization_endpoint"))
        verifier, nonce, state = (secrets.token_urlsafe(32) for _ in range(3))
        kept = {
            "state": state,
            "nonce": nonce,
            "verifier": verifier,
            "next": local_path(request.query_params.get("next", "/")),
            "invitation": request.query_params.get("invitation", "")[:200],
            "exp": int(time.time()) + STATE_SECONDS,
        }
        query = {
            "response_type": "code",
            "client_id": self._client,
            "redirect_uri": self._redirect,
            "scope": "openid",
            "state": state,
            "nonce": nonce,
            "code_challenge": urlsafe_b64encode(sha256(verifier.encode()).digest()).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        response = RedirectResponse(f"{address}{'&' if '?' in address else '?'}{urlencode(query)}", status_code=303)
        signed = jwt.encode(kept, self._state_key, algorithm=_STATE_ALGORITHM)
        options = {"httponly": True, "samesite": "lax", "secure": is_https(request), "path": CALLBACK_PATH}
        response.set_cookie(STATE_COOKIE, signed, max_age=STATE_SECONDS, **options)  # type: ignore[arg-type]
        return response

    async def _finish(self, request: Request) -> Response:
        kept = self._read_state(request)
        code = request.query_params.get("code", "")
        if kept is None or not code:
            # Such as a login that was cancelled at the provider.
            raise Conflict(FAILED)
        async with self._asking:
            subject = await run_in_threadpool(self._read_subject, code, kept)
        token = await run_in_threadpool(self._begin_login, subject, kept["invitation"], read_token(request.cookies))
        # The provider sends the browser to this address; a proxy may not say that it speaks TLS.
        response = enter(kept["next"], token, is_secure=is_https(request) or self._redirect.startswith("https:"))
        response.delete_cookie(STATE_COOKIE, path=CALLBACK_PATH)
        return response

    def _read_state(self, request: Request) -> Mapping[str, str] | None:
        """What this browser's login began with; None unless the callback belongs to it."""
        try:
            kept = jwt.decode(request.cookies.get(STATE_COOKIE, ""), self._state_key, algorithms=[_STATE_ALGORITHM])
        except jwt.PyJWTError:
            return None
        returned = request.query_params.get("state", "")
        return kept if hmac.compare_digest(returned.encode(), str(kept["state"]).encode()) else None

    def _read_subject(self, code: str, kept: Mapping[str, str]) -> str:
        """Exchange the code, and check the token that comes for it."""
        metadata = self._read_metadata()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect,
            "code_verifier": kept["verifier"],
        }
        credentials: tuple[str, str] | None = (self._client, self._secret)
        methods = metadata.get("token_endpoint_auth_methods_supported")
        if isinstance(methods, list) and "client_secret_basic" not in methods:
            form |= {"client_id": self._client, "client_secret": self._secret}
            credentials = None
        reply = self._ask("POST", metadata.get("token_endpoint"), data=form, auth=credentials)
        key_set = self._ask("GET", metadata.get("jwks_uri"))
        try:
            keys = [key for key in jwt.PyJWKSet.from_dict(key_set).keys if key.public_key_use in (None, "sig")]
            id_token = str(reply["id_token"])
            header = jwt.get_unverified_header(id_token)
            usable = [key for key in keys if header.get("kid") in (None, key.key_id)]
            claims = jwt.decode(
                id_token,
                usable[0],
                algorithms=_ALGORITHMS,
                audience=self._client,
                # As the provider writes it, with or without a slash at its end.
                issuer=str(metadata["issuer"]),
                leeway=_CLOCK_SECONDS,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise ProviderError(f"its token is refused: {error}") from error
        if claims.get("nonce") != kept["nonce"] or claims.get("azp", self._client) != self._client or not claims["sub"]:
            raise ProviderError("its token belongs to another login")
        return str(claims["sub"])

    def _begin_login(self, subject: str, invitation: str, former: str) -> str:
        with self._database.begin() as session:
            if invitation:
                person = logins.use_invitation(session, invitation)
                logins.link_subject(session, person.id, self._issuer, subject)
            else:
                linked = logins.find_subject(session, self._issuer, subject)
                if linked is None:
                    raise Conflict(NOT_INVITED)
                person = linked
            return logins.begin_login(session, person.id, former)

    def _read_metadata(self) -> Mapping[str, Any]:
        metadata = self._ask("GET", f"{self._issuer}/.well-known/openid-configuration")
        if str(metadata.get("issuer", "")).rstrip("/") != self._issuer:
            raise ProviderError(f"its issuer is {metadata.get('issuer')!r}, not that of SHOWHOW_OIDC_ISSUER")
        return metadata

    def _ask(self, method: str, address: Any, **options: Any) -> dict[str, Any]:
        """The JSON object with which the provider answers."""
        try:
            _require_encrypted(address)
            proxy = choose_proxy(self._services.settings.proxy, str(address))
            with (
                httpx.Client(proxy=proxy.url if proxy else None, trust_env=False, timeout=_PROVIDER_SECONDS) as client,
                client.stream(method, str(address), **options) as reply,
            ):
                body = bytearray()
                for part in reply.iter_bytes():
                    body += part
                    if len(body) > MAX_REPLY_BYTES:
                        raise ProviderError(f"{address} sends too much")
            answer = load_json(bytes(body))
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise ProviderError(f"{address} does not answer as a provider does ({error})") from error
        if reply.status_code != httpx.codes.OK or not isinstance(answer, dict):
            raise ProviderError(f"{address} answers with status {reply.status_code}")
        return answer


def _require_encrypted(address: object) -> str:
    """The address, to which a login may be entrusted; ProviderError for any other."""
    try:
        is_private = parse_origin(str(address)).is_private
    except InvalidOrigin as error:
        raise ProviderError(f"{address} {error}") from error
    if not is_private:
        raise ProviderError(f"{address} is not encrypted")
    return str(address)


def _log_provider(page: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """The page, where a failure of the provider is a conflict for the person, with its reason in the log."""

    async def endpoint(request: Request) -> Response:
        try:
            return await page(request)
        except ProviderError as error:
            _log.warning("the login provider: %s", error)
            raise Conflict(FAILED) from error

    return endpoint


def _link(query: Mapping[str, str], title: str) -> str:
    # No form: a browser would refuse to follow it to the provider.
    return f'<p><a class="button" href="{START_PATH}?{escape_html(urlencode(query))}">{title}</a></p>'
