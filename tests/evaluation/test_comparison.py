"""Runs compared with a baseline, against pandas and statsmodels over the stored answers, and the exported tables."""

import csv
import io
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import openpyxl
import pandas as pd
import pytest
from sqlalchemy import select
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from showhow.db.database import Conflict, Database
from showhow.db.models import UNFINISHED_ENDINGS, Attempt, Question, Trace
from showhow.db.run_spec import RunResult
from showhow.db.runs.comparisons import MetricVersion
from showhow.db.storage.schema import upgrade
from showhow.evaluation.comparison.comparison import (
    METRIC_DIFFERS,
    MODEL_DIFFERS,
    NO_SHARED_QUESTIONS,
    NOTHING_ANSWERED,
    OWN_CLUSTER,
    QUESTIONS_DIFFER,
    UNFINISHED,
    WORLD_DIFFERS,
    compare_runs,
    describe_runs,
    list_metrics,
)
from showhow.evaluation.comparison.comparison_tables import (
    ANSWER_COLUMNS,
    RUN_COLUMNS,
    format_comparison_latex,
    iterate_answer_rows,
    list_run_rows,
)
from showhow.evaluation.comparison.confidence import REPETITIONS, SOURCES, load_confidence_curve
from showhow.evaluation.value_format import TABLE_WRITERS, escape_latex
from tests.fixtures.compared_runs import F1, ComparedRuns, draw_outcomes, make_questions

GOLDEN = Path(__file__).with_name("golden") / "comparison.tex"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    store = Database(f"sqlite:///{tmp_path_factory.mktemp('compared') / 'showhow.db'}")
    upgrade(store)
    yield store
    store.close()


@pytest.fixture(scope="module")
def made(database: Database) -> ComparedRuns:
    """Three runs over almost the same questions, the last one with repetitions."""
    runs = make_questions(database, 80, seed=11)
    generator = random.Random(11)
    runs.add_run(runs.questions[:70], draw_outcomes(runs.questions[:70], 1, generator), options={"k": 1})
    runs.add_run(runs.questions, draw_outcomes(runs.questions, 1, generator), options={"k": 3})
    runs.add_run(runs.questions[10:], draw_outcomes(runs.questions[10:], 3, generator), repetitions=3)
    return runs


def frame_of(made: ComparedRuns) -> pd.DataFrame:
    """The score of each question in each run, a column for each run; by pandas from the stored answers."""
    rows = pd.DataFrame([vars(row) for row in made.answers])
    rows = rows[rows["ending"].notna() & ~rows["ending"].isin(UNFINISHED_ENDINGS)]
    rows["value"] = np.where(rows["ending"] == "answered", rows["score"].astype(float), 0.0)
    grouped = rows.groupby(["question", "run"])["value"]
    # A mean over only some of the answers is no score.
    return grouped.mean().where(grouped.apply(lambda values: values.notna().all())).unstack("run")


