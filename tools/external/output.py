"""The output of an external tool as JSON values, and its conversion: without secrets, storable, bounded.

The process that runs functions imports this module, so it imports neither LangChain nor numpy.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_jsonable_python

from showhow.guard.redaction import NOTHING_SECRET, Redactor
from showhow.tools.arguments import ToolError
from showhow.worlds.text_normalization import replace_unstorable

if TYPE_CHECKING:
    from langchain_core.messages import ToolMessage

JsonObject = dict[str, Any]
_MAX_DEPTH = 60


class ToolOutput(BaseModel):
    """What a tool returned: its text, its attachments, and its structured content."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str
    attachments: list[JsonObject] = Field(default_factory=list)
    structured: Any = None
    is_error: bool = False
    omitted: int = Field(default=0, ge=0)
    """Characters that were left out at the end of the text."""
    is_cut: bool = False
    """Whether structured content was left out, because it is too long."""


def read_message(message: "ToolMessage") -> ToolOutput:
    """Convert a tool message of LangChain."""
    texts, attachments = _split_content(message.content)
    structured = _structured_content(message.artifact)
    return ToolOutput(
        text=sanitize_json("\n".join(texts)),
        attachments=sanitize_json(attachments),
        structured=sanitize_json(structured),
        is_error=message.status == "error",
    )


def _structured_content(artifact: Any) -> Any:
    """The artifact as JSON, without the wrapper of MCP servers."""
    if artifact is None:
        return None
    value = to_jsonable_python(artifact, fallback=str)
    if isinstance(value, dict) and value.keys() == {"structured_content"}:
        value = value["structured_content"]
        if isinstance(value, dict) and value.keys() == {"result"}:
            value = value["result"]
    return value


def _split_content(content: str | Sequence[Any]) -> tuple[list[str], list[JsonObject]]:
    if isinstance(content, str):
        return [content], []
    texts, attachments = [], []
    for block in content:
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, Mapping) and block.get("type") == "text":
            texts.append(str(block.get("text", "")))
        elif isinstance(block, Mapping):
            attachments.append(_describe_attachment(block))
        else:
            texts.append(str(block))
    return texts, attachments


def _describe_attachment(block: Mapping[str, Any]) -> JsonObject:
    attachment = {"kind": str(block.get("type", "part")), "type": str(block.get("mime_type") or "of unknown type")}
    if block.get("url"):
        return {**attachment, "address": str(block["url"])}
    content = block.get("base64") or block.get("data") or ""
    return {**attachment, "size": len(str(content)) * 3 // 4}


def sanitize_json(value: Any, redactor: Redactor = NOTHING_SECRET, depth: int = 0) -> Any:
    """The value without secrets, and with NUL, lone surrogates and non-finite numbers replaced for storage."""
    if depth > _MAX_DEPTH:
        raise ToolError(f"A value is nested more than {_MAX_DEPTH} levels deep; use or request a flatter one.")
    if isinstance(value, str):
        return replace_unstorable(redactor.redact(value))
    if isinstance(value, dict):
        return {sanitize_json(key, redactor): sanitize_json(inner, redactor, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [sanitize_json(inner, redactor, depth + 1) for inner in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
