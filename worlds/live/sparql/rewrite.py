"""Prepare a query for one endpoint: check it, add prefixes and a limit, and rewrite unsupported services."""

import re
from dataclasses import dataclass
from itertools import pairwise

from worlds import terms
from worlds.embedded.sparql_guard import UPDATE_KEYWORDS, check_query
from worlds.live.http.endpoint import SparqlEndpoint
from worlds.live.sparql.label_service import LabelServiceCall, find_alias_columns, find_label_calls, inline_labels
from worlds.live.sparql.tokens import TokenizedQuery, decode_escapes, tokenize_query
from worlds.source import QueryRefused

_LINE_COLUMN_PATTERN = re.compile(r"(?<![\d:])(\d+):(\d+)(?!:?\d)")
_LINE_PATTERN = re.compile(r"\bline[: ]+(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A query as it is sent."""

    text: str
    form: str
    """SELECT or ASK."""
    limit_added: bool
    """Whether the limit is ours, so that as many rows as it allows mean that there are more."""
    added_lines: int
    alias_columns: tuple[str, ...] = ()
    """Columns of other names, in which one row has all names of a thing."""

    def restore_line_numbers(self, message: str) -> str:
        """The server's message with the line numbers of the original query."""
        if not self.added_lines:
            return message

        def own(match: re.Match[str]) -> str:
            line = max(1, int(match[1]) - self.added_lines)
            return match[0][: match.start(1) - match.start()] + str(line) + match[0][match.end(1) - match.start() :]

        return _LINE_PATTERN.sub(own, _LINE_COLUMN_PATTERN.sub(own, message))


def prepare_query(sparql: str, endpoint: SparqlEndpoint) -> PreparedQuery:
    """The query as the endpoint accepts it; QueryRefused for updates and calls of other servers."""
    query = tokenize_query(sparql)
    calls = find_label_calls(query)
    for text in dict.fromkeys((sparql, decode_escapes(sparql))):
        read = tokenize_query(text)
        check_query(_blank_calls(read, find_label_calls(read)))
        _check_single_query(read)
    many: tuple[str, ...] = ()
    if calls and not endpoint.label_service:
        many = find_alias_columns(query, calls)
        query = tokenize_query(inline_labels(query, calls, endpoint.language))
    text, capped = apply_row_limit(query, endpoint.rows)
    head = _build_prefix_line(query, endpoint)
    return PreparedQuery(f"{head}{text}", query.form, capped, added_lines=1 if head else 0, alias_columns=many)


def _check_single_query(query: TokenizedQuery) -> None:
    """QueryRefused where something that is done comes after the question; some servers take several at once."""
    body = query.where_span
    after = query.tokens[body[1] + 1 :] if body is not None else ()
    if any(token.depth <= 0 and (token.text == ";" or token.text.casefold() in UPDATE_KEYWORDS) for token in after):
        raise QueryRefused("The query has something after its end; only one SELECT or ASK is answered at a time.")


def _blank_calls(query: TokenizedQuery, calls: list[LabelServiceCall]) -> str:
    text = query.text
    for call in calls:
        start, end = query.tokens[call.first].start, query.tokens[call.first].end
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def _build_prefix_line(query: TokenizedQuery, endpoint: SparqlEndpoint) -> str:
    """One line with the prefixes that the query uses and does not declare."""
    prefixes = {**terms.PREFIXES, "wd": endpoint.entity, "wdt": endpoint.property, **endpoint.prefixes}
    used = dict.fromkeys(token.text.partition(":")[0] for token in query.tokens if token.kind == "name")
    missing = [prefix for prefix in used if prefix in prefixes and prefix not in query.declared_prefixes]
    return " ".join(f"PREFIX {prefix}: <{prefixes[prefix]}>" for prefix in missing) + ("\n" if missing else "")


def apply_row_limit(query: TokenizedQuery, rows: int) -> tuple[str, bool]:
    """The query with a limit of one row more than returned, to detect truncation."""
    body = query.where_span
    if query.form == "ASK" or body is None:
        return query.text, False
    after = [token for token in query.tokens[body[1] + 1 :] if token.depth == 0]
    values = next((token.start for token in after if token.is_keyword("values")), None)
    for word, number in pairwise(after):
        if word.is_keyword("limit") and number.kind == "number" and (values is None or word.start < values):
            if int(number.text) <= rows:
                return query.text, False
            return query.text[: number.start] + str(rows + 1) + query.text[number.end :], True
    place = query.tokens[-1].end if values is None else values
    return f"{query.text[:place]} LIMIT {rows + 1} {query.text[place:]}", True
