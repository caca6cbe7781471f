"""A gold trace of a question of a generated world, made by really running the tools on it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from db.models import GENERATED_REASONER, Project, Question, Run, Trace, utc_now
from db.trace_record import TraceRecord
from evaluation.datasets.record import QuestionRecord
from evaluation.gold_traces import attempt as thoughts
from evaluation.gold_traces.attempt import GoldAttempt, GoldTraceError
from evaluation.gold_traces.follower import GoldFollower, GoldSource, SourceLookup
from evaluation.gold_traces.graph_steps import GraphLookup
from evaluation.gold_traces.text_steps import TextLookup
from evaluation.gold_traces.web_steps import WebLookup
from fiction.generator.build import PAGES_FILE
from fiction.generator.pages import load_marks_by_address
from fiction.generator.phrasings import load_prose_style
from fiction.generator.world_files import FACT_SOURCES_FILE, UNIVERSE_FILE
from fiction.questions.expressions import Both, Count, Expression, Having, Only, People, decode_expression, is_chain
from fiction.questions.names import NameFormatter, ThingCatalog
from fiction.questions.reasoning import ReasoningBuilder, ReasoningNode
from fiction.universe.items import ItemCatalog
from fiction.universe.universe import GRAPH, SOURCES, TEXT, WEB, FactSources, Universe
from tools.tool import ToolContext
from worlds.folder import WorldError

NO_ANSWER = "no answer"
"""The final answer to a question that has none."""
_SOURCE_ORDER = (GRAPH, TEXT, WEB)


class GoldWorld:
    """A generated world with the facts behind it."""

    def __init__(self, folder: Path, context: ToolContext) -> None:
        self.context = context
        self.universe = Universe.load(folder / UNIVERSE_FILE)
        self._told = FactSources.load(folder / FACT_SOURCES_FILE)
        self.plain = bool(context.world.metadata.get("plain"))
        self.run = Run(
            name=f"gold traces of {context.world.name}",
            reasoner=GENERATED_REASONER,
            world=context.world.name,
            configuration={"generated": True, "hash": context.world.metadata.get("hash")},
        )
        self.wrong = load_marks_by_address(folder / PAGES_FILE) or {}
        self._known: dict[int, ThingCatalog] = {}

    def things_known_to(self, sources: int) -> ThingCatalog:
        """What these sources (bits) together tell, with names and ids."""
        if sources not in self._known:
            universe = self.universe.restrict_to_sources(self._told, sources)
            self._known[sources] = ThingCatalog(
                universe, ItemCatalog(universe), NameFormatter(universe, plain=self.plain)
            )
        return self._known[sources]


def make_gold_trace(record: QuestionRecord, world: GoldWorld, project: Project, position: int) -> TraceRecord:
    """The trace of a question of the world: approved, or failed with the reason as its final thought."""
    question = Question(
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
    try:
        expression = decode_expression(record.details["expression"])
        needs = [sum(SOURCES[name] for name in combination) for combination in record.details["needs"]]
    except (KeyError, TypeError) as wrong:
        raise WorldError(
            f"The question {record.source_id} does not say what it asks for or needs; generate the world again."
        ) from wrong
    factories = (_GoldTraceBuilder(question, expression, world, sources).build(project) for sources in needs)
    return _first_approved(factories)


def _first_approved(factories: Iterator[TraceRecord]) -> TraceRecord:
    """The first that succeeded, else the last that failed."""
    record = next(factories)
    while record.trace.status != "approved":
        another = next(factories, None)
        if another is None:
            break
        record = another
    return record


@dataclass
class _GoldTraceBuilder:
    """One attempt at a question with the sources of these bits."""

    question: Question
    expression: Expression
    world: GoldWorld
    sources: int

    def build(self, project: Project) -> TraceRecord:
        """The trace that comes of it."""
        run = self.world.run
        configuration = {"generated": True, "needs": [name for name, bit in SOURCES.items() if bit & self.sources]}
        trace = Trace(
            question_id=self.question.id,
            run_id=run.id,
            reasoner=GENERATED_REASONER,
            configuration=configuration,
            started_at=utc_now(),
        )
        attempt = GoldAttempt(trace.id, self.question.text, self.world.context)
        try:
            self._solve(attempt, trace)
        except GoldTraceError as stuck:
            trace.status, trace.final_thought = "failed", f"No gold trace: {stuck}."
        trace.submitted_at = utc_now()
        return TraceRecord(project, self.question, trace, attempt.steps, run=run)

    @cached_property
    def _things(self) -> ThingCatalog:
        return self.world.things_known_to(self.sources)

    def _solve(self, attempt: GoldAttempt, trace: Trace) -> None:
        root = ReasoningBuilder(self._things).build_tree(
            _narrow_expression(self.expression, self._things.universe), self.question.text
        )
        self._check_known(root)
        leaves = list(root.leaves())
        if not self._answer_by_one_query(attempt, leaves, root):
            GoldFollower(attempt, self._things, self._build_sources(attempt)).follow(leaves)
        answer = ", ".join(answer["text"] for answer in self.question.gold_answers) or NO_ANSWER
        trace.status, trace.final_answer = "approved", answer
        trace.final_thought = attempt.next_thought(thoughts.final_thought(self._things, leaves[-1], answer))
        if self.sources & GRAPH:
            trace.answer_graph = answer
        if self.sources & (TEXT | WEB):
            trace.answer_text = answer

    def _check_known(self, root: ReasoningNode) -> None:
        """Stuck unless what the sources tell leads to all gold answers."""
        record = [answer["text"] for answer in self._things.encode_answers(root.kind, root.values)]
        if sorted(map(str, record)) != sorted(answer["text"] for answer in self.question.gold_answers):
            raise GoldTraceError(f"what these sources tell leads to {len(record)} other answers")

    def _answer_by_one_query(self, attempt: GoldAttempt, leaves: Sequence[ReasoningNode], root: ReasoningNode) -> bool:
        """Whether the question was answered by one query, as a chain is that lies in the graph."""
        sparql = self.question.details.get("sparql")
        if self.sources != GRAPH or not sparql or not is_chain(self.expression):
            return False
        graph = GraphLookup(attempt, self._things)
        start = leaves[0]
        if start.operator == "Search" and not start.relation:
            graph.find_id(start.kind, int(start.values[0]))
        record = graph.answer_by_query(sparql, root.kind)
        if record != set(root.values.tolist()):
            raise GoldTraceError(f"the gold query gives {len(record)} answers instead of {len(root.values)}")
        return True

    def _build_sources(self, attempt: GoldAttempt) -> list[GoldSource]:
        factories: dict[int, Any] = {
            GRAPH: lambda things: GraphLookup(attempt, things),
            TEXT: lambda things: TextLookup(
                attempt, self._things, things.universe, load_prose_style(plain=self.world.plain)
            ),
            WEB: lambda things: WebLookup(attempt, self._things, things.universe, self.world.wrong),
        }
        record = []
        for bit in _SOURCE_ORDER:
            if bit & self.sources:
                things = self.world.things_known_to(bit)
                way: SourceLookup = factories[bit](things)
                record.append(GoldSource(bit, things.universe, way))
        return record


def _narrow_expression(expression: Expression, universe: Universe) -> Expression:
    """The same question, but of people who must also have a value the value is looked up, and not everybody with it."""
    if isinstance(expression, Both):
        return _filter_people(expression, universe)
    if isinstance(expression, Count) and isinstance(expression.of, Both):
        return replace(expression, of=_filter_people(expression.of, universe))
    return expression


def _filter_people(both: Both, universe: Universe) -> People:
    by_size = sorted((both.right, both.left), key=lambda side: _people_count(side, universe))
    few, value = by_size if isinstance(by_size[1], Having) else by_size[::-1]
    return Only(few, value.fact, "is", value.value) if isinstance(value, Having) else both


def _people_count(people: People, universe: Universe) -> int:
    # Whoever is not asked for by a value is never looked up by one.
    return len(universe.find_people_with(people.fact, people.value)) if isinstance(people, Having) else 0
