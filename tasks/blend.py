"""Questions of BlendQA's kinds over a world of several sources."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from showhow.option_fields import option
from showhow.runs.services import Services
from showhow.tasks.task import TaskError, open_atomically
from showhow.worlds.clues import find_clue_rows
from showhow.worlds.embedded.graph import EmbeddedGraph
from showhow.worlds.embedded.text import EmbeddedText
from showhow.worlds.folder import world_folder
from showhow.worlds.open import read_world_metadata

if TYPE_CHECKING:
    from showhow.fiction.questions.blend import QuestionBlender

BLEND_KIND_NAMES = ("kg-text", "kg-web", "text-web")
MAX_ARTICLES = 50_000
"""Articles of a world that are read for sentences that tell their subjects from all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlendQuestions:
    """Questions that need two sources of a world, with gold answers from its facts."""

    world: str = option(is_argument=True)
    to: Path = option(help="The file to write, in the format that `showhow questions import` reads.")
    kind: tuple[str, ...] = option(
        (), f"Only this kind, which names the two sources: {', '.join(BLEND_KIND_NAMES)}; may be repeated."
    )
    count: int = option(20, "Questions of each kind.", minimum=1, maximum=10_000)
    seed: int = option(0, "The same seed gives the same questions.", minimum=0)
    force: bool = option(default=False, help="Replace an existing file.")


@dataclass(frozen=True, slots=True)
class BlendedFile:
    """How many questions of each kind were written, and a sentence for each kind with fewer than asked for."""

    counts: dict[str, int]
    shortfalls: list[str]


def blend(services: Services, request: BlendQuestions) -> BlendedFile:
    """Write the questions; TaskError if the world has none of the kinds."""
    kinds = tuple(dict.fromkeys(request.kind)) or BLEND_KIND_NAMES
    if strange := [kind for kind in kinds if kind not in BLEND_KIND_NAMES]:
        raise TaskError(f"there is no kind {strange[0]!r}; there are {', '.join(BLEND_KIND_NAMES)}")
    rows = _blend_generated(services, request, kinds)
    if rows is None:
        rows = {kind: _blend_imported(services, request) if kind == "kg-text" else [] for kind in kinds}
    counts = {kind: len(of_kind) for kind, of_kind in rows.items()}
    shortfalls = [
        f"{kind}: {count:,} of {request.count:,} questions; the facts of {request.world} that only one of its sources "
        "states make no more"
        for kind, count in counts.items()
        if count < request.count
    ]
    if not any(counts.values()):
        raise TaskError(
            f"the world {request.world} has no question that needs two of its sources: generate a world with --split, "
            "or import one with articles about entities of its graph"
        )
    with open_atomically(request.to, force=request.force) as stream:
        for row in (row for of_kind in rows.values() for row in of_kind):
            stream.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    return BlendedFile(counts, shortfalls)


def _blend_generated(
    services: Services, request: BlendQuestions, kinds: tuple[str, ...]
) -> dict[str, list[Any]] | None:
    """The rows of each kind from the universe of a generated world; None for any other world."""
    blender = _open_blender(services, request.world)
    if blender is None:
        return None
    return {kind: [blended.to_row() for blended in blender.draw(kind, request.count, request.seed)] for kind in kinds}


def _open_blender(services: Services, world: str) -> "QuestionBlender | None":
    # Universes need NumPy, which takes 0.2 s to import.
    from showhow.fiction.generator.world_files import FACT_SOURCES_FILE, UNIVERSE_FILE  # noqa: PLC0415
    from showhow.fiction.questions.blend import QuestionBlender  # noqa: PLC0415
    from showhow.fiction.questions.names import NameFormatter  # noqa: PLC0415
    from showhow.fiction.universe.universe import FactSources, Universe  # noqa: PLC0415

    metadata = read_world_metadata(services.settings.worlds_folder, world)
    folder = world_folder(services.settings.worlds_folder, world)
    if not (folder / FACT_SOURCES_FILE).is_file():
        return None
    universe = Universe.load(folder / UNIVERSE_FILE)
    generator = metadata.get("generator")
    version = generator if isinstance(generator, int) else 1
    names = NameFormatter(universe, plain=bool(metadata.get("plain")), generator=version)
    return QuestionBlender(universe, FactSources.load(folder / FACT_SOURCES_FILE), names, version)


def _blend_imported(services: Services, request: BlendQuestions) -> list[Any]:
    world = services.open_world(request.world)
    if not isinstance(world.text, EmbeddedText) or not isinstance(world.graph, EmbeddedGraph):
        return []
    return find_clue_rows(world.text.list_articles(MAX_ARTICLES), world.graph, request.count, request.seed)
