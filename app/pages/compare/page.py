"""The Compare page: runs side by side, their differences from a baseline, and the questions that make them."""

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

import streamlit as st

from showhow.app.pages.compare.groups import show_groups
from showhow.app.pages.compare.questions import CHOSEN_RUN, QUESTION_PARAMETERS, choose_parameter, show_questions
from showhow.app.pages.compare.thoughts import show_thoughts
from showhow.app.widgets.manage import show_removal_notice, show_run_buttons
from showhow.app.widgets.page_layout import escape_markdown, format_when, show_head
from showhow.app.widgets.person import acting_services
from showhow.app.widgets.queue import current_project
from showhow.app.widgets.run_scores import show_run_scores
from showhow.app.widgets.table import DECADE, TableCell, cost_chart_spec, run_chart_height, run_colour, show_table
from showhow.app.widgets.url_state import clear_url_parameters, get_url_parameter
from showhow.db.database import Database
from showhow.db.models import Project, Run, User
from showhow.db.runs import comparisons
from showhow.db.runs.comparisons import MetricVersion
from showhow.db.runs.verifications import VERIFICATION_NAME
from showhow.db.unanswerable import CANNOT_BE_ANSWERED
from showhow.evaluation.comparison.comparison import (
    MAX_COMPARED_RUNS,
    OWN_CLUSTER,
    RunComparison,
    RunDifference,
    RunFigures,
    compare_runs,
    describe_runs,
    list_metrics,
    metric_label,
)
from showhow.evaluation.comparison.comparison_tables import (
    ANSWER_COLUMNS,
    RUN_COLUMNS,
    format_comparison_latex,
    iterate_answer_rows,
    list_run_rows,
)
from showhow.evaluation.comparison.confidence import CONFIDENCE_DESCRIPTIONS, ConfidenceCurve, load_confidence_curve
from showhow.evaluation.scoring.scoring import describe_power, label_runs
from showhow.evaluation.statistics import Estimate, pareto_front
from showhow.evaluation.value_format import TABLE_WRITERS, format_count, format_money, format_p_value, format_seconds
from showhow.runs.services import Services

DEFAULT_RUNS = 4
"""Runs that are chosen where the link names none."""
MAX_READ_ANSWERS = 20_000
"""Answers whose confidence is measured without being asked for; reading them takes a second for ten thousand."""
CACHED_COMPARISONS = 32


def choose_runs(runs: Sequence[Run], titles: Mapping[UUID, str]) -> list[UUID]:
    """Draw the choice of runs, which the link stores; the default are the latest over the same questions.

    As with `showhow compare`, the first one is the baseline, by default the oldest.
    """
    known = {str(run.id): run.id for run in runs}
    named = [known[text] for text in get_url_parameter("runs").split(",") if text in known]
    alike = [run.id for run in runs if run.questions_hash == runs[0].questions_hash]
    st.session_state["compared_runs"] = named if "runs" in st.query_params else alike[:DEFAULT_RUNS][::-1]

    def change() -> None:
        chosen = st.session_state["compared_runs"]
        st.query_params["runs"] = ",".join(map(str, chosen))
        clear_url_parameters(*QUESTION_PARAMETERS)

    return st.multiselect(
        "Runs",
        list(known.values()),
        format_func=lambda run_id: titles[run_id],
        key="compared_runs",
        max_selections=MAX_COMPARED_RUNS,
        on_change=change,
        placeholder="Choose 2 to 8 runs",
    )


@st.cache_data(max_entries=CACHED_COMPARISONS, show_spinner="Comparing …")
def _load_comparison(
    _database: Database,
    run_ids: Sequence[UUID],
    baseline: UUID,
    metric: MetricVersion,
    state: str,  # noqa: ARG001 - a part of the cache's key: more answers and scores have another comparison
) -> RunComparison:
    return compare_runs(_database, run_ids, baseline, metric)


