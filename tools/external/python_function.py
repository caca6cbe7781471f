"""A LangChain tool, or a function with types and a docstring, that a configuration names by its place.

The arguments of a function by its signature: as JSON Schema, and checked and converted for a call.
"""

import asyncio
import importlib
import inspect
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field, create_model
from pydantic_core import to_jsonable_python

from tools.errors import ToolError
from tools.external.adapter import ToolDescription, ToolRegistration, adapt_tool, describe_langchain_tool
from tools.external.config import FunctionConfig
from tools.external.limits import summarize_exception
from tools.tool import Tool
from worlds.source import ErrorKind

_NAMED_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class UnnamedArgumentsError(Exception):
    """Arguments without a name of their own, of which no form can be made."""


class FunctionSignature:
    """What a function takes; whatever is wrong with its types is raised by making one."""

    def __init__(self, function: Callable[..., Any]) -> None:
        parameters = inspect.signature(function).parameters.values()
        if loose := [parameter.name for parameter in parameters if parameter.kind not in _NAMED_KINDS]:
            raise UnnamedArgumentsError(", ".join(loose))
        hints = get_type_hints(function, include_extras=True)
        # Pydantic's fields have names of ours, because its own, and ones with a _ before them, no field can have.
        self._fields = {f"argument_{n}": parameter.name for n, parameter in enumerate(parameters)}
        fields: dict[str, Any] = {
            field: _model_field(hints.get(parameter.name, Any), parameter)
            for field, parameter in zip(self._fields, parameters, strict=True)
        }
        self._model: type[BaseModel] = create_model("arguments", **fields)
        self.schema: dict[str, Any] = self._model.model_json_schema()

    def validate_arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call; a ValidationError names those that the types do not take."""
        checked = self._model.model_validate(dict(given))
        return {name: getattr(checked, field) for field, name in self._fields.items()}


def _model_field(hint: Any, parameter: inspect.Parameter) -> tuple[Any, Any]:
    notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    if about := next((note for note in notes if isinstance(note, str)), None):
        hint = Annotated[hint, Field(description=about)]
    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    return hint, Field(default, alias=parameter.name)


def load_function(name: str, declared: FunctionConfig, folder: Path | None) -> Tool:
    """The tool under that name; a ToolError that says why it cannot be loaded and what to correct."""
    found = _import_target(name, declared, folder)
    title = declared.title or name.replace("_", " ").replace("-", " ").strip().capitalize()
    terms = ToolRegistration(name, title, declared.place, declared.limits)
    if isinstance(found, BaseTool):
        return adapt_tool(
            describe_langchain_tool(found, terms), terms, lambda given: _call_langchain_tool(found, given)
        )
    about, signature = _describe_function(name, found, declared.place)
    return adapt_tool(about, terms, lambda given: _call_function(found, signature.validate_arguments(given)))


def _import_target(name: str, declared: FunctionConfig, folder: Path | None) -> Any:
    module, _, attribute = declared.place.partition(":")
    if folder is not None and str(folder) not in sys.path:
        sys.path.append(str(folder))
    # A foreign module may raise anything while it is imported, and so may the annotations of a function below.
    try:
        found: Any = importlib.import_module(module)
    except Exception as failed:
        raise ToolError(
            f"The tool {name} cannot be loaded: importing {module} failed with {summarize_exception(failed)}; "
            "correct the module, or its place in the file of tools.",
            ErrorKind.UNAVAILABLE,
        ) from failed
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ToolError(
                f"The tool {name} cannot be loaded: {module} has no {attribute}; correct its place.",
                ErrorKind.UNAVAILABLE,
            )
        found = getattr(found, part)
    return found


def _describe_function(name: str, found: Any, place: str) -> tuple[ToolDescription, FunctionSignature]:
    if not inspect.isroutine(found):
        raise ToolError(
            f"The tool {name} cannot be loaded: {place} is of type {type(found).__name__}, neither a LangChain tool "
            "nor a function.",
            ErrorKind.UNAVAILABLE,
        )
    if not inspect.getdoc(found):
        raise ToolError(
            f"The tool {name} cannot be loaded: {place} has no docstring to describe it; write one.",
            ErrorKind.UNAVAILABLE,
        )
    try:
        signature = FunctionSignature(found)
    except UnnamedArgumentsError as loose:
        raise ToolError(
            f"The tool {name} cannot be loaded: {place} takes {loose} without a name of its own, of which "
            "no form can be made; give each argument a name and a type.",
            ErrorKind.UNAVAILABLE,
        ) from loose
    except Exception as failed:
        raise ToolError(
            f"The tool {name} cannot be loaded: {place} has no usable types: {summarize_exception(failed)}.",
            ErrorKind.UNAVAILABLE,
        ) from failed
    return ToolDescription(inspect.cleandoc(inspect.getdoc(found) or ""), signature.schema), signature


def _call_function(function: Callable[..., Any], arguments: dict[str, Any]) -> ToolMessage:
    found = function(**arguments)
    if inspect.iscoroutine(found):
        found = asyncio.run(found)
    if isinstance(found, str):
        return ToolMessage(found, tool_call_id="call")
    kept = to_jsonable_python(found, fallback=str)
    return ToolMessage(json.dumps(kept, ensure_ascii=False), artifact=kept, tool_call_id="call")


def _call_langchain_tool(found: BaseTool, given: dict[str, Any]) -> ToolMessage:
    call = {"type": "tool_call", "id": "call", "name": found.name, "args": given}
    if isinstance(found, StructuredTool) and found.func is None:
        return _to_tool_message(asyncio.run(found.ainvoke(call)))
    return _to_tool_message(found.invoke(call))


def _to_tool_message(answered: Any) -> ToolMessage:
    return answered if isinstance(answered, ToolMessage) else ToolMessage(str(answered), tool_call_id="call")
