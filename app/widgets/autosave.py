"""Autosave: a component that posts typed text as a draft and shows when it was saved, and the endpoint that stores it.

Posting to an endpoint saves a draft without a script run of the page. The first draft of a new trace begins it.
"""

import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

from showhow.app.login import PERSON
from showhow.app.widgets.page_layout import format_sentence, read_asset
from showhow.app.widgets.person import is_from_this_machine
from showhow.app.widgets.queue import OpenedTrace, derive_id, signing_key
from showhow.db.database import Database, StoreError
from showhow.db.models import Draft, Trace, User
from showhow.db.people import users
from showhow.db.review import review
from showhow.db.traces import recording
from showhow.db.traces.unsent_questions import save_unsent_question
from showhow.db.types import MAX_TEXT_CHARACTERS
from showhow.runs.services import Services

MAX_DRAFT_BYTES = MAX_TEXT_CHARACTERS
"""A longer text could not be stored as a step either."""
MAX_SECONDS = 2**40
"""The longest time that a draft may contain, in seconds."""


@dataclass(frozen=True, slots=True)
class DraftPage:
    """A page that posts drafts of a trace: the trace, who types, and the page's number (db/traces/recording.py)."""

    opened: OpenedTrace
    number: int
    is_local: bool
    """Whether the page was opened on this machine, where a first act gives a new person a role."""
    comment_on: int = 0
    """The version of the trace that a reviewer comments on; 0 for a page on which its author types."""
    asks: bool = False
    """Whether a question is typed on the Ask page, which has no trace yet."""

    @property
    def url(self) -> str:
        """The signed URL to which the page posts; valid in every process of the home."""
        return f"/drafts/{self.opened.id}?{urlencode({**self._parameters, 'token': self._token})}"

    @property
    def _parameters(self) -> dict[str, str]:
        opened = self.opened
        return {
            "page": str(self.number),
            "person": opened.person,
            "question": str(opened.question_id or ""),
            "opened_at": opened.opened_at.isoformat() if opened.opened_at else "",
            "chosen": "yes" if opened.is_chosen else "",
            "local": "yes" if self.is_local else "",
            "comment_on": str(self.comment_on),
            "asks": "yes" if self.asks else "",
        }

    @property
    def person(self) -> users.ActingPerson:
        """The person who types."""
        return users.ActingPerson(self.opened.person, self.is_local)

    @property
    def _token(self) -> str:
        signed_values = [str(self.opened.id), *self._parameters.values()]
        return hmac.digest(signing_key(), json.dumps(signed_values).encode(), "sha256").hex()

    @classmethod
    def of_request(cls, request: Request) -> "DraftPage | None":
        """Read the page from the URL of a request; None if no process of this home has signed the URL."""
        query = request.query_params
        try:
            opened = OpenedTrace(
                request.path_params["trace_id"],
                query.get("person", ""),
                UUID(query["question"]) if query.get("question") else None,
                datetime.fromisoformat(query["opened_at"]) if query.get("opened_at") else None,
                is_chosen=bool(query.get("chosen")),
            )
            numbers = [int(query.get(name, "")) for name in ("page", "comment_on")]
            page = cls(
                opened, numbers[0], bool(query.get("local")), comment_on=numbers[1], asks=bool(query.get("asks"))
            )
        except ValueError:
            return None
        # As bytes, since compare_digest accepts no other text than ASCII.
        is_signed = hmac.compare_digest(query.get("token", "").encode(errors="replace"), page._token.encode())
        return page if is_signed else None


def draft_endpoint(services: Services) -> Callable[[Request], Awaitable[JSONResponse]]:
    """Build the endpoint that stores posted drafts: 200 with the time of saving, 4xx or 503 with the reason."""

    async def save_draft(request: Request) -> JSONResponse:
        page = DraftPage.of_request(request)
        if page is None:
            return _refuse(403, "this page is older than the server; reload it")
        if request.scope.get(PERSON, page.opened.person) not in (None, page.opened.person):
            return _refuse(403, "you are logged in as somebody else now; reload this page")
        body = await read_body(request, MAX_DRAFT_BYTES)
        if body is None:
            return _refuse(413, f"a draft may have at most {MAX_DRAFT_BYTES} bytes; shorten it")
        try:
            content = parse_draft(body)
        except ValueError as error:
            return _refuse(400, f"the draft cannot be stored: {error}")
        try:
            saved_at = await run_in_threadpool(_store_draft, services.database, page, content)
        except StoreError as error:
            return _refuse(503, str(error))
        return JSONResponse({"saved_at": saved_at})

    return save_draft


def _refuse(status: int, reason: str) -> JSONResponse:
    # The rest of the request may be unread, so the connection cannot be used again.
    return JSONResponse({"error": reason}, status_code=status, headers={"Connection": "close"})


