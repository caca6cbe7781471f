"""The Project page: how far a project is and who works on it, its questions and answers, and what it asks for.

Files of questions and traces are imported and exported here, with what cannot be read or represented.
"""

import shlex
from importlib.resources import files

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from showhow.app.jobs import JobError
from showhow.app.pages.library.demonstrations import may_export, show_export
from showhow.app.pages.project.agreement import SHOWN_TRACE, show_agreement
from showhow.app.pages.project.answers import (
    format_minutes,
    may_see_all_answers,
    open_work,
    show_answers,
    show_progress,
)
from showhow.app.pages.project.questions import show_questions
from showhow.app.pages.project.settings import show_settings
from showhow.app.pages.worlds.create_world import require_administrator
from showhow.app.pages.worlds.import_questions import show_question_import, start_upload_import, stored_upload
from showhow.app.widgets.job_panel import show_import_job
from showhow.app.widgets.manage import NameForm, show_manage_button, show_removal_notice
from showhow.app.widgets.page_layout import (
    choose_view,
    errors_shown,
    escape_markdown,
    format_sentence,
    format_when,
    show_head,
)
from showhow.app.widgets.person import acting_services, show_members_dialog
from showhow.app.widgets.queue import current_project
from showhow.app.widgets.table import TableCell, show_table
from showhow.db.database import StoreError
from showhow.db.models import Project, User
from showhow.db.people.users import ADMIN
from showhow.db.questions import projects
from showhow.db.questions.projects import DEFAULT_INSTRUCTION
from showhow.db.questions.question_list import count_question_states
from showhow.db.removal.removal_kinds import Kind
from showhow.db.removal.renaming import rename_project
from showhow.db.review import queue
from showhow.db.traces.libraries import DemonstrationFilter
from showhow.db.traces.trace_record import TRACE_STATUSES
from showhow.db.traces.traces import count_stored_traces, count_traces
from showhow.db.unanswerable import CANNOT_BE_ANSWERED
from showhow.evaluation.value_format import format_count
from showhow.fewshot_library.formats import writable_formats
from showhow.fewshot_library.formats.format import FormatError
from showhow.fewshot_library.formats.survey_worker import TraceSurvey, survey_in_worker
from showhow.runs.services import Services
from showhow.tasks.task import dump_call
from showhow.tasks.trace_export import ExportPlan
from showhow.tasks.traces import ImportTraces, import_file
from showhow.worlds.folder import WorldError, list_world_names
from showhow.worlds.open import NO_WORLD

VIEWS = {
    "overview": "Overview",
    "questions": "Questions",
    "answers": "Answers",
    "agreement": "Agreement",
    "settings": "Settings",
}
TRACE_EXTENSIONS = ["jsonl", "json", "txt", "parquet", "gz", "eval"]
MAX_SHOWN_LINES = 20
_SURVEY_KEY = "trace_survey"
"""Session key of the last survey, with the upload that it is of."""


def show_header(services: Services, project: Project | None, person: User) -> None:
    """Draw the top of the page: the project, and what can be done with it."""
    is_administrator = ADMIN in person.roles
    note = "" if project is None else f"World: {project.world}" if project.world else "Without a world"
    with show_head(project.name if project is not None else "Project", escape_markdown(note)):
        if is_administrator and st.button("New project", key="new_project", shortcut="Alt+N", icon=":material/add:"):
            _show_creation(services, person)
        if project is not None and is_administrator:
            if st.button("Import questions", key="import_questions", shortcut="Alt+U", icon=":material/upload:"):
                show_question_import(services, person, project.name, project.world)
            if st.button("Import traces", key="import_traces", shortcut="Alt+I", icon=":material/upload_file:"):
                _show_trace_import(services, person, project.name)
        if (
            project is not None
            and may_export(services.database)
            and st.button("Export", key="export", shortcut="Alt+E", icon=":material/download:")
        ):
            _show_export(services, project)
        if (
            project is not None
            and person.roles
            and st.button("Members", key="members", shortcut="Alt+M", icon=":material/group:")
        ):
            show_members_dialog(services.database, person, project.id)
        if project is not None and is_administrator:
            _show_manage(services, project)


def _show_manage(services: Services, project: Project) -> None:
    def save(name: str, _: str) -> None:
        with services.database.begin() as session:
            st.query_params["project"] = rename_project(session, project.name, name).name

    show_manage_button(services, Kind.PROJECT, project.id, NameForm(project.name, save), parameters=["project"])


