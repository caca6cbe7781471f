"""Which tools a project offers to its annotators and to agents, and what is missing of them."""

from collections.abc import Sequence

import streamlit as st

from app.services import services
from app.widgets.plain_text import escape_markdown
from db.database import StoreError
from db.models import Project
from db.projects import set_tools


def choose_tools(project: Project) -> None:
    """Draw the choice of that project's tools; what is chosen is saved at once."""
    here = services().tool_registry().all_tools()
    # A tool that is gone stays chosen until somebody takes it out.
    options = [*here, *(name for name in project.tools if name not in here)]
    key = f"tools_{project.id.hex}"

    def save() -> None:
        chosen = [name for name in options if name in st.session_state[key]]
        try:
            with services().database.begin() as session:
                set_tools(session, project.name, chosen)
        except StoreError as failed:
            st.session_state["notice"] = str(failed)

    st.multiselect(
        "Tools",
        options,
        default=project.tools,
        key=key,
        on_change=save,
        format_func=lambda name: _tool_label(name, gone=name not in here),
        placeholder="All of Showhow's own",
        help="What annotators and agents are offered, in this order; nothing chosen means all of Showhow's own.",
    )
    st.caption(
        f"More tools come from the file {escape_markdown(str(services().tools_path))}: LangChain tools, functions and MCP servers. "
        "`showhow tools check` says what works."
    )
    for name in project.tools or here:
        if name in here:
            first = here[name].description.split("\n", maxsplit=1)[0]
            place = f" ({escape_markdown(here[name].origin or '')})" if here[name].origin else ""
            st.markdown(f"**{escape_markdown(name)}**{place}: {escape_markdown(first)}")
    show_missing_tools(project.tools)


def show_missing_tools(names: Sequence[str]) -> None:
    """Say of each of the named tools that cannot be called now why, and offer to try again."""
    problems = [problem for name in names if (problem := services().tool_registry().problem(name)) is not None]
    if not problems:
        return
    for problem in dict.fromkeys(problems):
        st.warning(escape_markdown(problem), icon=":material/power_off:")
    st.button("Try again", key="try_tools_again", on_click=services().tool_registry().reload_failed)


def _tool_label(name: str, *, gone: bool) -> str:
    return f"{name} (not here)" if gone else name
