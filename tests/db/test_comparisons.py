"""Questions of two runs by SQL, against the same rules over the stored answers in plain Python, on both databases."""

import random
from collections import defaultdict
from statistics import fmean
from typing import Any
from uuid import UUID, uuid4

import pytest

from showhow.db.database import Database, RowNotFound
from showhow.db.models import UNFINISHED_ENDINGS, Question
from showhow.db.runs import comparisons
from showhow.db.runs.attempts import CORRECT_SCORE
from showhow.db.runs.comparisons import ORDERS, VERDICTS, ComparisonFilter
from showhow.db.unanswerable import CANNOT_BE_ANSWERED, group_of_question, read_unanswerable, write_unanswerable
from tests.fixtures.compared_runs import F1, ComparedRuns, StoredAnswer, draw_outcomes, make_questions


def made_runs(database: Database, seed: int) -> ComparedRuns:
    """Two runs that share most of their questions, of which some cannot be answered, as some answers say.

    The second one asks each three times.
    """
    made = make_questions(database, 40, seed)
    generator = random.Random(seed)
    with database.begin() as session:
        for question in made.questions[::9]:
            question.gold_answers = [{"text": write_unanswerable("ambiguous"), "entity": None}]
            session.get_one(Question, question.id).gold_answers = question.gold_answers
    for asked, repetitions in ((made.questions[:35], 1), (made.questions[5:], 3)):
        outcomes = draw_outcomes(asked, repetitions, generator)
        for outcome in outcomes.values():
            if outcome["ending"] == "answered" and outcome["cost"] is None:
                outcome["answer"] = write_unanswerable("false premise")
        made.add_run(asked, outcomes, repetitions=repetitions)
    return made


def finished(made: ComparedRuns, run: UUID) -> dict[UUID, list[StoredAnswer]]:
    answers: dict[UUID, list[StoredAnswer]] = defaultdict(list)
    for row in made.answers:
        if row.run == run and row.ending not in (None, *UNFINISHED_ENDINGS):
            answers[row.question].append(row)
    return answers


def values_of(rows: list[StoredAnswer]) -> list[float] | None:
    values = [row.score if row.ending == "answered" else 0.0 for row in rows]
    return None if not rows or None in values else values


def score_of(rows: list[StoredAnswer]) -> float | None:
    values = values_of(rows)
    return None if values is None else fmean(values)


def is_right(rows: list[StoredAnswer]) -> bool | None:
    values = values_of(rows)
    return None if values is None else sum(value >= CORRECT_SCORE for value in values) * 2 > len(values)


def has_verdict(verdict: str, first: list[StoredAnswer], second: list[StoredAnswer]) -> bool:
    right = (is_right(first), is_right(second))
    endings = {row.ending for row in (*first, *second)}
    return {
        "gain": right == (True, False),
        "loss": right == (False, True),
        "both wrong": right == (False, False),
        "both right": right == (True, True),
        CANNOT_BE_ANSWERED: any(read_unanswerable(row.answer) for row in (*first, *second)),
        "failed": bool(endings & {"failed", "limit"}),
        "refused": "refused" in endings,
        "missing": None in right,
    }[verdict]


def hops_of(question: Question) -> str | None:
    return (
        str(question.details["hops"]) if "hops" in question.details else str(len(question.decomposition) or "") or None
    )


