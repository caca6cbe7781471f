"""The scores of one run beside its own: metrics of its data set, and judge models with the labels of people."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import streamlit as st

from showhow.app.widgets.job_panel import (
    JUDGING_JOB,
    SCORING_JOB,
    explain_roles,
    may_start,
    show_verb_job,
    start_verb_job,
)
from showhow.app.widgets.page_layout import escape_markdown, format_sentence
from showhow.app.widgets.table import TableCell, show_table
from showhow.db.database import Database, StoreError
from showhow.db.models import Project, Run
from showhow.db.review.review import add_labels
from showhow.db.runs import comparisons
from showhow.evaluation.scoring.model_judges import (
    MIN_LABELS,
    JudgingOptions,
    list_judges,
    read_label_file,
    report_preferences,
    report_ratings,
)
from showhow.evaluation.scoring.predictions import list_run_metrics
from showhow.evaluation.scoring.scoring import label_runs, load_metric_figures
from showhow.evaluation.shared_model import TotalLimits
from showhow.llm.profiles import ProfileError
from showhow.llm.types import DEFAULT_PROFILE_NAME
from showhow.runs.budget import MAX_CONCURRENT_QUESTIONS
from showhow.runs.services import Services
from showhow.tasks.scores import JudgeRun, ScoreRun, judge_answers, score_answers
from showhow.tasks.task import dump_call

HELP_TEXTS = {"score": "Score the stored answers by a metric.", "judge": "Have a model judge the answers."}
LABEL_EXTENSIONS = ["csv", "jsonl"]
SHARE_TITLES = {
    "share_true": "true, as judged",
    "sensitivity": "sensitivity",
    "specificity": "specificity",
    "corrected_share": "true, corrected by the judge's errors",
    "prediction_powered_share": "true, judge and people together",
}


def show_run_scores(services: Services, project: Project, choose_run: Callable[[], Run]) -> None:
    """Draw the figures of a run by other metrics, its judges, and the buttons that start either.

    `choose_run` returns the run, and may draw a choice beside the title.
    """
    database = services.database
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.subheader("Other scores", anchor=False, width="stretch")
        run = choose_run()
        is_refused = not may_start(database, SCORING_JOB)
        help_of = dict.fromkeys(("score", "judge"), explain_roles(SCORING_JOB)) if is_refused else HELP_TEXTS
        if st.button("Score", key="score_run", icon=":material/rule:", help=help_of["score"], disabled=is_refused):
            _show_scoring_dialog(database, project, run)
        if st.button("Judge", key="judge_run", icon=":material/balance:", help=help_of["judge"], disabled=is_refused):
            _show_judging_dialog(services, project, run)
    for kind in (SCORING_JOB, JUDGING_JOB):
        show_verb_job(database, kind, project.name)
    figures = load_metric_figures(database, run.id)
    if figures:
        rows = [
            [
                TableCell(metric.name, whole=True),
                TableCell(f"{metric.version}", number=True),
                TableCell(", ".join(f"{name} {value:.4f}" for name, value in metric.components.items())),
                TableCell(f"{metric.scored:,} of {metric.answered:,}", number=True),
            ]
            for metric in figures
        ]
        columns = ("metric", "version", "figures", "answers scored")
        show_table(columns, rows, key="metric_figures", label="Figures by metrics of the data set")
    rating, comparing = list_judges(database, run.id)
    for judge in rating:
        _show_ratings(report_ratings(database, run, judge))
    for judge, other in comparing:
        _show_preferences(database, report_preferences(database, run, judge, other), other)
    if not (figures or rating or comparing):
        st.caption(
            "Score: official metrics of the data set, over the stored answers; nothing is asked again. Judge: another "
            "model rates the answers, or compares them with those of another run."
        )


@st.dialog("Score the stored answers")
def _show_scoring_dialog(database: Database, project: Project, run: Run) -> None:
    metrics = {metric.name: metric for metric in list_run_metrics(database, run.id)}
    if not metrics:
        st.info(
            "The questions of this run name no data set with metrics of its own. Import the data set's own file, or "
            "name it with `showhow runs score --dataset`."
        )
        return
    name = st.selectbox("Metric", list(metrics), key="score_metric")
    st.caption(escape_markdown(f"{metrics[name].purpose}. Rule: {metrics[name].source}. {metrics[name].note}"))
    if st.button("Score", key="score_now", type="primary", shortcut="Ctrl+Enter"):
        request = ScoreRun(run=str(run.id), metric=name)
        start_verb_job(database, SCORING_JOB, project.name, dump_call(score_answers, request))
        st.rerun()


@st.dialog("Have a model judge the answers", width="medium")
def _show_judging_dialog(services: Services, project: Project, run: Run) -> None:
    st.caption(
        f"The judge never sees who answered. Labels of people for about {MIN_LABELS} answers measure its errors; its "
        "verdicts are kept apart from them and from every metric."
    )
    try:
        profiles = list(services.model_profiles())
    except ProfileError as error:
        st.error(escape_markdown(str(error)))
        return
    if not profiles:
        st.warning("A judge is a language model. Add a profile on the Settings page.")
        return
    with services.database.read() as session:
        runs = comparisons.list_comparable_runs(session, project.id)
    labels = label_runs(runs)
    others: dict[UUID | None, str] = {None: "none: rate the answers alone"}
    others |= {
        other.id: labels[other.id]
        for other in runs
        if other.id != run.id and other.questions_hash == run.questions_hash
    }
    with st.container(horizontal=True):
        profile = st.selectbox(
            "Judge",
            profiles,
            key="judge_profile",
            width=200,
            help="Best of a family that did not answer.",
        )
        at_once = st.number_input("Parallel", 1, MAX_CONCURRENT_QUESTIONS, 2, key="judge_at_once", width=120)
        money = st.number_input(
            "Stop after (US dollars)", 0.0, value=None, key="judge_money", placeholder="no limit", width=200
        )
    against = st.selectbox("Compare with", list(others), format_func=others.__getitem__, key="judge_against")
    upload = st.file_uploader(
        "Labels of people",
        LABEL_EXTENSIONS,
        key="judge_labels",
        help="Rows with question, value (true, false, cannot judge), person, and aspect where it is not truthfulness.",
    )
    if st.button("Judge", key="judge_now", type="primary", shortcut="Ctrl+Enter"):
        try:
            if upload is not None:
                rows = read_label_file(upload.name, upload.getvalue())
                with services.database.begin() as session:
                    add_labels(session, run.id, rows)
        except StoreError as error:
            st.error(format_sentence(str(error)))
            return
        options = JudgingOptions(
            None if profile == DEFAULT_PROFILE_NAME else profile, against, at_once, TotalLimits(money or None)
        )
        request = JudgeRun(run=str(run.id), options=options)
        start_verb_job(services.database, JUDGING_JOB, project.name, dump_call(judge_answers, request))
        st.rerun()


def _show_ratings(report: Mapping[str, Any]) -> None:
    judge = report["judge"]
    st.markdown(f"**Judged by {escape_markdown(judge)}**: {report['judged']:,} answers")
    rows = [
        [
            TableCell(aspect, whole=True),
            TableCell(_format_counts(rated["labels"]), whole=True),
            TableCell(_format_counts(rated["people"]) if any(rated["people"].values()) else "–", whole=True),
            TableCell("–" if rated["mean"] is None else f"{rated['mean']:.3f}", number=True),
        ]
        for aspect, rated in report["aspects"].items()
    ]
    left, right = st.columns(2, gap="medium")
    with left:
        columns = ("aspect", "the judge", "people", "mean")
        show_table(columns, rows, key=f"ratings_{judge}", label=f"Labels of {judge} and of people")
    agreement = report["agreement"]
    with right:
        measures = ("truthfulness", "value", "95%")
        show_table(
            measures, list(_agreement_rows(agreement)), key=f"agreement_{judge}", label=f"Agreement with {judge}"
        )
    counted = f"{agreement['labelled_by_both']:,} answers have labels of both."
    st.caption(f"{counted} {format_sentence(agreement['note'])}" if "note" in agreement else counted)


def _format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {label}" for label, count in counts.items())


def _agreement_rows(agreement: Mapping[str, Any]) -> Iterator[Sequence[TableCell]]:
    for name, title in SHARE_TITLES.items():
        if name in agreement:
            yield _share_row(title, agreement[name])
    if "kappa" in agreement:
        yield [TableCell("Cohen's kappa"), TableCell(f"{agreement['kappa']:.3f}", number=True), TableCell("")]


def _share_row(title: str, share: Mapping[str, Any]) -> list[TableCell]:
    interval = "" if share["interval"] is None else "{:.3f} to {:.3f}".format(*share["interval"])
    return [TableCell(title), TableCell(f"{share['value']:.3f}", number=True), TableCell(interval, number=True)]


def _show_preferences(database: Database, report: Mapping[str, Any], other: UUID) -> None:
    with database.read() as session:
        run = comparisons.find_comparable_run(session, other)
    judge = escape_markdown(report["judge"])
    label = escape_markdown(label_runs([run])[other])
    st.markdown(
        f"**Compared by {judge} with {label}**: {report['win']:,} won, {report['tie']:,} tied, {report['loss']:,} lost"
    )
    rows = [_share_row("mean (won 1, tied 0.5)", report["mean"])]
    if report["first_preferred"] is not None:
        rows.append(_share_row("preferences for the answer read first", report["first_preferred"]))
    rows.append([TableCell("sign test p"), TableCell(f"{report['sign_test_p']:.4f}", number=True), TableCell("")])
    with st.container(width="content"):
        show_table(
            ("preference", "value", "95%"), rows, key=f"preferences_{other.hex}", label="Preferences of the judge"
        )
    st.caption(
        f"{report['depends_on_order']:,} verdicts depend on the order in which both were read, and count as ties."
    )
