"""One run: its tool calls with the origins of their arguments, its cached results, and the entities and values found.

Entities and values are compared by id, title or name.
"""

import json
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from reasoners.base import Action, Task
from reasoners.provenance import collect_known_sentences, collect_known_values, find_origin
from reasoners.replay.english import as_day, format_day, plain
from tools.tool import ToolResult

MAX_STEPS = 300
ReplayGenerator = Generator[Action, ToolResult | None, Any]


@dataclass(frozen=True, slots=True)
class FoundEntity:
    """An entity or value: its name or text, and its id if the graph returned one."""

    text: str
    id: str | None = None


def same_value(value: str) -> str:
    """A value normalized for comparison."""
    return as_day(value) or plain(value)


def bare_name(name: str) -> str:
    """A title without its disambiguation in brackets."""
    return name.partition(" (")[0]


def ways_to_write(text: str) -> tuple[str, ...]:
    """The spellings of a value in graphs and in articles."""
    day = as_day(text)
    return (text, bare_name(text), format_day(day)) if day else (text, bare_name(text))


def is_same(one: FoundEntity, other: FoundEntity) -> bool:
    """Whether two entities are the same: by id, or else by title, or else by name."""
    if one.id and other.id:
        return one.id == other.id
    if "(" in one.text and "(" in other.text:
        return plain(one.text) == plain(other.text)
    return plain(bare_name(one.text)) == plain(bare_name(other.text))


def merge_entities(known: Iterable[FoundEntity], more: Iterable[FoundEntity]) -> list[FoundEntity]:
    """Merge two lists of entities without duplicates; keep ids and titles that only one list has."""
    merged: list[FoundEntity] = []
    for entity in (*known, *more):
        index = next((place for place, other in enumerate(merged) if is_same(other, entity)), None)
        if index is None:
            merged.append(entity)
        else:
            existing = merged[index]
            titled = entity if "(" in entity.text and "(" not in existing.text else existing
            merged[index] = FoundEntity(titled.text, existing.id or entity.id)
    return merged


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
