"""Wikidata's SERVICE wikibase:label: rewritten as patterns for endpoints without it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from worlds import terms
from worlds.live.sparql.tokens import SparqlToken, TokenizedQuery
from worlds.source import QueryRefused

_SERVICE_NAMES = {"wikibase:label", "<http://wikiba.se/ontology#label>"}
_AUTOMATIC_PREDICATES = {"Label": "rdfs:label", "AltLabel": "skos:altLabel", "Description": "schema:description"}
_LABEL_PREDICATES = {
    f"<{terms.RDFS_LABEL}>": "rdfs:label",
    f"<{terms.SKOS_ALT_LABEL}>": "skos:altLabel",
    f"<{terms.SCHEMA_DESCRIPTION}>": "schema:description",
}


INTERNAL_PREFIX = "showhow_"
"""What the names of variables begin with that stand in no query but those written here."""
_UNBOUND_IRI = "<http://showhow.invalid/nothing>"


@dataclass(frozen=True, slots=True)
class LabelServiceCall:
    """One call of the service: its first and last token, the group and the SELECT that it stands in, by their tokens,
    and the place in the text where its group ends.
    """

    first: int
    last: int
    group: range
    scope: range
    group_end: int


def find_label_calls(query: TokenizedQuery) -> list[LabelServiceCall]:
    """Every call of the label service; QueryRefused where the name wikibase: means something else."""
    calls = []
    for place, token in enumerate(query.tokens):
        if not token.is_keyword("service"):
            continue
        opening = place + (
            3 if query.tokens[place + 1 : place + 2] and query.tokens[place + 1].is_keyword("silent") else 2
        )
        if opening >= len(query.tokens) or query.tokens[opening - 1].text not in _SERVICE_NAMES:
            continue
        closing = _find_closing_brace(query.tokens, opening)
        around = _enclosing_groups(query.tokens, place)
        if query.tokens[opening].text != "{" or closing is None or not around:
            continue
        selects = (group for group in around if query.tokens[group.start + 1].is_keyword("select"))
        scope = next(selects, range(len(query.tokens)))
        calls.append(LabelServiceCall(place, closing, around[0], scope, query.tokens[around[0].stop].start))
    if calls and query.declared_prefixes.get("wikibase", terms.PREFIXES["wikibase"]) != terms.PREFIXES["wikibase"]:
        raise QueryRefused("The query gives wikibase: a meaning of its own and calls a SERVICE by it; ask without it.")
    return calls


def inline_labels(query: TokenizedQuery, calls: Sequence[LabelServiceCall], language: str) -> str:
    """The query with its calls of the label service replaced by patterns of the graph."""
    text = query.text
    edits: list[tuple[int, int, str]] = []
    for call in calls:
        start, end = query.tokens[call.first].start, query.tokens[call.last].end
        # The line ends stay, so that the lines of what follows keep their numbers.
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
    for start, end, instead in sorted(edits, reverse=True):
        text = text[:start] + instead + text[end:]
    return text


def find_alias_columns(query: TokenizedQuery, calls: Sequence[LabelServiceCall]) -> tuple[str, ...]:
    """The columns in which the service puts all other names of a thing, where patterns give a row for each."""
    listed = {
        name[1:] for call in calls for _, one, name in _requested_labels(query, calls, call) if one == "skos:altLabel"
    }
    return tuple(column for column in query.columns if column in listed)


def _find_closing_brace(tokens: Sequence[SparqlToken], opening: int) -> int | None:
    depth = tokens[opening].depth
    return next(
        (n for n in range(opening + 1, len(tokens)) if tokens[n].text == "}" and tokens[n].depth == depth), None
    )


def _label_languages(inside: Sequence[SparqlToken], language: str) -> list[str]:
    texts = [token.text.strip("\"'") for token in inside if token.kind == "text"]
    named = [one.strip() for text in texts for one in text.split(",")]
    languages = [language if one == "[AUTO_LANGUAGE]" else one for one in named if one]
    # A name that is the same in all languages is written once, as "mul"; graphs of one language name none.
    return list(dict.fromkeys([*(one for one in languages if one.replace("-", "").isalnum()), language, "mul", ""]))


def _explicit_labels(inside: Sequence[SparqlToken]) -> Iterator[tuple[str, str, str]]:
    """The labels that the call requests by patterns: ?x rdfs:label ?name."""
    subject = ""
    for place in range(1, len(inside) - 2):
        one, predicate, name = inside[place : place + 3]
        if one.kind == "variable" and predicate.kind in {"name", "iri"}:
            subject = one.text
        meant = _LABEL_PREDICATES.get(predicate.text, predicate.text)
        if meant in _AUTOMATIC_PREDICATES.values() and name.kind == "variable" and one.text in {subject, ";"}:
            yield subject, meant, name.text


def _enclosing_groups(tokens: Sequence[SparqlToken], place: int) -> list[range]:
    """The groups around a token by the places of their brackets, from the inside out."""
    groups = []
    depth = tokens[place].depth
    for n in range(place - 1, -1, -1):
        if tokens[n].depth < depth and tokens[n].text in {"{", "(", "["}:
            depth = tokens[n].depth
            closing = _find_closing_brace(tokens, n) if tokens[n].text == "{" else None
            if closing is not None:
                groups.append(range(n, closing))
    return groups


def _requested_labels(
    query: TokenizedQuery, calls: Sequence[LabelServiceCall], call: LabelServiceCall
) -> Iterator[tuple[str, str, str]]:
    """What a call has to give: of what, by which predicate, under which name."""
    named = list(_explicit_labels(query.tokens[call.first : call.last + 1]))
    if named:
        yield from named
        return
    within = [other for other in calls if other is not call and other.scope == call.scope]
    if any(other.group.start < call.group.start and call.group.stop < other.group.stop for other in within):
        # The call of the group around it gives all of them.
        return
    inner = [c for c in calls if c.scope != call.scope and call.scope.start <= c.scope.start < call.scope.stop]
    inner_names = {name for other in inner for _, _, name in _automatic_labels(query, calls, other.scope)}
    yield from (one for one in _automatic_labels(query, calls, call.scope) if one[2] not in inner_names)


def _automatic_labels(
    query: TokenizedQuery, calls: Sequence[LabelServiceCall], scope: range
) -> Iterator[tuple[str, str, str]]:
    """What the names of variables in a SELECT ask for: ?xLabel is the label of ?x."""
    spans = [range(call.first, call.last + 1) for call in calls]
    places = [n for n in scope if query.tokens[n].kind == "variable" and not any(n in span for span in spans)]
    variables = {query.tokens[n].text[1:] for n in places}
    bound = {query.tokens[n].text[1:] for n in places if _is_binding(query, n)}
    for name in sorted(variables - bound):
        for ending, predicate in _AUTOMATIC_PREDICATES.items():
            one = name.removesuffix(ending)
            if one != name and one in variables and not (ending == "Label" and name.endswith("AltLabel")):
                yield f"?{one}", predicate, f"?{name}"


def _is_binding(query: TokenizedQuery, place: int) -> bool:
    """Whether the variable stands there in a pattern or after AS, and not only in a condition, a head or an order."""
    depth = query.tokens[place].depth
    if query.tokens[place - 1].is_keyword("as"):
        return True
    for token in reversed(query.tokens[:place]):
        if token.depth < depth:
            # The bracket around it.
            return token.text == "{"
        if token.depth == depth and (
            token.is_keyword("select") or token.is_keyword("by") or token.is_keyword("having")
        ):
            return False
        if token.depth == depth and token.text == "}":
            return depth > 0
    return False


def _build_label_patterns(labels: Sequence[tuple[str, str, str]], languages: Sequence[str], own: str) -> str:
    """The patterns for the requested labels; `own` is the prefix of their helper variables."""
    parts = []
    for one in dict.fromkeys(one for one, _, _ in labels):
        # A variable without a value would match everything that has a name.
        parts.append(f"BIND(COALESCE({one}, {_UNBOUND_IRI}) AS {own}{one[1:]})")
        parts += (
            _build_label_pattern(variable, predicate, name, languages, own)
            for variable, predicate, name in labels
            if variable == one
        )
    return f" {' '.join(parts)} " if parts else ""


def _build_label_pattern(one: str, predicate: str, name: str, languages: Sequence[str], own: str) -> str:
    ways = [f"{own}{name[1:]}_{number}" for number in range(len(languages))]
    conditions = " ".join(
        f'OPTIONAL {{ {own}{one[1:]} {predicate} {way} FILTER(LANG({way}) = "{language}") }}'
        for way, language in zip(ways, languages, strict=True)
    )
    # Where there is no label the service gives the end of the IRI, and of a text or a date the value itself.
    end = f'IF(ISLITERAL({one}), {one}, REPLACE(STR({one}), "^.*[/#]", ""))'
    last = [end] if predicate == "rdfs:label" else []
    return f"{conditions} BIND(COALESCE({', '.join([*ways, *last])}) AS {name})"
