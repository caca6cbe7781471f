"""The dialog with which an administrator imports a file of questions into a project.

It shows the format, the counts, what cannot be read and the first questions before anything is stored.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from showhow.app.jobs import JobError, create_upload_folder
from showhow.app.pages.worlds.create_world import require_administrator, write_upload
from showhow.app.widgets.job_panel import start_import_job
from showhow.app.widgets.option_form import describe_options
from showhow.app.widgets.page_layout import errors_shown, format_sentence
from showhow.app.widgets.table import TableCell, show_table
from showhow.db.database import StoreError
from showhow.db.models import User
from showhow.db.unanswerable import CANNOT_BE_ANSWERED
from showhow.evaluation.datasets import QUESTION_FORMATS
from showhow.evaluation.datasets.reader import AUTO, QuestionSurvey
from showhow.evaluation.datasets.record import COLUMN_MEANINGS, TEXT_NAMES
from showhow.evaluation.datasets.survey_worker import columns_in_worker, survey_in_worker
from showhow.evaluation.value_format import format_count
from showhow.runs.services import Services
from showhow.tasks.questions import ImportQuestions, import_file
from showhow.tasks.task import dump_call
from showhow.worlds.folder import ScratchFolder, WorldError

EXTENSIONS = ["jsonl", "ndjson", "json", "csv", "tsv", "txt", "xlsx", "parquet", "gz"]
MAX_SHOWN_REASONS = 20
MAX_SHOWN_ANSWERS = 5
_COLUMNS_KEY = "question_columns"
_SURVEY_KEY = "question_survey"
"""Session key of the last survey, stored with the upload and the options that it was made with."""


@st.dialog("Import questions", width="large")
def show_question_import(services: Services, person: User, project_name: str, world: str) -> None:
    """Ask for the file and its format, show what it contains, and add its questions to a project over the world."""
    help_of = describe_options(ImportQuestions)
    project = st.text_input("Project", project_name, key="questions_project", help="A new one is created.")
    upload = st.file_uploader("Questions", EXTENSIONS, key="questions_file")
    format_column, language_column, split_column = st.columns([2, 1, 1])
    with format_column:
        names = [AUTO, *QUESTION_FORMATS]
        form = st.selectbox("Format", names, format_func=_format_label, key="questions_format", help=help_of["form"])
    with language_column:
        language = st.text_input("Language", "en", key="questions_language", help=help_of["language"]).strip() or "en"
    with split_column:
        split = st.text_input("Split", key="questions_split", help=help_of["split"]).strip()
    if upload is None:
        st.caption("JSON, JSON Lines, CSV, Excel or Parquet; texts also gzipped.")
        return
    columns = choose_columns(services, upload)
    survey = survey_upload(services, upload, form, language, columns)
    if isinstance(survey, str):
        show_refusal(services, upload, columns, survey)
        return
    show_survey(survey)
    is_allowed = survey.problem is None
    if survey.problem is not None:
        st.warning(format_sentence(f"{upload.name}: {survey.problem}. Under Columns, choose the one with the answers"))
        is_allowed = st.checkbox("Import them without gold answers", key="questions_without_gold")
    label = f"Import {format_count(survey.questions, 'question')}"
    if st.button(label, key="questions_import_now", type="primary", disabled=not is_allowed):
        make_request = partial(
            ImportQuestions,
            project=project.strip(),
            world=world,
            form=form,
            split=split or None,
            language=language,
            column=format_columns(columns),
            without_gold=survey.problem is not None,
        )
        with errors_shown(StoreError, WorldError, JobError):
            require_administrator(services, person)
            start_upload_import(
                services,
                project.strip(),
                upload,
                EXTENSIONS,
                lambda file: dump_call(import_file, make_request(file=file)),
            )
            st.rerun()


def choose_columns(services: Services, upload: UploadedFile) -> dict[str, str]:
    """Draw the choice of what the columns of the upload mean; returns the meaning of each chosen column."""
    names = _list_columns(services, upload)
    chosen: dict[str, str] = {}
    if not names:
        return chosen
    is_clear = any(name.lower() in TEXT_NAMES for name in names)
    with st.expander("Columns", expanded=not is_clear), st.container(horizontal=True):
        for meaning in COLUMN_MEANINGS:
            name = st.selectbox(
                meaning.capitalize(),
                names,
                index=None,
                key=f"questions_column_{meaning}",
                placeholder="by its name",
                width=170,
            )
            if name is not None:
                chosen[name] = meaning
    return chosen


def format_columns(columns: Mapping[str, str]) -> tuple[str, ...]:
    """The chosen columns as MEANING=COLUMN."""
    return tuple(f"{meaning}={name}" for name, meaning in columns.items())


def show_refusal(services: Services, upload: UploadedFile, columns: Mapping[str, str], reason: str) -> None:
    """Say which column has to be chosen, or why the upload cannot be read."""
    names = _list_columns(services, upload)
    if names and "question" not in columns.values() and not any(name.lower() in TEXT_NAMES for name in names):
        st.info(f"No column is called {' or '.join(TEXT_NAMES[:2])}. Choose under Columns which one has the questions.")
    else:
        st.error(format_sentence(reason))


def _list_columns(services: Services, upload: UploadedFile) -> list[str]:
    cached = st.session_state.get(_COLUMNS_KEY)
    if cached is None or cached[0] != upload.file_id:
        with stored_upload(services, upload, EXTENSIONS) as file:
            cached = st.session_state[_COLUMNS_KEY] = (upload.file_id, columns_in_worker(file))
    names: list[str] = cached[1]
    return names


def start_upload_import(
    services: Services, project: str, upload: UploadedFile, extensions: list[str], make_call: Callable[[Path], str]
) -> None:
    """Import the upload by the call for its file; JobError if another import into the project is running."""
    scratch = _create_upload_folder(services)
    try:
        file = write_upload(upload, scratch.path / "upload", extensions)
        start_import_job(services.database, project, make_call(file), scratch)
    except (JobError, StoreError, WorldError):
        scratch.remove()
        raise


def _format_label(name: str) -> str:
    return "Detected from the file" if name == AUTO else f"{name}: {QUESTION_FORMATS[name].title}"


@contextmanager
def stored_upload(services: Services, upload: UploadedFile, extensions: list[str]) -> Iterator[Path]:
    """The upload as a file, which is removed at the end."""
    scratch = _create_upload_folder(services)
    try:
        yield write_upload(upload, scratch.path / "upload", extensions)
    finally:
        scratch.remove()


def _create_upload_folder(services: Services) -> ScratchFolder:
    uploads = services.settings.uploads_folder
    try:
        return create_upload_folder(uploads, "upload")
    except OSError as error:
        raise WorldError(f"The upload cannot be stored in {uploads} ({error.strerror}).") from error


def survey_upload(
    services: Services, upload: UploadedFile, form: str, language: str, columns: Mapping[str, str]
) -> QuestionSurvey | str:
    """What an import would store, or why it would store nothing; made again only after a change of the form."""
    survey_key = (upload.file_id, form, language, tuple(columns.items()))
    cached = st.session_state.get(_SURVEY_KEY)
    if cached is None or cached[0] != survey_key:
        survey: QuestionSurvey | str
        try:
            with st.spinner("Reading the questions …"), stored_upload(services, upload, EXTENSIONS) as file:
                survey = _survey_file(file, upload.name, form, language, columns)
        except WorldError as error:
            survey = str(error)
        cached = st.session_state[_SURVEY_KEY] = (survey_key, survey)
    result: QuestionSurvey | str = cached[1]
    return result


def _survey_file(file: Path, name: str, form: str, language: str, columns: Mapping[str, str]) -> QuestionSurvey | str:
    try:
        return survey_in_worker(file, form, language, columns)
    except WorldError as error:
        # The person knows the file by the name that it was uploaded with.
        return str(error).replace(str(file), name)


def show_survey(survey: QuestionSurvey) -> None:
    """Draw the counts, what cannot be read, and the first questions."""
    unread = sum(reason.count for reason in survey.unread.values())
    figures = {
        "format": survey.format_name,
        "questions": f"{survey.questions:,}",
        "without gold": f"{survey.without_gold:,}",
        **({CANNOT_BE_ANSWERED: f"{survey.unanswerable:,}"} if survey.unanswerable else {}),
        "several answers": f"{survey.with_several:,}",
        "not read": f"{unread:,}",
    }
    with st.container(horizontal=True, key="survey_figures"):
        for name, value in figures.items():
            st.metric(name, value, width="content")
    if survey.with_several:
        st.caption("A correct answer names all gold answers of a question.")
    if survey.repeated_ids:
        st.caption(format_sentence(survey.repetition))
    if survey.doubtful:
        st.caption(format_sentence(survey.doubt))
    if survey.with_bare_ids:
        st.caption(
            f"Gold answers of {format_count(survey.with_bare_ids, 'question')} are ids, to which the import adds the "
            "names that the world's graph has."
        )
    if survey.unread:
        _show_unread(survey)
    st.markdown(f"**The first {format_count(len(survey.preview), 'question')}**")
    rows = [
        [
            TableCell(question.text),
            TableCell(question.kind or "", whole=True),
            TableCell(_format_golds([str(gold["text"]) for gold in question.gold_answers])),
        ]
        for question in survey.preview
    ]
    show_table(("question", "kind", "gold answers"), rows, key="questions_preview", label="The first questions")


def _show_unread(survey: QuestionSurvey) -> None:
    st.markdown("**Records that cannot be read**")
    shown = survey.unread_reasons[:MAX_SHOWN_REASONS]
    rows = [
        [TableCell(f"{reason.count:,}", number=True), TableCell(reason.first.reason), TableCell(reason.first.place)]
        for reason in shown
    ]
    show_table(("records", "reason", "first"), rows, key="questions_unread", label="Records that cannot be read")
    if len(survey.unread) > len(shown):
        st.caption(f"and {len(survey.unread) - len(shown):,} more reasons")


def _format_golds(texts: list[str]) -> str:
    hidden = len(texts) - MAX_SHOWN_ANSWERS
    return "; ".join(texts[:MAX_SHOWN_ANSWERS]) + (f" and {hidden:,} more" if hidden > 0 else "")
