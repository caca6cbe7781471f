"""Whether the demonstrations still hold in the world as it is now: what was observed beside what is observed."""

import re
from datetime import datetime
from difflib import SequenceMatcher
from html import escape
from typing import Any

import streamlit as st

from app.components.plain import plain
from app.components.selected_library import SelectedLibrary
from app.components.table import Entry, show_table
from app.components.verb_job import RUNNING_AGAIN, show_verb_job, start_verb_job
from app.components.who import who
from app.drifts import kept_drift
from app.reports import Report
from db.libraries import Wanted

STATES = {
    "broken": "can no longer be followed",
    "differs": "still can be followed, though a tool gives something else now",
}
LISTED = 200
LONGEST = 4_000
"""Characters of an observation that are drawn."""


def show_drift(library: SelectedLibrary) -> None:
    """Offer to run them again, and draw the last report."""
    reference = library.reference or None
    report = kept_drift(reference)
    if show_verb_job(RUNNING_AGAIN, library.title):
        pass
    elif not library.count(Wanted()):
        st.info("There is no demonstration yet. Traces that are approved on the Review page become demonstrations.")
    else:
        _offer(library, again=report is not None)
    if report is not None:
        _show(report)


def _offer(library: SelectedLibrary, *, again: bool) -> None:
    label = "Run them again now" if again else f"Run {library.count(Wanted()):,} demonstrations again"
    if st.button(label, key="run_drift", type="secondary" if again else "primary", icon=":material/replay:"):
        words = ["--library", library.reference] if library.reference else []
        start_verb_job(RUNNING_AGAIN, library.title, ["traces", "replay", *words])
        st.rerun()
    if not again:
        st.caption(
            "Every tool of every demonstration is called anew in the world as it is now, and compared with what the "
            "demonstration observed. Nothing of the demonstrations is changed."
        )


def _show(report: Report) -> None:
    with st.container(horizontal=True, key="drift_sizes"):
        for name, count in (
            ("run again", report["traces"]),
            ("the same", report["same"]),
            ("differ", report["differs"]),
            ("broken", report["broken"]),
        ):
            st.metric(name, f"{count:,}", width="content")
    at = datetime.fromisoformat(report["at"])
    st.caption(f"As of {at:%Y-%m-%d %H:%M} UTC. Broken: {STATES['broken']}. Differ: {STATES['differs']}.")
    changed = report["changed"]
    if not changed:
        st.success("Every observation is what it was.")
        return
    rows = [
        [
            Entry(each["question"], go=each["trace"]),
            Entry(each["state"]),
            Entry(", ".join(str(step["position"]) for step in each["steps"])),
        ]
        for each in changed[:LISTED]
    ]
    show_table(("question", "state", "steps"), rows, key="drifted", label="Traces that differ", go=_open)
    if len(changed) > LISTED:
        st.caption(f"and {len(changed) - LISTED:,} more; `showhow traces replay --json` lists all")
    wanted = st.query_params.get("drifted", changed[0]["trace"])
    chosen = next((each for each in changed if each["trace"] == wanted), changed[0])
    _show_trace(chosen)


def _open(trace: str) -> None:
    st.query_params["drifted"] = trace


def _show_trace(chosen: dict[str, Any]) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(plain(chosen["question"]), anchor=False, width="stretch")
        if st.button("Open in Annotate", key="mend_drift", icon=":material/edit_note:"):
            st.switch_page("annotate.py", query_params={"you": who().name, "trace": chosen["trace"]})
    for step in chosen["steps"]:
        given = ", ".join(f"{name}: {value}" for name, value in step["arguments"].items())
        why = f" · {plain(step['why'])}" if step["why"] else ""
        st.markdown(f"**Step {step['position']}** · {plain(step['tool'])} · {plain(given)}{why}")
        if step["before"] == step["now"]:
            st.caption("It says the same; the data behind it, which later steps take values from, differ.")
        then, now = st.columns(2, gap="small")
        old, new = marked(step["before"][:LONGEST], step["now"][:LONGEST])
        then.html(_side("As recorded", old))
        now.html(_side("Now", new))


def _side(name: str, text: str) -> str:
    shown = text or '<span class="nothing">nothing</span>'
    return f'<div class="beside"><p class="name">{name}</p><div class="text">{shown}</div></div>'


def marked(before: str, now: str) -> tuple[str, str]:
    """Both texts as HTML, with what only one of them says marked word by word."""
    old, new = (re.findall(r"\s+|\S+", text) for text in (before, now))
    sides: tuple[list[str], list[str]] = ([], [])
    for tag, *(a, b, c, d) in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        for side, words in zip(sides, (old[a:b], new[c:d]), strict=True):
            if words:
                text = escape("".join(words))
                side.append(text if tag == "equal" else f"<mark>{text}</mark>")
    return "".join(sides[0]), "".join(sides[1])
