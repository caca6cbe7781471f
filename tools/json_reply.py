"""What a language model wrote as JSON, read in spite of what models put around it."""

import json
import re
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ValidationError

from tools.chat_errors import ChatError
from tools.thinking import apart
from worlds.spelling import storable

Wanted = TypeVar("Wanted", bound=BaseModel)


def _written(value: object) -> object:
    """A number as text: that 1931 stands without quotation marks is no reason to do without it."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Words = Annotated[str, BeforeValidator(_written), AfterValidator(storable)]
"""A text that a model writes."""

_LAST_COMMA = re.compile(r",(?=\s*[}\]])")
_MOST_TRIED = 50


class ReplyUnreadable(ChatError):
    """The reply is not in the form that was asked for."""


def read_reply(text: str, wanted: type[Wanted], model: str) -> Wanted:
    """The first JSON object of that form in the reply, be it fenced or in the midst of words.

    ReplyUnreadable says what is wrong where there is none.
    """
    # A thought may hold JSON that was given up again.
    said = apart(text)[1]
    wrong = "it holds no JSON object"
    for place in [match.start() for match in re.finditer(r"\{", said)][:_MOST_TRIED]:
        found = _object(said[place:])
        if found is None:
            continue
        try:
            return wanted.model_validate(found)
        except ValidationError as failed:
            first = failed.errors()[0]
            wrong = f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg'].lower()}"
    raise ReplyUnreadable(f"{model} did not reply in the form that was asked for ({wrong}).")


def _object(text: str) -> object | None:
    """The JSON value that the text begins with; line breaks in texts and commas after the last item are let pass."""
    reader = json.JSONDecoder(strict=False)
    for each in (text, _LAST_COMMA.sub("", text)):
        try:
            found: object = reader.raw_decode(each)[0]
        except (ValueError, RecursionError):
            continue
        return found
    return None
