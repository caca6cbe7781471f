"""The endpoint that stores drafts: the page posts what is being typed here, without a script run for each save."""

import hashlib
import hmac
import json
import secrets
from functools import cache
from uuid import UUID

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse

from app.services import services
from db import drafts
from db.database import StoreError

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
