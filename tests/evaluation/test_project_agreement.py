"""The agreement of a project's people: each measure, its groups, who may see it, and how it is read."""

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from sqlalchemy import event

from showhow.db.database import Conflict, Database
from showhow.db.models import Judgement
from showhow.db.people import users
from showhow.db.people.users import ActingPerson
from showhow.db.questions import projects
from showhow.db.storage.schema import upgrade
from showhow.db.unanswerable import UnanswerableReason, write_unanswerable
from showhow.evaluation.comparison.project_agreement import (
    FIGURE_GROUPINGS,
    list_sources,
    load_shared_work,
    measure_groups,
    measure_units,
    read_answers,
    sort_by_distance,
)
from tests.app.cli.in_process import run_in_process
from tests.evaluation.scripted_annotators import make_questions, read_article, record, record_team, search

TEAM = {"ada": 0.95, "ben": 0.9, "cyd": 0.3}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    stored = Database(f"sqlite:///{tmp_path / 'showhow.db'}", is_durable=False)
    upgrade(stored)
    yield stored
    stored.close()


def load(database: Database, name: str = "p"):
    with database.read() as session:
        project = projects.get_project(session, name)
    return load_shared_work(database, project)


def test_a_scripted_team_is_recovered_by_measure_pair_person_kind_and_week(database: Database):
    record_team(database, make_questions(database, "p", 30), TEAM)
    units = load(database)
    assert list(units) == ["answer", "answer_set", "answer_masi", "tools", "steps", "sources", "ratings"]
    pairs = {entry.group: entry for entry in measure_groups("answer", units["answer"], "pair")}
    assert list(pairs) == ["ada and ben", "ada and cyd", "ben and cyd"]
    for one, other in combinations(TEAM, 2):
        measured = pairs[f"{one} and {other}"]
        # Two who know the truth with p and q, and else guess evenly, have the alpha p * q.
        assert measured.agreement.interval.low <= TEAM[one] * TEAM[other] <= measured.agreement.interval.high
        assert measured.kappa == pytest.approx(measured.agreement.alpha, abs=0.05)
        assert measured.ac1 == pytest.approx(measured.agreement.alpha, abs=0.1)
    overall = measure_units("answer", units["answer"]).agreement
    assert (overall.units, overall.pairs, overall.people) == (30, 90, 3)
    assert overall.by_person["cyd"] > overall.by_person["ben"]
    # An answer is the one article that was read, so that these agree equally.
    for measure in ("answer_set", "answer_masi", "sources"):
        assert measure_units(measure, units[measure]).agreement.alpha == pytest.approx(overall.alpha)
    assert {entry.group: entry.agreement.units for entry in measure_groups("answer", units["answer"], "kind")} == {
        "count": 10,
        "person": 10,
        "place": 10,
    }
    weeks = {entry.group: entry.agreement.units for entry in measure_groups("answer", units["answer"], "week")}
    assert weeks == {"2026-03-02": 7, "2026-03-09": 7, "2026-03-16": 7, "2026-03-23": 7, "2026-03-30": 2}
    distances = [distance for distance, _ in sort_by_distance("answer", units["answer"])]
    assert distances == sorted(distances, reverse=True)
    assert sum(distances) == pytest.approx(30 * (1 - overall.same))


def test_tools_steps_sources_and_ratings_are_compared_as_they_are_defined(database: Database):
    (question,) = make_questions(database, "p", 1)
    record(database, question, "ada", "Lund", [search("a"), search("b"), read_article("Lund", 5)])
    record(database, question, "ben", "Lund, Kiel", [search("a"), search("c"), read_article("Lund", 3), search("d")])
    units = load(database)

    def distance(measure):
        ((apart, _),) = sort_by_distance(measure, units[measure])
        return apart

    assert distance("answer") == 1
    assert distance("answer_set") == pytest.approx(1 / 2)
    assert distance("answer_masi") == pytest.approx(2 / 3)
    assert distance("tools") == pytest.approx(1 / 4)
    assert distance("steps") == pytest.approx(1.5 / 4)
    # Nobody read what a search listed.
    assert distance("sources") == 0
    (rated,) = units["ratings"]
    assert (rated.values, rated.subject) == ({"ada": 5, "ben": 3}, "Read Where?, Lund")


def test_the_latest_trace_of_a_person_counts_and_a_question_of_one_person_does_not(database: Database):
    first, second, _ = make_questions(database, "p", 3)
    for question, person, text in [
        (first, "ada", "Lund"),
        (first, "ben", "Kiel"),
        (first, "ben", "lund"),
        (second, "ada", "Lund"),
        (second, "ada", "Kiel"),
    ]:
        record(database, question, person, text)
    units = load(database)
    measured = measure_units("answer", units["answer"])
    assert (measured.agreement.units, measured.agreement.same, measured.agreement.alpha) == (1, 1.0, None)
    assert measured.to_json()["not_defined"].startswith("all values are the same")
    assert "ratings" not in units


