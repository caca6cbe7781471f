"""Who decides what is done next: the model (dynamic), or the paper's fixed order of tools (static).

Which tools ask which kind of source, for agents that may ask only one kind.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from db.models import Step
from reasoners.base import ReasonerError, Task
from reasoners.prompting.call_parser import ParsedReply
from reasoners.prompting.parts import render_prompt
from tools.registry import BUILT_IN_TOOLS
from tools.tool import SourceKind, Tool

# The paper's structured pipeline has no way from a name to an id but its query writer; ours asks the graph.
_SOURCE_KINDS: Mapping[str, tuple[SourceKind, ...]] = {
    "text": (SourceKind.TEXT, SourceKind.WEB),
    "graph": (SourceKind.GRAPH,),
}


def find_tool_source(tool: str) -> str | None:
    """Return the sources that the tool of that name asks, "text" or "graph"; None for external tools."""
    kind = BUILT_IN_TOOLS[tool].source if tool in BUILT_IN_TOOLS else None
    return next((sources for sources, kinds in _SOURCE_KINDS.items() if kind in kinds), None)


def restrict_to_sources(task: Task, sources: str) -> Task:
    """The task with the tools that ask these sources only; all of them, other people's too, for both."""
    if sources == "both":
        return task
    tools = [tool for tool in task.tools if tool.source in _SOURCE_KINDS[sources]]
    if not tools:
        raise ReasonerError(f"None of the tools that are offered here asks the {sources}; choose other sources.")
    return replace(task, tools=tools)


STATIC_TOOL_ORDER = ("wikisearch", "getWikiDataID", "generateQuery", "runQuery", "getLabel")


@dataclass(frozen=True, slots=True)
class PipelineStage:
    """What the model may do now: call one of these tools, or answer."""

    tools: Sequence[Tool]
    instruction: str = ""
    required_tool: str | None = None
    """The only tool that may be called now; empty where only the answer is left."""

    def check_reply(self, decision: ParsedReply) -> ParsedReply:
        """The decision, refused where this is not the moment for it."""
        if self.required_tool is None or decision.rejection is not None:
            return decision
        wrong = any(call.tool != self.required_tool for call in decision.calls) or (
            bool(self.required_tool) and decision.final_answer is not None
        )
        if wrong:
            return ParsedReply(decision.thought or decision.final_answer or "", rejection=self.instruction)
        return ParsedReply(decision.thought, decision.calls[:1], decision.final_answer)


def next_stage(pipeline: str, tools: Sequence[Tool], steps: Sequence[Step]) -> PipelineStage:
    """The stage after these steps."""
    if pipeline == "dynamic":
        return PipelineStage(tools)
    offered = {tool.name: tool for tool in tools}
    done = {step.tool for step in steps}
    following = next((offered[name] for name in STATIC_TOOL_ORDER if name in offered and name not in done), None)
    if following is None:
        # The tools stay declared, since some servers want those that a conversation has used.
        return PipelineStage(tools, render_prompt("cue", tool="", several=False), "")
    return PipelineStage(
        [following], render_prompt("cue", tool=following.name, several=len(following.parameters) > 1), following.name
    )
