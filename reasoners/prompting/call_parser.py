"""Parses tool calls of a model and validates their arguments; ParsedReply is the result of parsing a whole reply.

A call that is not valid raises InvalidToolCall, whose message tells the model how to call the tool.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from showhow.fewshot_library.formats.humaniq_record import parse_input_line, strip_code_fence
from showhow.fewshot_library.humaniq_names import SHOWHOW_TOOL_NAMES
from showhow.reasoners.prompting.tool_declarations import Finish, take_thought
from showhow.tools.arguments import Parameter, split_ids
from showhow.tools.tool import Tool

_MAX_QUOTED_CHARS = 200
MAX_CALL_CHARS = 6_000
"""The limit of a call's arguments in characters; longer ones leave too little room in later prompts."""
_PLACEHOLDERS = {"text": "...", "number": 1, "whole number": 1, "yes/no": True, "list": ["..."], "json": {}}


class InvalidToolCall(ValueError):
    """The text is not a valid tool call; the message says how to call the tool."""


@dataclass(frozen=True, slots=True)
class ParsedToolCall:
    """A tool call with valid arguments."""

    tool: str
    arguments: dict[str, Any]
    thought: str = ""
    """The thought that came as an argument; it is not among the arguments."""


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """A parsed reply: tool calls, a final answer (as text or as a call of finish), or a rejection.

    If it was rejected, `thought` is the whole text of the reply.
    """

    thought: str
    """The thought beside the calls; a call may have its own."""
    calls: tuple[ParsedToolCall, ...] = ()
    final_answer: str | None = None
    """The text after `Final Answer:`, unchanged."""
    finish: Finish | None = None
    notice: str | None = None
    """Which calls of the reply are not run, and how to go on."""
    rejection: str | None = None
    """Why the reply is not valid, and how the model should go on."""

    @property
    def ends_run(self) -> bool:
        """Whether it answers the question."""
        return self.final_answer is not None or self.finish is not None


def parse_call(
    name: str, arguments: Mapping[str, Any] | str | None, question: str, tools: Sequence[Tool]
) -> ParsedToolCall:
    """Parse a call of the named tool; `arguments` is a JSON object, or the input line of a text prompt.

    Raises InvalidToolCall for an unknown tool and for arguments that the tool does not accept.
    """
    tool = _find_tool(name, tools)
    if isinstance(arguments, str):
        arguments = _parse_line(tool, arguments, question)
    thought, own_arguments = take_thought(arguments or {}, [parameter.name for parameter in tool.parameters])
    return ParsedToolCall(tool.name, _validate_arguments(tool, own_arguments), thought)


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
    line = strip_code_fence(line.strip())
    if not line:
        if any(parameter.required for parameter in tool.parameters):
            raise InvalidToolCall(f"{tool.name} was called without arguments. {format_usage_hint(tool)}")
        return {}
    if line.startswith('{"') or (line.startswith("{") and line.endswith("}")):
        return parse_json_arguments(tool, line)
    arguments = parse_input_line(tool.name, line, question)
    if arguments.keys() <= {parameter.name for parameter in tool.parameters}:
        return arguments
    # A tool that is not one of the paper's accepts a plain line if it needs only one argument.
    required = [parameter for parameter in tool.parameters if parameter.required] or list(tool.parameters[:1])
    if len(required) != 1:
        raise InvalidToolCall(f"{tool.name} takes more than a plain line. {format_usage_hint(tool)}")
    return {required[0].name: line}


def parse_json_arguments(tool: Tool, text: str) -> Mapping[str, Any]:
    """Parse arguments written as a JSON object; InvalidToolCall if they are none."""
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidToolCall(
            f"The arguments of {tool.name} are no valid JSON: {_truncate_quote(text)}. {format_usage_hint(tool)}"
        ) from None
    if not isinstance(arguments, dict):
        raise InvalidToolCall(
            f"The arguments of {tool.name} are no JSON object: {_truncate_quote(text)}. {format_usage_hint(tool)}"
        )
    return arguments


def _validate_arguments(tool: Tool, raw_arguments: Mapping[str, Any]) -> dict[str, Any]:
    parameters = {parameter.name: parameter for parameter in tool.parameters}
    problems = [
        f"it has no argument {_truncate_quote(str(name))!r}" for name in raw_arguments if name not in parameters
    ]
    problems += [
        f"{parameter.name} is missing"
        for parameter in parameters.values()
        if parameter.required and raw_arguments.get(parameter.name) is None
    ]
    arguments: dict[str, Any] = {}
    for name, value in raw_arguments.items():
        if name in parameters and value is not None:
            try:
                arguments[name] = _coerce_value(parameters[name], value)
            except ValueError as error:
                problems.append(f"{name}: {error}")
    if not problems and (length := len(json.dumps(arguments, ensure_ascii=False))) > MAX_CALL_CHARS:
        problems.append(f"its arguments take {length:,} characters, and there is room for {MAX_CALL_CHARS:,}")
    if problems:
        raise InvalidToolCall(f"{tool.name} cannot be run: {'; '.join(problems)}. {format_usage_hint(tool)}")
    return arguments


def _coerce_value(parameter: Parameter, value: Any) -> Any:
    """Convert the value to the parameter's type; ValueError if that is not possible."""
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
    """A sentence with a sample of the tool's arguments."""
    sample = {
        parameter.name: _PLACEHOLDERS.get(parameter.kind, "...") for parameter in tool.parameters if parameter.required
    }
    return f"Call it with {json.dumps(sample)}." if sample else "Call it with {}."


def _truncate_quote(text: str) -> str:
    return text if len(text) <= _MAX_QUOTED_CHARS else f"{text[:_MAX_QUOTED_CHARS]} ..."
