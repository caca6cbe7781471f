"""Finds the thoughts of a model where its provider puts them: fields beside the content, parts of it, tags in it."""

from collections.abc import Iterator
from typing import Any

THOUGHT_NAMES = (
    *("reasoning_content", "reasoning", "thinking", "thought", "reasoning_details", "thinking_blocks"),
    *("reasoningText", "reasoning_text", "tool_plan"),
)
"""Fields of a message with its thoughts; the kinds of parts with thoughts contain one of the words too."""
_THOUGHT_WORDS = ("reasoning", "thinking", "thought")
_TEXT_NAMES = ("text", "content", "summary")
_TAGS = tuple((f"<{name}>", f"</{name}>") for name in ("think", "thinking", "thought"))


def is_thought(part: dict[str, Any]) -> bool:
    """Whether a part of a content is a thought."""
    kind = str(next((part[name] for name in ("type", "part_kind", "block_type") if part.get(name)), "")).lower()
    return part.get("thought") is True or any(word in kind for word in _THOUGHT_WORDS)


def read_thought(value: Any) -> str:
    """The thought in a text, an object or a list of them; empty if it is encrypted or there is none."""
    match value:
        case str():
            return value
        case list():
            return "\n\n".join(text for element in value if (text := read_thought(element)))
        case dict():
            names = [*THOUGHT_NAMES, *_TEXT_NAMES]
            # Without a kind, a "summary" is a setting and not a text.
            fields = [value.get(name) for name in names if "type" in value or name != "summary"]
            return next((text for field in fields if (text := read_thought(field))), "")
    return ""


def take_thoughts(fields: dict[str, Any]) -> list[str]:
    """Remove the thoughts from the unknown fields of a message, or of objects among them, and return them."""
    thoughts = list(_take(fields))
    for inner in fields.values():
        if isinstance(inner, dict):
            thoughts += _take(inner)
    # Servers repeat a thought under several names.
    return list(dict.fromkeys(thought for thought in thoughts if thought.strip()))


def _take(fields: dict[str, Any]) -> Iterator[str]:
    for name in THOUGHT_NAMES:
        if thought := read_thought(fields.get(name)):
            if isinstance(fields[name], str):
                # An object has more than the text, such as a signature, and is kept.
                del fields[name]
            yield thought


def split_thoughts(text: str) -> tuple[str, str]:
    """Split the thoughts between tags from the text of a model; one that has no end goes to the end of the text."""
    thoughts: list[str] = []
    for opening, closing in _TAGS:
        start, end = text.find(opening), text.find(closing)
        if end >= 0 and not 0 <= start < end:
            # Templates of chats write the opening tag before the model's text begins.
            thoughts.append(text[:end])
            text = text[end + len(closing) :].lstrip()
        kept: list[str] = []
        while (start := text.find(opening)) >= 0:
            thought, _, rest = text[start + len(opening) :].partition(closing)
            thoughts.append(thought)
            kept.append(text[:start])
            text = rest.lstrip()
        text = "".join([*kept, text])
    stripped = [thought.strip() for thought in thoughts if thought.strip()]
    return "\n\n".join(stripped), text.strip() if thoughts else text
