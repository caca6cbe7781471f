"""The server: Streamlit's pages, a health check, and the door through which typed drafts are kept."""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from streamlit import App

from app.drafts import keep_draft


async def healthz(_request: Request) -> PlainTextResponse:
    """Answers while the process serves."""
    return PlainTextResponse("ok")


app = App(
    Path(__file__).with_name("main.py"),
    routes=[Route("/healthz", healthz), Route("/drafts/{trace_id:uuid}", keep_draft, methods=["POST"])],
)
