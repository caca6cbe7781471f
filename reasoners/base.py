"""What a reasoner is: given a question and tools, it decides step by step, and is told what each step found.

It is a generator, so that one driver (reasoners/run.py) can write each step before its tool runs, run the tool, stop it
and keep the limits, whoever reasons:

    def solve(self, task):
        outcome = yield Action(thought="...", tool="wikisearch", arguments={"query": "..."})
        ...
        return Conclusion(Answers(final_answer="..."))

A language model's words may be shown as they come, by yielding Saying; nothing is sent back for it.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from db.models import Step
from db.recording import TraceAnswers
from db.trace_record import TraceRecord
from llm.types import TextDelta
from tools.tool import Tool, ToolContext, ToolResult
from worlds.source import ErrorKind


class ReasonerError(Exception):
    """A reasoner cannot go on; the message says why and what to do next."""


class QuestionRefused(ReasonerError):
    """The reasoner says that it cannot answer this question, rather than guess."""


@dataclass(frozen=True, slots=True)
class Action:
    """A step as decided: what is thought, and which tool is to be called with which arguments."""

    thought: str
    tool: str | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, Any] = field(default_factory=dict)
    """For each argument where its value came from; the forms are in reasoners/origins.py."""
    usage: dict[str, Any] | None = None
    """What the calls of the language model took that wrote it."""
    rejection: str | None = None
    """Why it cannot be run: it does not parse, names no tool, lacks an argument. It becomes the step's error."""
    parent: UUID | None = None
    """The id of the action or earlier step that this one is a child of."""
    node: str | None = None
    """The name of its node in the reasoner's tree; a resumed reasoner finds its place by it."""
    skill: str | None = None
    """The name and version of the skill that decided it."""
    data: dict[str, Any] | None = None
    """What an action without a tool decided, as JSON values."""
    open: bool = False
    """Leave the step of an action without a tool unfinished until the reasoner yields its StepCompletion."""
    id: UUID | None = None
    """The id for its step, made by the reasoner (uuid7) where a child or a completion is to name it."""


@dataclass(frozen=True, slots=True)
class StepCompletion:
    """The end of a step that was begun open, by this run or before it was resumed."""

    step: UUID
    observation: str | None = None
    data: dict[str, Any] | None = None
    error: str | None = None
    error_kind: ErrorKind | None = None
    usage: dict[str, Any] | None = None
    """What the model calls after the last child took."""


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """What a reasoner comes to; `usage` is of the calls of the language model after the last step."""

    answers: TraceAnswers
    usage: dict[str, Any] | None = None
    details: dict[str, Any] = field(default_factory=dict)
    """What belongs to the trace's configuration: the response, how far the sources agree ..."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a reasoner is given; it changes nothing of it."""

    question: str
    context: ToolContext
    tools: Sequence[Tool]
    """Those that it may call."""
    demonstrations: Sequence[TraceRecord] = ()
    """The best first."""
    prior_steps: Sequence[Step] = ()
    """The steps that are there already, where a run is resumed or continues from a step.

    Every tool call among them is finished. A step without a tool may still be open: the reasoner completes it.
    """


ReasonerGenerator = Generator[Action | StepCompletion | TextDelta, ToolResult | None, FinalAnswer]


class Reasoner(Protocol):
    """A way to answer questions."""

    @property
    def name(self) -> str:
        """As traces and runs tell it."""

    def solve(self, task: Task) -> ReasonerGenerator:
        """Decide step by step; Refused or another ReasonerError where there is no answer."""
