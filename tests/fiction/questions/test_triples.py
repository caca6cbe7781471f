"""The gold triples, read as a pattern and matched with a second program's facts, lead to the gold answers."""

from collections.abc import Iterator
from datetime import date
from typing import Any

from hypothesis import given, settings

from fiction.generator.items import PROPERTY_LABELS
from fiction.questions import expressions as ask
from fiction.questions.decomposition import build_triples, classify_structure
from fiction.questions.evaluate import ExpressionEvaluator
from fiction.questions.reasoning import ReasoningBuilder
from tests.examples import examples
from tests.fiction.questions.asked import EXPRESSIONS, THINGS, UNIVERSE
from tests.fiction.questions.plain_world import FACTS, WOMEN, PlainWorld, spoken

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


def told(expression: ask.Expression) -> dict[str, Any]:
    reasoning = ReasoningBuilder(THINGS)
    return build_triples(expression, reasoning, reasoning.build_tree(expression))


def everything() -> Known:
    """All facts of the plain world, as completed triples name them."""
    known: Known = {"sex or gender": {t: {"female" if p["female"] else "male"} for t, p in WORLD.people.items()}}
    for relation in ("father", "mother", "spouse", "child", "sibling", "friend", *FACTS):
        known[relation] = {title: set(map(text, WORLD.relate(title, relation))) for title in WORLD.people}
    known["located in"] = {town: {region} for town, (region, _) in WORLD.towns.items()}
    known["country"] = {town: {country} for town, (_, country) in WORLD.towns.items()}
    return known


def text(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)


EVERYTHING = everything()


def completed(rows: list[dict[str, Any]]) -> Known:
    known: Known = {}
    for row in rows:
        known.setdefault(row["relation"], {}).setdefault(row["subject"], set()).add(row["object"])
    return known


def facts(known: Known, relation: str) -> Iterator[tuple[str, str]]:
    """Who is related to what, by the words of a decomposition."""
    if relation == "parent":
        yield from (*facts(known, "father"), *facts(known, "mother"))
        return
    base = {**BASE, "region": "located in"}.get(relation, relation)
    for subject, objects in known.get(base, {}).items():
        for found in objects:
            gender = known.get("sex or gender", {}).get(found, set())
            wanted = {"female"} if relation in WOMEN else {"male"}
            # A father is a man by what the word says; only a word that the graph has not needs the gender.
            if relation not in BASE or gender == wanted:
                yield subject, found


def match(pattern: list[list[str]], known: Known) -> list[Binding]:
    """Every way to fill in what is to be found."""
    bindings: list[Binding] = [{}]
    for subject, relation, wanted in pattern:
        pairs = sorted(facts(known, relation))
        bindings = [
            new
            for binding in bindings
            for left, right in pairs
            if (new := fill(fill(binding, subject, left), wanted, right)) is not None
        ]
    return bindings


def fill(binding: Binding | None, name: str, value: str) -> Binding | None:
    if binding is None:
        return None
    if "#" in name:
        return {**binding, name: value} if binding.get(name, value) == value else None
    for test in ("before", "after"):
        if name.startswith(f"{test} "):
            day = spoken(name.removeprefix(f"{test} ")).isoformat()
            return binding if (value < day if test == "before" else value > day) else None
    return binding if value == name or (name[:1].isdigit() and spoken(name).isoformat() == value) else None


def answered(expression: ask.Expression, pattern: list[list[str]], known: Known) -> list[str]:
    """The answers to an expression that no relation compares, from what the pattern matches."""
    if isinstance(expression, ask.Count):
        return [str(len(answered(expression.of, pattern, known)))]
    if not pattern:
        assert isinstance(expression, ask.Named)
        return [UNIVERSE.titles[expression.person]]
    found = match(pattern, known)
    if isinstance(expression, ask.Most):
        *_, (person, _, day) = pattern
        end = (min if expression.first else max)((binding[day] for binding in found), default="")
        return sorted({binding.get(person, person) for binding in found if binding[day] == end})
    subject, _, wanted = pattern[-1]
    asked = subject if isinstance(expression, ask.Only | ask.Having | ask.Both) and "#" not in wanted else wanted
    return sorted({binding[asked] for binding in found})


def is_simple(expression: ask.Expression) -> bool:
    """Whether nothing is compared or judged, and an end is only looked for last."""
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
    found = told(expression)
    assert answered(expression, found["decomposition"], EVERYTHING) == gold


@settings(max_examples=examples(150))
@given(EXPRESSIONS.filter(is_simple))
def test_the_completed_triples_alone_suffice_for_the_answers(expression: Any) -> None:
    answer = ExpressionEvaluator(UNIVERSE).evaluate(expression)
    gold = sorted(THINGS.answer_text(answer.kind, value) for value in answer.values)
    found = told(expression)
    if not found.get("left_off"):
        assert answered(expression, found["decomposition"], completed(found["completed"])) == gold


@settings(max_examples=examples(200))
@given(EXPRESSIONS)
def test_every_completed_triple_is_a_fact_with_its_ids_and_stands_once(expression: Any) -> None:
    rows = told(expression)["completed"]
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
def test_what_is_to_be_found_is_numbered_as_it_is_met(expression: Any) -> None:
    pattern = told(expression)["decomposition"]
    names = dict.fromkeys(name for subject, _, wanted in pattern for name in (subject, wanted) if "#" in name)
    numbers = [int(name.partition("#")[2]) for name in names]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert all(len(triple) == 3 and all(triple) for triple in pattern)


@settings(max_examples=examples(100))
@given(EXPRESSIONS)
def test_a_chain_is_one_path_from_the_start_to_what_is_asked_for(expression: Any) -> None:
    pattern = told(expression)["decomposition"]
    if classify_structure(expression) == "chain":
        having = [triple for triple in pattern[:1] if "#" not in triple[2]]
        links = pattern[len(having) :]
        start = having[0][0] if having else (links[0][0] if links else "")
        for subject, _, wanted in links:
            assert subject == start
            start = wanted
    else:
        assert not ask.is_chain(expression)
