"""What a question asks, as a tree of operations over a universe; every gold formalism is made from it.

People and values are numbers of the universe, so that an expression means something in its own universe only.
"""

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Named:
    """One person, by row."""

    person: int


@dataclass(frozen=True, slots=True)
class Having:
    """Everybody whose fact (job, hobby, birth, birthplace, residence) is the value."""

    fact: str
    value: int


@dataclass(frozen=True, slots=True)
class Related:
    """Everybody who is the relation (worlds.universe.relations) of any of them."""

    relation: str
    of: "People"


@dataclass(frozen=True, slots=True)
class Only:
    """Those of them whose fact is (`is`), or lies `before` or `after`, the value; before and after are for days."""

    of: "People"
    fact: str
    test: str
    value: int


@dataclass(frozen=True, slots=True)
class Both:
    """Those who are among the left and among the right."""

    left: "People"
    right: "People"


@dataclass(frozen=True, slots=True)
class Most:
    """Of them who has the earliest (`first`) or else the latest day; all who share it."""

    of: "People"
    fact: str
    first: bool


People = Named | Having | Related | Only | Both | Most


@dataclass(frozen=True, slots=True)
class Fact:
    """Each value of the fact of any of them: job, hobby, birth, death, wedding, birthplace, residence."""

    fact: str
    of: People


@dataclass(frozen=True, slots=True)
class Place:
    """The regions (`region`) or countries (`country`) of the towns."""

    kind: str
    of: Fact


@dataclass(frozen=True, slots=True)
class Count:
    """How many different people they are; with `each`, the set of how many the relation gives for each person in
    `of.of` (what the paper's generator calls the answer).
    """

    of: People
    each: bool = False


@dataclass(frozen=True, slots=True)
class Compare:
    """Which of two people has the earlier (`first`) or later day; nobody when they share it."""

    left: People
    right: People
    fact: str
    first: bool


@dataclass(frozen=True, slots=True)
class Same:
    """Whether two people have the same value of the fact, or of the country of it when `country`."""

    left: People
    right: People
    fact: str
    country: bool = False


@dataclass(frozen=True, slots=True)
class Judge:
    """Yes or no by a strategy that the wording does not tell: `met` (their lives overlap), `wedding` (the left one
    lived on the day of the right one's wedding), `passport` (they live in different countries).
    """

    strategy: str
    left: People
    right: People


Expression = People | Fact | Place | Count | Compare | Same | Judge

_NODE_CLASSES = (Named, Having, Related, Only, Both, Most, Fact, Place, Count, Compare, Same, Judge)
_CLASSES_BY_NAME: dict[str, Any] = {node.__name__.lower(): node for node in _NODE_CLASSES}


def encode_expression(expression: Expression) -> dict[str, Any]:
    """The tree as JSON objects, the operation under "op"."""
    node: dict[str, Any] = {"op": type(expression).__name__.lower()}
    for attribute in fields(expression):
        value = getattr(expression, attribute.name)
        node[attribute.name] = encode_expression(value) if isinstance(value, _NODE_CLASSES) else value
    return node


def decode_expression(node: dict[str, Any]) -> Expression:
    """The tree again; KeyError or TypeError for what is none."""
    values = {
        n: decode_expression(value) if isinstance(value, dict) else value for n, value in node.items() if n != "op"
    }
    expression: Expression = _CLASSES_BY_NAME[node["op"]](**values)
    return expression


def child_expressions(expression: Expression) -> tuple[Expression, ...]:
    """The operations right below this one, left before right."""
    values = (getattr(expression, attribute.name) for attribute in fields(expression))
    return tuple(value for value in values if isinstance(value, _NODE_CLASSES))


def is_chain(expression: Expression) -> bool:
    """Whether it is one path of relations and facts from one start."""
    below = child_expressions(expression)
    if isinstance(expression, (Named, Having)):
        return True
    return isinstance(expression, (Related, Fact, Place, Count)) and len(below) == 1 and is_chain(below[0])
