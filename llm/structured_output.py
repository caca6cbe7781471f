"""Parses JSON replies into pydantic models, and separates the reasoning of a model from its reply."""

import json
import re
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ValidationError

from llm.errors import ChatError
from worlds.text_normalization import replace_unstorable

_REASONING_BLOCK = re.compile(r"<(think(?:ing)?)>(.*?)(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
# Some servers put the opening tag into the prompt, so that a reply has only the closing one.
_UNOPENED_REASONING = re.compile(r"\A(?:(?!<think(?:ing)?>).)*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)


def split_reasoning(text: str) -> tuple[str, str]:
    """Return the text in <think> tags and the text outside; an unclosed tag leaves no text outside."""
    begun = _UNOPENED_REASONING.match(text)
    rest = text[begun.end() :] if begun else text
    thoughts = [begun[0].rpartition("</")[0]] if begun else []
    thoughts += [match[2] for match in _REASONING_BLOCK.finditer(rest)]
    return "\n".join(filter(None, (thought.strip() for thought in thoughts))), _REASONING_BLOCK.sub("", rest).strip()


ReplyModelT = TypeVar("ReplyModelT", bound=BaseModel)


def _number_to_text(value: object) -> object:
    """Accept a number for a text: models write 1931 without quotation marks."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


ReplyText = Annotated[str, BeforeValidator(_number_to_text), AfterValidator(replace_unstorable)]
"""The type of a text field in a reply."""

_TRAILING_COMMA = re.compile(r",(?=\s*[}\]])")
_MAX_PARSE_ATTEMPTS = 50


class ReplyParseError(ChatError):
    """The reply is not JSON of the requested form."""


def parse_reply(text: str, reply_type: type[ReplyModelT], model: str) -> ReplyModelT:
    """Parse the first JSON object of that form in the reply, fenced or not; ReplyParseError if there is none."""
    # The reasoning may hold JSON that the model discarded.
    visible = split_reasoning(text)[1]
    wrong = "it holds no JSON object"
    for place in [match.start() for match in re.finditer(r"\{", visible)][:_MAX_PARSE_ATTEMPTS]:
        value = _parse_json_prefix(visible[place:])
        if value is None:
            continue
        try:
            return reply_type.model_validate(value)
        except ValidationError as failed:
            first = failed.errors()[0]
            wrong = f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg'].lower()}"
    raise ReplyParseError(f"{model} did not reply in the form that was asked for ({wrong}).")


def _parse_json_prefix(text: str) -> object | None:
    """Parse the JSON value at the start of the text; line breaks in strings and trailing commas are allowed."""
    reader = json.JSONDecoder(strict=False)
    for candidate in (text, _TRAILING_COMMA.sub("", text)):
        try:
            value: object = reader.raw_decode(candidate)[0]
        except (ValueError, RecursionError):
            continue
        return value
    return None
