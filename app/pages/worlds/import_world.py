"""The form that imports a world, from files on the server or from uploaded ones."""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from app.cli.world import import_
from app.cli.world_published import INSTANCE_FORMAT
from app.jobs import JobError
from app.pages.worlds.verb_form import read_verb_options
from app.widgets.job_panel import start_world_job
from app.widgets.plain_text import escape_markdown
from worlds.folder import WorldError, world_folder
from worlds.importers import ARTICLE_FORMATS

ARTICLE_EXTENSIONS = ["jsonl", "ndjson", "json", "gz"]
GRAPH_EXTENSIONS = ["ttl", "nt", "gz"]
SERVER_FILES, UPLOAD = "Files on the server", "Upload"


@dataclass(frozen=True, slots=True)
class WorldImportRequest:
    """The values of the form; a source is a path on the server, an upload or None."""

    name: str
    articles: str | UploadedFile | None
    graph: str | UploadedFile | None
    article_format: str
    article_filter: str
    licence: str
    replace: bool


@st.dialog("Import a world", width="large")
def show_import_dialog(worlds_folder: Path) -> None:
    """Ask for the name and the sources; a failed import shows its error and leaves nothing."""
    help_of = {name: field.help for name, field in read_verb_options(import_).items()}
    name = st.text_input("Name", key="import_name", placeholder="mine", help="Letters, digits, - and _.")
    articles, graph = _show_source_fields(help_of)
    st.caption("Articles, a graph, or both. The folder of a published PhantomWiki instance goes under Articles.")
    form = st.selectbox("Format of the articles", _article_formats(), help=help_of["form"], key="import_form")
    with st.expander("More options"):
        where = st.text_input("Only articles with", help=help_of["where"], key="import_where", placeholder="side=text")
        licence = st.text_input("Licence", help=help_of["licence"], key="import_licence", placeholder="CC BY-SA 4.0")
    replace = st.checkbox("Replace the world of that name, if there is one", key="import_replace")
    if st.button("Import", key="import_now", type="primary"):
        request = WorldImportRequest(name.strip(), articles, graph, form, where.strip(), licence.strip(), replace)
        try:
            _check_request(worlds_folder, request)
            _start_import(request)
        except (WorldError, JobError) as error:
            st.error(escape_markdown(str(error)))
        else:
            st.rerun()


def _show_source_fields(help_of: Mapping[str, str]) -> tuple[str | UploadedFile | None, str | UploadedFile | None]:
    """The fields of the articles and of the graph, as paths on the server or as uploads."""
    place = st.segmented_control(
        "From", (SERVER_FILES, UPLOAD), default=SERVER_FILES, key="import_place", required=True
    )
    if place == UPLOAD:
        return (
            st.file_uploader("Articles", ARTICLE_EXTENSIONS, help=help_of["articles"], key="import_articles_file"),
            st.file_uploader("Graph", GRAPH_EXTENSIONS, help=help_of["graph"], key="import_graph_file"),
        )
    return (
        st.text_input("Articles", help=help_of["articles"], key="import_articles", placeholder="/data/articles.jsonl"),
        st.text_input("Graph", help=help_of["graph"], key="import_graph", placeholder="/data/facts.ttl"),
    )


def _article_formats() -> list[str]:
    return ["auto", *ARTICLE_FORMATS, INSTANCE_FORMAT]


def _check_request(worlds_folder: Path, request: WorldImportRequest) -> None:
    """Raise a WorldError if the form cannot be imported as it is."""
    if world_folder(worlds_folder, request.name).exists() and not request.replace:
        raise WorldError(f"There is a world {request.name!r} already; choose another name, or have it replaced.")
    if request.article_format == INSTANCE_FORMAT and not isinstance(request.articles, str):
        raise WorldError("A published instance is a folder; put it on the server and name it there.")
    if not request.articles and not request.graph:
        raise WorldError("Name what to import: articles, a graph, or both.")
    for source in (request.articles, request.graph):
        if isinstance(source, str) and source and not Path(source).expanduser().exists():
            raise WorldError(f"There is no file or folder {source} on the server.")


def _start_import(request: WorldImportRequest) -> None:
    scratch = Path(tempfile.mkdtemp(prefix="showhow-upload-"))
    arguments = ["world", "import", request.name, f"--format={request.article_format}"]
    for flag, source, extensions in (
        ("articles", request.articles, ARTICLE_EXTENSIONS),
        ("graph", request.graph, GRAPH_EXTENSIONS),
    ):
        if source:
            arguments.append(f"--{flag}={_resolve_source(source, scratch / flag, extensions)}")
    for flag, text in (("where", request.article_filter), ("licence", request.licence)):
        if text:
            arguments.append(f"--{flag}={text}")
    if request.replace:
        arguments.append("--replace")
    try:
        start_world_job(request.name, "Importing", arguments, scratch)
    except JobError:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def _resolve_source(source: str | UploadedFile, target: Path, extensions: list[str]) -> Path:
    """The path of the source; an upload is written to the target, with the extensions that tell its format."""
    if isinstance(source, str):
        return Path(source).expanduser().resolve()
    suffixes = [suffix for suffix in Path(source.name).suffixes[-2:] if suffix[1:].lower() in extensions]
    file = target.with_name(target.name + "".join(suffixes).lower())
    with file.open("wb") as stream:
        shutil.copyfileobj(source, stream)
    return file