def test_differences_are_those_of_statsmodels_over_the_stored_answers(made: ComparedRuns):
    ids = [run.id for run in made.runs]
    comparison = compare_runs(made.database, ids, ids[0], F1)
    frame = frame_of(made)
    templates = pd.Series({question.id: question.details["template"] for question in made.questions})
    assert comparison.cluster_field == "template"
    p_values = []
    for run_id in ids[1:]:
        both = frame[[run_id, ids[0]]].dropna()
        difference = both[run_id] - both[ids[0]]
        groups = templates.loc[both.index]
        codes = pd.factorize(groups)[0]
        fit = OLS(difference.to_numpy(), np.ones(len(both))).fit(
            cov_type="cluster", cov_kwds={"groups": codes}, use_t=True
        )
        entry = comparison.differences[run_id]
        paired = entry.paired
        assert paired.difference.value == pytest.approx(difference.mean())
        assert paired.difference.standard_error == pytest.approx(fit.bse[0])
        ends = (paired.difference.interval.low, paired.difference.interval.high)
        assert ends == pytest.approx(tuple(fit.conf_int()[0]))
        assert (paired.gains, paired.losses, paired.ties) == (
            (difference > 0).sum(),
            (difference < 0).sum(),
            (difference == 0).sum(),
        )
        assert entry.clusters == groups.nunique()
        either = frame[[run_id, ids[0]]].dropna(how="all")
        assert paired.missing == len(either) - len(both)
        filled = either.fillna(0.0)
        assert paired.with_missing_as_zero == pytest.approx((filled[run_id] - filled[ids[0]]).mean())
        p_values.append(entry.p_value)
    right = right_shares(made)
    for run_id in ids[1:]:
        both = right[[run_id, ids[0]]].dropna()
        table = pd.crosstab(both[run_id] > 0.5, both[ids[0]] > 0.5).reindex(
            index=[True, False], columns=[True, False], fill_value=0
        )
        entry = comparison.differences[run_id]
        assert entry.p_value == pytest.approx(mcnemar(table, exact=True).pvalue)
        assert (entry.right_gains, entry.right_losses) == (table.loc[True, False], table.loc[False, True])
    adjusted = multipletests(p_values, method="holm")[1]
    assert [comparison.differences[run_id].adjusted_p for run_id in ids[1:]] == pytest.approx(adjusted)


def right_shares(made: ComparedRuns) -> pd.DataFrame:
    """The share of right answers of each question in each run, where all its finished answers are scored."""
    rows = pd.DataFrame([vars(row) for row in made.answers])
    rows = rows[rows["ending"].notna() & ~rows["ending"].isin(UNFINISHED_ENDINGS)]
    rows["is_right"] = (rows["score"].astype(float) == 1.0).astype(float)
    shares = rows.groupby(["question", "run"])["is_right"].mean().unstack("run")
    return shares.where(frame_of(made).notna())


def test_the_figures_of_a_run_are_over_its_finished_questions(made: ComparedRuns):
    ids = [run.id for run in made.runs]
    comparison = compare_runs(made.database, ids, ids[1], F1)
    frame = frame_of(made)
    for figures in comparison.figures:
        rows = [row for row in made.answers if row.run == figures.run_id]
        counts = {name: sum(row.ending == name for row in rows) for name in ("answered", "refused", "failed", "limit")}
        assert (figures.answered, figures.refused) == (counts["answered"], counts["refused"])
        assert figures.failed == counts["failed"] + counts["limit"]
        assert figures.left == len(rows) - sum(counts.values())
        ended = [row for row in rows if row.ending in counts]
        assert figures.cost == pytest.approx(sum(row.cost or 0 for row in ended) / len(ended))
        for point, estimate in ((figures.cost, figures.cost_error), (figures.seconds, figures.seconds_error)):
            assert estimate is not None
            assert point == pytest.approx(estimate.value)
        assert figures.seconds == pytest.approx(sum(row.seconds for row in ended) / len(ended))
        assert figures.tokens == pytest.approx(4 * sum(row.cost is not None for row in ended) / len(ended))
        scores = frame[figures.run_id].dropna()
        assert (figures.score, figures.scored) == (pytest.approx(scores.mean()), len(scores))
        assert figures.error is not None
        assert 0 <= figures.error.interval.low <= figures.score <= figures.error.interval.high <= 1
    assert [figures.label for figures in comparison.figures] == [
        "replay, k=1",
        "replay, k=3",
        "replay, repetitions=3",
    ]


def outcomes_of(questions: list[Question], score: float, **more: Any) -> dict[Any, Any]:
    return {(question.id, 1): {"ending": "answered", "score": score, **more} for question in questions}


