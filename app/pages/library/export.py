"""Demonstrations on their way out: a format, what it cannot keep, and the file."""

import tempfile
from dataclasses import dataclass

import streamlit as st

from app.trace_export import build_export
from app.widgets.library_choice import pluralize
from app.widgets.plain_text import escape_markdown
from app.widgets.selected_library import SelectedLibrary
from db.database import StoreError
from db.libraries import DemonstrationFilter, list_matching_ids
from db.traces import load_traces
from fewshot_library.formats import FORMATS, find_writer, writable_formats
from fewshot_library.formats.format import ExportLosses, FormatError

MAX_EXPORTED = 5_000
"""Demonstrations that the page writes; more are the command line's, which writes them straight to disk."""
MAX_LISTED_LOSSES = 12
"""Losses that are told before the rest is only counted."""


@dataclass(frozen=True, slots=True)
class ExportFile:
    """A file that is ready, and what it lacks."""

    content: bytes
    losses: ExportLosses


@st.dialog("Export demonstrations", width="large")
def show_export_dialog(library: SelectedLibrary, conditions: DemonstrationFilter) -> None:
    """Ask for the format, write, tell the losses, offer the file."""
    count = library.count(conditions)
    st.markdown(
        f"**{pluralize(count, 'demonstration')}** of {escape_markdown(library.title)} · {describe_filter(conditions)}"
    )
    name = st.selectbox(
        "Format",
        writable_formats(),
        key="export_format",
        format_func=lambda format_name: f"{format_name}: {FORMATS[format_name].purpose}",
    )
    if count > MAX_EXPORTED:
        st.info(
            f"The page writes up to {MAX_EXPORTED:,}. For more: `showhow library export FILE --format {name}"
            + (f" --library {library.reference}`" if library.reference else "`")
        )
        return
    with st.spinner("Writing …"):
        try:
            written = _write_export(library, conditions, name)
        except (FormatError, StoreError) as refused:
            st.error(escape_markdown(str(refused)))
            return
    _show_losses(written.losses)
    if not written.losses.written:
        st.warning("This format can keep none of them; choose another one.")
        return
    st.download_button(
        f"Download {pluralize(written.losses.written, 'trace')}",
        written.content,
        f"{_export_file_name(library)}.{_file_extension(name, written.content)}",
        key="download",
        type="primary",
        on_click="ignore",
    )


def describe_filter(conditions: DemonstrationFilter) -> str:
    """The filter in words, as Markdown with the values escaped."""
    labels = {"text": "search", "by": "by", "rating": "min. rating", "kind": "kind", "project": "project"}
    parts = [f"{labels[name]} {value}" for name, value in conditions.active_conditions().items()]
    return escape_markdown(", ".join(parts)) if parts else "no filter"


def _write_export(library: SelectedLibrary, conditions: DemonstrationFilter, name: str) -> ExportFile:
    # Some formats seek in what they write, and all of it need not lie in memory twice.
    services = library.services
    with tempfile.TemporaryFile() as file, services.database.read() as session:
        ids = list_matching_ids(session, conditions, library.id)
        losses = find_writer(name)(build_export(services.tool_registry(), session, load_traces(session, ids)), file)
        file.seek(0)
        return ExportFile(file.read(), losses)


def _show_losses(losses: ExportLosses) -> None:
    lines = losses.summary_lines()
    if not lines:
        st.success("Nothing is lost: the format keeps all of it.")
        return
    st.markdown("What this format cannot keep:")
    st.markdown("\n".join(f"- {escape_markdown(line)}" for line in lines[:MAX_LISTED_LOSSES]))
    if len(lines) > MAX_LISTED_LOSSES:
        with st.expander(f"{len(lines) - MAX_LISTED_LOSSES} more"):
            st.markdown("\n".join(f"- {escape_markdown(line)}" for line in lines[MAX_LISTED_LOSSES:]))


def _export_file_name(library: SelectedLibrary) -> str:
    return library.reference.replace(":", "-") or "approved"


def _file_extension(name: str, content: bytes) -> str:
    """What the file is called at its end, by what stands in it."""
    if content[:4] == b"PAR1":
        return "parquet"
    if content.lstrip()[:1] == b"[":
        return f"{name}.json"
    return f"{name}.jsonl" if content.lstrip()[:1] == b"{" else f"{name}.txt"