def group_of(question: Question) -> str | None:
    return group_of_question(question.kind, question.gold_answers)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_filters_counts_and_orders_are_those_of_the_stored_answers(database: Database, seed: int):
    made = made_runs(database, seed)
    first, second = (finished(made, run.id) for run in made.runs)
    pair = (made.runs[0].id, made.runs[1].id)
    questions = [question for question in made.questions if question.id in first or question.id in second]
    with database.read() as session:
        values = {
            name: comparisons.list_question_values(session, pair[0], name) for name in ("kind", "hops", "sources")
        }
        asked = made.questions[:35]
        assert values["kind"] == sorted({group for question in asked if (group := group_of(question))})
        assert values["hops"] == sorted({hops for question in asked if (hops := hops_of(question))})
        assert len(values["sources"]) == 2
        filters: list[tuple[ComparisonFilter, Any]] = [
            *((ComparisonFilter(verdict=verdict), None) for verdict in (None, *VERDICTS)),
            *((ComparisonFilter(kind=kind), lambda q, kind=kind: group_of(q) == kind) for kind in values["kind"]),
            *((ComparisonFilter(hops=hops), lambda q, hops=hops: hops_of(q) == hops) for hops in values["hops"]),
            *(
                (ComparisonFilter(text=text), lambda q, text=text: text.lower() in q.text.lower())
                for text in ("100%", "A_B", "on 1")
            ),
            (ComparisonFilter("both right", "who", text="tion"), lambda q: group_of(q) == "who"),
        ]
        for chosen, rule in filters:
            expected = [
                question
                for question in questions
                if (rule is None or rule(question))
                and (
                    chosen.verdict is None
                    or has_verdict(chosen.verdict, first.get(question.id, []), second.get(question.id, []))
                )
            ]
            assert comparisons.count_compared_questions(session, pair, F1, chosen) == len(expected), chosen
            rows = comparisons.list_compared_questions(session, pair, F1, chosen, "asked", limit=100)
            assert [row.question_id for row in rows] == [question.id for question in expected]
            assert [row.kind for row in rows] == [group_of(question) for question in expected]
            assert [row.hops for row in rows] == [hops_of(question) for question in expected]
            for row in rows:
                scores = (score_of(first.get(row.question_id, [])), score_of(second.get(row.question_id, [])))
                assert (row.score, row.baseline_score) == pytest.approx(scores)
        by_sources = [
            comparisons.count_compared_questions(session, pair, F1, ComparisonFilter(sources=value))
            for value in values["sources"]
        ]
        assert sum(by_sources) == sum("needs" in question.details for question in questions)


@pytest.mark.long
@pytest.mark.parametrize("order", ORDERS)
def test_pages_follow_each_other_in_the_order_of_differences(database: Database, order: str):
    made = made_runs(database, 7)
    pair = (made.runs[0].id, made.runs[1].id)
    with database.read() as session:
        whole = comparisons.list_compared_questions(session, pair, F1, order=order, limit=100)
        pages = [
            row
            for offset in range(0, 100, 7)
            for row in comparisons.list_compared_questions(session, pair, F1, order=order, limit=7, offset=offset)
        ]
    assert pages == whole
    assert len({row.question_id for row in whole}) == len(whole)
    differences = [None if None in row[-2:] else row.score - row.baseline_score for row in whole]
    known = [difference for difference in differences if difference is not None]
    if order != "asked":
        assert known == sorted(known, reverse=order == "gains")
        # What cannot be compared comes last.
        assert differences[: len(known)] == known


@pytest.mark.parametrize("seed", range(2))
def test_the_figures_of_a_question_are_the_means_of_its_finished_repetitions(database: Database, seed: int):
    made = made_runs(database, seed)
    with database.read() as session:
        for run in made.runs:
            figures = {UUID(row.question): row for row in comparisons.load_question_figures(session, run.id, F1)}
            answers = finished(made, run.id)
            assert figures.keys() == answers.keys()
            for question, rows in answers.items():
                row = figures[question]
                assert (row.attempts, row.score, row.is_right) == (
                    len(rows),
                    pytest.approx(score_of(rows)),
                    is_right(rows),
                )
                assert row.cost == pytest.approx(sum(entry.cost or 0.0 for entry in rows) / len(rows))
                assert row.seconds == pytest.approx(fmean(entry.seconds for entry in rows))
            listed = list(comparisons.iterate_attempt_rows(session, [run.id], F1))
            assert len(listed) == sum(entry.run == run.id for entry in made.answers)


def test_only_runs_over_many_questions_are_compared(database: Database):
    made = made_runs(database, 1)
    with database.read() as session:
        assert [run.id for run in comparisons.list_comparable_runs(session, made.project.id)] == [
            run.id for run in made.runs[::-1]
        ]
        assert comparisons.list_comparable_runs(session, uuid4()) == []
        with pytest.raises(RowNotFound, match="showhow runs list"):
            comparisons.find_comparable_run(session, uuid4())
