"""The order of tools: chosen by the model (dynamic), or fixed as in the paper's structured pipeline (static).

Also restricts a task's tools to one kind of source, for agents that may use only text or only the graph.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from db.models import Step
from reasoners.base import ReasonerError, Task
from reasoners.prompting.builder import render_prompt
from reasoners.prompting.call_parser import ParsedReply
from tools.registry import BUILT_IN_TOOLS
from tools.tool import SourceKind, Tool

# Entity search counts as a graph tool; in the paper's pipeline only the query writer maps names to ids.
_SOURCE_KINDS: Mapping[str, tuple[SourceKind, ...]] = {
    "text": (SourceKind.TEXT, SourceKind.WEB),
    "graph": (SourceKind.GRAPH,),
}


def find_tool_source(tool: str) -> str | None:
    """Return the kind of source that the tool queries, "text" or "graph"; None for an external tool."""
    kind = BUILT_IN_TOOLS[tool].source if tool in BUILT_IN_TOOLS else None
    return next((sources for sources, kinds in _SOURCE_KINDS.items() if kind in kinds), None)


def restrict_to_sources(task: Task, sources: str) -> Task:
    """Return the task with only the tools of these sources; "both" keeps all tools, including external ones."""
    if sources == "both":
        return task
    tools = [tool for tool in task.tools if tool.source in _SOURCE_KINDS[sources]]
    if not tools:
        raise ReasonerError(f"No tool offered here uses the {sources}; choose other sources.")
    return replace(task, tools=tools)


STATIC_TOOL_ORDER = ("wikisearch", "getWikiDataID", "generateQuery", "runQuery", "getLabel")


@dataclass(frozen=True, slots=True)
class PipelineStage:
    """What the model may do next. All tools stay declared, so that the beginning of the prompt stays the same."""

    instruction: str = ""
    required_tool: str | None = None
    """The only tool that may be called now; empty if only the answer is left, None for a free choice."""

    def check_reply(self, reply: ParsedReply) -> ParsedReply:
        """Return the reply, or a rejection if it does not fit this stage."""
        if self.required_tool is None or reply.rejection is not None:
            return reply
        is_wrong = any(call.tool != self.required_tool for call in reply.calls) or (
            bool(self.required_tool) and reply.ends_run
        )
        if is_wrong:
            thought = reply.finish.thought if reply.finish is not None else reply.thought
            return ParsedReply(thought or reply.final_answer or "", rejection=self.instruction)
        return replace(reply, calls=reply.calls[:1], notice=None)


def next_stage(pipeline: str, tools: Sequence[Tool], steps: Sequence[Step]) -> PipelineStage:
    """Return the stage after these steps; `pipeline` is "dynamic" or "static"."""
    if pipeline == "dynamic":
        return PipelineStage()
    offered = {tool.name: tool for tool in tools}
    called = {step.tool for step in steps}
    next_tool = next((offered[name] for name in STATIC_TOOL_ORDER if name in offered and name not in called), None)
    if next_tool is None:
        return PipelineStage(render_prompt("cue", tool="", several=False), "")
    several = len(next_tool.parameters) > 1
    return PipelineStage(render_prompt("cue", tool=next_tool.name, several=several), next_tool.name)