@st.dialog("New project", width="medium")
def _show_creation(services: Services, person: User) -> None:
    """Ask for the name, the world and the tools, and create the project."""
    name = st.text_input("Name", key="project_new_name").strip()
    worlds = list_world_names(services.settings.worlds_folder)
    world = st.selectbox(
        "World",
        [*worlds, NO_WORLD],
        key="project_new_world",
        format_func=lambda name: name or "No world: tools of others",
    )
    st.caption("Own documents become a world, and a project over it, by Import a world on the Worlds page.")
    registry = services.tool_registry()
    opened = None
    with errors_shown(WorldError):
        opened = services.open_world(world)
    offered = [tool for tool in registry.all_tools().values() if opened is None or tool.is_available_in(opened)]
    titles = {tool.name: tool.title for tool in offered}
    tools = st.multiselect(
        "Tools",
        titles,
        key="project_new_tools",
        format_func=titles.__getitem__,
        placeholder="All built-in tools" if world else "Choose at least one tool",
    )
    if not offered:
        st.caption(f"No tool of others is declared yet. Declare one in {escape_markdown(str(services.tools_path))}.")
    instruction = st.text_area(
        "Instruction", key="project_new_instruction", height=80, placeholder=DEFAULT_INSTRUCTION, max_chars=2_000
    )
    if st.button("Create", key="project_create", type="primary", shortcut="Ctrl+Enter"):
        guidelines = files("showhow.app").joinpath("guidelines.md").read_text(encoding="utf-8") if world else ""
        with errors_shown(StoreError):
            require_administrator(services, person)
            with services.database.begin() as session:
                projects.create_project(
                    session, name, world, guidelines=guidelines, tools=tools, instruction=instruction
                )
            st.query_params["project"] = name
            st.query_params["view"] = "settings"
            st.rerun()


def show_overview(services: Services, project: Project, person: User) -> None:
    """Draw the progress of the project, and what each person has done."""
    with services.database.read() as session:
        progress = queue.measure_progress(session, project.id, project.id)
        states = count_question_states(session, project.id)
        people = queue.list_annotators(session, project.id)
    if not progress.total:
        how = "Import a file of them" if ADMIN in person.roles else "An administrator can import a file of them"
        st.info(f"This project has no questions yet. {how}, or make a project of a world's questions on Worlds.")
        if ADMIN in person.roles and st.button(
            "Import questions", key="empty_import", type="primary", icon=":material/upload:"
        ):
            show_question_import(services, person, project.name, project.world)
        return
    share = progress.done / progress.total
    st.progress(
        share, f"{progress.done:,} of {format_count(progress.total, 'question')} {queue.describe_done(project)}"
    )
    with st.container(horizontal=True, key="project_figures"):
        for state, count in states.items():
            st.metric(state.capitalize(), f"{count:,}", width="content")
    if not people:
        st.info("Nobody has worked on this project yet. The Annotate page gives out its questions.")
        if st.button("Annotate", key="annotate", type="primary", icon=":material/edit_note:"):
            st.switch_page("annotate/page.py", query_params={"you": person.name, "project": project.name})
        return
    is_open = may_see_all_answers(services.database)
    columns = ["annotator", "done", "returned", "drafts", "median time (min.)", "last seen"]
    counts_unanswerable = any(entry.unanswerable for entry in people)
    if counts_unanswerable:
        columns.insert(2, CANNOT_BE_ANSWERED)
    rows = [
        [
            TableCell(entry.name, go=entry.name if is_open or entry.name == person.name else "", whole=True),
            TableCell(f"{entry.completed:,}", number=True),
            *([TableCell(f"{entry.unanswerable:,}", number=True)] if counts_unanswerable else []),
            TableCell(f"{entry.returned:,}", number=True),
            TableCell(f"{entry.drafts:,}", number=True),
            TableCell("–" if entry.median_seconds is None else format_minutes(entry.median_seconds), number=True),
            TableCell(format_when(entry.last_seen), whole=True),
        ]
        for entry in people
    ]
    show_table(columns, rows, key="annotators", label="What each person has done", go=open_work)
    show_progress(services.database, project)


