"""Builds the gold trace of a generated question: its gold reasoning is executed with the tools on its world."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from showhow.db.models import GENERATED_REASONER, Project, Question, Run, Trace
from showhow.db.questions.question_record import QuestionRecord
from showhow.db.run_spec import RunResult, RunSpec
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.types import utc_now
from showhow.db.unanswerable import find_gold_reason
from showhow.fiction.generator.articles import load_prose_style
from showhow.fiction.generator.build import PAGES_FILE
from showhow.fiction.generator.web_pages import load_marks_by_address
from showhow.fiction.generator.world_files import FACT_SOURCES_FILE, UNIVERSE_FILE
from showhow.fiction.questions.expressions import (
    Both,
    Count,
    Expression,
    Having,
    Only,
    People,
    decode_expression,
    is_chain,
)
from showhow.fiction.questions.names import NameFormatter, ThingCatalog
from showhow.fiction.questions.reasoning import DIRECT_REASONING, RELATE, SEARCH, ReasoningBuilder, ReasoningNode
from showhow.fiction.universe.items import ItemCatalog
from showhow.fiction.universe.universe import GRAPH, SOURCES, TEXT, WEB, FactSources, Universe
from showhow.oracles.gold_traces import attempt
from showhow.oracles.gold_traces import attempt as thoughts
from showhow.oracles.gold_traces.attempt import (
    GoldAttempt,
    GoldTraceError,
    ValuePairs,
    people_with_fact,
    relation_pairs,
)
from showhow.oracles.gold_traces.lookups import GraphLookup, TextLookup, WebLookup
from showhow.runs.services import Services
from showhow.tools.tool import ToolContext
from showhow.worlds.folder import WorldError, world_folder
from showhow.worlds.lexicon.kinship import find_relation_path, gendered_words

SourceLookup = GraphLookup | TextLookup | WebLookup
_CHILD_RELATIONS = {
    relation: path.steps[-1]
    for relation in ("sibling", *gendered_words("sibling"))
    if (path := find_relation_path(relation))
}
"""The relation of a sibling to the parents: a sister is a daughter."""
MAX_ARTICLES = 12
"""The maximum number of articles or pages read for one operation."""


@dataclass(frozen=True, slots=True)
class GoldSource:
    """One source: its bit, the facts that it has, and its lookups."""

    bit: int
    universe: Universe
    lookup: SourceLookup


class GoldFollower:
    """Executes the operations of one attempt; `things` holds the facts of all sources together."""

    def __init__(self, attempt: GoldAttempt, things: ThingCatalog, sources: Sequence[GoldSource]) -> None:
        self._attempt, self._things, self._sources = attempt, things, sources
        lookups = [source.lookup for source in sources]
        self._graph = next((lookup for lookup in lookups if isinstance(lookup, GraphLookup)), None)
        self._text = next((lookup for lookup in lookups if isinstance(lookup, TextLookup)), None)

    def follow(self, leaves: Sequence[ReasoningNode]) -> None:
        """Execute all operations; GoldTraceError if the observations do not show their values."""
        index = 0
        while index < len(leaves):
            index += self._execute(leaves, index)

    def _execute(self, leaves: Sequence[ReasoningNode], index: int) -> int:
        """Execute an operation, and those after it that one query covers; return the number of operations."""
        leaf = leaves[index]
        if leaf.operator == DIRECT_REASONING:
            if leaf is not leaves[-1]:
                self._attempt.add_finding(attempt.describe_finding(self._things, leaf))
            return 1
        if leaf.operator == SEARCH:
            self._search(leaf)
            return 1
        if leaf.operator == RELATE and leaf.is_inverse:
            self._require_equal(
                leaf, self._look_up_subjects(leaf, int(leaf.inputs[0].values[0])), set(leaf.values.tolist())
            )
            return 1
        heads = leaf.inputs[0].values.tolist()
        if not heads:
            return 1
        chain = self._graph_chain(leaves, index)
        if self._graph is not None and chain and (len(chain) > 1 or len(heads) == 1):
            observed = self._graph.chain(chain, heads)
            self._require_equal(chain[-1], observed, set(chain[-1].values.tolist()))
            return len(chain)
        self._look_up(leaf, heads)
        return 1

    def _search(self, leaf: ReasoningNode) -> None:
        if leaf.relation:
            self._require_equal(leaf, self._look_up_subjects(leaf, leaf.day), set(leaf.values.tolist()))
        elif self._text is not None and leaf.kind == "person":
            self._text.search_start(leaf.kind, int(leaf.values[0]))
        elif self._graph is not None:
            self._graph.find_id(leaf.kind, int(leaf.values[0]))

    def _graph_chain(self, leaves: Sequence[ReasoningNode], index: int) -> list[ReasoningNode]:
        """The operations from `index` on that form a chain, with all their facts in the graph."""
        chain: list[ReasoningNode] = []
        for leaf, next_leaf in zip(leaves[index:], [*leaves[index + 1 :], None], strict=True):
            if leaf.operator != RELATE or leaf.is_inverse or not self._all_in_graph(leaf):
                break
            if chain and _answer_node(leaf.inputs[0]) is not chain[-1]:
                break
            if chain and any(chain[-1] in map(_answer_node, later.inputs) for later in leaves if later is not leaf):
                # The intermediate values are needed by another operation as well.
                break
            # A comparison by date needs the date of each value.
            if next_leaf is not None and next_leaf.relation in ("earliest", "latest"):
                break
            chain.append(leaf)
        return chain

    def _all_in_graph(self, leaf: ReasoningNode) -> bool:
        heads = leaf.inputs[0].values.tolist()
        expected = self._pairs(leaf, heads)
        return any(
            source.bit == GRAPH and relation_pairs(source.universe, leaf.relation, heads) == expected
            for source in self._sources
        )

    def _pairs(self, leaf: ReasoningNode, heads: Sequence[int]) -> ValuePairs:
        return relation_pairs(self._things.universe, leaf.relation, heads)

    def _look_up(self, leaf: ReasoningNode, heads: Sequence[int]) -> None:
        """Look the facts of the heads up in each source that has some of them."""
        expected = self._pairs(leaf, heads)
        if leaf.relation in _CHILD_RELATIONS and expected != self._stated_pairs(leaf, heads):
            self._look_up_siblings(leaf, heads, expected)
            return
        observed: ValuePairs = set()
        for number, source in enumerate(self._sources):
            new_pairs = relation_pairs(source.universe, leaf.relation, heads) - observed
            # If there are no facts at all, the first source is queried to show that.
            source_heads = sorted({head for head, _ in new_pairs}) or ([] if expected or number else list(heads))
            if not source_heads:
                continue
            if source.bit != GRAPH and len(source_heads) > MAX_ARTICLES:
                raise GoldTraceError(
                    f"{len(source_heads)} {'articles' if source.bit == TEXT else 'searches'} would have to be read"
                )
            observed |= source.lookup.forward(leaf, source_heads)
        self._require_equal(leaf, observed, expected)

    def _stated_pairs(self, leaf: ReasoningNode, heads: Sequence[int]) -> ValuePairs:
        # Web pages do not name siblings; they follow from common parents.
        stating = [source for source in self._sources if source.bit != WEB]
        return {pair for source in stating for pair in relation_pairs(source.universe, leaf.relation, heads)}

    def _look_up_siblings(self, leaf: ReasoningNode, heads: Sequence[int], expected: ValuePairs) -> None:
        """Look siblings up by way of the parents, who may be in another source."""
        universe = self._things.universe
        parents = sorted({parent for _, parent in relation_pairs(universe, "parent", heads)})
        up = _relation_node(leaf.inputs[0], "parent", parents)
        self._look_up(up, heads)
        child = _CHILD_RELATIONS[leaf.relation]
        children = sorted({observed for _, observed in relation_pairs(universe, child, parents)})
        self._look_up(_relation_node(up, child, children), parents)
        self._require_equal(leaf, {pair for pair in expected if pair[1] in children}, expected)

    def _look_up_subjects(self, leaf: ReasoningNode, value: int) -> set[int]:
        expected = set(leaf.values.tolist())
        observed: set[int] = set()
        for number, source in enumerate(self._sources):
            new_people = people_with_fact(source.universe, leaf.relation, value) & expected - observed
            if new_people or not (expected or number):
                observed |= source.lookup.backward(leaf, value)
        return observed

    def _require_equal(self, leaf: ReasoningNode, observed: object, expected: object) -> None:
        if observed != expected:
            question = attempt.node_question(self._things, leaf)
            raise GoldTraceError(
                f"the observations show {_set_size(observed)} of {_set_size(expected)} answers to {question!r}"
            )
        self._attempt.add_finding(attempt.describe_finding(self._things, leaf))


def _answer_node(node: ReasoningNode) -> ReasoningNode:
    """The last operation of a node, which gives its values."""
    *_, last_leaf = node.leaves()
    return last_leaf


def _relation_node(head: ReasoningNode, relation: str, people: list[int]) -> ReasoningNode:
    question = (f"Who is the {relation} of ", head, "?")
    return ReasoningNode(RELATE, question, (head, relation), "person", np.array(people, np.int32), relation)


def _set_size(observed: object) -> int:
    return len(observed) if isinstance(observed, set) else 0


_SOURCE_ORDER = (GRAPH, TEXT, WEB)


class GoldWorld:
    """A generated world with the universe that it was generated from."""

    def __init__(self, folder: Path, context: ToolContext) -> None:
        self.context = context
        self.universe = Universe.load(folder / UNIVERSE_FILE)
        self._fact_sources = FactSources.load(folder / FACT_SOURCES_FILE)
        self.plain = bool(context.world.metadata.get("plain"))
        generator = context.world.metadata.get("generator")
        self.generator = generator if isinstance(generator, int) else 1
        content_hash = context.world.metadata.get("hash")
        self.run = Run(
            name=f"gold traces of {context.world.name}",
            reasoner=GENERATED_REASONER,
            world=context.world.name,
            spec=RunSpec(reasoner=GENERATED_REASONER, world_hash=str(content_hash) if content_hash else None),
        )
        self.page_marks = load_marks_by_address(folder / PAGES_FILE) or {}
        self._things_by_sources: dict[int, ThingCatalog] = {}

    def things_known_to(self, sources: int) -> ThingCatalog:
        """The facts that these sources (bits) have together, with names and ids."""
        if sources not in self._things_by_sources:
            universe = self.universe.restrict_to_sources(self._fact_sources, sources)
            self._things_by_sources[sources] = ThingCatalog(
                universe, ItemCatalog(universe), NameFormatter(universe, plain=self.plain, generator=self.generator)
            )
        return self._things_by_sources[sources]


def open_gold_world(services: Services, name: str) -> GoldWorld:
    """Open a generated world with its universe; WorldError for any other world."""
    folder = world_folder(services.settings.worlds_folder, name)
    # Gold traces need no model, and its calls would cost.
    context = replace(services.tool_context(name), chat=None)
    if not (folder / FACT_SOURCES_FILE).is_file():
        raise WorldError(f"The world {name} has no universe; only generated worlds have gold traces.")
    return GoldWorld(folder, context)


def build_question(record: QuestionRecord, project: Project, position: int) -> Question:
    """The question of a record as one of the project, without storing it."""
    return Question(
        project_id=project.id,
        position=position,
        text=record.text,
        source_id=record.source_id,
        dataset=record.dataset,
        split=record.split,
        kind=record.kind,
        gold_answers=record.gold_answers,
        decomposition=record.decomposition,
        details=record.details,
    )


def make_gold_trace(record: QuestionRecord, world: GoldWorld, project: Project, position: int) -> TraceRecord:
    """Build the gold trace of a question: approved, or failed with the reason as its final thought.

    Tries the combinations of sources that the question needs in turn. WorldError if the question does not name them.
    """
    question = build_question(record, project, position)
    try:
        expression = decode_expression(record.details["expression"])
        needs = [sum(SOURCES[name] for name in combination) for combination in record.details["needs"]]
    except (KeyError, TypeError) as error:
        raise WorldError(
            f"The question {record.source_id} does not say what it asks for or needs; generate the world again."
        ) from error
    attempts = (_GoldTraceBuilder(question, expression, world, sources).build(project) for sources in needs)
    return _first_approved(attempts)


def _first_approved(attempts: Iterator[TraceRecord]) -> TraceRecord:
    """The first approved trace, or the last failed one."""
    record = next(attempts)
    while record.trace.status != "approved":
        next_record = next(attempts, None)
        if next_record is None:
            break
        record = next_record
    return record


@dataclass
class _GoldTraceBuilder:
    """Builds the trace of a question with one combination of sources (bits)."""

    question: Question
    expression: Expression
    world: GoldWorld
    sources: int

    def build(self, project: Project) -> TraceRecord:
        """Build the trace; it is failed if the reasoning cannot be executed."""
        run = self.world.run
        needs = tuple(name for name, bit in SOURCES.items() if bit & self.sources)
        trace = Trace(
            question_id=self.question.id,
            run_id=run.id,
            reasoner=GENERATED_REASONER,
            result=RunResult(generated=True, needs=needs),
            started_at=utc_now(),
        )
        attempt = GoldAttempt(trace.id, self.question.text, self.world.context)
        try:
            self._solve(attempt, trace)
        except GoldTraceError as error:
            trace.status, trace.final_thought = "failed", f"No gold trace: {error}."
        trace.submitted_at = utc_now()
        return TraceRecord(project, self.question, trace, attempt.steps, run=run)

    @cached_property
    def _things(self) -> ThingCatalog:
        return self.world.things_known_to(self.sources)

    def _solve(self, attempt: GoldAttempt, trace: Trace) -> None:
        root = ReasoningBuilder(self._things).build_tree(
            narrow_expression(self.expression, self._things.universe), self.question.text
        )
        self._check_known(root)
        leaves = list(root.leaves())
        if not self._answer_by_one_query(attempt, leaves, root):
            GoldFollower(attempt, self._things, self._build_sources(attempt)).follow(leaves)
        answer = ", ".join(answer["text"] for answer in self.question.gold_answers)
        trace.status, trace.final_answer = "approved", answer
        trace.final_thought = attempt.next_thought(thoughts.final_thought(self._things, leaves[-1], answer))
        if self.sources & GRAPH:
            trace.answer_graph = answer
        if self.sources & (TEXT | WEB):
            trace.answer_text = answer

    def _check_known(self, root: ReasoningNode) -> None:
        """GoldTraceError unless the facts of the sources lead to exactly the gold answers."""
        answers = [answer["text"] for answer in self._things.encode_answers(root.kind, root.values)]
        golds = self.question.gold_answers
        if sorted(map(str, answers)) != ([] if find_gold_reason(golds) else sorted(gold["text"] for gold in golds)):
            raise GoldTraceError(f"the facts of these sources lead to {len(answers)} other answers")

    def _answer_by_one_query(self, attempt: GoldAttempt, leaves: Sequence[ReasoningNode], root: ReasoningNode) -> bool:
        """Answer a chain question by one query if all its facts are in the graph; return whether that was done."""
        sparql = self.question.details.get("sparql")
        if self.sources != GRAPH or not sparql or not is_chain(self.expression):
            return False
        graph = GraphLookup(attempt, self._things)
        start = leaves[0]
        if start.operator == "Search" and not start.relation:
            graph.find_id(start.kind, int(start.values[0]))
        answers = graph.answer_by_query(sparql, root.kind)
        if answers != set(root.values.tolist()):
            raise GoldTraceError(f"the gold query gives {len(answers)} answers instead of {len(root.values)}")
        return True

    def _build_sources(self, attempt: GoldAttempt) -> list[GoldSource]:
        factories: dict[int, Any] = {
            GRAPH: lambda things: GraphLookup(attempt, things),
            TEXT: lambda things: TextLookup(
                attempt, self._things, things.universe, load_prose_style(plain=self.world.plain)
            ),
            WEB: lambda things: WebLookup(attempt, self._things, things.universe, self.world.page_marks),
        }
        sources = []
        for bit in _SOURCE_ORDER:
            if bit & self.sources:
                things = self.world.things_known_to(bit)
                lookup: SourceLookup = factories[bit](things)
                sources.append(GoldSource(bit, things.universe, lookup))
        return sources


def narrow_expression(expression: Expression, universe: Universe) -> Expression:
    """An equivalent expression that filters people by a value instead of intersecting two groups of people."""
    if isinstance(expression, Both):
        return _filter_people(expression, universe)
    if isinstance(expression, Count) and isinstance(expression.of, Both):
        return replace(expression, of=_filter_people(expression.of, universe))
    return expression


def _filter_people(both: Both, universe: Universe) -> People:
    by_size = sorted((both.right, both.left), key=lambda side: _people_count(side, universe))
    people, having = by_size if isinstance(by_size[1], Having) else by_size[::-1]
    return Only(people, having.fact, "is", having.value) if isinstance(having, Having) else both


def _people_count(people: People, universe: Universe) -> int:
    # Only groups of people by a value can be turned into a filter.
    return len(universe.find_people_with(people.fact, people.value)) if isinstance(people, Having) else 0
