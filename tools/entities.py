"""Entities of the graph: ids by name, labels of ids, and the steps to neighbours in either direction.

A fact is (head, relation, tail), as in (Ada, mother, Cora). The four tools are getRelationsAsHead, getRelationsAsTail,
getTailEntities and getHeadEntities. In their data, `direction` is the end at which the given entity is, head or tail,
and `total` is None where there are too many results to count. Literals, such as dates, are tails without an id.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator

from showhow.tools.arguments import SPLIT_IDS_VALIDATOR, Accepts, Label, ToolError, normalize_id, require_graph
from showhow.tools.run_query import format_literal
from showhow.tools.tool import Observation, ToolContext
from showhow.worlds import terms
from showhow.worlds.source import (
    AmbiguousTitle,
    Cell,
    Entity,
    ErrorKind,
    GraphSource,
    NotFound,
    RelationSearch,
    SourceTimeout,
)

MAX_CANDIDATES = 5
MAX_LABELS_SHOWN = 50
MAX_RELATIONS = 500
"""Relations in one result; entities of Wikidata have fewer."""
DEFAULT_LIMIT, MAX_LIMIT = 100, 1000
"""Values in one result, unless the call has a limit of its own, and at most."""
MAX_COUNTED_FACTS = 20_000
"""Facts of an entity whose relations are counted; a country has millions."""
HEAD, TAIL = "head", "tail"
_UNKNOWN_VALUE_NAMESPACE = "http://www.wikidata.org/.well-known/genid/"
"""Wikidata's query service has IRIs here in place of blank nodes."""
_SHORT_ID = re.compile(r"([QPL])([1-9][0-9]*)")

EntityId = Annotated[str, "id such as Q42", Accepts("entity")]
RelationId = Annotated[str, "id such as P57", Accepts("relation")]


def _check_limit(limit: int) -> int:
    if not 1 <= limit <= MAX_LIMIT:
        raise ValueError(f"it is a number from 1 to {MAX_LIMIT:,}")
    return limit


# A validator, since a minimum and a maximum would lengthen the declarations in every prompt.
ValueLimit = Annotated[int, "most results", AfterValidator(_check_limit)]


def get_wikidata_id(
    context: ToolContext, title: Annotated[str, "title of an article, or a name", Accepts("title")]
) -> Observation:
    """Find the id of what an article is about, or of whatever has that name; several candidates come best first."""
    graph = require_graph(context.world, "getWikiDataID")
    candidates: list[Entity] = []
    ambiguous: AmbiguousTitle | None = None
    try:
        candidates.append(graph.entity_of(title))
    except AmbiguousTitle as error:
        ambiguous = error
    except NotFound:
        # The graph may have a name that is not the title of an article.
        ambiguous = None
    candidates += _without_known(graph.find(title, MAX_CANDIDATES), candidates)
    candidates += _without_known(_ambiguous_entities(ambiguous), candidates)
    if not candidates:
        raise ToolError(
            str(ambiguous)
            if ambiguous
            else f"Nothing in this world is called {title!r}; search for it with wikisearch and use the title found.",
            ErrorKind.NOT_FOUND,
        )
    return Observation(
        "\n".join(map(format_entity, candidates[:MAX_CANDIDATES])),
        {"entities": [_entity_to_json(entity) for entity in candidates[:MAX_CANDIDATES]]},
    )


def _ambiguous_entities(ambiguous: AmbiguousTitle | None) -> list[Entity]:
    """The entities of an ambiguous title's meanings that have an id."""
    hits = ambiguous.choices if ambiguous else ()
    return [Entity(hit.entity, hit.title, hit.description, title=hit.title) for hit in hits if hit.entity]


def _without_known(entities: Sequence[Entity], known: Sequence[Entity]) -> list[Entity]:
    ids = {entity.id for entity in known}
    return [entity for entity in entities if entity.id not in ids]


def format_entity(entity: Entity) -> str:
    """Format an entity on one line: id, label and description."""
    return f"{entity.id}: {entity.label}" + (f" ({entity.description})" if entity.description else "")


def _entity_to_json(entity: Entity) -> dict[str, str | None]:
    return {"id": entity.id, "label": entity.label, "description": entity.description, "title": entity.title}


