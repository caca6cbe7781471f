"""The dialog with which an administrator imports a world, and with it a project, from uploads or the server's files."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from showhow.app.jobs import JobError, create_upload_folder
from showhow.app.pages.worlds.create_world import (
    list_import_sources,
    require_administrator,
    require_free_name,
    resolve_import_source,
    write_upload,
)
from showhow.app.pages.worlds.import_questions import EXTENSIONS as QUESTION_EXTENSIONS
from showhow.app.pages.worlds.import_questions import (
    choose_columns,
    format_columns,
    show_refusal,
    show_survey,
    survey_upload,
)
from showhow.app.widgets.job_panel import start_world_job
from showhow.app.widgets.option_form import describe_options
from showhow.app.widgets.page_layout import errors_shown, escape_markdown
from showhow.db.database import StoreError
from showhow.db.models import User
from showhow.db.questions.projects import find_project
from showhow.evaluation.datasets.reader import AUTO
from showhow.runs.services import Services
from showhow.settings import Settings
from showhow.tasks.task import dump_call
from showhow.tasks.worlds import INSTANCE_FORMAT, ImportWorld, import_
from showhow.worlds.article_files import ARTICLE_FORMATS
from showhow.worlds.documents import DOCUMENT_SUFFIXES, is_document
from showhow.worlds.folder import WorldError

ARTICLE_EXTENSIONS = ["jsonl", "ndjson", "json", "gz", "zip", *(suffix[1:] for suffix in DOCUMENT_SUFFIXES)]
GRAPH_EXTENSIONS = ["ttl", "nt", "gz"]
UPLOAD, FOLDER, SERVER_FILES = "Files", "A folder", "Files on the server"


@dataclass(frozen=True, slots=True)
class ImportSources:
    """What the form offers as files: uploads, a path within the import folder, or None."""

    articles: str | Sequence[UploadedFile] | None
    graph: str | UploadedFile | None
    questions: UploadedFile | None


@st.dialog("Import a world", width="large")
def show_import_dialog(services: Services, person: User) -> None:
    """Ask for the name and the sources, and start the import; StoreError unless the person is an administrator."""
    help_of = describe_options(ImportWorld)
    name = st.text_input("Name", key="import_name", placeholder="mine", help="Letters, digits, - and _.")
    articles, graph = _show_source_fields(help_of, services.settings.import_folder)
    caption = (
        "Articles, a graph, or both. Articles are JSON Lines, or documents: .txt, .md, .html, .pdf and .docx, several "
        "of them, a folder with all that is in it, or a zip archive."
    )
    if services.settings.import_folder is not None:
        caption += " The folder of a published PhantomWiki instance is chosen among the files on the server."
    st.caption(caption)
    project, questions, columns = _show_project_fields(services)
    form = st.selectbox("Format of the articles", _article_formats(), help=help_of["form"], key="import_form")
    with st.expander("More options"):
        where = st.text_input("Only articles with", help=help_of["where"], key="import_where", placeholder="side=text")
        licence = st.text_input("Licence", help=help_of["licence"], key="import_licence", placeholder="CC BY-SA 4.0")
    replace = st.checkbox("Replace an existing world of that name", key="import_replace")
    if st.button("Import", key="import_now", type="primary"):
        sources = ImportSources(articles, graph, questions)
        request = ImportWorld(
            name=name.strip(),
            form=form,
            where=tuple(filter(None, [where.strip()])),
            licence=licence.strip() or None,
            project=project or None,
            column=format_columns(columns),
            replace=replace,
        )
        with errors_shown(StoreError, WorldError, JobError):
            require_administrator(services, person)
            _check_request(services, request, sources)
            _start_import(services, request, sources)
            st.rerun()


def _show_project_fields(services: Services) -> tuple[str, UploadedFile | None, dict[str, str]]:
    """Draw the fields of a project over the world: its name, its questions with a preview, and their columns."""
    project = st.text_input(
        "Project", key="import_project", placeholder="none", help="Also make a project of this name over the world."
    ).strip()
    if not project:
        return "", None, {}
    questions = st.file_uploader("Questions", QUESTION_EXTENSIONS, key="import_questions_file")
    if questions is None:
        st.caption("CSV, Excel, Parquet or JSON. Without a file the project is empty; its page takes questions later.")
        return project, None, {}
    columns = choose_columns(services, questions)
    survey = survey_upload(services, questions, AUTO, "en", columns)
    if isinstance(survey, str):
        show_refusal(services, questions, columns, survey)
    else:
        show_survey(survey)
    return project, questions, columns


def _show_source_fields(
    help_of: Mapping[str, str], import_folder: Path | None
) -> tuple[str | list[UploadedFile] | None, str | UploadedFile | None]:
    """Draw the fields of the articles and the graph: uploads, or files of the import folder if there is one."""
    places = (UPLOAD, FOLDER) if import_folder is None else (UPLOAD, FOLDER, SERVER_FILES)
    origin = st.segmented_control("From", places, default=UPLOAD, key="import_place", required=True)
    if import_folder is not None and origin == SERVER_FILES:
        st.caption(escape_markdown(f"From the folder {import_folder} of the server."))
        articles = list_import_sources(import_folder, ARTICLE_EXTENSIONS)
        graphs = [name for name in list_import_sources(import_folder, GRAPH_EXTENSIONS) if not name.endswith("/")]
        return (
            st.selectbox("Articles", articles, index=None, help=help_of["articles"], key="import_articles"),
            st.selectbox("Graph", graphs, index=None, help=help_of["graph"], key="import_graph"),
        )
    return (
        st.file_uploader(
            "Articles",
            ARTICLE_EXTENSIONS,
            accept_multiple_files="directory" if origin == FOLDER else True,
            help=help_of["articles"],
            key="import_articles_file",
        ),
        st.file_uploader("Graph", GRAPH_EXTENSIONS, help=help_of["graph"], key="import_graph_file"),
    )


def _article_formats() -> list[str]:
    return ["auto", *ARTICLE_FORMATS, INSTANCE_FORMAT]


def _check_request(services: Services, request: ImportWorld, sources: ImportSources) -> None:
    """Raise a WorldError if the request is incomplete or conflicts with an existing world or project."""
    if not request.name:
        raise WorldError("Name the world.")
    require_free_name(services.settings.worlds_folder, request.name, replace=request.replace)
    if request.project:
        with services.database.read() as session:
            if find_project(session, request.project) is not None:
                raise WorldError(f"There is already a project {request.project!r}. Choose another name.")
    if request.form == INSTANCE_FORMAT and not isinstance(sources.articles, str):
        raise WorldError(
            "A published instance is a folder; choose it among the files on the server. The server's administrator "
            "puts it into the folder that SHOWHOW_IMPORT_FOLDER names."
        )
    if not sources.articles and not sources.graph:
        raise WorldError("Choose what to import: articles, a graph, or both.")


def _start_import(services: Services, request: ImportWorld, sources: ImportSources) -> None:
    settings = services.settings
    try:
        scratch = create_upload_folder(settings.uploads_folder, request.name)
    except OSError as error:
        raise WorldError(f"The upload cannot be stored in {settings.uploads_folder} ({error.strerror}).") from error
    try:
        files: dict[str, Any] = {}
        if sources.articles:
            files["articles"] = _resolve_articles(settings, sources.articles, scratch.path)
        if sources.graph:
            files["graph"] = _resolve_source(settings, sources.graph, scratch.path / "graph", GRAPH_EXTENSIONS)
        if sources.questions is not None:
            files["questions"] = write_upload(sources.questions, scratch.path / "questions", QUESTION_EXTENSIONS)
        call = dump_call(import_, dataclasses.replace(request, **files))
        start_world_job(services.database, request.name, "Importing", call, scratch)
    except (JobError, StoreError, WorldError):
        scratch.remove()
        raise


def _resolve_articles(settings: Settings, articles: str | Sequence[UploadedFile], folder: Path) -> Path:
    """The path of the articles; several uploads, and documents, whose names are titles, are written to a folder."""
    if isinstance(articles, str):
        return _resolve_source(settings, articles, folder / "articles", ARTICLE_EXTENSIONS)
    first, *others = articles
    if not others and not is_document(first.name):
        return _resolve_source(settings, first, folder / "articles", ARTICLE_EXTENSIONS)
    for number, upload in enumerate(articles):
        name = PurePosixPath(upload.name.replace("\\", "/")).stem.lstrip(".") or "document"
        # A folder for each document, since two of them may have one name, which is a title.
        place = folder / "articles" / (f"{number:06}" if is_document(upload.name) else "")
        place.mkdir(parents=True, exist_ok=True)
        write_upload(upload, place / (name if is_document(upload.name) else f"{number:06}"), ARTICLE_EXTENSIONS)
    return folder / "articles"


def _resolve_source(settings: Settings, source: str | UploadedFile, target: Path, extensions: list[str]) -> Path:
    """The path of the source; an upload is written to `target`, with the extensions that identify its format."""
    if isinstance(source, str):
        if settings.import_folder is None:
            raise WorldError("This server offers no files to import; upload them.")
        return resolve_import_source(settings.import_folder, source)
    return write_upload(source, target, extensions)
