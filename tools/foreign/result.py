"""What somebody else's tool gave, as an observation: text for the prompt, JSON for the page.

The data are {"result": any JSON value, "attachments": [{"kind", "type", "size" or "address"}], "cut": true}, each key
only where there is something of it.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import ToolMessage
from pydantic_core import to_jsonable_python

from tools.limits import Limits
from tools.tool import Observation
from tools.tool_error import ToolError
from worlds.spelling import storable

Json = dict[str, Any]
_DEEPEST = 60


def observation_of(message: ToolMessage, limits: Limits, secrets: Sequence[str] = ()) -> Observation:
    """The message's words and artifact within the limits, without the secrets; ToolError where it tells a failure."""
    texts, attachments = plain(_content(message.content), secrets)
    text = "\n".join(texts)
    if message.status == "error":
        raise ToolError(limits.cut(text) or f"{message.name} failed and does not say why; try other arguments.")
    found = plain(_structured(message.artifact), secrets)
    result = _read(text) if found is None or found == text else found
    if not text and result is not None:
        text = json.dumps(result, ensure_ascii=False)
    named = [_named(attachment) for attachment in attachments]
    shown = limits.cut("\n".join([*([text] if text else []), *named]))
    data: Json = {"attachments": attachments} if attachments else {}
    if result is not None and limits.fits(result):
        data["result"] = result
    elif result is not None or len(text) > limits.characters:
        data["cut"] = True
    return Observation(shown or "It gave an empty answer.", data)


def _structured(artifact: Any) -> Any:
    """The artifact as JSON; what an MCP server wraps is unwrapped."""
    if artifact is None:
        return None
    found = to_jsonable_python(artifact, fallback=str)
    if isinstance(found, dict) and found.keys() == {"structured_content"}:
        found = found["structured_content"]
        if isinstance(found, dict) and found.keys() == {"result"}:
            found = found["result"]
    return found


def _read(text: str) -> Any:
    """The object or list that a text is JSON of, if it is."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return plain(json.loads(text, parse_constant=str))
    except (ValueError, RecursionError, ToolError):
        # No JSON after all, or more than a page can show; the text stays what it is.
        return None


def plain(value: Any, secrets: Sequence[str] = (), depth: int = 0) -> Any:
    """The value without the secrets, and with what cannot be stored replaced.

    That is NUL, halves of surrogate pairs and numbers that are none.
    """
    if depth > _DEEPEST:
        raise ToolError(f"The answer is nested more than {_DEEPEST} deep; ask for a flatter one.")
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, "…")
        return storable(value)
    if isinstance(value, dict):
        return {plain(key, secrets): plain(inner, secrets, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, secrets, depth + 1) for inner in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _content(content: str | Sequence[Any]) -> tuple[list[str], list[Json]]:
    if isinstance(content, str):
        return [content], []
    texts, attachments = [], []
    for block in content:
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, Mapping) and block.get("type") == "text":
            texts.append(str(block.get("text", "")))
        elif isinstance(block, Mapping):
            attachments.append(_attachment(block))
        else:
            texts.append(str(block))
    return texts, attachments


def _attachment(block: Mapping[str, Any]) -> Json:
    about = {"kind": str(block.get("type", "part")), "type": str(block.get("mime_type") or "of unknown type")}
    if block.get("url"):
        return {**about, "address": str(block["url"])}
    held = block.get("base64") or block.get("data") or ""
    return {**about, "size": len(str(held)) * 3 // 4}


def _named(attachment: Json) -> str:
    where = f"at {attachment['address']}" if "address" in attachment else f"of {attachment['size']:,} bytes"
    return f"[{attachment['kind']}, {attachment['type']}, {where}; not shown]"
