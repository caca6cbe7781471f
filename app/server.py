"""The server: Streamlit's pages, a health check, and the door through which typed drafts are kept."""

from pathlib import Path

import streamlit as st
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from streamlit import App

from app.draft_endpoint import save_draft
from db.database import StoreError
from worlds.folder import WorldError
from worlds.source import SourceError


async def healthz(_request: Request) -> PlainTextResponse:
    """Answers while the process serves."""
    return PlainTextResponse("ok")


def show_script_error(failed: Exception) -> bool:
    """Show a failure of the store or a world as its one sentence; anything else is a fault of ours and shown whole."""
    if not isinstance(failed, StoreError | WorldError | SourceError):
        return False
    st.error(f"{failed}")
    return True


app = App(
    # Among the pages: with a folder of pages beside it, Streamlit would serve a page that is opened by its address
    # without running this script, until somebody has opened the first one.
    Path(__file__).parent / "pages" / "main.py",
    on_script_error=show_script_error,
    routes=[Route("/healthz", healthz), Route("/drafts/{trace_id:uuid}", save_draft, methods=["POST"])],
)
