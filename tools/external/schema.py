"""The JSON Schema of an external tool's arguments: checked once, and used to validate the arguments of each call.

The process that runs functions imports this module, so it imports neither LangChain nor numpy.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

from showhow.guard.schemas import UncheckedValue, find_schema_error, find_violation, refers_elsewhere
from showhow.tools.arguments import ToolError
from showhow.worlds.source import ErrorKind

JsonObject = dict[str, Any]
MAX_DESCRIPTION_CHARACTERS = 100_000
"""Maximum length of a tool's description and schema together; they are part of every prompt."""


class ToolDescription(BaseModel):
    """The description and the argument schema of an external tool."""

    model_config = ConfigDict(frozen=True)

    description: str
    arguments: JsonObject

    @field_validator("arguments")
    @classmethod
    def _check_parts(cls, schema: JsonObject) -> JsonObject:
        if not isinstance(schema.setdefault("properties", {}), dict) or not isinstance(
            schema.get("required", []), list
        ):
            raise ValueError("not the schema of an object")  # noqa: TRY004 - pydantic reports ValueError only
        return schema


def check_schema(schema: Mapping[str, Any], tool: str) -> JsonObject:
    """The schema without title and description; ToolError if no form can be made from it."""
    try:
        error = find_schema_error(schema)
    except UncheckedValue as unchecked:
        raise ToolError(f"{tool} has a schema that cannot be checked: {unchecked}.", ErrorKind.UNAVAILABLE) from None
    if error is not None:
        raise ToolError(f"{tool} has no valid schema: {error}.", ErrorKind.UNAVAILABLE)
    if schema.get("type", "object") != "object" or refers_elsewhere(schema):
        raise ToolError(
            f"{tool} has a schema that is not an object or refers to another document.", ErrorKind.UNAVAILABLE
        )
    return {key: value for key, value in schema.items() if key not in ("title", "description")} | {
        "properties": schema.get("properties", {})
    }


def check_arguments(name: str, schema: JsonObject, arguments: JsonObject) -> None:
    """Validate the typed arguments of a call; ToolError names the wrong one."""
    try:
        violation = find_violation(schema, arguments)
    except UncheckedValue as unchecked:
        raise ToolError(
            f"{name} cannot run: its arguments could not be checked against its schema: {unchecked}; shorten them.",
            ErrorKind.WRONG_ARGUMENTS,
        ) from None
    if violation is not None:
        path = ".".join(map(str, violation.path)) or "arguments"
        usage = describe_usage(schema["properties"])
        raise ToolError(f"{name} cannot run: {path}: {violation.message}. {usage}", ErrorKind.WRONG_ARGUMENTS)


def describe_usage(names: Mapping[str, Any]) -> str:
    """A sentence with the names of the arguments."""
    return f"It takes {', '.join(names)}." if names else "It takes no arguments."