def test_runs_that_do_not_compare_are_named_with_the_reason(database: Database):
    made = make_questions(database, 6, seed=21)
    baseline = made.add_run(made.questions[:4], outcomes_of(made.questions[:4], 1.0), model="a")
    other = made.add_run(made.questions[4:], outcomes_of(made.questions[4:], 1.0), world_hash="w2", model="b")
    unfinished = made.add_run(made.questions[:4], outcomes_of(made.questions[:3], 0.5), model="a")
    comparison = compare_runs(database, [run.id for run in made.runs], baseline.id, F1)
    assert {(warning.run_id, warning.kind) for warning in comparison.warnings} == {
        (other.id, QUESTIONS_DIFFER),
        (other.id, WORLD_DIFFERS),
        (other.id, MODEL_DIFFERS),
        (other.id, NO_SHARED_QUESTIONS),
        (unfinished.id, UNFINISHED),
    }
    assert [warning.kind for warning in comparison.warnings if warning.is_note] == [MODEL_DIFFERS]
    assert comparison.differences.keys() == {unfinished.id}
    assert "no scored question" in list_run_rows(comparison)[1]["warnings"]
    # A version that no answer is scored by has neither figures nor differences.
    newer = compare_runs(database, [run.id for run in made.runs], baseline.id, MetricVersion("f1", 3))
    assert {warning.run_id for warning in newer.warnings if warning.kind == METRIC_DIFFERS} == {
        run.id for run in made.runs
    }
    assert not newer.differences
    assert all(figures.score is None for figures in newer.figures)
    assert list_metrics(database, [baseline.id]) == [F1]


def test_finished_runs_in_which_nothing_was_answered_compare_and_say_so(database: Database):
    made = make_questions(database, 5, seed=41)
    refused = {(question.id, 1): {"ending": "refused", "score": None} for question in made.questions}
    failed = {(question.id, 1): {"ending": "failed", "score": None} for question in made.questions}
    baseline = made.add_run(made.questions, refused)
    other = made.add_run(made.questions, failed)
    ids = [run.id for run in made.runs]
    metrics = list_metrics(database, ids)
    assert metrics == [F1]
    comparison = compare_runs(database, ids, baseline.id, metrics[0])
    assert [(figures.score, figures.right, figures.scored) for figures in comparison.figures] == [(0, 0, 5), (0, 0, 5)]
    assert [(warning.run_id, warning.kind, warning.is_note) for warning in comparison.warnings] == [
        (run, NOTHING_ANSWERED, True) for run in ids
    ]
    assert "5 were refused" in comparison.warnings[0].sentence
    assert comparison.differences[other.id].paired.questions == 5
    titles = describe_runs(database, made.runs, lambda moment: f"{moment:%H:%M}")
    assert titles[baseline.id].endswith(f"5 questions · {baseline.started_at:%H:%M} · F1 0.00")


def test_only_two_to_eight_runs_with_a_baseline_among_them_are_compared(made: ComparedRuns):
    first, second, _ = (run.id for run in made.runs)
    for ids, baseline in (([first], first), ([first, first], first), ([first, second], uuid4()), ([], first)):
        with pytest.raises(Conflict, match="choose 2 to 8 different runs"):
            compare_runs(made.database, ids, baseline, F1)


def test_questions_without_a_common_field_are_clusters_of_their_own(database: Database):
    made = make_questions(database, 8, seed=22)
    with database.begin() as session:
        for question in made.questions:
            session.get_one(Question, question.id).details = {"template": f"own {question.position}"}
    for score in (1.0, 0.5):
        made.add_run(made.questions, outcomes_of(made.questions, score))
    comparison = compare_runs(database, [run.id for run in made.runs], made.runs[0].id, F1)
    assert comparison.cluster_field == OWN_CLUSTER
    assert comparison.differences[made.runs[1].id].clusters == 8


def test_confidence_is_the_share_of_repetitions_that_agree(database: Database):
    made = make_questions(database, 2, seed=23)
    sure, unsure = made.questions
    texts = {(sure.id, n): ("Rome", 1.0) for n in (1, 2, 3)} | {
        (unsure.id, 1): ("Oslo", 1.0),
        (unsure.id, 2): ("Bonn", 0.0),
        (unsure.id, 3): ("Bonn.", 0.0),
    }
    outcomes = {key: {"ending": "answered", "answer": text, "score": score} for key, (text, score) in texts.items()}
    run = made.add_run(made.questions, outcomes, repetitions=3)
    curve = load_confidence_curve(database, run.id, F1)
    assert curve is not None
    assert (curve.basis, curve.questions) == (REPETITIONS, 2)
    assert curve.curve.points == [(0.5, 0.0), (1.0, 0.5)]


