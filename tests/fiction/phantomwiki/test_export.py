"""Export in the published layout, and re-import of the export."""

import json
from pathlib import Path
from typing import Any

import pytest

from showhow.fiction.generator.build import generate_world
from showhow.fiction.phantomwiki.articles import (
    InstanceExport,
    derive_facts,
    export_instance,
    format_article,
    generate_facts,
    generate_rules,
    parse_sentence,
    parse_sentences,
    read_articles,
)
from showhow.fiction.phantomwiki.instance import import_instance
from showhow.fiction.phantomwiki.prolog import parse_facts
from showhow.fiction.phantomwiki.records import ValueCodec
from showhow.fiction.questions.evaluate import ExpressionEvaluator
from showhow.fiction.questions.expressions import (
    Both,
    Count,
    Expression,
    Fact,
    Having,
    Named,
    Related,
    encode_expression,
)
from showhow.fiction.questions.question_file import QUESTIONS_FILE, read_question_rows
from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.relations import RELATIONS
from showhow.fiction.universe.universe import FACTS, Universe
from showhow.fiction.verification import verify_world
from showhow.fiction.verification_checks import format_answers
from showhow.worlds.folder import WorldError, world_folder
from tests.fiction.phantomwiki import small_instance

OPTIONS = GenerationOptions(people=80, seed=5, collisions=0.1, depth=4, per_template=0)
PERSON = Named(7)
JUDGES = Having("job", 3)
EXPRESSIBLE: list[Expression] = [
    *(Related(relation, Related("parent", PERSON)) for relation in RELATIONS),
    Fact("birth", Related("friend", PERSON)),
    Fact("hobby", Having("birth", int(make_universe(OPTIONS).birth[7]))),
    Count(Related("friend", Related("parent", PERSON)), each=True),
    Count(Related("friend", PERSON)),
]
INEXPRESSIBLE: list[Expression] = [
    Fact("birthplace", Related("friend", PERSON)),
    Both(Related("friend", PERSON), JUDGES),
    Count(Both(Related("friend", PERSON), JUDGES)),
    # The total number of friends differs from the number for each person.
    Count(Related("friend", Related("parent", PERSON))),
]


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of worlds with a generated one and handmade questions."""
    worlds = tmp_path_factory.mktemp("home") / "worlds"
    generate_world(worlds, "kin", OPTIONS)
    universe = make_universe(OPTIONS)
    rows = [_row(number, expression, universe) for number, expression in enumerate([*EXPRESSIBLE, *INEXPRESSIBLE])]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (world_folder(worlds, "kin") / QUESTIONS_FILE).write_text(text, encoding="utf-8")
    return worlds


def _row(number: int, expression: Expression, universe: Universe) -> dict[str, Any]:
    answers = format_answers(ExpressionEvaluator(universe).evaluate(expression), universe)
    expected = [{"text": text, "entity": entity} for text, entity in answers]
    return {"id": f"g{number}", "text": "?", "expression": encode_expression(expression), "answers": expected}


def test_an_exported_world_imports_with_the_same_people_and_answers(worlds: Path, tmp_path: Path):
    export = export_instance(worlds, "kin", tmp_path / "folder")
    assert export == InstanceExport(80, len(EXPRESSIBLE), len(INEXPRESSIBLE), "depth_7_size_80_seed_5")
    import_instance(worlds, "back", tmp_path / "folder", {}, replace=True)
    assert verify_world(worlds, "back", print).first_differences == []
    by_id = {row["id"]: row for row in read_question_rows(worlds / "kin")}
    for row in read_question_rows(worlds / "back"):
        original = by_id.pop(row["id"])
        answers = [sorted(answer["text"] for answer in record["answers"]) for record in (row, original)]
        assert answers[0] == answers[1]
    assert [int(left[1:]) for left in by_id] == list(range(len(EXPRESSIBLE), len(EXPRESSIBLE) + len(INEXPRESSIBLE)))


def test_an_export_has_all_fields_of_the_published_evaluator(worlds: Path, tmp_path: Path):
    export_instance(worlds, "kin", tmp_path / "folder")
    questions = json.loads((tmp_path / "folder" / "questions.json").read_text(encoding="utf-8"))
    published = small_instance.questions()[0].keys() | {"solution_traces", "is_aggregation_question"}
    assert all(question.keys() == published for question in questions)
    assert {type(question["template"]) for question in questions} == {list}
    assert sum(question["is_aggregation_question"] for question in questions) == 2
    articles = json.loads((tmp_path / "folder" / "articles.json").read_text(encoding="utf-8"))
    assert [article["title"] for article in articles] == list(make_universe(OPTIONS).titles)
    assert {tuple(article) for article in articles} == {("title", "article", "facts")}


@pytest.mark.parametrize("seed", range(3))
def test_exported_facts_parse_to_the_same_universe(seed: int):
    universe = make_universe(GenerationOptions(people=120, seed=seed, collisions=0.2))
    program = "\n".join([*generate_rules(), *generate_facts(ValueCodec(universe))])
    back = parse_facts(Path("facts.pl"), program).universe
    assert back.titles == tuple(universe.titles)
    assert back.female.tolist() == universe.female.tolist()
    assert back.friends.pairs.tolist() == universe.friends.pairs.tolist()
    for fact in set(FACTS) - {"death", "wedding", "birthplace", "residence", "job", "hobby"}:
        assert getattr(back, fact).tolist() == getattr(universe, fact).tolist()
    for fact, texts in (("job", (back.jobs, universe.jobs)), ("hobby", (back.hobbies, universe.hobbies))):
        both = [
            [names[value] for value in getattr(one, fact)] for one, names in zip((back, universe), texts, strict=True)
        ]
        assert both[0] == both[1]


def test_couples_without_children_are_exported_as_facts():
    universe = parse_facts(Path("facts.pl"), f'{small_instance.FACTS}\nmarried_("Ed Oak", "Di Lee").').universe
    assert [line for line in generate_facts(ValueCodec(universe)) if line.startswith("married_")] == [
        'married_("Di Lee", "Ed Oak").'
    ]


@pytest.mark.parametrize("name", ["depth_20_size_25_seed_2", "depth_20_size_50_seed_3"])
def test_published_articles_are_reproduced_except_for_the_order_of_friends(shared_data: Path, name: str):
    folder = shared_data / "phantomwiki" / name
    values = ValueCodec(parse_facts(folder / "facts.pl", (folder / "facts.pl").read_text(encoding="utf-8")).universe)
    for article in read_articles((folder / "articles.json",)):
        facts = list(derive_facts(values, values.parse_value("person", article.title)))
        formatted = format_article(article.title, facts)
        assert _without_friends(formatted) == _without_friends(article.text)
        sentences, _ = parse_sentences(formatted)
        assert [fact for sentence in sentences for fact in parse_sentence(article.title, sentence)] == facts


def _without_friends(text: str) -> list[str]:
    return [line for line in text.split("\n") if not line.startswith("The friends of ")]


def test_an_export_needs_a_new_or_empty_folder_and_a_failure_writes_nothing(worlds: Path, tmp_path: Path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(WorldError, match="is not empty; name a new folder"):
        export_instance(worlds, "kin", tmp_path / "full")
    (tmp_path / "empty").mkdir()
    assert export_instance(worlds, "kin", tmp_path / "empty").people == 80
    with pytest.raises(WorldError, match="cannot be written"):
        export_instance(worlds, "kin", tmp_path / "full" / "mine.txt" / "folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "full"]


def test_a_world_without_a_universe_cannot_be_exported(worlds: Path, tmp_path: Path):
    (worlds / "bare").mkdir()
    (worlds / "bare" / "world.toml").write_text('name = "bare"\n', encoding="utf-8")
    with pytest.raises(WorldError, match="The world bare has no universe"):
        export_instance(worlds, "bare", tmp_path / "folder")
    with pytest.raises(WorldError, match="The world bare has no universe"):
        verify_world(worlds, "bare", print)
