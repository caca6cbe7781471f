"""Evaluation of expressions over a universe, as sets of people and values, and the fact triples that support a step."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import singledispatchmethod
from itertools import product
from typing import NamedTuple

import numpy as np

from showhow.fiction.questions.expressions import (
    Both,
    Compare,
    Count,
    Expression,
    Fact,
    Having,
    Judge,
    Most,
    Named,
    Only,
    Place,
    Related,
    Same,
)
from showhow.fiction.universe.relations import UP, KinshipRelation, get_relation, sort_unique, trace_frontiers
from showhow.fiction.universe.universe import NONE, WITHHELD, IdArray, Universe
from showhow.worlds.lexicon.kinship import gendered_words

FACT_VALUE_KINDS = {
    "job": "job",
    "hobby": "hobby",
    "birthplace": "town",
    "residence": "town",
    "birth": "day",
    "death": "day",
    "wedding": "day",
}
"""Kind of the values of each fact."""
NO, YES = 0, 1


@dataclass(frozen=True, slots=True)
class ExpressionAnswer:
    """Distinct answers, ascending; `kind` is person, job, hobby, town, region, country, day, number or truth.

    Values are rows of people, indices of the universe's lists, ordinals, counts, or YES and NO.
    """

    kind: str
    values: tuple[int, ...]


class ExpressionEvaluator:
    """Evaluates expressions over one universe and records every intermediate set."""

    def __init__(self, universe: Universe) -> None:
        self._universe = universe
        self.stages: list[tuple[str, IdArray]] = []
        """(kind, values) in order of evaluation."""
        self.results: dict[Expression, tuple[str, IdArray]] = {}
        """(kind, values) of every evaluated operation."""

    def evaluate(self, expression: Expression) -> ExpressionAnswer:
        """Evaluate an expression; no values if there is no answer, or if a yes-no question lacks a fact."""
        self.stages, self.results = [], {}
        kind, values = self._evaluate_recorded(expression)
        return ExpressionAnswer(kind, tuple(int(value) for value in values if kind == "number" or value >= 0))

    def _evaluate_recorded(self, expression: Expression) -> tuple[str, IdArray]:
        result = self._evaluate(expression)
        self.stages.append(result)
        self.results[expression] = result
        return result

    @singledispatchmethod
    def _evaluate(self, expression: Expression) -> tuple[str, IdArray]:
        raise TypeError(f"{type(expression).__name__} is not an expression")

    @_evaluate.register
    def _(self, named: Named) -> tuple[str, IdArray]:
        return "person", np.array([named.person], np.int32)

    @_evaluate.register
    def _(self, having: Having) -> tuple[str, IdArray]:
        return "person", self._universe.find_people_with(having.fact, having.value)

    @_evaluate.register
    def _(self, expression: Related) -> tuple[str, IdArray]:
        return "person", self._find_related(get_relation(expression.relation), self._evaluate_people(expression.of))

    @_evaluate.register
    def _(self, only: Only) -> tuple[str, IdArray]:
        people = self._evaluate_people(only.of)
        values = self._fact_values(only.fact, people)
        if only.test == "is":
            return "person", people[values == only.value]
        fits = values < only.value if only.test == "before" else values > only.value
        return "person", people[fits & (values >= 0)]

    @_evaluate.register
    def _(self, both: Both) -> tuple[str, IdArray]:
        left, right = self._evaluate_people(both.left), self._evaluate_people(both.right)
        return "person", np.intersect1d(left, right, assume_unique=True)

    @_evaluate.register
    def _(self, most: Most) -> tuple[str, IdArray]:
        people = self._evaluate_people(most.of)
        values = self._fact_values(most.fact, people)
        people, days = people[values >= 0], values[values >= 0]
        if not len(days):
            return "person", people
        return "person", people[days == (days.min() if most.first else days.max())]

    @_evaluate.register
    def _(self, fact: Fact) -> tuple[str, IdArray]:
        values = self._fact_values(fact.fact, self._evaluate_people(fact.of))
        return FACT_VALUE_KINDS[fact.fact], sort_unique(values[values >= 0])

    @_evaluate.register
    def _(self, place: Place) -> tuple[str, IdArray]:
        _, towns = self._evaluate_recorded(place.of)
        places = self._universe.places
        areas = places.region[towns]
        if place.kind == "country":
            areas = places.country[areas]
        return place.kind, sort_unique(areas)

    @_evaluate.register
    def _(self, count: Count) -> tuple[str, IdArray]:
        if not count.each:
            return "number", np.array([len(self._evaluate_people(count.of))], np.int32)
        if not isinstance(count.of, Related):
            raise TypeError("only relations can be counted for each person")
        counted = get_relation(count.of.relation)
        whose = self._evaluate_people(count.of.of)
        return "number", sort_unique(
            np.array([len(self._find_related(counted, whose[i : i + 1])) for i in range(len(whose))], np.int32)
        )

    @_evaluate.register
    def _(self, compare: Compare) -> tuple[str, IdArray]:
        sides = [self._evaluate_single_person(side) for side in (compare.left, compare.right)]
        days = [self._fact_values(compare.fact, side) for side in sides]
        if any(len(day) != 1 or day[0] < 0 for day in days) or days[0][0] == days[1][0]:
            return "person", sides[0][:0]
        left_wins = (days[0][0] < days[1][0]) == compare.first
        return "person", sides[0] if left_wins else sides[1]

    @_evaluate.register
    def _(self, same: Same) -> tuple[str, IdArray]:
        values = [self._fact_values(same.fact, self._evaluate_single_person(side)) for side in (same.left, same.right)]
        if any(len(value) != 1 or value[0] < 0 for value in values):
            return _truth_value()
        if same.country:
            places = self._universe.places
            values = [places.country[places.region[value]] for value in values]
        return _truth_value(bool(values[0][0] == values[1][0]))

    @_evaluate.register
    def _(self, judge: Judge) -> tuple[str, IdArray]:
        left, right = self._evaluate_single_person(judge.left), self._evaluate_single_person(judge.right)
        if len(left) != 1 or len(right) != 1:
            return _truth_value()
        truth = _STRATEGY_FUNCTIONS[judge.strategy](self, left, right)
        return _truth_value() if truth is None else _truth_value(truth)

    def _find_related(self, relation: KinshipRelation, people: IdArray) -> IdArray:
        """People with this relation to any of the people; records the intermediate frontiers."""
        frontiers = trace_frontiers(self._universe, relation, people)
        self.stages += [("person", frontier) for frontier in frontiers]
        return frontiers[-1]

    def _evaluate_people(self, expression: Expression) -> IdArray:
        return self._evaluate_recorded(expression)[1]

    def _evaluate_single_person(self, expression: Expression) -> IdArray:
        """The single person of a side of a comparison; empty if there are several."""
        people = self._evaluate_people(expression)
        return people if len(people) == 1 else people[:0]

    def _fact_values(self, fact: str, people: IdArray) -> IdArray:
        values: IdArray = getattr(self._universe, fact)[people]
        return values

    def met(self, left: IdArray, right: IdArray) -> bool | None:
        """Whether the two lives overlap; None if a date is withheld."""
        births = [int(self._fact_values("birth", person)[0]) for person in (left, right)]
        deaths = [int(self._fact_values("death", person)[0]) for person in (left, right)]
        if WITHHELD in (*births, *deaths):
            return None
        last_days = [self._universe.today if death == NONE else death for death in deaths]
        return max(births) <= min(last_days)

    def saw_wedding(self, left: IdArray, right: IdArray) -> bool | None:
        """Whether the left person was alive on the right person's wedding day; None without a wedding."""
        day = int(self._fact_values("wedding", right)[0])
        birth, death = int(self._fact_values("birth", left)[0]), int(self._fact_values("death", left)[0])
        if day < 0 or WITHHELD in (birth, death):
            return None
        return birth <= day and (death == NONE or day <= death)

    def passport(self, left: IdArray, right: IdArray) -> bool | None:
        """Whether the two live in different countries; None if a town is withheld."""
        towns = [self._fact_values("residence", person) for person in (left, right)]
        if any(town[0] < 0 for town in towns):
            return None
        places = self._universe.places
        left_country, right_country = (places.country[places.region[town]][0] for town in towns)
        return bool(left_country != right_country)


