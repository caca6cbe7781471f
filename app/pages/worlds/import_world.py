"""The form that has a world imported, from files on the server or from uploaded ones."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from app.cli.world import import_
from app.cli.world_published import INSTANCE_FORMAT
from app.services import services
from app.widgets.job_panel import get_jobs, read_verb_options
from app.widgets.plain_text import escape_markdown
from worlds.folder import WorldError, world_folder
from worlds.importers import ARTICLE_FORMATS

ARTICLE_EXTENSIONS = ["jsonl", "ndjson", "json", "gz"]
GRAPH_EXTENSIONS = ["ttl", "nt", "gz"]
SERVER_FILES, UPLOAD = "Files on the server", "Upload"


@dataclass(frozen=True, slots=True)
class WorldImportRequest:
    """What the form says; a source is a path, an upload or None."""

    name: str
    articles: str | UploadedFile | None
    graph: str | UploadedFile | None
    article_format: str
    article_filter: str
    licence: str
    replace: bool


@st.dialog("Import a world", width="large")
def show_import_dialog() -> None:
    """Ask for its name and sources; what cannot be imported is told, and nothing of it stays."""
    help_of = {name: field.help for name, field in read_verb_options(import_).items()}
    name = st.text_input("Name", key="import_name", placeholder="mine", help="Letters, digits, - and _.")
    place = st.segmented_control(
        "From", (SERVER_FILES, UPLOAD), default=SERVER_FILES, key="import_place", required=True
    )
    articles: str | UploadedFile | None
    graph: str | UploadedFile | None
    if place == UPLOAD:
        articles = st.file_uploader(
            "Articles", type=ARTICLE_EXTENSIONS, help=help_of["articles"], key="import_articles_file"
        )
        graph = st.file_uploader("Graph", type=GRAPH_EXTENSIONS, help=help_of["graph"], key="import_graph_file")
    else:
        articles = st.text_input(
            "Articles", help=help_of["articles"], key="import_articles", placeholder="/data/articles.jsonl"
        )
        graph = st.text_input("Graph", help=help_of["graph"], key="import_graph", placeholder="/data/facts.ttl")
    st.caption("Articles, a graph, or both. The folder of a published PhantomWiki instance goes under Articles.")
    form = st.selectbox("Format of the articles", _article_formats(), help=help_of["form"], key="import_form")
    with st.expander("More options"):
        where = st.text_input("Only articles with", help=help_of["where"], key="import_where", placeholder="side=text")
        licence = st.text_input("Licence", help=help_of["licence"], key="import_licence", placeholder="CC BY-SA 4.0")
    replace = st.checkbox("Replace the world of that name, if there is one", key="import_replace")
    if st.button("Import", key="import_now", type="primary"):
        wanted = WorldImportRequest(name.strip(), articles, graph, form, where.strip(), licence.strip(), replace)
        if refused := _check_request(wanted):
            st.error(escape_markdown(refused))
        else:
            _start_import(wanted)
            st.rerun()


def _article_formats() -> list[str]:
    return ["auto", *ARTICLE_FORMATS, INSTANCE_FORMAT]


def _check_request(wanted: WorldImportRequest) -> str | None:
    try:
        taken = world_folder(services().settings.worlds_folder, wanted.name).exists()
    except WorldError as wrong:
        return str(wrong)
    if taken and not wanted.replace:
        return f"There is a world {wanted.name!r} already; choose another name, or have it replaced."
    if wanted.article_format == INSTANCE_FORMAT and not isinstance(wanted.articles, str):
        return "A published instance is a folder; put it on the server and name it there."
    if not wanted.articles and not wanted.graph:
        return "Name what to import: articles, a graph, or both."
    if any(job.world == wanted.name and job.state == "running" for job in get_jobs().all()):
        return f"{wanted.name!r} is being made already; wait for it, stop it, or choose another name."
    return next((missing for each in (wanted.articles, wanted.graph) if (missing := _check_source(each))), None)


def _check_source(source: str | UploadedFile | None) -> str | None:
    if isinstance(source, str) and source and not Path(source).expanduser().exists():
        return f"There is no file or folder {source} on the server."
    return None


def _start_import(wanted: WorldImportRequest) -> None:
    scratch = Path(tempfile.mkdtemp(prefix="showhow-upload-"))
    words = ["world", "import", wanted.name, f"--format={wanted.article_format}"]
    for flag, source, known in (
        ("articles", wanted.articles, ARTICLE_EXTENSIONS),
        ("graph", wanted.graph, GRAPH_EXTENSIONS),
    ):
        if source:
            words.append(f"--{flag}={_resolve_source(source, scratch / flag, known)}")
    for flag, text in (("where", wanted.article_filter), ("licence", wanted.licence)):
        if text:
            words.append(f"--{flag}={text}")
    if wanted.replace:
        words.append("--replace")
    get_jobs().start(wanted.name, "Importing", words, scratch)


def _resolve_source(source: str | UploadedFile, place: Path, known: list[str]) -> Path:
    """Where the source lies; an upload is written to the place, with the ends of its name that say what it is."""
    if isinstance(source, str):
        return Path(source).expanduser().resolve()
    ends = [end for end in Path(source.name).suffixes[-2:] if end[1:].lower() in known]
    file = place.with_name(place.name + "".join(ends).lower())
    with file.open("wb") as written:
        shutil.copyfileobj(source, written)
    return file
