"""Find entities by name with queries for labels, aliases and titles."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from worlds import terms
from worlds.live.sparql.protocol import SparqlClient
from worlds.text_normalization import normalize_name, replace_surrogates

_MAX_MATCHES = 200
"""Names that are looked at, the shortest first."""
_WORD = re.compile(r"\w+")
_MAX_NAME_WORDS = 16
_MAX_NAME_LENGTH = 500
"""Maximum length of a name; longer text would not fit into a query."""
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Nobody's name has them, and a server written in C ends the query at the first zero."""
_NAME_PREDICATES = ((terms.RDFS_LABEL, 0), (terms.SKOS_ALT_LABEL, 2))


class EntityFinder(Protocol):
    def find(self, name: str, k: int) -> list[str]:
        """At most k IRIs by name, best match first."""


@dataclass(frozen=True, slots=True)
class _NameMatch:
    iri: str
    text: str
    kind: int


class SparqlNameSearch:
    """Finds IRIs by name: first by exact match, then by words in any case."""

    def __init__(self, protocol: SparqlClient) -> None:
        self._protocol = protocol
        self._endpoint = protocol.endpoint

    def find(self, name: str, k: int) -> list[str]:
        """At most k IRIs by name, best match first."""
        name = _clean_name(name)
        words = _WORD.findall(normalize_name(name))[:_MAX_NAME_WORDS]
        if not name or k < 1:
            return []
        iris = dict.fromkeys(self._rank_matches(name, self._match_exactly(name)))
        if len(iris) < k and words and self._endpoint.search == "scan":
            iris |= dict.fromkeys(self._rank_matches(name, self._match_words(words)))
        return list(iris)[:k]

    def find_by_title(self, title: str) -> list[str]:
        """The IRIs of what the article of that title is about."""
        title = _clean_name(title)
        if not title:
            return []
        rows = self._select_rows(
            f"SELECT ?s WHERE {{ VALUES ?page {{ {' '.join(self._page_iris(title))} }} ?page {_ABOUT_PREDICATE} ?s }}"
        )
        if not rows and self._endpoint.search == "scan":
            suffix = _quote_literal(
                f"/wiki/{terms.page_iri_from_title(normalize_name(title)).removeprefix(terms.ARTICLE_NAMESPACE)}".casefold()
            )
            rows = self._select_rows(
                f"SELECT ?s WHERE {{ ?page {_ABOUT_PREDICATE} ?s "
                f"FILTER(STRENDS(LCASE(STR(?page)), {suffix})) }} LIMIT 5"
            )
        return list(dict.fromkeys(row[0] for row in rows))

    def find_by_label(self, name: str) -> list[str]:
        """The IRIs of what has exactly that label."""
        name = _clean_name(name)
        return list(dict.fromkeys(one.iri for one in self._match_exactly(name) if one.kind == 0)) if name else []

    def _page_iris(self, title: str) -> Iterator[str]:
        spaced = " ".join(title.replace("_", " ").split())
        for spelled in dict.fromkeys((spaced, spaced[:1].upper() + spaced[1:])):
            name = terms.page_iri_from_title(spelled).removeprefix(terms.ARTICLE_NAMESPACE)
            yield f"<{self._endpoint.articles or terms.ARTICLE_NAMESPACE}{name}>"

    def _match_exactly(self, name: str) -> list[_NameMatch]:
        texts = " ".join(_quote_literal(name) + tag for tag in self._language_tags())
        ways = " UNION ".join(
            f"{{ VALUES ?name {{ {texts} }} ?s <{predicate}> ?name BIND({kind} AS ?kind) }}"
            for predicate, kind in _NAME_PREDICATES
        )
        pages = " ".join(self._page_iris(name))
        titled = (
            f"{{ VALUES ?page {{ {pages} }} ?page {_ABOUT_PREDICATE} ?s "
            f"BIND({_quote_literal(name)} AS ?name) BIND(1 AS ?kind) }}"
        )
        return self._select_names(f"SELECT ?s ?name ?kind WHERE {{ {ways} UNION {titled} }} LIMIT {_MAX_MATCHES}")

    def _language_tags(self) -> Iterator[str]:
        for language in dict.fromkeys((self._endpoint.language, "mul", "")):
            yield f"@{language}" if language else ""

    def _match_words(self, words: list[str]) -> list[_NameMatch]:
        tests = " && ".join(f"CONTAINS(LCASE(STR(?name)), {_quote_literal(word)})" for word in words)
        ways = " UNION ".join(
            f"{{ ?s <{predicate}> ?name BIND({kind} AS ?kind) }}" for predicate, kind in _NAME_PREDICATES
        )
        names = self._select_names(
            f"SELECT ?s ?name ?kind WHERE {{ {ways} FILTER({tests}) }} ORDER BY STRLEN(STR(?name)) LIMIT {_MAX_MATCHES}"
        )
        return [one for one in names if _contains_words(one.text, words)]

    def _select_names(self, sparql: str) -> list[_NameMatch]:
        return [_NameMatch(iri, name, int(kind)) for iri, name, kind in self._select_rows(sparql)]

    def _select_rows(self, sparql: str) -> list[tuple[str, ...]]:
        rows = self._protocol.select(sparql).rows
        return [
            tuple(cell.value for cell in row if cell is not None)
            for row in rows
            if row[0] is not None and row[0].kind == "iri" and None not in row
        ]

    def _rank_matches(self, name: str, matches: list[_NameMatch]) -> list[str]:
        normalized = normalize_name(name)

        def place(one: _NameMatch) -> tuple[bool, bool, int, int, str]:
            spelled = normalize_name(one.text)
            return spelled != normalized, not spelled.startswith(normalized), one.kind, len(spelled), one.iri

        return [one.iri for one in sorted(matches, key=place)]


_ABOUT_PREDICATE = f"<{terms.SCHEMA_ABOUT}>"


def _clean_name(name: str) -> str:
    """The name as it can be queried; "" if it is not a name."""
    name = _CONTROL_CHARACTERS.sub(" ", replace_surrogates(name)).strip()
    return name if len(name) <= _MAX_NAME_LENGTH else ""


def _contains_words(text: str, words: list[str]) -> bool:
    """Whether the text has these words; the last one may be a prefix."""
    text_words = _WORD.findall(normalize_name(text))
    return set(words[:-1]) <= set(text_words) and any(word.startswith(words[-1]) for word in text_words)


def _quote_literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + '"'
