"""What a language model wrote as JSON, read in spite of what models put around it.

What a reasoning model thinks aloud between marks, apart from what it says.
"""

import json
import re
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ValidationError

from llm.errors import ChatError
from worlds.text_normalization import replace_unstorable

_REASONING_BLOCK = re.compile(r"<(think(?:ing)?)>(.*?)(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
# Some servers put the first mark into the prompt, so that a reply has only the last one.
_UNOPENED_REASONING = re.compile(r"\A(?:(?!<think(?:ing)?>).)*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)


def split_reasoning(text: str) -> tuple[str, str]:
    """What was thought aloud, and what was said; thoughts without an end leave nothing said."""
    begun = _UNOPENED_REASONING.match(text)
    rest = text[begun.end() :] if begun else text
    thoughts = [begun[0].rpartition("</")[0]] if begun else []
    thoughts += [found[2] for found in _REASONING_BLOCK.finditer(rest)]
    return "\n".join(filter(None, (thought.strip() for thought in thoughts))), _REASONING_BLOCK.sub("", rest).strip()


ReplyModelT = TypeVar("ReplyModelT", bound=BaseModel)


def _number_to_text(value: object) -> object:
    """A number as text: that 1931 stands without quotation marks is no reason to do without it."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


ReplyText = Annotated[str, BeforeValidator(_number_to_text), AfterValidator(replace_unstorable)]
"""A text that a model writes."""

_TRAILING_COMMA = re.compile(r",(?=\s*[}\]])")
_MAX_PARSE_ATTEMPTS = 50


class ReplyParseError(ChatError):
    """The reply is not in the form that was asked for."""


def parse_reply(text: str, wanted: type[ReplyModelT], model: str) -> ReplyModelT:
    """The first JSON object of that form in the reply, be it fenced or in the midst of words.

    ReplyUnreadable says what is wrong where there is none.
    """
    # A thought may hold JSON that was given up again.
    said = split_reasoning(text)[1]
    wrong = "it holds no JSON object"
    for place in [match.start() for match in re.finditer(r"\{", said)][:_MAX_PARSE_ATTEMPTS]:
        found = _parse_json_prefix(said[place:])
        if found is None:
            continue
        try:
            return wanted.model_validate(found)
        except ValidationError as failed:
            first = failed.errors()[0]
            wrong = f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg'].lower()}"
    raise ReplyParseError(f"{model} did not reply in the form that was asked for ({wrong}).")


def _parse_json_prefix(text: str) -> object | None:
    """The JSON value that the text begins with; line breaks in texts and commas after the last item are let pass."""
    reader = json.JSONDecoder(strict=False)
    for each in (text, _TRAILING_COMMA.sub("", text)):
        try:
            found: object = reader.raw_decode(each)[0]
        except (ValueError, RecursionError):
            continue
        return found
    return None
