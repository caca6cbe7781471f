"""Gold triples: matching the decomposition as a pattern gives the gold answers."""

from collections.abc import Iterator
from datetime import date
from typing import Any

from hypothesis import given, settings

from showhow.fiction.questions import expressions as ask
from showhow.fiction.questions.decomposition import build_triples, classify_structure
from showhow.fiction.questions.evaluate import ExpressionEvaluator
from showhow.fiction.questions.reasoning import ReasoningBuilder
from showhow.fiction.universe.items import PROPERTY_LABELS
from tests.examples import examples
from tests.fiction.questions.plain_world import FACTS, WOMEN, PlainWorld, parse_day
from tests.fiction.questions.sample_expressions import EXPRESSIONS, THINGS, UNIVERSE

WORLD = PlainWorld(UNIVERSE)
Known = dict[str, dict[str, set[str]]]
"""Facts by relation and subject."""
Binding = dict[str, str]
BASE = {
    "daughter": "child",
    "son": "child",
    "sister": "sibling",
    "brother": "sibling",
    "wife": "spouse",
    "husband": "spouse",
}


def decompose(expression: ask.Expression) -> dict[str, Any]:
    reasoning = ReasoningBuilder(THINGS)
    return build_triples(expression, reasoning, reasoning.build_tree(expression))


def everything() -> Known:
    """All facts of the plain world by relation label."""
    facts_by_relation: Known = {
        "sex or gender": {t: {"female" if p["female"] else "male"} for t, p in WORLD.people.items()}
    }
    for relation in ("father", "mother", "spouse", "child", "sibling", "friend", *FACTS):
        facts_by_relation[relation] = {title: set(map(text, WORLD.relate(title, relation))) for title in WORLD.people}
    facts_by_relation["located in"] = {town: {region} for town, (region, _) in WORLD.towns.items()}
    facts_by_relation["country"] = {town: {country} for town, (_, country) in WORLD.towns.items()}
    return facts_by_relation


def text(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)


EVERYTHING = everything()


def completed(rows: list[dict[str, Any]]) -> Known:
    facts_by_relation: Known = {}
    for row in rows:
        facts_by_relation.setdefault(row["relation"], {}).setdefault(row["subject"], set()).add(row["object"])
    return facts_by_relation


def facts(facts_by_relation: Known, relation: str) -> Iterator[tuple[str, str]]:
    """Pairs of a relation by its label."""
    if relation == "parent":
        yield from (*facts(facts_by_relation, "father"), *facts(facts_by_relation, "mother"))
        return
    base = {**BASE, "region": "located in"}.get(relation, relation)
    for subject, objects in facts_by_relation.get(base, {}).items():
        for person in objects:
            gender = facts_by_relation.get("sex or gender", {}).get(person, set())
            expected = {"female"} if relation in WOMEN else {"male"}
            # Only relations that the graph does not have need the gender; "father" implies it.
            if relation not in BASE or gender == expected:
                yield subject, person


def match(pattern: list[list[str]], facts_by_relation: Known) -> list[Binding]:
    """All bindings of the unknowns."""
    bindings: list[Binding] = [{}]
    for subject, relation, value in pattern:
        pairs = sorted(facts(facts_by_relation, relation))
        bindings = [
            new
            for binding in bindings
            for left, right in pairs
            if (new := fill(fill(binding, subject, left), value, right)) is not None
        ]
    return bindings


def fill(binding: Binding | None, name: str, value: str) -> Binding | None:
    if binding is None:
        return None
    if "#" in name:
        return {**binding, name: value} if binding.get(name, value) == value else None
    for test in ("before", "after"):
        if name.startswith(f"{test} "):
            day = parse_day(name.removeprefix(f"{test} ")).isoformat()
            return binding if (value < day if test == "before" else value > day) else None
    return binding if value == name or (name[:1].isdigit() and parse_day(name).isoformat() == value) else None


