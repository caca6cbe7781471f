"""A world's question goes into the queue of whoever wants to answer it, and opens on the Annotate page."""

from importlib.resources import files
from typing import Any

import streamlit as st

from app.components.plain import plain
from app.components.selected_world import SelectedWorld
from app.resources import database
from bench.datasets.plain import question_of
from db import projects, recording
from db.database import StoreError
from db.models import Project, User
from worlds.questions.question_file import QUESTIONS


def annotate_this(world: SelectedWorld, row: dict[str, Any], person: User) -> None:
    """Put the question into the world's first project, which is made if there is none, and open the draft of it."""
    record = question_of(row, world.folder / QUESTIONS, None)
    try:
        with database().begin() as session:
            over = [project for project in projects.projects(session) if project.world == world.name]
            project: Project = over[0] if over else _new_project(session, world.name)
            projects.add_questions(session, project.id, [record])
            question = projects.question_like(session, project.id, record)
            trace = recording.start_trace(session, question.id, person.id)
            place = {"you": person.name, "project": project.name, "trace": str(trace.id)}
    except StoreError as refused:
        st.error(plain(str(refused)))
    else:
        st.switch_page("annotate.py", query_params=place)


def _new_project(session: Any, world: str) -> Project:
    guidelines = files("app").joinpath("guidelines.md").read_text(encoding="utf-8")
    taken = {project.name for project in projects.projects(session)}
    name = next(name for name in (world, *(f"{world} {number}" for number in range(2, 1000))) if name not in taken)
    return projects.create_project(session, name, world, guidelines=guidelines)
