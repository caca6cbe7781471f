"""Difficulty and hops of a question, as the PhantomWiki paper counts them, extended to our further operations."""

from fiction.questions.expressions import (
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
    child_expressions,
)
from fiction.universe.relations import get_relation

_STRATEGY_DIFFICULTIES = {"met": 4, "wedding": 3, "passport": 4}
"""Facts that each strategy needs."""


def compute_difficulty(expression: Expression) -> int:
    """Number of articles to read: that of each relation, plus one for each fact that is looked up, tested or compared.

    A count adds one; a counted relation adds nothing, as in the paper.
    """
    below = _counted_operations(expression)
    return _own_difficulty(expression) + sum(compute_difficulty(part) for part in below)


def count_hops(expression: Expression) -> int:
    """Number of goals: relations, facts, tests and counts."""
    own = 1 if isinstance(expression, Related) else _own_difficulty(expression)
    return own + sum(count_hops(part) for part in _counted_operations(expression))


def _counted_operations(expression: Expression) -> tuple[Expression, ...]:
    if isinstance(expression, Count) and isinstance(expression.of, Related):
        return (expression.of.of,)
    return child_expressions(expression)


def _own_difficulty(expression: Expression) -> int:
    match expression:
        case Related(name):
            return get_relation(name).difficulty
        case Having() | Only() | Most() | Fact() | Place() | Count():
            return 1
        case Compare():
            return 2
        case Same(country=country):
            return 4 if country else 2
        case Judge(strategy):
            return _STRATEGY_DIFFICULTIES[strategy]
    return 0
