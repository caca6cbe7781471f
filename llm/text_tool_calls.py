"""Reads tool calls that a server left in the text of a reply, since it does not parse the model's own notation.

Known notations: JSON in <tool_call> tags (Hermes, Qwen), <arg_key> tags (GLM), <function=...> and <invoke ...> with
parameter tags, harmony (gpt-oss), [TOOL_CALLS] (Mistral), <|python_tag|> and bare JSON (Llama 3), a Python list of
calls (Llama 4, Olmo), and calls with the prefix `functions.`. TextCallFilter keeps them out of streamed text.
"""

import ast
import itertools
import json
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from showhow.guard.json_input import check_json, load_python_literal

_HARMONY_MESSAGE = re.compile(
    r"(?:<\|start\|>)?(?:assistant)?(?P<to>[^<]*+)<\|channel\|>(?P<channel>\w++)(?P<header>[^<]*+)"
    r"(?:<\|constrain\|>[^<]*+)?<\|message\|>(?P<text>.*?)"
    r"(?=<\|(?:start|channel)\|>|<\|(?:end|call|return)\|>|\Z)(?:<\|(?:end|call|return)\|>)?",
    re.DOTALL,
)
_CHANNEL = "<|channel|>"
_RECIPIENT = re.compile(r"\bto=(\S+)")
_XML_CALL = re.compile(
    r"<(?:function=|invoke name=)[\"']?(?P<name>[\w.:-]+)[\"']?\s*>(?P<body>.*?)(?:</(?:function|invoke)>|\Z)",
    re.DOTALL,
)
_XML_PARAMETER = re.compile(
    r"<parameter(?:=| name=)[\"']?(?P<name>[\w.-]+)[\"']?\s*>(?P<value>.*?)</parameter>", re.DOTALL
)
_TAGGED_CALL = re.compile(
    r"<tool_call>\s*(?P<name>[\w.:-]+)\s*"
    r"(?P<body>(?:<arg_key>(?:(?!<tool_call>|</arg_value>).)*+</arg_value>\s*+)++)(?:</tool_call>|\Z)",
    re.DOTALL,
)
_TAGGED_PARAMETER = re.compile(
    r"<arg_key>\s*(?P<name>[\w.-]+)\s*</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>", re.DOTALL
)
_PYTHON_CALLS = re.compile(r"\[\s*(?P<name>[A-Za-z_][\w.]*)\(")
_MARKER = re.compile(
    r"</?(?:\w+:)?(?:tool_calls?|function_calls?|tools?)>|<\|python_(?:tag|start|end)\|>|\[/?TOOL_CALLS\]|\[ARGS\]"
    r"|<\|tool_calls?(?:_\w+)?\|>|<[|｜]tool▁[^<>]*>|<\|(?:eom_id|eot_id|im_end)\|>",
    re.IGNORECASE,
)
_NAME_BEFORE_ARGUMENTS = re.compile(
    r"(?<![\w.-])(?P<name>[A-Za-z][\w.-]*+)(?::\d++)?\s*+(?:```(?:json)?\s*+)?\(?\s*+\Z"
)
_SEPARATORS = re.compile(r"```\w*|[\s;,)]")
_NAME_FIELDS = ("name", "tool_name", "tool", "function", "recipient_name", "action")
_ARGUMENT_FIELDS = ("arguments", "parameters", "args", "input", "tool_input", "action_input")
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
    if _CHANNEL in text:
        return _parse_harmony(text, tools)
    if not tools:
        return TextReply(text)
    for parse in (_parse_xml_calls, _parse_json_calls, _parse_python_calls):
        rest, calls = parse(text, tools)
        if calls:
            return TextReply(rest.strip(), tuple(calls))
    return TextReply(text)


def parse_marked_reply(text: str) -> TextReply:
    """Read the calls that marks set off from a text, of whatever tools."""
    if _CHANNEL in text:
        return _parse_harmony(text, ())
    if _XML_CALL.search(text) or _MARKER.search(text):
        for parse in (_parse_xml_calls, _parse_json_calls):
            rest, calls = parse(text, ())
            if calls:
                return TextReply(rest.strip(), tuple(calls))
    return TextReply(text)


def parse_json_call(text: str) -> TextToolCall | None:
    """The call that the whole of a text is in JSON, of whatever tool; None if it is anything else."""
    value, length = _decode_json(text)
    calls = _to_calls(value, (), accept_others=True) if length and not text[length:].strip() else []
    return calls[0] if len(calls) == 1 else None


def _parse_harmony(text: str, tools: Collection[str]) -> TextReply:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[TextToolCall] = []
    messages = list(_find_harmony_messages(text))
    if messages and text[: messages[0].start()].strip():
        texts.append(text[: messages[0].start()].strip())
    for message in messages:
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


