"""Wikidata's SERVICE wikibase:label: found in a query, and written without it where the endpoint has none."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from worlds import terms
from worlds.live.sparql_tokens import QueryText, Token
from worlds.source import QueryRefused

_SERVICE = {"wikibase:label", "<http://wikiba.se/ontology#label>"}
_AUTOMATIC = {"Label": "rdfs:label", "AltLabel": "skos:altLabel", "Description": "schema:description"}
_IRIS = {
    f"<{terms.RDFS_LABEL}>": "rdfs:label",
    f"<{terms.SKOS_ALT_LABEL}>": "skos:altLabel",
    f"<{terms.SCHEMA_DESCRIPTION}>": "schema:description",
}


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the service: its first and last token, and the place in the text where its group ends."""

    first: int
    last: int
    group_end: int


def find_calls(query: QueryText) -> list[Call]:
    """Every call of the label service; QueryRefused where the name wikibase: means something else."""
    found = []
    for place, token in enumerate(query.tokens):
        if not token.says("service"):
            continue
        opening = place + (3 if query.tokens[place + 1 : place + 2] and query.tokens[place + 1].says("silent") else 2)
        if opening >= len(query.tokens) or query.tokens[opening - 1].text not in _SERVICE:
            continue
        closing = _closing(query.tokens, opening)
        if query.tokens[opening].text != "{" or closing is None:
            continue
        end = next((t.start for t in query.tokens[closing + 1 :] if t.text == "}" and t.depth < token.depth), None)
        if end is not None:
            found.append(Call(place, closing, end))
    if found and query.declared.get("wikibase", terms.PREFIXES["wikibase"]) != terms.PREFIXES["wikibase"]:
        raise QueryRefused("The query gives wikibase: a meaning of its own and calls a SERVICE by it; ask without it.")
    return found


def without_service(query: QueryText, calls: Sequence[Call], language: str) -> str:
    """The query with the labels that the calls would give asked for as patterns of the graph itself."""
    text = query.text
    edits: list[tuple[int, int, str]] = []
    for call in calls:
        start, end = query.tokens[call.first].start, query.tokens[call.last].end
        # The line ends stay, so that the lines of what follows keep their numbers.
        edits.append((start, end, "\n" * text.count("\n", start, end)))
        inside = query.tokens[call.first : call.last + 1]
        languages = _languages(inside, language)
        wanted = list(_named(inside)) or list(_automatic(query, calls))
        patterns = (_pattern(one, predicate, name, languages) for one, predicate, name in wanted)
        edits.append((call.group_end, call.group_end, "".join(patterns)))
    for start, end, instead in sorted(edits, reverse=True):
        text = text[:start] + instead + text[end:]
    return text


def _closing(tokens: Sequence[Token], opening: int) -> int | None:
    depth = tokens[opening].depth
    return next(
        (n for n in range(opening + 1, len(tokens)) if tokens[n].text == "}" and tokens[n].depth == depth), None
    )


def _languages(inside: Sequence[Token], language: str) -> list[str]:
    texts = [token.text.strip("\"'") for token in inside if token.kind == "text"]
    named = [one.strip() for text in texts for one in text.split(",")]
    wanted = [language if one == "[AUTO_LANGUAGE]" else one for one in named if one]
    # A name that is the same in all languages is written once, as "mul"; graphs of one language name none.
    return list(dict.fromkeys([*(one for one in wanted if one.replace("-", "").isalnum()), language, "mul", ""]))


def _named(inside: Sequence[Token]) -> Iterator[tuple[str, str, str]]:
    """What the call asks for by patterns: ?x rdfs:label ?name."""
    subject = ""
    for place in range(1, len(inside) - 2):
        one, predicate, name = inside[place : place + 3]
        if one.kind == "variable" and predicate.kind in {"name", "iri"}:
            subject = one.text
        meant = _IRIS.get(predicate.text, predicate.text)
        if meant in _AUTOMATIC.values() and name.kind == "variable" and one.text in {subject, ";"}:
            yield subject, meant, name.text


def _automatic(query: QueryText, calls: Sequence[Call]) -> Iterator[tuple[str, str, str]]:
    """What the names of variables ask for: ?xLabel is the label of ?x."""
    spans = [range(call.first, call.last + 1) for call in calls]
    places = [n for n, t in enumerate(query.tokens) if t.kind == "variable" and not any(n in span for span in spans)]
    known = {query.tokens[n].text[1:] for n in places}
    bound = {query.tokens[n].text[1:] for n in places if _binds(query, n)}
    for name in sorted(known - bound):
        for ending, predicate in _AUTOMATIC.items():
            one = name.removesuffix(ending)
            if one != name and one in known and not (ending == "Label" and name.endswith("AltLabel")):
                yield f"?{one}", predicate, f"?{name}"


def _binds(query: QueryText, place: int) -> bool:
    """Whether the variable stands there in a pattern or after AS, and not only in a condition, a head or an order."""
    depth = query.tokens[place].depth
    if query.tokens[place - 1].says("as"):
        return True
    for token in reversed(query.tokens[:place]):
        if token.depth < depth:
            # The bracket around it.
            return token.text == "{"
        if token.depth == depth and (token.says("select") or token.says("by") or token.says("having")):
            return False
        if token.depth == depth and token.text == "}":
            return depth > 0
    return False


def _pattern(one: str, predicate: str, name: str, languages: Sequence[str]) -> str:
    ways = [f"{name}_{number}" for number in range(len(languages))]
    asked = " ".join(
        f'OPTIONAL {{ {one} {predicate} {way} FILTER(LANG({way}) = "{language}") }}'
        for way, language in zip(ways, languages, strict=True)
    )
    # Where there is no label the service gives the end of the IRI.
    last = [f'REPLACE(STR({one}), "^.*[/#]", "")'] if predicate == "rdfs:label" else []
    return f" {asked} BIND(COALESCE({', '.join([*ways, *last])}) AS {name}) "
