"""The articles of Wikipedia, or of any MediaWiki, as a text source."""

import functools
from collections.abc import Iterable, Mapping, Sequence

from worlds.importers.jsonl import split
from worlds.live.door import Door
from worlds.live.search_words import names_of, relaxations, words_of
from worlds.live.wiki_answers import Parsed, Rendered
from worlds.live.wiki_api import LONGEST_TITLE, Found, Properties, WikiApi
from worlds.live.wiki_page import Choice, WikiPage, read_page
from worlds.source import Ambiguous, Article, Hit, NotFound
from worlds.spelling import encodable

_MOST_BY_NAME = 3
_LONGEST_DESCRIPTION = 160
_LONGEST_SNIPPET = 300
_MOST_CHOICES = 20


class MediaWikiText:
    """A wiki behind its api.php; safe to share between threads."""

    def __init__(self, api: str, language: str, door: Door) -> None:
        self._door = door
        self._api = WikiApi(api, language, door)
        self._language = language

    def search(self, query: str, k: int) -> list[Hit]:
        """The k best articles: of exactly a name in the query, then with all its words, then with ever fewer."""
        query = encodable(query)
        if k < 1 or not words_of(query):
            return []
        with self._door.one_call():
            return self._search(query, k)

    def _search(self, query: str, k: int) -> list[Hit]:
        ranking = _Ranking()
        names = names_of(query)
        named = self._api.properties([spelling for name in names for spelling in _spellings(name)])
        ranking.add([Found(page.title, "") for page in named.values()][:_MOST_BY_NAME], complete=False)
        for number, words in enumerate(relaxations(query)):
            if number == 1:
                self._add_titles(ranking, names, k)
            # A single common word finds anything; it is asked for where nothing else was found.
            if len(ranking.titles) >= k or (ranking.titles and len(words) == 1 and words[0] not in names):
                break
            ranking.add(self._api.search(" ".join(words), "text", k), complete=number == 0)
        known = {page.title: page for page in named.values()}
        known |= self._api.properties([title for title in ranking.titles if title not in known])
        return ranking.hits(known)[:k]

    def article(self, title: str) -> Article:
        """The article of that title, redirects followed; Ambiguous where the page only lists what is called so."""
        with self._door.one_call():
            return self._article(encodable(title).strip())

    def _article(self, title: str) -> Article:
        parsed = self._parsed(title) or self._parsed_nearest(title)
        if parsed is None:
            near = ", ".join(repr(hit.title) for hit in self.search(title, 3))
            advice = f"; the nearest are {near}" if near else ""
            raise NotFound(f"There is no article titled {_cut(title, LONGEST_TITLE)!r}{advice}.")
        found, told = parsed.title, parsed.properties
        page = read_page(parsed.text, self._language)
        # What no extension works out while a page is rendered, only the table of properties knows.
        known = self._api.properties([found]).get(found) if "wikibase_item" not in told else None
        lists_names = page.lists_names or "disambiguation" in told or bool(known and known.choices)
        item = known.item if known else told.get("wikibase_item")
        if lists_names and page.choices:
            raise Ambiguous(found, self._choices(page))
        redirected = next((step.start for step in parsed.redirects), None)
        return Article(found, page.sentences, item, page.sections, redirected=redirected)

    def item_of(self, title: str) -> str | None:
        """The id of what the article is about, None where the wiki tells none; NotFound without an article."""
        title = encodable(title).strip()
        with self._door.one_call():
            page = self._api.properties([title]).get(title)
            if page is None or page.choices:
                return self._article(title).entity
            return page.item

    def _parsed(self, title: str) -> Parsed | None:
        if not title or len(title.encode()) > LONGEST_TITLE:
            return None
        return self._api.ask(
            {
                "action": "parse",
                "page": title,
                "prop": "text|properties",
                "redirects": 1,
                "disableeditsection": 1,
                "disablelimitreport": 1,
                "disabletoc": 1,
            },
            Rendered,
        ).parse

    def _parsed_nearest(self, title: str) -> Parsed | None:
        """The page whose title differs in case only."""
        spelled = " ".join(title.replace("_", " ").split())
        if not words_of(spelled) or len(spelled.encode()) > LONGEST_TITLE:
            return None
        # The wiki tries each word with a capital, but not a whole title in capitals with fewer of them.
        for spelling in dict.fromkeys((spelled, spelled.lower())):
            if near := self._api.search(spelling, "nearmatch", 1):
                return self._parsed(near[0].title)
        return None

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

    def _add_titles(self, ranking: "_Ranking", names: Sequence[str], k: int) -> None:
        """Articles with a name of the query in their titles."""
        if not self._titles_apart:
            return
        for name in names[:2]:
            ranking.add(self._api.search(" ".join(words_of(name)), "title", k), complete=False)


class _Ranking:
    """The titles found so far, best first, and which of them have every word."""

    def __init__(self) -> None:
        self._snippets: dict[str, str] = {}
        self._complete: set[str] = set()

    @property
    def titles(self) -> list[str]:
        return list(self._snippets)

    def add(self, found: Iterable[Found], *, complete: bool) -> None:
        """Put what was found after the rest; `complete` when it has every word of the query."""
        for hit in found:
            self._snippets[hit.title] = self._snippets.get(hit.title) or hit.snippet
            if complete:
                self._complete.add(hit.title)

    def hits(self, known: Mapping[str, Properties]) -> list[Hit]:
        """One hit a page: a redirect that was found stands for the page that it leads to."""
        hits: dict[str, Hit] = {}
        for title, snippet in self._snippets.items():
            page = known.get(title) or Properties(title)
            if page.title in hits:
                continue
            hits[page.title] = Hit(
                page.title,
                _cut(self._snippets.get(page.title) or snippet or page.extract or "", _LONGEST_SNIPPET),
                page.item,
                round(1 / (1 + len(hits)), 3),
                not {title, page.title} & self._complete,
                _described(page, snippet),
            )
        return list(hits.values())


def _described(page: Properties, snippet: str) -> str | None:
    """What the page is about: as the wiki describes it, else its first sentence unless that is shown already."""
    if page.choices:
        return "several things are called so"
    if page.description or not page.extract or not snippet:
        return page.description
    first = split(page.extract)[0]
    return None if snippet.startswith(first[:_LONGEST_DESCRIPTION]) else _cut(first, _LONGEST_DESCRIPTION)


def _spellings(name: str) -> list[str]:
    """The ways in which a title of that name may be written."""
    return [name] if name != name.lower() else [name, name.title()]


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"
