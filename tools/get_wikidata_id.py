"""From a name to the ids that queries use."""

from collections.abc import Sequence
from typing import Annotated

from tools.arguments import graph_of
from tools.tool import Context, Observation
from tools.tool_error import ToolError
from worlds.source import Ambiguous, Entity, NotFound

MOST = 5


def get_wikidata_id(context: Context, title: Annotated[str, "title of an article, or a name"]) -> Observation:
    """Find the id of what an article is about, or of whatever has that name; several candidates come best first."""
    graph = graph_of(context.world, "getWikiDataID")
    found: list[Entity] = []
    several: Ambiguous | None = None
    try:
        found.append(graph.entity_of(title))
    except Ambiguous as choices:
        several = choices
    except NotFound:
        # What is no article's title may still be a name that the graph knows.
        several = None
    found += _others(graph.find(title, MOST), found)
    found += _others(_meant(several), found)
    if not found:
        raise ToolError(
            str(several)
            if several
            else f"Nothing in this world is called {title!r}; search for it with wikisearch and use the title found."
        )
    return Observation(
        "\n".join(map(described, found[:MOST])), {"entities": [_listed(entity) for entity in found[:MOST]]}
    )


def _meant(several: Ambiguous | None) -> list[Entity]:
    """What an article's title may mean, as far as the ids of these are known."""
    choices = several.choices if several else ()
    return [Entity(one.entity, one.title, one.description, title=one.title) for one in choices if one.entity]


def _others(entities: Sequence[Entity], known: Sequence[Entity]) -> list[Entity]:
    ids = {entity.id for entity in known}
    return [entity for entity in entities if entity.id not in ids]


def described(entity: Entity) -> str:
    """One line: id, label and description."""
    return f"{entity.id}: {entity.label}" + (f" ({entity.description})" if entity.description else "")


def _listed(entity: Entity) -> dict[str, str | None]:
    return {"id": entity.id, "label": entity.label, "description": entity.description, "title": entity.title}
