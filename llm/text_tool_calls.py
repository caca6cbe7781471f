"""Reads tool calls that a server left in the text of a reply, since it does not parse the model's own notation.

Known notations: JSON in <tool_call> tags (Hermes, Qwen), <function=...> and <invoke ...> with parameter tags, harmony
(gpt-oss), [TOOL_CALLS] (Mistral), <|python_tag|> and bare JSON (Llama), and calls with the prefix `functions.`.
"""

import itertools
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

_HARMONY_MESSAGE = re.compile(
    r"(?:<\|start\|>)?(?:assistant)?(?P<to>[^<]*)<\|channel\|>(?P<channel>\w+)(?P<header>[^<]*)"
    r"(?:<\|constrain\|>[^<]*)?<\|message\|>(?P<text>.*?)"
    r"(?=<\|(?:start|channel)\|>|<\|(?:end|call|return)\|>|\Z)(?:<\|(?:end|call|return)\|>)?",
    re.DOTALL,
)
_RECIPIENT = re.compile(r"\bto=(\S+)")
_XML_CALL = re.compile(
    r"<(?:function=|invoke name=)[\"']?(?P<name>[\w.:-]+)[\"']?\s*>(?P<body>.*?)(?:</(?:function|invoke)>|\Z)",
    re.DOTALL,
)
_XML_PARAMETER = re.compile(
    r"<parameter(?:=| name=)[\"']?(?P<name>[\w.-]+)[\"']?\s*>(?P<value>.*?)</parameter>", re.DOTALL
)
_MARKER = re.compile(
    r"</?(?:tool_calls?|function_calls?|tools?)>|<\|python_tag\|>|\[/?TOOL_CALLS\]|\[ARGS\]|<\|tool_calls?_\w+\|>"
    r"|<[|｜]tool▁[^>]*>|<\|(?:eom_id|eot_id|im_end)\|>",
    re.IGNORECASE,
)
_NAME_BEFORE_ARGUMENTS = re.compile(r"(?<![\w.-])(?P<name>[A-Za-z][\w.-]*)(?::\d+)?\s*(?:```(?:json)?\s*)?\(?\s*\Z")
_SEPARATORS = re.compile(r"```\w*|[\s;,)]")
_NAME_FIELDS = ("name", "tool_name", "tool", "function", "recipient_name")
_ARGUMENT_FIELDS = ("arguments", "parameters", "args", "input", "tool_input")
_NESTED_FIELDS = ("tool_calls", "tool_uses", "calls", "tool_call", "function_call", "function")
_MAX_JSON_ATTEMPTS = 200


@dataclass(frozen=True, slots=True)
class TextToolCall:
    """A tool call found in a text; `arguments` is the raw text if it is not a JSON object."""

    name: str
    arguments: dict[str, Any] | str


@dataclass(frozen=True, slots=True)
class TextReply:
    """A text without the tool calls and the thoughts that it contained."""

    text: str
    calls: tuple[TextToolCall, ...] = ()
    thoughts: str = ""


def match_tool_name(name: str, tools: Collection[str]) -> str:
    """The name of the offered tool that is meant, such as `read` for `functions.read:0`; other names are unchanged."""
    shortened = re.sub(r":\d+\Z", "", name.strip())
    candidates = (name, shortened, shortened.rpartition(".")[2])
    return next((candidate for candidate in candidates if candidate in tools), name)


def parse_text_reply(text: str, tools: Collection[str]) -> TextReply:
    """Read the calls of these tools, and harmony's channels, from a text; bare JSON is a call only at its end."""
    if "<|channel|>" in text:
        return _parse_harmony(text, tools)
    if not tools:
        return TextReply(text)
    for parse in (_parse_xml_calls, _parse_json_calls):
        rest, calls = parse(text, tools)
        if calls:
            return TextReply(rest.strip(), tuple(calls))
    return TextReply(text)


def _parse_harmony(text: str, tools: Collection[str]) -> TextReply:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[TextToolCall] = []
    start = _HARMONY_MESSAGE.search(text)
    if start is not None and text[: start.start()].strip():
        texts.append(text[: start.start()].strip())
    for message in _HARMONY_MESSAGE.finditer(text):
        recipient = _RECIPIENT.search(f"{message['to']} {message['header']}")
        content = message["text"].strip()
        if recipient is not None:
            arguments, _ = _decode_json(content)
            calls.append(
                TextToolCall(
                    match_tool_name(recipient[1], tools), arguments if isinstance(arguments, dict) else content
                )
            )
        else:
            (thoughts if message["channel"] == "analysis" else texts).append(content)
    return TextReply("\n".join(texts), tuple(calls), "\n".join(thoughts))


