"""Adapts an external tool: its JSON Schema becomes parameters, its output becomes observations.

The data of an observation are {"result": any JSON value, or else "text", "attachments": [{"kind", "type", "size" or
"address"}], "cut": true}; a key without a value is omitted.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from showhow.guard.redaction import NOTHING_SECRET, Redactor
from showhow.tools.arguments import Parameter, ToolError, parse_parameters
from showhow.tools.external.output import JsonObject, ToolOutput, sanitize_json
from showhow.tools.external.schema import ToolDescription, describe_usage
from showhow.tools.limits import ToolLimits
from showhow.tools.tool import Observation, Tool, ToolContext
from showhow.worlds.source import ErrorKind


@dataclass(frozen=True, slots=True)
class ToolRegistration:
    """The name, title, origin and limits that an external tool gets."""

    name: str
    title: str
    origin: str
    limits: ToolLimits
    redactor: Redactor = NOTHING_SECRET
    """Removes the values of its environment that no observation may contain."""


def build_observation(output: ToolOutput, registration: ToolRegistration) -> Observation:
    """Convert an output to an observation within the limits and without the secrets; ToolError for an error."""
    limits, redactor = registration.limits, registration.redactor
    complete, unfinished = redactor.split_unfinished(output.text) if output.omitted else (output.text, "")
    text, omitted = sanitize_json(complete, redactor), output.omitted + len(unfinished)
    attachments = sanitize_json(output.attachments, redactor)
    if output.is_error:
        raise ToolError(
            limits.truncate(text, omitted) or f"{registration.name} failed without a reason; try other arguments."
        )
    structured = sanitize_json(output.structured, redactor)
    result = _parse_json_text(text) if structured is None or structured == text else structured
    if not text and result is not None:
        text = json.dumps(result, ensure_ascii=False)
    lines = [*([text] if text else []), *map(_format_attachment, attachments)]
    visible_text = limits.truncate("\n".join(lines), omitted)
    data: JsonObject = {"attachments": attachments} if attachments else {}
    if result is not None and limits.fits(result):
        data["result"] = result
    elif result is not None or output.is_cut or len(text) + omitted > limits.characters:
        data["cut"] = True
    elif text:
        data["text"] = text
    return Observation(visible_text or "The result is empty.", data)


def _parse_json_text(text: str) -> Any:
    """The object or list in a text of JSON; None for other text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return sanitize_json(json.loads(text, parse_constant=str))
    except (ValueError, RecursionError, ToolError):
        # Invalid JSON, or nested too deeply for a page.
        return None


def _format_attachment(attachment: JsonObject) -> str:
    detail = f"at {attachment['address']}" if "address" in attachment else f"of {attachment['size']:,} bytes"
    return f"[{attachment['kind']}, {attachment['type']}, {detail}; not shown]"


ToolInvoker = Callable[[dict[str, Any]], ToolOutput]


def adapt_tool(description: ToolDescription, registration: ToolRegistration, call: ToolInvoker) -> Tool:
    """Make a Tool of an external tool; `call` gets typed arguments and validates them."""
    schema = sanitize_json(description.arguments, registration.redactor)
    purpose = sanitize_json(description.description, registration.redactor).strip()
    parameters = parse_parameters(schema)

    def run(_context: ToolContext, arguments: Mapping[str, Any]) -> Observation:
        return build_observation(call(_parse_arguments(registration.name, parameters, arguments)), registration)

    return Tool(
        registration.name,
        registration.title,
        purpose or "This tool has no description.",
        schema,
        run,
        parameters,
        limits=registration.limits,
        origin=registration.origin,
    )


def _parse_arguments(name: str, parameters: tuple[Parameter, ...], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Parse the arguments of a call as its form wrote them; ToolError names the wrong one."""
    parameters_by_name = {parameter.name: parameter for parameter in parameters}
    usage = describe_usage(parameters_by_name)
    if unknown := [argument for argument in arguments if argument not in parameters_by_name]:
        raise ToolError(
            f"{name} cannot run: it has no argument {', '.join(unknown)}. {usage}", ErrorKind.WRONG_ARGUMENTS
        )
    values = {}
    for argument, value in arguments.items():
        try:
            values[argument] = parameters_by_name[argument].parse(value)
        except ValueError as error:
            raise ToolError(f"{name} cannot run: {argument}: {error}. {usage}", ErrorKind.WRONG_ARGUMENTS) from error
    return values
