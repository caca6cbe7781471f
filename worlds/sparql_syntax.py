"""The syntax of SPARQL without a full parse: queries that are refused, tokens to edit a query by, and literals."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, takewhile

from showhow.worlds.source import QueryRefused

MAX_QUERY_LENGTH = 100_000

# Tokens that may contain the letters "service" without being the keyword. The parser needs no space around keywords
# ("5SERVICE", "SERVICEex:a"), so a prefix before a colon stays and the rest is searched for the letters, not the word.
_IGNORED_TOKENS = re.compile(
    r"""
    \"\"\"(?:[^"\\]|\\.|"(?!""))*\"\"\" | '''(?:[^'\\]|\\.|'(?!''))*'''
    | "(?:[^"\\\r\n]|\\.)*" | '(?:[^'\\\r\n]|\\.)*'
    | <(?:[^<>"{}|^`\\\x00-\x20]|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*>
    | \\.
    | \#[^\r\n]*
    | [?$][A-Za-z0-9_]+
    | :[A-Za-z0-9_%-]+
    """,
    re.VERBOSE | re.DOTALL,
)
_LABEL_SERVICE_PATTERN = re.compile(
    r"service\s+(?:silent\s+)?(?:wikibase:label|<http://wikiba\.se/ontology#label>)", re.IGNORECASE
)
_CHARACTER_CLASSES = re.compile(r",? ?\[(?:[^\[\]']|'[^']*')*\]")
_WORD_PATTERN = re.compile(r"[\w.-]+")
_QUERY_KEYWORDS = {"select", "ask", "construct", "describe"}
UPDATE_KEYWORDS = {"insert", "delete", "load", "clear", "drop", "create", "add", "move", "copy", "with"}


def check_query(sparql: str) -> None:
    """QueryRefused if the query exceeds MAX_QUERY_LENGTH, updates the graph or may call another server."""
    if len(sparql) > MAX_QUERY_LENGTH:
        raise QueryRefused(f"The query has {len(sparql):,} characters; the limit is {MAX_QUERY_LENGTH:,}.")
    if any("\ud800" <= character <= "\udfff" for character in sparql):
        raise QueryRefused("The query contains half of a surrogate pair; write it in UTF-8.")
    bare = _IGNORED_TOKENS.sub(" ", sparql)
    if _first_keyword(bare) in UPDATE_KEYWORDS:
        raise QueryRefused("The query would change the graph, which is read-only; only SELECT and ASK are answered.")
    if "service" in bare.casefold():
        if _LABEL_SERVICE_PATTERN.search(sparql):
            raise QueryRefused(
                "SERVICE wikibase:label exists on query.wikidata.org only; leave it out and use getLabel on the ids, "
                "or ask for ?x rdfs:label ?label."
            )
        raise QueryRefused("The query calls another server with SERVICE; ask this world's own graph without it.")


def shorten_parser_message(message: str) -> str:
    """The message of Oxigraph's parser without its list of expected characters."""
    return _CHARACTER_CLASSES.sub("", message)


def _first_keyword(bare: str) -> str | None:
    """The first keyword of the query, for the error message; the parser itself accepts no update."""
    previous_word = ""
    for match in _WORD_PATTERN.finditer(bare):
        word = match[0].casefold()
        if word in _QUERY_KEYWORDS | UPDATE_KEYWORDS and previous_word != "prefix":
            return word
        previous_word = word
    return None


def quote_literal(text: str) -> str:
    """A text as a literal of SPARQL, with everything escaped that could end it."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(escapes.get(character, character) for character in text) + '"'


_TOKEN_PATTERN = re.compile(
    r"""
      (?P<text> \"\"\"(?:[^"\\]|\\.|"(?!""))*\"\"\" | '''(?:[^'\\]|\\.|'(?!''))*'''
        | "(?:[^"\\\r\n]|\\.)*+"? | '(?:[^'\\\r\n]|\\.)*+'? )
    | (?P<iri> <(?:[^<>"{}|^`\\\x00-\x20]|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*> )
    | (?P<blank> \s+ | \#[^\r\n]* )
    | (?P<variable> [?$]\w+ )
    | (?P<name> (?:[^\W\d_](?:[\w.-]{0,200}[\w-])?)?:(?:[\w:%-]|\\.|\.(?=[\w:%.\\-]))* )
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