def _parse_xml_calls(text: str, tools: Collection[str]) -> tuple[str, list[TextToolCall]]:
    calls = []
    for match in _XML_CALL.finditer(text):
        arguments: Any = {
            parameter["name"]: parameter["value"].strip() for parameter in _XML_PARAMETER.finditer(match["body"])
        }
        if not arguments and match["body"].strip():
            value, _ = _decode_json(match["body"].strip())
            arguments = value if isinstance(value, dict) else match["body"].strip()
        calls.append(TextToolCall(match_tool_name(match["name"], tools), arguments))
    return _MARKER.sub("", _XML_CALL.sub("", text)), calls


def _parse_json_calls(text: str, tools: Collection[str]) -> tuple[str, list[TextToolCall]]:
    """Read calls in JSON: those after a marker, or those at the end of the text."""
    marker = _MARKER.search(text)
    # Blanks keep the positions.
    plain = _MARKER.sub(lambda match: " " * len(match[0]), text)
    spans = list(_find_json_calls(plain, tools, accept_others=marker is not None))
    if marker is not None:
        marked = [span for span in spans if span.start >= marker.start()]
        return text[: marker.start()], [call for span in marked for call in span.calls]
    end, calls = len(plain), list[TextToolCall]()
    for span in reversed(spans):
        if _SEPARATORS.sub("", plain[span.end : end]):
            break
        end, calls = span.start, [*span.calls, *calls]
    return re.sub(r"```\w*\s*\Z", "", text[:end]), calls


@dataclass(frozen=True, slots=True)
class _CallSpan:
    """Calls and where they stand in the text."""

    start: int
    end: int
    calls: list[TextToolCall]


def _find_json_calls(text: str, tools: Collection[str], *, accept_others: bool) -> Iterator[_CallSpan]:
    end = 0
    for opening in itertools.islice(re.finditer(r"[\[{]", text), _MAX_JSON_ATTEMPTS):
        if opening.start() < end:
            continue
        value, length = _decode_json(text[opening.start() :])
        calls, start = _to_calls(value, tools, accept_others=accept_others), opening.start()
        before = _NAME_BEFORE_ARGUMENTS.search(text, end, opening.start())
        if not calls and before is not None and isinstance(value, dict):
            name = match_tool_name(before["name"], tools)
            calls, start = [TextToolCall(name, value)] if name in tools else [], before.start()
        if calls:
            end = opening.start() + length
            yield _CallSpan(start, end, calls)


def _to_calls(value: Any, tools: Collection[str], *, accept_others: bool) -> list[TextToolCall]:
    """The calls that a JSON value stands for; empty if it is anything else."""
    if isinstance(value, list):
        calls = [_to_calls(item, tools, accept_others=accept_others) for item in value]
        return [call for item_calls in calls for call in item_calls] if all(calls) else []
    if not isinstance(value, dict):
        return []
    nested = next((value[field] for field in _NESTED_FIELDS if isinstance(value.get(field), dict | list)), None)
    if nested is not None:
        return _to_calls(nested, tools, accept_others=accept_others)
    name = next((value[field] for field in _NAME_FIELDS if isinstance(value.get(field), str)), None)
    field = next((field for field in _ARGUMENT_FIELDS if field in value), None)
    if name is None or field is None:
        return []
    name, arguments = match_tool_name(name, tools), value[field]
    if name not in tools and not accept_others:
        return []
    if isinstance(arguments, str):
        decoded, _ = _decode_json(arguments)
        arguments = decoded if isinstance(decoded, dict) else arguments
    return [TextToolCall(name, arguments if isinstance(arguments, dict | str) else {})]


def _decode_json(text: str) -> tuple[Any, int]:
    """The JSON value at the start of the text and its length; None and 0 if there is none."""
    try:
        value, length = json.JSONDecoder(strict=False).raw_decode(text)
    except (ValueError, RecursionError):
        return None, 0
    return value, length
