import json
from pathlib import Path

import numpy as np
import pytest

from showhow.db.database import Database
from showhow.db.questions import projects
from showhow.db.storage.schema import upgrade
from showhow.db.unanswerable import find_gold_reason
from showhow.evaluation.datasets import read_questions
from showhow.fiction.generator.source_split import assign_sources, parse_split
from showhow.fiction.questions.evaluate import ExpressionEvaluator, FactEvaluator
from showhow.fiction.questions.expressions import Fact, Named, Related, decode_expression
from showhow.fiction.questions.names import NameFormatter, ThingCatalog
from showhow.fiction.questions.needs import find_absent_kinds
from showhow.fiction.questions.question import GeneratedQuestion
from showhow.fiction.questions.reasoning import ReasoningBuilder
from showhow.fiction.questions.templates import sample_questions
from showhow.fiction.questions.wording import noun_phrase
from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.items import ItemCatalog
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.relations import find_related, get_relation
from showhow.fiction.universe.universe import SOURCES

OPTIONS = GenerationOptions(
    people=120, seed=6, depth=8, per_template=1, split="text=40,graph=40,web=20", collisions=0.2
)
UNIVERSE = make_universe(OPTIONS)
THINGS = ThingCatalog(UNIVERSE, ItemCatalog(UNIVERSE), NameFormatter(UNIVERSE))


@pytest.fixture(scope="module")
def questions() -> list[GeneratedQuestion]:
    return list(sample_questions(UNIVERSE, assign_sources(UNIVERSE, parse_split(OPTIONS.split), OPTIONS.seed), OPTIONS))


@pytest.fixture
def file(questions: list[GeneratedQuestion], tmp_path: Path) -> Path:
    lines = [json.dumps(one.to_row(), ensure_ascii=False) for one in questions]
    (tmp_path / "questions.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path / "questions.jsonl"


def test_a_row_has_all_gold_parts_and_is_json(questions: list[GeneratedQuestion]) -> None:
    for one in questions:
        row = json.loads(json.dumps(one.to_row()))
        assert row == one.to_row()
        assert decode_expression(row["expression"]) == one.expression
        assert list(row) == [
            *("id", "text", "kind", "template", "answers", "difficulty", "hops", "structure", "needs"),
            *("expression", "sparql", "tree", "triples", "subquestions", "decomposition"),
            *([] if one.minimal is None else ["minimal"]),
            *([] if one.false_premise is None else ["false_premise"]),
            *([] if one.pair is None else ["pair"]),
        ]


def test_the_facts_of_a_question_alone_give_its_answers_and_a_minimal_question_needs_each(
    questions: list[GeneratedQuestion],
) -> None:
    reasoning = ReasoningBuilder(THINGS)
    minimal = set()
    for one in questions:
        root = reasoning.build_tree(one.expression)
        facts = {fact for leaf in root.leaves() for fact in reasoning.supporting_facts(leaf)}
        answers = frozenset(ExpressionEvaluator(UNIVERSE).evaluate(one.expression).values)
        assert FactEvaluator(facts, UNIVERSE.today).evaluate(one.expression) == answers, one.text
        # Another route: one evaluator per set of facts, for every set that lacks one.
        rest = [FactEvaluator(facts - {fact}, UNIVERSE.today).evaluate(one.expression) for fact in facts]
        needs_each = answers not in rest if answers and facts else None
        # What also presumes that there is something not, such as a death, is not minimal.
        presumes = needs_each and bool(find_absent_kinds(one.expression, root, UNIVERSE))
        assert one.minimal == (False if presumes else needs_each), one.text
        minimal.add(one.minimal)
    assert minimal == {True, False, None}


def test_the_gold_of_a_false_premise_names_people_without_the_relation_and_only_the_premise_fails(
    questions: list[GeneratedQuestion],
) -> None:
    titles, names = {title: row for row, title in enumerate(UNIVERSE.titles)}, NameFormatter(UNIVERSE)
    asked = [one for one in questions if one.kind == "false premise"]
    assert len(asked) == 6
    for one in asked:
        assert one.false_premise is not None
        assert isinstance(one.expression, Fact)
        assert isinstance(one.expression.of, Related)
        relation = get_relation(one.expression.of.relation)
        assert one.false_premise["relation"] == relation.common_noun
        rows = [titles[str(subject["text"])] for subject in one.false_premise["subjects"]]
        assert tuple(rows) == ExpressionEvaluator(UNIVERSE).evaluate(one.expression.of.of).values
        assert len(find_related(UNIVERSE, relation, np.array(rows, np.int32))) == 0
        assert one.false_premise["text"].endswith(f" no {relation.common_noun}.")
        if isinstance(one.expression.of.of, Named):
            assert one.false_premise["text"].startswith(f"{noun_phrase(one.expression.of.of, names)} has no ")
    assert all(one.false_premise is None for one in questions if one.answers)


def test_every_formalism_ends_with_the_answers(questions: list[GeneratedQuestion]) -> None:
    for one in questions:
        assert one.tree["question"] == one.text
        assert one.tree["count"] == one.subquestions[-1]["count"] == len(one.answers)
        assert one.tree["answers"] == one.subquestions[-1]["answers"] == one.answers[:20]


def test_answers_with_an_item_in_the_graph_have_its_id(questions: list[GeneratedQuestion]) -> None:
    for one in questions:
        answer = ExpressionEvaluator(UNIVERSE).evaluate(one.expression)
        items = answer.kind in ("person", "job", "hobby", "town", "region", "country")
        assert all((answer["entity"] is not None) == items for answer in one.answers)


def test_needs_are_minimal_sets_of_sources(questions: list[GeneratedQuestion]) -> None:
    for one in questions:
        sets = [set(sources) for sources in one.needs]
        assert sets
        assert all(sources and sources <= set(SOURCES) for sources in sets)
        assert not any(less < more for less in sets for more in sets)
    # With a split over three sources some questions need one source, and some need more.
    assert {len(one.needs[0]) for one in questions} >= {1, 2}


def test_the_rows_are_read_as_questions(questions: list[GeneratedQuestion], file: Path) -> None:
    records = list(read_questions(file, "jsonl"))
    for one, record in zip(questions, records, strict=True):
        assert (record.text, record.source_id, record.kind) == (one.text, one.id, one.kind)
        if one.answers:
            assert record.gold_answers == one.answers
        else:
            assert find_gold_reason(record.gold_answers) is not None
        assert record.decomposition == one.triples["completed"]
        assert record.details["sparql"] == one.sparql
        assert record.details["needs"] == one.needs


def test_imported_questions_are_queued_with_their_gold_answers(file: Path, tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'showhow.db'}")
    upgrade(database)
    records = list(read_questions(file, "auto"))
    with database.begin() as session:
        project = projects.get_or_create_project(session, "Worlds", world="generated")
        added = projects.add_questions(session, project.id, records)
        again = projects.add_questions(session, project.id, records)
    assert (added.added, again.existing) == (len(records), len(records))
    with database.read() as session:
        stored = projects.list_questions(session, project.id, limit=len(records), after=0)
    assert [one.text for one in stored] == [record.text for record in records]
    assert [one.gold_answers for one in stored] == [record.gold_answers for record in records]
    assert [one.details["needs"] for one in stored] == [record.details["needs"] for record in records]
    database.close()
