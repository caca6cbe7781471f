"""The tool getLabel: the labels of entities and properties."""

from typing import Annotated

from tools.arguments import SPLIT_IDS_VALIDATOR, ToolError, normalize_id, require_graph
from tools.get_wikidata_id import format_entity
from tools.parameter import Accepts
from tools.tool import Observation, ToolContext
from worlds.source import ErrorKind

MAX_LABELS_SHOWN = 50


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
