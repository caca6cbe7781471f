"""Tools: what each one is worth, as people and models used it."""

from datetime import UTC, date, datetime, time
from json import dumps

import streamlit as st

from app.components.choose_tools import choose_tools
from app.components.chrome import keys_door
from app.components.plain import plain
from app.components.queue import choose_project, current_project
from app.components.tool_worth import show_tool, show_tools, show_worst
from app.components.views import choose_view
from app.components.who import choose_who, who
from app.resources import database
from app.tool_reports import as_csv, as_json, recent_report
from db.libraries import MODELS, PEOPLE
from db.models import User
from db.projects import projects
from db.tool_calls import Scope
from db.tool_report import ToolReport

KEYS = {"Alt+1, Alt+2": "Choose the view", "?": "This sheet"}
VIEWS = {"worth": "What they are worth", "offered": "Offered"}
EMPTY = (
    "No tool has been called yet. As soon as a step is recorded on the Annotate page, or a model answers a question, "
    "its tool appears here: how often it was called and failed, how long it took, and how its observations were rated."
)


def masthead(person: User) -> None:
    """The top of the page."""
    with st.container(key="masthead"), st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption("Rate observations while you annotate: the worst ones show what to improve.")
        st.space("stretch")
        keys_door(KEYS)
        choose_who(person)


def ask_scope() -> Scope:
    """A row of filters, kept in the address."""
    with database().read() as session:
        names = [project.name for project in projects(session)]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="filters"):
        project = _choose("Project", "of_project", names, 260)
        by = _choose("By", "by", [PEOPLE, MODELS], 150)
        since: date | None = st.date_input("Since (UTC)", value=None, key="since", width=160, bind="query-params")
    day = datetime.combine(since, time(), UTC) if since else None
    return Scope(project=project, by=by, since=day)


def _choose(label: str, name: str, options: list[str], width: int) -> str | None:
    return st.selectbox(label, options, index=None, key=name, placeholder="all", width=width, bind="query-params")


def show_report(scope: Scope) -> None:
    """The table, the chosen tool, and the observations that were rated worst."""
    with st.spinner("Counting …"):
        report = recent_report(scope)
    if not report.tools:
        nothing = scope == Scope()
        st.info(EMPTY if nothing else "No call fits these filters; take some of them away.")
        return
    show_tools(report.tools)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        name = _choose("One tool in detail", "tool", [each.tool for each in report.tools], 260)
        _take_along(report, scope)
    chosen = next((each for each in report.tools if each.tool == name), None)
    if chosen is not None:
        show_tool(chosen)
        report = recent_report(Scope(project=scope.project, by=scope.by, since=scope.since, tool=name))
    st.subheader("Rated worst", anchor=False)
    show_worst(report.worst)


def _take_along(report: ToolReport, scope: Scope) -> None:
    told = dumps(as_json(report, scope), ensure_ascii=False, indent=1)
    st.download_button("All as CSV", as_csv(report), "tools.csv", "text/csv", key="csv", type="tertiary")
    st.download_button("All as JSON", told, "tools.json", "application/json", key="json", type="tertiary")


def show_offer() -> None:
    """Which tools the chosen project offers."""
    project = current_project()
    if project is None:
        st.info("There is no project yet; `showhow setup` prepares one.")
        return
    choose_project()
    if notice := st.session_state.pop("notice", None):
        st.error(notice)
    st.caption(f"What people and models may use for the questions of {plain(project.name)}.")
    choose_tools(project)


person = who()
masthead(person)
if choose_view("Tools", VIEWS) == "offered":
    show_offer()
else:
    show_report(ask_scope())
if (rated := st.session_state.pop("open_step", None)) is not None:
    st.session_state.pop("step_in_focus", None)
    place = {"project": rated.project, "trace": str(rated.trace_id), "step": str(rated.position)}
    st.switch_page("annotate.py", query_params={"you": person.name, **place})
