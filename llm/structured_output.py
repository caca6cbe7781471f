"""Requests JSON replies and parses them into pydantic models; separates the reasoning of a model from its reply."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from math import isfinite
from typing import Annotated, Any, TypeVar

from jsonschema import Draft202012Validator
from pydantic import AfterValidator, BaseModel, BeforeValidator, ValidationError

from showhow.llm.client import ChatClient
from showhow.llm.errors import ChatError
from showhow.llm.limitations import (
    JSON_OBJECT_UNSUPPORTED,
    LOGPROBS_UNSUPPORTED,
    SCHEMA_UNSUPPORTED,
    TEMPERATURE_UNSUPPORTED,
    ask_within,
)
from showhow.llm.types import ANY_OBJECT, ChatReply, Message
from showhow.worlds.text_normalization import replace_unstorable

_REASONING_BLOCK = re.compile(r"<(think(?:ing)?)>(.*?)(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
# Some servers put the opening tag into the prompt, so that a reply has only the closing one.
_UNOPENED_REASONING = re.compile(r"\A(?:(?!<think(?:ing)?>).)*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)


def split_reasoning(text: str) -> tuple[str, str]:
    """Return the text in <think> tags and the text outside; text after an unclosed tag counts as reasoning."""
    unopened = _UNOPENED_REASONING.match(text)
    rest = text[unopened.end() :] if unopened else text
    thoughts = [unopened[0].rpartition("</")[0]] if unopened else []
    thoughts += [match[2] for match in _REASONING_BLOCK.finditer(rest)]
    return "\n".join(filter(None, (thought.strip() for thought in thoughts))), _REASONING_BLOCK.sub("", rest).strip()


ReplyModelT = TypeVar("ReplyModelT", bound=BaseModel)


def _number_to_text(value: object) -> object:
    """Convert a number to text, since models write 1931 without quotation marks."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


ReplyText = Annotated[str, BeforeValidator(_number_to_text), AfterValidator(replace_unstorable)]
"""The type of a text field in a reply."""


def request_json_reply(
    chat: ChatClient,
    messages: Sequence[Message],
    reply_type: type[BaseModel],
    temperature: float | None = None,
    *,
    logprobs: bool = False,
) -> ChatReply:
    """Request a reply that the server holds to the schema of this type, else to JSON, else by the prompt alone.

    The prompt asks for the form too. A `temperature` replaces that of the profile, where the server allows it; with
    `logprobs` the reply has log-probabilities, where the server gives them. ChatError if there is no reply;
    `parse_reply` reads it.
    """
    options = [[LOGPROBS_UNSUPPORTED]] if logprobs else []
    options += [[TEMPERATURE_UNSUPPORTED]] if temperature is not None else []
    options += [[SCHEMA_UNSUPPORTED, JSON_OBJECT_UNSUPPORTED]]

    def ask(left_out: Collection[str]) -> ChatReply:
        kept: dict[str, Any] = {}
        if logprobs and LOGPROBS_UNSUPPORTED not in left_out:
            kept["logprobs"] = True
        if temperature is not None and TEMPERATURE_UNSUPPORTED not in left_out:
            kept["temperature"] = temperature
        if JSON_OBJECT_UNSUPPORTED not in left_out:
            kept["reply_schema"] = ANY_OBJECT if SCHEMA_UNSUPPORTED in left_out else to_strict_schema(reply_type)
        reply = chat.ask(messages, **kept)
        if "logprobs" in kept and reply.logprobs is None:
            chat.known_limitations.learn([LOGPROBS_UNSUPPORTED])
        return reply

    return ask_within(chat.known_limitations, options, ask)