def answers_of(expression: ask.Expression, pattern: list[list[str]], facts_by_relation: Known) -> list[str]:
    """Answers of an expression without comparison, from the bindings."""
    if isinstance(expression, ask.Count):
        return [str(len(answers_of(expression.of, pattern, facts_by_relation)))]
    if not pattern:
        assert isinstance(expression, ask.Named)
        return [UNIVERSE.titles[expression.person]]
    bindings = match(pattern, facts_by_relation)
    if isinstance(expression, ask.Most):
        *_, (person, _, day) = pattern
        end = (min if expression.first else max)((binding[day] for binding in bindings), default="")
        return sorted({binding.get(person, person) for binding in bindings if binding[day] == end})
    subject, _, value = pattern[-1]
    unknown = subject if isinstance(expression, ask.Only | ask.Having | ask.Both) and "#" not in value else value
    return sorted({binding[unknown] for binding in bindings})


def is_simple(expression: ask.Expression) -> bool:
    """Whether it has no comparison or judgement, and superlatives only at the end."""
    if isinstance(expression, ask.Compare | ask.Same | ask.Judge):
        return False
    if isinstance(expression, ask.Count) and (expression.each or not expression.of):
        return False
    return not any(isinstance(part, ask.Most) or not is_simple(part) for part in ask.child_expressions(expression))


@settings(max_examples=examples(150))
@given(EXPRESSIONS.filter(is_simple))
def test_the_decomposition_is_a_pattern_whose_matches_are_the_answers(expression: Any) -> None:
    answer = ExpressionEvaluator(UNIVERSE).evaluate(expression)
    gold = sorted(THINGS.answer_text(answer.kind, value) for value in answer.values)
    triples = decompose(expression)
    assert answers_of(expression, triples["decomposition"], EVERYTHING) == gold


@settings(max_examples=examples(150))
@given(EXPRESSIONS.filter(is_simple))
def test_the_completed_triples_alone_suffice_for_the_answers(expression: Any) -> None:
    answer = ExpressionEvaluator(UNIVERSE).evaluate(expression)
    gold = sorted(THINGS.answer_text(answer.kind, value) for value in answer.values)
    triples = decompose(expression)
    if not triples.get("left_off"):
        assert answers_of(expression, triples["decomposition"], completed(triples["completed"])) == gold


@settings(max_examples=examples(200))
@given(EXPRESSIONS)
def test_every_completed_triple_is_a_fact_with_its_ids_and_is_unique(expression: Any) -> None:
    rows = decompose(expression)["completed"]
    for row in rows:
        assert row["object"] in EVERYTHING[row["relation"]][row["subject"]]
        assert PROPERTY_LABELS[row["pid"]][0] == row["relation"]
        for place in ("subject", "object"):
            if row[f"{place}_id"] in ("Q6581072", "Q6581097"):
                assert row["relation"] == "sex or gender"
            elif row[f"{place}_id"] is None:
                assert date.fromisoformat(row[place])
            else:
                kind, number = THINGS.items.locate(row[f"{place}_id"])
                assert THINGS.answer_text(kind, number) == row[place]
    assert len({tuple(row.values()) for row in rows}) == len(rows)


@settings(max_examples=examples(200))
@given(EXPRESSIONS)
def test_unknowns_are_numbered_in_order(expression: Any) -> None:
    pattern = decompose(expression)["decomposition"]
    names = dict.fromkeys(name for subject, _, value in pattern for name in (subject, value) if "#" in name)
    numbers = [int(name.partition("#")[2]) for name in names]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert all(len(triple) == 3 and all(triple) for triple in pattern)


@settings(max_examples=examples(100))
@given(EXPRESSIONS)
def test_a_chain_is_one_path_from_start_to_answer(expression: Any) -> None:
    pattern = decompose(expression)["decomposition"]
    if classify_structure(expression) == "chain":
        having = [triple for triple in pattern[:1] if "#" not in triple[2]]
        links = pattern[len(having) :]
        start = having[0][0] if having else (links[0][0] if links else "")
        for subject, _, value in links:
            assert subject == start
            start = value
    else:
        assert not ask.is_chain(expression)
