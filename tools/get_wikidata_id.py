"""From a name to the ids that queries use."""

from contextlib import suppress
from typing import Annotated

from tools.arguments import graph_of
from tools.tool import Context, Observation
from tools.tool_error import ToolError
from worlds.source import Entity, NotFound

MOST = 5


def get_wikidata_id(context: Context, title: Annotated[str, "title of an article, or a name"]) -> Observation:
    """Find the id of what an article is about, or of whatever has that name; several candidates come best first."""
    graph = graph_of(context.world, "getWikiDataID")
    found: list[Entity] = []
    with suppress(NotFound):
        # What is no article's title may still be a name that the graph knows.
        found.append(graph.entity_of(title))
    found += [entity for entity in graph.find(title, MOST) if entity.id not in {known.id for known in found}]
    if not found:
        raise ToolError(
            f"Nothing in this world is called {title!r}; search for it with wikisearch and use the title found."
        )
    return Observation(
        "\n".join(map(described, found[:MOST])), {"entities": [_listed(entity) for entity in found[:MOST]]}
    )


def described(entity: Entity) -> str:
    """One line: id, label and description."""
    return f"{entity.id}: {entity.label}" + (f" ({entity.description})" if entity.description else "")


def _listed(entity: Entity) -> dict[str, str | None]:
    return {"id": entity.id, "label": entity.label, "description": entity.description, "title": entity.title}