def to_strict_schema(reply_type: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema of a type as every provider accepts it: all fields required, no others, and no references."""
    schema = reply_type.model_json_schema()
    strict: dict[str, Any] = _to_strict(schema, schema.get("$defs", {}))
    return strict


def _to_strict(schema: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_to_strict(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _to_strict(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    strict = {
        name: _to_strict(value, definitions)
        for name, value in schema.items()
        if name not in ("title", "default", "description", "$defs", "properties")
    }
    if "properties" in schema:
        strict["properties"] = {name: _to_strict(field, definitions) for name, field in schema["properties"].items()}
        strict |= {"required": list(strict["properties"]), "additionalProperties": False}
    return strict


def _find_unstorable_number(value: Any, place: str = "") -> str | None:
    """The place of a number that is infinite, or none at all, which neither JSON nor a database can hold."""
    if isinstance(value, float):
        return None if isfinite(value) else place.strip(".")
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return next((bad for key, inner in items if (bad := _find_unstorable_number(inner, f"{place}.{key}"))), None)


_TRAILING_COMMA = re.compile(r",(?=\s*[}\]])")
_MAX_PARSE_ATTEMPTS = 50
_MAX_NAMED_PROBLEMS = 8


class ReplyParseError(ChatError):
    """The reply is not JSON of the requested form."""


def parse_reply(text: str, reply_type: type[ReplyModelT], model: str) -> ReplyModelT:
    """Parse the first JSON object of this type in the reply, fenced or not; ReplyParseError if there is none.

    Its form is first corrected where there is one way only (`_conform`), but not that of a part of another object.
    """
    # The reasoning may contain JSON that the model discarded.
    visible = split_reasoning(text)[1]
    reason = "it contains no JSON object"
    rejected_end = 0
    schema = _read_schema(reply_type)
    for start in [match.start() for match in re.finditer(r"\{", visible)][:_MAX_PARSE_ATTEMPTS]:
        parsed = _parse_json_prefix(visible[start:])
        if parsed is None:
            continue
        value, length = parsed
        before = visible[:start]
        if before.count("{") == before.count("}"):
            value = _conform(value, schema, schema.get("$defs", {}))
        try:
            reply = reply_type.model_validate(value)
            if (place := _find_unstorable_number(reply.model_dump())) is None:
                return reply
            reason = f"{place}: not a finite number"
        except ValidationError as error:
            if start < rejected_end:
                # What is wrong with a part of a rejected object is not what is wrong with the reply.
                continue
            # All of them, so that one further reply can mend them.
            problems = [f"{'.'.join(map(str, one['loc'])) or 'it'}: {one['msg'].lower()}" for one in error.errors()]
            reason = "; ".join(problems[:_MAX_NAMED_PROBLEMS])
            rejected_end = start + length
    raise ReplyParseError(f"{model} did not reply in the requested form ({reason}).")


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


@cache
def _read_schema(reply_type: type[BaseModel]) -> dict[str, Any]:
    return reply_type.model_json_schema()


def _conform(value: Any, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Any:
    """The value in the form of its schema, where its meaning leaves no choice.

    One item in place of a list, a text or number in place of the object that holds it, JSON written as a text, null for
    a field that has a default, and a field under another name are corrected; everything else stays as it is.
    """
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) == 1 and value is not None:
        return _conform(value, options[0], definitions)
    kind = schema.get("type")
    if kind in ("array", "object") and isinstance(value, str):
        value = _parse_written_json(value, list if kind == "array" else dict)
    if kind == "array" and value is not None:
        return [_conform(item, schema.get("items", {}), definitions) for item in _as_list(value)]
    if kind == "object" and "properties" in schema:
        if isinstance(value, str | int | float):
            return _wrap(value, schema, definitions)
        if isinstance(value, dict):
            return _conform_object(value, schema, definitions)
    return value


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _parse_written_json(text: str, expected: type[list[Any] | dict[str, Any]]) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, expected) else text


def _takes(schema: Mapping[str, Any], value: Any, definitions: Mapping[str, Any]) -> bool:
    return bool(Draft202012Validator({**schema, "$defs": definitions}).is_valid(value))


def _wrap(value: str | float, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Any:
    """The object that has the value as its only field; the value if the object needs other fields."""
    fitting = (name for name, field in schema["properties"].items() if _takes(field, value, definitions))
    name = next(fitting, "")
    return {name: value} if name and {*schema.get("required", ())} <= {name} else value


def _conform_object(value: dict[str, Any], schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    fields, required = schema["properties"], schema.get("required", ())
    unknown = {name: field for name, field in value.items() if name not in fields}
    named: dict[str, Any] = {}
    for name, schema_of_field in fields.items():
        known_as = name if name in value else next((other for other in unknown if _is_alike(other, name)), None)
        if known_as is None:
            continue
        field = unknown.pop(known_as, value[known_as])
        if field is not None or name in required or _takes(schema_of_field, None, definitions):
            named[name] = _conform(field, schema_of_field, definitions)
    missing = [name for name in required if name not in named]
    if len(missing) == 1:
        fitting = [name for name, field in unknown.items() if _takes(fields[missing[0]], field, definitions)]
        if len(fitting) == 1:
            named[missing[0]] = unknown.pop(fitting[0])
    return unknown | named


def _is_alike(name: str, other: str) -> bool:
    """Whether two names of a field differ in case, separators or number only."""
    one, two = ("".join(filter(str.isalnum, text)).casefold().removesuffix("s") for text in (name, other))
    return one == two


def _parse_json_prefix(text: str) -> tuple[object, int] | None:
    """Parse the JSON value at the start of the text, and its length; line breaks and trailing commas are allowed."""
    reader = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)
    for candidate in (text, _TRAILING_COMMA.sub("", text)):
        try:
            value, length = reader.raw_decode(candidate)
        except (ValueError, RecursionError):
            continue
        return value, length
    return None


def mean_field_logprobs(reply: ChatReply, field: str) -> tuple[float | None, ...] | None:
    """The mean log-probability of a field of the reply's JSON object; of a list, one for each item.

    None where the server gave none for a token of it, and None for all if the reply has no such field.
    """
    if reply.logprobs is None:
        return None
    visible = split_reasoning(reply.text)[1]
    offset = reply.text.rfind(visible)
    for start in [match.start() for match in re.finditer(r"\{", visible)][:_MAX_PARSE_ATTEMPTS]:
        spans = _locate_field(visible, start, field)
        if spans is not None and offset >= 0:
            return tuple(reply.mean_logprob(offset + first, offset + last) for first, last in spans)
    return None


def _locate_field(text: str, start: int, field: str) -> list[tuple[int, int]] | None:
    """The characters of a field of the JSON object that begins at `start`, of each item if it is a list."""
    reader = json.JSONDecoder(strict=False)
    position = start
    try:
        while text[position] in "{,":
            name, position = reader.raw_decode(text, _skip_space(text, position + 1))
            begin = _skip_space(text, _skip_space(text, position) + 1)
            value, end = reader.raw_decode(text, begin)
            if name == field:
                return _locate_items(text, begin) if isinstance(value, list) else [(begin, end)]
            position = _skip_space(text, end)
    except (ValueError, IndexError, RecursionError):
        return None
    return None


def _locate_items(text: str, start: int) -> list[tuple[int, int]]:
    """The characters of each item of the JSON list that begins at `start`."""
    reader = json.JSONDecoder(strict=False)
    spans: list[tuple[int, int]] = []
    position = _skip_space(text, start + 1)
    while text[position] != "]":
        end = reader.raw_decode(text, position)[1]
        spans.append((position, end))
        position = _skip_space(text, end)
        if text[position] == ",":
            position = _skip_space(text, position + 1)
    return spans


def _skip_space(text: str, position: int) -> int:
    while text[position].isspace():
        position += 1
    return position
