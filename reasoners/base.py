"""The protocol of reasoners: a generator that yields moves, receives their results and returns the final answer.

One driver (runs/runner.py) stores each step before its tool runs, calls the tool, stops the run and enforces its
limits, for every reasoner:

    def solve(self, task):
        outcome = yield Action(thought="...", tool="wikisearch", arguments={"query": "..."})
        ...
        return FinalAnswer(TraceAnswers(final_answer="..."))

A move is an action, the completion of an open step, a call of a skill (reasoners/skills), or several branches, which
are generators like the reasoner's own and work at the same time:

    facts, dates = yield Parallel([Branch("facts", self._find_facts(task)), Branch("dates", self._find_dates(task))])

Branches take turns: in each round every branch that can go on yields one move, the steps of these moves are stored in
the order of the branches, and all of them are executed at the same time. So the order of the steps, and the answer, do
not depend on who is done first.

Before a reasoner fans out, it cuts the fan to what the run may still spend:

    count = yield from fit_to_budget(task, Fan("lanes", 4, CallBudget(7, 12)), f"{lane}/budget", span)

The trace has a step for each fan that was cut, which tells what was dropped.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from math import floor, inf
from typing import Any, Protocol
from uuid import UUID

from showhow.db.models import Step
from showhow.db.questions.answer_formats import AnswerFormat, AnswerKind
from showhow.db.questions.projects import DEFAULT_INSTRUCTION
from showhow.db.traces.recording import NewStep, StepResult, TraceAnswers
from showhow.db.traces.trace_record import TraceRecord
from showhow.reasoners.answers.dates_and_numbers import DateNotation, write_date
from showhow.reasoners.answers.extraction import join_answers
from showhow.reasoners.skills.skill import Responder, Shot, SkillCall, SkillResult
from showhow.tools.tool import Tool, ToolContext, ToolResult
from showhow.worlds.source import ErrorKind

"""The step limit of a run, unless its reasoner or the user sets another."""


class ReasonerError(Exception):
    """A reasoner cannot continue; the message says why, and what to do next."""


class NoUsableReply(ReasonerError):
    """The model wrote no reply that the reasoner can use."""


class QuestionRefused(ReasonerError):
    """The reasoner cannot answer this question and does not guess."""

    def __init__(self, message: str, expected_model_calls: int | None = None) -> None:
        """With the model calls that the method needed to learn this, without retries; None if that cannot be told."""
        super().__init__(message)
        self.expected_model_calls = expected_model_calls

    reason: str | None = None
    """Why, as a clause that is counted over questions; None if the message is no more than that."""


@dataclass(frozen=True, slots=True)
class Action:
    """A step that the reasoner has decided: the thought, and the tool to call with its arguments."""

    thought: str
    tool: str | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, Any] = field(default_factory=dict)
    """The origin of each argument's value; reasoners/provenance.py defines the forms."""
    usage: dict[str, Any] | None = None
    """The usage of the model calls that wrote it."""
    rejection: str | None = None
    """Why the action cannot run: it does not parse, names no tool, lacks an argument. Stored as the step's error."""
    parent: UUID | None = None
    """The id of the parent action or step."""
    node: str | None = None
    """The name of its node in the reasoner's tree, by which a resumed reasoner finds its place."""
    skill: str | None = None
    """The name and version of the skill that decided it."""
    data: dict[str, Any] | None = None
    """The decision of an action without a tool, as JSON values."""
    open: bool = False
    """Leave the step of an action without a tool unfinished until the reasoner yields its StepCompletion."""
    id: UUID | None = None
    """The id for its step (uuid7), set by the reasoner if children or a completion refer to it."""
    reuse: bool = False
    """Take the result of a recorded step with the same node, tool and arguments instead of running the tool again."""

    def to_new_step(self, wall_seconds: float | None = None) -> NewStep:
        """Build the step to store before the tool runs; `wall_seconds` is the time the reasoner took to decide."""
        return NewStep(
            thought=self.thought,
            tool=self.tool,
            arguments=self.arguments,
            origins=self.origins,
            wall_seconds=wall_seconds,
            usage=self.usage,
            refusal=self.rejection,
            refusal_kind=str(ErrorKind.WRONG_ARGUMENTS) if self.rejection is not None else None,
            parent=self.parent,
            node=self.node,
            skill=self.skill,
            data=self.data,
            open=self.open,
            id=self.id,
        )


