"""The steps of one run: yields each tool call with the origins of its arguments, and caches the results."""

import json
from collections.abc import Generator, Mapping
from typing import Any

from reasoners.base import Action, Task
from reasoners.provenance import collect_known_sentences, collect_known_values, find_origin
from tools.tool import ToolResult

MAX_STEPS = 300
ReplayGenerator = Generator[Action, ToolResult | None, Any]


class ReplayBroken(Exception):
    """A demonstration cannot be replayed on this question; the message says why."""


class ToolCallFailed(Exception):
    """A tool call failed; the message is the tool's."""


class ReplaySession:
    """The tool calls of one run; the calls of its prior steps are not repeated."""

    def __init__(self, task: Task) -> None:
        self._question = task.question
        self.tools = {tool.name for tool in task.tools}
        self.has_web = task.context.world.web is not None
        self._data: dict[int, Mapping[str, Any] | None] = {}
        self._called: dict[str, dict[str, Any] | str] = {}
        self._notes: list[str] = []
        for step in task.prior_steps:
            self._data[step.position] = step.data
            if step.tool and (step.data is not None or step.error):
                self._called[_key(step.tool, step.arguments)] = step.data if step.data is not None else str(step.error)

    def add_note(self, finding: str) -> None:
        """Note a finding; the next thought begins with it."""
        self._notes.append(finding)

    def compose_thought(self, text: str) -> str:
        """Return the notes since the last thought, followed by this text."""
        notes, self._notes = self._notes, []
        return " ".join((*dict.fromkeys(notes), text))

    def call_tool(self, thought: str, tool: str, **arguments: str | list[str]) -> ReplayGenerator:
        """Call a tool and return its data; ToolCallFailed if it fails, ReplayBroken after too many steps."""
        key = _key(tool, arguments)
        if key not in self._called:
            yield from self._take(key, thought, tool, arguments)
        result = self._called[key]
        if isinstance(result, str):
            raise ToolCallFailed(result)
        return result

    def _take(self, key: str, thought: str, tool: str, arguments: dict[str, str | list[str]]) -> ReplayGenerator:
        if tool not in self.tools:
            raise ToolCallFailed(f"there is no tool {tool} here")
        if len(self._data) >= MAX_STEPS:
            raise ReplayBroken(f"it would take more than {MAX_STEPS} steps")
        known, sentences = collect_known_values(self._data), collect_known_sentences(self._data)
        origins = {
            name: find_origin(argument, self._question, known, sentences) for name, argument in arguments.items()
        }
        outcome = yield Action(self.compose_thought(thought), tool, dict(arguments), origins)
        observation = outcome.observation if outcome else None
        self._data[len(self._data) + 1] = observation.data if observation else None
        self._called[key] = (
            observation.data if observation else (outcome.error if outcome else None) or "it returned no data"
        )


def _key(tool: str, arguments: Mapping[str, Any]) -> str:
    return json.dumps([tool, dict(arguments)], sort_keys=True, ensure_ascii=False)