def _find_harmony_messages(text: str) -> Iterator[re.Match[str]]:
    """The messages, each from what stands before its channel: the tag that starts it, or the end of another tag."""
    position = 0
    while (channel := text.find(_CHANNEL, position)) >= 0:
        before = text.rfind("<", position, channel)
        start = before if text.startswith("<|start|>", before) and before >= 0 else max(position, before + 1)
        message = _HARMONY_MESSAGE.match(text, start)
        if message is not None:
            yield message
        position = message.end() if message is not None else channel + len(_CHANNEL)


def _parse_xml_calls(text: str, tools: Collection[str]) -> tuple[str, list[TextToolCall]]:
    call, parameter, closing = _XML_CALL, _XML_PARAMETER, "</parameter>"
    if not _XML_CALL.search(text):
        call, parameter, closing = _TAGGED_CALL, _TAGGED_PARAMETER, "</arg_value>"
    calls = []
    for match in call.finditer(text):
        # Nothing after the last end of a value is one, so that no beginning is followed to the end of the text in vain.
        values = parameter.finditer(match["body"], 0, match["body"].rfind(closing) + len(closing))
        arguments: Any = {argument["name"]: argument["value"].strip() for argument in values}
        if not arguments and match["body"].strip():
            value, _ = _decode_json(match["body"].strip())
            arguments = value if isinstance(value, dict) else match["body"].strip()
        calls.append(TextToolCall(match_tool_name(match["name"], tools), arguments))
    return _MARKER.sub("", call.sub("", text)), calls


def _parse_python_calls(text: str, tools: Collection[str]) -> tuple[str, list[TextToolCall]]:
    """Read a list of calls with named arguments at the end of the text."""
    plain = _MARKER.sub(lambda match: " " * len(match[0]), text)
    for opening in itertools.islice(_PYTHON_CALLS.finditer(plain), _MAX_JSON_ATTEMPTS):
        if match_tool_name(opening["name"], tools) not in tools:
            continue
        try:
            calls = [_to_python_call(node, tools) for node in _list_elements(plain[opening.start() :].strip())]
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        marker = _MARKER.search(text, 0, opening.start())
        return text[: marker.start() if marker else opening.start()], calls
    return text, []


def _list_elements(source: str) -> list[ast.expr]:
    """The elements of a list in Python; ValueError or SyntaxError if the text is none."""
    body = ast.parse(source, mode="eval").body
    if not isinstance(body, ast.List):
        raise ValueError("no list")  # noqa: TRY004 - the text is wrong, not a type
    return body.elts


_JSON_NAMES = {"true": True, "false": False, "null": None}


def _to_python_call(node: ast.expr, tools: Collection[str]) -> TextToolCall:
    """The call of an offered tool that an expression stands for; ValueError if it is anything else."""
    name = match_tool_name(ast.unparse(node.func), tools) if isinstance(node, ast.Call) else ""
    if not isinstance(node, ast.Call) or name not in tools or node.args:
        raise ValueError("no call of a tool with named arguments")
    arguments: dict[str, Any] = {}
    for keyword in node.keywords:
        value = keyword.value
        is_json_name = isinstance(value, ast.Name) and value.id in _JSON_NAMES
        arguments[str(keyword.arg)] = _JSON_NAMES[value.id] if is_json_name else load_python_literal(value)  # type: ignore[attr-defined]
    return TextToolCall(name, arguments)


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
        check_json(text[:length])
    except (ValueError, RecursionError):
        return None, 0
    return value, length


_OPENERS = (
    *("<tool_call", "</tool_call", "<function_call", "</function_call", "<tools>", "</tools>", "<minimax:tool_call"),
    *(
        "<function=",
        "<invoke name=",
        "<|python_",
        "<|tool_call",
        "<｜tool▁",
        "<|tool▁",
        "[tool_calls]",
        "[/tool_calls]",
    ),
    *("[args]", "<|eom_id|>", "<|eot_id|>", "<|im_end|>", "<|channel|>", "<|start|>"),
)
"""The beginnings of the notations above, in lower case."""
_LONGEST_OPENER = max(map(len, _OPENERS))
_POSSIBLE_START = re.compile(r"[{\[<`]|(?<![\w.-])[A-Za-z][\w.-]*")
_ARGUMENTS_AFTER_NAME = re.compile(r"(?::\d*)?\s*(?:```(?:json)?\s*|`{1,2}\Z)?\(?\s*")
_PARTIAL_FENCE = re.compile(r"`{1,2}\Z")
_NAMESPACES = ("functions.", "default_api.", "tools.")
_JSON_WORDS = ("true", "false", "null", "-Infinity", "NaN")
_INCOMPLETE, _NO_CALL = -1, -2


