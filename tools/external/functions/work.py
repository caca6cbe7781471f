"""What a fork does: it imports the tool that an order names, and describes or calls it.

Any exception of the user's code becomes a Failure.
"""

import asyncio
import importlib
import inspect
import json
import os
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import jsonschema.validators  # noqa: F401 - forks check arguments with it, and would each import it
from pydantic import BaseModel, Field, ValidationError, create_model
from pydantic_core import to_jsonable_python

from showhow.tools.arguments import ToolError
from showhow.tools.external.functions.protocol import CallArguments, Failure, Reply, WorkOrder
from showhow.tools.external.output import ToolOutput, sanitize_json
from showhow.tools.external.schema import (
    MAX_DESCRIPTION_CHARACTERS,
    ToolDescription,
    check_arguments,
    check_schema,
)
from showhow.tools.limits import first_exception, to_tool_error
from showhow.worlds.source import ErrorKind

_MAX_EXCEPTION_CHARACTERS = 4_000
_NAMED_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def describe_tool(order: WorkOrder) -> Reply:
    """Import the tool and describe it."""
    heading = f"The tool {order.name} cannot be loaded:"
    try:
        description = _describe_target(order)
    except ToolError as error:
        return Reply(failure=Failure(sentence=str(error), kind=error.kind))
    except UnnamedArgumentsError as error:
        sentence = (
            f"{heading} {order.place} takes {error} without argument names, for which no form can be made; give each "
            "argument a name and a type."
        )
        return Reply(failure=Failure(sentence=sentence, kind=ErrorKind.UNAVAILABLE))
    # Annotations are the user's code and may raise any exception.
    except BaseException as error:  # noqa: BLE001
        sentence = f"{heading} {order.place} has no usable types: {_summarize(error)}."
        return Reply(failure=Failure(sentence=sentence, kind=ErrorKind.UNAVAILABLE))
    if len(description.model_dump_json()) > MAX_DESCRIPTION_CHARACTERS:
        sentence = f"{heading} its description has more than {MAX_DESCRIPTION_CHARACTERS:,} characters; shorten it."
        return Reply(failure=Failure(sentence=sentence, kind=ErrorKind.UNAVAILABLE))
    return Reply(description=description)


def _describe_target(order: WorkOrder) -> ToolDescription:
    target = _import_target(order)
    if _is_langchain_tool(target):
        # Imported by the user's module already.
        from showhow.tools.external.langchain_tool import describe_langchain_tool  # noqa: PLC0415

        return describe_langchain_tool(target, f"The tool {order.name} of {order.place}")
    heading = f"The tool {order.name} cannot be loaded:"
    if not inspect.isroutine(target):
        raise ToolError(
            f"{heading} {order.place} is of type {type(target).__name__}, neither a LangChain tool nor a function.",
            ErrorKind.UNAVAILABLE,
        )
    if not inspect.getdoc(target):
        raise ToolError(f"{heading} {order.place} has no docstring to describe it; write one.", ErrorKind.UNAVAILABLE)
    schema = check_schema(FunctionSignature(target).build_schema(), f"The tool {order.name} of {order.place}")
    return ToolDescription(description=inspect.cleandoc(inspect.getdoc(target) or ""), arguments=schema)


def _import_target(order: WorkOrder) -> Any:
    module, _, attribute = order.place.partition(":")
    heading = f"The tool {order.name} cannot be loaded:"
    # The module may have been written after the process looked into its folder.
    importlib.invalidate_caches()
    try:
        target: Any = importlib.import_module(module)
    # The user's module may raise any exception on import; it becomes the reason why the tool is not available.
    except BaseException as error:
        raise ToolError(
            f"{heading} importing {module} failed with {_summarize(error)}; correct the module, or its place in the "
            "file of tools.",
            ErrorKind.UNAVAILABLE,
        ) from error
    for part in attribute.split("."):
        if not hasattr(target, part):
            raise ToolError(f"{heading} {module} has no {attribute}; correct its place.", ErrorKind.UNAVAILABLE)
        target = getattr(target, part)
    return target


def _is_langchain_tool(target: Any) -> bool:
    tools = sys.modules.get("langchain_core.tools")
    return tools is not None and isinstance(target, tools.BaseTool)


