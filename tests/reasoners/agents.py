"""Agents at work: a question, a scripted model behind real HTTP, the driver, and what is left of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from db.models import Step
from db.runs import RunOutcome
from db.trace_record import TraceRecord
from fewshot_library.formats.humaniq_tools import format_input_line
from reasoners.answers.extraction import format_final_answer
from reasoners.base import Task
from reasoners.humaniq.agent import HumanIQ
from reasoners.humaniq.late_fusion import LateFusion
from reasoners.humaniq.options import AgentOptions
from runs.budget import RunLimits
from runs.recorders import MemoryRecorder
from runs.runner import RunControl, run_reasoner
from tests.servers.model import ModelServer, Request, Says, Script
from tools.registry import available_tools
from tools.tool import ToolContext

TOOLS_BY_SOURCE = {
    "text": ("wikisearch", "read", "websearch"),
    "graph": ("getWikiDataID", "generateQuery", "runQuery", "getLabel"),
}

ALONE = AgentOptions(response="none")
"""Nothing but the loop: no call beside those for the steps and the answer."""
ENDS = Says("Now I know.\n\nFinal Answer: Ada\nText says: Ada\nGraph says: none")


@dataclass(frozen=True)
class Asked:
    """How it went."""

    ended: RunOutcome
    steps: list[Step]
    requests: list[Request]
    heard: str

    @property
    def told(self) -> list[tuple[str | None, dict[str, Any]]]:
        """The calls."""
        return [(step.tool, step.arguments) for step in self.steps]

    @property
    def answer(self) -> str:
        """The final one."""
        assert self.ended.answers is not None, self.ended.failure
        return self.ended.answers.final_answer


class Later:
    """A record that has steps already."""

    @staticmethod
    def of(steps: Sequence[Step]) -> MemoryRecorder:
        """The record, to be gone on with."""
        keeper = MemoryRecorder()
        keeper.steps = list(steps)
        return keeper


def ask(
    context: ToolContext,
    script: Script,
    reasoner: HumanIQ | LateFusion | None = None,
    *,
    question: str = "Who is the mother of Ada Reed?",
    **more: Any,
) -> Asked:
    """Let the reasoner answer the question; `more` are demonstrations, steps `taken`, whether to `stream`."""
    heard: list[str] = []
    keeper = Later.of(more.get("taken", ()))
    with ModelServer(script) as server:
        task = Task(question, context, available_tools(context.world), more.get("demonstrations", ()))
        # The tools of the task do without a model, so that the script is the agent's alone.
        agent = replace(reasoner or HumanIQ(ALONE), chat=server.chat(seconds=20))
        ended = run_reasoner(
            agent,
            task,
            keeper,
            RunControl(RunLimits(steps=20), on_text=heard.append if more.get("stream", True) else None),
        )
        return Asked(ended, keeper.steps, server.requests, "".join(heard))


def as_calls(record: TraceRecord) -> list[Says]:
    """A model with tool calls that does what the trace did."""
    steps = [Says(step.thought, calls=[(str(step.tool), step.arguments)]) for step in record.steps]
    return [*steps, Says(f"{record.trace.final_thought}\n\nFinal Answer: {format_final_answer(record.trace)}")]


def as_text(record: TraceRecord) -> list[Says]:
    """A model without tool calls that does what the trace did, and would make up what it sees."""
    question = record.question.text
    steps = [
        Says(
            f" {step.thought}\nAction: {step.tool}\n"
            f"Action Input: {format_input_line(str(step.tool), step.arguments, question)}\nObservation: made up"
        )
        for step in record.steps
    ]
    return [*steps, Says(f" {record.trace.final_thought}\nFinal Answer: {format_final_answer(record.trace)}")]