_STRATEGY_FUNCTIONS = {
    "met": ExpressionEvaluator.met,
    "wedding": ExpressionEvaluator.saw_wedding,
    "passport": ExpressionEvaluator.passport,
}


def _truth_value(*truths: bool) -> tuple[str, IdArray]:
    return "truth", np.array([YES if value else NO for value in truths], np.int32)


ThingKey = tuple[str, int]
"""Kind (person, town, region, country, job, hobby, day, gender) and number."""
GENDERED_RELATIONS = {
    word: (base, get_relation(word).women) for base in ("child", "sibling", "spouse") for word in gendered_words(base)
}
"""Relations that sources state as two facts: the relative and the gender."""


class FactTriple(NamedTuple):
    """A fact; `relation` is a key of fiction.universe.items.PROPERTY_IDS."""

    subject: ThingKey
    relation: str
    object: ThingKey


def iter_relation_triples(universe: Universe, relation: str, people: IdArray) -> Iterator[FactTriple]:
    """Facts of a one-step relation of each person, with the gender if the relation implies one."""
    base, women = GENDERED_RELATIONS.get(relation, (relation, None))
    for person in people.tolist():
        for step, relative in _STEP_FUNCTIONS[base](universe, person):
            if women is None or bool(universe.female[relative]) == women:
                yield FactTriple(("person", person), step, ("person", relative))
                if women is not None:
                    yield FactTriple(("person", relative), "gender", ("gender", int(women)))


