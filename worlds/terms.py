"""Map IRIs to short ids and back: Q42 and P57 in Wikidata's namespaces, the full IRI elsewhere."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from urllib.parse import quote, unquote

ENTITY_NAMESPACE = "http://www.wikidata.org/entity/"
DIRECT_NAMESPACE = "http://www.wikidata.org/prop/direct/"
RDFS_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
SKOS_ALT_LABEL = "http://www.w3.org/2004/02/skos/core#altLabel"
SCHEMA_DESCRIPTION = "http://schema.org/description"
SCHEMA_ABOUT = "http://schema.org/about"
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
ARTICLE_NAMESPACE = "https://en.wikipedia.org/wiki/"

PREFIXES = {
    "wd": ENTITY_NAMESPACE,
    "wdt": DIRECT_NAMESPACE,
    "p": "http://www.wikidata.org/prop/",
    "ps": "http://www.wikidata.org/prop/statement/",
    "psv": "http://www.wikidata.org/prop/statement/value/",
    "pq": "http://www.wikidata.org/prop/qualifier/",
    "pr": "http://www.wikidata.org/prop/reference/",
    "wds": "http://www.wikidata.org/entity/statement/",
    "wikibase": "http://wikiba.se/ontology#",
    "bd": "http://www.bigdata.com/rdf#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "schema": "http://schema.org/",
    "geo": "http://www.opengis.net/ont/geosparql#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "prov": "http://www.w3.org/ns/prov#",
}
NAMING_PREDICATES = {
    RDFS_LABEL,
    SKOS_ALT_LABEL,
    SCHEMA_DESCRIPTION,
    SCHEMA_ABOUT,
    "http://www.w3.org/2004/02/skos/core#prefLabel",
    "http://www.w3.org/2000/01/rdf-schema#comment",
    "http://schema.org/name",
    "http://schema.org/inLanguage",
    "http://schema.org/isPartOf",
}
"""Predicates that name or describe entities; they do not count as relations."""

_DATE_TYPES = {"dateTime", "date", "gYear", "gYearMonth"}
_NUMBER_TYPES = {
    "integer",
    "decimal",
    "double",
    "float",
    "int",
    "long",
    "nonNegativeInteger",
    "positiveInteger",
    "short",
}
_SHORT_ID_PATTERN = re.compile(r"[QPL][1-9][0-9]*")
_IRI_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]+")
_WORD_BREAK = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_\-\s]+")


def strip_marks(text: str) -> str:
    """An id or a name of a column without blanks at its ends, and without marks that no one sees in copied text."""
    if not text.isascii():
        text = "".join(character for character in text if unicodedata.category(character) != "Cf")
    return text.strip()


def shorten_iri(iri: str) -> str:
    """The short id of an IRI in Wikidata's namespaces (items, and properties by either IRI), else the IRI itself."""
    for namespace in (ENTITY_NAMESPACE, DIRECT_NAMESPACE):
        if iri.startswith(namespace) and _SHORT_ID_PATTERN.fullmatch(iri, len(namespace)):
            return iri[len(namespace) :]
    return iri


def expand_id(entity: str) -> str | None:
    """The IRI of an id as a subject or object (wd: for short ones); None if it is neither an id nor an IRI."""
    if _SHORT_ID_PATTERN.fullmatch(entity):
        return ENTITY_NAMESPACE + entity
    return entity if _IRI_PATTERN.fullmatch(entity) else None


def expand_predicate(relation: str) -> str | None:
    """The predicate IRI of a relation's id (wdt: for short ones); None if it is neither an id nor an IRI."""
    return DIRECT_NAMESPACE + relation if _SHORT_ID_PATTERN.fullmatch(relation) else expand_id(relation)


def format_node(entity: str) -> str | None:
    """An id as written in a query, wd:Q42 or <IRI>; None if it is neither an id nor an IRI."""
    iri = expand_id(entity)
    return f"wd:{entity}" if _SHORT_ID_PATTERN.fullmatch(entity) else f"<{iri}>" if iri else None


def format_predicate(relation: str) -> str | None:
    """A relation's id as written in a query, wdt:P57 or <IRI>; None if it is neither an id nor an IRI."""
    return f"wdt:{relation}" if _SHORT_ID_PATTERN.fullmatch(relation) else format_node(relation)


def is_entity(iri: str) -> bool:
    """Whether the IRI is an item's or a property's of Wikidata."""
    return shorten_iri(iri) != iri


def label_from_iri(iri: str) -> str:
    """A label from the end of an IRI: http://x/placeOfBirth is "place of birth"."""
    if is_entity(iri):
        return shorten_iri(iri)
    name = unquote(re.split(r"[/#:]", iri.rstrip("/#"))[-1]) or iri
    words = [word for word in _WORD_BREAK.split(name) if word]
    cased = [word if word.isupper() and len(word) > 1 else word.lower() for word in words]
    return " ".join(cased) or name


def title_from_page_iri(iri: str) -> str | None:
    """The article's title at the end of a wiki page's IRI; None for another IRI."""
    _, separator, name = iri.partition("/wiki/")
    return unquote(name).replace("_", " ") if separator and name else None


def page_iri_from_title(title: str) -> str:
    """The IRI of the English article with this title, as in sitelinks."""
    return ARTICLE_NAMESPACE + quote(title.replace(" ", "_"), safe="/:@!$&'()*,;=~")


def classify_datatype(datatype: str) -> str:
    """The kind of a datatype's literals: date, number or text."""
    name = re.split(r"[#/]", datatype)[-1]
    return "date" if name in _DATE_TYPES else "number" if name in _NUMBER_TYPES else "text"


def select_by_language(literals: Iterable[Sequence[str]], language: str) -> list[str]:
    """The texts for a reader of this language, of pairs of a text and its language tag; the best is the first.

    They are those in the language, in all languages ("mul"), in its variants (en-gb), and without a tag, in this order;
    if there are none, all, by their tags.
    """
    ranked = [(_rank_language(tag.lower(), language.lower()), tag, text) for text, tag in literals]
    chosen = [entry for entry in ranked if entry[0] < _OTHER_LANGUAGE] or ranked
    return list(dict.fromkeys(text for _, _, text in sorted(chosen, key=_sort_key)))


_UNTAGGED, _OTHER_LANGUAGE = 3, 4


def _rank_language(tag: str, language: str) -> int:
    if tag == language:
        return 0
    return {"mul": 1, "": _UNTAGGED}.get(tag, 2 if tag.startswith(f"{language}-") else _OTHER_LANGUAGE)


def _sort_key(entry: tuple[int, str, str]) -> tuple[int, str, int, str]:
    """Texts in the language keep their order; untagged ones may be in any, so that the shortest is the first."""
    rank, tag, text = entry
    return (rank, tag, len(text) if rank == _UNTAGGED else 0, text) if rank >= _UNTAGGED else (rank, "", 0, "")
