"""Prepare a query for one endpoint: check it, add prefixes and a limit, and rewrite unsupported services."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from showhow.worlds import terms
from showhow.worlds.live.description import SparqlEndpoint
from showhow.worlds.source import QueryRefused
from showhow.worlds.sparql_syntax import (
    UPDATE_KEYWORDS,
    SparqlToken,
    TokenizedQuery,
    check_query,
    decode_escapes,
    tokenize_query,
)

_SERVICE_NAMES = {"wikibase:label", "<http://wikiba.se/ontology#label>"}
_AUTOMATIC_PREDICATES = {"Label": "rdfs:label", "AltLabel": "skos:altLabel", "Description": "schema:description"}
_LABEL_PREDICATES = {
    f"<{terms.RDFS_LABEL}>": "rdfs:label",
    f"<{terms.SKOS_ALT_LABEL}>": "skos:altLabel",
    f"<{terms.SCHEMA_DESCRIPTION}>": "schema:description",
}


INTERNAL_PREFIX = "showhow_"
"""Prefix of the variables that the rewriting adds."""
_UNBOUND_IRI = "<http://showhow.invalid/nothing>"


@dataclass(frozen=True, slots=True)
class LabelServiceCall:
    """One call of the label service.

    `first` and `last` are the indexes of its tokens, `group` and `scope` those of the enclosing group and SELECT;
    `group_end` is the position in the text where the group ends.
    """

    first: int
    last: int
    group: range
    scope: range
    group_end: int


def find_label_calls(query: TokenizedQuery) -> list[LabelServiceCall]:
    """Every call of the label service; QueryRefused if the query declares another prefix wikibase:."""
    calls = []
    for index, token in enumerate(query.tokens):
        if not token.is_keyword("service"):
            continue
        opening = index + (
            3 if query.tokens[index + 1 : index + 2] and query.tokens[index + 1].is_keyword("silent") else 2
        )
        if opening >= len(query.tokens) or query.tokens[opening - 1].text not in _SERVICE_NAMES:
            continue
        closing = _find_closing_brace(query.tokens, opening)
        groups = _enclosing_groups(query.tokens, index)
        if query.tokens[opening].text != "{" or closing is None or not groups:
            continue
        selects = (group for group in groups if query.tokens[group.start + 1].is_keyword("select"))
        scope = next(selects, range(len(query.tokens)))
        calls.append(LabelServiceCall(index, closing, groups[0], scope, query.tokens[groups[0].stop].start))
    if calls and query.declared_prefixes.get("wikibase", terms.PREFIXES["wikibase"]) != terms.PREFIXES["wikibase"]:
        raise QueryRefused("The query redefines the prefix wikibase: and uses it in SERVICE; remove the declaration.")
    return calls


def inline_labels(query: TokenizedQuery, calls: Sequence[LabelServiceCall], language: str) -> str:
    """The query with its calls of the label service replaced by graph patterns."""
    text = query.text
    edits: list[tuple[int, int, str]] = []
    for call in calls:
        start, end = query.tokens[call.first].start, query.tokens[call.last].end
        # Line ends stay, so that the following lines keep their numbers.
        edits.append((start, end, "\n" * text.count("\n", start, end)))
        languages = _label_languages(query.tokens[call.first : call.last + 1], language)
        labels = list(dict.fromkeys(_requested_labels(query, calls, call)))
        edits.append(
            (
                call.group_end,
                call.group_end,
                _build_label_patterns(labels, languages, f"?{INTERNAL_PREFIX}{call.first}_"),
            )
        )
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def find_alias_columns(query: TokenizedQuery, calls: Sequence[LabelServiceCall]) -> tuple[str, ...]:
    """The columns of aliases: the service lists all aliases in one row, whereas patterns return a row for each."""
    alias_columns = {
        name[1:]
        for call in calls
        for _, predicate, name in _requested_labels(query, calls, call)
        if predicate == "skos:altLabel"
    }
    return tuple(column for column in query.columns if column in alias_columns)


def _find_closing_brace(tokens: Sequence[SparqlToken], opening: int) -> int | None:
    depth = tokens[opening].depth
    return next(
        (n for n in range(opening + 1, len(tokens)) if tokens[n].text == "}" and tokens[n].depth == depth), None
    )


def _label_languages(call_tokens: Sequence[SparqlToken], language: str) -> list[str]:
    texts = [token.text.strip("\"'") for token in call_tokens if token.kind == "text"]
    codes = [code.strip() for text in texts for code in text.split(",")]
    languages = [language if code == "[AUTO_LANGUAGE]" else code for code in codes if code]
    # A name shared by all languages has the code "mul"; graphs with one language often use no code.
    return list(dict.fromkeys([*(code for code in languages if code.replace("-", "").isalnum()), language, "mul", ""]))


def _explicit_labels(call_tokens: Sequence[SparqlToken]) -> Iterator[tuple[str, str, str]]:
    """The labels that the call requests by patterns, such as ?x rdfs:label ?name."""
    subject = ""
    for index in range(1, len(call_tokens) - 2):
        first, second, third = call_tokens[index : index + 3]
        if first.kind == "variable" and second.kind in {"name", "iri"}:
            subject = first.text
        predicate = _LABEL_PREDICATES.get(second.text, second.text)
        if predicate in _AUTOMATIC_PREDICATES.values() and third.kind == "variable" and first.text in {subject, ";"}:
            yield subject, predicate, third.text


def _enclosing_groups(tokens: Sequence[SparqlToken], index: int) -> list[range]:
    """The groups around a token by the indexes of their brackets, innermost first."""
    groups = []
    depth = tokens[index].depth
    for n in range(index - 1, -1, -1):
        if tokens[n].depth < depth and tokens[n].text in {"{", "(", "["}:
            depth = tokens[n].depth
            closing = _find_closing_brace(tokens, n) if tokens[n].text == "{" else None
            if closing is not None:
                groups.append(range(n, closing))
    return groups


def _requested_labels(
    query: TokenizedQuery, calls: Sequence[LabelServiceCall], call: LabelServiceCall
) -> Iterator[tuple[str, str, str]]:
    """The labels that a call returns, each as subject variable, predicate and label variable."""
    explicit = list(_explicit_labels(query.tokens[call.first : call.last + 1]))
    if explicit:
        yield from explicit
        return
    siblings = [other for other in calls if other is not call and other.scope == call.scope]
    if any(other.group.start < call.group.start and call.group.stop < other.group.stop for other in siblings):
        # The call of an enclosing group returns all labels.
        return
    inner = [c for c in calls if c.scope != call.scope and call.scope.start <= c.scope.start < call.scope.stop]
    inner_names = {name for other in inner for _, _, name in _automatic_labels(query, calls, other.scope)}
    yield from (label for label in _automatic_labels(query, calls, call.scope) if label[2] not in inner_names)


def _automatic_labels(
    query: TokenizedQuery, calls: Sequence[LabelServiceCall], scope: range
) -> Iterator[tuple[str, str, str]]:
    """The labels that a SELECT requests by the names of its variables: ?xLabel is the label of ?x."""
    spans = [range(call.first, call.last + 1) for call in calls]
    indexes = [n for n in scope if query.tokens[n].kind == "variable" and not any(n in span for span in spans)]
    variables = {query.tokens[n].text[1:] for n in indexes}
    bound = {query.tokens[n].text[1:] for n in indexes if _is_binding(query, n)}
    for name in sorted(variables - bound):
        for suffix, predicate in _AUTOMATIC_PREDICATES.items():
            subject = name.removesuffix(suffix)
            if subject != name and subject in variables and not (suffix == "Label" and name.endswith("AltLabel")):
                yield f"?{subject}", predicate, f"?{name}"


def _is_binding(query: TokenizedQuery, index: int) -> bool:
    """Whether the variable token binds: in a pattern or after AS, not in a filter, a SELECT clause or an ORDER BY."""
    depth = query.tokens[index].depth
    if query.tokens[index - 1].is_keyword("as"):
        return True
    for token in reversed(query.tokens[:index]):
        if token.depth < depth:
            # The enclosing bracket.
            return token.text == "{"
        if token.depth == depth and (
            token.is_keyword("select") or token.is_keyword("by") or token.is_keyword("having")
        ):
            return False
        if token.depth == depth and token.text == "}":
            return depth > 0
    return False


def _build_label_patterns(labels: Sequence[tuple[str, str, str]], languages: Sequence[str], prefix: str) -> str:
    """The patterns for the requested labels; `prefix` begins the names of their helper variables."""
    patterns = []
    for subject in dict.fromkeys(subject for subject, _, _ in labels):
        # An unbound variable would match every labelled entity.
        patterns.append(f"BIND(COALESCE({subject}, {_UNBOUND_IRI}) AS {prefix}{subject[1:]})")
        patterns += (
            _build_label_pattern(variable, predicate, name, languages, prefix)
            for variable, predicate, name in labels
            if variable == subject
        )
    return f" {' '.join(patterns)} " if patterns else ""


def _build_label_pattern(subject: str, predicate: str, name: str, languages: Sequence[str], prefix: str) -> str:
    candidates = [f"{prefix}{name[1:]}_{number}" for number in range(len(languages))]
    optionals = " ".join(
        f'OPTIONAL {{ {prefix}{subject[1:]} {predicate} {candidate} FILTER(LANG({candidate}) = "{language}") }}'
        for candidate, language in zip(candidates, languages, strict=True)
    )
    # Without a label the service returns the end of the IRI, or the value itself for a literal.
    default = f'IF(ISLITERAL({subject}), {subject}, REPLACE(STR({subject}), "^.*[/#]", ""))'
    defaults = [default] if predicate == "rdfs:label" else []
    return f"{optionals} BIND(COALESCE({', '.join([*candidates, *defaults])}) AS {name})"


_LINE_COLUMN_PATTERN = re.compile(r"(?<![\d:])(\d+):(\d+)(?!:?\d)")
_LINE_PATTERN = re.compile(r"\bline[: ]+(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A query as it is sent to the endpoint."""

    text: str
    form: str
    """SELECT or ASK."""
    limit_added: bool
    """Whether the row limit was added or lowered here; if it is reached, the result is truncated."""
    added_lines: int
    """Lines added before the original query."""
    alias_columns: tuple[str, ...] = ()
    """Columns of aliases, to be merged into one row per entity."""

    def restore_line_numbers(self, message: str) -> str:
        """The server's message with the line numbers of the original query."""
        if not self.added_lines:
            return message

        def shift_line(match: re.Match[str]) -> str:
            line = max(1, int(match[1]) - self.added_lines)
            return match[0][: match.start(1) - match.start()] + str(line) + match[0][match.end(1) - match.start() :]

        return _LINE_PATTERN.sub(shift_line, _LINE_COLUMN_PATTERN.sub(shift_line, message))


