"""Tokenize SPARQL, so that a query can be edited without a full parse."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, takewhile

from worlds.source import QueryRefused

_TOKEN_PATTERN = re.compile(
    r"""
      (?P<text> \"\"\"(?:[^"\\]|\\.|"(?!""))*\"\"\" | '''(?:[^'\\]|\\.|'(?!''))*'''
        | "(?:[^"\\\r\n]|\\.)*" | '(?:[^'\\\r\n]|\\.)*' )
    | (?P<iri> <(?:[^<>"{}|^`\\\x00-\x20]|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*> )
    | (?P<blank> \s+ | \#[^\r\n]* )
    | (?P<variable> [?$]\w+ )
    | (?P<name> (?:[^\W\d_](?:[\w.-]*[\w-])?)?:(?:[\w:%-]|\\.|\.(?=[\w:%.\\-]))* )
    | (?P<word> [^\W\d]\w* )
    | (?P<number> \d+ )
    | (?P<sign> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE_PATTERN = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")
_OPENING_BRACKETS, _CLOSING_BRACKETS = "{([", "})]"


@dataclass(frozen=True, slots=True)
class SparqlToken:
    """A piece of a query with its place; `depth` counts the brackets around it."""

    kind: str
    text: str
    start: int
    end: int
    depth: int

    def is_keyword(self, word: str) -> bool:
        """Whether it is that keyword, case aside."""
        return self.kind == "word" and self.text.casefold() == word


@dataclass(frozen=True, slots=True)
class TokenizedQuery:
    """A SELECT or ASK as text, with what stands where in it."""

    text: str
    tokens: tuple[SparqlToken, ...]
    """Without spaces and comments."""
    form: str
    """SELECT or ASK."""
    declared_prefixes: dict[str, str]
    """The prefixes that it declares, with their IRIs."""

    @property
    def where_span(self) -> tuple[int, int] | None:
        """The numbers of the tokens that open and close its WHERE; None where it is not whole."""
        first = next((n for n, t in enumerate(self.tokens) if t.text == "{" and t.depth == 0), None)
        if first is None:
            return None
        last = next((n for n, t in enumerate(self.tokens) if n > first and t.text == "}" and t.depth == 0), None)
        return None if last is None else (first, last)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that a SELECT names; () of one that takes all there are."""
        first = next(n for n, token in enumerate(self.tokens) if token.is_keyword(self.form.casefold()))
        head = list(takewhile(lambda token: token.text != "{", self.tokens[first:]))
        named = (t for before, t in pairwise(head) if t.depth == 0 or (t.depth == 1 and before.is_keyword("as")))
        return tuple(token.text[1:] for token in named if token.kind == "variable")


def tokenize_query(sparql: str) -> TokenizedQuery:
    """The query's pieces; QueryRefused for anything that does not begin as a SELECT or an ASK does."""
    tokens = tuple(_iter_tokens(sparql))
    declared: dict[str, str] = {}
    place = 0
    while place < len(tokens):
        token, *then = tokens[place : place + 3]
        if token.is_keyword("base") and [t.kind for t in then[:1]] == ["iri"]:
            place += 2
        elif token.is_keyword("prefix") and [t.kind for t in then] == ["name", "iri"]:
            declared[then[0].text.removesuffix(":")] = then[1].text[1:-1]
            place += 3
        else:
            break
    form = tokens[place].text.upper() if place < len(tokens) else ""
    if form not in {"SELECT", "ASK"}:
        raise QueryRefused(_unsupported_form_message(form))
    return TokenizedQuery(sparql, tokens, form, declared)


def decode_escapes(sparql: str) -> str:
    r"""The query with \u0041 and its like written out, which some servers do before they look for anything in it."""

    def character(match: re.Match[str]) -> str:
        number = int(match[1] or match[2], 16)
        return chr(number) if number < 0x110000 else match[0]

    return _ESCAPE_PATTERN.sub(character, sparql)


def _iter_tokens(sparql: str) -> Iterator[SparqlToken]:
    depth = 0
    for match in _TOKEN_PATTERN.finditer(sparql):
        kind, text = str(match.lastgroup), match[0]
        if kind == "blank":
            continue
        depth -= text in _CLOSING_BRACKETS
        yield SparqlToken(kind, text, match.start(), match.end(), depth)
        depth += text in _OPENING_BRACKETS


def _unsupported_form_message(form: str) -> str:
    if form in {"CONSTRUCT", "DESCRIBE"}:
        return "Only SELECT and ASK are answered; CONSTRUCT and DESCRIBE are not; SELECT the values instead."
    if not form:
        return "The query is no valid SELECT or ASK: it is empty; write one that begins with SELECT or ASK."
    return (
        f"The query is no valid SELECT or ASK: it begins with {form[:40]!r} (1:1, line:column). "
        "Let it begin with SELECT or ASK, after BASE and PREFIX if there are any."
    )
