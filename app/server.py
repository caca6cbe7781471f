"""The server: Streamlit's pages, the documentation, two health checks, and the endpoint that stores drafts as typed.

Every response has security headers: pages load nothing from other hosts and are not shown inside other sites.
"""

import base64
import importlib
import logging
import os
import re
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Thread

import streamlit
import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import App

from showhow.app.capacity import CapacityMiddleware
from showhow.app.documentation import HELP_PATH
from showhow.app.help_site import help_endpoint
from showhow.app.home_secret import derive_key
from showhow.app.login import LoginMiddleware
from showhow.app.login_pages import LoginPages
from showhow.app.oidc import OidcPages
from showhow.app.origin import OriginMiddleware
from showhow.app.readiness import readiness_endpoint
from showhow.app.services import current_services
from showhow.app.visitor_budget import BudgetMiddleware
from showhow.app.visitors import Visitors
from showhow.app.widgets.autosave import draft_endpoint
from showhow.app.widgets.page_layout import format_sentence, read_asset
from showhow.db.database import StoreError
from showhow.fewshot_library.encoder import EncoderUnavailable, SentenceEncoder
from showhow.runs.services import Services
from showhow.settings import OIDC_LOGIN, PASSWORD_LOGIN
from showhow.worlds.folder import WorldError
from showhow.worlds.source import SourceError

_INDEX_PAGE = Path(streamlit.__file__).parent / "static" / "index.html"
_INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_FIRST_SCRIPT = f"<script>{read_asset('first.js')}</script>"
UNEXPECTED_ERROR = "Something went wrong on this page. Reload it; the server's log has the details."
FIRST_PAGE_MODULES = (
    "showhow.db.storage.schema",
    "pandas",
    "showhow.app.pages.annotate.composer",
    "showhow.app.pages.annotate.recorder",
    "showhow.app.widgets.choices",
    "showhow.app.widgets.notebook",
    "showhow.app.widgets.step_notes",
    "showhow.app.widgets.tour",
)
"""What the first page imports; Streamlit itself imports pandas when it draws the first component."""
SWITCH_SECONDS = 0.0005
"""How long a run of a page keeps the interpreter while others want it. By Python's default, ten times as long, each of
the many steps in which the event loop serves a page waits for all runs that compute, together for seconds."""
_log = logging.getLogger(__name__)


@cache
def security_headers() -> Mapping[str, str]:
    """The headers by name."""
    # Streamlit's components are scripts in blob: URLs, and its styles are inline; it evaluates no text as a script.
    policy = {
        "default-src": "'self'",
        "script-src": " ".join(["'self'", "blob:", *_hash_inline_scripts()]),
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "connect-src": "'self'",
        "media-src": "'self' blob:",
        "worker-src": "'self' blob:",
        "frame-src": "'none'",
        "object-src": "'none'",
        "base-uri": "'self'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {sources}" for name, sources in policy.items()),
        "X-Frame-Options": "DENY",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
    }


