"""Needs compared with an independent exhaustive search over all sets of sources, and with answers from each set."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from showhow.fiction.generator.source_split import assign_sources, parse_split
from showhow.fiction.questions import expressions as ask
from showhow.fiction.questions.needs import SourceNeeds, find_absent_kinds, iter_examined_facts
from showhow.fiction.questions.reasoning import ReasoningBuilder
from showhow.fiction.questions.templates import sample_questions
from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.relations import get_relation
from showhow.fiction.universe.universe import FACTS, FactSources, Universe
from tests.examples import examples
from tests.fiction.questions.sample_expressions import EXPRESSIONS, THINGS, UNIVERSE

BITS = {"text": 1, "graph": 2, "web": 4}
HIDDEN = "hidden"
PARENTS = ("father", "mother")
LISTS = (ask.Named, ask.Having, ask.Related, ask.Only, ask.Both, ask.Fact, ask.Place)
STRATEGIES = {
    "met": (("birth", "death"), ("birth", "death")),
    "wedding": (("birth", "death"), ("wedding",)),
    "passport": (("residence",), ("residence",)),
}
Atom = tuple[str, Any]
"""A fact of a person, or a friendship of two."""


class Plain:
    """Facts of some sources as dictionaries, and what is looked up in them, one person after the other."""

    def __init__(self, universe: Universe, fact_sources: FactSources, sources: int = 7) -> None:
        self.universe, self.rows = universe, range(len(universe))
        self.facts: dict[str, list[Any]] = {}
        self.masks: dict[Atom, int] = {}
        for fact in FACTS:
            values, masks = getattr(universe, fact).tolist(), fact_sources.masks[fact].tolist()
            self.facts[fact] = [
                None if value < 0 else value if mask & sources else HIDDEN
                for value, mask in zip(values, masks, strict=True)
            ]
            self.masks |= {(fact, row): mask for row, mask in enumerate(masks) if values[row] >= 0}
        pairs = zip(universe.friends.pairs.tolist(), fact_sources.friends.tolist(), strict=True)
        self.masks |= {("friend", frozenset(pair)): mask for pair, mask in pairs}
        self.friends = {pair for (kind, pair), mask in self.masks.items() if kind == "friend" and mask & sources}
        self.seen: list[list[set[Atom]]] = []
        """For each fact the sets of atoms of which one states it."""
        self.tested: list[list[set[Atom]]] = []
        """The same for facts that a filter tests, and that do not pass."""
        self.missing: set[str] = set()
        """Kinds of facts that somebody does not have."""
        self.possible: set[str] = set()
        """Kinds of facts that would lead to further people."""

    def answer(self, expression: ask.Expression) -> set[Any]:
        return set(getattr(self, type(expression).__name__.lower())(expression))

    def named(self, named: ask.Named) -> set[int]:
        return {named.person}

    def having(self, having: ask.Having) -> set[int]:
        self.possible.add(having.fact)
        people = {row for row in self.rows if self.facts[having.fact][row] == having.value}
        self.seen += [[{(having.fact, person)}] for person in people]
        return people

    def related(self, related: ask.Related) -> set[int]:
        people, relation = self.answer(related.of), get_relation(related.relation)
        for number, step in enumerate(relation.steps, 1):
            women = relation.women if number == len(relation.steps) else None
            people = {relative for person in people for relative in self.step(person, step, women)}
        return people

    def step(self, person: int, step: str, women: bool | None) -> set[int]:  # noqa: FBT001 - None is both
        ways = dict[int, list[set[Atom]]]()
        for relative, way in getattr(self, f"_{step}s")(person, women):
            if women in (None, bool(self.universe.female[relative])):
                ways.setdefault(relative, []).append(way)
        self.seen += ways.values()
        return set(ways)

    def _parents(self, person: int, women: bool | None) -> Iterator[tuple[int, set[Atom]]]:  # noqa: FBT001
        for parent in PARENTS if women is None else (PARENTS[women],):
            value = self.facts[parent][person]
            if value is None:
                self.possible.add(parent)
            elif value != HIDDEN:
                yield value, {(parent, person)}

    def _childs(self, person: int, _: object) -> Iterator[tuple[int, set[Atom]]]:
        parent = PARENTS[bool(self.universe.female[person])]
        self.possible.add(parent)
        yield from ((row, {(parent, row)}) for row in self.rows if self.facts[parent][row] == person)

    def _siblings(self, person: int, _: object) -> Iterator[tuple[int, set[Atom]]]:
        self.possible.update(PARENTS)
        for parent in PARENTS:
            for row in self.rows:
                if row != person and self.facts[parent][row] == self.facts[parent][person] not in (None, HIDDEN):
                    yield row, {(parent, person), (parent, row)}

    def _spouses(self, person: int, women: bool | None) -> Iterator[tuple[int, set[Atom]]]:  # noqa: FBT001
        spouse = self.facts["spouse"][person]
        if spouse is None or (spouse != HIDDEN and women not in (None, bool(self.universe.female[spouse]))):
            self.possible.add("spouse")
        if isinstance(spouse, int):
            yield spouse, {("spouse", person)}

    def _friends(self, person: int, _: object) -> Iterator[tuple[int, set[Atom]]]:
        self.possible.add("friend")
        for pair in self.friends:
            if person in pair:
                (other,) = pair - {person}
                yield other, {("friend", pair)}

    def look_up(self, fact: str, people: set[int]) -> dict[int, Any]:
        values = {person: self.facts[fact][person] for person in people}
        self.seen += [[{(fact, person)}] for person, value in values.items() if value is not None]
        self.missing |= {fact for value in values.values() if value is None}
        return values

    def only(self, only: ask.Only) -> set[int]:
        people = self.answer(only.of)
        before = len(self.seen)
        values = self.look_up(only.fact, people)
        del self.seen[before:]
        dated = {person: value for person, value in values.items() if isinstance(value, int)}
        tests = {"is": lambda v: v == only.value, "before": lambda v: v < only.value, "after": lambda v: v > only.value}
        passing = {person for person, value in dated.items() if tests[only.test](value)}
        for person in values:
            if values[person] is not None:
                (self.seen if person in passing else self.tested).append([{(only.fact, person)}])
        return passing

    def both(self, both: ask.Both) -> set[int]:
        left = self.answer(both.left)
        return left & self.answer(both.right)

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

    def compared(self, sides: tuple[ask.People, ...], facts: Sequence[Sequence[str]]) -> list[Any]:
        """The facts of the only person of each side; HIDDEN for those of several people, or of nobody."""
        values = []
        for side, names in zip(sides, facts, strict=True):
            people = self.answer(side)
            stated = [self.look_up(fact, people) for fact in names]
            values += [next(iter(one.values())) if len(people) == 1 else HIDDEN for one in stated]
        return values

    def compare(self, compare: ask.Compare) -> set[int]:
        days = self.compared((compare.left, compare.right), [[compare.fact]] * 2)
        if not all(isinstance(day, int) for day in days) or days[0] == days[1]:
            return set()
        return self.answer(compare.left if (days[0] < days[1]) == compare.first else compare.right)

    def same(self, same: ask.Same) -> set[bool]:
        values = self.compared((same.left, same.right), [[same.fact]] * 2)
        if not all(isinstance(value, int) for value in values):
            return set()
        if same.country:
            values = [self.area_of("country", town) for town in values]
        return {values[0] == values[1]}

    def judge(self, judge: ask.Judge) -> set[bool]:
        values = self.compared((judge.left, judge.right), STRATEGIES[judge.strategy])
        return set() if HIDDEN in values else getattr(self, f"_{judge.strategy}")(*values)

    def _met(self, born: int, died: int | None, other: int, other_died: int | None) -> set[bool]:
        return {(died is None or other <= died) and (other_died is None or born <= other_died)}

    def _wedding(self, born: int, died: int | None, day: int | None) -> set[bool]:
        return set() if day is None else {born <= day and (died is None or day <= died)}

    def _passport(self, left: int | None, right: int | None) -> set[bool]:
        return set() if None in (left, right) else {self.area_of("country", left) != self.area_of("country", right)}


def is_list(expression: ask.Expression) -> bool:
    return isinstance(expression, LISTS) and all(map(is_list, ask.child_expressions(expression)))


def needs(universe: Universe, fact_sources: FactSources, expression: ask.Expression) -> list[list[str]]:
    """The smallest of all sets of sources that state what is looked up, and all that there is of what is not there."""
    plain = Plain(universe, fact_sources)
    answer = plain.answer(expression)
    nothing = not answer or (isinstance(expression, ask.Count) and 0 in answer)
    lists = bool(answer) and is_list(expression)
    facts = plain.seen if lists else plain.seen + plain.tested
    says_no = isinstance(expression, (ask.Same, ask.Judge)) and answer == {False}
    absent = set[str]() if lists or says_no else set(plain.missing)
    if nothing:
        absent |= plain.missing | plain.possible
    facts = facts + [[{atom}] for atom in plain.masks if atom[0] in absent]
    enough = [
        set(names)
        for size in (1, 2, 3)
        for names in combinations(BITS, size)
        if all(
            any(all(plain.masks[atom] & sum(map(BITS.__getitem__, names)) for atom in way) for way in ways)
            for ways in facts
        )
    ]
    return [[name for name in BITS if name in one] for one in enough if not any(other < one for other in enough)]


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
REASONING = ReasoningBuilder(THINGS)


def find_needs(source_needs: SourceNeeds, expression: ask.Expression) -> list[list[str]]:
    root = REASONING.build_tree(expression)
    facts = iter_examined_facts(expression, root, REASONING, UNIVERSE)
    return source_needs.find_sufficient_sets(facts, find_absent_kinds(expression, root, UNIVERSE))


@example(ask.Count(ask.Related("aunt", ask.Named(1)), each=True), 0)
@example(ask.Fact("job", ask.Related("wife", ask.Named(int(np.flatnonzero(UNIVERSE.female)[0])))), 1)
@settings(max_examples=examples(150))
@given(EXPRESSIONS, st.sampled_from(range(len(FACT_SOURCES))))
def test_needs_equal_those_of_an_exhaustive_search(expression: ask.Expression, fact_sources: int) -> None:
    assert find_needs(NEEDS[fact_sources], expression) == needs(UNIVERSE, FACT_SOURCES[fact_sources], expression)


@pytest.mark.parametrize(
    ("split", "by"),
    [("text=50,graph=35,web=15", "both"), ("text=40,graph=40,web=20", "entity"), ("everywhere", "both")],
)
def test_the_needs_of_a_worlds_questions_are_exact(split: str, by: str) -> None:
    options = GenerationOptions(people=60, seed=8, per_template=1, split=split, split_by=by)
    universe = make_universe(options)
    fact_sources = assign_sources(universe, parse_split(split, by), options.seed)
    plain = {
        names: Plain(universe, fact_sources, sum(map(BITS.__getitem__, names)))
        for size in (1, 2, 3)
        for names in combinations(BITS, size)
    }
    minimal = 0
    for question in sample_questions(universe, fact_sources, options):
        assert question.needs == needs(universe, fact_sources, question.expression), question.text
        # Brute force: the question is answered from every set of sources alone.
        answer = plain[tuple(BITS)].answer(question.expression)
        giving = [set(names) for names in plain if plain[names].answer(question.expression) == answer]
        assert all(set(needed) in giving for needed in question.needs), question.text
        if question.minimal:
            minimal += 1
            least = [one for one in giving if not any(other < one for other in giving)]
            assert question.needs == [[name for name in BITS if name in one] for one in least], question.text
    assert minimal > 20


def fact_sources_with(**sources: int) -> FactSources:
    """These facts in these sources, all others in every source."""
    every = {fact: np.full(len(UNIVERSE), sources.get(fact, 7), np.uint8) for fact in FACTS}
    return FactSources(every, np.full(len(UNIVERSE.friends.pairs), sources.get("friend", 7), np.uint8))


def needs_with(expression: ask.Expression, **sources: int) -> list[list[str]]:
    return find_needs(SourceNeeds(UNIVERSE, fact_sources_with(**sources)), expression)


CHILD = int(np.flatnonzero(UNIVERSE.father >= 0)[0])
ALIVE = int(np.flatnonzero(UNIVERSE.death < 0)[0])
OTHER_ALIVE = int(np.flatnonzero(UNIVERSE.death < 0)[1])


def test_a_chain_over_two_sources_needs_both() -> None:
    expression = ask.Fact("job", ask.Related("father", ask.Named(CHILD)))
    assert needs_with(expression, father=1, job=4) == [["text", "web"]]
    assert needs_with(expression, father=3, job=2) == [["graph"]]
    assert needs_with(expression) == [["text"], ["graph"], ["web"]]


def test_who_is_asked_about_the_father_does_not_need_the_source_of_the_mother() -> None:
    father = ask.Related("father", ask.Named(CHILD))
    for expression in (ask.Same(ask.Named(ALIVE), father, "job"), ask.Count(father)):
        assert needs_with(expression, father=1, mother=4) == [["text"]]


def test_a_missing_death_needs_all_sources_that_state_deaths() -> None:
    living = ask.Named(ALIVE)
    met = ask.Judge("met", living, ask.Named(OTHER_ALIVE))
    for expression in (ask.Fact("death", living), met):
        assert needs_with(expression, death=1) == [["text"]]
        assert needs_with(expression) == [["text"], ["graph"], ["web"]]
        masks = fact_sources_with().masks
        masks["death"] = np.where(UNIVERSE.death >= 0, 1 << np.arange(len(UNIVERSE)) % 3, 7).astype(np.uint8)
        spread = SourceNeeds(UNIVERSE, FactSources(masks, fact_sources_with().friends))
        assert find_needs(spread, expression) == [["text", "graph", "web"]]


def test_the_absence_of_siblings_needs_the_sources_of_all_parents() -> None:
    children = np.bincount(UNIVERSE.father[UNIVERSE.father >= 0], minlength=len(UNIVERSE))
    fathers = UNIVERSE.father
    alone = next(row for row in range(len(UNIVERSE)) if fathers[row] >= 0 and children[fathers[row]] == 1)
    siblings = ask.Related("sibling", ask.Named(alone))
    for expression in (siblings, ask.Count(siblings), ask.Fact("job", siblings)):
        assert needs_with(expression, father=2, mother=3) == [["graph"]]
        assert needs_with(expression, father=2, mother=1, job=4) == [["text", "graph"]]


def test_a_count_needs_the_sources_of_all_counted_people() -> None:
    sizes = UNIVERSE.friends_of.list_sizes()
    person = int(np.argmax(sizes))
    pairs = UNIVERSE.friends.pairs
    half = (np.arange(len(pairs)) % 2 + 1).astype(np.uint8)
    source_needs = SourceNeeds(UNIVERSE, FactSources(fact_sources_with().masks, half))
    own = half[(pairs == person).any(axis=1)]
    assert set(own.tolist()) == {1, 2}
    assert find_needs(source_needs, ask.Count(ask.Related("friend", ask.Named(person)))) == [["text", "graph"]]


def test_the_eldest_of_a_group_needs_the_births_of_all() -> None:
    friends = ask.Related("friend", ask.Named(int(np.argmax(UNIVERSE.friends_of.list_sizes()))))
    eldest = ask.Most(friends, "birth", first=True)
    births = fact_sources_with().masks | {"birth": np.ones(len(UNIVERSE), np.uint8)}
    (last,) = Plain(UNIVERSE, fact_sources_with()).answer(ask.Most(friends, "birth", first=False))
    births["birth"][last] = 2
    source_needs = SourceNeeds(UNIVERSE, FactSources(births, fact_sources_with().friends))
    assert find_needs(source_needs, eldest) == [["text", "graph"]]
