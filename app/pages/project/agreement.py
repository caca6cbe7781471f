"""How far people agree: figures by measure, pair of people, person, kind and week, and the questions of each figure."""

from collections.abc import Sequence

import streamlit as st

from showhow.app.widgets.page_layout import browser_zone, escape_markdown
from showhow.app.widgets.table import TableCell, TableRows, shorten, show_table, without_empty_columns
from showhow.app.widgets.url_state import clear_url_parameters, get_url_parameter, list_start
from showhow.db.database import Database
from showhow.db.models import Project
from showhow.db.review.shared_work import describe_shared_work
from showhow.evaluation.agreement import MeasuredAgreement, read_alpha
from showhow.evaluation.comparison.project_agreement import (
    FIGURE_GROUPINGS,
    GROUPINGS,
    MEASURES,
    NO_VARIATION,
    NOT_DEFINED,
    PAIR,
    PERSON,
    AgreementUnit,
    GroupAgreement,
    Units,
    format_figure,
    group_units,
    load_shared_work,
    measure_groups,
    measure_units,
    sort_by_distance,
)
from showhow.evaluation.value_format import format_count
from showhow.runs.services import Services

PAGE_SIZE = 25
MAX_PERSON_COLUMNS = 4
"""People whose values have a column each; those of more stand in one column."""
ALL = "all"
"""In the link, in place of a grouping: all questions of a measure."""
SHOWN_TRACE = "review_trace"
"""Session key of the trace that is opened on the Review page."""


@st.cache_resource(max_entries=8, ttl=600, show_spinner="Comparing what people did …")
def _load_units(_database: Database, project: str, state: str, _project: Project) -> Units:  # noqa: ARG001 - the key
    return load_shared_work(_database, _project)


@st.cache_data(max_entries=64, ttl=600, show_spinner="Measuring the agreement …")
def _measure(
    _units: Units,
    project: str,  # noqa: ARG001 - with the state the key of the units
    state: str,  # noqa: ARG001
    measure: str,
    grouping: str,
    zone: str,  # noqa: ARG001 - weeks begin in it
) -> list[GroupAgreement]:
    if grouping != ALL:
        return measure_groups(measure, _units[measure], grouping, browser_zone())
    measured = measure_units(measure, _units[measure])
    return [] if measured is None else [measured]


def show_agreement(services: Services, project: Project) -> None:
    """Draw the figures, or the questions of the figure in the link; only reviewers and administrators come here."""
    database = services.database
    with database.read() as session:
        state = describe_shared_work(session, project.id)
    units = _load_units(database, str(project.id), state, project)
    if not units:
        st.info(
            "Agreement is measured on questions that two people or more have answered: set People per question to 2 "
            "or more under Settings."
        )
        return
    measure = get_url_parameter("measure")
    measure = measure if measure in units else next(iter(units))
    grouping = get_url_parameter("by")
    if grouping in (ALL, *GROUPINGS):
        _show_questions(units[measure], measure, grouping, get_url_parameter("group"))
        return
    key = str(project.id), state
    figures = [(name, entry) for name in units for entry in _measure(units, *key, name, ALL, "")]
    columns = ["measure", "distance", *_FIGURES, "AC1"]
    rows = [
        [
            TableCell(MEASURES[name].title, go=f"{name}:"),
            TableCell(MEASURES[name].distance),
            *_figure_cells(entry, f"{name}:{ALL}:"),
            _number(entry.ac1),
        ]
        for name, entry in figures
    ]
    show_table(columns, rows, key="agreement_measures", label="Agreement by measure", go=_open)
    st.caption(
        "Alpha is Krippendorff's, with its 95 % interval over questions: from 0.80 on it is reliable, from 0.667 on "
        "tentative, and 0 is chance. A measure leads to its parts below, an alpha to its questions."
    )
    st.header(MEASURES[measure].title, anchor=False)
    _show_people(next(entry.agreement for name, entry in figures if name == measure), measure)
    for grouping in FIGURE_GROUPINGS:
        _show_groups(_measure(units, *key, measure, grouping, str(browser_zone())), measure, grouping)


_FIGURES = ("alpha", "95 %", "reading", "same", "units", "pairs", "people")


def _figure_cells(entry: GroupAgreement, target: str) -> list[TableCell]:
    measured = entry.agreement
    ends = measured.interval
    interval = "–" if ends is None else f"{format_figure(ends.low, 2)} to {format_figure(ends.high, 2)}"
    alpha, reading, hint = NOT_DEFINED, "no variation", f"{NOT_DEFINED}: {NO_VARIATION}"
    if measured.alpha is not None:
        alpha, reading, hint = format_figure(measured.alpha), read_alpha(measured.alpha), ""
    return [
        TableCell(alpha, go=target, number=True, hint=hint),
        TableCell(interval, number=True),
        TableCell(reading, whole=True),
        TableCell(f"{measured.same:.0%}", number=True),
        TableCell(f"{measured.units:,}", number=True),
        TableCell(f"{measured.pairs:,}", number=True),
        TableCell(f"{measured.people:,}", number=True),
    ]


