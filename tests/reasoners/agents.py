"""Runs agents on a question with a scripted model behind real HTTP."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from showhow.db.models import Step
from showhow.db.run_spec import RunLimits
from showhow.db.runs.runs import RunOutcome
from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats.humaniq_record import format_input_line
from showhow.reasoners.answers.extraction import format_final_answer
from showhow.reasoners.base import Task
from showhow.reasoners.humaniq.agent import HumanIQ
from showhow.reasoners.humaniq.late_fusion import LateFusion
from showhow.reasoners.humaniq.options import AgentOptions
from showhow.runs.recorders import MemoryRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.tools.registry import available_tools
from showhow.tools.tool import ToolContext
from tests.servers.model import ModelServer, Request, Says, Script

TOOLS_BY_SOURCE = {
    "text": ("wikisearch", "read", "websearch"),
    "graph": (
        *("getWikiDataID", "generateQuery", "runQuery", "getLabel"),
        *("getRelationsAsHead", "getRelationsAsTail", "getTailEntities", "getHeadEntities"),
    ),
}

ALONE = AgentOptions(response="none")
"""Only the loop: no model calls other than those for steps and the answer."""
ENDS = Says("Now I know.\n\nFinal Answer: Ada\nText says: Ada\nGraph says: none")


@dataclass(frozen=True)
class AgentRun:
    """The outcome of a run, with its steps and the requests to the model."""

    outcome: RunOutcome
    steps: list[Step]
    requests: list[Request]
    streamed_text: str

    @property
    def calls(self) -> list[tuple[str | None, dict[str, Any]]]:
        """The tool calls as (tool, arguments)."""
        return [(step.tool, step.arguments) for step in self.steps]

    @property
    def answer(self) -> str:
        """The final answer."""
        assert self.outcome.answers is not None, self.outcome.failure
        return self.outcome.answers.final_answer


def recorder_with_steps(steps: Sequence[Step]) -> MemoryRecorder:
    """A recorder that has these steps already."""
    recorder = MemoryRecorder()
    recorder.steps = list(steps)
    return recorder


def ask(
    context: ToolContext,
    script: Script,
    reasoner: HumanIQ | LateFusion | None = None,
    *,
    question: str = "Who is the mother of Ada Reed?",
    **more: Any,
) -> AgentRun:
    """Run the reasoner on the question; `more`: demonstrations, prior steps (`taken`), `stream`, `seconds`."""
    streamed: list[str] = []
    recorder = recorder_with_steps(more.get("taken", ()))
    with ModelServer(script) as server:
        task = Task(question, context, available_tools(context.world), more.get("demonstrations", ()))
        # The tools get no model, so that only the agent uses the script.
        agent = replace(reasoner or HumanIQ(ALONE), chat=server.chat(seconds=more.get("seconds", 20)))
        outcome = run_reasoner(
            agent,
            task,
            recorder,
            RunControl(RunLimits(steps=20), on_text=streamed.append if more.get("stream", True) else None),
        )
        return AgentRun(outcome, recorder.steps, server.requests, "".join(streamed))


def as_calls(record: TraceRecord) -> list[Says]:
    """The replies of a model with tool calls that repeats the trace."""
    steps = [Says(step.thought, calls=[(str(step.tool), step.arguments)]) for step in record.steps]
    return [*steps, Says(f"{record.trace.final_thought}\n\nFinal Answer: {format_final_answer(record.trace)}")]


def as_native_calls(record: TraceRecord) -> list[Says]:
    """The replies of a model that writes no text: thoughts are arguments, and the answer is a call of finish."""
    steps = [Says(calls=[(str(step.tool), {"thought": step.thought, **step.arguments})]) for step in record.steps]
    trace = record.trace
    said = {
        name: [answer] if answer is not None else []
        for name, answer in (("text_says", trace.answer_text), ("graph_says", trace.answer_graph))
    }
    cited = [step.position for step in record.steps if step.observation is not None]
    finish = {"thought": trace.final_thought, "answers": [trace.final_answer], **said, "found": True, "steps": cited}
    return [*steps, Says(calls=[("finish", finish)])]


def as_text(record: TraceRecord) -> list[Says]:
    """The replies of a model without tool calls that repeats the trace and makes up observations."""
    question = record.question.text
    steps = [
        Says(
            f" {step.thought}\nAction: {step.tool}\n"
            f"Action Input: {format_input_line(str(step.tool), step.arguments, question)}\nObservation: made up"
        )
        for step in record.steps
    ]
    return [*steps, Says(f" {record.trace.final_thought}\nFinal Answer: {format_final_answer(record.trace)}")]
