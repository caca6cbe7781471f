"""What a wiki's api.php answers, in types: JSON of any other shape is no answer, and never nothing found."""

import re
from collections.abc import Callable
from html import unescape
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from worlds.live.request import Answer, Busy, NoAnswer, host_of

_NO_SUCH_PAGE = frozenset({"missingtitle", "invalidtitle", "pagecannotexist", "nosuchpageid", "nosuchrevid"})
"""Errors that are an answer: there is no such page."""
_BUSY = re.compile(r"maxlag|ratelimited|readonly|.*too-busy.*|internal_api_error.*")
_TAG = re.compile(r"<[^>]*>")
_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]|\[\[|\]\]")
_EMPHASIS = re.compile(r"'{2,5}")

# PHP writes an empty object as an empty list.
_Object = BeforeValidator(lambda value: {} if value == [] else value)


class _Error(BaseModel):
    code: str = "without a code"
    info: str = ""


class Said(BaseModel):
    """What every answer may have."""

    error: _Error | None = None


class Step(BaseModel):
    """From one title to another, by spelling it as the wiki does or by a redirect."""

    start: str = Field(alias="from")
    to: str


class Match(BaseModel):
    """One result of a search."""

    title: str
    ns: int = 0
    snippet: str = ""
    size: int = 0
    wordcount: int = 0


class Page(BaseModel):
    """A page as a list of pages tells of it; without `pageid` there is none."""

    title: str
    pageid: int | None = None
    description: str | None = None
    extract: str = ""
    pageprops: Annotated[dict[str, str], _Object] = {}


class _Pages(BaseModel):
    normalized: list[Step] = []
    redirects: list[Step] = []
    pages: list[Page] = []


class Pages(Said):
    """The answer to titles."""

    query: _Pages


class _Matches(BaseModel):
    search: list[Match]


class Matches(Said):
    """The answer to a search."""

    query: _Matches


class _Extension(BaseModel):
    name: str = ""


class _Extensions(BaseModel):
    extensions: list[_Extension]


class Extensions(Said):
    """The answer to what is installed."""

    query: _Extensions


class Parsed(BaseModel):
    """A page as it is rendered."""

    title: str
    text: str
    properties: Annotated[dict[str, Any], _Object] = {}
    redirects: list[Step] = []


class Rendered(Said):
    """The answer to one page; None where there is no such page."""

    parse: Parsed | None = None


class _Text(BaseModel):
    value: str


class _Link(BaseModel):
    url: str = ""


class Facts(BaseModel):
    """What a Wikibase tells of one of its entities."""

    labels: Annotated[dict[str, _Text], _Object] = {}
    descriptions: Annotated[dict[str, _Text], _Object] = {}
    aliases: Annotated[dict[str, list[_Text]], _Object] = {}
    sitelinks: Annotated[dict[str, _Link], _Object] = {}
    redirects: Step | None = None
    missing: Any = None
    """Whatever it is, there is no such entity where it is told."""


class Entities(Said):
    """The answer to ids."""

    entities: Annotated[dict[str, Facts], _Object]


class _Item(BaseModel):
    id: str


class Items(Said):
    """The answer to a name."""

    search: list[_Item]


Wanted = TypeVar("Wanted", bound=Said)


def read_said(answer: Answer, wanted: type[Wanted]) -> Wanted:
    """The answer as it was wanted; NoAnswer for an error that is told under a good status and for any other shape.

    Busy where asking again may help.
    """
    host = host_of(answer.url)
    try:
        error = Said.model_validate_json(answer.body).error
        if error is None or (error.code in _NO_SUCH_PAGE and wanted is Rendered):
            return wanted.model_validate_json(answer.body)
    except ValidationError as wrong:
        raise NoAnswer(_of_other_shape(host, wrong)) from wrong
    said = plain(error.info)
    if _BUSY.fullmatch(error.code):
        raise Busy(f"{host} is busy ({said[:200] or error.code}).")
    raise NoAnswer(f"{host} refused ({error.code}): {said[:300] or 'it does not say why'}")


def saying(wanted: type[Said]) -> Callable[[Answer], None]:
    """A check that the answer is one of that shape."""

    def check(answer: Answer) -> None:
        read_said(answer, wanted)

    return check


def plain(markup: str) -> str:
    """A snippet or message of the api without tags, entities and what little of a wiki's markup has a meaning."""
    text = unescape(_TAG.sub("", markup))
    return " ".join(_EMPHASIS.sub("", _LINK.sub(r"\1", text)).split()).lstrip("*#:; ")


def _of_other_shape(host: str, wrong: ValidationError) -> str:
    first = wrong.errors()[0]
    if first["type"] == "json_invalid":
        return f"{host} answered with JSON that is cut off or broken; ask for less, or try again in a minute."
    place = ".".join(map(str, first["loc"][:6])) or "the whole"
    return f"{host} answered with JSON that no MediaWiki writes (see {place}); check the address of its api."
