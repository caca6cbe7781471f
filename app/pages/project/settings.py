"""What a project asks for and shows: its instruction, guidelines with pictures, answers, and who sees gold answers."""

import json
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

import streamlit as st

from showhow.app.pages.worlds.create_world import require_administrator
from showhow.app.widgets.choices import choose_tools
from showhow.app.widgets.guidelines import show_guidelines
from showhow.app.widgets.page_layout import errors_shown, escape_markdown, format_sentence
from showhow.db.database import StoreError
from showhow.db.models import Project, User
from showhow.db.people.users import ADMIN
from showhow.db.questions import projects
from showhow.db.questions.answer_formats import AnswerFormat, AnswerKind
from showhow.db.questions.guideline_pictures import PICTURE_SUFFIXES, load_pictures, remove_picture, store_picture
from showhow.db.questions.projects import DEFAULT_INSTRUCTION, MAX_OVERLAP, ProjectSettings
from showhow.db.types import load_json
from showhow.runs.services import Services

ANSWER_LABELS = {
    AnswerKind.TEXT: "Free text",
    AnswerKind.JSON: "A JSON value that fits a schema",
    AnswerKind.NONE: "None: the work is done by the tools",
}
_EXAMPLE_SCHEMA = {"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]}


def show_settings(services: Services, project: Project, person: User) -> None:
    """Draw what the project asks for; every part is saved by its own button."""
    if ADMIN not in person.roles:
        st.caption("An administrator of this server can change these settings.")
        st.markdown(f"**Instruction:** {escape_markdown(project.instruction or DEFAULT_INSTRUCTION)}")
        show_guidelines(services.database, project)
        return
    identity = project.id.hex
    if f"instruction_{identity}" not in st.session_state:
        # What the person has seen: others may save other settings before they save.
        st.session_state["seen_settings"] = ProjectSettings.of(project)
    seen: ProjectSettings = st.session_state["seen_settings"]
    left, right = st.columns([1, 1], gap="large")
    with left:
        instruction = st.text_area(
            "Instruction",
            seen.instruction,
            key=f"instruction_{identity}",
            height=90,
            placeholder=DEFAULT_INSTRUCTION,
            help="What people and agents are told to do, in a sentence or two.",
        )
        overlap = st.number_input(
            "People per question",
            min_value=1,
            max_value=max(seen.overlap, MAX_OVERLAP),
            value=max(seen.overlap, 1),
            key=f"overlap_{identity}",
        )
        allows_questions = st.toggle(
            "Annotators may add questions",
            seen.allows_questions,
            key=f"allows_questions_{identity}",
            help="The Annotate page then has New question for everybody; administrators always have it.",
        )
        shows_gold = st.toggle(
            "Annotators see gold answers",
            seen.shows_gold,
            key=f"shows_gold_{identity}",
            help="Reviewers and administrators always see them. For others they are not sent at all unless this is on.",
        )
        answer_format = _choose_answer_format(seen.answer_format, identity)
    with right:
        guidelines = st.text_area("Guidelines (Markdown)", seen.guidelines, key=f"guidelines_{identity}", height=220)
        with st.expander("Preview"):
            show_guidelines(services.database, project, guidelines)
        _show_pictures(services, project)
    if st.button("Save", key="save_project", type="primary", shortcut="Ctrl+Enter"):
        with errors_shown(StoreError, ValueError):
            require_administrator(services, person)
            parsed_format = AnswerFormat.from_json(answer_format())
            written = ProjectSettings(
                instruction.strip(), parsed_format, guidelines, int(overlap), allows_questions, shows_gold
            )
            with services.database.begin() as session:
                projects.save_settings(session, project.name, written, seen=seen)
            st.session_state["seen_settings"] = written
            st.toast("Saved.", icon=":material/check:")
    if notice := st.session_state.pop("notice", None):
        st.error(format_sentence(notice))
    choose_tools(services, project)


def _show_pictures(services: Services, project: Project) -> None:
    """Draw the pictures that the guidelines can name, and the field that adds some."""
    with services.database.read() as session:
        names = list(load_pictures(session, project.id))
    # Its label stays the same: another one would be folded, although the line to copy has just come into it.
    with st.expander("Pictures", expanded=bool(names or st.session_state.get("pictures_problem"))):
        st.file_uploader(
            "Add pictures",
            list(PICTURE_SUFFIXES),
            accept_multiple_files=True,
            key="guideline_pictures",
            on_change=_store_pictures,
            args=(services, project),
        )
        if problem := st.session_state.pop("pictures_problem", None):
            st.error(format_sentence(problem))
        for name in names:
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.code(f"![{PurePosixPath(name).stem}]({quote(name)})", language=None)
                st.button(
                    f"Remove {escape_markdown(name)}",
                    key=f"remove_picture_{name}",
                    type="tertiary",
                    on_click=_remove_picture,
                    args=(services, project, name),
                )
        if not names:
            st.caption("Add a picture, then name it in the guidelines: its line appears here to be copied.")


def _store_pictures(services: Services, project: Project) -> None:
    try:
        with services.database.begin() as session:
            for upload in st.session_state["guideline_pictures"]:
                store_picture(session, project.id, upload.name, upload.getvalue())
    except StoreError as error:
        st.session_state["pictures_problem"] = str(error)


def _remove_picture(services: Services, project: Project, name: str) -> None:
    try:
        with services.database.begin() as session:
            remove_picture(session, project.id, name)
    except StoreError as error:
        st.session_state["pictures_problem"] = str(error)


def _choose_answer_format(stored: AnswerFormat, identity: str) -> Callable[[], dict[str, Any]]:
    """Draw the choice of the format of answers; the returned function reads it, and raises ValueError for bad JSON."""
    kinds = list(ANSWER_LABELS)
    kind = st.radio(
        "Answers", kinds, kinds.index(stored.kind), format_func=ANSWER_LABELS.get, key=f"answers_{identity}"
    )
    if kind != AnswerKind.JSON:
        return lambda: AnswerFormat(kind).to_json()
    written = json.dumps(stored.schema or _EXAMPLE_SCHEMA, ensure_ascii=False, indent=2)
    schema = st.text_area("JSON Schema", written, key=f"schema_{identity}", height=200)

    def read() -> dict[str, Any]:
        try:
            parsed = load_json(schema)
        except ValueError as error:
            raise ValueError(f"the schema is not JSON: {error}") from error
        if not isinstance(parsed, dict):
            raise ValueError("the schema is not a JSON object")  # noqa: TRY004 - shown as bad input like the others
        return {"kind": kind, "schema": parsed}

    return read
