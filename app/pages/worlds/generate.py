"""The form that generates a fictional world."""

from collections.abc import Mapping, Sequence
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Any

import streamlit as st

from app.cli.world import generate
from app.jobs import JobError
from app.pages.worlds.verb_form import (
    OptionValue,
    VerbOption,
    build_command_arguments,
    read_verb_options,
    show_option_field,
)
from app.widgets.job_panel import list_world_jobs, start_world_job
from app.widgets.plain_text import escape_markdown
from fiction.generator.split import SPLIT_MODES, parse_split
from fiction.universe.options import GenerationOptions
from worlds.folder import WorldError, list_world_names, world_folder

BASIC_OPTIONS = ("people", "seed", "split", "split_by")
"""The options at the top of the form; the others are under More options."""
EXCLUDED_OPTIONS = ("replace", "as_json")
"""Options that the form asks for itself, or that only the command line needs."""
OPTION_LABELS = {
    "split": "Sources of the facts",
    "split_by": "Split by",
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
def show_generate_dialog(worlds_folder: Path) -> None:
    """Ask for the name and the options; errors are shown before any work begins."""
    options = read_verb_options(generate)
    st.caption("A fictional world of families: articles, a graph and web pages, with questions and every right answer.")
    name = st.text_input("Name", value=_unused_name(worlds_folder), key="generate_name").strip()
    basic = [options[option] for option in BASIC_OPTIONS if option in options]
    others = [option for option in options.values() if option not in basic and option.name not in EXCLUDED_OPTIONS]
    values = _show_option_fields(basic)
    with st.expander("More options"):
        values |= _show_option_fields(others)
    replace = st.checkbox("Replace the world of that name, if there is one", key="generate_replace")
    st.caption("A thousand people take seconds, a million some minutes and some gigabytes of disk.")
    if st.button("Generate", key="generate_now", type="primary"):
        arguments = ["world", "generate", name, *build_command_arguments(values, options)]
        try:
            _check_generation(worlds_folder, name, values, replace=replace)
            start_world_job(name, "Generating", [*arguments, *(["--replace"] if replace else [])])
        except (WorldError, JobError) as error:
            st.error(escape_markdown(str(error)))
        else:
            st.rerun()


def _show_option_fields(options: Sequence[VerbOption]) -> dict[str, OptionValue]:
    """Draw the fields in rows of two, so that each row is level."""
    values: dict[str, OptionValue] = {}
    for pair in (options[start : start + 2] for start in range(0, len(options), 2)):
        for column, field in zip(st.columns(2), pair, strict=False):
            with column:
                label = OPTION_LABELS.get(field.name, field.name.replace("_", " ").capitalize())
                choices = OPTION_CHOICES.get(field.name, ())
                values[field.name] = show_option_field(field, f"generate_{field.name}", label, choices)
    return values


def _unused_name(worlds_folder: Path) -> str:
    used = {*list_world_names(worlds_folder), *(job.name for job in list_world_jobs())}
    return next(name for number in range(1, len(used) + 2) if (name := f"world-{number}") not in used)


def _check_generation(folder: Path, name: str, values: Mapping[str, OptionValue], *, replace: bool) -> None:
    """Raise a WorldError if the world cannot be made."""
    if world_folder(folder, name).exists() and not replace:
        raise WorldError(f"There is a world {name!r} already; choose another name, or have it replaced.")
    if "split" in values:
        parse_split(str(values["split"]), str(values.get("split_by", "both")))
    options: dict[str, Any] = {
        option.name: values[option.name] for option in fields_of(GenerationOptions) if option.name in values
    }
    GenerationOptions(**options).check()
