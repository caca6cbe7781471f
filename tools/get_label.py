"""From ids to names."""

from typing import Annotated

from tools.arguments import AS_IDS, bare_id, graph_of
from tools.get_wikidata_id import described
from tools.tool import Context, Observation
from tools.tool_error import ToolError

MOST_SHOWN = 50


def get_label(context: Context, ids: Annotated[list[str], "ids such as Q42 or P57", AS_IDS]) -> Observation:
    """Look up what entities and properties are called."""
    graph = graph_of(context.world, "getLabel")
    wanted = list(dict.fromkeys(map(bare_id, ids)))
    if not wanted:
        raise ToolError("getLabel needs at least one id such as Q42.")
    found = graph.entities(wanted)
    known = {entity.id for entity in found}
    unknown = [one for one in wanted if one not in known]
    if not found:
        raise ToolError(
            f"This world knows none of {', '.join(unknown[:MOST_SHOWN])}; ids come from getWikiDataID or runQuery."
        )
    lines = [described(entity) for entity in found[:MOST_SHOWN]]
    if len(found) > MOST_SHOWN:
        lines.append(f"... {len(found) - MOST_SHOWN} more labels")
    if unknown:
        lines.append(f"Not known: {', '.join(unknown[:MOST_SHOWN])}")
    labels = [{"id": entity.id, "label": entity.label, "description": entity.description} for entity in found]
    return Observation("\n".join(lines), {"labels": labels})
