"""Questions of a generated world with all gold parts, their difficulty, and the minimal sets of sources they need."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from showhow.fiction.questions.decomposition import (
    build_atomic_tree,
    build_subquestions,
    build_triples,
    classify_structure,
)
from showhow.fiction.questions.evaluate import ExpressionEvaluator, FactEvaluator, FactTriple
from showhow.fiction.questions.expressions import (
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
    encode_expression,
)
from showhow.fiction.questions.names import NameFormatter, ThingCatalog
from showhow.fiction.questions.needs import SourceNeeds, find_absent_kinds, iter_examined_facts
from showhow.fiction.questions.reasoning import ReasoningBuilder
from showhow.fiction.questions.sparql import build_sparql
from showhow.fiction.questions.wording import FACT_LABELS, noun_phrase
from showhow.fiction.universe.items import ItemCatalog
from showhow.fiction.universe.options import GENERATOR_VERSION
from showhow.fiction.universe.relations import get_relation
from showhow.fiction.universe.universe import FactSources, Universe

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


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedQuestion:
    """A question, all correct answers, and its gold reasoning in each formalism."""

    id: str
    """Number of the question in its world: q-000123."""
    text: str
    kind: str
    template: str
    """The text with placeholders: Who is the <relation> of <name>?"""
    answers: list[dict[str, str | None]]
    """Each {"text", "entity"}; empty for a question without an answer."""
    difficulty: int
    hops: int
    structure: str
    """chain or parallel."""
    needs: list[list[str]]
    """The smallest sets of sources that are needed to be certain of the answers (fiction.questions.needs)."""
    expression: Expression
    sparql: str
    tree: dict[str, Any]
    triples: dict[str, Any]
    subquestions: list[dict[str, Any]]
    minimal: bool | None = None
    """Whether its facts give its answers and no proper subset of them does, so that no hop can be skipped.

    False if it also presumes that there is something not, such as a death. None for a question without an answer, and
    for those of the first version of the generator.
    """

    false_premise: dict[str, Any] | None = None
    """The premise that fails: {"text", "subjects", "relation"}: none of the subjects has this relation or fact.

    None if the question has an answer, or if it fails for another reason.
    """

    pair: str | None = None
    """Id of the other question of its pair: the sources state what one of them asks for, and not the other's."""

    def to_row(self) -> dict[str, Any]:
        """The JSON object for questions.jsonl, which `showhow questions import` reads."""
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
            "expression": encode_expression(self.expression),
            "sparql": self.sparql,
            "tree": self.tree,
            "triples": self.triples,
            "subquestions": self.subquestions,
            "decomposition": self.triples["completed"],
            **({} if self.minimal is None else {"minimal": self.minimal}),
            **({} if self.false_premise is None else {"false_premise": self.false_premise}),
            **({} if self.pair is None else {"pair": self.pair}),
        }


def is_minimal(
    expression: Expression, facts: Collection[FactTriple], universe: Universe, absent: Collection[str] = ()
) -> bool:
    """Whether the answers that follow from these facts, and from no absent ones, follow from no proper subset."""
    return not absent and FactEvaluator(facts, universe.today).find_spare_fact(expression) is None


PAIR_KIND = "pair"


def _format_id(number: int) -> str:
    return f"q-{number:06d}"


class GoldBuilder:
    """Builds the gold parts of questions over one universe; `generator` is the version whose rules they follow."""

    def __init__(
        self,
        universe: Universe,
        fact_sources: FactSources,
        names: NameFormatter,
        generator: int = GENERATOR_VERSION,
    ) -> None:
        self._universe, self._generator = universe, generator
        self._things = ThingCatalog(universe, ItemCatalog(universe), names)
        self._reasoning = ReasoningBuilder(self._things)
        self._needs = SourceNeeds(universe, fact_sources)
        self._evaluation = ExpressionEvaluator(universe)

    def build(self, number: int, expression: Expression, text: str, kind: tuple[str, str]) -> GeneratedQuestion:
        """Build a question; `kind` is (kind, template)."""
        root = self._reasoning.build_tree(expression, text)
        facts = self._reasoning.list_supporting_facts(root)
        absent = find_absent_kinds(expression, root, self._universe)
        examined = iter_examined_facts(expression, root, self._reasoning, self._universe)
        return GeneratedQuestion(
            id=_format_id(number),
            text=text,
            kind=kind[0],
            template=kind[1],
            answers=list(self._things.encode_answers(root.kind, root.values)),
            difficulty=compute_difficulty(expression),
            hops=count_hops(expression),
            structure=classify_structure(expression),
            needs=self._needs.find_sufficient_sets(examined, absent),
            expression=expression,
            sparql=build_sparql(expression, self._universe),
            tree=build_atomic_tree(root, self._things),
            triples=build_triples(expression, self._reasoning, root),
            subquestions=build_subquestions(self._reasoning, root),
            minimal=self._is_minimal(expression, facts, absent) if len(root.values) and facts else None,
            false_premise=None if len(root.values) or self._generator == 1 else self._find_false_premise(expression),
            # The question without an answer comes first.
            pair=_format_id(number - 1 if len(root.values) else number + 1) if kind[0] == PAIR_KIND else None,
        )

    def _is_minimal(
        self, expression: Expression, facts: Collection[FactTriple], absent: Collection[str]
    ) -> bool | None:
        if self._generator == 1:
            return None
        return is_minimal(expression, facts, self._universe, absent if self._generator > 2 else ())

    def _find_false_premise(self, expression: Expression) -> dict[str, Any] | None:
        """The innermost relation or fact that none of its subjects has."""
        for part in child_expressions(expression):
            if premise := self._find_false_premise(part):
                return premise
        if not isinstance(expression, (Related, Fact)):
            return None
        subjects = self._evaluation.evaluate(expression.of)
        if not subjects.values or self._evaluation.evaluate(expression).values:
            return None
        whose = noun_phrase(expression.of, self._things.names)
        if isinstance(expression, Related):
            relation = self._things.names.relation_noun(get_relation(expression.relation))
            text = f"{whose} {'have' if self._things.names.is_plural(expression.of) else 'has'} no {relation}"
        else:
            relation = FACT_LABELS[expression.fact]
            text = f"no {relation} of {whose} is known"
        people = np.array(subjects.values, np.int32)
        return {
            "text": f"{text[0].upper()}{text[1:]}.",
            "subjects": list(self._things.encode_answers("person", people)),
            "relation": relation,
        }
