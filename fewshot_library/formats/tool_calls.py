"""Reads the tool calls beside a message's content, and the definitions of tools."""

import json
from typing import Any

from showhow.db.types import UnstorableValue, check_storable_json
from showhow.fewshot_library.formats.chat import MessageToolCall, TraceMessage
from showhow.fewshot_library.formats.content_parts import read_arguments
from showhow.fewshot_library.formats.humaniq_record import strip_code_fence
from showhow.guard.json_input import load_json

_CALL_FIELDS = ("name", "function", "arguments", "args", "input", "id", "type", "error")


def add_calls(message: TraceMessage, raw_calls: list[Any], place: str) -> None:
    """Add the calls to the message, in the forms of OpenAI and LangChain; one that is malformed keeps its text."""
    extras: list[dict[str, Any]] = []
    for number, raw in enumerate(raw_calls, start=1):
        call = raw if isinstance(raw, dict) else {}
        # OpenAI nests the function, or the tool that takes a text, under its kind.
        kind = next((name for name in ("function", "custom") if isinstance(call.get(name), dict)), None)
        function = call if kind is None else call[kind]
        # Inspect's calls have the name in place of the function.
        name = function.get("name", function.get("function"))
        if not isinstance(name, str):
            message.remarks.append(f"{place}, call {number}, names no tool, and was kept but not read")
            extras.append(call or {"call": raw})
            continue
        written = next((function[field] for field in ("arguments", "args", "input") if field in function), None)
        if isinstance(written, dict):
            written = without_nulls(written) if kind is not None else written
        elif isinstance(written, str) and kind != "custom":
            written = strip_code_fence(written)
        arguments, problem = ({"input": written}, "") if kind == "custom" else read_arguments(written)
        try:
            check_storable_json(arguments)
        except UnstorableValue as error:
            # In the JSON text, such a character is escaped.
            text = written if isinstance(written, str) else json.dumps(written)
            arguments, problem = {"input": text}, f"its arguments cannot be stored ({error}), and were kept as a text"
        if call.get("type") == "invalid_tool_call":
            problem = str(call.get("error") or problem or "the model's call is not valid")
        call_id = "" if call.get("id") is None else str(call["id"])
        message.calls.append(MessageToolCall(call_id, name, arguments, problem))
        inner = {} if kind is None else {key: value for key, value in function.items() if key not in _CALL_FIELDS}
        rest = {key: value for key, value in call.items() if key not in (*_CALL_FIELDS, kind)}
        extras.append({key: value for key, value in (rest | inner).items() if value not in (None, "", [], {})})
    if any(extras):
        message.rest["tool_calls"] = extras


def without_nulls(value: Any) -> Any:
    """The value without null fields: tables store objects with different fields as one type with all of them."""
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


def read_tools(raw: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """The tool definitions from a list of objects or JSON texts, and remarks on those that cannot be read."""
    tools: list[dict[str, Any]] = []
    remarks: list[str] = []
    declared = [
        inner
        for value in as_list(raw)
        for inner in (as_list(_declarations(value)) if isinstance(value, dict) and _declarations(value) else [value])
    ]
    for number, value in enumerate(declared, start=1):
        tool = without_nulls(load_json_text(value) if isinstance(value, str) else value)
        match tool:
            case {"function": {"name": str()}}:
                tools.append(tool)
            case {"name": str()}:
                # Other interfaces do not nest the function.
                function = {name: field for name, field in tool.items() if name not in ("type", "input_schema")}
                schema = {"parameters": tool["input_schema"]} if "input_schema" in tool else {}
                tools.append({"type": "function", "function": function | schema})
            case _:
                remarks.append(f"the definition of tool {number} names no function, and was left out")
    return tools, remarks


def _declarations(value: dict[str, Any]) -> Any:
    """The definitions that Gemini's interface has in one tool."""
    return value.get("functionDeclarations") or value.get("function_declarations")


def as_list(value: Any) -> list[Any]:
    """The list, or one with the value as its only element; empty for an empty value."""
    return value if isinstance(value, list) else [value] if value else []


def load_json_text(text: str) -> Any:
    """Parse a JSON text; a text that is not JSON is returned unchanged."""
    try:
        return load_json(text)
    except ValueError:
        return text
