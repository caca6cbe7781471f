"""The articles of Wikipedia, or of any MediaWiki, as a text source.

A question becomes search words, since search engines match every word and know no grammar.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from worlds.importers.articles import split_sentences
from worlds.live.http.client import RecordingHttpClient
from worlds.live.wiki.api import MAX_TITLE_BYTES, WikiApi, WikiPageProperties, WikiSearchHit
from worlds.live.wiki.api_replies import ParsedWikiPage, ParseResponse
from worlds.live.wiki.page import DisambiguationChoice, WikiPage, parse_page
from worlds.source import AmbiguousTitle, Article, NotFound, SearchHit
from worlds.text_normalization import STOP_WORDS, replace_surrogates

MAX_QUERIES = 5
_MAX_WORDS = 32
_MAX_WORD_LENGTH = 60
_MAX_NAMES = 8
_MAX_TITLE_WORDS = 8
_WORD_PATTERN = re.compile(r"\w+(?:['’.-]\w+)*")
_TOKEN_PATTERN = re.compile(r"\b[A-Z]\.|\w+(?:['’.-]\w+)*|[^\w\s]")
_QUOTED_PATTERN = re.compile(r"[\"“„«]([^\"“”„«»]{2,100})[\"”“»]")
_POSSESSIVE_SUFFIX = re.compile(r"['’]s$")
_CONNECTIVES = frozenset("of the de la le von van der den du di da del and & in on at for to a".split())
"""Small words that stand inside names."""
_ARTICLES = frozenset({"The", "A", "An"})


def extract_words(text: str) -> list[str]:
    """The words of a text in their order, each once, without what engines take for operators."""
    words = (_POSSESSIVE_SUFFIX.sub("", word) for word in _WORD_PATTERN.findall(text))
    short = (word for word in words if len(word) <= _MAX_WORD_LENGTH)
    seen = dict.fromkeys(word.lower() if word in {"AND", "OR", "NOT"} else word for word in short)
    return list(seen)[:_MAX_WORDS]


def extract_names(query: str) -> list[str]:
    """What a query may name, most telling first: what stands in quotes, runs of capitals, a short query itself."""
    names = [" ".join(quoted.split()) for quoted in _QUOTED_PATTERN.findall(query)]
    bare = " ".join(query.split()).strip(" ?!.\"“”'")
    if bare and len(bare.split()) <= _MAX_TITLE_WORDS and not _is_question(bare):
        names.append(bare)
    runs = list(_extract_capitalized_runs(_QUOTED_PATTERN.sub(" , ", query)))
    names += sorted(runs, key=len, reverse=True)
    return list(dict.fromkeys(names))[:_MAX_NAMES]


def relax_query(query: str) -> list[tuple[str, ...]]:
    """Sets of words to search for, one after the other: all telling ones, those of names, then the most telling."""
    words = extract_words(query)
    telling = [word for word in words if word.lower() not in STOP_WORDS] or words
    names = [{word.lower() for word in extract_words(name)} for name in extract_names(query)]
    # A short query that is no question counts as a name, but says nothing of its words.
    named = [name for name in names if not name.issuperset(word.lower() for word in telling)]
    of_names = frozenset[str]().union(*named)
    ranked = sorted(telling, key=lambda word: (word.lower() not in of_names, not word[0].isdigit(), -len(word)))
    halves = [frozenset(ranked[: len(ranked) >> times]) for times in range(1, len(ranked).bit_length())]
    word_sets = [
        frozenset(telling),
        *(frozenset(w for w in telling if w.lower() in some) for some in (of_names, *named)),
    ]
    queries = [tuple(word for word in telling if word in some) for some in (*word_sets, *halves)]
    return [query for query in dict.fromkeys(queries) if query][:MAX_QUERIES]


def _is_question(text: str) -> bool:
    """Whether a text reads as a question; titles such as In Heaven have capitals only."""
    first, *others = text.split()
    begins = first.lower() in STOP_WORDS and first.lower() not in {"a", "the", "all", "my"} and text[:1].isupper()
    return begins and any(word[:1].islower() and word not in _CONNECTIVES for word in others)


def _extract_capitalized_runs(query: str) -> Iterator[str]:
    """Runs of words with capitals, small words inside them allowed; with those also the parts between them."""
    run: list[str] = []
    before = "."
    for part in [*_TOKEN_PATTERN.findall(query), ","]:
        word = _POSSESSIVE_SUFFIX.sub("", part)
        capital = word[:1].isupper() or (word[:1].isdigit() and bool(run))
        # Within a sentence even a small word with a capital begins a name: the film In Heaven.
        within = before not in {".", "?", "!"} and word != "I"
        begins = capital and (word.lower() not in STOP_WORDS or word in _ARTICLES or within)
        before = part
        if begins or (run and (capital or word in _CONNECTIVES)):
            run.append(word)
        else:
            yield from _name_variants(run)
            run = []
        if part != word:
            yield from _name_variants(run)
            run = []


def _name_variants(run: list[str]) -> Iterator[str]:
    while run and run[-1] in _CONNECTIVES:
        run = run[:-1]
    without = run[1:] if run and run[0] in _ARTICLES else run
    if not without:
        return
    yield " ".join(run)
    yield " ".join(without)
    parts = re.split(r" (?:and|in|at|for|on|to) ", " ".join(run))
    if len(parts) > 1:
        yield from parts


_MAX_NAME_MATCHES = 3
_MAX_DESCRIPTION_LENGTH = 160
_MAX_SNIPPET_LENGTH = 300
_MAX_CHOICES = 20


class MediaWikiText:
    """A wiki behind its api.php; safe to share between threads."""

    def __init__(self, api: str, language: str, door: RecordingHttpClient) -> None:
        self._door = door
        self._api = WikiApi(api, language, door)
        self._language = language

    def search(self, query: str, k: int) -> list[SearchHit]:
        """The k best articles: of exactly a name in the query, then with all its words, then with ever fewer."""
        query = replace_surrogates(query)
        if k < 1 or not extract_words(query):
            return []
        with self._door.shared_deadline():
            return self._search(query, k)

    def _search(self, query: str, k: int) -> list[SearchHit]:
        ranking = _SearchRanking()
        names = extract_names(query)
        named = self._api.load_properties([spelling for name in names for spelling in _title_variants(name)])
        ranking.add([WikiSearchHit(page.title, "") for page in named.values()][:_MAX_NAME_MATCHES], complete=False)
        for number, words in enumerate(relax_query(query)):
            if number == 1:
                self._add_title_matches(ranking, names, k)
            # A single common word finds anything; it is asked for where nothing else was found.
            if len(ranking.titles) >= k or (ranking.titles and len(words) == 1 and words[0] not in names):
                break
            ranking.add(self._api.search(" ".join(words), "text", k), complete=number == 0)
        pages = {page.title: page for page in named.values()}
        pages |= self._api.load_properties([title for title in ranking.titles if title not in pages])
        return ranking.hits(pages)[:k]

    def article(self, title: str) -> Article:
        """The article of that title, redirects followed; AmbiguousTitle for a disambiguation page."""
        with self._door.shared_deadline():
            return self._load_article(replace_surrogates(title).strip())

    def _load_article(self, title: str) -> Article:
        parsed = self._fetch_page(title) or self._fetch_nearest_page(title)
        if parsed is None:
            near = ", ".join(repr(hit.title) for hit in self.search(title, 3))
            advice = f"; the nearest are {near}" if near else ""
            raise NotFound(f"There is no article titled {_truncate(title, MAX_TITLE_BYTES)!r}{advice}.")
        resolved_title, properties = parsed.title, parsed.properties
        page = parse_page(parsed.text, self._language)
        # What no extension works out while a page is rendered, only the table of properties knows.
        page_properties = (
            self._api.load_properties([resolved_title]).get(resolved_title)
            if "wikibase_item" not in properties
            else None
        )
        lists_names = (
            page.is_disambiguation
            or "disambiguation" in properties
            or bool(page_properties and page_properties.is_disambiguation)
        )
        item = page_properties.item if page_properties else properties.get("wikibase_item")
        if lists_names and page.choices:
            raise AmbiguousTitle(resolved_title, self._list_choices(page))
        redirected = next((step.source for step in parsed.redirects), None)
        return Article(resolved_title, page.sentences, item, page.sections, redirected=redirected)

    def find_item(self, title: str) -> str | None:
        """The entity id of the article; None if the wiki has none, NotFound without an article."""
        title = replace_surrogates(title).strip()
        with self._door.shared_deadline():
            page = self._api.load_properties([title]).get(title)
            if page is None or page.is_disambiguation:
                return self._load_article(title).entity
            return page.item

    def _fetch_page(self, title: str) -> ParsedWikiPage | None:
        if not title or len(title.encode()) > MAX_TITLE_BYTES:
            return None
        return self._api.request(
            {
                "action": "parse",
                "page": title,
                "prop": "text|properties",
                "redirects": 1,
                "disableeditsection": 1,
                "disablelimitreport": 1,
                "disabletoc": 1,
            },
            ParseResponse,
        ).parse

    def _fetch_nearest_page(self, title: str) -> ParsedWikiPage | None:
        """The page whose title differs in case only."""
        spelled = " ".join(title.replace("_", " ").split())
        if not extract_words(spelled) or len(spelled.encode()) > MAX_TITLE_BYTES:
            return None
        # The wiki tries each word with a capital, but not a whole title in capitals with fewer of them.
        for spelling in dict.fromkeys((spelled, spelled.lower())):
            if near := self._api.search(spelling, "nearmatch", 1):
                return self._fetch_page(near[0].title)
        return None

    def _list_choices(self, page: WikiPage) -> list[SearchHit]:
        choices: dict[str, DisambiguationChoice] = {}
        for choice in page.choices:
            choices.setdefault(choice.title, choice)
        shortlist = list(choices.values())[:_MAX_CHOICES]
        pages = self._api.load_properties([choice.title for choice in shortlist])
        hits = []
        for choice in shortlist:
            properties = pages.get(choice.title)
            description = choice.description or (properties.description if properties else None)
            hits.append(
                SearchHit(
                    choice.title, choice.description, properties.item if properties else None, description=description
                )
            )
        return hits

    @functools.cached_property
    def _has_title_search(self) -> bool:
        return self._api.has_title_search()

    def _add_title_matches(self, ranking: "_SearchRanking", names: Sequence[str], k: int) -> None:
        """Articles with a name of the query in their titles."""
        if not self._has_title_search:
            return
        for name in names[:2]:
            ranking.add(self._api.search(" ".join(extract_words(name)), "title", k), complete=False)


class _SearchRanking:
    """The titles found so far, best first, and which of them have every word."""

    def __init__(self) -> None:
        self._snippets: dict[str, str] = {}
        self._complete: set[str] = set()

    @property
    def titles(self) -> list[str]:
        return list(self._snippets)

    def add(self, hits: Iterable[WikiSearchHit], *, complete: bool) -> None:
        """Put what was found after the rest; `complete` when it has every word of the query."""
        for hit in hits:
            self._snippets[hit.title] = self._snippets.get(hit.title) or hit.snippet
            if complete:
                self._complete.add(hit.title)

    def hits(self, pages: Mapping[str, WikiPageProperties]) -> list[SearchHit]:
        """One hit a page: a redirect that was found stands for the page that it leads to."""
        hits: dict[str, SearchHit] = {}
        for title, snippet in self._snippets.items():
            page = pages.get(title) or WikiPageProperties(title)
            if page.title in hits:
                continue
            hits[page.title] = SearchHit(
                page.title,
                _truncate(self._snippets.get(page.title) or snippet or page.extract or "", _MAX_SNIPPET_LENGTH),
                page.item,
                round(1 / (1 + len(hits)), 3),
                not {title, page.title} & self._complete,
                _describe_page(page, snippet),
            )
        return list(hits.values())


def _describe_page(page: WikiPageProperties, snippet: str) -> str | None:
    """What the page is about: as the wiki describes it, else its first sentence unless that is shown already."""
    if page.is_disambiguation:
        return "several things are called so"
    if page.description or not page.extract or not snippet:
        return page.description
    first = split_sentences(page.extract)[0]
    return None if snippet.startswith(first[:_MAX_DESCRIPTION_LENGTH]) else _truncate(first, _MAX_DESCRIPTION_LENGTH)


def _title_variants(name: str) -> list[str]:
    """The ways in which a title of that name may be written."""
    return [name] if name != name.lower() else [name, name.title()]


def _truncate(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"