def test_judged_answers_leave_out_what_cannot_be_judged_and_count_it_once_as_a_label(database: Database):
    (question,) = make_questions(database, "p", 1)
    traces = [record(database, question, "ada", "Lund") for _ in range(3)]
    labels = [("true", "true"), ("false", "cannot judge"), ("true", "false")]
    with database.begin() as session:
        judges = [users.register_user(session, name).id for name in ("eve", "fay")]
        for trace, values in zip(traces, labels, strict=True):
            for judge, value in zip(judges, values, strict=True):
                session.add(Judgement(trace_id=trace, aspect="truthfulness", value=value, judge_id=judge))
                session.add(Judgement(trace_id=trace, aspect="quality", value="poor", judge_id=judge))
                session.add(Judgement(trace_id=trace, aspect="approval", value="approved", judge_id=judge))
    units = load(database)
    assert list(units) == ["truthfulness", "truthfulness_all", "quality"]
    figures = {name: measure_units(name, units[name]).agreement for name in units}
    assert [(name, entry.units, entry.same) for name, entry in figures.items()] == [
        ("truthfulness", 2, 0.5),
        ("truthfulness_all", 3, pytest.approx(1 / 3)),
        ("quality", 3, 1.0),
    ]


def test_only_reviewers_and_administrators_read_the_work_of_others_in_a_bounded_number_of_queries(database: Database):
    record_team(database, make_questions(database, "p", 4), TEAM)
    with database.begin() as session:
        users.set_roles(session, "ben", [users.REVIEWER])
        users.set_roles(session, "cyd", [users.ANNOTATOR])
    for name in ("cyd", "nobody"):
        with pytest.raises(Conflict):
            load(database.acting_as(ActingPerson(name, is_local=False)))
    statements: list[str] = []
    acting = database.acting_as(ActingPerson("ben", is_local=False))
    event.listen(acting._read_engine, "before_cursor_execute", lambda *call: statements.append(call[2]))
    assert load(acting)
    few = len(statements)
    record_team(database, make_questions(database, "q", 12), TEAM)
    statements.clear()
    assert load(acting, "q")
    assert len(statements) == few <= 12


@pytest.mark.parametrize(
    ("answers", "groups"),
    [
        (["Ada Lund", "lund, ada", "Ben"], 2),
        (["John Smith (judge)", "John Smith (painter)"], 2),
        (["1,000 km", "1000 km"], 1),
        (["Lund and Kiel", "Kiel, Lund"], 1),
        (["Yes.", "yes, it is", "no"], 2),
        ([write_unanswerable(UnanswerableReason.AMBIGUOUS), write_unanswerable(UnanswerableReason.FALSE_PREMISE)], 1),
    ],
)
def test_equal_answers_have_one_value_and_others_another(answers, groups):
    given = dict(zip("abc", answers, strict=False))
    assert len(set(read_answers(given, is_text=True).values())) == groups


def test_answers_of_a_schema_share_their_fields_and_items():
    fields = read_answers({"a": '{"spam": true, "team": "x"}', "b": '{"spam": true, "team": "y"}'}, is_text=False)
    assert fields["a"] & fields["b"] == {"spam: true"}
    items = read_answers({"a": "[1, 2]", "b": "[2, 1]", "c": "3"}, is_text=False)
    assert items["a"] == items["b"] != items["c"] == {"3"}


@pytest.mark.parametrize(
    ("data", "sources"),
    [
        ({"title": "Lund", "entity": "Q1", "sentences": ["A town."]}, {("article", "Lund")}),
        ({"title": "A page", "address": "https://x.example", "sentences": []}, {("article", "https://x.example")}),
        ({"title": "Mercury", "entity": None, "hits": [{"title": "Mercury (planet)"}]}, set()),
        (
            {"entity": "Q1", "relation": "P1", "direction": "tail", "values": [{"id": "Q2"}]},
            {("triple", "Q2", "P1", "Q1")},
        ),
        (
            {"entity": "Q1", "relation": "P2", "direction": "head", "values": [{"literal": "1824"}]},
            {("triple", "Q1", "P2", "1824")},
        ),
        ({"entity": "Q1", "direction": "head", "relations": [{"id": "P1"}]}, {("entity", "Q1")}),
        (
            {"columns": ["a", "b"], "rows": [[{"kind": "entity", "value": "Q3"}, None]], "boolean": None},
            {("entity", "Q3")},
        ),
        ({"result": {"entity": "Q1"}}, set()),
    ],
)
def test_sources_are_the_articles_entities_and_triples_of_an_observation(data, sources):
    assert set(list_sources(data)) == sources


def test_the_verb_has_all_figures_and_the_questions_of_a_measure(database: Database, tmp_path: Path):
    record_team(database, make_questions(database, "p", 6), TEAM)
    printed = run_in_process(tmp_path, "project", "agreement", "p", "--measure", "tools", "--questions", "--json")
    value = json.loads(printed.stdout)
    assert [entry["group"] for entry in value["measures"]][:4] == ["answer", "answer_set", "answer_masi", "tools"]
    assert list(value["groups"]) == list(FIGURE_GROUPINGS)
    assert [len(entry["traces"]) for entry in value["questions"]] == [3] * 6
    text = run_in_process(tmp_path, "project", "agreement", "p", "--questions").stdout
    assert "answer by pair of people" in text
    assert "Who owns quay 5?" in text
    for words, reason in (
        (("p", "--measure", "colour"), "choose from answer, answer_set"),
        (("empty",), "answered by two people"),
    ):
        if words[0] == "empty":
            make_questions(database, "empty", 1)
        failed = run_in_process(tmp_path, "project", "agreement", *words)
        assert failed.returncode == 1
        assert reason in failed.stderr
