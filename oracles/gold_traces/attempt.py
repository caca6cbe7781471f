"""The steps of a gold trace: tools are called, and each call becomes a step with the origins of its arguments.

Also the facts of a universe by relation, and the thoughts before each call, worded from the gold reasoning.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import numpy as np

from showhow.db.models import Step
from showhow.db.traces.recording import NewStep, apply_result, build_step
from showhow.db.unanswerable import read_unanswerable
from showhow.fiction.questions import wording
from showhow.fiction.questions.evaluate import FACT_VALUE_KINDS
from showhow.fiction.questions.names import ThingCatalog
from showhow.fiction.questions.reasoning import DIRECT_REASONING, FILTER, RELATE, ReasoningNode
from showhow.fiction.questions.wording import FACT_LABELS
from showhow.fiction.universe.relations import find_related, get_relation
from showhow.fiction.universe.universe import Universe
from showhow.reasoners.base import to_step_result
from showhow.reasoners.provenance import OriginTracer, collect_known_values
from showhow.tools.arguments import require_web
from showhow.tools.registry import get_tool as tool_named
from showhow.tools.tool import ToolContext

ValuePairs = set[tuple[int, int]]
"""Pairs (head, value), each a row or number of the universe."""
PLACE_RELATIONS = ("region", "country")


def relation_pairs(universe: Universe, name: str, heads: Iterable[int]) -> ValuePairs:
    """The pairs of these heads and their values by a relation, a fact of a person or a place of a town."""
    return {(head, value) for head in heads for value in _relation_values(universe, name, head)}


def _relation_values(universe: Universe, name: str, head: int) -> list[int]:
    if name in FACT_VALUE_KINDS:
        value = int(getattr(universe, name)[head])
        return [value] if value >= 0 else []
    if name in PLACE_RELATIONS:
        region = int(universe.places.region[head])
        return [region if name == "region" else int(universe.places.country[region])]
    values: list[int] = find_related(universe, get_relation(name), np.array([head], np.int32)).tolist()
    return values


def people_with_fact(universe: Universe, fact: str, value: int) -> set[int]:
    """The people of the universe whose fact has the value."""
    return set(universe.find_people_with(fact, value).tolist())


_MAX_NAMED = 3
_PLURALS = {
    "person": "people",
    "town": "towns",
    "region": "regions",
    "country": "countries",
    "job": "occupations",
    "hobby": "hobbies",
    "day": "days",
    "number": "numbers",
    "truth": "answers",
}


def name_values(things: ThingCatalog, kind: str, values: Sequence[int]) -> str:
    """Name the values, or count them if there are many."""
    if not values:
        return f"no {_PLURALS[kind]}"
    if len(values) > _MAX_NAMED:
        return f"these {len(values)} {_PLURALS[kind]}"
    texts = [things.sentence_text(kind, value) for value in values]
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


def node_question(things: ThingCatalog, leaf: ReasoningNode) -> str:
    """The question of an operation, with the values of its inputs filled in."""
    prefix = "each of " if leaf.operator == RELATE and len(leaf.inputs[0].values) > 1 else ""
    return "".join(part if isinstance(part, str) else prefix + _name_answers(things, part) for part in leaf.question)


def question_about(things: ThingCatalog, leaf: ReasoningNode, head: int) -> str:
    """The question of an operation about one of its heads."""
    name = things.sentence_text(leaf.inputs[0].kind, head)
    if leaf.operator == FILTER:
        return wording.FACT_QUESTIONS[leaf.relation].format(name)
    return "".join(part if isinstance(part, str) else name for part in leaf.question)


def relation_word(leaf: ReasoningNode) -> str:
    """The noun for what an operation looks up: child, date of birth."""
    return FACT_LABELS[leaf.relation] if leaf.relation in FACT_LABELS else str(leaf.arguments[1])


def describe_finding(things: ThingCatalog, leaf: ReasoningNode) -> str:
    """The question of an operation with its values."""
    return f"{node_question(things, leaf)} {_capitalize(name_values(things, leaf.kind, leaf.values.tolist()))}."


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def _name_answers(things: ThingCatalog, node: ReasoningNode) -> str:
    return name_values(things, node.kind, node.values.tolist())


def final_thought(things: ThingCatalog, leaf: ReasoningNode, answer: str) -> str:
    """The thought before the answer."""
    if leaf.operator == DIRECT_REASONING:
        return f"{node_question(things, leaf)} {_capitalize(answer)}."
    return answer if read_unanswerable(answer) else f"So the answer is: {answer}."


MAX_STEPS = 100


class GoldTraceError(Exception):
    """The gold trace cannot be completed; the message says why."""


class GoldAttempt:
    """The steps of one trace, and the values and texts observed in them."""

    def __init__(self, trace_id: UUID, question: str, context: ToolContext) -> None:
        self.steps: list[Step] = []
        self._trace_id, self._context = trace_id, context
        self._tracer = OriginTracer(question)
        self._seen: set[str] = set()
        self._texts: list[str] = [question]
        self._notes: list[str] = []

    def call_tool(self, thought: str, tool: str, **arguments: str | list[str]) -> dict[str, Any]:
        """Call a tool as a step and return its data; GoldTraceError if it fails or the trace is too long."""
        if len(self.steps) == MAX_STEPS:
            raise GoldTraceError(f"it would take more than {MAX_STEPS} steps")
        new = NewStep(self.next_thought(thought), tool, arguments, self._tracer.trace(arguments))
        step = build_step(self._trace_id, len(self.steps) + 1, new)
        outcome = tool_named(tool).call(self._context, arguments)
        result = outcome.observation
        apply_result(step, to_step_result(outcome))
        self.steps.append(step)
        self._tracer.observe(step.position, step.data)
        if result is None:
            raise GoldTraceError(f"{tool} failed in step {step.position}: {outcome.error}")
        self._remember(result.data)
        return result.data

    def add_finding(self, finding: str) -> None:
        """Note a finding; the next thought begins with it."""
        self._notes.append(finding)

    def next_thought(self, text: str) -> str:
        """Return the findings since the last thought, followed by this text."""
        notes, self._notes = self._notes, []
        return " ".join((*dict.fromkeys(notes), text))

    def preview_call(self, tool: str, **arguments: str | list[str]) -> dict[str, Any] | None:
        """Call a tool without a step and return its data; None if it fails."""
        result = tool_named(tool).call(self._context, arguments).observation
        return result.data if result else None

    def preview_page(self, address: str) -> list[str]:
        """The sentences of a web page, without a step and without ranking them, which takes most of the time."""
        return list(require_web(self._context.world, "read").fetch(address).sentences)

    def has_observed_value(self, value: str) -> bool:
        """Whether a title, id or label is a value of an observation."""
        return value in self._seen

    def has_seen_text(self, text: str) -> bool:
        """Whether a name occurs in the question or in an observation."""
        return text in self._seen or any(text in observed for observed in self._texts)

    def _remember(self, data: Mapping[str, Any]) -> None:
        self._seen.update(known.text for known in collect_known_values({0: data}))
        self._texts += iterate_sentences(data)


def iterate_sentences(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the sentences of an observation: those of a page or article, or the snippets of hits."""
    yield from data.get("sentences", ())
    for hit in (*data.get("hits", ()), *data.get("pages", ())):
        yield hit["snippet"]
