"""A LangChain tool, or a function with types and a docstring, that a configuration names by its place."""

import asyncio
import importlib
import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from pydantic_core import to_jsonable_python

from tools.foreign.adopt import Described, Terms, adopt, described
from tools.foreign.declared import DeclaredFunction
from tools.foreign.signature import Loose, Signature
from tools.limits import reason
from tools.tool import Tool
from tools.tool_error import ToolError


def load_function(name: str, declared: DeclaredFunction, folder: Path | None) -> Tool:
    """The tool under that name; a ToolError that says why it cannot be loaded and what to correct."""
    found = _found(name, declared, folder)
    title = declared.title or name.replace("_", " ").replace("-", " ").strip().capitalize()
    terms = Terms(name, title, declared.place, declared.limits)
    if isinstance(found, BaseTool):
        return adopt(described(found, terms), terms, lambda given: _called(found, given))
    about, signature = _described(name, found, declared.place)
    return adopt(about, terms, lambda given: _message_of(found, signature.bound(given)))


def _found(name: str, declared: DeclaredFunction, folder: Path | None) -> Any:
    module, _, attribute = declared.place.partition(":")
    if folder is not None and str(folder) not in sys.path:
        sys.path.append(str(folder))
    # A foreign module may raise anything while it is imported, and so may the annotations of a function below.
    try:
        found: Any = importlib.import_module(module)
    except Exception as failed:
        raise ToolError(
            f"The tool {name} cannot be loaded: importing {module} failed with {reason(failed)}; correct the module, "
            "or its place in the file of tools."
        ) from failed
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ToolError(f"The tool {name} cannot be loaded: {module} has no {attribute}; correct its place.")
        found = getattr(found, part)
    return found


def _described(name: str, found: Any, place: str) -> tuple[Described, Signature]:
    if not inspect.isroutine(found):
        raise ToolError(
            f"The tool {name} cannot be loaded: {place} is of type {type(found).__name__}, neither a LangChain tool "
            "nor a function."
        )
    if not inspect.getdoc(found):
        raise ToolError(f"The tool {name} cannot be loaded: {place} has no docstring to describe it; write one.")
    try:
        signature = Signature(found)
    except Loose as loose:
        raise ToolError(
            f"The tool {name} cannot be loaded: {place} takes {loose} without a name of its own, of which "
            "no form can be made; give each argument a name and a type."
        ) from loose
    except Exception as failed:
        raise ToolError(f"The tool {name} cannot be loaded: {place} has no usable types: {reason(failed)}.") from failed
    return Described(inspect.cleandoc(inspect.getdoc(found) or ""), signature.schema), signature


def _message_of(function: Callable[..., Any], arguments: dict[str, Any]) -> ToolMessage:
    found = function(**arguments)
    if inspect.iscoroutine(found):
        found = asyncio.run(found)
    if isinstance(found, str):
        return ToolMessage(found, tool_call_id="call")
    kept = to_jsonable_python(found, fallback=str)
    return ToolMessage(json.dumps(kept, ensure_ascii=False), artifact=kept, tool_call_id="call")


def _called(found: BaseTool, given: dict[str, Any]) -> ToolMessage:
    call = {"type": "tool_call", "id": "call", "name": found.name, "args": given}
    if isinstance(found, StructuredTool) and found.func is None:
        return _message(asyncio.run(found.ainvoke(call)))
    return _message(found.invoke(call))


def _message(answered: Any) -> ToolMessage:
    return answered if isinstance(answered, ToolMessage) else ToolMessage(str(answered), tool_call_id="call")
