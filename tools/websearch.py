"""The tool websearch: search the web pages of a world."""

from typing import Annotated

from tools.arguments import require_web
from tools.parameter import Accepts
from tools.tool import Observation, ToolContext
from worlds.source import WebHit

MAX_PAGES = 5


def websearch(
    context: ToolContext, query: Annotated[str, "words or a question to search for", Accepts("title")]
) -> Observation:
    """Search the web pages; returns titles with date, address and a snippet, best first. `read` takes the address.

    What a page says may be out of date or about somebody else of the same name.
    """
    hits = require_web(context.world, "websearch").search(query, MAX_PAGES)
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