def test_confidence_is_the_share_of_sources_that_agree_with_the_answer(database: Database):
    made = make_questions(database, 3, seed=24)
    sources = [
        {"text": "Rome", "graph": "Rome", "model": "rome"},
        {"text": "Oslo", "graph": None, "model": "Rome"},
        {"text": None, "graph": None, "model": None},
    ]
    outcomes = {
        (question.id, 1): {"ending": "answered", "answer": "Rome", "score": score, "sources": given}
        for question, score, given in zip(made.questions, (1.0, 0.0, 0.0), sources, strict=True)
    }
    run = made.add_run(made.questions, outcomes)
    curve = load_confidence_curve(database, run.id, F1)
    assert curve is not None
    assert curve.basis == SOURCES
    assert curve.curve.points == [(1 / 3, 0.0), (2 / 3, 0.5), (1.0, pytest.approx(2 / 3))]
    silent = made.add_run(made.questions, outcomes_of(made.questions, 1.0))
    assert load_confidence_curve(database, silent.id, F1) is None


def read_table(name: str, data: bytes) -> list[dict[str, Any]]:
    if name == "csv":
        return list(csv.DictReader(io.StringIO(data.decode(), newline="")))
    if name == "parquet":
        frame = pd.read_parquet(io.BytesIO(data))
        return [
            {key: None if pd.isna(value) else value for key, value in row.items()} for row in frame.to_dict("records")
        ]
    if name == "xlsx":
        header, *rows = openpyxl.load_workbook(io.BytesIO(data)).active.iter_rows(values_only=True)
        return [dict(zip(header, row, strict=True)) for row in rows]
    return list(json.loads(data))


@pytest.mark.parametrize("name", TABLE_WRITERS)
def test_exported_tables_have_all_values(made: ComparedRuns, name: str):
    ids = [run.id for run in made.runs]
    comparison = compare_runs(made.database, ids, ids[0], F1)
    tables = (
        (RUN_COLUMNS, list_run_rows(comparison)),
        (ANSWER_COLUMNS, list(iterate_answer_rows(made.database, comparison))),
    )
    for columns, rows in tables:
        stream = io.BytesIO()
        TABLE_WRITERS[name](columns, iter(rows), stream)
        read = read_table(name, stream.getvalue())
        assert len(read) == len(rows) > 0
        for row, original in zip(read, rows, strict=True):
            assert list(row) == list(columns)
            expected: dict[str, Any] = {key: "" if value is None else str(value) for key, value in original.items()}
            if name == "xlsx":
                # The numbers of a workbook have 16 digits.
                expected = {
                    key: float(f"{value:.16g}") if isinstance(value, float) else value
                    for key, value in original.items()
                }
            assert row == (expected if name in ("csv", "xlsx") else original)
    assert len(tables[1][1]) == len(made.answers)
    assert tables[0][1][0]["difference"] is None


def test_the_mean_of_the_exported_scores_is_the_score_of_the_run_and_zeros_have_their_reason(database: Database):
    made = make_questions(database, 6, seed=26)
    with database.begin() as session:
        for place, name in enumerate(("hotpotqa", "musique")):
            question = session.get_one(Question, made.questions[place].id)
            question.dataset, question.split, question.source_id = name, "test", f"{place + 2}hop__1"
            question.details = {"level": "hard", "type": "bridge", "needs": [["graph"], ["text", "web"]]}
            question.decomposition = []
    outcomes = outcomes_of(made.questions[:3], 0.5)
    outcomes |= {
        (question.id, 1): {"ending": ending}
        for question, ending in zip(made.questions[3:], ("refused", "limit", "interrupted"), strict=True)
    }
    run = made.add_run(made.questions, outcomes)
    with database.begin() as session:
        trace = session.scalars(select(Trace).where(Trace.question_id == made.questions[0].id)).one()
        trace.result = RunResult(calls={"model_calls": 3, "retrievals": 4})
    other = made.add_run(made.questions, outcomes_of(made.questions, 1.0))
    comparison = compare_runs(database, [run.id, other.id], run.id, F1)
    rows = [row for row in iterate_answer_rows(database, comparison) if row["run_id"] == str(run.id)]
    known = [row["score"] for row in rows if row["score"] is not None]
    assert sum(known) / len(known) == pytest.approx(comparison.figures[0].score) == pytest.approx(0.3)
    reasons = {row["question_id"]: row["score_reason"] for row in rows}
    assert [reasons[str(question.id)] for question in made.questions] == [
        *(None, None, None),
        *("no answer: refused", "no answer: limit", "not finished"),
    ]
    names = ("dataset", "split", "type", "difficulty", "hops", "needs", "retrievals")
    first = next(row for row in rows if row["question_id"] == str(made.questions[0].id))
    assert [first[name] for name in names] == ["hotpotqa", "test", "bridge", "hard", 2, "graph or text + web", 4]


