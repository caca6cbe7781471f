"""Published questions as a world's questions.jsonl has them, with gold in every formalism."""

from typing import Any

import numpy as np

from worlds.generator.items import Items
from worlds.phantomwiki.chains import chain_of
from worlds.phantomwiki.published import PublishedQuestion
from worlds.phantomwiki.queries import read_query
from worlds.phantomwiki.values import Values
from worlds.questions.evaluate import KIND_OF_FACT
from worlds.questions.expressions import Count, Expression, Fact
from worlds.questions.names import Names
from worlds.questions.question import Gold
from worlds.universe.universe import FACTS, GRAPH, TEXT, Told, Universe


def told_by_both(universe: Universe) -> Told:
    """That text and graph each tell everything, as an instance's do."""
    masks = {fact: np.full(len(universe), TEXT | GRAPH, np.uint8) for fact in FACTS}
    return Told(masks, np.full(len(universe.friends.pairs), TEXT | GRAPH, np.uint8))


class Rows:
    """Makes the rows of the questions of one instance."""

    def __init__(self, values: Values) -> None:
        self._values = values
        universe = values.universe
        self._gold = Gold(universe, told_by_both(universe), Names(universe, plain=True))

    def row(self, question: PublishedQuestion) -> dict[str, Any]:
        """The row, with the published answers, difficulty, query and number of the template; how the answers are found
        is ours. UnknownGoal when the query cannot be read.
        """
        expression = read_query(question.goals, question.variable, self._values)
        chain = chain_of(expression)
        kind = chain.kind if chain else "", " ".join(question.template)
        return {
            **self._gold.of(0, expression, question.text, kind).to_row(),
            "id": question.id,
            "answers": [{"text": text, "entity": self._entity(expression, text)} for text in question.answers],
            "difficulty": question.difficulty,
            "type": question.type,
            "prolog": question.prolog(),
        }

    def _entity(self, expression: Expression, text: str) -> str | None:
        items = Items(self._values.universe)
        kind = _kind(expression)
        item_of = {"person": items.person, "job": items.job, "hobby": items.hobby}.get(kind)
        try:
            return item_of(self._values.number(kind, text)) if item_of else None
        except ValueError:
            # A wrong answer may name nobody; whether it is right is verified, not imported.
            return None


def _kind(expression: Expression) -> str:
    match expression:
        case Fact(fact):
            return KIND_OF_FACT[fact]
        case Count():
            return "number"
    return "person"
