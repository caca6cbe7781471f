"""Gold decompositions of a question, written from its reasoning tree: AtomR, PDRR and GEEK formats.

Atomic tree (AtomR): {"number": 0, "question", "answers", "count", "children": [...]}. A leaf has "operator" (Search,
Relate, Filter, or DR for direct reasoning) and "arguments" in place of children; the argument "[3]" refers to the
answers of question 3. A DR leaf has "how": both, count, count each, earliest, latest, earlier, later, same, different,
overlap, within. Questions are numbered breadth first, as in the paper.

Triples (PDRR): {"decomposition": [[subject, relation, object], ...], "completed": [{"subject", "subject_id",
"relation", "pid", "object", "object_id"}, ...]}. Unknowns are written person#1, date#2, country#3; a condition is part
of the object ("before 5 March 1931").

Sub-questions (GEEK, in StrategyQA's form): [{"question", "answers", "count", "facts", "retrieval"}, ...] in order; "#2"
refers to the answers of the second. The answer of the last is that of the question.

Lists are limited to MAX_ANSWERS_SHOWN: "count" is the full number of answers, "left_off" the number (for triples, the
fact) of omitted ones, and "more_facts" says that facts were omitted.
"""

from collections import deque
from functools import singledispatchmethod
from itertools import islice
from typing import Any

from showhow.fiction.questions import wording
from showhow.fiction.questions.evaluate import FACT_VALUE_KINDS, FactTriple
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
    is_chain,
)
from showhow.fiction.questions.names import MAX_ANSWERS_SHOWN, ThingCatalog
from showhow.fiction.questions.reasoning import (
    DIRECT_REASONING,
    SEARCH,
    ReasoningBuilder,
    ReasoningNode,
    split_relation,
)
from showhow.fiction.questions.wording import FACT_LABELS
from showhow.fiction.universe.items import PROPERTY_IDS, PROPERTY_RELATIONS
from showhow.fiction.universe.relations import get_relation


def build_atomic_tree(root: ReasoningNode, things: ThingCatalog) -> dict[str, Any]:
    """Encode the tree as JSON objects, each question with its gold answers."""
    return _encode_node(root, things, number_nodes(root))


def number_nodes(root: ReasoningNode) -> dict[ReasoningNode, int]:
    """Number the nodes of a tree breadth first, as in the paper."""
    numbers: dict[ReasoningNode, int] = {}
    queue = deque([root])
    while queue:
        node = queue.popleft()
        numbers[node] = len(numbers)
        queue.extend(node.children)
    return numbers


def _encode_node(node: ReasoningNode, things: ThingCatalog, numbers: dict[ReasoningNode, int]) -> dict[str, Any]:
    def render(part: str | ReasoningNode) -> str:
        return part if isinstance(part, str) else f"[{numbers[part]}]"

    encoded: dict[str, Any] = {"number": numbers[node], "question": "".join(map(render, node.question))}
    encoded |= things.encode_bounded_answers(node.kind, node.values)
    if node.children:
        return encoded | {"children": [_encode_node(child, things, numbers) for child in node.children]}
    encoded |= {"operator": node.operator, "arguments": [render(part) for part in node.arguments]}
    return encoded | {"how": node.relation} if node.operator == DIRECT_REASONING else encoded


def build_subquestions(reasoning: ReasoningBuilder, root: ReasoningNode) -> list[dict[str, Any]]:
    """Build one sub-question per operation; entities that the question names need none."""
    leaves = [leaf for leaf in root.leaves() if leaf.needs_retrieval or leaf.operator != SEARCH]
    references = {leaf: f"#{number}" for number, leaf in enumerate(leaves, 1)}

    def render(part: str | ReasoningNode) -> str:
        if isinstance(part, str):
            return part
        *_, last = part.leaves()
        return references.get(last) or reasoning.things.sentence_text(last.kind, int(last.values[0]))

    return [_encode_subquestion(leaf, reasoning) | {"question": "".join(map(render, leaf.question))} for leaf in leaves]


def _encode_subquestion(leaf: ReasoningNode, reasoning: ReasoningBuilder) -> dict[str, Any]:
    things = reasoning.things
    triples = list(islice(dict.fromkeys(reasoning.supporting_facts(leaf)), MAX_ANSWERS_SHOWN + 1))
    facts = [wording.fact_sentence(triple, things) for triple in triples[:MAX_ANSWERS_SHOWN]]
    encoded: dict[str, Any] = {"question": "", **things.encode_bounded_answers(leaf.kind, leaf.values), "facts": facts}
    if len(triples) > MAX_ANSWERS_SHOWN:
        encoded["more_facts"] = True
    return encoded | {"retrieval": leaf.needs_retrieval}


_UNKNOWN_NAMES = {"day": "date", "job": "occupation"}


def classify_structure(expression: Expression) -> str:
    """Return "chain" for a single path of dependent steps, else "parallel"."""
    return "chain" if is_chain(expression) else "parallel"