def get_label(
    context: ToolContext,
    ids: Annotated[
        list[str], "ids such as Q42 or P57", SPLIT_IDS_VALIDATOR, Accepts("entity", "relation"), Label("Entities")
    ],
) -> Observation:
    """Look up what entities and properties are called."""
    graph = require_graph(context.world, "getLabel")
    requested = list(dict.fromkeys(map(normalize_id, ids)))
    if not requested:
        raise ToolError("getLabel needs at least one id such as Q42.", ErrorKind.WRONG_ARGUMENTS)
    entities = graph.entities(requested)
    entity_ids = {entity.id for entity in entities}
    unknown = [id_ for id_ in requested if id_ not in entity_ids]
    if not entities:
        raise ToolError(
            f"This world knows none of {', '.join(unknown[:MAX_LABELS_SHOWN])}; "
            "ids come from getWikiDataID or runQuery.",
            ErrorKind.NOT_FOUND,
        )
    lines = [format_entity(entity) for entity in entities[:MAX_LABELS_SHOWN]]
    if len(entities) > MAX_LABELS_SHOWN:
        lines.append(f"... {len(entities) - MAX_LABELS_SHOWN} more labels")
    if unknown:
        lines.append(f"Not known: {', '.join(unknown[:MAX_LABELS_SHOWN])}")
    labels = [{"id": entity.id, "label": entity.label, "description": entity.description} for entity in entities]
    return Observation("\n".join(lines), {"labels": labels})


def get_relations_as_head(context: ToolContext, entity: EntityId) -> Observation:
    """List the relations that lead from an entity: (Ada, mother, Cora) gives mother for Ada."""
    return _list_relations(require_graph(context.world, "getRelationsAsHead"), entity, HEAD)


def get_relations_as_tail(context: ToolContext, entity: EntityId) -> Observation:
    """List the relations that lead to an entity: (Ada, mother, Cora) gives mother for Cora."""
    return _list_relations(require_graph(context.world, "getRelationsAsTail"), entity, TAIL)


def get_tail_entities(
    context: ToolContext, entity: EntityId, relation: RelationId, limit: ValueLimit = DEFAULT_LIMIT
) -> Observation:
    """Follow a relation from an entity to its values: Ada and mother give Cora."""
    graph = require_graph(context.world, "getTailEntities")
    return _list_values(graph, _find_fact_end(graph, entity, relation), HEAD, limit)


def get_head_entities(
    context: ToolContext, relation: RelationId, entity: EntityId, limit: ValueLimit = DEFAULT_LIMIT
) -> Observation:
    """Follow a relation back, to whatever it leads from: mother and Cora give Ada."""
    graph = require_graph(context.world, "getHeadEntities")
    return _list_values(graph, _find_fact_end(graph, entity, relation), TAIL, limit)


def _find_entity(graph: GraphSource, entity: str) -> Entity:
    """The entity with this id; ToolError for text that is no id, and for an id that the graph does not know."""
    matches = graph.entities([_parse_entity_id(entity)])
    if not matches:
        raise _unknown_entity(entity)
    return matches[0]


def _find_fact_end(graph: GraphSource, entity: str, relation: str) -> tuple[Entity, Entity]:
    """The entity and the relation with these ids; ToolError as for _find_entity."""
    entity_id, relation_id = _parse_entity_id(entity), _parse_relation_id(relation)
    matches = {match.id: match for match in graph.entities([entity_id, relation_id])}
    if entity_id not in matches:
        raise _unknown_entity(entity)
    if relation_id not in matches:
        raise ToolError(
            f"This world's graph does not know the relation {relation}; getRelationsAsHead and getRelationsAsTail list "
            "the relations of an entity.",
            ErrorKind.NOT_FOUND,
        )
    return matches[entity_id], matches[relation_id]


def _unknown_entity(entity: str) -> ToolError:
    return ToolError(
        f"This world's graph does not know {entity}; getWikiDataID finds the id of a name.", ErrorKind.NOT_FOUND
    )


