"""Who decides what is done next: the model (dynamic), or the paper's fixed order of tools (static)."""

from collections.abc import Sequence
from dataclasses import dataclass

from db.models import Step
from reasoners.decision import Decision
from reasoners.prompt import prompt
from tools.tool import Tool

ORDER = ("wikisearch", "getWikiDataID", "generateQuery", "runQuery", "getLabel")


@dataclass(frozen=True, slots=True)
class Stage:
    """What the model may do now: call one of these tools, or answer."""

    tools: Sequence[Tool]
    cue: str = ""
    fixed: str | None = None
    """The only tool that may be called now; empty where only the answer is left."""

    def checked(self, decision: Decision) -> Decision:
        """The decision, refused where this is not the moment for it."""
        if self.fixed is None or decision.refused is not None:
            return decision
        wrong = any(call.tool != self.fixed for call in decision.calls) or (
            bool(self.fixed) and decision.ending is not None
        )
        if wrong:
            return Decision(decision.thought or decision.ending or "", refused=self.cue)
        return Decision(decision.thought, decision.calls[:1], decision.ending)


def stage(pipeline: str, tools: Sequence[Tool], steps: Sequence[Step]) -> Stage:
    """The stage after these steps."""
    if pipeline == "dynamic":
        return Stage(tools)
    offered = {tool.name: tool for tool in tools}
    done = {step.tool for step in steps}
    following = next((offered[name] for name in ORDER if name in offered and name not in done), None)
    if following is None:
        # The tools stay declared, since some servers want those that a conversation has used.
        return Stage(tools, prompt("cue", tool="", several=False), "")
    return Stage([following], prompt("cue", tool=following.name, several=len(following.parameters) > 1), following.name)
