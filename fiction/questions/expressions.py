"""Expression trees: the meaning of a question as operations over a universe; all gold formalisms derive from them.

People and values are numbers of one universe, so an expression has no meaning in another. Class and field names are
stored in questions.jsonl.
"""

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Named:
    """One person, by row."""

    person: int


@dataclass(frozen=True, slots=True)
class Having:
    """All people whose fact (job, hobby, birth, birthplace, residence) has the value."""

    fact: str
    value: int


@dataclass(frozen=True, slots=True)
class Related:
    """All people with the relation (fiction.universe.relations) to any person of `of`."""

    relation: str
    of: "People"


@dataclass(frozen=True, slots=True)
class Only:
    """The people whose fact `is` the value, or lies `before` or `after` it (days only)."""

    of: "People"
    fact: str
    test: str
    value: int


@dataclass(frozen=True, slots=True)
class Both:
    """Intersection of two sets of people."""

    left: "People"
    right: "People"


@dataclass(frozen=True, slots=True)
class Most:
    """The people with the earliest (`first`) or latest day; all who share that day."""

    of: "People"
    fact: str
    first: bool


People = Named | Having | Related | Only | Both | Most


@dataclass(frozen=True, slots=True)
class Fact:
    """Values of a fact of the people: job, hobby, birth, death, wedding, birthplace, residence."""

    fact: str
    of: People


@dataclass(frozen=True, slots=True)
class Place:
    """Regions or countries of towns; `kind` is "region" or "country"."""

    kind: str
    of: Fact


@dataclass(frozen=True, slots=True)
class Count:
    """Number of distinct people; with `each`, the set of the counts per person of `of.of`, as in the paper."""

    of: People
    each: bool = False


@dataclass(frozen=True, slots=True)
class Compare:
    """The one of two people with the earlier (`first`) or later day; none if the days are equal."""

    left: People
    right: People
    fact: str
    first: bool


@dataclass(frozen=True, slots=True)
class Same:
    """Whether two people have the same value of a fact, or with `country` the same country of it."""

    left: People
    right: People
    fact: str
    country: bool = False


@dataclass(frozen=True, slots=True)
class Judge:
    """A yes-no question with an implicit strategy.

    `met`: the lives overlap; `wedding`: the left person was alive on the day of the right person's wedding; `passport`:
    they live in different countries.
    """

    strategy: str
    left: People
    right: People


Expression = People | Fact | Place | Count | Compare | Same | Judge

_NODE_CLASSES = (Named, Having, Related, Only, Both, Most, Fact, Place, Count, Compare, Same, Judge)
_CLASSES_BY_NAME: dict[str, Any] = {node.__name__.lower(): node for node in _NODE_CLASSES}


def encode_expression(expression: Expression) -> dict[str, Any]:
    """Encode the tree as JSON objects; "op" is the operation."""
    node: dict[str, Any] = {"op": type(expression).__name__.lower()}
    for attribute in fields(expression):
        value = getattr(expression, attribute.name)
        node[attribute.name] = encode_expression(value) if isinstance(value, _NODE_CLASSES) else value
    return node


def decode_expression(node: dict[str, Any]) -> Expression:
    """Decode a tree; KeyError or TypeError if it is malformed."""
    values = {
        n: decode_expression(value) if isinstance(value, dict) else value for n, value in node.items() if n != "op"
    }
    expression: Expression = _CLASSES_BY_NAME[node["op"]](**values)
    return expression


def child_expressions(expression: Expression) -> tuple[Expression, ...]:
    """Direct child operations, left before right."""
    values = (getattr(expression, attribute.name) for attribute in fields(expression))
    return tuple(value for value in values if isinstance(value, _NODE_CLASSES))


def is_chain(expression: Expression) -> bool:
    """Whether the expression is a single path of relations and facts from one start."""
    below = child_expressions(expression)
    if isinstance(expression, (Named, Having)):
        return True
    return isinstance(expression, (Related, Fact, Place, Count)) and len(below) == 1 and is_chain(below[0])
