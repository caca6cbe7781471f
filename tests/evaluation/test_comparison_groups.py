"""Scores by groups of questions and by source, as the papers' analyses have them, and the note on the tested world."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from showhow.db.database import Conflict, Database
from showhow.db.models import Library, Question, Run
from showhow.db.run_spec import RunSpec
from showhow.db.storage.schema import upgrade
from showhow.evaluation.comparison.comparison import TESTED_WORLD, RunComparison, compare_runs
from showhow.evaluation.comparison.groups import (
    AGREEMENT,
    DATE,
    ERROR,
    GROUPINGS,
    SIZE,
    SOURCE,
    TAG,
    describe_period,
    format_group_lines,
    list_group_rows,
)
from showhow.evaluation.datasets.record import parse_question
from tests.fixtures.compared_runs import F1, ComparedRuns, make_questions

Z2 = 1.959963984540054**2


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    store = Database(f"sqlite:///{tmp_path / 'showhow.db'}")
    upgrade(store)
    yield store
    store.close()


@pytest.fixture
def made(database: Database) -> ComparedRuns:
    """Six questions of difficulty 1, 1, 2, 10, 10 and none; the second run has half of the first one's scores."""
    questions = make_questions(database, 6, seed=71)
    with database.begin() as session:
        for question, difficulty in zip(questions.questions, (1, 1, 2, 10, 10, None), strict=True):
            stored = session.get_one(Question, question.id)
            stored.details = {"difficulty": difficulty} if difficulty else {}
    for factor, world, library in ((1.0, "small", "people:1"), (0.5, "large", None)):
        outcomes = {
            (question.id, 1): {"ending": "answered", "score": factor * score}
            for question, score in zip(questions.questions, (1.0, 0.0, 0.5, 1.0, 1.0, 0.25), strict=True)
        }
        questions.add_run(questions.questions, outcomes, world=world, library=library, reasoner="humaniq")
    return questions


def compare(made: ComparedRuns) -> RunComparison:
    return compare_runs(made.database, [run.id for run in made.runs], made.runs[0].id, F1)


def test_scores_by_difficulty_are_in_the_order_of_its_numbers(made: ComparedRuns):
    rows = list_group_rows(made.database, compare(made), "difficulty", lambda _world: None)
    first = [(row["group"], row["questions"], row["score"]) for row in rows if row["id"] == str(made.runs[0].id)]
    assert first == [("1", 2, 0.5), ("2", 1, 0.5), ("10", 2, 1.0), ("unknown", 1, 0.25)]
    assert [row["score"] for row in rows[4:]] == [0.25, 0.25, 0.5, 0.125]
    assert sum(row["share"] for row in rows[:4]) == pytest.approx(1.0)
    assert len(list(format_group_lines(rows))) == 2 + 8


def test_scores_by_size_are_those_of_the_worlds_of_the_runs(made: ComparedRuns):
    rows = list_group_rows(made.database, compare(made), SIZE, {"small": 50, "large": 5_000}.get)
    assert [(row["group"], row["questions"], row["score"]) for row in rows] == [
        ("50", 6, pytest.approx(3.75 / 6)),
        ("5000", 6, pytest.approx(3.75 / 12)),
    ]


@pytest.mark.parametrize("by", GROUPINGS)
def test_every_grouping_counts_every_question_once_but_sources(made: ComparedRuns, by: str):
    rows = list_group_rows(made.database, compare(made), by, lambda _world: None)
    # Failures alone have an error: three of the first run and all of the second.
    assert sum(row["questions"] for row in rows) == {SOURCE: 0, ERROR: 9}.get(by, 12)


def test_an_unknown_grouping_is_refused_with_those_there_are(made: ComparedRuns):
    with pytest.raises(
        Conflict, match="no grouping 'colour'; choose one of kind, hops, difficulty, answers, date, tag, error, size"
    ):
        list_group_rows(made.database, compare(made), "colour", lambda _world: None)


def test_a_source_has_its_recall_precision_and_prevalence_and_agreement_its_accuracy(database: Database):
    made = make_questions(database, 4, seed=72)
    wrong = {"text": "Rome", "graph": None, "model": "Oslo"}
    outcomes = {}
    for number, question in enumerate(made.questions):
        gold = question.gold_answers[0]["text"]
        agreeing = {"text": gold, "graph": gold, "model": gold if number == 0 else None}
        sources = agreeing if number < 2 else wrong
        given = gold if number < 2 else "Oslo"
        outcomes[question.id, 1] = {
            "ending": "answered",
            "answer": given,
            "score": float(number < 2),
            "sources": sources,
        }
    for _ in range(2):
        made.add_run(made.questions, outcomes)
    comparison = compare_runs(database, [run.id for run in made.runs], made.runs[0].id, F1)
    by_source = list_group_rows(database, comparison, SOURCE, lambda _world: None)[:3]
    figures = {row["group"]: (row["share"], row["score"], row["chosen"]) for row in by_source}
    assert figures == {"text": (1.0, 0.5, 0.5), "graph": (0.5, 1.0, 0.5), "model": (0.75, pytest.approx(1 / 3), 0.75)}
    by_agreement = list_group_rows(database, comparison, AGREEMENT, lambda _world: None)[:3]
    assert {row["group"]: (row["share"], row["score"]) for row in by_agreement} == {
        "all agree": (0.25, 1.0),
        "two agree": (0.25, 1.0),
        "conflict": (0.5, 0.0),
    }


