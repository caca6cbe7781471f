"""Saves what is being typed as a draft and shows when it was last saved."""

import time
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import streamlit as st

from app.draft_endpoint import draft_token
from app.widgets.page_layout import read_asset
from db.models import Draft


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
