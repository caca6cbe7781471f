"""The tools getWikiDataID and getLabel: the entity ids of a name, and the labels of ids."""

from collections.abc import Sequence
from typing import Annotated

from tools.arguments import SPLIT_IDS_VALIDATOR, ToolError, normalize_id, require_graph
from tools.parameter import Accepts
from tools.tool import Observation, ToolContext
from worlds.source import AmbiguousTitle, Entity, ErrorKind, NotFound

MAX_CANDIDATES = 5
MAX_LABELS_SHOWN = 50


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
    ids: Annotated[list[str], "ids such as Q42 or P57", SPLIT_IDS_VALIDATOR, Accepts("entity", "relation")],
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