def call_tool(order: WorkOrder, reply: socket.socket) -> Reply:
    """Call the tool with the arguments that come from the socket."""
    try:
        call = CallArguments.model_validate_json(reply.makefile("rb").readline())
        return Reply(output=_shorten(_run_target(order, call), call.characters))
    except ToolError as error:
        return Reply(failure=Failure(sentence=str(error), kind=error.kind))
    except ValidationError as error:
        sentence = str(to_tool_error(order.name, error))[:_MAX_EXCEPTION_CHARACTERS]
        return Reply(failure=Failure(sentence=sentence, kind=ErrorKind.WRONG_ARGUMENTS))
    # The tool may raise any exception, also SystemExit; it becomes the reason of the failed call.
    except BaseException as error:  # noqa: BLE001
        first = first_exception(error)
        if variable := _find_missing_variable(first):
            sentence = (
                f"{order.name} reads the environment variable {variable}, which it does not have; an administrator "
                "names it under `environment` of its entry in tools.toml, and sets it where Showhow is started."
            )
            return Reply(failure=Failure(sentence=sentence, kind=ErrorKind.UNAVAILABLE))
        exception = _summarize(error)
        is_denied = isinstance(first, PermissionError)
        is_cut = len(exception) >= _MAX_EXCEPTION_CHARACTERS
        return Reply(failure=Failure(exception=exception, is_cut=is_cut, is_denied=is_denied))


def _find_missing_variable(error: BaseException) -> str:
    """The variable that the tool read from `os.environ`, which has it not; empty if it failed otherwise."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    is_of_environment = isinstance(error, KeyError) and frames[-1].f_globals.get("__name__") == os.__name__
    return str(error.args[0])[:_MAX_EXCEPTION_CHARACTERS] if is_of_environment else ""


def _run_target(order: WorkOrder, call: CallArguments) -> ToolOutput:
    target = _import_target(order)
    check_arguments(order.name, call.argument_schema, call.arguments)
    if _is_langchain_tool(target):
        from showhow.tools.external.langchain_tool import call_langchain_tool  # noqa: PLC0415 - as above

        return call_langchain_tool(target, call.arguments)
    result = target(**FunctionSignature(target).validate_arguments(call.arguments))
    if inspect.iscoroutine(result):
        result = asyncio.run(result)
    if isinstance(result, str):
        return ToolOutput(text=sanitize_json(result))
    value = sanitize_json(to_jsonable_python(result, fallback=str))
    return ToolOutput(text=json.dumps(value, ensure_ascii=False), structured=value)


def _shorten(output: ToolOutput, characters: int) -> ToolOutput:
    """The output with at most that many characters of text, and of structured content."""
    is_long = output.structured is not None and len(json.dumps(output.structured)) > 2 * characters
    return output.model_copy(
        update={
            "text": output.text[:characters],
            "omitted": max(0, len(output.text) - characters),
            "structured": None if is_long else output.structured,
            "is_cut": is_long,
        }
    )


def _summarize(error: BaseException) -> str:
    """The type of an exception and the start of its message, in one line; Showhow removes secrets and shortens it."""
    error = first_exception(error)
    try:
        message = sanitize_json(
            " ".join(str(error)[: 2 * _MAX_EXCEPTION_CHARACTERS].split())[:_MAX_EXCEPTION_CHARACTERS]
        )
    # __str__ of an exception of the user's code may raise any exception itself; the type alone is then reported.
    except BaseException:  # noqa: BLE001
        message = ""
    name = type(error).__name__[:_MAX_EXCEPTION_CHARACTERS]
    return f"{name}: {message}" if message else name


class UnnamedArgumentsError(Exception):
    """The function has *args, **kwargs or positional-only parameters, which a form cannot show."""


class FunctionSignature:
    """The signature of a function; the constructor raises any exception of its annotations."""

    def __init__(self, function: Callable[..., Any]) -> None:
        parameters = inspect.signature(function).parameters.values()
        if unnamed := [parameter.name for parameter in parameters if parameter.kind not in _NAMED_KINDS]:
            raise UnnamedArgumentsError(", ".join(unnamed))
        hints = get_type_hints(function, include_extras=True)
        # Fields have generated names, because pydantic refuses some names, such as those that begin with "_".
        self._fields = {f"argument_{n}": parameter.name for n, parameter in enumerate(parameters)}
        fields: dict[str, Any] = {
            field: _model_field(hints.get(parameter.name, Any), parameter)
            for field, parameter in zip(self._fields, parameters, strict=True)
        }
        self._model: type[BaseModel] = create_model("arguments", **fields)

    def build_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments; raises any exception of their types."""
        return self._model.model_json_schema()

    def validate_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Validate and convert the arguments of a call; ValidationError names the wrong ones."""
        values = self._model.model_validate(dict(arguments))
        return {name: getattr(values, field) for field, name in self._fields.items()}


def _model_field(hint: Any, parameter: inspect.Parameter) -> tuple[Any, Any]:
    annotations = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    if description := next((text for text in annotations if isinstance(text, str)), None):
        hint = Annotated[hint, Field(description=description)]
    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    return hint, Field(default, alias=parameter.name)