def _number(value: float | None, target: str = "") -> TableCell:
    return TableCell("–" if value is None else format_figure(value), go=target, number=True)


def _show_groups(groups: Sequence[GroupAgreement], measure: str, grouping: str) -> None:
    """Draw the figures of the groups, and kappa between two people."""
    further = ["AC1", *(["kappa"] if grouping == PAIR else [])]
    rows = [
        [
            TableCell(entry.group, whole=True),
            *_figure_cells(entry, f"{measure}:{grouping}:{entry.group}"),
            _number(entry.ac1),
            *([_number(entry.kappa)] if grouping == PAIR else []),
        ]
        for entry in groups
    ]
    columns, kept = without_empty_columns([GROUPINGS[grouping], *_FIGURES, *further], rows)
    _show_part(f"By {GROUPINGS[grouping]}", columns, kept, grouping)


def _show_people(agreement: MeasuredAgreement, measure: str) -> None:
    rows = [
        [TableCell(name, whole=True), _number(mean, f"{measure}:{PERSON}:{name}")]
        for name, mean in agreement.by_person.items()
    ]
    _show_part("By person", ["person", "mean distance to the others"], rows, PERSON)


def _show_part(title: str, columns: Sequence[str], rows: TableRows, grouping: str) -> None:
    st.subheader(title, anchor=False)
    show_table(columns, rows, key=f"agreement_{grouping}", label=title, go=_open)


def _open(target: str) -> None:
    """Open a measure, or the questions of one of its figures: MEASURE:GROUPING:GROUP."""
    measure, _, rest = target.partition(":")
    grouping, _, group = rest.partition(":")
    clear_url_parameters("by", "group", "from")
    st.query_params.update({"measure": measure} | ({"by": grouping, "group": group} if grouping else {}))


def _show_questions(units: Sequence[AgreementUnit], measure: str, grouping: str, group: str) -> None:
    """Draw the units of a group with the value of each person, the largest distances first."""
    chosen = units if grouping == ALL else group_units(units, grouping, browser_zone()).get(group, ())
    listed = sort_by_distance(measure, chosen)
    st.button("Back to the figures", key="agreement_back", icon=":material/arrow_back:", on_click=_go_back)
    name = "" if grouping == ALL else f", {GROUPINGS[grouping]}: {group}"
    st.header(f"{MEASURES[measure].title}{escape_markdown(name)}", anchor=False)
    if not listed:
        st.info("No question has values of two people here any more.")
        return
    start = min(list_start(), (len(listed) - 1) // PAGE_SIZE * PAGE_SIZE)
    people = sorted({person for _, unit in listed for person in unit.values})
    names = people if len(people) <= MAX_PERSON_COLUMNS else []
    rows = [_unit_row(distance, unit, names) for distance, unit in listed[start : start + PAGE_SIZE]]
    columns = ["no.", "question", "of", *(names or ["values"]), "distance"]
    kept_columns, kept = without_empty_columns(columns, rows)
    show_table(kept_columns, kept, key="agreement_questions", label="Questions of the figure", go=_request_trace)
    apart = sum(distance > 0 for distance, _ in listed)
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="agreement_pager"):
        if len(listed) > PAGE_SIZE:
            for label, target in (("Previous", start - PAGE_SIZE), ("Next", start + PAGE_SIZE)):
                is_off = not 0 <= target < len(listed)
                key = f"agreement_{label.lower()}"
                st.button(label, key=key, disabled=is_off, on_click=st.query_params.update, args=({"from": target},))
        last = min(start + PAGE_SIZE, len(listed))
        shown = f"{start + 1:,}–{last:,} of {format_count(len(listed), 'unit')}, {apart:,} with values that differ"
        st.caption(f"{shown}. A click opens the traces side by side.", width="content")


def _unit_row(distance: float, unit: AgreementUnit, names: Sequence[str]) -> list[TableCell]:
    values = {person: shorten(unit.shown[person] or "–") for person in unit.values}
    if names:
        cells = [
            TableCell(values[name], go=str(unit.traces[name])) if name in values else TableCell("") for name in names
        ]
    else:
        cells = [TableCell("; ".join(f"{person}: {value}" for person, value in values.items()))]
    return [
        TableCell(f"{unit.question.position}", number=True),
        TableCell(shorten(unit.question.summary), go=str(unit.traces[next(iter(unit.values))])),
        TableCell(shorten(unit.subject)),
        *cells,
        TableCell(f"{distance:.2f}", number=True),
    ]


def _go_back() -> None:
    clear_url_parameters("by", "group", "from")


def _request_trace(trace_id: str) -> None:
    st.session_state[SHOWN_TRACE] = trace_id
