"""Translation of an expression into its gold SPARQL query, over a graph shaped like Wikidata's.

The first column of the result has the answers; an ASK query answers yes or no. Intermediate sets of people are in
sub-selects, so that several paths to the same person do not multiply rows. Each sub-select has a LIMIT that the
questions of a world never exceed: it tells the query planner that the set is small.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import singledispatchmethod

from showhow.fiction.questions.evaluate import FACT_VALUE_KINDS
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
from showhow.fiction.questions.reasoning import split_relation
from showhow.fiction.universe.items import FEMALE, MALE, PROPERTY_IDS, ItemCatalog
from showhow.fiction.universe.relations import UP, get_relation
from showhow.fiction.universe.universe import Universe

MAX_SET_SIZE = 1000
"""Maximum size of an intermediate set of people and of the answers; also the row limit of the query tool."""
_MAX_INLINE_STEPS = 3
"""Maximum steps without a sub-select, since few steps do not multiply rows much."""


def build_sparql(expression: Expression, universe: Universe) -> str:
    """Build the query; it returns the evaluated answers if no intermediate set exceeds MAX_SET_SIZE."""
    head, lines = _QueryBuilder(universe).build(expression)
    return "\n".join([f"{head} {{", *_indent(lines), "}"])


@dataclass(frozen=True, slots=True)
class _PeoplePattern:
    """Graph patterns for people: `term` is a variable bound by the lines, or the id of one person."""

    term: str
    lines: tuple[str, ...] = ()
    steps: int = 0
    """Steps since the last sub-select."""

    def extend(self, term: str, *lines: str, steps: int = 0) -> "_PeoplePattern":
        """Add lines that bind a new term."""
        return _PeoplePattern(term, (*self.lines, *lines), self.steps + steps)

    def as_subselect(self) -> "_PeoplePattern":
        """Wrap the pattern in a sub-select if it has many steps."""
        if self.steps < _MAX_INLINE_STEPS:
            return self
        inner = (f"{{ SELECT DISTINCT {self.term} WHERE {{", *_indent(self.lines), f"}} LIMIT {MAX_SET_SIZE} }}")
        return _PeoplePattern(self.term, inner)


def _indent(lines: tuple[str, ...]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


class _QueryBuilder:
    def __init__(self, universe: Universe) -> None:
        self._items = ItemCatalog(universe)
        self._variables = 0

    @singledispatchmethod
    def build(self, expression: Expression) -> tuple[str, tuple[str, ...]]:
        """The query form before the braces, and the lines within them."""
        people = self._build_people(expression)
        if not people.term.startswith("?"):
            return "SELECT ?person WHERE", (f"VALUES ?person {{ {people.term} }}",)
        return f"SELECT DISTINCT {people.term} WHERE", people.lines

    @build.register
    def _(self, fact: Fact) -> tuple[str, tuple[str, ...]]:
        value = self._add_step(self._build_people(fact.of).as_subselect(), fact.fact)
        return f"SELECT DISTINCT {value.term} WHERE", value.lines

    @build.register
    def _(self, place: Place) -> tuple[str, tuple[str, ...]]:
        town = self._add_step(self._build_people(place.of.of).as_subselect(), place.of.fact)
        area = self._add_step(town, place.kind)
        return f"SELECT DISTINCT {area.term} WHERE", area.lines

    @build.register
    def _(self, count: Count) -> tuple[str, tuple[str, ...]]:
        if count.each and isinstance(count.of, Related) and not isinstance(count.of.of, Named):
            return self._count_each(count.of)
        people = self._build_people(count.of)
        return f"SELECT (COUNT(DISTINCT {people.term}) AS ?count) WHERE", people.lines

    @build.register
    def _(self, compare: Compare) -> tuple[str, tuple[str, ...]]:
        left, right = self._build_people(compare.left).as_subselect(), self._build_people(compare.right).as_subselect()
        one, other = self._add_step(left, compare.fact), self._add_step(right, compare.fact)
        sign = "<" if compare.first else ">"
        chosen = f"IF({one.term} {sign} {other.term}, {left.term}, {right.term})"
        lines = (*one.lines, *other.lines, f"FILTER({one.term} != {other.term})", f"BIND({chosen} AS ?who)")
        return "SELECT DISTINCT ?who WHERE", lines

    @build.register
    def _(self, same: Same) -> tuple[str, tuple[str, ...]]:
        path = _property_path(same.fact) + (f"/{_property_path('country')}" if same.country else "")
        shared = self._new_variable("country" if same.country else same.fact)
        sides = [self._build_people(side).as_subselect() for side in (same.left, same.right)]
        return "ASK", tuple(line for side in sides for line in side.extend("", f"{side.term} {path} {shared} .").lines)

    @build.register
    def _(self, judge: Judge) -> tuple[str, tuple[str, ...]]:
        left, right = self._build_people(judge.left).as_subselect(), self._build_people(judge.right).as_subselect()
        return "ASK", getattr(self, f"_{judge.strategy}")(left, right)

    def _met(self, left: _PeoplePattern, right: _PeoplePattern) -> tuple[str, ...]:
        one, other = self._add_step(left, "birth"), self._add_step(right, "birth")
        return (
            *one.lines,
            *other.lines,
            self._alive_condition(left, other.term),
            self._alive_condition(right, one.term),
        )

    def _wedding(self, left: _PeoplePattern, right: _PeoplePattern) -> tuple[str, ...]:
        day, birth = self._add_step(right, "wedding"), self._add_step(left, "birth")
        born = f"FILTER({birth.term} <= {day.term})"
        return (*day.lines, *birth.lines, born, self._alive_condition(left, day.term))

    def _passport(self, left: _PeoplePattern, right: _PeoplePattern) -> tuple[str, ...]:
        one, other = (self._add_step(self._add_step(side, "residence"), "country") for side in (left, right))
        return (*one.lines, *other.lines, f"FILTER({one.term} != {other.term})")

    def _alive_condition(self, people: _PeoplePattern, day: str) -> str:
        death = self._new_variable("death")
        return f"FILTER NOT EXISTS {{ {people.term} {_property_path('death')} {death} . FILTER({death} < {day}) }}"

    def _count_each(self, counted: Related) -> tuple[str, tuple[str, ...]]:
        whose = self._build_people(counted.of)
        related = self._add_relation(_PeoplePattern(whose.term), counted)
        lines = (*whose.lines, "OPTIONAL {", *_indent(related.lines), "}")
        inner = f"SELECT {whose.term} (COUNT(DISTINCT {related.term}) AS ?count) WHERE {{"
        return "SELECT DISTINCT ?count WHERE", (inner, *_indent(lines), f"}} GROUP BY {whose.term}")

    @singledispatchmethod
    def _build_people(self, expression: Expression) -> _PeoplePattern:
        raise TypeError(f"{type(expression).__name__} does not denote people")

    @_build_people.register
    def _(self, named: Named) -> _PeoplePattern:
        return _PeoplePattern(f"wd:{self._items.person(named.person)}")

    @_build_people.register
    def _(self, having: Having) -> _PeoplePattern:
        person = self._new_variable("person")
        return _PeoplePattern(
            person, (f"{person} {_property_path(having.fact)} {self._format_value(having.fact, having.value)} .",), 1
        )

    @_build_people.register
    def _(self, expression: Related) -> _PeoplePattern:
        return self._add_relation(self._build_people(expression.of).as_subselect(), expression)

    @_build_people.register
    def _(self, only: Only) -> _PeoplePattern:
        people, value = self._build_people(only.of), self._format_value(only.fact, only.value)
        if only.test == "is":
            return people.extend(people.term, f"{people.term} {_property_path(only.fact)} {value} .")
        day = self._add_step(people, only.fact)
        return day.extend(people.term, f"FILTER({day.term} {'<' if only.test == 'before' else '>'} {value})")

    @_build_people.register
    def _(self, both: Both) -> _PeoplePattern:
        left, right = self._build_people(both.left), self._build_people(both.right)
        if not (left.lines and right.lines):
            return left.extend(left.term, *right.lines, f"FILTER({left.term} = {right.term})")
        # One variable for both sides: a filter would run over every pair.
        renamed = re.compile(rf"{re.escape(right.term)}\b")
        lines = (renamed.sub(left.term, line) for line in right.lines)
        return left.extend(left.term, *lines, steps=right.steps)

    @_build_people.register
    def _(self, most: Most) -> _PeoplePattern:
        people, again = self._build_people(most.of), self._build_people(most.of)
        day, every = self._add_step(people, most.fact), self._add_step(again, most.fact)
        end = f"{{ SELECT ({'MIN' if most.first else 'MAX'}({every.term}) AS {day.term}) WHERE {{"
        return day.extend(people.term, end, *_indent(every.lines), "} }", steps=_MAX_INLINE_STEPS)

    def _add_relation(self, people: _PeoplePattern, expression: Related) -> _PeoplePattern:
        for step in split_relation(get_relation(expression.relation)):
            head, tail = people.term, self._new_variable(step.name)
            if step.steps == (UP,):
                path = (
                    _property_path(step.name)
                    if step.women is not None
                    else f"{_property_path('father')}|{_property_path('mother')}"
                )
                lines = [f"{head} {path} {tail} ."]
            else:
                lines = [f"{head} {_property_path(step.steps[0])} {tail} ."]
                if step.women is not None:
                    lines.append(f"{tail} {_property_path('gender')} wd:{FEMALE if step.women else MALE} .")
            people = people.extend(tail, *lines, steps=1)
        return people

    def _add_step(self, of: _PeoplePattern, relation: str) -> _PeoplePattern:
        value = self._new_variable(relation)
        return of.extend(value, f"{of.term} {_property_path(relation)} {value} .", steps=1)

    def _format_value(self, fact: str, number: int) -> str:
        if FACT_VALUE_KINDS[fact] == "day":
            return f'"{date.fromordinal(number).isoformat()}T00:00:00Z"^^xsd:dateTime'
        return f"wd:{self._items.value_id(fact, number)}"

    def _new_variable(self, word: str) -> str:
        self._variables += 1
        return f"?{word}{self._variables}"


def _property_path(name: str) -> str:
    return f"wdt:{PROPERTY_IDS[name]}"
