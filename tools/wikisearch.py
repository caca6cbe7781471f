"""Search among a world's articles."""

from typing import Annotated

from tools.arguments import text_of
from tools.tool import Context, Observation
from worlds.source import Hit

MOST_HITS = 5


def wikisearch(context: Context, query: Annotated[str, "words or a question to search for"]) -> Observation:
    """Search the articles; returns titles with a snippet each, best first. Works with a name or a whole question."""
    hits = text_of(context.world, "wikisearch").search(query, MOST_HITS)
    data = [_listed(hit) for hit in hits]
    if not hits:
        return Observation("No article matches. Try fewer or other words, or only a name.", {"hits": data})
    lines = [f"{place}. {hit.title}{_about(hit)}: {hit.snippet}" for place, hit in enumerate(hits, 1)]
    if all(hit.relaxed for hit in hits):
        lines.insert(0, "No article has all the words; these have some of them.")
    return Observation("\n".join(lines), {"hits": data})


def _listed(hit: Hit) -> dict[str, str | bool | None]:
    listed = {"title": hit.title, "snippet": hit.snippet, "entity": hit.entity, "relaxed": hit.relaxed}
    return {**listed, "description": hit.description} if hit.description else listed


def _about(hit: Hit) -> str:
    return f" ({hit.description})" if hit.description else ""
