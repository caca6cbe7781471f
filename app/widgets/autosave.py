"""Saves what is being typed as a draft and shows when it was last saved.

The endpoint that stores drafts: the page posts what is being typed here, without a script run for each save.
"""

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Mapping
from functools import cache
from typing import Any
from uuid import UUID

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse

from app.services import services
from app.widgets.page_layout import read_asset
from db import drafts
from db.database import StoreError
from db.models import Draft

MAX_DRAFT_BYTES = 4 * 1024 * 1024


@cache
def _signing_key() -> bytes:
    return secrets.token_bytes(32)


def draft_token(trace_id: UUID) -> str:
    """The token that a page needs to write the draft of that trace; valid while this process lives."""
    return hmac.new(_signing_key(), trace_id.bytes, hashlib.sha256).hexdigest()


async def save_draft(request: Request) -> JSONResponse:
    """Store the posted draft: 200 with the moment it was saved, 4xx or 503 with the reason."""
    trace_id: UUID = request.path_params["trace_id"]
    if not hmac.compare_digest(request.query_params.get("token", ""), draft_token(trace_id)):
        return JSONResponse({"error": "this page is older than the server; reload it"}, status_code=403)
    body = await request.body()
    if len(body) > MAX_DRAFT_BYTES:
        return JSONResponse({"error": f"a draft holds at most {MAX_DRAFT_BYTES} bytes; shorten it"}, status_code=413)
    try:
        content = json.loads(body)
    except ValueError as wrong:
        return JSONResponse({"error": f"the draft is no JSON: {wrong}"}, status_code=400)
    if not isinstance(content, dict):
        return JSONResponse({"error": "the draft is no JSON object"}, status_code=400)
    try:
        saved_at = await run_in_threadpool(_store_draft, trace_id, content)
    except StoreError as failed:
        return JSONResponse({"error": str(failed)}, status_code=503)
    return JSONResponse({"saved_at": saved_at})


def _store_draft(trace_id: UUID, content: dict[str, object]) -> str:
    with services().database.begin() as session:
        return drafts.save_draft(session, trace_id, content).saved_at.isoformat()


def mount_autosave(trace_id: UUID, content: Mapping[str, Any], watch: Mapping[str, str], draft: Draft | None) -> None:
    """Mount the component: `content` is the draft that the server has, `watch` the CSS class of each typed field."""
    opened = st.session_state.setdefault(f"opened_{trace_id.hex}", time.time())
    mount = st.components.v2.component(
        "showhow_autosave",
        html='<div class="status" role="status"></div>',
        css=read_asset("autosave.css"),
        js=read_asset("autosave.js"),
    )
    mount(
        data={
            "url": f"/drafts/{trace_id}?token={draft_token(trace_id)}",
            "scope": f"{trace_id}:{content['step']}",
            "content": {**content, "opened": opened},
            "watch": dict(watch),
            "active": (draft.content.get("active") or 0) if draft else 0,
            "saved_at": draft.saved_at.isoformat() if draft else None,
        },
        key="autosave",
    )