async def read_body(request: Request, limit: int) -> bytes | None:
    """Read the body of the request; None as soon as it has more bytes than the limit, or if its client is gone."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > limit:
                return None
    except ClientDisconnect:
        return None
    return bytes(body)


def parse_draft(body: bytes) -> dict[str, Any]:
    """Parse a posted draft; ValueError says what is wrong with it."""
    try:
        content = json.loads(body)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - the input's error, not the caller's
    if unknown := content.keys() - {"step", "fields", "active"}:
        raise ValueError(f"it has the unknown field {min(unknown)!r}")
    fields = content.get("fields", {})
    if not isinstance(fields, dict) or not all(isinstance(value, str) for value in fields.values()):
        raise ValueError("its fields are not texts")
    for name in ("step", "active"):
        value = content.get(name, 0)
        # NaN fails both comparisons.
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_SECONDS:
            raise ValueError(f"its field {name!r} is not a number from 0 to {MAX_SECONDS}")
    return content


def _store_draft(database: Database, page: DraftPage, content: dict[str, Any]) -> str:
    with database.acting_as(page.person).begin() as session:
        if page.asks:
            asker = users.register_user(session, page.opened.person)
            text = content.get("fields", {}).get("question", "")
            return save_unsent_question(session, asker.id, text, page_number=page.number).isoformat()
        if page.comment_on:
            reviewer = users.register_user(session, page.opened.person)
            text = content.get("fields", {}).get("comment", "")
            return review.save_comment(
                session, page.opened.id, text, seen=page.comment_on, by=reviewer.id, page_number=page.number
            ).isoformat()
        page.opened.begin(session)
        author = users.register_user(session, page.opened.person)
        draft = recording.save_draft(session, page.opened.id, content, by=author.id, page_number=page.number)
        return draft.saved_at.isoformat()


@cache
def page_numbers() -> recording.PageNumbers:
    """The numbers of this process's pages."""
    return recording.PageNumbers()


def _number_page(database: Database, trace_id: UUID) -> int:
    """The number of this page among all pages that were opened; one per trace and browser tab."""
    key = f"page_number_{trace_id.hex}"
    if key not in st.session_state:
        with database.read() as session:
            st.session_state[key] = page_numbers().next(session)
    return int(st.session_state[key])


def mount_autosave(
    database: Database, opened: OpenedTrace, content: Mapping[str, Any], watch: Mapping[str, str], draft: Draft | None
) -> None:
    """Mount the component; `content` is the draft of the current fields, `watch` the CSS class of each typed field."""
    _mount(
        database,
        opened,
        {
            "scope": f"{opened.id}:{content['step']}",
            "new": opened.question_id is not None and draft is None and content["step"] == 1,
            "content": dict(content),
            "watch": dict(watch),
            "timed": True,
            "active": (draft.content.get("active") or 0) if draft else 0,
            "saved_at": draft.saved_at.isoformat() if draft else None,
        },
    )


def mount_comment_autosave(database: Database, trace: Trace, person: User, comment: str, css: str) -> None:
    """Mount the component for a reviewer's comment on the trace; `css` is the class of its field."""
    data = _field_data(f"{trace.id}:comment on {trace.version}", "comment", comment, css, is_new=False)
    _mount(database, OpenedTrace(trace.id, person.name), data, comment_on=trace.version)


def mount_question_autosave(database: Database, person: User, shown: str, question: str, css: str) -> None:
    """Mount the component for the question on the Ask page; `shown` names the trace that the page shows."""
    data = _field_data(f"ask {shown}", "question", question, css, is_new=True)
    _mount(database, OpenedTrace(derive_id(f"ask {person.name}"), person.name), data, asks=True)


def _field_data(scope: str, name: str, text: str, css: str, *, is_new: bool) -> dict[str, Any]:
    """The data of the component for one field, whose time is not measured."""
    return {
        "scope": scope,
        "new": is_new,
        "content": {"fields": {name: text}},
        "watch": {name: css},
        "timed": False,
        "active": 0,
        "saved_at": None,
    }


def _mount(
    database: Database, opened: OpenedTrace, data: Mapping[str, Any], *, comment_on: int = 0, asks: bool = False
) -> None:
    try:
        number = _number_page(database, opened.id)
    except StoreError as error:
        st.error(format_sentence(f"what you type is not stored yet: {error}"))
        return
    page = DraftPage(opened, number, is_local=is_from_this_machine(), comment_on=comment_on, asks=asks)
    mount = st.components.v2.component(
        "showhow_autosave",
        html='<div class="status" role="status"></div>',
        css=read_asset("autosave.css"),
        js=read_asset("autosave.js"),
    )
    mount(data={"url": page.url, **data}, key="autosave")