@dataclass(frozen=True, slots=True)
class StepCompletion:
    """Completes a step that was begun open, by this run or by the run that it resumes."""

    step: UUID
    observation: str | None = None
    data: dict[str, Any] | None = None
    error: str | None = None
    error_kind: ErrorKind | None = None
    usage: dict[str, Any] | None = None
    """The usage of the model calls after the last child step."""


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """The answers of a run; `usage` covers the model calls after the last step."""

    answers: TraceAnswers
    usage: dict[str, Any] | None = None
    details: dict[str, Any] = field(default_factory=dict)
    """Values for the trace's result (RunResult.add): the response, the agreement of the sources and so on."""
    expected_model_calls: int | None = None
    """The model calls that the method's plan needs without retries and fallbacks; None if that cannot be told."""


@dataclass(frozen=True, slots=True)
class CallBudget:
    """Numbers of calls: what a part of the work needs, or what a run may still make; infinite without a limit."""

    model_calls: float = inf
    retrievals: float = inf

    def __str__(self) -> str:
        counts = ((self.model_calls, "calls of the model"), (self.retrievals, "retrievals"))
        return " and ".join(f"{int(count):,} {kind}" for count, kind in counts if count < inf) or "any number of calls"


@dataclass(frozen=True, slots=True)
class Task:
    """The input of a reasoner; reasoners must not modify it."""

    question: str
    """The question or other task, with its attachments."""
    context: ToolContext
    tools: Sequence[Tool]
    """The tools that the reasoner may call."""
    demonstrations: Sequence[TraceRecord] = ()
    """The best demonstration first."""
    prior_steps: Sequence[Step] = ()
    """The existing steps of a run that is resumed or continues from a step.

    Every tool call among them is finished. A step without a tool may still be open; the reasoner completes it.
    """
    on_text: Callable[[str], None] | None = None
    """Called with each text delta of the model's reply; None turns streaming off."""
    responder: Responder | None = None
    """Replies to calls of skills; None for the language model of the context."""
    person_skills: frozenset[str] = frozenset()
    """The names of the skills that a person plays: the run leaves their steps open and ends as waiting."""
    instruction: str = DEFAULT_INSTRUCTION
    """What to do with the question, in a sentence or two."""
    answer_format: AnswerFormat = field(default_factory=AnswerFormat)
    """The runner refuses answers of another format."""
    date_notation: DateNotation | None = None
    """The notation in which the runner stores answers that are dates; None leaves them as they were given."""
    gold_type: str | None = None
    """The type that the data set gives the question; only for options that ask for it."""
    choose_shots: Callable[[SkillCall[Any, Any]], Sequence[Shot[Any, Any]]] | None = None
    """Chooses the shots of calls of skills that bring none; None for no shots."""
    budget: Callable[[], CallBudget] = CallBudget
    """Tells what the run may still spend: limits of tokens and money as calls of the size so far."""

    @property
    def has_sources(self) -> bool:
        """Whether a tool reads a source of a world; others only have functions of their own."""
        return any(tool.source is not None for tool in self.tools)

    def write_dates(self, final: FinalAnswer) -> FinalAnswer:
        """The answers with those that are dates in the notation of the task, whatever the method's prompts ask for."""
        notation, listed = self.date_notation, final.details.get("answers")
        if notation is None or self.answer_format.kind != AnswerKind.TEXT:
            return final
        texts = listed if isinstance(listed, list) and all(isinstance(text, str) for text in listed) else []
        written = [write_date(text, notation) for text in texts]

        def rewrite(text: str) -> str:
            return (
                join_answers(written) if len(texts) > 1 and text == join_answers(texts) else write_date(text, notation)
            )

        changes = {
            name: rewrite(text)
            for name in ("final_answer", "answer_text", "answer_graph", "answer_model")
            if (text := getattr(final.answers, name)) is not None
        }
        details = {**final.details, "answers": written} if texts else final.details
        return replace(final, answers=replace(final.answers, **changes), details=details)

    def may_guess_for(self, skill: str) -> bool:
        """Whether calls of a skill about guessed values may be made in vain: not by a person, nor within a budget."""
        return self.budget() == CallBudget() and skill not in self.person_skills