def iter_fact_triples(universe: Universe, fact: str, people: IdArray) -> Iterator[FactTriple]:
    """The fact of each person who has it."""
    for person, value in zip(people.tolist(), getattr(universe, fact)[people].tolist(), strict=True):
        if value >= 0:
            yield FactTriple(("person", person), fact, (FACT_VALUE_KINDS[fact], value))


def iter_place_triples(universe: Universe, kind: str, towns: IdArray) -> Iterator[FactTriple]:
    """The region or country of each town."""
    places = universe.places
    for town in towns.tolist():
        region = int(places.region[town])
        yield FactTriple(("town", town), kind, (kind, region if kind == "region" else int(places.country[region])))


def _iter_parents(universe: Universe, person: int) -> Iterator[tuple[str, int]]:
    for relation in ("father", "mother"):
        yield from _iter_single_value(universe, relation, person)


def _iter_single_value(universe: Universe, relation: str, person: int) -> Iterator[tuple[str, int]]:
    value = int(getattr(universe, relation)[person])
    if value >= 0:
        yield relation, value


def _iter_children(universe: Universe, person: int) -> Iterator[tuple[str, int]]:
    for child in universe.children.get_one(person).tolist():
        yield "child", child


def _iter_siblings(universe: Universe, person: int) -> Iterator[tuple[str, int]]:
    children = {child for _, parent in _iter_parents(universe, person) for _, child in _iter_children(universe, parent)}
    for child in sorted(children - {person}):
        yield "sibling", child


def _iter_friends(universe: Universe, person: int) -> Iterator[tuple[str, int]]:
    for friend in universe.friends_of.get_one(person).tolist():
        yield "friend", friend


_STEP_FUNCTIONS: dict[str, Callable[[Universe, int], Iterator[tuple[str, int]]]] = {
    "parent": _iter_parents,
    "father": lambda universe, person: _iter_single_value(universe, "father", person),
    "mother": lambda universe, person: _iter_single_value(universe, "mother", person),
    "child": _iter_children,
    "sibling": _iter_siblings,
    "spouse": lambda universe, person: _iter_single_value(universe, "spouse", person),
    "friend": _iter_friends,
}


def is_stated(universe: Universe, fact: FactTriple) -> bool:
    """Whether a universe, restricted to some sources, has the fact; genders and places are always stated."""
    (_, subject), relation, (_, value) = fact
    match relation:
        case "gender" | "region" | "country":
            return True
        case "child":
            return subject in (universe.father[value], universe.mother[value])
        case "sibling":
            parents = ((column[subject], column[value]) for column in (universe.father, universe.mother))
            return any(one == other > NONE for one, other in parents)
        case "friend":
            return value in universe.friends_of.get_one(subject)
    return bool(getattr(universe, relation)[subject] == value)


