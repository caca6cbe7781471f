"""Reads a conversation from the text into which a model's chat template puts it, such as ChatML or Llama 3's."""

import re
from typing import Any

_STARTS = ("<|im_start|>", "<|start_header_id|>")
_START = re.compile(r"<\|(?:im_start|start_header_id)\|>")
_ROLE_END = re.compile(r"<\|end_header_id\|>\s*+|\n")
_TURN_END = re.compile(r"<\|(?:im_end|eot_id|eom_id|end_of_text|endoftext)\|>")
_TEXT_START = re.compile(r"<\|begin_of_text\|>|<s>|\s")


def is_template(text: str) -> bool:
    """Whether a text begins with a message in a chat template."""
    return _TEXT_START.sub("", text[:200]).startswith(_STARTS)


def parse_template(text: str) -> list[dict[str, Any]]:
    """The messages of a text in a chat template, each with its role; the reply that a prompt waits for is left out."""
    messages: list[dict[str, Any]] = []
    for block in _START.split(text)[1:]:
        role, content = [*_ROLE_END.split(block, maxsplit=1), ""][:2]
        message = {"role": (role.split() or [""])[0], "content": _TURN_END.split(content, maxsplit=1)[0].strip("\n")}
        if message["content"] or "<|" in content:
            messages.append(message)
    return messages


def split_conversations(messages: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The conversations of a file, each of which begins with its system message, if any message is one."""
    conversations: list[list[dict[str, Any]]] = []
    for message in messages:
        if not conversations or (message["role"] == "system" and conversations[-1][-1]["role"] != "system"):
            conversations.append([])
        conversations[-1].append(message)
    return conversations