@st.cache_data(max_entries=CACHED_COMPARISONS, show_spinner="Reading the answers …")
def _load_curve(
    _database: Database,
    run_id: UUID,
    metric: MetricVersion,
    state: str,  # noqa: ARG001 - as above
) -> ConfidenceCurve | None:
    return load_confidence_curve(_database, run_id, metric)


def describe_state(database: Database, runs: Sequence[Run]) -> str:
    """What changes with every score and every end of these runs."""
    with database.read() as session:
        scores = comparisons.list_run_scores(session, [run.id for run in runs])
        ended = comparisons.count_ended_attempts(session, [run.id for run in runs])
    return repr((scores, ended, [run.finished_at for run in runs]))


def show_warnings(comparison: RunComparison) -> None:
    """Draw the banner with the reasons why runs do not compare, and notes below it."""
    serious = [warning.sentence for warning in comparison.warnings if not warning.is_note]
    notes = [warning.sentence for warning in comparison.warnings if warning.is_note]
    if serious:
        lines = "\n".join(f"- {escape_markdown(sentence)}" for sentence in serious)
        st.warning(f"**Not all of these runs compare.**\n\n{lines}", icon=":material/warning:")
    for sentence in notes:
        st.caption(escape_markdown(sentence))


def show_run_table(comparison: RunComparison) -> None:
    """Draw the figures of each run; a click opens the run."""
    label = metric_label(comparison.metric.name)
    rows = [
        [
            TableCell(run.label, go=str(run.run_id), whole=True),
            TableCell(f"{run.questions:,}" + (f" × {run.repetitions}" if run.repetitions > 1 else ""), number=True),
            TableCell("–" if run.score is None else format_estimate(run.score, run.error), number=True),
            TableCell(_format_right(run), number=True),
            *(TableCell(f"{count:,}", number=True) for count in _count_endings(run)),
            *(TableCell(_format_cost(cost), number=True) for cost in (run.cost, run.cost_bound)),
            *(TableCell(_format_tokens(count), number=True) for count in (run.tokens, run.token_bound)),
            TableCell(format_seconds(run.seconds), number=True),
            TableCell(f"{run.calls:,.1f}", number=True),
        ]
        for run in comparison.figures
    ]
    counts = ("answered", CANNOT_BE_ANSWERED, "refused", "failed", "left")
    usage = ("cost", "cost, at most", "tokens", "tokens, at most", "time", "model calls")
    columns = ("run", "questions", f"{label} [95%]", "right [95%]", *counts, *usage)
    show_table(columns, rows, key="run_figures", label="Figures of each run", go=_request_run)
    st.caption(
        "Cost, tokens, time and model calls are those of an answer: as reported, and at most, with the calls that did "
        "not report their tokens. Answers that a question cannot be answered are among the answered ones; what was "
        "refused or failed scores 0. A run's name opens it on the Verify page."
    )


def _count_endings(run: RunFigures) -> tuple[int, ...]:
    return run.answered, run.cannot_be_answered, run.refused, run.failed, run.left


def _format_right(run: RunFigures) -> str:
    if run.right_share is None:
        return "–"
    return f"{run.right / run.scored:.0%} [{run.right_share.low:.0%}, {run.right_share.high:.0%}]"


def _format_cost(cost: float | None) -> str:
    return "unknown" if cost is None else format_money(cost)


def _format_tokens(count: float | None) -> str:
    return "–" if count is None else f"{count:,.0f}"


def format_estimate(value: float, estimate: Estimate | None, sign: str = "") -> str:
    """A value with its interval: 0.52 [0.44, 0.61]."""
    if estimate is None:
        return f"{value:{sign}.3f}"
    return f"{value:{sign}.3f} [{estimate.interval.low:{sign}.3f}, {estimate.interval.high:{sign}.3f}]"


def _request_run(run: str) -> None:
    st.session_state["opened_run"] = run


