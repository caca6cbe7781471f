"""The guidelines of a project with their pictures."""

import streamlit as st

from showhow.app.guideline_text import render_guidelines
from showhow.db.database import Database
from showhow.db.models import Project
from showhow.db.questions.guideline_pictures import load_pictures


def show_guidelines(database: Database, project: Project, text: str | None = None) -> None:
    """Draw the guidelines of the project, or a text that may become them."""
    with database.read() as session:
        pictures = load_pictures(session, project.id)
    written = render_guidelines(project.guidelines if text is None else text, pictures)
    with st.container(key="guideline_text"):
        st.html(written or "This project has no guidelines.")