class TextCallFilter:
    """Emits streamed text as soon as it is certain not to belong to a tool call that is written as text.

    Without declared tools only marked calls are held back, since models write those in any format.
    """

    def __init__(self, on_text: Callable[[str], None], tools: Collection[str]) -> None:
        self._on_text = on_text
        self._tools = tools
        self._text = ""
        self._emitted_length = 0

    @property
    def has_emitted(self) -> bool:
        """Whether any text was emitted."""
        return self._emitted_length > 0

    def feed(self, piece: str) -> None:
        """Add the next piece of the reply."""
        self._text += piece
        end = self._find_possible_call()
        if end > self._emitted_length:
            start, self._emitted_length = self._emitted_length, end
            self._on_text(self._text[start:end])

    def finish(self, text: str) -> None:
        """Emit what is left of the reply's text, which has no calls; a call that was cut off is not emitted."""
        emitted = self._text[: self._emitted_length]
        emitted = emitted if text.startswith(emitted) else emitted.strip()
        if not text.startswith(emitted):
            return
        self._text, self._emitted_length = text, len(emitted)
        end = self._find_possible_call()
        # A word that might go on as a tool's name does not.
        end = end if text[end : end + 1] in ("<", "{", "[", "`") else len(text)
        if end > len(emitted):
            self._emitted_length = end
            self._on_text(text[len(emitted) : end])

    def _find_possible_call(self) -> int:
        """Where the first possible call begins in the text that was not emitted; the end of the text without one."""
        for match in _POSSIBLE_START.finditer(self._text, self._emitted_length):
            start = match.start()
            if self._is_marked_call(start) or (self._tools and self._may_be_calls(start)):
                return start
        return len(self._text)

    def _is_marked_call(self, start: int) -> bool:
        beginning = self._text[start : start + _LONGEST_OPENER].casefold()
        return any(beginning.startswith(opener) or opener.startswith(beginning) for opener in _OPENERS)

    def _may_be_calls(self, position: int) -> bool:
        """Whether the text from here to its end may be calls with nothing but separators between them."""
        while position < len(self._text):
            separator = _SEPARATORS.match(self._text, position)
            if separator is not None:
                position = separator.end()
                continue
            if _PARTIAL_FENCE.match(self._text, position):
                return True
            position = self._call_end(position)
            if position < 0:
                return position == _INCOMPLETE
        return True

    def _call_end(self, start: int) -> int:
        """The end of the call that begins here; _INCOMPLETE if it may be one, _NO_CALL if it is none."""
        opening = self._text[start]
        if opening not in "{[":
            return self._named_call_end(start)
        if opening == "[" and self._may_be_python_list(start):
            return _INCOMPLETE
        value, length = _decode_json(self._text[start:])
        if not length:
            return _INCOMPLETE if _is_json_prefix(self._text[start:]) else _NO_CALL
        return start + length if _to_calls(value, self._tools, accept_others=False) else _NO_CALL

    def _named_call_end(self, start: int) -> int:
        """The end of a tool's name with its arguments as JSON."""
        word = _POSSIBLE_START.match(self._text, start)
        if word is None or not word[0][0].isalpha():
            return _NO_CALL
        if word.end() == len(self._text):
            return _INCOMPLETE if self._may_be_name(word[0]) else _NO_CALL
        is_tool = match_tool_name(word[0], self._tools) in self._tools
        return self._arguments_end(word.end()) if is_tool else _NO_CALL

    def _arguments_end(self, name_end: int) -> int:
        between = _ARGUMENTS_AFTER_NAME.match(self._text, name_end)
        position = between.end() if between else name_end
        if position == len(self._text):
            return _INCOMPLETE
        if self._text[position] != "{":
            return _NO_CALL
        _, length = _decode_json(self._text[position:])
        if length:
            return position + length
        return _INCOMPLETE if _is_json_prefix(self._text[position:]) else _NO_CALL

    def _may_be_python_list(self, start: int) -> bool:
        word = self._text[start + 1 :].lstrip()
        name, bracket, _ = word.partition("(")
        if bracket:
            return match_tool_name(name, self._tools) in self._tools
        return not word or (word[-1].isidentifier() and self._may_be_name(word)) or word in _NAMESPACES

    def _may_be_name(self, word: str) -> bool:
        """Whether the word is the beginning of a tool's name, with or without a namespace."""
        without = next((word.removeprefix(space) for space in _NAMESPACES if word.startswith(space)), word)
        return any(name.startswith(without) for name in (*self._tools, *_NAMESPACES))


def _is_json_prefix(text: str) -> bool:
    """Whether a text that is no JSON value may become one when it goes on."""
    try:
        json.JSONDecoder(strict=False).raw_decode(text)
    except json.JSONDecodeError as error:
        rest = text[error.pos :].strip()
        is_unfinished_word = any(word.startswith(rest) for word in _JSON_WORDS)
        is_unfinished_escape = "escape" in error.msg and len(rest) <= len("\\u0000")
        return is_unfinished_word or is_unfinished_escape or error.msg.startswith("Unterminated string")
    except (ValueError, RecursionError):
        return False
    return False