def prepare_query(sparql: str, endpoint: SparqlEndpoint) -> PreparedQuery:
    """The query as the endpoint accepts it; QueryRefused for updates and calls of other servers."""
    query = tokenize_query(sparql)
    calls = find_label_calls(query)
    for text in dict.fromkeys((sparql, decode_escapes(sparql))):
        tokenized = tokenize_query(text)
        check_query(_blank_calls(tokenized, find_label_calls(tokenized)))
        _check_single_query(tokenized)
    alias_columns: tuple[str, ...] = ()
    if calls and not endpoint.label_service:
        alias_columns = find_alias_columns(query, calls)
        query = tokenize_query(inline_labels(query, calls, endpoint.language))
    text, limit_added = apply_row_limit(query, endpoint.rows)
    prefix_line = _build_prefix_line(query, endpoint)
    return PreparedQuery(f"{prefix_line}{text}", query.form, limit_added, 1 if prefix_line else 0, alias_columns)


def _check_single_query(query: TokenizedQuery) -> None:
    """QueryRefused if a second operation follows the query; some servers execute several at once."""
    where_span = query.where_span
    rest = query.tokens[where_span[1] + 1 :] if where_span is not None else ()
    if any(token.depth <= 0 and (token.text == ";" or token.text.casefold() in UPDATE_KEYWORDS) for token in rest):
        raise QueryRefused("The query is followed by another operation; only one SELECT or ASK is answered at a time.")