def _parse_entity_id(text: str) -> str:
    entity_id = normalize_id(text)
    if terms.expand_id(entity_id) is None:
        raise ToolError(
            f"{text!r} is not an id such as Q42; find the id of a name with getWikiDataID first.",
            ErrorKind.WRONG_ARGUMENTS,
        )
    return entity_id


def _parse_relation_id(text: str) -> str:
    relation_id = normalize_id(text)
    short_id = _SHORT_ID.fullmatch(relation_id)
    if terms.expand_id(relation_id) is None or (short_id is not None and short_id[1] != "P"):
        raise ToolError(
            f"{text!r} is not the id of a relation such as P57; getRelationsAsHead and getRelationsAsTail list the "
            "relations of an entity with their ids.",
            ErrorKind.WRONG_ARGUMENTS,
        )
    return relation_id


def _list_relations(graph: GraphSource, entity: str, direction: str) -> Observation:
    subject = _find_entity(graph, entity)
    node = terms.format_node(subject.id)
    pattern = f"{node} ?relation ?value" if direction == HEAD else f"?value ?relation {node}"
    table = graph.query(
        "SELECT ?relation (COUNT(*) AS ?facts) WHERE { { SELECT ?relation WHERE { "
        f"{pattern} FILTER({_relation_condition(graph, subject.id)}) }} LIMIT {MAX_COUNTED_FACTS + 1} }} }} "
        "GROUP BY ?relation"
    )
    counts = {relation.value: facts.read_number() for relation, facts in table.rows if relation and facts}
    is_counted = sum(counts.values()) <= MAX_COUNTED_FACTS
    shown = sorted(counts, key=_id_sort_key)[:MAX_RELATIONS]
    labels = _fetch_labels(graph, shown)
    relations: list[dict[str, Any]] = [
        {"id": id_, "label": labels[id_], "direction": direction, "count": counts[id_] if is_counted else None}
        for id_ in shown
    ]
    total = len(counts) if is_counted and not table.truncated else None
    data = {
        "entity": subject.id,
        "entity_label": subject.label,
        "direction": direction,
        "relations": relations,
        "total": total,
        "truncated": total is None or total > len(shown),
    }
    name = _format_link(subject.label, subject.id)
    lines = [f"{name} is the {direction} of {_format_count(total, 'relation')}."]
    lines += [f"{link['id']}: {link['label']}{_format_facts(link['count'])}" for link in relations]
    if not is_counted:
        lines.append(f"... only {MAX_COUNTED_FACTS:,} facts were read; there may be other relations.")
    lines += [*_format_rest(total, len(shown), "relation", MAX_RELATIONS), *filter(None, [table.note])]
    return Observation("\n".join(lines), data)


def _relation_condition(graph: GraphSource, entity_id: str) -> str:
    """The condition on ?relation that leaves out what names or describes an entity, and the parts of statements."""
    if isinstance(graph, RelationSearch) and graph.has_large_vocabulary:
        return "STRSTARTS(STR(?relation), STR(wdt:))"
    names = ", ".join(f"<{iri}>" for iri in sorted(terms.NAMING_PREDICATES | {terms.RDF_TYPE}))
    left_out = [terms.PREFIXES["wikibase"], terms.PREFIXES["skos"]]
    if _SHORT_ID.fullmatch(entity_id):
        # It describes Wikidata's items; in graphs with other ids it has relations as well.
        left_out.append(terms.PREFIXES["schema"])
    conditions = [f"?relation NOT IN ({names})", *(f'!STRSTARTS(STR(?relation), "{prefix}")' for prefix in left_out)]
    conditions.append(f'(STRSTARTS(STR(?relation), STR(wdt:)) || !STRSTARTS(STR(?relation), "{terms.PREFIXES["p"]}"))')
    return " && ".join(conditions)


