"""The tools wikisearch and websearch: search the articles or the web pages of a world."""

from typing import Annotated

from pydantic import AfterValidator

from showhow.tools.arguments import Accepts, Label, NotOffered, require_text, require_web
from showhow.tools.tool import Observation, ToolContext
from showhow.worlds.source import SearchHit, WebHit

DEFAULT_RESULTS, MAX_RESULTS = 5, 50
SearchText = Annotated[str, "words or a question to search for", Accepts("title"), Label("Search for")]


def _check_limit(limit: int | None) -> int | None:
    if limit is not None and not 1 <= limit <= MAX_RESULTS:
        raise ValueError(f"it is a number from 1 to {MAX_RESULTS}")
    return limit


ResultLimit = Annotated[
    int | None, f"{DEFAULT_RESULTS} if left out", AfterValidator(_check_limit), Label("Most results"), NotOffered
]


def wikisearch(context: ToolContext, query: SearchText, limit: ResultLimit = None) -> Observation:
    """Search the articles; returns titles with a snippet each, best first. Works with a name or a whole question."""
    hits = require_text(context.world, "wikisearch").search(query, limit or DEFAULT_RESULTS)
    data = [_hit_to_json(hit) for hit in hits]
    if not hits:
        return Observation("No article matches. Try fewer or other words, or only a name.", {"hits": data})
    lines = [f"{number}. {hit.title}{_format_description(hit)}: {hit.snippet}" for number, hit in enumerate(hits, 1)]
    if all(hit.relaxed for hit in hits):
        lines.insert(0, "No article has all the words; these have some of them.")
    return Observation("\n".join(lines), {"hits": data})


def _hit_to_json(hit: SearchHit) -> dict[str, str | bool | None]:
    fields = {"title": hit.title, "snippet": hit.snippet, "entity": hit.entity, "relaxed": hit.relaxed}
    return {**fields, "description": hit.description} if hit.description else fields


def _format_description(hit: SearchHit) -> str:
    return f" ({hit.description})" if hit.description else ""


def websearch(context: ToolContext, query: SearchText, limit: ResultLimit = None) -> Observation:
    """Search the web pages; returns titles with date, address and a snippet, best first. `read` takes the address.

    What a page says may be out of date or about somebody else of the same name.
    """
    hits = require_web(context.world, "websearch").search(query, limit or DEFAULT_RESULTS)
    pages = [
        {"title": h.title, "address": h.address, "date": h.date, "snippet": h.snippet, "relaxed": h.relaxed}
        for h in hits
    ]
    if not pages:
        return Observation("No page matches. Try fewer or other words, or only a name.", {"pages": pages})
    lines = [
        f"{number}. {hit.title}{_format_date(hit)} <{hit.address}>: {hit.snippet}" for number, hit in enumerate(hits, 1)
    ]
    if all(hit.relaxed for hit in hits):
        lines.insert(0, "No page has all the words; these have some of them.")
    return Observation("\n".join(lines), {"pages": pages})


def _format_date(hit: WebHit) -> str:
    return f" ({hit.date})" if hit.date else ""
