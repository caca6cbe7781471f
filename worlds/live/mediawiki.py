"""The articles of Wikipedia, or of any MediaWiki, as a text source."""

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from worlds.live.door import Door
from worlds.live.search_words import names_of, relaxations, words_of
from worlds.live.wiki_api import Found, Properties, WikiApi
from worlds.live.wiki_page import Choice, WikiPage, read_page
from worlds.source import Ambiguous, Article, Hit, NotFound

_MOST_BY_NAME = 3
_LONGEST_DESCRIPTION = 160
_LONGEST_SNIPPET = 300
_MOST_CHOICES = 20


class MediaWikiText:
    """A wiki behind its api.php; safe to share between threads."""

    def __init__(self, api: str, language: str, door: Door) -> None:
        self._api = WikiApi(api, language, door)
        self._language = language

    def search(self, query: str, k: int) -> list[Hit]:
        """The k best articles: of exactly a name in the query, then with all its words, then with ever fewer."""
        if k < 1 or not words_of(query):
            return []
        ranking = _Ranking(k)
        named = self._api.properties([spelling for name in names_of(query) for spelling in _spellings(name)])
        ranking.add([Found(page.title, "") for page in named.values()][:_MOST_BY_NAME], complete=False)
        for number, words in enumerate(relaxations(query)):
            if number == 1:
                self._add_titles(ranking, query, k)
            if len(ranking.titles) == k:
                break
            ranking.add(self._api.search(" ".join(words), "text", k), complete=number == 0)
        known = {page.title: page for page in named.values()}
        known |= self._api.properties([title for title in ranking.titles if title not in known])
        return ranking.hits(known)

    def article(self, title: str) -> Article:
        """The article of that title, redirects followed; Ambiguous where the page only lists what is called so."""
        parsed = self._parsed(title) or self._parsed_nearest(title)
        if parsed is None:
            near = ", ".join(repr(hit.title) for hit in self.search(title, 3))
            advice = f"; the nearest are {near}" if near else ""
            raise NotFound(f"There is no article titled {title!r}{advice}.")
        found = str(parsed["title"])
        page = read_page(str(parsed["text"]), self._language)
        told: Mapping[str, Any] = parsed.get("properties") or {}
        item = told.get("wikibase_item")
        if item is None or "disambiguation" not in told:
            known = self._api.properties([found]).get(found)
            item = item or (known.item if known else None)
            lists_names = page.lists_names or (known.choices if known else False)
        else:
            lists_names = True
        if lists_names and page.choices:
            raise Ambiguous(found, self._choices(page))
        redirected = next((str(step["from"]) for step in parsed.get("redirects", [])), None)
        return Article(found, page.sentences, item, page.sections, redirected=redirected)

    def item_of(self, title: str) -> str | None:
        """The id of what the article is about, redirects followed; None where the wiki tells none."""
        page = self._api.properties([title]).get(title)
        return page.item if page else None

    def _parsed(self, title: str) -> dict[str, Any] | None:
        if not title.strip():
            return None
        found = self._api.ask(
            {
                "action": "parse",
                "page": title.strip(),
                "prop": "text|properties",
                "redirects": 1,
                "disableeditsection": 1,
                "disablelimitreport": 1,
                "disabletoc": 1,
            }
        )
        parsed: dict[str, Any] | None = found.get("parse")
        return parsed

    def _parsed_nearest(self, title: str) -> dict[str, Any] | None:
        """The page whose title differs in case only."""
        if not words_of(title):
            return None
        near = self._api.search(title, "nearmatch", 1)
        return self._parsed(near[0].title) if near else None

    def _choices(self, page: WikiPage) -> list[Hit]:
        choices: dict[str, Choice] = {}
        for choice in page.choices:
            choices.setdefault(choice.title, choice)
        kept = list(choices.values())[:_MOST_CHOICES]
        known = self._api.properties([choice.title for choice in kept])
        hits = []
        for choice in kept:
            told = known.get(choice.title)
            description = choice.description or (told.description if told else None)
            hits.append(Hit(choice.title, choice.description, told.item if told else None, description=description))
        return hits

    @functools.cached_property
    def _titles_apart(self) -> bool:
        return self._api.has_title_search()

    def _add_titles(self, ranking: "_Ranking", query: str, k: int) -> None:
        """Articles with a name of the query in their titles."""
        if not self._titles_apart:
            return
        for name in names_of(query)[:2]:
            ranking.add(self._api.search(" ".join(words_of(name)), "title", k), complete=False)


class _Ranking:
    """The titles found so far, best first, and which of them have every word."""

    def __init__(self, k: int) -> None:
        self._k = k
        self._snippets: dict[str, str] = {}
        self._complete: set[str] = set()

    @property
    def titles(self) -> list[str]:
        return list(self._snippets)[: self._k]

    def add(self, found: Iterable[Found], *, complete: bool) -> None:
        """Put what was found after the rest; `complete` when it has every word of the query."""
        for hit in found:
            self._snippets[hit.title] = self._snippets.get(hit.title) or hit.snippet
            if complete:
                self._complete.add(hit.title)

    def hits(self, known: Mapping[str, Properties]) -> list[Hit]:
        hits = []
        for place, title in enumerate(self.titles):
            page = known.get(title) or Properties(title)
            snippet = self._snippets[title] or page.extract or ""
            described = "several things are called so" if page.choices else page.description or page.extract or ""
            hits.append(
                Hit(
                    title,
                    _cut(snippet, _LONGEST_SNIPPET),
                    page.item,
                    round(1 / (1 + place), 3),
                    title not in self._complete,
                    _cut(described, _LONGEST_DESCRIPTION) or None,
                )
            )
        return hits


def _spellings(name: str) -> list[str]:
    """The ways in which a title of that name may be written."""
    return [name] if name != name.lower() else [name, name.title()]


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"
