"""The tool calls of a run of replay."""

import json
from collections.abc import Generator, Mapping
from typing import Any

from reasoners import provenance
from reasoners.base import Action, Task
from reasoners.replay.derivations import Mismatch
from tools.tool import ToolResult
from worlds.source import ErrorKind

MAX_CALLS = 500
"""The calls of one run."""
ReplayMoves = Generator[Action, ToolResult | None, Any]


class ReplayCalls:
    """The tool calls of one run, with the origins of their arguments."""

    def __init__(self, task: Task) -> None:
        self._tools, self._tracer = {tool.name for tool in task.tools}, provenance.OriginTracer(task.question)
        self._count = 0
        self._results: dict[str, Mapping[str, Any] | tuple[str, ErrorKind | None]] = {}

    def call(self, thought: str, tool: str, arguments: dict[str, Any], *, again: bool = False) -> ReplayMoves:
        """Call a tool and return its data, or those of an equal call, unless again; Mismatch if it fails."""
        result = yield from self._call(thought, tool, arguments, again=again)
        if isinstance(result, tuple):
            raise Mismatch(result[0].rstrip("."))
        return result

    def try_call(self, thought: str, tool: str, arguments: dict[str, Any]) -> ReplayMoves:
        """Call a tool and return its data; None if the world has nothing of this name."""
        result = yield from self._call(thought, tool, arguments, again=False)
        if isinstance(result, tuple) and result[1] != ErrorKind.NOT_FOUND:
            raise Mismatch(result[0].rstrip("."))
        return None if isinstance(result, tuple) else result

    def _call(self, thought: str, tool: str, arguments: dict[str, Any], *, again: bool) -> ReplayMoves:
        key = json.dumps([tool, arguments], sort_keys=True)
        if again or key not in self._results:
            if tool not in self._tools:
                raise Mismatch(f"the tool {tool} is not offered here")
            if self._count == MAX_CALLS:
                raise Mismatch(f"it would take more than {MAX_CALLS} calls of tools")
            self._count += 1
            origins = self._tracer.trace(arguments)
            outcome = yield Action(thought, tool, arguments, origins, node=f"call {self._count}", reuse=True)
            observation = outcome.observation if outcome else None
            self._tracer.observe(self._count, observation.data if observation else None)
            error = (str(outcome and outcome.error), outcome.error_kind if outcome else None)
            self._results[key] = observation.data or {} if observation else error
        return self._results[key]
