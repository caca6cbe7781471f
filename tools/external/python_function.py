"""Makes a tool of a function, or of a LangChain tool, that the configuration names as module:attribute.

It is imported, described and called in another process (functions/host.py).
"""

from typing import Any

from tools.errors import ToolError
from tools.external.adapter import ToolRegistration, adapt_tool
from tools.external.config import FunctionConfig
from tools.external.functions.host import FunctionHost
from tools.external.functions.protocol import CallArguments, Failure, WorkOrder
from tools.external.output import ToolOutput, max_partial_length, redact, redact_cut, sanitize_json
from tools.external.schema import ToolDescription
from tools.limits import MAX_ERROR_CHARACTERS
from tools.tool import Tool
from worlds.source import ErrorKind


def load_function(name: str, config: FunctionConfig, host: FunctionHost) -> Tool:
    """Load the tool; ToolError says why it cannot be loaded and what to correct."""
    title = config.title or name.replace("_", " ").replace("-", " ").strip().capitalize()
    registration = ToolRegistration(name, title, config.place, config.limits, host.secrets)
    reply = host.describe(name, config.place, config.megabytes)
    if (description := reply.description) is None:
        raise _to_tool_error(name, reply.failure, host.secrets)
    order = WorkOrder(task="call", name=name, place=config.place, seconds=config.seconds, megabytes=config.megabytes)
    characters = config.characters + max_partial_length(host.secrets)

    def call(arguments: dict[str, Any]) -> ToolOutput:
        reply = host.call(
            order,
            CallArguments(
                arguments=sanitize_json(arguments),
                argument_schema=description.arguments,
                characters=characters,
            ),
        )
        if reply.output is None:
            raise _to_tool_error(name, reply.failure, host.secrets)
        return reply.output

    return adapt_tool(_without_secrets(description, host.secrets), registration, call)


def _to_tool_error(name: str, failure: Failure | None, secrets: tuple[str, ...]) -> ToolError:
    if failure is None:
        return ToolError(f"{name} gave neither a result nor an error; try another tool.", ErrorKind.OTHER)
    if failure.sentence:
        return ToolError(redact(failure.sentence, secrets), failure.kind)
    exception = (redact_cut if failure.is_cut else redact)(failure.exception, secrets)
    if len(exception) > MAX_ERROR_CHARACTERS:
        exception = f"{exception[:MAX_ERROR_CHARACTERS]} …"
    return ToolError(f"{name} failed with {exception}; try other arguments, or another tool.", failure.kind)


def _without_secrets(description: ToolDescription, secrets: tuple[str, ...]) -> ToolDescription:
    """The description without secrets; a default value that contains one is left to the function."""
    schema = sanitize_json(description.arguments, secrets)
    for field, original in zip(
        schema["properties"].values(), description.arguments["properties"].values(), strict=True
    ):
        if isinstance(field, dict) and field.get("default") != original.get("default"):
            del field["default"]
    return ToolDescription(description=redact(description.description, secrets), arguments=schema)