class FactEvaluator:
    """Evaluates expressions over a set of facts alone: what follows from them, and nothing else."""

    def __init__(self, facts: Collection[FactTriple], today: int) -> None:
        self._facts = facts
        self._today = today
        self._objects: dict[tuple[str, ThingKey], list[FactTriple]] = {}
        self._subjects: dict[tuple[str, ThingKey], list[FactTriple]] = {}
        for fact in facts:
            self._objects.setdefault((fact.relation, fact.subject), []).append(fact)
            self._subjects.setdefault((fact.relation, fact.object), []).append(fact)
        self._ignored: FactTriple | None = None

    def find_spare_fact(self, expression: Expression) -> FactTriple | None:
        """The first fact without which the answers are the same; None if each is needed."""
        answers = self.evaluate(expression)
        for fact in self._facts:
            self._ignored = fact
            try:
                if self.evaluate(expression) == answers:
                    return fact
            finally:
                self._ignored = None
        return None

    def evaluate(self, expression: Expression) -> frozenset[int]:  # noqa: C901, PLR0911 - one case per operation
        """The answers, as the values of an ExpressionAnswer."""
        match expression:
            case Named(person):
                return frozenset([person])
            case Having(fact, value):
                return self._find_subjects(fact, (FACT_VALUE_KINDS[fact], value))
            case Related(relation, of):
                return self._find_related(get_relation(relation), self.evaluate(of))
            case Only(of, fact, test, bound):
                people = self.evaluate(of)
                return frozenset(
                    p for p in people if any(_passes(v, test, bound) for v in self._find_values(fact, [p]))
                )
            case Both(left, right):
                return self.evaluate(left) & self.evaluate(right)
            case Most(of, fact, first):
                days = {p: day for p in self.evaluate(of) for day in self._find_values(fact, [p])}
                extreme = min(days.values(), default=0) if first else max(days.values(), default=0)
                return frozenset(person for person, day in days.items() if day == extreme)
            case Fact(fact, of):
                return self._find_values(fact, self.evaluate(of))
            case Place(kind, of):
                return frozenset(
                    place for town in self.evaluate(of) for place in self._objects_of(kind, ("town", town))
                )
            case Count(Related(relation, of), True):
                counted = get_relation(relation)
                return frozenset(len(self._find_related(counted, [person])) for person in self.evaluate(of))
            case Count(of):
                return frozenset([len(self.evaluate(of))])
        return self._compare(expression)

    def _compare(self, expression: Expression) -> frozenset[int]:
        match expression:
            case Compare(left, right, fact, first):
                days = [(day, p) for side in (left, right) for p in self.evaluate(side) for day in self._days(fact, p)]
                if len(days) < 2 or days[0][0] == days[1][0]:
                    return frozenset()
                return frozenset([(min if first else max)(days)[1]])
            case Same(left, right, fact, country):
                ends = [self._find_values(fact, self.evaluate(side)) for side in (left, right)]
                if country:
                    ends = [self._find_countries(towns) for towns in ends]
                return frozenset([int(not ends[0].isdisjoint(ends[1]))] if all(ends) else [])
            case Judge("passport", left, right):
                same = self._compare(Same(left, right, "residence", country=True))
                return frozenset(1 - truth for truth in same)
            case Judge(strategy, left, right):
                return self._judge_lives(strategy, self.evaluate(left), self.evaluate(right))
        raise TypeError(f"{type(expression).__name__} is not an expression")

    def _judge_lives(self, strategy: str, left: Iterable[int], right: Iterable[int]) -> frozenset[int]:
        truths = set()
        for one, other in product(left, right):
            births = [self._days("birth", person) for person in (one, other)]
            deaths = [max(self._days("death", person), default=self._today) for person in (one, other)]
            if strategy == "met" and all(births):
                truths.add(int(max(map(max, births)) <= min(deaths)))
            elif strategy == "wedding" and births[0]:
                truths |= {int(max(births[0]) <= day <= deaths[0]) for day in self._days("wedding", other)}
        return frozenset(truths)

    def _days(self, fact: str, person: int) -> frozenset[int]:
        return self._find_values(fact, [person])

    def _find_values(self, fact: str, people: Iterable[int]) -> frozenset[int]:
        return frozenset(value for person in people for value in self._objects_of(fact, ("person", person)))

    def _find_countries(self, towns: Iterable[int]) -> frozenset[int]:
        return frozenset(place for town in towns for place in self._objects_of("country", ("town", town)))

    def _find_related(self, relation: KinshipRelation, people: Iterable[int]) -> frozenset[int]:
        for position, step in enumerate(relation.steps, 1):
            women = relation.women if position == len(relation.steps) else None
            parents = ("mother", "father") if women is None else ("mother",) if women else ("father",)
            names = parents if step == UP else (step,)
            relatives = frozenset(
                value for person in people for name in names for value in self._objects_of(name, ("person", person))
            )
            if women is not None and step != UP:
                relatives &= self._find_subjects("gender", ("gender", int(women)))
            people = relatives
        return frozenset(people)

    def _objects_of(self, relation: str, subject: ThingKey) -> Iterator[int]:
        return (fact.object[1] for fact in self._objects.get((relation, subject), ()) if fact is not self._ignored)

    def _find_subjects(self, relation: str, value: ThingKey) -> frozenset[int]:
        facts = self._subjects.get((relation, value), ())
        return frozenset(fact.subject[1] for fact in facts if fact is not self._ignored)


def _passes(value: int, test: str, bound: int) -> bool:
    return value == bound if test == "is" else value < bound if test == "before" else value > bound
