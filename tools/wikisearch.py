"""The tool wikisearch: search the articles of a world."""

from typing import Annotated

from tools.arguments import require_text
from tools.parameter import Accepts
from tools.tool import Observation, ToolContext
from worlds.source import SearchHit

MAX_HITS = 5


def wikisearch(
    context: ToolContext, query: Annotated[str, "words or a question to search for", Accepts("title")]
) -> Observation:
    """Search the articles; returns titles with a snippet each, best first. Works with a name or a whole question."""
    hits = require_text(context.world, "wikisearch").search(query, MAX_HITS)
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