def test_scores_before_and_after_a_cutoff_are_in_wilson_intervals(database: Database):
    made = make_questions(database, 12, seed=73)
    rows = [
        {"question": question.text, "Date": "2021-09-30" if place < 9 else "12 May 2022"}
        for place, question in enumerate(made.questions)
    ]
    with database.begin() as session:
        for question, row in zip(made.questions, rows, strict=True):
            stored = session.get_one(Question, question.id)
            stored.details = parse_question(row, Path("rows.jsonl"), None).details
            stored.tags = ["recent", "hard"] if row["Date"] != "2021-09-30" else []
    for right in (12, 8):
        scores = {
            (question.id, 1): {"ending": "answered", "score": float(place < right)}
            for place, question in enumerate(made.questions)
        }
        made.add_run(made.questions, scores)
    before, after, other_before, other_after = list_group_rows(database, compare(made), DATE, lambda _: None, "2021-09")
    assert [row["group"] for row in (before, after)] == ["until 2021-09", "after 2021-09"]
    assert [(row["questions"], row["score"]) for row in (before, after, other_after)] == [(9, 1.0), (3, 1.0), (3, 0.0)]
    # All right is no certainty: Wilson's bounds of 9 of 9, of 3 of 3 and of 8 of 9, by his formula.
    assert (before["score_low"], after["score_low"]) == (pytest.approx(9 / (9 + Z2)), pytest.approx(3 / (3 + Z2)))
    middle, half = 8 + Z2 / 2, (Z2 * (8 / 9 + Z2 / 4)) ** 0.5
    ends = other_before["score_low"], other_before["score_high"]
    assert ends == pytest.approx(((middle - half) / (9 + Z2), (middle + half) / (9 + Z2)))
    years = list_group_rows(database, compare(made), DATE, lambda _: None)[:2]
    assert [(row["group"], row["questions"]) for row in years] == [("2021", 9), ("2022", 3)]
    tags = list_group_rows(database, compare(made), TAG, lambda _: None)[:3]
    assert [(row["group"], row["questions"], row["share"]) for row in tags] == [
        ("hard", 3, 0.25),
        ("no tag", 9, 0.75),
        ("recent", 3, 0.25),
    ]
    with pytest.raises(Conflict, match="the cutoff 'soon' is no date"):
        list_group_rows(database, compare(made), DATE, lambda _: None, "soon")


@pytest.mark.parametrize(
    ("text", "cutoff", "group"),
    [
        ("2021-09-30T23:59:00Z", "2021-09-30", "until 2021-09-30"),
        ("2021-10-01 08:00", "30 September 2021", "after 30 September 2021"),
        ("2022-01-01", "2022-01-01", "until 2022-01-01"),
        ("2021", "2021-09-30", "before or after 2021-09-30"),
        ("2021.0", "2021", "until 2021"),
        ("January 1, 2022", "2022-01-15", "until 2022-01-15"),
        ("September 2021", "2021-09-30", "until 2021-09-30"),
        ("March 5, 2023", "2021", "after 2021"),
        ("last week", "2021", "unknown"),
        ("2021-13-45", "2021", "unknown"),
        ("-0044-03-15", "", "unknown"),
        ("1999-12-31", "", "1999"),
    ],
)
def test_a_date_in_any_notation_is_before_or_after_the_last_day_of_the_cutoff(text: str, cutoff: str, group: str):
    assert describe_period(text, cutoff) == group


@pytest.mark.parametrize(("worlds", "noted"), [(["small"], True), (["large", "elsewhere"], False), ([], False)])
def test_a_run_with_demonstrations_of_its_own_world_says_so(made: ComparedRuns, worlds: list[str], *, noted: bool):
    with made.database.begin() as session:
        session.add(Library(name="people", number=1, card={"worlds": worlds}))
    notes = [warning for warning in compare(made).warnings if warning.kind == TESTED_WORLD]
    assert [(note.run_id, note.is_note) for note in notes] == ([(made.runs[0].id, True)] if noted else [])
    assert all("people:1" in note.sentence for note in notes)


@pytest.mark.parametrize(
    ("reasoner", "options", "notes"),
    [("humaniq", {"selection": "none"}, 0), ("react", {}, 0), ("atomr", {"shots": 0}, 0), ("gone", {"k": 0}, 1)],
)
def test_a_run_that_was_shown_no_demonstration_says_nothing_of_them(
    made: ComparedRuns, reasoner: str, options: dict[str, Any], notes: int
):
    with made.database.begin() as session:
        session.add(Library(name="people", number=1, card={"worlds": ["small"]}))
        session.get_one(Run, made.runs[0].id).spec = RunSpec(reasoner=reasoner, options=options, library="people:1")
    assert [warning.kind for warning in compare(made).warnings].count(TESTED_WORLD) == notes
