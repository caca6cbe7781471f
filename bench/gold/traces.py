"""A gold trace of a question of a generated world, made by really running the tools on it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from bench.datasets.record import QuestionRecord
from bench.gold import thoughts
from bench.gold.attempt import Attempt, Stuck
from bench.gold.follow import Follower, Source, Way
from bench.gold.graph import Graph
from bench.gold.text import Text
from bench.gold.web import Web
from db.models import GENERATED, Project, Question, Run, Trace, now
from db.record import TraceRecord
from tools.tool import Context
from worlds.folder import WorldError
from worlds.generator.blocks import TOLD, UNIVERSE
from worlds.generator.build import PAGES
from worlds.generator.items import Items
from worlds.generator.marks import marks_by_address
from worlds.generator.phrasings import manner
from worlds.questions.expressions import Both, Count, Expression, Having, Only, People, from_json, is_chain
from worlds.questions.names import Names
from worlds.questions.reasoning import Node, Reasoning
from worlds.questions.things import Things
from worlds.universe.universe import GRAPH, SOURCES, TEXT, WEB, Told, Universe

NOTHING = "no answer"
"""The final answer to a question that has none."""
_ORDER = (GRAPH, TEXT, WEB)


class GoldWorld:
    """A generated world with the facts behind it."""

    def __init__(self, folder: Path, context: Context) -> None:
        self.context = context
        self.universe = Universe.load(folder / UNIVERSE)
        self._told = Told.load(folder / TOLD)
        self.plain = bool(context.world.about.get("plain"))
        self.run = Run(
            name=f"gold traces of {context.world.name}",
            reasoner=GENERATED,
            world=context.world.name,
            configuration={"generated": True, "hash": context.world.about.get("hash")},
        )
        self.wrong = marks_by_address(folder / PAGES) or {}
        self._known: dict[int, Things] = {}

    def known(self, sources: int) -> Things:
        """What these sources (bits) together tell, with names and ids."""
        if sources not in self._known:
            universe = self.universe.told_by(self._told, sources)
            self._known[sources] = Things(universe, Items(universe), Names(universe, plain=self.plain))
        return self._known[sources]


def gold_trace(record: QuestionRecord, world: GoldWorld, project: Project, position: int) -> TraceRecord:
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
        expression = from_json(record.details["expression"])
        needs = [sum(SOURCES[name] for name in each) for each in record.details["needs"]]
    except (KeyError, TypeError) as wrong:
        raise WorldError(
            f"The question {record.source_id} does not say what it asks for or needs; generate the world again."
        ) from wrong
    made = (_Making(question, expression, world, sources).record(project) for sources in needs)
    return _first_approved(made)


def _first_approved(made: Iterator[TraceRecord]) -> TraceRecord:
    """The first that succeeded, else the last that failed."""
    found = next(made)
    while found.trace.status != "approved":
        another = next(made, None)
        if another is None:
            break
        found = another
    return found


@dataclass
class _Making:
    """One attempt at a question with the sources of these bits."""

    question: Question
    expression: Expression
    world: GoldWorld
    sources: int

    def record(self, project: Project) -> TraceRecord:
        """The trace that comes of it."""
        run = self.world.run
        configuration = {"generated": True, "needs": [name for name, bit in SOURCES.items() if bit & self.sources]}
        trace = Trace(
            question_id=self.question.id,
            run_id=run.id,
            reasoner=GENERATED,
            configuration=configuration,
            started_at=now(),
        )
        attempt = Attempt(trace.id, self.question.text, self.world.context)
        try:
            self._solve(attempt, trace)
        except Stuck as stuck:
            trace.status, trace.final_thought = "failed", f"No gold trace: {stuck}."
        trace.submitted_at = now()
        return TraceRecord(project, self.question, trace, attempt.steps, run=run)

    @cached_property
    def _things(self) -> Things:
        return self.world.known(self.sources)

    def _solve(self, attempt: Attempt, trace: Trace) -> None:
        root = Reasoning(self._things).root(_narrowed(self.expression, self._things.universe), self.question.text)
        self._check_known(root)
        leaves = list(root.leaves())
        if not self._whole(attempt, leaves, root):
            Follower(attempt, self._things, self._sources(attempt)).follow(leaves)
        answer = ", ".join(answer["text"] for answer in self.question.gold_answers) or NOTHING
        trace.status, trace.final_answer = "approved", answer
        trace.final_thought = attempt.thought(thoughts.last(self._things, leaves[-1], answer))
        if self.sources & GRAPH:
            trace.answer_graph = answer
        if self.sources & (TEXT | WEB):
            trace.answer_text = answer

    def _check_known(self, root: Node) -> None:
        """Stuck unless what the sources tell leads to all gold answers."""
        found = [answer["text"] for answer in self._things.answers(root.kind, root.values)]
        if sorted(map(str, found)) != sorted(answer["text"] for answer in self.question.gold_answers):
            raise Stuck(f"what these sources tell leads to {len(found)} other answers")

    def _whole(self, attempt: Attempt, leaves: Sequence[Node], root: Node) -> bool:
        """Whether the question was answered by one query, as a chain is that lies in the graph."""
        sparql = self.question.details.get("sparql")
        if self.sources != GRAPH or not sparql or not is_chain(self.expression):
            return False
        graph = Graph(attempt, self._things)
        start = leaves[0]
        if start.operator == "Search" and not start.relation:
            graph.find(start.kind, int(start.values[0]))
        found = graph.whole(sparql, root.kind)
        if found != set(root.values.tolist()):
            raise Stuck(f"the gold query gives {len(found)} answers instead of {len(root.values)}")
        return True

    def _sources(self, attempt: Attempt) -> list[Source]:
        made: dict[int, Any] = {
            GRAPH: lambda told: Graph(attempt, told),
            TEXT: lambda told: Text(attempt, self._things, told.universe, manner(plain=self.world.plain)),
            WEB: lambda told: Web(attempt, self._things, told.universe, self.world.wrong),
        }
        found = []
        for bit in _ORDER:
            if bit & self.sources:
                told = self.world.known(bit)
                way: Way = made[bit](told)
                found.append(Source(bit, told.universe, way))
        return found


def _narrowed(expression: Expression, universe: Universe) -> Expression:
    """The same question, but of people who must also have a value the value is looked up, and not everybody with it."""
    if isinstance(expression, Both):
        return _tested(expression, universe)
    if isinstance(expression, Count) and isinstance(expression.of, Both):
        return replace(expression, of=_tested(expression.of, universe))
    return expression


def _tested(both: Both, universe: Universe) -> People:
    by_size = sorted((both.right, both.left), key=lambda side: _size(side, universe))
    few, value = by_size if isinstance(by_size[1], Having) else by_size[::-1]
    return Only(few, value.fact, "is", value.value) if isinstance(value, Having) else both


def _size(people: People, universe: Universe) -> int:
    # Whoever is not asked for by a value is never looked up by one.
    return len(universe.people_with(people.fact, people.value)) if isinstance(people, Having) else 0