def _list_values(graph: GraphSource, fact_end: tuple[Entity, Entity], direction: str, limit: int) -> Observation:
    entity, relation = fact_end
    node, predicate = terms.format_node(entity.id), terms.format_predicate(relation.id)
    pattern = f"{node} {predicate} ?value" if direction == HEAD else f"?value {predicate} {node}"
    table = graph.query(f"SELECT DISTINCT ?value WHERE {{ {pattern} }}")
    cells = [value for (value,) in table.rows if value is not None]
    named_cells = sorted((cell for cell in cells if not _is_unnamed(cell)), key=_cell_sort_key)
    shown = named_cells[:limit]
    labels = _fetch_labels(graph, [cell.value for cell in shown if cell.kind != "literal"])
    values = [_cell_to_json(cell, labels) for cell in shown]
    unnamed = len(cells) - len(named_cells)
    total = _count_values(graph, pattern) if table.truncated else len(cells)
    data = {
        "entity": entity.id,
        "entity_label": entity.label,
        "relation": relation.id,
        "relation_label": relation.label,
        "direction": direction,
        "values": values,
        "unnamed": unnamed,
        "total": total,
        "truncated": total is None or total > len(values) + unnamed,
    }
    ends = [_format_link(entity.label, entity.id), "?"]
    first, last = ends if direction == HEAD else reversed(ends)
    lines = [f"{first} → {_format_link(relation.label, relation.id)} → {last}: {_format_count(total, 'value')}."]
    lines += map(_format_value_link, values)
    if unnamed:
        lines.append(f"... {_format_count(unnamed, 'value')} without an id (blank nodes).")
    lines += [*_format_rest(total, len(values) + unnamed, "value", limit), *filter(None, [table.note])]
    return Observation("\n".join(lines), data)


def _count_values(graph: GraphSource, pattern: str) -> int | None:
    """The number of values, or None if there are too many to count in the graph's time."""
    try:
        rows = graph.query(f"SELECT (COUNT(DISTINCT ?value) AS ?total) WHERE {{ {pattern} }}").rows
    except SourceTimeout:
        return None
    return next((total.read_number() for (total,) in rows if total is not None), None)


def _is_unnamed(cell: Cell) -> bool:
    return cell.kind == "blank" or cell.value.startswith(_UNKNOWN_VALUE_NAMESPACE)


def _fetch_labels(graph: GraphSource, ids: Sequence[str]) -> dict[str, str]:
    """The labels of all ids; an IRI that the graph cannot describe is its own label."""
    labels = {entity.id: entity.label for entity in graph.entities(ids)} if ids else {}
    return {id_: labels.get(id_, id_) for id_ in ids}


def _cell_to_json(cell: Cell, labels: dict[str, str]) -> dict[str, Any]:
    if cell.kind != "literal":
        return {"id": cell.value, "label": labels[cell.value]}
    literal = {"literal": cell.value, "datatype": cell.datatype}
    return {**literal, "language": cell.language} if cell.language else literal


def _cell_sort_key(cell: Cell) -> tuple[int, str, int, str]:
    if cell.kind == "literal":
        return 2, cell.value, 0, f"{cell.datatype} {cell.language}"
    return _id_sort_key(cell.value)


def _id_sort_key(id_: str) -> tuple[int, str, int, str]:
    """Short ids by their number, then IRIs; Wikidata's general properties have lower numbers than external ids."""
    short_id = _SHORT_ID.fullmatch(id_)
    return (0, short_id[1], len(short_id[2]), short_id[2]) if short_id else (1, id_, 0, "")


def _format_link(label: str, id_: str) -> str:
    return f"{label} ({id_})"


def _format_value_link(value: dict[str, Any]) -> str:
    return f"{value['id']}: {value['label']}" if "id" in value else format_literal(value["literal"], value["datatype"])


def _format_count(count: int | None, noun: str) -> str:
    if count is None:
        return f"many {noun}s"
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s" if count else f"no {noun}s"


def _format_facts(count: int | None) -> str:
    return f" ({_format_count(count, 'fact')})" if count is not None else ""


def _format_rest(total: int | None, shown: int, noun: str, limit: int) -> Iterator[str]:
    """A line that states how many results are left out, and the limit."""
    if total is None:
        yield f"... more {noun}s than can be counted; {shown:,} are listed, and the limit is {limit:,}."
    elif total > shown:
        raisable = f", and can be raised up to {MAX_LIMIT:,}" if noun == "value" and limit < MAX_LIMIT else ""
        yield f"... {total - shown:,} more; the limit is {limit:,}{raisable}."
