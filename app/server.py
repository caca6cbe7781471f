"""The server: Streamlit's pages, a health check, and the endpoint that stores drafts as they are typed."""

import logging
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from streamlit import App

# Streamlit puts the folder of the pages first on the module path when it runs them. A room with the name of a page must
# be imported before, or the page's folder would be imported in its place.
import tools  # noqa: F401
import worlds  # noqa: F401
from app.capacity import CapacityMiddleware
from app.security_headers import SecurityHeadersMiddleware, security_headers
from app.services import services
from app.widgets.autosave import draft_endpoint
from app.widgets.plain_text import format_sentence
from db.database import StoreError
from worlds.folder import WorldError
from worlds.source import SourceError

UNEXPECTED_ERROR = "Something went wrong on this page. Reload it; the server's log has the details."
_log = logging.getLogger(__name__)


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


app = App(
    # main.py is inside the folder of pages. Beside it, Streamlit would serve a page that is opened by its URL without
    # running main.py, until a visitor has opened the first page.
    Path(__file__).parent / "pages" / "main.py",
    on_script_error=show_script_error,
    # The headers come first, so that every other response has them too.
    middleware=[Middleware(SecurityHeadersMiddleware), Middleware(CapacityMiddleware)],
    exception_handlers={Exception: report_failure},
    routes=[
        Route("/healthz", healthz),
        Route("/drafts/{trace_id:uuid}", draft_endpoint(services()), methods=["POST"]),
    ],
)
