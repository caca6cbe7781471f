"""A question of a generated world with all its gold."""

from dataclasses import dataclass
from typing import Any

from worlds.generator.items import Items
from worlds.questions.atoms import tree
from worlds.questions.difficulty import difficulty, hops
from worlds.questions.expressions import Expression, to_json
from worlds.questions.names import Names
from worlds.questions.needs import Needs
from worlds.questions.reasoning import Reasoning
from worlds.questions.sparql import sparql
from worlds.questions.subquestions import subquestions
from worlds.questions.things import Things
from worlds.questions.triples import structure, triples
from worlds.universe.universe import Told, Universe


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedQuestion:
    """What is asked, every right answer, and how it is found, in each formalism."""

    id: str
    """Its place among the questions of its world: q-000123."""
    text: str
    kind: str
    template: str
    """The text with blanks for what was drawn: Who is the <relation> of <name>?"""
    answers: list[dict[str, str | None]]
    """Each {"text", "entity"}; none for a question that has no answer."""
    difficulty: int
    hops: int
    structure: str
    """chain or parallel."""
    needs: list[list[str]]
    """The smallest sets of sources that can derive the answers."""
    expression: Expression
    sparql: str
    tree: dict[str, Any]
    triples: dict[str, Any]
    subquestions: list[dict[str, Any]]

    def to_row(self) -> dict[str, Any]:
        """The JSON object of a line of questions.jsonl, which `showhow questions import` reads."""
        return {
            "id": self.id,
            "text": self.text,
            "kind": self.kind,
            "template": self.template,
            "answers": self.answers,
            "difficulty": self.difficulty,
            "hops": self.hops,
            "structure": self.structure,
            "needs": self.needs,
            "expression": to_json(self.expression),
            "sparql": self.sparql,
            "tree": self.tree,
            "triples": self.triples,
            "subquestions": self.subquestions,
            "decomposition": self.triples["completed"],
        }


class Gold:
    """Finds the gold of questions about one universe."""

    def __init__(self, universe: Universe, told: Told, names: Names) -> None:
        self._universe = universe
        self._things = Things(universe, Items(universe), names)
        self._reasoning = Reasoning(self._things)
        self._needs = Needs(universe, told)

    def of(self, number: int, expression: Expression, text: str, kind: tuple[str, str]) -> GeneratedQuestion:
        """The question of that number; `kind` and template."""
        root = self._reasoning.root(expression, text)
        return GeneratedQuestion(
            id=f"q-{number:06d}",
            text=text,
            kind=kind[0],
            template=kind[1],
            answers=list(self._things.answers(root.kind, root.values)),
            difficulty=difficulty(expression),
            hops=hops(expression),
            structure=structure(expression),
            needs=self._needs.of(expression),
            expression=expression,
            sparql=sparql(expression, self._universe),
            tree=tree(root, self._things),
            triples=triples(expression, self._reasoning, root),
            subquestions=subquestions(self._reasoning, root),
        )