def open_requested_run(person: User, project: Project, runs: Sequence[Run]) -> None:
    """Open the run that was clicked on the Verify page; an imported one has no page but this."""
    requested = st.session_state.pop("opened_run", None)
    run = next((run for run in runs if str(run.id) == requested), None)
    if run is None:
        return
    if run.name != VERIFICATION_NAME:
        st.toast("This run was imported; its answers are in the questions below.")
        return
    parameters = {"you": person.name, "project": project.name, "verification": str(run.id)}
    st.switch_page("verify/page.py", query_params=parameters)


def show_difference_table(comparison: RunComparison) -> None:
    """Draw the difference of each run from the baseline; a click chooses the run for the list of questions."""
    baseline = comparison.labels[comparison.baseline_id]
    st.header(f"Against {escape_markdown(baseline)}", anchor=False)
    rows = [
        _difference_row(run, comparison.differences[run.run_id])
        for run in comparison.figures
        if run.run_id in comparison.differences
    ]
    if not rows:
        st.info("No other run shares scored questions with the baseline. Choose runs over the same questions.")
        return
    columns = (
        *("run", "difference [95%]", "Holm p", "McNemar p", "pairs", "gains", "losses", "ties", "missing"),
        *("missing as 0", "right gained", "right lost", "bootstrap [95%]"),
    )
    show_table(columns, rows, key="differences", label="Differences from the baseline", go=_choose_run)
    clusters = next(iter(comparison.differences.values())).clusters
    unit = (
        "Each question is a cluster of its own"
        if comparison.cluster_field == OWN_CLUSTER
        else f"Questions are clustered by their {comparison.cluster_field}, {clusters:,} in all"
    )
    pairs = max(difference.paired.questions for difference in comparison.differences.values())
    st.caption(
        f"Over the questions that both have. {unit}; repetitions of a question are averaged first. Gains and losses: "
        "questions with a higher or lower score; McNemar's exact test is over right and wrong, Holm's correction over "
        f"the rows. {describe_power(pairs)} A run's name lists its questions below."
    )


def _difference_row(run: RunFigures, difference: RunDifference) -> list[TableCell]:
    paired = difference.paired
    counts = (paired.questions, paired.gains, paired.losses, paired.ties, paired.missing)
    return [
        TableCell(run.label, go=str(run.run_id), whole=True),
        TableCell(format_estimate(paired.difference.value, paired.difference, sign="+"), number=True),
        *(TableCell(format_p_value(p), number=True) for p in (difference.adjusted_p, difference.p_value)),
        *(TableCell(f"{count:,}", number=True) for count in counts),
        TableCell(f"{paired.with_missing_as_zero:+.3f}", number=True),
        *(TableCell(f"{count:,}", number=True) for count in (difference.right_gains, difference.right_losses)),
        TableCell(f"[{paired.bootstrap.low:+.3f}, {paired.bootstrap.high:+.3f}]", number=True),
    ]


def _choose_run(run: str) -> None:
    clear_url_parameters(*QUESTION_PARAMETERS)
    st.query_params[CHOSEN_RUN] = run


def show_cost_chart(comparison: RunComparison) -> None:
    """Draw the score over the cost of an answer, with the Pareto line; over its time where no run paid."""
    is_paid = any(run.cost_bound for run in comparison.figures)
    costs = {
        run.run_id: (run.cost, run.cost_error) if is_paid else (run.seconds, run.seconds_error)
        for run in comparison.figures
    }
    points = [
        _chart_point(run, run.score, cost, costs[run.run_id][1])
        for run in comparison.figures
        if run.score is not None and (cost := costs[run.run_id][0]) is not None
    ]
    measure, unit = ("Cost", "US dollars") if is_paid else ("Time", "seconds")
    label = metric_label(comparison.metric.name)
    st.markdown(f"**{label} over {measure.lower()} of an answer**")
    front = [points[place] for place in pareto_front([(point["cost"], point["score"]) for point in points])]
    event: Any = st.vega_lite_chart(
        cost_chart_spec(points, front, list(comparison.labels.values()), f"{measure} of an answer ({unit})", label),
        key="cost_chart",
        on_select="rerun",
        width="stretch",
        alt=f"{label} and {measure.lower()} of each run: "
        + ", ".join(f"{point['run']} {point['score']:.2f} at {point['cost']:.4g} {unit}" for point in points),
    )
    left_out = len(comparison.figures) - len(points)
    st.caption(
        "Bars are 95% intervals. The line joins the runs that no other run beats in both. A point leads to its run."
        + ("" if is_paid else " No run paid for a model, so time stands for cost.")
        + (f" {left_out} without a score or with an unknown cost left out." if left_out else "")
    )
    chosen = (event.get("selection", {}).get("run") or []) if event else []
    if chosen and st.session_state.get("charted_run") != chosen[0].get("id"):
        st.session_state["charted_run"] = chosen[0]["id"]
        _request_run(chosen[0]["id"])
        st.rerun()
    if not chosen:
        st.session_state.pop("charted_run", None)


