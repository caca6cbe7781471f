"""Adapts an external tool: its JSON Schema becomes parameters, its answers become observations.

The data of an observation are {"result": any JSON value, "attachments": [{"kind", "type", "size" or "address"}],
"cut": true}, each key only if there is a value for it.
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
from tools.limits import ToolLimits
from tools.parameter import Parameter, parse_parameters
from tools.tool import Observation, Tool, ToolContext
from worlds.source import ErrorKind
from worlds.text_normalization import replace_unstorable

JsonObject = dict[str, Any]
_MAX_DEPTH = 60


def build_observation(message: ToolMessage, limits: ToolLimits, secrets: Sequence[str] = ()) -> Observation:
    """Convert an answer to an observation within the limits and without the secrets; ToolError if it is an error."""
    texts, attachments = sanitize_json(_split_content(message.content), secrets)
    text = "\n".join(texts)
    if message.status == "error":
        raise ToolError(limits.truncate(text) or f"{message.name} failed without a reason; try other arguments.")
    structured = sanitize_json(_structured_content(message.artifact), secrets)
    result = _parse_json_text(text) if structured is None or structured == text else structured
    if not text and result is not None:
        text = json.dumps(result, ensure_ascii=False)
    named = [_format_attachment(attachment) for attachment in attachments]
    visible_text = limits.truncate("\n".join([*([text] if text else []), *named]))
    data: JsonObject = {"attachments": attachments} if attachments else {}
    if result is not None and limits.fits(result):
        data["result"] = result
    elif result is not None or len(text) > limits.characters:
        data["cut"] = True
    return Observation(visible_text or "It gave an empty answer.", data)


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


def _parse_json_text(text: str) -> Any:
    """The object or list that the text is JSON of; None for other text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return sanitize_json(json.loads(text, parse_constant=str))
    except (ValueError, RecursionError, ToolError):
        # No JSON after all, or nested too deeply for a page.
        return None


def sanitize_json(value: Any, secrets: Sequence[str] = (), depth: int = 0) -> Any:
    """The value without secrets, and with NUL, lone surrogates and non-finite numbers replaced for storage."""
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
    """The name, title, origin and limits that an external tool gets."""

    name: str
    title: str
    origin: str
    limits: ToolLimits
    secrets: tuple[str, ...] = ()
    """Values of its environment that no observation may hold."""


@dataclass(frozen=True, slots=True)
class ToolDescription:
    """The description and the argument schema of an external tool."""

    description: str
    schema: dict[str, Any]


def describe_langchain_tool(tool: BaseTool, registration: ToolRegistration) -> ToolDescription:
    """Read the description of a LangChain tool; ToolError if its arguments have no JSON Schema."""
    try:
        declared = tool.tool_call_schema
        schema = dict(declared) if isinstance(declared, dict) else TypeAdapter(declared).json_schema()
    except (PydanticUserError, TypeError) as wrong:
        raise ToolError(
            f"The tool {registration.name} of {registration.origin} has arguments that are no JSON: "
            f"{' '.join(str(wrong).split())}.",
            ErrorKind.UNAVAILABLE,
        ) from wrong
    return ToolDescription(tool.description, schema)


def adapt_tool(described: ToolDescription, registration: ToolRegistration, call: ToolInvoker) -> Tool:
    """Make a Tool of an external tool; ToolError if no form can be made from its schema."""
    schema = _normalize_schema(described.schema, registration)
    checks = validator_for(schema)(schema, registry=Registry())
    parameters = parse_parameters(schema)

    def work(_context: ToolContext, arguments: Mapping[str, Any]) -> Observation:
        return build_observation(
            call(_validate_arguments(registration.name, checks, parameters, arguments)),
            registration.limits,
            registration.secrets,
        )

    return Tool(
        registration.name,
        registration.title,
        described.description.strip() or "This tool has no description.",
        schema,
        work,
        parameters,
        limits=registration.limits,
        origin=registration.origin,
    )


def _normalize_schema(schema: dict[str, Any], registration: ToolRegistration) -> dict[str, Any]:
    try:
        validator_for(schema).check_schema(schema)
    except SchemaError as wrong:
        raise ToolError(
            f"The tool {registration.name} of {registration.origin} has no valid schema: {wrong.message}.",
            ErrorKind.UNAVAILABLE,
        ) from wrong
    if schema.get("type", "object") != "object" or _has_external_reference(schema):
        raise ToolError(
            f"The tool {registration.name} of {registration.origin} has a schema that is no object or refers to "
            "another document.",
            ErrorKind.UNAVAILABLE,
        )
    return {key: value for key, value in schema.items() if key not in ("title", "description")} | {
        "properties": schema.get("properties", {})
    }


def _has_external_reference(schema: Any) -> bool:
    """Whether the schema refers to another document; references are never fetched."""
    if isinstance(schema, Mapping):
        reference = schema.get("$ref", "#")
        return not str(reference).startswith("#") or any(map(_has_external_reference, schema.values()))
    return isinstance(schema, list) and any(map(_has_external_reference, schema))


def _validate_arguments(
    name: str, checks: Validator, parameters: tuple[Parameter, ...], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Parse and check the arguments of a call; ToolError says what is wrong."""
    parameters_by_name = {parameter.name: parameter for parameter in parameters}
    takes = f"It takes {', '.join(parameters_by_name)}." if parameters_by_name else "It takes no arguments."
    if strange := [argument for argument in arguments if argument not in parameters_by_name]:
        raise ToolError(
            f"{name} cannot run: it has no argument {', '.join(strange)}. {takes}", ErrorKind.WRONG_ARGUMENTS
        )
    values = {}
    for argument, value in arguments.items():
        try:
            values[argument] = parameters_by_name[argument].parse(value)
        except ValueError as wrong:
            raise ToolError(f"{name} cannot run: {argument}: {wrong}. {takes}", ErrorKind.WRONG_ARGUMENTS) from wrong
    if (worst := best_match(checks.iter_errors(values))) is not None:
        place = ".".join(map(str, worst.absolute_path)) or "arguments"
        raise ToolError(f"{name} cannot run: {place}: {worst.message[:300]}. {takes}", ErrorKind.WRONG_ARGUMENTS)
    return values
