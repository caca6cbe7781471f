"""The articles of Wikipedia, or of any MediaWiki, as a text source.

A question is reduced to search words, since the wiki's search requires every word and ignores grammar.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from showhow.guard.worker import WorkFailed
from showhow.worlds.live.http.client import RecordingHttpClient
from showhow.worlds.live.wiki.api import (
    MAX_TITLE_BYTES,
    ParsedWikiPage,
    ParseResponse,
    WikiApi,
    WikiPageProperties,
    WikiSearchHit,
)
from showhow.worlds.live.wiki.page import DisambiguationChoice, WikiPage, read_page
from showhow.worlds.sentences import split_sentences
from showhow.worlds.source import AmbiguousTitle, Article, NotFound, SearchHit, SourceTimeout
from showhow.worlds.text_normalization import STOP_WORDS, replace_surrogates, truncate_text

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
"""Words in lower case that may occur inside names."""
_ARTICLES = frozenset({"The", "A", "An"})
_NAME_WORD = r"[^\W\d_a-z][\w'’.-]*"
_LATER_WORD = r"[^\W_a-z][\w'’.-]*"
_NAME_MARK = r"[,:;!?] | [–—-] |[–—]| \("
_MARKED_NAME_PATTERN = re.compile(
    rf"(?<!\w){_NAME_WORD}(?:(?:{_NAME_MARK}|\s)(?:(?:{'|'.join(sorted(_CONNECTIVES - {'&'}))})\s)*{_LATER_WORD})*\)?"
)
"""A run of capitalized words with the marks inside it: Sleep, My Love; Alien: Covenant; Dollar (1938 Film)."""


def extract_words(text: str) -> list[str]:
    """The distinct words of a text in their order; AND, OR and NOT in lower case, so that they are no operators."""
    words = (_POSSESSIVE_SUFFIX.sub("", word) for word in _WORD_PATTERN.findall(text))
    short_words = (word for word in words if len(word) <= _MAX_WORD_LENGTH)
    distinct = dict.fromkeys(word.lower() if word in {"AND", "OR", "NOT"} else word for word in short_words)
    return list(distinct)[:_MAX_WORDS]


def extract_names(query: str) -> list[str]:
    """The names that a query may contain: quoted texts, a short query itself, then capitalized runs, longest first."""
    names = [" ".join(quoted.split()) for quoted in _QUOTED_PATTERN.findall(query)]
    bare = " ".join(query.split()).strip(" ?!.\"“”'")
    if bare and len(bare.split()) <= _MAX_TITLE_WORDS and not _is_question(bare):
        names.append(bare)
    runs = list(_extract_capitalized_runs(_QUOTED_PATTERN.sub(" , ", query)))
    names += sorted([*_extract_marked_names(query), *runs], key=len, reverse=True)
    return list(dict.fromkeys(names))[:_MAX_NAMES]


def relax_query(query: str) -> list[tuple[str, ...]]:
    """Word sets to search for in turn: all content words, those of names, then ever fewer of the most specific."""
    words = extract_words(query)
    content_words = [word for word in words if word.lower() not in STOP_WORDS] or words
    all_names = [{word.lower() for word in extract_words(name)} for name in extract_names(query)]
    # A name that is the whole query does not rank its words.
    names = [name for name in all_names if not name.issuperset(word.lower() for word in content_words)]
    name_words = frozenset[str]().union(*names)
    ranked = sorted(content_words, key=lambda word: (word.lower() not in name_words, not word[0].isdigit(), -len(word)))
    halves = [frozenset(ranked[: len(ranked) >> times]) for times in range(1, len(ranked).bit_length())]
    word_sets = [
        frozenset(content_words),
        *(frozenset(w for w in content_words if w.lower() in subset) for subset in (name_words, *names)),
    ]
    queries = [tuple(word for word in content_words if word in subset) for subset in (*word_sets, *halves)]
    return [query for query in dict.fromkeys(queries) if query][:MAX_QUERIES]


def _is_question(text: str) -> bool:
    """Whether a text reads as a question: a capitalized stop word with words in lower case after it.

    A title such as In Heaven has none.
    """
    first, *others = text.split()
    has_question_start = (
        first.lower() in STOP_WORDS and first.lower() not in {"a", "the", "all", "my"} and text[:1].isupper()
    )
    return has_question_start and any(word[:1].islower() and word not in _CONNECTIVES for word in others)


def _extract_capitalized_runs(query: str) -> Iterator[str]:
    """Runs of capitalized words, which may include connectives, and the parts between the connectives."""
    run: list[str] = []
    previous = "."
    for token in [*_TOKEN_PATTERN.findall(query), ","]:
        word = _POSSESSIVE_SUFFIX.sub("", token)
        is_capitalized = word[:1].isupper() or (word[:1].isdigit() and bool(run))
        # Inside a sentence a capitalized stop word also starts a name, such as In Heaven.
        is_inside_sentence = previous not in {".", "?", "!"} and word != "I"
        starts_name = is_capitalized and (word.lower() not in STOP_WORDS or word in _ARTICLES or is_inside_sentence)
        previous = token
        if starts_name or (run and (is_capitalized or word in _CONNECTIVES)):
            run.append(word)
        else:
            yield from _name_variants(run)
            run = []
        if token != word:
            yield from _name_variants(run)
            run = []


def _extract_marked_names(query: str) -> Iterator[str]:
    """The runs of capitalized words with a mark inside, as they are written, whole and parted at "and"."""
    for match in _MARKED_NAME_PATTERN.finditer(query):
        first, _, rest = match.group().partition(" ")
        is_opening = match.start() == 0 and first.lower() in STOP_WORDS and first not in _ARTICLES
        whole = rest if is_opening else match.group()
        for name in dict.fromkeys((whole, *whole.split(" and "))):
            text = _POSSESSIVE_SUFFIX.sub("", name if "(" in name else name.removesuffix(")"))
            if re.search(rf"{_NAME_MARK}|\.(?!$)", text):
                yield text


def _name_variants(run: list[str]) -> Iterator[str]:
    while run and run[-1] in _CONNECTIVES:
        run = run[:-1]
    without_article = run[1:] if run and run[0] in _ARTICLES else run
    if not without_article:
        return
    yield " ".join(run)
    yield " ".join(without_article)
    parts = re.split(r" (?:and|in|at|for|on|to) ", " ".join(run))
    if len(parts) > 1:
        yield from parts


_MAX_NAME_MATCHES = 3
_MAX_DESCRIPTION_LENGTH = 160
_MAX_SNIPPET_LENGTH = 300
_MAX_CHOICES = 20


class MediaWikiText:
    """The articles of a wiki, through its api.php; thread-safe."""

    def __init__(self, api: str, language: str, http_client: RecordingHttpClient) -> None:
        self._http_client = http_client
        self._api = WikiApi(api, language, http_client)
        self._language = language

    def search(self, query: str, k: int) -> list[SearchHit]:
        """The k best articles: titles equal to a name in the query, then matches of all its words, then of fewer."""
        query = replace_surrogates(query)
        if k < 1 or not extract_words(query):
            return []
        with self._http_client.shared_deadline():
            return self._search(query, k)

    def _search(self, query: str, k: int) -> list[SearchHit]:
        ranking = _SearchRanking()
        names = extract_names(query)
        pages_by_name = self._api.load_properties([variant for name in names for variant in _title_variants(name)])
        exact_matches = [WikiSearchHit(page.title, "") for page in pages_by_name.values()][:_MAX_NAME_MATCHES]
        ranking.add(exact_matches, complete=False)
        for number, words in enumerate(relax_query(query)):
            if number == 1:
                self._add_title_matches(ranking, names, k)
            # A single common word matches anything; it is searched only if there are no other results.
            if len(ranking.titles) >= k or (ranking.titles and len(words) == 1 and words[0] not in names):
                break
            ranking.add(self._api.search(" ".join(words), "text", k), complete=number == 0)
        pages = {page.title: page for page in pages_by_name.values()}
        pages |= self._api.load_properties([title for title in ranking.titles if title not in pages])
        return ranking.hits(pages)[:k]

    def article(self, title: str) -> Article:
        """The article with this title, redirects followed; AmbiguousTitle for a disambiguation page."""
        with self._http_client.shared_deadline():
            return self._load_article(replace_surrogates(title).strip())

    def _load_article(self, title: str) -> Article:
        parsed = self._fetch_page(title) or self._fetch_nearest_page(title)
        if parsed is None:
            nearest = ", ".join(repr(hit.title) for hit in self.search(title, 3))
            advice = f"; the nearest are {nearest}" if nearest else ""
            raise NotFound(f"There is no article titled {truncate_text(title, MAX_TITLE_BYTES)!r}{advice}.")
        resolved_title, properties = parsed.title, parsed.properties
        try:
            page = read_page(parsed.text, self._language)
        except WorkFailed as error:
            raise SourceTimeout(
                f"The article {resolved_title!r} could not be parsed: {error}; read another one."
            ) from None
        # Properties that are not computed while the page is rendered are in the wiki's table of properties only.
        page_properties = (
            self._api.load_properties([resolved_title]).get(resolved_title)
            if "wikibase_item" not in properties
            else None
        )
        is_disambiguation = (
            page.is_disambiguation
            or "disambiguation" in properties
            or bool(page_properties and page_properties.is_disambiguation)
        )
        item = page_properties.item if page_properties else properties.get("wikibase_item")
        if is_disambiguation and page.choices:
            raise AmbiguousTitle(resolved_title, self._list_choices(page))
        redirected = next((redirect.source for redirect in parsed.redirects), None)
        return Article(resolved_title, page.sentences, item, page.sections, redirected=redirected)

    def find_item(self, title: str) -> str | None:
        """The entity id of the article; None if the wiki has none, NotFound if there is no article."""
        title = replace_surrogates(title).strip()
        with self._http_client.shared_deadline():
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
        spaced = " ".join(title.replace("_", " ").split())
        if not extract_words(spaced) or len(spaced.encode()) > MAX_TITLE_BYTES:
            return None
        # The wiki tries to capitalize each word, but does not lower a title in capitals.
        for variant in dict.fromkeys((spaced, spaced.lower())):
            if hits := self._api.search(variant, "nearmatch", 1):
                return self._fetch_page(hits[0].title)
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
        """Add articles whose titles contain a name of the query."""
        if not self._has_title_search:
            return
        for name in names[:2]:
            ranking.add(self._api.search(" ".join(extract_words(name)), "title", k), complete=False)


class _SearchRanking:
    """The titles of all results so far, best first, and which of them contain every word."""

    def __init__(self) -> None:
        self._snippets: dict[str, str] = {}
        self._complete: set[str] = set()

    @property
    def titles(self) -> list[str]:
        return list(self._snippets)

    def add(self, hits: Iterable[WikiSearchHit], *, complete: bool) -> None:
        """Append results; `complete` if they contain every word of the query."""
        for hit in hits:
            self._snippets[hit.title] = self._snippets.get(hit.title) or hit.snippet
            if complete:
                self._complete.add(hit.title)

    def hits(self, pages: Mapping[str, WikiPageProperties]) -> list[SearchHit]:
        """One hit per page; a redirect counts as its target."""
        hits: dict[str, SearchHit] = {}
        for title, snippet in self._snippets.items():
            page = pages.get(title) or WikiPageProperties(title)
            if page.title in hits:
                continue
            hits[page.title] = SearchHit(
                page.title,
                truncate_text(self._snippets.get(page.title) or snippet or page.extract or "", _MAX_SNIPPET_LENGTH),
                page.item,
                round(1 / (1 + len(hits)), 3),
                not {title, page.title} & self._complete,
                _describe_page(page, snippet),
            )
        return list(hits.values())


def _describe_page(page: WikiPageProperties, snippet: str) -> str | None:
    """The wiki's description of the page, else its first sentence unless the snippet shows it."""
    if page.is_disambiguation:
        return "several meanings of this title"
    if page.description or not page.extract or not snippet:
        return page.description
    first = split_sentences(page.extract)[0]
    return (
        None if snippet.startswith(first[:_MAX_DESCRIPTION_LENGTH]) else truncate_text(first, _MAX_DESCRIPTION_LENGTH)
    )


def _title_variants(name: str) -> list[str]:
    """The name as a title; a name in lower case also with capitals."""
    return [name] if name != name.lower() else [name, name.title()]
