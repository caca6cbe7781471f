"""The tool calls of a run of replay."""

import json
from collections.abc import Generator, Mapping
from typing import Any

from showhow.reasoners import provenance
from showhow.reasoners.base import Action, QuestionRefused, Task
from showhow.reasoners.replay.demonstration import Program
from showhow.reasoners.replay.derivations import Mismatch, list_values
from showhow.tools.tool import ToolResult
from showhow.worlds.source import ErrorKind

REFUSAL = "I can't follow any demonstration here"
MAX_CALLS = 500
"""The calls of one run."""
ReplayMoves = Generator[Action, ToolResult | None, Any]


class ReplayCalls:
    """The tool calls of one run, with the origins of their arguments."""

    def __init__(self, task: Task) -> None:
        self._tools, self._tracer = {tool.name for tool in task.tools}, provenance.OriginTracer(task.question)
        self.failures: list[tuple[str, str]] = []
        """The questions of the demonstrations that were tried, each with what did not fit."""
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


def _list_observed(data: Mapping[str, Any]) -> list[Any]:
    """What an answer may rest on; what else a tool tells, such as queries to choose from, later calls show."""
    lists = {path: values for path, values in list_values(data).items() if values}
    return [lists, *(data.get(name) for name in ("rows", "sentences", "boolean", *provenance.EXTERNAL_FIELDS))]


def repeat(program: Program, task: Task) -> Generator[Action, ToolResult | None, bool]:
    """Run the demonstration's calls again with the arguments from their origins; whether they observe the same."""
    calls, data = ReplayCalls(task), dict[int, Mapping[str, Any]]()
    for step in (step for step in program.steps if step.tool):
        origins = {name: step.origins.get(name, provenance.TYPED_ORIGIN) for name in step.arguments}
        try:
            arguments = {
                n: provenance.rebuild_argument(value, origins[n], program.question, data)
                for n, value in step.arguments.items()
            }
            data[step.position] = yield from calls.call(step.thought, str(step.tool), arguments, again=True)
        except (Mismatch, provenance.BrokenOrigin) as failure:
            if step.error is None:
                raise QuestionRefused(f"{REFUSAL}: step {step.position} fails now: {failure}.") from failure
            continue
        if step.data is not None and _list_observed(step.data) != _list_observed(data[step.position]):
            return False
    return bool(program.answer)
