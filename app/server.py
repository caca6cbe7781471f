"""The server: Streamlit's pages, a health check, and the endpoint that stores drafts as they are typed."""

import logging
from pathlib import Path

import streamlit as st
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from streamlit import App

from app.widgets.autosave import save_draft
from db.database import StoreError
from worlds.folder import WorldError
from worlds.source import SourceError

UNEXPECTED_ERROR = "Something went wrong on this page. Reload it; the server's log has the details."
_log = logging.getLogger(__name__)


async def healthz(_request: Request) -> PlainTextResponse:
    """Answers while the process serves."""
    return PlainTextResponse("ok")


def show_script_error(failed: Exception) -> bool:
    """Show one sentence on the page; the traceback of an unexpected error goes to the log, never to the page."""
    if isinstance(failed, StoreError | WorldError | SourceError):
        st.error(f"{failed}")
    else:
        _log.error("a page failed", exc_info=failed)
        st.error(UNEXPECTED_ERROR)
    return True


app = App(
    # main.py lies among the pages: with a folder of pages beside it, Streamlit would serve a page that is opened by
    # its URL without running main.py, until a visitor has opened the first page.
    Path(__file__).parent / "pages" / "main.py",
    on_script_error=show_script_error,
    routes=[Route("/healthz", healthz), Route("/drafts/{trace_id:uuid}", save_draft, methods=["POST"])],
)