def _chart_point(run: RunFigures, score: float, cost: float, cost_error: Estimate | None) -> dict[str, Any]:
    return {
        "id": str(run.run_id),
        "run": run.label,
        "score": score,
        "low": run.error.interval.low if run.error else score,
        "high": run.error.interval.high if run.error else score,
        "cost": cost,
        # An end at 0 or below has no place on a logarithmic axis.
        "cost_low": max(cost_error.interval.low, cost / DECADE) if cost_error else cost,
        "cost_high": cost_error.interval.high if cost_error else cost,
    }


def show_risk_chart(database: Database, comparison: RunComparison, state: str) -> None:
    """Draw how many answers are wrong if only the most confident ones are given, where a confidence is at hand."""
    st.markdown("**Risk and coverage**")
    answers = sum(run.answered for run in comparison.figures)
    if answers > MAX_READ_ANSWERS and not st.toggle(f"Read the {answers:,} answers", key="read_answers"):
        st.caption("The confidence of an answer is measured by reading all of them, which takes a while.")
        return
    labels = comparison.labels
    loaded = [_load_curve(database, run_id, comparison.metric, state) for run_id in labels]
    curves = [curve for curve in loaded if curve is not None]
    if not curves:
        st.info(
            "Nothing says how confident these answers are. Ask each question several times (Repetitions), or use a "
            "reasoner that answers from three sources (HumanIQ)."
        )
        return
    values = [
        {"run": labels[curve.run_id], "coverage": coverage, "risk": risk}
        for curve in curves
        for coverage, risk in curve.curve.points
    ]
    axes = {
        "x": {
            "field": "coverage",
            "type": "quantitative",
            "title": "share of questions answered",
            "axis": {"format": "%"},
        },
        "y": {"field": "risk", "type": "quantitative", "title": "share of these wrong", "axis": {"format": "%"}},
    }
    for axis in axes.values():
        axis["scale"] = {"domain": [0, 1]}
    spec = {
        "height": run_chart_height(len(labels)),
        "data": {"values": values},
        "mark": {"type": "line", "point": True},
        "encoding": {**axes, "color": run_colour(list(labels.values()))},
    }
    st.vega_lite_chart(spec, key="risk_chart", width="stretch", alt="Risk over coverage of each run")
    for curve in curves:
        st.caption(
            f"{escape_markdown(labels[curve.run_id])}: area {curve.curve.area:.3f} over {curve.questions:,} questions; "
            f"confidence is {CONFIDENCE_DESCRIPTIONS[curve.basis]}."
        )


