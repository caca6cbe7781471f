"""Somebody else's tool as a Tool: its JSON Schema becomes parameters, its answers observations.

What somebody else's tool gave, as an observation: text for the prompt, JSON for the page.

The data are {"result": any JSON value, "attachments": [{"kind", "type", "size" or "address"}], "cut": true}, each key
only where there is something of it.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jsonschema.exceptions import SchemaError, best_match
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic_core import to_jsonable_python
from referencing import Registry

from tools.errors import ToolError
from tools.external.limits import ToolLimits
from tools.parameter import Parameter, parse_parameters
from tools.tool import Observation, Tool, ToolContext
from worlds.source import ErrorKind
from worlds.text_normalization import replace_unstorable

JsonObject = dict[str, Any]
_MAX_DEPTH = 60


def build_observation(message: ToolMessage, limits: ToolLimits, secrets: Sequence[str] = ()) -> Observation:
    """The message's words and artifact within the limits, without the secrets; ToolError where it tells a failure."""
    texts, attachments = sanitize_json(_split_content(message.content), secrets)
    text = "\n".join(texts)
    if message.status == "error":
        raise ToolError(limits.truncate(text) or f"{message.name} failed and does not say why; try other arguments.")
    found = sanitize_json(_structured_content(message.artifact), secrets)
    result = _parse_json_text(text) if found is None or found == text else found
    if not text and result is not None:
        text = json.dumps(result, ensure_ascii=False)
    named = [_format_attachment(attachment) for attachment in attachments]
    shown = limits.truncate("\n".join([*([text] if text else []), *named]))
    data: JsonObject = {"attachments": attachments} if attachments else {}
    if result is not None and limits.fits(result):
        data["result"] = result
    elif result is not None or len(text) > limits.characters:
        data["cut"] = True
    return Observation(shown or "It gave an empty answer.", data)


def _structured_content(artifact: Any) -> Any:
    """The artifact as JSON; what an MCP server wraps is unwrapped."""
    if artifact is None:
        return None
    found = to_jsonable_python(artifact, fallback=str)
    if isinstance(found, dict) and found.keys() == {"structured_content"}:
        found = found["structured_content"]
        if isinstance(found, dict) and found.keys() == {"result"}:
            found = found["result"]
    return found


def _parse_json_text(text: str) -> Any:
    """The object or list that a text is JSON of, if it is."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return sanitize_json(json.loads(text, parse_constant=str))
    except (ValueError, RecursionError, ToolError):
        # No JSON after all, or more than a page can show; the text stays what it is.
        return None


def sanitize_json(value: Any, secrets: Sequence[str] = (), depth: int = 0) -> Any:
    """The value without the secrets, and with what cannot be stored replaced.

    That is NUL, halves of surrogate pairs and numbers that are none.
    """
    if depth > _MAX_DEPTH:
        raise ToolError(f"The answer is nested more than {_MAX_DEPTH} deep; ask for a flatter one.")
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, "…")
        return replace_unstorable(value)
    if isinstance(value, dict):
        return {sanitize_json(key, secrets): sanitize_json(inner, secrets, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [sanitize_json(inner, secrets, depth + 1) for inner in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


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
    about = {"kind": str(block.get("type", "part")), "type": str(block.get("mime_type") or "of unknown type")}
    if block.get("url"):
        return {**about, "address": str(block["url"])}
    held = block.get("base64") or block.get("data") or ""
    return {**about, "size": len(str(held)) * 3 // 4}


def _format_attachment(attachment: JsonObject) -> str:
    where = f"at {attachment['address']}" if "address" in attachment else f"of {attachment['size']:,} bytes"
    return f"[{attachment['kind']}, {attachment['type']}, {where}; not shown]"


ToolInvoker = Callable[[dict[str, Any]], ToolMessage]


@dataclass(frozen=True, slots=True)
class ToolRegistration:
    """How a tool is taken in: under which name and title, from which place, within which limits."""

    name: str
    title: str
    origin: str
    limits: ToolLimits
    secrets: tuple[str, ...] = ()
    """What the tool was given to work with and must not be told on."""


@dataclass(frozen=True, slots=True)
class ToolDescription:
    """What somebody else's tool tells of itself."""

    description: str
    schema: dict[str, Any]


