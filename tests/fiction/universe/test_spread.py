from collections import Counter

import pytest

from fiction.generator.split import assign_sources, parse_split
from fiction.universe.build import make_universe
from fiction.universe.options import GenerationOptions
from fiction.universe.universe import FACTS, NONE, SOURCES, count_by_sources
from worlds.folder import WorldError


@pytest.mark.parametrize("split", ["everywhere", "text=50,graph=35,web=15", "graph=100"])
def test_every_fact_is_counted_once_under_the_sources_that_tell_it(tmp_path, split):
    universe = make_universe(GenerationOptions(people=90, seed=4, split=split))
    told = assign_sources(universe, parse_split(split), 4)
    universe.save(tmp_path / "u.npz")
    told.save(tmp_path / "t.npz")
    found = count_by_sources(tmp_path / "u.npz", tmp_path / "t.npz")

    def named(mask: int) -> str:
        return " + ".join(name for name, bit in SOURCES.items() if mask & bit)

    for fact in FACTS:
        known = [row for row in range(len(universe)) if getattr(universe, fact)[row] > NONE]
        assert found[fact] == Counter(named(int(told.masks[fact][row])) for row in known)
    assert found["friend"] == Counter(named(int(mask)) for mask in told.friends)
    assert list(found) == [*FACTS, "friend"]


def test_a_damaged_split_is_told(tmp_path):
    universe = make_universe(GenerationOptions(people=10, seed=4))
    universe.save(tmp_path / "u.npz")
    (tmp_path / "t.npz").write_bytes(b"nothing")
    with pytest.raises(WorldError, match="cannot be read"):
        count_by_sources(tmp_path / "u.npz", tmp_path / "t.npz")
