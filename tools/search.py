"""The tools wikisearch and websearch: search the articles or the web pages of a world."""

from collections.abc import Iterator
from itertools import pairwise
from time import monotonic
from typing import Annotated

from pydantic import AfterValidator

from showhow.tools.arguments import Accepts, Label, NotOffered, require_text, require_web
from showhow.tools.read import rank_sentences
from showhow.tools.tool import Observation, ToolContext
from showhow.worlds.source import Article, NotFound, SearchHit, SourceTimeout, TextSource, WebHit

DEFAULT_RESULTS, MAX_RESULTS = 5, 50
MAX_SCREENED = 100
"""Articles whose paragraphs are ranked in one search, as many as in GEEK (4.2)."""
_PARAGRAPH_CHARACTERS = 600
"""Characters after which a paragraph is parted at the end of a sentence, about the 100 words of DPR's passages."""
_SCREENING_SECONDS = 30.0
"""A live wiki is asked for every article; after this time the paragraphs of those that came are ranked."""
SearchText = Annotated[str, "words or a question to search for", Accepts("title"), Label("Search for")]


def _check_limit(limit: int | None) -> int | None:
    if limit is not None and not 1 <= limit <= MAX_RESULTS:
        raise ValueError(f"it is a number from 1 to {MAX_RESULTS}")
    return limit


ResultLimit = Annotated[
    int | None, f"{DEFAULT_RESULTS} if left out", AfterValidator(_check_limit), Label("Most results"), NotOffered
]


def _check_screened(articles: int | None) -> int | None:
    if articles is not None and not 1 <= articles <= MAX_SCREENED:
        raise ValueError(f"it is a number from 1 to {MAX_SCREENED}")
    return articles


Screened = Annotated[
    int | None,
    "articles of which the best paragraphs are returned; whole articles if left out",
    AfterValidator(_check_screened),
    Label("Articles screened"),
    NotOffered,
]


def wikisearch(
    context: ToolContext, query: SearchText, limit: ResultLimit = None, screened: Screened = None
) -> Observation:
    """Search the articles; returns titles with a snippet each, best first. Works with a name or a whole question."""
    text = require_text(context.world, "wikisearch")
    if screened is not None:
        return _search_paragraphs(context, text, query, limit or DEFAULT_RESULTS, screened)
    hits = text.search(query, limit or DEFAULT_RESULTS)
    data = [_hit_to_json(hit) for hit in hits]
    if not hits:
        return Observation("No article matches. Try fewer or other words, or only a name.", {"hits": data})
    lines = [f"{number}. {hit.title}{_format_description(hit)}: {hit.snippet}" for number, hit in enumerate(hits, 1)]
    if all(hit.relaxed for hit in hits):
        lines.insert(0, "No article has all the words; these have some of them.")
    return Observation("\n".join(lines), {"hits": data})


def _search_paragraphs(context: ToolContext, text: TextSource, query: str, limit: int, screened: int) -> Observation:
    """The best paragraphs of the best articles, each as a hit of its article."""
    deadline = monotonic() + _SCREENING_SECONDS
    hits = text.search(query, screened)
    paragraphs: list[tuple[Article, int, str]] = []
    unread = len(hits)
    for hit in hits:
        if monotonic() > deadline:
            break
        try:
            article = text.article(hit.title)
        except (NotFound, SourceTimeout):
            continue
        unread -= 1
        paragraphs += [(article, place, paragraph) for place, paragraph in _list_paragraphs(article)]
    ranked = rank_sentences(
        [f"{article.title}: {paragraph}" for article, _, paragraph in paragraphs], query, context.encode
    )
    best = [paragraphs[index] for index, _ in ranked[:limit]]
    data = [
        {"title": article.title, "snippet": paragraph, "entity": article.entity, "relaxed": False, "place": place}
        for article, place, paragraph in best
    ]
    counts = {"screened": len(hits) - unread, "paragraphs": len(paragraphs)}
    if not best:
        return Observation("No article matches. Try fewer or other words, or only a name.", {"hits": data, **counts})
    lines = [f"{number}. {article.title}: {paragraph}" for number, (article, _, paragraph) in enumerate(best, 1)]
    lines.append(f"The best of {len(paragraphs):,} paragraphs of {len(hits) - unread:,} articles.")
    if unread:
        lines.append(f"{unread:,} more articles could not be read in time, or not at all.")
    return Observation("\n".join(lines), {"hits": data, **counts})


def _list_paragraphs(article: Article) -> Iterator[tuple[int, str]]:
    """The paragraphs with the index of their first sentence; a long one in parts, also where none are known."""
    starts = sorted({0, *article.paragraphs, *(start for _, start in article.sections)})
    for start, end in pairwise([*starts, len(article.sentences)]):
        first, size = start, 0
        for index in range(start, end):
            if index > first and size + len(article.sentences[index]) > _PARAGRAPH_CHARACTERS:
                yield first, " ".join(article.sentences[first:index])
                first, size = index, 0
            size += len(article.sentences[index]) + 1
        if first < end:
            yield first, " ".join(article.sentences[first:end])


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