def _hash_inline_scripts() -> list[str]:
    """The sources that allow the inline scripts of Streamlit's page, and no other inline script."""
    scripts = _INLINE_SCRIPT.findall(_add_first_script(_INDEX_PAGE.read_text(encoding="utf-8")))
    return [f"'sha256-{base64.b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts]


def _add_first_script(page: str) -> str:
    return page.replace("<script", f"{_FIRST_SCRIPT}<script", 1)


class FirstScriptMiddleware:
    """Adds first.js to Streamlit's page, and leaves all other responses as they are."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; the response is Streamlit's page if it is HTML with its script."""
        if scope["type"] != "http" or scope["path"].startswith(("/_stcore", "/static", "/media")):
            await self._app(scope, receive, send)
            return
        # A compressed page could not be changed.
        headers = [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]
        start: Message = {}
        body = bytearray()

        async def send_changed(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
                return
            body.extend(message.get("body", b""))
            if message.get("more_body"):
                return
            if "text/html" in MutableHeaders(raw=start["headers"]).get("content-type", "") and body:
                changed = _add_first_script(body.decode()).encode()
                MutableHeaders(raw=start["headers"])["content-length"] = str(len(changed))
                body[:] = changed
            await send(start)
            await send({"type": "http.response.body", "body": bytes(body)})

        await self._app({**scope, "headers": headers}, receive, send_changed)


class SecurityHeadersMiddleware:
    """Adds the headers to every response of the app."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and add the headers to the response."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = MutableHeaders(scope=message)
                for name, value in security_headers().items():
                    headers[name] = value
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] != "lifespan" else send)


async def healthz(_request: Request) -> PlainTextResponse:
    """Respond with "ok" while the server runs."""
    return PlainTextResponse("ok")


async def report_failure(_request: Request, _error: Exception) -> PlainTextResponse:
    """Respond to a request that failed unexpectedly; Starlette logs the traceback."""
    return PlainTextResponse(UNEXPECTED_ERROR, status_code=500, headers=security_headers())


def show_script_error(error: Exception) -> bool:
    """Show one sentence on the page; the traceback of an unexpected error goes to the log, never to the page."""
    if isinstance(error, StoreError | WorldError | SourceError):
        st.error(format_sentence(str(error)))
    else:
        _log.error("a page failed", exc_info=error)
        st.error(UNEXPECTED_ERROR)
    return True


def load_encoder(encoder: SentenceEncoder) -> None:
    """Load the encoder's model; one that cannot be loaded is reported by each step that needs it."""
    try:
        encoder(["?"])
    except EncoderUnavailable as error:
        _log.warning("%s", error)


def load_for_first_visit() -> None:
    """Import the modules of the first page, and load the encoder for the first step.

    A browser meanwhile loads the scripts of Streamlit.
    """
    for name in FIRST_PAGE_MODULES:
        importlib.import_module(name)
    load_encoder(current_services().encoder)


@asynccontextmanager
async def load_while_serving(_app: App) -> AsyncIterator[None]:
    """Load in the background what the first visitor would wait for, and share the interpreter out finely."""
    sys.setswitchinterval(SWITCH_SECONDS)
    Thread(target=load_for_first_visit, name="load for the first visit", daemon=True).start()
    yield


def _login_routes(services: Services, visitors: Visitors) -> list[Route]:
    """The pages of the login, where people log in at this server or by way of it."""
    if services.settings.login == PASSWORD_LOGIN:
        return LoginPages(services, visitors).routes()
    return OidcPages(services).routes() if services.settings.login == OIDC_LOGIN else []


_visitors = Visitors(
    derive_key(current_services().settings.home, "visitors"), trusts_proxy="FORWARDED_ALLOW_IPS" in os.environ
)
app = App(
    # main.py is inside the folder of pages. Beside it, Streamlit would serve a page that is opened by its URL without
    # running main.py, until a visitor has opened the first page.
    Path(__file__).parent / "pages" / "main.py",
    on_script_error=show_script_error,
    lifespan=load_while_serving,
    # The headers come first, so that every other response has them too.
    middleware=[
        Middleware(SecurityHeadersMiddleware),
        Middleware(OriginMiddleware, local_addresses=current_services().settings.local_addresses),
        Middleware(FirstScriptMiddleware),
        Middleware(CapacityMiddleware, visitors=_visitors),
        Middleware(BudgetMiddleware, visitors=_visitors),
        # The last one, in front of every route: strangers, too, are kept within their budget.
        Middleware(LoginMiddleware, services=current_services()),
    ],
    exception_handlers={Exception: report_failure},
    routes=[
        Route("/healthz", healthz),
        *_login_routes(current_services(), _visitors),
        Route("/readyz", readiness_endpoint(current_services())),
        Route(f"/{HELP_PATH}", help_endpoint),
        Route(f"/{HELP_PATH}/{{path:path}}", help_endpoint),
        Route("/drafts/{trace_id:uuid}", draft_endpoint(current_services()), methods=["POST"]),
    ],
)