def test_reported_cost_and_its_bound_are_columns_of_their_own_and_the_cost_is_within_its_interval(database: Database):
    made = make_questions(database, 8, seed=27)
    runs = [made.add_run(made.questions, outcomes_of(made.questions, 1.0, cost=0.01 * place)) for place in (1, 2)]
    with database.begin() as session:
        # The reply of one call was lost: it may have used as much as it can.
        attempt = session.scalars(select(Attempt).where(Attempt.run_id == runs[0].id)).first()
        assert attempt is not None
        attempt.cost_bound, attempt.token_bound, attempt.unreported_calls = 0.81, 1_004, 1
    comparison = compare_runs(database, [run.id for run in runs], runs[0].id, F1)
    table = list_run_rows(comparison)
    assert (table[0]["cost"], table[0]["cost_bound"]) == (pytest.approx(0.01), pytest.approx(0.11))
    assert (table[0]["tokens"], table[0]["token_bound"]) == (4, 129)
    assert table[0]["cost_low"] <= table[0]["cost"] <= table[0]["cost_high"]
    assert (table[1]["cost"], table[1]["tokens"]) == (table[1]["cost_bound"], table[1]["token_bound"])
    assert "0.0100 & 0.1100" in format_comparison_latex(comparison)
    rows = [row for row in iterate_answer_rows(database, comparison) if row["cost_bound"] != row["cost"]]
    assert [(row["cost"], row["cost_bound"], row["token_bound"]) for row in rows] == [(0.01, 0.81, 1_004)]


def test_an_empty_table_is_a_valid_file():
    for name, write in TABLE_WRITERS.items():
        stream = io.BytesIO()
        write({"a": str, "b": float}, [], stream)
        assert read_table(name, stream.getvalue()) == []


def test_the_latex_table_is_the_golden_one(database: Database):
    made = make_questions(database, 8, seed=25)
    half = outcomes_of(made.questions[:4], 1.0, cost=0.25) | outcomes_of(made.questions[4:], 0.0, cost=0.25)
    first = made.add_run(made.questions, outcomes_of(made.questions, 1.0, cost=1.0), model="gpt_4 & co--x")
    second = made.add_run(made.questions, half, model="50%{q}")
    comparison = compare_runs(database, [first.id, second.id], first.id, F1)
    assert format_comparison_latex(comparison) == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a_b & 50% $x$ #1 {y}", r"a\_b \& 50\% \$x\$ \#1 \{y\}"),
        ("~^\\", r"\textasciitilde{}\textasciicircum{}\textbackslash{}"),
        ("a---b -c", "a-{}-{}-b -c"),
        ("two\nlines  and", "two lines and"),
    ],
)
def test_texts_are_escaped_for_latex(text: str, escaped: str):
    assert escape_latex(text) == escaped


def test_a_comparison_is_the_same_every_time(made: ComparedRuns):
    ids = [run.id for run in made.runs]
    first = compare_runs(made.database, ids, ids[0], F1)
    assert replace(first) == compare_runs(made.database, ids, ids[0], F1)
