"""Refuse SPARQL that updates the graph or calls another server."""

import re

from worlds.source import QueryRefused

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
