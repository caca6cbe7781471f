"""Loads a LangChain tool, or a function with types and a docstring, that the configuration names as module:attribute.

The signature of a function gives the JSON Schema of its arguments, and checks and converts them for a call.
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
from tools.limits import summarize_exception
from tools.tool import Tool
from worlds.source import ErrorKind

_NAMED_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class UnnamedArgumentsError(Exception):
    """The function has *args, **kwargs or positional-only parameters, which a form cannot show."""


class FunctionSignature:
    """The signature of a function; the constructor raises any error in its types."""

    def __init__(self, function: Callable[..., Any]) -> None:
        parameters = inspect.signature(function).parameters.values()
        if loose := [parameter.name for parameter in parameters if parameter.kind not in _NAMED_KINDS]:
            raise UnnamedArgumentsError(", ".join(loose))
        hints = get_type_hints(function, include_extras=True)
        # Fields get generated names, because pydantic refuses some names, such as those that begin with "_".
        self._fields = {f"argument_{n}": parameter.name for n, parameter in enumerate(parameters)}
        fields: dict[str, Any] = {
            field: _model_field(hints.get(parameter.name, Any), parameter)
            for field, parameter in zip(self._fields, parameters, strict=True)
        }
        self._model: type[BaseModel] = create_model("arguments", **fields)
        self.schema: dict[str, Any] = self._model.model_json_schema()

    def validate_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Check and convert the arguments of a call; ValidationError names the wrong ones."""
        values = self._model.model_validate(dict(arguments))
        return {name: getattr(values, field) for field, name in self._fields.items()}


def _model_field(hint: Any, parameter: inspect.Parameter) -> tuple[Any, Any]:
    notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    if about := next((note for note in notes if isinstance(note, str)), None):
        hint = Annotated[hint, Field(description=about)]
    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    return hint, Field(default, alias=parameter.name)


def load_function(name: str, config: FunctionConfig, folder: Path | None) -> Tool:
    """Load the tool; ToolError says why it cannot be loaded and what to correct."""
    target = _import_target(name, config, folder)
    title = config.title or name.replace("_", " ").replace("-", " ").strip().capitalize()
    registration = ToolRegistration(name, title, config.place, config.limits)
    if isinstance(target, BaseTool):
        return adapt_tool(
            describe_langchain_tool(target, registration),
            registration,
            lambda arguments: _call_langchain_tool(target, arguments),
        )
    about, signature = _describe_function(name, target, config.place)
    return adapt_tool(
        about, registration, lambda arguments: _call_function(target, signature.validate_arguments(arguments))
    )


def _import_target(name: str, config: FunctionConfig, folder: Path | None) -> Any:
    module, _, attribute = config.place.partition(":")
    if folder is not None and str(folder) not in sys.path:
        sys.path.append(str(folder))
    # An external module may raise anything on import, and so may the annotations of a function below.
    try:
        target: Any = importlib.import_module(module)
    except Exception as failed:
        raise ToolError(
            f"The tool {name} cannot be loaded: importing {module} failed with {summarize_exception(failed)}; "
            "correct the module, or its place in the file of tools.",
            ErrorKind.UNAVAILABLE,
        ) from failed
    for part in attribute.split("."):
        if not hasattr(target, part):
            raise ToolError(
                f"The tool {name} cannot be loaded: {module} has no {attribute}; correct its place.",
                ErrorKind.UNAVAILABLE,
            )
        target = getattr(target, part)
    return target


def _describe_function(name: str, target: Any, place: str) -> tuple[ToolDescription, FunctionSignature]:
    if not inspect.isroutine(target):
        raise ToolError(
            f"The tool {name} cannot be loaded: {place} is of type {type(target).__name__}, neither a LangChain tool "
            "nor a function.",
            ErrorKind.UNAVAILABLE,
        )
    if not inspect.getdoc(target):
        raise ToolError(
            f"The tool {name} cannot be loaded: {place} has no docstring to describe it; write one.",
            ErrorKind.UNAVAILABLE,
        )
    try:
        signature = FunctionSignature(target)
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
    return ToolDescription(inspect.cleandoc(inspect.getdoc(target) or ""), signature.schema), signature


def _call_function(function: Callable[..., Any], arguments: dict[str, Any]) -> ToolMessage:
    result = function(**arguments)
    if inspect.iscoroutine(result):
        result = asyncio.run(result)
    if isinstance(result, str):
        return ToolMessage(result, tool_call_id="call")
    value = to_jsonable_python(result, fallback=str)
    return ToolMessage(json.dumps(value, ensure_ascii=False), artifact=value, tool_call_id="call")


def _call_langchain_tool(tool: BaseTool, arguments: dict[str, Any]) -> ToolMessage:
    call = {"type": "tool_call", "id": "call", "name": tool.name, "args": arguments}
    if isinstance(tool, StructuredTool) and tool.func is None:
        return _to_tool_message(asyncio.run(tool.ainvoke(call)))
    return _to_tool_message(tool.invoke(call))


def _to_tool_message(answered: Any) -> ToolMessage:
    return answered if isinstance(answered, ToolMessage) else ToolMessage(str(answered), tool_call_id="call")
