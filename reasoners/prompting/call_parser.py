"""From what a model wrote to a call that a tool takes; what cannot be one is told with how to do it right.

What a reply of the model comes to: calls of tools, an answer, or neither.
"""

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fewshot_library.formats.humaniq_tools import SHOWHOW_TOOL_NAMES, parse_input_line
from tools.arguments import split_ids
from tools.parameter import Parameter
from tools.tool import Tool

_MAX_QUOTED_CHARS = 200
MAX_CALL_CHARS = 6_000
"""Characters of a call's arguments; longer ones leave too little room in the prompts that follow."""
_PLACEHOLDERS = {"text": "...", "number": 1, "whole number": 1, "yes/no": True, "list": ["..."], "json": {}}


class InvalidToolCall(ValueError):
    """What the model wrote is no call that can be run; the message says how to do it right."""


@dataclass(frozen=True, slots=True)
class ParsedToolCall:
    """A tool with arguments that it takes."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """One reply, understood; where it is `refused`, the thought is all that was written."""

    thought: str
    calls: tuple[ParsedToolCall, ...] = ()
    final_answer: str | None = None
    """The answer as it was written, behind `Final Answer:`."""
    skipped_calls: int = 0
    """Calls of the same reply that are not to be run."""
    rejection: str | None = None
    """Why nothing can be done with it, and how to do it right."""


def parse_call(
    name: str, given: Mapping[str, Any] | str | None, question: str, tools: Sequence[Tool]
) -> ParsedToolCall:
    """The call of the tool of that name; `given` is an object, or one line as text prompts have it."""
    tool = _find_tool(name, tools)
    if isinstance(given, str):
        given = _parse_line(tool, given, question)
    return ParsedToolCall(tool.name, _validate_arguments(tool, given or {}))


def _find_tool(name: str, tools: Sequence[Tool]) -> Tool:
    expected_name = SHOWHOW_TOOL_NAMES.get(name, name).casefold()
    match = next((tool for tool in tools if tool.name.casefold() == expected_name), None)
    if match is None:
        names = ", ".join(tool.name for tool in tools)
        raise InvalidToolCall(
            f"There is no tool {_truncate_quote(name)!r}. Use one of these: {names}; or, if you know the answer, "
            "write it behind `Final Answer:`."
        )
    return match


def _parse_line(tool: Tool, line: str, question: str) -> Mapping[str, Any]:
    line = _strip_code_fence(line.strip())
    if not line:
        if any(parameter.required for parameter in tool.parameters):
            raise InvalidToolCall(f"{tool.name} was called without arguments. {format_usage_hint(tool)}")
        return {}
    if line.startswith('{"') or (line.startswith("{") and line.endswith("}")):
        return parse_json_arguments(tool, line)
    given = parse_input_line(tool.name, line, question)
    if given.keys() <= {parameter.name for parameter in tool.parameters}:
        return given
    # A tool that is not the paper's takes a plain line where it needs one argument only.
    needed = [parameter for parameter in tool.parameters if parameter.required] or list(tool.parameters[:1])
    if len(needed) != 1:
        raise InvalidToolCall(f"{tool.name} takes more than a plain line. {format_usage_hint(tool)}")
    return {needed[0].name: line}


def parse_json_arguments(tool: Tool, written: str) -> Mapping[str, Any]:
    """The arguments that were written as a JSON object."""
    try:
        value = json.loads(written)
    except (ValueError, RecursionError):
        raise InvalidToolCall(
            f"The arguments of {tool.name} are no valid JSON: {_truncate_quote(written)}. {format_usage_hint(tool)}"
        ) from None
    if not isinstance(value, dict):
        raise InvalidToolCall(
            f"The arguments of {tool.name} are no JSON object: {_truncate_quote(written)}. {format_usage_hint(tool)}"
        )
    return value


def parse_keyword_call(written: str) -> dict[str, Any] | None:
    """The arguments of a call that is written as in Python, each with its name; None where it is no such call."""
    try:
        call = ast.parse(written, mode="eval").body
        if not isinstance(call, ast.Call) or call.args or not call.keywords:
            return None
        return {str(parameter.arg): ast.literal_eval(parameter.value) for parameter in call.keywords}
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _strip_code_fence(line: str) -> str:
    """The line without the fence that models put round code."""
    first, _, rest = line.partition("\n")
    if first.startswith("```") and rest.rstrip().endswith("```"):
        return rest.rstrip().removesuffix("```").strip()
    return line.strip("`") if line.startswith("`") and line.endswith("`") else line


def _validate_arguments(tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
    known = {parameter.name: parameter for parameter in tool.parameters}
    wrong = [f"it has no argument {_truncate_quote(str(name))!r}" for name in given if name not in known]
    wrong += [
        f"{parameter.name} is missing"
        for parameter in known.values()
        if parameter.required and given.get(parameter.name) is None
    ]
    arguments: dict[str, Any] = {}
    for name, value in given.items():
        if name in known and value is not None:
            try:
                arguments[name] = _coerce_value(known[name], value)
            except ValueError as bad:
                wrong.append(f"{name}: {bad}")
    if not wrong and (long := len(json.dumps(arguments, ensure_ascii=False))) > MAX_CALL_CHARS:
        wrong.append(f"its arguments take {long:,} characters, and there is room for {MAX_CALL_CHARS:,}")
    if wrong:
        raise InvalidToolCall(f"{tool.name} cannot be run: {'; '.join(wrong)}. {format_usage_hint(tool)}")
    return arguments


def _coerce_value(parameter: Parameter, value: Any) -> Any:
    """The value as the argument wants it, where that can be told."""
    if isinstance(value, str):
        return split_ids(value) if (parameter.kind, parameter.item_kind) == ("list", "id") else parameter.parse(value)
    if parameter.kind == "text":
        if isinstance(value, (dict, list, bool)):
            raise ValueError(f"{_truncate_quote(json.dumps(value, ensure_ascii=False))} is no text")
        return str(value)
    if parameter.kind == "list" and not isinstance(value, list):
        raise ValueError(f"{_truncate_quote(json.dumps(value, ensure_ascii=False))} is no list")
    return value


def format_usage_hint(tool: Tool) -> str:
    """How a tool is called, in a sentence."""
    sample = {
        parameter.name: _PLACEHOLDERS.get(parameter.kind, "...") for parameter in tool.parameters if parameter.required
    }
    return f"Call it with {json.dumps(sample)}." if sample else "Call it with {}."


def _truncate_quote(text: str) -> str:
    return text if len(text) <= _MAX_QUOTED_CHARS else f"{text[:_MAX_QUOTED_CHARS]} ..."