def describe_langchain_tool(found: BaseTool, terms: ToolRegistration) -> ToolDescription:
    """What a LangChain tool tells of itself; a ToolError where its arguments have no schema."""
    try:
        given = found.tool_call_schema
        schema = dict(given) if isinstance(given, dict) else TypeAdapter(given).json_schema()
    except (PydanticUserError, TypeError) as wrong:
        raise ToolError(
            f"The tool {terms.name} of {terms.origin} has arguments that are no JSON: {' '.join(str(wrong).split())}.",
            ErrorKind.UNAVAILABLE,
        ) from wrong
    return ToolDescription(found.description, schema)


def adapt_tool(found: ToolDescription, terms: ToolRegistration, call: ToolInvoker) -> Tool:
    """The tool on these terms; a ToolError when its arguments have no schema that a form can be made of."""
    schema = _normalize_schema(found.schema, terms)
    checks = validator_for(schema)(schema, registry=Registry())
    parameters = parse_parameters(schema)

    def work(_context: ToolContext, arguments: Mapping[str, Any]) -> Observation:
        return build_observation(
            call(_validate_arguments(terms.name, checks, parameters, arguments)), terms.limits, terms.secrets
        )

    return Tool(
        terms.name,
        terms.title,
        found.description.strip() or "Its maker does not say what it does.",
        schema,
        work,
        parameters,
        limits=terms.limits,
        origin=terms.origin,
    )


def _normalize_schema(schema: dict[str, Any], terms: ToolRegistration) -> dict[str, Any]:
    try:
        validator_for(schema).check_schema(schema)
    except SchemaError as wrong:
        raise ToolError(
            f"The tool {terms.name} of {terms.origin} has no valid schema: {wrong.message}.", ErrorKind.UNAVAILABLE
        ) from wrong
    if schema.get("type", "object") != "object" or _has_external_reference(schema):
        raise ToolError(
            f"The tool {terms.name} of {terms.origin} has a schema that is no object or refers to other places.",
            ErrorKind.UNAVAILABLE,
        )
    return {key: value for key, value in schema.items() if key not in ("title", "description")} | {
        "properties": schema.get("properties", {})
    }


def _has_external_reference(schema: Any) -> bool:
    """Whether a reference in it points out of it; nothing is fetched for a schema."""
    if isinstance(schema, Mapping):
        reference = schema.get("$ref", "#")
        return not str(reference).startswith("#") or any(map(_has_external_reference, schema.values()))
    return isinstance(schema, list) and any(map(_has_external_reference, schema))


def _validate_arguments(
    name: str, checks: Validator, parameters: tuple[Parameter, ...], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments as the tool takes them; ToolError with what is wrong with them."""
    known = {parameter.name: parameter for parameter in parameters}
    takes = f"It takes {', '.join(known)}." if known else "It takes no arguments."
    if strange := [argument for argument in arguments if argument not in known]:
        raise ToolError(
            f"{name} cannot run: it has no argument {', '.join(strange)}. {takes}", ErrorKind.WRONG_ARGUMENTS
        )
    given = {}
    for argument, value in arguments.items():
        try:
            given[argument] = known[argument].parse(value)
        except ValueError as wrong:
            raise ToolError(f"{name} cannot run: {argument}: {wrong}. {takes}", ErrorKind.WRONG_ARGUMENTS) from wrong
    if (worst := best_match(checks.iter_errors(given))) is not None:
        place = ".".join(map(str, worst.absolute_path)) or "arguments"
        raise ToolError(f"{name} cannot run: {place}: {worst.message[:300]}. {takes}", ErrorKind.WRONG_ARGUMENTS)
    return given