def build_triples(expression: Expression, reasoning: ReasoningBuilder, root: ReasoningNode) -> dict[str, Any]:
    """Build the decomposition and the completed triples."""
    things = reasoning.things
    completed: list[dict[str, Any]] = []
    left_off = False
    for leaf in root.leaves():
        triples = list(islice(dict.fromkeys(reasoning.supporting_facts(leaf)), MAX_ANSWERS_SHOWN + 1))
        left_off |= len(triples) > MAX_ANSWERS_SHOWN
        completed += [encode_completed_triple(triple, things) for triple in triples[:MAX_ANSWERS_SHOWN]]
    distinct = list({tuple(triple.values()): triple for triple in completed}.values())
    encoded: dict[str, Any] = {
        "decomposition": TripleDecomposition(things).decompose(expression),
        "completed": distinct,
    }
    return encoded | {"left_off": True} if left_off else encoded


def encode_completed_triple(triple: FactTriple, things: ThingCatalog) -> dict[str, Any]:
    """Encode a fact as a completed triple."""
    pid = PROPERTY_IDS[triple.relation]
    return {
        "subject": things.answer_text(*triple.subject),
        "subject_id": things.entity_id(*triple.subject),
        "relation": PROPERTY_RELATIONS[pid],
        "pid": pid,
        "object": things.answer_text(*triple.object),
        "object_id": things.entity_id(*triple.object),
    }


class TripleDecomposition:
    """Decomposes one expression into triples; unknowns are numbered in order of appearance."""

    def __init__(self, things: ThingCatalog) -> None:
        self._things = things
        self._triples: list[list[str]] = []
        self._unknown_count = 0

    def decompose(self, expression: Expression) -> list[list[str]]:
        """The triples in the order in which they are completed."""
        self._write_question(expression)
        return self._triples

    def _new_unknown(self, kind: str) -> str:
        self._unknown_count += 1
        return f"{_UNKNOWN_NAMES.get(kind, kind)}#{self._unknown_count}"

    @singledispatchmethod
    def _write_question(self, expression: Expression) -> str:
        """Write the triples of an expression and return the name of its last unknown."""
        return self._write_people(expression, "")

    @_write_question.register
    def _(self, fact: Fact) -> str:
        return self._write_fact(fact.fact, self._write_people(fact.of, ""))

    @_write_question.register
    def _(self, place: Place) -> str:
        return self._write_place(place.kind, self._write_question(place.of))

    @_write_question.register
    def _(self, count: Count) -> str:
        return self._write_people(count.of, "")

    @_write_question.register
    def _(self, compare: Compare) -> str:
        return [self._write_fact(compare.fact, self._write_people(side, "")) for side in (compare.left, compare.right)][
            -1
        ]

    @_write_question.register
    def _(self, same: Same) -> str:
        ends = [self._write_fact(same.fact, self._write_people(side, "")) for side in (same.left, same.right)]
        return [self._write_place("country", end) for end in ends][-1] if same.country else ends[-1]

    @_write_question.register
    def _(self, judge: Judge) -> str:
        if judge.strategy == "passport":
            return self._write_question(Same(judge.left, judge.right, "residence", country=True))
        lived = ("birth", "death")
        last = ""
        for side, facts in ((judge.left, lived), (judge.right, lived if judge.strategy == "met" else ("wedding",))):
            person = self._write_people(side, "")
            last = [self._write_fact(fact, person) for fact in facts][-1]
        return last

    @singledispatchmethod
    def _write_people(self, people: Expression, name: str) -> str:
        """Write the triples of people and return their name: `name`, or a new unknown if it is empty."""
        raise TypeError(f"{type(people).__name__} does not denote people ({name or 'unknown'})")

    @_write_people.register
    def _(self, named: Named, name: str) -> str:  # noqa: ARG002 - a named person needs no other name
        return self._things.universe.titles[named.person]

    @_write_people.register
    def _(self, having: Having, name: str) -> str:
        person = name or self._new_unknown("person")
        value = self._things.sentence_text(FACT_VALUE_KINDS[having.fact], having.value)
        self._triples.append([person, FACT_LABELS[having.fact], value])
        return person

    @_write_people.register
    def _(self, expression: Related, name: str) -> str:
        head = self._write_people(expression.of, "")
        steps = split_relation(get_relation(expression.relation))
        for place, step in enumerate(steps, 1):
            tail = name if name and place == len(steps) else self._new_unknown("person")
            self._triples.append([head, step.singular, tail])
            head = tail
        return head

    @_write_people.register
    def _(self, only: Only, name: str) -> str:
        person = self._write_people(only.of, name)
        value = self._things.sentence_text(FACT_VALUE_KINDS[only.fact], only.value)
        self._triples.append([person, FACT_LABELS[only.fact], value if only.test == "is" else f"{only.test} {value}"])
        return person

    @_write_people.register
    def _(self, both: Both, name: str) -> str:
        # One name on both sides: the person must satisfy both.
        person = name or self._new_unknown("person")
        for side in (both.left, both.right):
            self._write_people(side, person)
        return person

    @_write_people.register
    def _(self, most: Most, name: str) -> str:
        person = self._write_people(most.of, name)
        self._triples.append([person, FACT_LABELS[most.fact], self._new_unknown("day")])
        return person

    def _write_fact(self, fact: str, person: str) -> str:
        value = self._new_unknown(FACT_VALUE_KINDS[fact])
        self._triples.append([person, FACT_LABELS[fact], value])
        return value

    def _write_place(self, kind: str, town: str) -> str:
        place = self._new_unknown(kind)
        self._triples.append([town, kind, place])
        return place
