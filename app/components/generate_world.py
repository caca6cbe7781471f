"""The form that has a fictional world made."""

from collections.abc import Mapping
from dataclasses import fields as fields_of
from typing import Any

import streamlit as st

from app.components.job_panel import jobs
from app.components.plain import plain
from app.components.verb_options import Value, arguments, ask, fields
from app.resources import settings
from app.verbs.world import generate
from worlds.folder import WorldError, world_folder, world_names
from worlds.generator.split import WAYS, parse_split
from worlds.universe.options import Options

FIRST = ("people", "seed", "split", "split_by")
"""The options that a newcomer looks at; the others stand under More options."""
CHOICES = {
    "split": ("everywhere", "text=50,graph=50", "text=50,graph=35,web=15", "text=100", "graph=100"),
    "split_by": WAYS,
}


@st.dialog("Generate a world", width="large")
def generate_world() -> None:
    """Ask for its name and options; what cannot be made is told before anything is begun."""
    known = fields(generate)
    st.caption("A fictional world of families: articles, a graph and web pages, with questions and every right answer.")
    name = st.text_input("Name", value=_free_name(), key="generate_name", help="Letters, digits, - and _.")
    given: dict[str, Value] = {}
    first = [known[each] for each in FIRST if each in known]
    for column, field in zip(_columns(len(first)), first, strict=True):
        with column:
            given[field.name] = ask(field, f"generate_{field.name}", CHOICES)
    rest = [field for field in known.values() if field not in first and field.name not in ("replace", "as_json")]
    if rest:
        with st.expander("More options"):
            for column, field in zip(_columns(len(rest)), rest, strict=True):
                with column:
                    given[field.name] = ask(field, f"generate_{field.name}", CHOICES)
    replace = st.checkbox("Replace the world of that name, if there is one", key="generate_replace")
    st.caption("A thousand people take seconds, a million some minutes and some gigabytes of disk.")
    if st.button("Generate", key="generate_now", type="primary"):
        words = ["world", "generate", name.strip(), *arguments(given, known), *(["--replace"] if replace else [])]
        if refused := _refused(name.strip(), given, replace=replace):
            st.error(plain(refused))
        else:
            jobs().start(name.strip(), "Generating", words)
            st.rerun()


def _columns(count: int) -> list[Any]:
    """Places for so many fields, two in a row and level with each other."""
    return [column for _ in range(0, count, 2) for column in st.columns(2)][:count]


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