@dataclass(frozen=True, slots=True)
class Branch:
    """One of several parts of a reasoner's work that do not wait for each other."""

    name: str
    moves: "BranchGenerator"
    after: frozenset[str] = frozenset()
    """The names of branches of the same move that must have ended before it begins."""


@dataclass(frozen=True, slots=True)
class Parallel:
    """Branches that work at the same time; the move's result is the list of their results, in this order."""

    branches: Sequence[Branch]


Move = Action | StepCompletion | SkillCall[Any, Any] | Parallel
BranchGenerator = Generator[Move, Any, Any]
"""Receives a ToolResult for an action, a SkillResult for a call of a skill, a list for Parallel."""
ReasonerGenerator = Generator[Move, Any, FinalAnswer]


def ask_skill(call: SkillCall[Any, Any]) -> BranchGenerator:
    """The moves of a branch that makes one call, whose result is the branch's."""
    result: SkillResult[Any] = yield call
    return result


def to_step_result(outcome: ToolResult) -> StepResult:
    """Convert a tool's result to the result that its step stores."""
    observation = outcome.observation
    text, data = (observation.text, observation.data) if observation else (None, None)
    usage = outcome.usage.to_json() if outcome.usage else None
    kind = str(outcome.error_kind) if outcome.error_kind is not None else None
    return StepResult(text, data, outcome.error, outcome.seconds, usage, kind)


class Reasoner(Protocol):
    """A method of answering questions."""

    @property
    def name(self) -> str:
        """The name that traces and runs store."""

    def solve(self, task: Task) -> ReasonerGenerator:
        """Yield actions until the answer is known; raise QuestionRefused or another ReasonerError if there is none."""


NOTHING = CallBudget(0, 0)


@dataclass(frozen=True, slots=True)
class Fan:
    """Several parts of the same kind that a reasoner wants to begin."""

    kind: str
    """The name of the parts, in the plural: lanes."""
    size: int
    cost: CallBudget
    """What one part needs, about."""
    reserve: CallBudget = NOTHING
    """What has to remain for the work after the parts."""
    sharers: int = 1
    """How many such fans draw on the budget at the same time, this one included."""
    least: int = 1
    """How many parts are begun even where the budget has no room, to end at its limit."""

    def count_affordable(self, left: CallBudget) -> int:
        """How many parts the budget has room for, from `least` to `size`."""
        pairs = (
            (left.model_calls, self.reserve.model_calls, self.cost.model_calls),
            (left.retrievals, self.reserve.retrievals, self.cost.retrievals),
        )
        counts = [
            max(0, floor((available / self.sharers - reserve) / cost))
            for available, reserve, cost in pairs
            if cost and available < inf
        ]
        return min(self.size, max(self.least, min(counts, default=self.size)))


def fit_to_budget(task: Task, fan: Fan, node: str, parent: UUID | None) -> Generator[Move, Any, int]:
    """How many parts to begin; records a step with what was dropped if not all of them."""
    left = task.budget()
    count = fan.count_affordable(left)
    if count < fan.size:
        yield Action(
            f"I keep {count} of {fan.size} {fan.kind}: the budget has {left} left.",
            parent=parent,
            node=node,
            data={"kind": fan.kind, "size": fan.size, "kept": count, "left": _to_json(left)},
            reuse=True,
        )
    return count


def _to_json(left: CallBudget) -> dict[str, int]:
    counts = {"model_calls": left.model_calls, "retrievals": left.retrievals}
    return {name: int(count) for name, count in counts.items() if count < inf}
