"""Whether a built graph holds the triples that it should tell, and no other."""

from pathlib import Path

import pyoxigraph as ox

from worlds.folder import GRAPH
from worlds.generator.statements import statements
from worlds.universe.universe import Universe
from worlds.verification.check import Check


def check_graph(folder: Path, told: Universe) -> Check:
    """Every triple of the graph in a world's folder."""
    check = Check("triples")
    store = ox.Store.read_only(str(folder / GRAPH))
    count = 0
    for block in statements(told):
        for triple in ox.parse(block, format=ox.RdfFormat.N_TRIPLES):
            count += 1
            if triple not in store:
                check.differs("graph", "", _line(triple))
    check.checked = max(count, len(store))
    if len(store) + check.different > count:
        _find_others(check, store, told)
    return check


def _find_others(check: Check, store: ox.Store, told: Universe) -> None:
    known = {line for block in statements(told) for line in block.decode().splitlines()}
    for quad in store:
        if f"{_line(quad)} ." not in known:
            check.differs("graph", _line(quad), "")


def _line(quad: ox.Quad) -> str:
    return f"{quad.subject} {quad.predicate} {quad.object}"