def _blank_calls(query: TokenizedQuery, calls: list[LabelServiceCall]) -> str:
    text = query.text
    for call in calls:
        start, end = query.tokens[call.first].start, query.tokens[call.first].end
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def _build_prefix_line(query: TokenizedQuery, endpoint: SparqlEndpoint) -> str:
    """One line that declares the known prefixes that the query uses without a declaration."""
    prefixes = {**terms.PREFIXES, "wd": endpoint.entity, "wdt": endpoint.property, **endpoint.prefixes}
    used = dict.fromkeys(token.text.partition(":")[0] for token in query.tokens if token.kind == "name")
    missing = [prefix for prefix in used if prefix in prefixes and prefix not in query.declared_prefixes]
    return " ".join(f"PREFIX {prefix}: <{prefixes[prefix]}>" for prefix in missing) + ("\n" if missing else "")


def apply_row_limit(query: TokenizedQuery, rows: int) -> tuple[str, bool]:
    """The query limited to `rows` + 1 rows, to detect truncation, and whether this limit was added or lowered."""
    where_span = query.where_span
    if query.form == "ASK" or where_span is None:
        return query.text, False
    rest = [token for token in query.tokens[where_span[1] + 1 :] if token.depth == 0]
    values_start = next((token.start for token in rest if token.is_keyword("values")), None)
    for word, number in pairwise(rest):
        if word.is_keyword("limit") and number.kind == "number" and (values_start is None or word.start < values_start):
            if number.text.isdecimal() and len(number.text) < 10 and int(number.text) <= rows:
                return query.text, False
            return query.text[: number.start] + str(rows + 1) + query.text[number.end :], True
    position = query.tokens[-1].end if values_start is None else values_start
    return f"{query.text[:position]} LIMIT {rows + 1} {query.text[position:]}", True
