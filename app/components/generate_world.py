"""The form that has a fictional world made."""

from collections.abc import Mapping, Sequence
from dataclasses import fields as fields_of
from typing import Any

import streamlit as st

from app.components.job_panel import jobs
from app.components.plain import plain
from app.components.verb_options import Field, Value, arguments, ask, fields
from app.resources import settings
from app.verbs.world import generate
from worlds.folder import WorldError, world_folder, world_names
from worlds.generator.split import WAYS, parse_split
from worlds.universe.options import Options

FIRST = ("people", "seed", "split", "split_by")
"""The options that a newcomer looks at; the others stand under More options."""
APART = ("replace", "as_json")
"""What the form asks in its own words, and what only a command line needs."""
LABELS = {
    "split": "Sources of the facts",
    "split_by": "Shares are drawn by",
    "depth": "Depth of the questions",
    "per_template": "Questions of each template",
    "family_size": "Size of a family",
    "branching": "Children of a couple",
    "friends": "Friends of a person",
    "collisions": "Share of namesakes",
    "plain": "Plain articles",
    "each_count": "Count for each person",
}
CHOICES = {
    "split": ("text=50,graph=50", "text=50,graph=35,web=15", "text=100", "graph=100"),
    "split_by": WAYS,
}


@st.dialog("Generate a world", width="large")
def generate_world() -> None:
    """Ask for its name and options; what cannot be made is told before anything is begun."""
    known = fields(generate)
    st.caption("A fictional world of families: articles, a graph and web pages, with questions and every right answer.")
    name = st.text_input("Name", value=_free_name(), key="generate_name")
    first = [field for each in FIRST if (field := known.get(each))]
    rest = [field for field in known.values() if field not in first and field.name not in APART]
    given = _ask_all(first)
    with st.expander("More options"):
        given |= _ask_all(rest)
    replace = st.checkbox("Replace the world of that name, if there is one", key="generate_replace")
    st.caption("A thousand people take seconds, a million some minutes and some gigabytes of disk.")
    if st.button("Generate", key="generate_now", type="primary"):
        words = ["world", "generate", name.strip(), *arguments(given, known), *(["--replace"] if replace else [])]
        if refused := _refused(name.strip(), given, replace=replace):
            st.error(plain(refused))
        else:
            jobs().start(name.strip(), "Generating", words)
            st.rerun()


def _ask_all(wanted: Sequence[Field]) -> dict[str, Value]:
    """The fields two in a row, so that each row is level."""
    given: dict[str, Value] = {}
    for pair in (wanted[start : start + 2] for start in range(0, len(wanted), 2)):
        for column, field in zip(st.columns(2), pair, strict=False):
            with column:
                label = LABELS.get(field.name, field.name.replace("_", " ").capitalize())
                given[field.name] = ask(field, f"generate_{field.name}", label, CHOICES.get(field.name, ()))
    return given


def _free_name() -> str:
    taken = {*world_names(settings().worlds), *(job.world for job in jobs().all())}
    return next(name for number in range(1, len(taken) + 2) if (name := f"world-{number}") not in taken)


def _refused(name: str, given: Mapping[str, Value], *, replace: bool) -> str | None:
    """Why the world cannot be made, in one sentence."""
    try:
        taken = world_folder(settings().worlds, name).exists()
        if taken and not replace:
            return f"There is a world {name!r} already; choose another name, or have it replaced."
        if any(job.world == name and job.state == "running" for job in jobs().all()):
            return f"{name!r} is being made already; wait for it, stop it, or choose another name."
        if "split" in given:
            parse_split(str(given["split"]), str(given.get("split_by", "both")))
        options: dict[str, Any] = {each.name: given[each.name] for each in fields_of(Options) if each.name in given}
        Options(**options).check()
    except WorldError as wrong:
        return str(wrong)
    return None
