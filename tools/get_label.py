"""From ids to names."""

from typing import Annotated

from tools.arguments import SPLIT_IDS_VALIDATOR, normalize_id, require_graph
from tools.errors import ToolError
from tools.get_wikidata_id import format_entity
from tools.parameter import Accepts
from tools.tool import Observation, ToolContext
from worlds.source import ErrorKind

MAX_LABELS_SHOWN = 50


def get_label(
    context: ToolContext, ids: Annotated[list[str], "ids such as Q42 or P57", SPLIT_IDS_VALIDATOR, Accepts("entity")]
) -> Observation:
    """Look up what entities and properties are called."""
    graph = require_graph(context.world, "getLabel")
    wanted = list(dict.fromkeys(map(normalize_id, ids)))
    if not wanted:
        raise ToolError("getLabel needs at least one id such as Q42.", ErrorKind.WRONG_ARGUMENTS)
    found = graph.entities(wanted)
    known = {entity.id for entity in found}
    unknown = [one for one in wanted if one not in known]
    if not found:
        raise ToolError(
            f"This world knows none of {', '.join(unknown[:MAX_LABELS_SHOWN])}; "
            "ids come from getWikiDataID or runQuery.",
            ErrorKind.NOT_FOUND,
        )
    lines = [format_entity(entity) for entity in found[:MAX_LABELS_SHOWN]]
    if len(found) > MAX_LABELS_SHOWN:
        lines.append(f"... {len(found) - MAX_LABELS_SHOWN} more labels")
    if unknown:
        lines.append(f"Not known: {', '.join(unknown[:MAX_LABELS_SHOWN])}")
    labels = [{"id": entity.id, "label": entity.label, "description": entity.description} for entity in found]
    return Observation("\n".join(lines), {"labels": labels})
