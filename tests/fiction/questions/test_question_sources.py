"""Needs compared with an independent exhaustive search over all sets of sources."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fiction.generator.source_split import assign_sources, parse_split
from fiction.generator.world_files import generate_triples
from fiction.questions import expressions as ask
from fiction.questions.question import SourceNeeds
from fiction.questions.templates import sample_questions
from fiction.universe.build import make_universe
from fiction.universe.options import GenerationOptions
from fiction.universe.relations import get_relation
from fiction.universe.universe import FACTS, FactSources, Universe
from tests.examples import examples
from tests.fiction.questions.sample_expressions import EXPRESSIONS, UNIVERSE

BITS = {"text": 1, "graph": 2, "web": 4}
HIDDEN = "hidden"
MONOTONIC = (ask.Named, ask.Having, ask.Related, ask.Only, ask.Both, ask.Fact, ask.Place)


class Plain:
    """Facts of some sources as dictionaries; `stages` records every intermediate set."""

    def __init__(self, universe: Universe, fact_sources: FactSources, sources: int) -> None:
        self.universe, self.rows = universe, range(len(universe))
        self.facts: dict[str, list[Any]] = {}
        for fact in FACTS:
            values, masks = getattr(universe, fact).tolist(), fact_sources.masks[fact].tolist()
            self.facts[fact] = [
                None if value < 0 else value if mask & sources else HIDDEN
                for value, mask in zip(values, masks, strict=True)
            ]
        pairs = zip(universe.friends.pairs.tolist(), fact_sources.friends.tolist(), strict=True)
        self.friends = {frozenset(pair) for pair, mask in pairs if mask & sources}
        self.stages: list[Any] = []

    def answer(self, expression: ask.Expression) -> set[Any]:
        result = getattr(self, type(expression).__name__.lower())(expression)
        self.stages.append(result)
        return set(result)

    def named(self, named: ask.Named) -> set[int]:
        return {named.person}

    def having(self, having: ask.Having) -> set[int]:
        return {row for row in self.rows if self.facts[having.fact][row] == having.value}

    def related(self, related: ask.Related) -> set[int]:
        people, relation = self.answer(related.of), get_relation(related.relation)
        for step in relation.steps:
            people = {relative for person in people for relative in self.step(person, step)}
            self.stages.append(people)
        return {row for row in people if relation.women in (None, bool(self.universe.female[row]))}

    def parents(self, person: int) -> list[Any]:
        return [self.facts["father"][person], self.facts["mother"][person]]

    def step(self, person: int, step: str) -> set[int]:
        if step == "parent":
            return set(self.parents(person)) - {None, HIDDEN}
        if step == "child":
            return {row for row in self.rows if person in self.parents(row)}
        if step == "sibling":
            self.stages.append({"parents of": person, "are": self.parents(person)})
            return {child for parent in self.step(person, "parent") for child in self.step(parent, "child")} - {person}
        if step == "spouse":
            return {self.facts["spouse"][person]} - {None, HIDDEN}
        return {other for pair in self.friends if person in pair for other in pair - {person}}

    def look_up(self, fact: str, people: set[int]) -> dict[int, Any]:
        values = {person: self.facts[fact][person] for person in people}
        self.stages.append(values)
        return values

    def only(self, only: ask.Only) -> set[int]:
        values = self.look_up(only.fact, self.answer(only.of))
        dated = {person: value for person, value in values.items() if isinstance(value, int)}
        tests = {"is": lambda v: v == only.value, "before": lambda v: v < only.value, "after": lambda v: v > only.value}
        return {person for person, value in dated.items() if tests[only.test](value)}

    def both(self, both: ask.Both) -> set[int]:
        return self.answer(both.left) & self.answer(both.right)

    def most(self, most: ask.Most) -> set[int]:
        values = self.look_up(most.fact, self.answer(most.of))
        days = [value for value in values.values() if isinstance(value, int)]
        end = (min if most.first else max)(days, default=None)
        return {person for person, value in values.items() if value == end and end is not None}

    def fact(self, fact: ask.Fact) -> set[int]:
        return {value for value in self.look_up(fact.fact, self.answer(fact.of)).values() if isinstance(value, int)}

    def place(self, place: ask.Place) -> set[int]:
        return {self.area_of(place.kind, town) for town in self.answer(place.of)}

    def area_of(self, kind: str, town: int) -> int:
        region = int(self.universe.places.region[town])
        return region if kind == "region" else int(self.universe.places.country[region])

    def count(self, count: ask.Count) -> set[int]:
        if not count.each:
            return {len(self.answer(count.of))}
        assert isinstance(count.of, ask.Related)
        whose = self.answer(count.of.of)
        return {len(self.related(ask.Related(count.of.relation, ask.Named(person)))) for person in sorted(whose)}

    def single_person(self, expression: ask.People) -> int | None:
        result = self.answer(expression)
        return result.pop() if len(result) == 1 else None

    def compare(self, compare: ask.Compare) -> set[int]:
        people = [self.single_person(compare.left), self.single_person(compare.right)]
        days = [self.look_up(compare.fact, {person} - {None}).get(person) for person in people]
        if not all(isinstance(day, int) for day in days) or days[0] == days[1]:
            return set()
        return {people[(days[0] > days[1]) == compare.first]}

    def same(self, same: ask.Same) -> set[bool]:
        people = [self.single_person(same.left), self.single_person(same.right)]
        values = [self.look_up(same.fact, {person} - {None}).get(person) for person in people]
        if not all(isinstance(value, int) for value in values):
            return set()
        if same.country:
            values = [self.area_of("country", town) for town in values]
        return {values[0] == values[1]}

    def judge(self, judge: ask.Judge) -> set[bool]:
        left, right = self.single_person(judge.left), self.single_person(judge.right)
        if left is None or right is None:
            return set()
        lookups = {
            "met": [("birth", left), ("birth", right), ("death", left), ("death", right)],
            "wedding": [("wedding", right), ("birth", left), ("death", left)],
            "passport": [("residence", left), ("residence", right)],
        }[judge.strategy]
        values = [self.look_up(fact, {person})[person] for fact, person in lookups]
        if HIDDEN in values:
            return set()
        return getattr(self, f"_{judge.strategy}")(*values)

    def _met(self, born: int, other: int, died: int | None, other_died: int | None) -> set[bool]:
        return {(died is None or other <= died) and (other_died is None or born <= other_died)}

    def _wedding(self, day: int | None, born: int, died: int | None) -> set[bool]:
        return set() if day is None else {born <= day and (died is None or day <= died)}

    def _passport(self, left: int, right: int) -> set[bool]:
        return {self.area_of("country", left) != self.area_of("country", right)}


def is_monotonic(expression: ask.Expression) -> bool:
    return isinstance(expression, MONOTONIC) and all(map(is_monotonic, ask.child_expressions(expression)))


def needs(
    universe: Universe, fact_sources: FactSources, expression: ask.Expression, facts: Sequence[dict[str, Any]] = ()
) -> list[list[str]]:
    """Sets of sources that give the answers, and whose triples include the listed facts."""
    everything = Plain(universe, fact_sources, 7)
    answer = everything.answer(expression)
    derive = []
    for chosen in (set(names) for size in (1, 2, 3) for names in combinations(BITS, size)):
        sources = sum(BITS[name] for name in chosen)
        plain = Plain(universe, fact_sources, sources)
        if facts and not states(universe.restrict_to_sources(fact_sources, sources), facts):
            continue
        if plain.answer(expression) == answer and (
            (bool(answer) and is_monotonic(expression)) or plain.stages == everything.stages
        ):
            derive.append(chosen)
    return [[name for name in BITS if name in one] for one in derive if not any(other < one for other in derive)]


def states(universe: Universe, facts: Sequence[dict[str, Any]]) -> bool:
    """Whether the graph of a universe has a triple for each fact."""
    lines = b"".join(generate_triples(universe)).decode().splitlines()
    triples = {(one, relation): set[str]() for one, relation, _ in (line.split(" ", 2) for line in lines)}
    for line in lines:
        one, relation, value = line.split(" ", 2)
        triples[one, relation].add(value)
    for fact in facts:
        subject = f"<http://www.wikidata.org/entity/{fact['subject_id']}>"
        relation = f"<http://www.wikidata.org/prop/direct/{fact['pid']}>"
        value = f"entity/{fact['object_id']}>" if fact["object_id"] else f'"{fact["object"]}T'
        if not any(value in stated for stated in triples.get((subject, relation), ())):
            return False
    return True


def masks(universe: Universe, seed: int) -> FactSources:
    """Random fact sources, at least one per fact, equal for both partners."""
    generator = np.random.default_rng(seed)
    masks = {fact: generator.integers(1, 8, len(universe)).astype(np.uint8) for fact in FACTS}
    for fact in ("spouse", "wedding"):
        for row, other in enumerate(universe.spouse.tolist()):
            if other > row:
                masks[fact][other] = masks[fact][row]
    return FactSources(masks, generator.integers(1, 8, len(universe.friends.pairs)).astype(np.uint8))


FACT_SOURCES = [
    masks(UNIVERSE, 1),
    masks(UNIVERSE, 2),
    assign_sources(UNIVERSE, parse_split("text=60,graph=30,web=10", "entity"), 3),
]
NEEDS = [SourceNeeds(UNIVERSE, fact_sources) for fact_sources in FACT_SOURCES]


@example(ask.Count(ask.Related("aunt", ask.Named(1)), each=True), 0)
@settings(max_examples=examples(150))
@given(EXPRESSIONS, st.sampled_from(range(len(FACT_SOURCES))))
def test_needs_equal_those_of_an_exhaustive_search(expression: ask.Expression, fact_sources: int) -> None:
    assert NEEDS[fact_sources].find_sufficient_sets(expression) == needs(
        UNIVERSE, FACT_SOURCES[fact_sources], expression
    )


def test_needs_of_a_worlds_questions_equal_those_of_an_exhaustive_search() -> None:
    options = GenerationOptions(people=60, seed=8, per_template=1, split="text=50,graph=35,web=15")
    universe = make_universe(options)
    fact_sources = assign_sources(universe, parse_split(options.split), options.seed)
    for question in sample_questions(universe, fact_sources, options):
        derive = needs(universe, fact_sources, question.expression, question.triples["completed"])
        assert question.needs == derive, question.text


def fact_sources_with(**sources: int) -> FactSources:
    """These facts in these sources, all others in every source."""
    every = {fact: np.full(len(UNIVERSE), sources.get(fact, 7), np.uint8) for fact in FACTS}
    return FactSources(every, np.full(len(UNIVERSE.friends.pairs), sources.get("friend", 7), np.uint8))


def test_a_chain_over_two_sources_needs_both() -> None:
    child = int(np.flatnonzero(UNIVERSE.father >= 0)[0])
    expression = ask.Fact("job", ask.Related("father", ask.Named(child)))
    assert SourceNeeds(UNIVERSE, fact_sources_with(father=1, job=4)).find_sufficient_sets(expression) == [
        ["text", "web"]
    ]
    assert SourceNeeds(UNIVERSE, fact_sources_with(father=3, job=2)).find_sufficient_sets(expression) == [["graph"]]
    assert SourceNeeds(UNIVERSE, fact_sources_with()).find_sufficient_sets(expression) == [["text"], ["graph"], ["web"]]


def test_a_missing_death_needs_no_source() -> None:
    alive = int(np.flatnonzero(UNIVERSE.death < 0)[0])
    expression = ask.Fact("death", ask.Named(alive))
    assert SourceNeeds(UNIVERSE, fact_sources_with(death=1)).find_sufficient_sets(expression) == [
        ["text"],
        ["graph"],
        ["web"],
    ]


def test_the_absence_of_siblings_needs_the_source_of_the_parents() -> None:
    children = np.bincount(UNIVERSE.father[UNIVERSE.father >= 0], minlength=len(UNIVERSE))
    fathers = UNIVERSE.father
    alone = next(row for row in range(len(UNIVERSE)) if fathers[row] >= 0 and children[fathers[row]] == 1)
    expression = ask.Related("sibling", ask.Named(alone))
    assert SourceNeeds(UNIVERSE, fact_sources_with(father=2, mother=3)).find_sufficient_sets(expression) == [["graph"]]
    assert SourceNeeds(UNIVERSE, fact_sources_with(father=2, mother=3)).find_sufficient_sets(ask.Count(expression)) == [
        ["graph"]
    ]


def test_a_count_needs_the_sources_of_all_counted_people() -> None:
    sizes = UNIVERSE.friends_of.list_sizes()
    person = int(np.argmax(sizes))
    pairs = UNIVERSE.friends.pairs
    half = (np.arange(len(pairs)) % 2 + 1).astype(np.uint8)
    fact_sources = FactSources(fact_sources_with().masks, half)
    expression = ask.Count(ask.Related("friend", ask.Named(person)))
    own = half[(pairs == person).any(axis=1)]
    assert set(own.tolist()) == {1, 2}
    assert SourceNeeds(UNIVERSE, fact_sources).find_sufficient_sets(expression) == [["text", "graph"]]
