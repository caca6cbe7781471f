"""The form that has a fictional world made."""

from collections.abc import Mapping, Sequence
from dataclasses import fields as fields_of
from typing import Any

import streamlit as st

from app.cli.world import generate
from app.services import services
from app.widgets.job_panel import (
    OptionValue,
    VerbOption,
    build_command_arguments,
    get_jobs,
    read_verb_options,
    show_option_field,
)
from app.widgets.plain_text import escape_markdown
from fiction.generator.split import SPLIT_MODES, parse_split
from fiction.universe.options import GenerationOptions
from worlds.folder import WorldError, list_world_names, world_folder

BASIC_OPTIONS = ("people", "seed", "split", "split_by")
"""The options that a newcomer looks at; the others stand under More options."""
EXCLUDED_OPTIONS = ("replace", "as_json")
"""What the form asks in its own words, and what only a command line needs."""
OPTION_LABELS = {
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
OPTION_CHOICES = {
    "split": ("text=50,graph=50", "text=50,graph=35,web=15", "text=100", "graph=100"),
    "split_by": SPLIT_MODES,
}


@st.dialog("Generate a world", width="large")
def show_generate_dialog() -> None:
    """Ask for its name and options; what cannot be made is told before anything is begun."""
    known = read_verb_options(generate)
    st.caption("A fictional world of families: articles, a graph and web pages, with questions and every right answer.")
    name = st.text_input("Name", value=_unused_name(), key="generate_name")
    first = [field for each in BASIC_OPTIONS if (field := known.get(each))]
    rest = [field for field in known.values() if field not in first and field.name not in EXCLUDED_OPTIONS]
    given = _show_option_fields(first)
    with st.expander("More options"):
        given |= _show_option_fields(rest)
    replace = st.checkbox("Replace the world of that name, if there is one", key="generate_replace")
    st.caption("A thousand people take seconds, a million some minutes and some gigabytes of disk.")
    if st.button("Generate", key="generate_now", type="primary"):
        words = [
            "world",
            "generate",
            name.strip(),
            *build_command_arguments(given, known),
            *(["--replace"] if replace else []),
        ]
        if refused := _check_generation(name.strip(), given, replace=replace):
            st.error(escape_markdown(refused))
        else:
            get_jobs().start(name.strip(), "Generating", words)
            st.rerun()


def _show_option_fields(wanted: Sequence[VerbOption]) -> dict[str, OptionValue]:
    """The fields two in a row, so that each row is level."""
    given: dict[str, OptionValue] = {}
    for pair in (wanted[start : start + 2] for start in range(0, len(wanted), 2)):
        for column, field in zip(st.columns(2), pair, strict=False):
            with column:
                label = OPTION_LABELS.get(field.name, field.name.replace("_", " ").capitalize())
                given[field.name] = show_option_field(
                    field, f"generate_{field.name}", label, OPTION_CHOICES.get(field.name, ())
                )
    return given


def _unused_name() -> str:
    taken = {*list_world_names(services().settings.worlds_folder), *(job.world for job in get_jobs().all())}
    return next(name for number in range(1, len(taken) + 2) if (name := f"world-{number}") not in taken)


def _check_generation(name: str, given: Mapping[str, OptionValue], *, replace: bool) -> str | None:
    """Why the world cannot be made, in one sentence."""
    try:
        taken = world_folder(services().settings.worlds_folder, name).exists()
        if taken and not replace:
            return f"There is a world {name!r} already; choose another name, or have it replaced."
        if any(job.world == name and job.state == "running" for job in get_jobs().all()):
            return f"{name!r} is being made already; wait for it, stop it, or choose another name."
        if "split" in given:
            parse_split(str(given["split"]), str(given.get("split_by", "both")))
        options: dict[str, Any] = {
            each.name: given[each.name] for each in fields_of(GenerationOptions) if each.name in given
        }
        GenerationOptions(**options).check()
    except WorldError as wrong:
        return str(wrong)
    return None
