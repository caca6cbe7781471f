"""Demonstrations on their way out: a format, what it cannot keep, and the file."""

import tempfile
from dataclasses import dataclass

import streamlit as st

from app.components.demonstration_filters import told
from app.components.plain import plain
from app.components.selected_library import SelectedLibrary
from app.components.version_list import many
from app.exports import export_of
from app.resources import database
from db.database import StoreError
from db.libraries import Wanted, fitting_ids
from db.reading import traces
from fewshot_library.formats import FORMATS, WRITTEN, writer
from fewshot_library.formats.format import FormatError, Losses

MOST = 5_000
"""Demonstrations that the page writes; more are the command line's, which writes them straight to disk."""
LISTED = 12
"""Losses that are told before the rest is only counted."""


@dataclass(frozen=True, slots=True)
class Written:
    """A file that is ready, and what it lacks."""

    content: bytes
    losses: Losses


@st.dialog("Export demonstrations", width="large")
def export_library(library: SelectedLibrary, wanted: Wanted) -> None:
    """Ask for the format, write, tell the losses, offer the file."""
    count = library.count(wanted)
    st.markdown(f"**{many(count, 'demonstration')}** of {plain(library.title)} · {told(wanted)}")
    name = st.selectbox(
        "Format", WRITTEN, key="export_format", format_func=lambda each: f"{each}: {FORMATS[each].purpose}"
    )
    if count > MOST:
        st.info(
            f"The page writes up to {MOST:,}. For more: `showhow library export FILE --format {name}"
            + (f" --library {library.reference}`" if library.reference else "`")
        )
        return
    with st.spinner("Writing …"):
        try:
            written = _written(library, wanted, name)
        except (FormatError, StoreError) as refused:
            st.error(plain(str(refused)))
            return
    _tell(written.losses)
    if not written.losses.written:
        st.warning("This format can keep none of them; choose another one.")
        return
    st.download_button(
        f"Download {many(written.losses.written, 'trace')}",
        written.content,
        f"{_file_name(library)}.{_ending(name, written.content)}",
        key="download",
        type="primary",
        on_click="ignore",
    )


def _written(library: SelectedLibrary, wanted: Wanted, name: str) -> Written:
    # Some formats seek in what they write, and all of it need not lie in memory twice.
    with tempfile.TemporaryFile() as file, database().read() as session:
        ids = fitting_ids(session, wanted, library.id)
        losses = writer(name)(export_of(session, traces(session, ids)), file)
        file.seek(0)
        return Written(file.read(), losses)


def _tell(losses: Losses) -> None:
    lines = losses.told()
    if not lines:
        st.success("Nothing is lost: the format keeps all of it.")
        return
    st.markdown("What this format cannot keep:")
    st.markdown("\n".join(f"- {plain(line)}" for line in lines[:LISTED]))
    if len(lines) > LISTED:
        with st.expander(f"{len(lines) - LISTED} more"):
            st.markdown("\n".join(f"- {plain(line)}" for line in lines[LISTED:]))


def _file_name(library: SelectedLibrary) -> str:
    return library.reference.replace(":", "-") or "approved"


def _ending(name: str, content: bytes) -> str:
    """What the file is called at its end, by what stands in it."""
    if content[:4] == b"PAR1":
        return "parquet"
    if content.lstrip()[:1] == b"[":
        return f"{name}.json"
    return f"{name}.jsonl" if content.lstrip()[:1] == b"{" else f"{name}.txt"
