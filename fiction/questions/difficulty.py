"""How hard a question is by the paper's count, carried on to the operations that the paper has not."""

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
"""The facts that each judgement rests on."""


def compute_difficulty(expression: Expression) -> int:
    """The articles to read: a relation's own number, and one for each fact that is looked up, tested or compared.

    Counting is one, and what is counted adds nothing when it is a relation of somebody, as in the paper.
    """
    below = _counted_operations(expression)
    return _own_difficulty(expression) + sum(compute_difficulty(part) for part in below)


def count_hops(expression: Expression) -> int:
    """How many goals the question has: relations, facts, tests, a count."""
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