def show_export(database: Database, comparison: RunComparison) -> None:
    """Draw the menu that downloads the table of runs, and all answers."""

    def write(name: str, *, answers: bool) -> Callable[[], bytes]:
        def make() -> bytes:
            stream = io.BytesIO()
            if answers:
                TABLE_WRITERS[name](ANSWER_COLUMNS, iterate_answer_rows(database, comparison), stream)
            else:
                TABLE_WRITERS[name](RUN_COLUMNS, list_run_rows(comparison), stream)
            return stream.getvalue()

        return make

    with st.popover("Export", icon=":material/download:"):
        st.markdown("**Table of runs**")
        with st.container(horizontal=True, gap="small"):
            for name in TABLE_WRITERS:
                data = write(name, answers=False)
                st.download_button(name, data, f"runs.{name}", key=f"export_{name}", on_click="ignore")
            latex = format_comparison_latex(comparison)
            st.download_button("LaTeX", latex, "runs.tex", key="export_latex", on_click="ignore")
        st.markdown("**All answers**")
        with st.container(horizontal=True, gap="small"):
            for name in TABLE_WRITERS:
                data = write(name, answers=True)
                st.download_button(name, data, f"answers.{name}", key=f"export_rows_{name}", on_click="ignore")
        runs = " ".join(str(run.run_id) for run in comparison.figures)
        st.code(f"showhow compare {runs} --baseline {comparison.baseline_id}", language=None, wrap_lines=True)


def show_comparison(services: Services, project: Project, runs: Sequence[Run]) -> None:
    """Draw everything below the header."""
    database = services.database
    labels = label_runs(runs)
    titles_of_runs = describe_runs(database, runs, format_when)
    with st.container(key="compare_choice"), st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width="stretch"):
            chosen = choose_runs(runs, titles_of_runs)
        with st.container(width=420):
            titles = {str(run_id): titles_of_runs[run_id] for run_id in chosen}
            baseline = choose_parameter("Baseline", "baseline", titles, 420) if chosen else ""
        metrics = list_metrics(database, chosen)
        with st.container(width=190):
            names = {f"{m.name}:{m.version}": f"{metric_label(m.name)}, version {m.version}" for m in metrics}
            metric = choose_parameter("Metric", "metric", names, 190) if names else ""
    if len(chosen) < 2 or not metric:
        st.info(
            "Choose at least two runs. Runs over the same questions compare best."
            if len(chosen) < 2
            else "None of these runs has a scored answer yet. Wait until they have, or choose others."
        )
        _show_scores_of_one(services, project, [run for run in runs if run.id in chosen], labels)
        return
    selected = next(entry for entry in metrics if f"{entry.name}:{entry.version}" == metric)
    state = describe_state(database, [run for run in runs if run.id in chosen])
    comparison = _load_comparison(database, chosen, UUID(baseline), selected, state)
    show_warnings(comparison)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.header("Runs", anchor=False, width="stretch")
        show_export(database, comparison)
    show_run_table(comparison)
    show_run_buttons(services, [run for run in runs if run.id in chosen], comparison.labels)
    show_difference_table(comparison)
    show_groups(services, comparison)
    show_thoughts(services, comparison, state)
    left, right = st.columns(2, gap="medium")
    with left:
        show_cost_chart(comparison)
    with right:
        show_risk_chart(database, comparison, state)
    _show_scores_of_one(services, project, [run for run in runs if run.id in chosen], labels)
    show_questions(services, comparison, project)


def _show_scores_of_one(
    services: Services, project: Project, chosen: Sequence[Run], labels: Mapping[UUID, str]
) -> None:
    """Draw the choice of one of the runs, and its scores by other metrics and judges."""
    if not chosen:
        return
    names = {str(run.id): labels[run.id] for run in chosen}

    def choose_run() -> Run:
        scored = choose_parameter("Scores of", "scored", names, 300)
        return next(run for run in chosen if str(run.id) == scored)

    show_run_scores(services, project, choose_run)


def show_page(services: Services, person: User) -> None:
    """Draw the page."""
    project = current_project(services.database)
    if project is None:
        show_head("Compare")
        st.info("There is no project yet. `showhow setup` makes one.")
        return
    with services.database.read() as session:
        runs = comparisons.list_comparable_runs(session, project.id)
    open_requested_run(person, project, runs)
    show_removal_notice()
    show_head("Compare", f"{format_count(len(runs), 'run')} over this project's questions.")
    if len(runs) < 2:
        st.info(
            "Two runs over the questions of a project are compared here, question by question. Run two reasoners on "
            "the Verify page, or import the log of another tool with `showhow runs import`."
        )
        return
    show_comparison(services, project, runs)


show_page(*acting_services())
