"""What a message from elsewhere says: a text, or a list of parts some of which are texts."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from fewshot_library.formats.documents import MalformedRecord

TEXT_PARTS = {"text": "text", "input_text": "text", "output_text": "text"}
REASONING_PARTS = {"reasoning": "reasoning", "thinking": "thinking"}


class ExtensibleModel(BaseModel):
    """A JSON object of which some keys are known; the others are remembered."""

    model_config = ConfigDict(extra="allow", strict=True)

    @property
    def extra_fields(self) -> dict[str, Any]:
        """What stands under the other keys, where it says something."""
        return {name: value for name, value in (self.model_extra or {}).items() if value not in (None, "", [], {})}


class MessageContent(NamedTuple):
    """What is said, what was thought before, and what else the parts told."""

    text: str
    reasoning: str
    extra: dict[str, Any]


def extra_call_fields(calls: Iterable[ExtensibleModel]) -> dict[str, Any]:
    """What the calls of a message told beside their names and arguments."""
    extras = [call.extra_fields for call in calls]
    return {"tool_calls": extras} if any(extras) else {}


def parse_content(content: Any, place: str) -> MessageContent:
    """The texts of a message's content one after the other; Malformed where it holds something else."""
    if content is None or isinstance(content, str):
        return MessageContent(content or "", "", {})
    if not isinstance(content, list):
        raise MalformedRecord(f"{place} has a content that is neither a text nor a list of parts")
    texts: list[str] = []
    thoughts: list[str] = []
    beside: list[dict[str, Any]] = []
    for part in content:
        kind, value, rest = _parse_part(part)
        if not isinstance(value, str):
            raise MalformedRecord(f"{place} has a part of the kind {kind!r}, which a trace cannot hold")
        (thoughts if kind in REASONING_PARTS else texts).append(value)
        beside.append(rest)
    return MessageContent("".join(texts), "\n\n".join(thoughts), {"parts": beside} if any(beside) else {})


def _parse_part(part: Any) -> tuple[str, Any, dict[str, Any]]:
    if not isinstance(part, dict):
        return "text", part, {}
    kind = str(part.get("type"))
    name = TEXT_PARTS.get(kind) or REASONING_PARTS.get(kind) or ""
    return kind, part.get(name), {key: value for key, value in part.items() if key not in ("type", name) and value}
