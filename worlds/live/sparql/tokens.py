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
    """A token of a query; `start` and `end` are positions in the text, `depth` counts the enclosing brackets."""

    kind: str
    text: str
    start: int
    end: int
    depth: int

    def is_keyword(self, word: str) -> bool:
        """Whether it is this keyword, ignoring case; `word` is in lower case."""
        return self.kind == "word" and self.text.casefold() == word


@dataclass(frozen=True, slots=True)
class TokenizedQuery:
    """The text of a SELECT or ASK with its tokens."""

    text: str
    tokens: tuple[SparqlToken, ...]
    """Without whitespace and comments."""
    form: str
    """SELECT or ASK."""
    declared_prefixes: dict[str, str]
    """The IRIs of the declared prefixes."""

    @property
    def where_span(self) -> tuple[int, int] | None:
        """The indexes of the tokens that open and close its WHERE; None if a bracket is missing."""
        first = next((n for n, t in enumerate(self.tokens) if t.text == "{" and t.depth == 0), None)
        if first is None:
            return None
        last = next((n for n, t in enumerate(self.tokens) if n > first and t.text == "}" and t.depth == 0), None)
        return None if last is None else (first, last)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a SELECT lists; () for SELECT *."""
        first = next(n for n, token in enumerate(self.tokens) if token.is_keyword(self.form.casefold()))
        head = list(takewhile(lambda token: token.text != "{", self.tokens[first:]))
        listed = (t for before, t in pairwise(head) if t.depth == 0 or (t.depth == 1 and before.is_keyword("as")))
        return tuple(token.text[1:] for token in listed if token.kind == "variable")


def tokenize_query(sparql: str) -> TokenizedQuery:
    """Tokenize a query; QueryRefused unless it begins as a SELECT or an ASK."""
    tokens = tuple(_iter_tokens(sparql))
    declared_prefixes: dict[str, str] = {}
    index = 0
    while index < len(tokens):
        token, *following = tokens[index : index + 3]
        if token.is_keyword("base") and [t.kind for t in following[:1]] == ["iri"]:
            index += 2
        elif token.is_keyword("prefix") and [t.kind for t in following] == ["name", "iri"]:
            declared_prefixes[following[0].text.removesuffix(":")] = following[1].text[1:-1]
            index += 3
        else:
            break
    form = tokens[index].text.upper() if index < len(tokens) else ""
    if form not in {"SELECT", "ASK"}:
        raise QueryRefused(_unsupported_form_message(form))
    return TokenizedQuery(sparql, tokens, form, declared_prefixes)


def decode_escapes(sparql: str) -> str:
    r"""The query with escapes such as \u0041 decoded, as some servers do before they parse it."""

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
        return "The query is not a valid SELECT or ASK: it is empty; write one that begins with SELECT or ASK."
    return (
        f"The query is not a valid SELECT or ASK: it begins with {form[:40]!r} (1:1, line:column). "
        "Begin it with SELECT or ASK, after BASE and PREFIX if there are any."
    )
