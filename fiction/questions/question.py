"""Questions of a generated world with all gold parts, their difficulty, and the minimal sets of sources they need."""

from collections.abc import Collection
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from fiction.questions.decomposition import build_atomic_tree, build_subquestions, build_triples, classify_structure
from fiction.questions.evaluate import ExpressionAnswer, ExpressionEvaluator, FactEvaluator, FactTriple, is_stated
from fiction.questions.expressions import (
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
    child_expressions,
    encode_expression,
)
from fiction.questions.names import NameFormatter, ThingCatalog
from fiction.questions.reasoning import ReasoningBuilder
from fiction.questions.sparql import build_sparql
from fiction.questions.wording import FACT_LABELS, noun_phrase
from fiction.universe.items import ItemCatalog
from fiction.universe.options import GENERATOR_VERSION
from fiction.universe.relations import get_relation
from fiction.universe.universe import SOURCES, FactSources, Universe

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


_MONOTONIC_OPERATIONS = (Named, Having, Related, Only, Both, Fact, Place)
"""Operations whose result can only grow when more facts are known."""
_SOURCE_SETS = [chosen for size in (1, 2) for chosen in combinations(SOURCES, size)]
"""Sets of one or two sources, smaller sets first; all three sources together state everything."""


class SourceNeeds:
    """Finds the sets of sources that can derive an expression's answers, by evaluating it on each set.

    The sources must state every supporting fact. For monotonic expressions (relations, facts, filters, intersections)
    equal answers suffice then. For all others (counts, comparisons, superlatives, yes-no questions, questions without
    an answer) every intermediate set and value must be the same as with all sources. The absence of a fact is not
    withheld: a person without a death counts as alive.
    """

    def __init__(self, universe: Universe, fact_sources: FactSources) -> None:
        self._everything = ExpressionEvaluator(universe)
        self._universes = {
            chosen: universe.restrict_to_sources(fact_sources, sum(SOURCES[source] for source in chosen))
            for chosen in _SOURCE_SETS
        }
        self._evaluators = {chosen: ExpressionEvaluator(restricted) for chosen, restricted in self._universes.items()}

    def find_sufficient_sets(self, expression: Expression, facts: Collection[FactTriple] = ()) -> list[list[str]]:
        """All minimal sets of sources that derive the answers and state these facts."""
        answer = self._everything.evaluate(expression)
        sufficient: list[set[str]] = []
        for source_set, evaluation in self._evaluators.items():
            has_smaller_set = any(sufficient_sets <= set(source_set) for sufficient_sets in sufficient)
            if (
                not has_smaller_set
                and self._derives_answer(evaluation, expression, answer)
                and all(is_stated(self._universes[source_set], fact) for fact in facts)
            ):
                sufficient.append(set(source_set))
        sufficient_sets = sufficient or [set(SOURCES)]
        return [[source for source in SOURCES if source in source_set] for source_set in sufficient_sets]

    def _derives_answer(
        self, evaluation: ExpressionEvaluator, expression: Expression, answer: ExpressionAnswer
    ) -> bool:
        if evaluation.evaluate(expression) != answer:
            return False
        return bool(answer.values and _is_monotonic(expression)) or _has_same_stages(evaluation, self._everything)


def _has_same_stages(one: ExpressionEvaluator, other: ExpressionEvaluator) -> bool:
    if len(one.stages) != len(other.stages):
        return False
    return all(
        len(mine) == len(theirs) and bool((mine == theirs).all())
        for (_, mine), (_, theirs) in zip(one.stages, other.stages, strict=True)
    )


def _is_monotonic(expression: Expression) -> bool:
    return isinstance(expression, _MONOTONIC_OPERATIONS) and all(map(_is_monotonic, child_expressions(expression)))


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
    """Minimal sets of sources that derive the answers."""
    expression: Expression
    sparql: str
    tree: dict[str, Any]
    triples: dict[str, Any]
    subquestions: list[dict[str, Any]]
    minimal: bool | None = None
    """Whether no proper subset of its facts gives its answers, so that no hop can be skipped.

    None for a question without an answer, and for those of the first version of the generator.
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


def is_minimal(expression: Expression, facts: Collection[FactTriple], universe: Universe) -> bool:
    """Whether the answers that follow from these facts follow from no proper subset of them."""
    return FactEvaluator(facts, universe.today).find_spare_fact(expression) is None


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
        facts = self._reasoning.list_supporting_facts(root) if self._generator > 1 else ()
        return GeneratedQuestion(
            id=_format_id(number),
            text=text,
            kind=kind[0],
            template=kind[1],
            answers=list(self._things.encode_answers(root.kind, root.values)),
            difficulty=compute_difficulty(expression),
            hops=count_hops(expression),
            structure=classify_structure(expression),
            needs=self._needs.find_sufficient_sets(expression, facts),
            expression=expression,
            sparql=build_sparql(expression, self._universe),
            tree=build_atomic_tree(root, self._things),
            triples=build_triples(expression, self._reasoning, root),
            subquestions=build_subquestions(self._reasoning, root),
            minimal=is_minimal(expression, facts, self._universe) if len(root.values) and facts else None,
            false_premise=None if len(root.values) or self._generator == 1 else self._find_false_premise(expression),
            # The question without an answer comes first.
            pair=_format_id(number - 1 if len(root.values) else number + 1) if kind[0] == PAIR_KIND else None,
        )

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
            relation = get_relation(expression.relation).singular
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
