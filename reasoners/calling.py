"""From what a model wrote to a call that a tool takes; what cannot be one is told with how to do it right."""

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fewshot_library.formats.humaniq_tools import OURS, arguments_of
from tools.arguments import split_ids
from tools.parameter import Parameter
from tools.tool import Tool

_LONGEST = 200
LONGEST_CALL = 6_000
"""Characters of a call's arguments; longer ones leave too little room in the prompts that follow."""
_PLACEHOLDERS = {"text": "...", "number": 1, "whole number": 1, "yes/no": True, "list": ["..."], "json": {}}


class NoCall(ValueError):
    """What the model wrote is no call that can be run; the message says how to do it right."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool with arguments that it takes."""

    tool: str
    arguments: dict[str, Any]


def called(name: str, given: Mapping[str, Any] | str | None, question: str, tools: Sequence[Tool]) -> Call:
    """The call of the tool of that name; `given` is an object, or one line as text prompts have it."""
    tool = _tool(name, tools)
    if isinstance(given, str):
        given = _from_line(tool, given, question)
    return Call(tool.name, _checked(tool, given or {}))


def _tool(name: str, tools: Sequence[Tool]) -> Tool:
    wanted = OURS.get(name, name).casefold()
    found = next((tool for tool in tools if tool.name.casefold() == wanted), None)
    if found is None:
        names = ", ".join(tool.name for tool in tools)
        raise NoCall(
            f"There is no tool {_cut(name)!r}. Use one of these: {names}; or, if you know the answer, write it behind "
            "`Final Answer:`."
        )
    return found


def _from_line(tool: Tool, line: str, question: str) -> Mapping[str, Any]:
    line = _unfenced(line.strip())
    if not line:
        if any(each.required for each in tool.parameters):
            raise NoCall(f"{tool.name} was called without arguments. {usage(tool)}")
        return {}
    if line.startswith('{"') or (line.startswith("{") and line.endswith("}")):
        return read_json(tool, line)
    given = arguments_of(tool.name, line, question)
    if given.keys() <= {each.name for each in tool.parameters}:
        return given
    # A tool that is not the paper's takes a plain line where it needs one argument only.
    needed = [each for each in tool.parameters if each.required] or list(tool.parameters[:1])
    if len(needed) != 1:
        raise NoCall(f"{tool.name} takes more than a plain line. {usage(tool)}")
    return {needed[0].name: line}


def read_json(tool: Tool, written: str) -> Mapping[str, Any]:
    """The arguments that were written as a JSON object."""
    try:
        found = json.loads(written)
    except (ValueError, RecursionError):
        raise NoCall(f"The arguments of {tool.name} are no valid JSON: {_cut(written)}. {usage(tool)}") from None
    if not isinstance(found, dict):
        raise NoCall(f"The arguments of {tool.name} are no JSON object: {_cut(written)}. {usage(tool)}")
    return found


def by_keyword(written: str) -> dict[str, Any] | None:
    """The arguments of a call that is written as in Python, each with its name; None where it is no such call."""
    try:
        call = ast.parse(written, mode="eval").body
        if not isinstance(call, ast.Call) or call.args or not call.keywords:
            return None
        return {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _unfenced(line: str) -> str:
    """The line without the fence that models put round code."""
    first, _, rest = line.partition("\n")
    if first.startswith("```") and rest.rstrip().endswith("```"):
        return rest.rstrip().removesuffix("```").strip()
    return line.strip("`") if line.startswith("`") and line.endswith("`") else line


def _checked(tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
    known = {each.name: each for each in tool.parameters}
    wrong = [f"it has no argument {_cut(str(name))!r}" for name in given if name not in known]
    wrong += [f"{each.name} is missing" for each in known.values() if each.required and given.get(each.name) is None]
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name in known and value is not None:
            try:
                found[name] = _value(known[name], value)
            except ValueError as bad:
                wrong.append(f"{name}: {bad}")
    if not wrong and (long := len(json.dumps(found, ensure_ascii=False))) > LONGEST_CALL:
        wrong.append(f"its arguments take {long:,} characters, and there is room for {LONGEST_CALL:,}")
    if wrong:
        raise NoCall(f"{tool.name} cannot be run: {'; '.join(wrong)}. {usage(tool)}")
    return found


def _value(parameter: Parameter, value: Any) -> Any:
    """The value as the argument wants it, where that can be told."""
    if isinstance(value, str):
        return split_ids(value) if (parameter.kind, parameter.item) == ("list", "id") else parameter.read(value)
    if parameter.kind == "text":
        if isinstance(value, (dict, list, bool)):
            raise ValueError(f"{_cut(json.dumps(value, ensure_ascii=False))} is no text")
        return str(value)
    if parameter.kind == "list" and not isinstance(value, list):
        raise ValueError(f"{_cut(json.dumps(value, ensure_ascii=False))} is no list")
    return value


def usage(tool: Tool) -> str:
    """How a tool is called, in a sentence."""
    sample = {each.name: _PLACEHOLDERS.get(each.kind, "...") for each in tool.parameters if each.required}
    return f"Call it with {json.dumps(sample)}." if sample else "Call it with {}."


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
