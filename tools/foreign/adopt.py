"""Somebody else's tool as a Tool: its JSON Schema becomes parameters, its answers observations."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jsonschema.exceptions import SchemaError, best_match
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError
from referencing import Registry

from tools.foreign.result import observation_of
from tools.limits import Limits
from tools.parameter import Parameter, parameters_of
from tools.tool import Context, Observation, Tool
from tools.tool_error import ToolError

Call = Callable[[dict[str, Any]], ToolMessage]


@dataclass(frozen=True, slots=True)
class Terms:
    """How a tool is taken in: under which name and title, from which place, within which limits."""

    name: str
    title: str
    place: str
    limits: Limits
    secrets: tuple[str, ...] = ()
    """What the tool was given to work with and must not be told on."""


@dataclass(frozen=True, slots=True)
class Described:
    """What somebody else's tool tells of itself."""

    description: str
    schema: dict[str, Any]


def described(found: BaseTool, terms: Terms) -> Described:
    """What a LangChain tool tells of itself; a ToolError where its arguments have no schema."""
    try:
        given = found.tool_call_schema
        schema = dict(given) if isinstance(given, dict) else TypeAdapter(given).json_schema()
    except (PydanticUserError, TypeError) as wrong:
        raise ToolError(
            f"The tool {terms.name} of {terms.place} has arguments that are no JSON: {' '.join(str(wrong).split())}."
        ) from wrong
    return Described(found.description, schema)


def adopt(found: Described, terms: Terms, call: Call) -> Tool:
    """The tool on these terms; a ToolError when its arguments have no schema that a form can be made of."""
    schema = _fit(found.schema, terms)
    checks = validator_for(schema)(schema, registry=Registry())
    parameters = parameters_of(schema)

    def work(_context: Context, arguments: Mapping[str, Any]) -> Observation:
        return observation_of(call(_checked(terms.name, checks, parameters, arguments)), terms.limits, terms.secrets)

    return Tool(
        terms.name,
        terms.title,
        found.description.strip() or "Its maker does not say what it does.",
        schema,
        work,
        parameters,
        limits=terms.limits,
        place=terms.place,
    )


def _fit(schema: dict[str, Any], terms: Terms) -> dict[str, Any]:
    try:
        validator_for(schema).check_schema(schema)
    except SchemaError as wrong:
        raise ToolError(f"The tool {terms.name} of {terms.place} has no valid schema: {wrong.message}.") from wrong
    if schema.get("type", "object") != "object" or _leaves(schema):
        raise ToolError(
            f"The tool {terms.name} of {terms.place} has a schema that is no object or refers to other places."
        )
    return {key: value for key, value in schema.items() if key not in ("title", "description")} | {
        "properties": schema.get("properties", {})
    }


def _leaves(schema: Any) -> bool:
    """Whether a reference in it points out of it; nothing is fetched for a schema."""
    if isinstance(schema, Mapping):
        reference = schema.get("$ref", "#")
        return not str(reference).startswith("#") or any(map(_leaves, schema.values()))
    return isinstance(schema, list) and any(map(_leaves, schema))


def _checked(
    name: str, checks: Validator, parameters: tuple[Parameter, ...], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments as the tool takes them; ToolError with what is wrong with them."""
    known = {parameter.name: parameter for parameter in parameters}
    takes = f"It takes {', '.join(known)}." if known else "It takes no arguments."
    if strange := [argument for argument in arguments if argument not in known]:
        raise ToolError(f"{name} cannot run: it has no argument {', '.join(strange)}. {takes}")
    given = {}
    for argument, value in arguments.items():
        try:
            given[argument] = known[argument].read(value)
        except ValueError as wrong:
            raise ToolError(f"{name} cannot run: {argument}: {wrong}. {takes}") from wrong
    if (worst := best_match(checks.iter_errors(given))) is not None:
        place = ".".join(map(str, worst.absolute_path)) or "arguments"
        raise ToolError(f"{name} cannot run: {place}: {worst.message[:300]}. {takes}")
    return given
