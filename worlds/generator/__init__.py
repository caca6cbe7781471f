"""Small fictional worlds: families as articles and as a graph, with questions and every right answer."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from worlds.build import Sources, build_world
from worlds.folder import WorldError
from worlds.generator.articles import articles
from worlds.generator.graph import Items, triples
from worlds.generator.people import Universe
from worlds.generator.questions import GeneratedQuestion, questions
from worlds.source import Article

FEWEST, MOST = 10, 10_000


@dataclass(frozen=True, slots=True)
class GeneratedWorld:
    """Articles, a graph in N-Triples, and questions: the same for the same number of people and seed."""

    articles: list[Article]
    triples: list[str]
    questions: list[GeneratedQuestion]


def generate(people: int, seed: int) -> GeneratedWorld:
    """A world of that many people."""
    if not FEWEST <= people <= MOST:
        raise WorldError(f"A generated world has from {FEWEST} to {MOST:,} people, not {people:,}.")
    universe = Universe(people, seed)
    items = Items(universe)
    return GeneratedWorld(
        list(articles(universe, items, seed)), list(triples(universe, items)), list(questions(universe, items, seed))
    )


def build_generated(
    worlds: Path, name: str, made: GeneratedWorld, about: dict[str, Any], *, replace: bool
) -> dict[str, Any]:
    """Build the folder of a generated world; gives what its world.toml says."""
    with tempfile.TemporaryDirectory(prefix="showhow-graph-") as folder:
        graph = Path(folder) / "graph.nt"
        graph.write_text("\n".join(made.triples) + "\n", encoding="utf-8")
        told = {"kind": "generated", **about, "questions": len(made.questions)}
        return build_world(worlds, name, Sources(made.articles, graph, told), replace=replace)