@st.dialog("Import traces", width="medium")
def _show_trace_import(services: Services, person: User, project_name: str) -> None:
    """Ask for a file, show what it holds and what cannot be read, and add its traces."""
    upload = st.file_uploader("Traces", TRACE_EXTENSIONS, key="traces_file")
    if upload is None:
        st.caption("A file of any format that Showhow reads; `showhow traces import` reads the same.")
        return
    try:
        survey = _survey_traces(services, upload)
    except (FormatError, StoreError, WorldError) as error:
        st.error(format_sentence(str(error)))
        return
    count = _show_trace_survey(services, survey)
    if st.button(f"Import {format_count(count, 'trace')}", key="traces_import_now", type="primary", disabled=not count):
        with errors_shown(StoreError, WorldError, JobError):
            require_administrator(services, person)
            start_upload_import(
                services,
                project_name,
                upload,
                TRACE_EXTENSIONS,
                lambda file: dump_call(import_file, ImportTraces(file=file)),
            )
            st.rerun()


def _survey_traces(services: Services, upload: UploadedFile) -> TraceSurvey:
    """What the upload holds, read once; FormatError names it as the person knows it."""
    cached = st.session_state.get(_SURVEY_KEY)
    if cached is None or cached[0] != upload.file_id:
        with st.spinner("Reading the traces …"), stored_upload(services, upload, TRACE_EXTENSIONS) as file:
            try:
                cached = st.session_state[_SURVEY_KEY] = (upload.file_id, survey_in_worker(file))
            except FormatError as error:
                raise FormatError(str(error).replace(str(file), upload.name)) from error
    survey: TraceSurvey = cached[1]
    return survey


def _show_trace_survey(services: Services, survey: TraceSurvey) -> int:
    """Draw what an import of the file would do, and return the number of new traces."""
    with services.database.read() as session:
        stored = count_stored_traces(session, survey.ids)
    count = len(survey.ids) - stored
    st.markdown(f"{count:,} new, {stored + survey.repeated:,} already stored, {survey.refused:,} refused")
    details = [f"refused: {refusal.place}: {refusal.reason}" for refusal in survey.places]
    details += [f"note: {remark.place}: {remark.text}" for remark in survey.remarks]
    st.markdown("\n".join(f"- {escape_markdown(line)}" for line in details[:MAX_SHOWN_LINES]))
    if len(details) > MAX_SHOWN_LINES:
        st.caption(f"and {len(details) - MAX_SHOWN_LINES:,} more")
    return count


@st.dialog("Export traces", width="medium")
def _show_export(services: Services, project: Project) -> None:
    """Ask for the status and the format, write the file, list what it cannot represent, and offer the download."""
    with services.database.read() as session:
        counts = count_traces(session, project.id)
    choices: dict[str, tuple[str, ...]] = {status: (status,) for status in TRACE_STATUSES if counts.get(status)}
    if not choices:
        st.info("This project has no traces yet.")
        return
    if all(counts.get(status) for status in projects.COMPLETED_STATUSES):
        choices["submitted and approved"] = projects.COMPLETED_STATUSES
    sizes = {name: sum(counts[status] for status in statuses) for name, statuses in choices.items()}
    index = list(choices).index("approved") if "approved" in choices else 0
    name = st.selectbox(
        "Traces", list(choices), index, format_func=lambda name: f"{name} ({sizes[name]:,})", key="export_status"
    )
    show_export(
        services,
        sizes[name],
        ExportPlan(writable_formats()[0], DemonstrationFilter(project=project.name), statuses=choices[name]),
        project.name,
        f"showhow traces export FILE --project {shlex.quote(project.name)} --status {','.join(choices[name])}",
    )


services, person = acting_services()
show_removal_notice()
project = current_project(services.database)
show_header(services, project, person)
if project is None:
    st.info("There is no project yet. `showhow setup` makes one with a small world, and New project an empty one.")
else:
    show_import_job(services.database)
    sees_all = may_see_all_answers(services.database)
    view = choose_view({name: title for name, title in VIEWS.items() if sees_all or name != "agreement"})
    if view == "settings":
        show_settings(services, project, person)
    elif view == "questions":
        show_questions(services, project, person)
    elif view == "answers":
        show_answers(services, project)
    elif view == "agreement":
        show_agreement(services, project)
    else:
        show_overview(services, project, person)
for kind in ("question", "trace"):
    if (chosen_id := st.session_state.pop(f"open_{kind}", None)) is not None and project is not None:
        parameters = {"you": person.name, "project": project.name, kind: chosen_id}
        st.switch_page("annotate/page.py", query_params=parameters)
if (chosen_id := st.session_state.pop(SHOWN_TRACE, None)) is not None and project is not None:
    st.switch_page("review/page.py", query_params={"you": person.name, "project": project.name, "trace": chosen_id})
