"""How hard a question is by the paper's count, carried on to the operations that the paper has not."""

from worlds.questions.expressions import (
    Compare,
    Count,
    Expression,
    Fact,
    Having,
    Judge,
    Most,
    Only,
    Place,
    Related,
    Same,
    parts,
)
from worlds.universe.relations import relation

_JUDGED = {"met": 4, "wedding": 3, "passport": 4}
"""The facts that each judgement rests on."""


def difficulty(expression: Expression) -> int:
    """The articles to read: a relation's own number, and one for each fact that is looked up, tested or compared.

    Counting is one, and what is counted adds nothing when it is a relation of somebody, as in the paper.
    """
    below = _counted(expression)
    return _own(expression) + sum(difficulty(part) for part in below)


def hops(expression: Expression) -> int:
    """How many goals the question has: relations, facts, tests, a count."""
    own = 1 if isinstance(expression, Related) else _own(expression)
    return own + sum(hops(part) for part in _counted(expression))


def _counted(expression: Expression) -> tuple[Expression, ...]:
    if isinstance(expression, Count) and isinstance(expression.of, Related):
        return (expression.of.of,)
    return parts(expression)


def _own(expression: Expression) -> int:
    match expression:
        case Related(name):
            return relation(name).difficulty
        case Having() | Only() | Most() | Fact() | Place() | Count():
            return 1
        case Compare():
            return 2
        case Same(country=country):
            return 4 if country else 2
        case Judge(strategy):
            return _JUDGED[strategy]
    return 0
