from collections import Counter
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.fiction.generator.source_split import assign_sources, parse_split
from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.universe import (
    ALL_SOURCES,
    FACTS,
    GRAPH,
    NONE,
    SOURCES,
    TEXT,
    WEB,
    WITHHELD,
    CompressedLists,
    FactSources,
    Universe,
    count_by_sources,
)
from showhow.worlds.folder import WorldError
from tests.fiction.universe.random_options import digest

OF_SOURCES = ("friends", "born_long_ago")
UNIVERSE = make_universe(GenerationOptions(people=120, seed=11, collisions=0.1))


def random_fact_sources(seed: int = 0) -> FactSources:
    generator = np.random.default_rng(seed)
    masks = {fact: generator.integers(0, 8, len(UNIVERSE)).astype(np.uint8) for fact in FACTS}
    return FactSources(masks, generator.integers(0, 8, len(UNIVERSE.friends.pairs)).astype(np.uint8))


def test_a_saved_universe_loads_unchanged(tmp_path: Path):
    UNIVERSE.save(tmp_path / "universe.npz")
    assert digest(Universe.load(tmp_path / "universe.npz")) == digest(UNIVERSE)


def test_saved_masks_load_unchanged(tmp_path: Path):
    random_fact_sources().save(tmp_path / "told.npz")
    loaded = FactSources.load(tmp_path / "told.npz")
    assert loaded.friends.tolist() == random_fact_sources().friends.tolist()
    assert {fact: mask.tolist() for fact, mask in loaded.masks.items()} == {
        fact: mask.tolist() for fact, mask in random_fact_sources().masks.items()
    }


@pytest.mark.parametrize("kind", [Universe, FactSources])
@pytest.mark.parametrize("damage", ["missing", "empty", "text", "cut off", "of another kind"])
def test_an_invalid_file_raises_an_error(tmp_path: Path, kind, damage):
    file = tmp_path / "file.npz"
    UNIVERSE.save(file) if kind is Universe else random_fact_sources().save(file)
    whole = file.read_bytes()
    if damage == "missing":
        file.unlink()
    elif damage == "of another kind":
        np.savez(file, numbers=np.zeros(3))
    else:
        file.write_bytes({"empty": b"", "text": b"hello", "cut off": whole[: len(whole) // 2]}[damage])
    with pytest.raises(WorldError, match=r"cannot be read .* build the world again"):
        kind.load(file)


@pytest.mark.parametrize("sources", [TEXT, GRAPH, WEB, TEXT | GRAPH, TEXT | WEB, GRAPH | WEB])
def test_a_restricted_universe_has_exactly_the_facts_of_its_masks(sources):
    masks = random_fact_sources()
    restricted = UNIVERSE.restrict_to_sources(masks, sources)
    for fact in FACTS:
        for row, (value, mask) in enumerate(
            zip(getattr(UNIVERSE, fact).tolist(), masks.masks[fact].tolist(), strict=True)
        ):
            expected = value if value == NONE or mask & sources else WITHHELD
            assert getattr(restricted, fact)[row] == expected
    visible = [
        pair
        for pair, mask in zip(UNIVERSE.friends.pairs.tolist(), masks.friends.tolist(), strict=True)
        if mask & sources
    ]
    assert restricted.friends.pairs.tolist() == visible
    unchanged = [attribute.name for attribute in fields(UNIVERSE) if attribute.name not in (*FACTS, *OF_SOURCES)]
    assert all(getattr(restricted, name) is getattr(UNIVERSE, name) for name in unchanged)
    # Who cannot be alive is known without the sources that state births.
    assert restricted.find_born_long_ago().tolist() == [
        UNIVERSE.today - day > 105 * 366 for day in UNIVERSE.birth.tolist()
    ]


def test_all_sources_together_state_every_fact():
    assert UNIVERSE.restrict_to_sources(random_fact_sources(), ALL_SOURCES) is UNIVERSE


@pytest.mark.parametrize(
    "universe", [UNIVERSE, UNIVERSE.restrict_to_sources(random_fact_sources(), TEXT)], ids=["whole", "in part"]
)
def test_indexed_lookups_equal_linear_searches(universe):
    pairs = universe.friends.pairs.tolist()
    for row in range(len(universe)):
        parents = zip(universe.father.tolist(), universe.mother.tolist(), strict=True)
        assert universe.children.get_one(row).tolist() == [child for child, two in enumerate(parents) if row in two]
        friends = sorted(other for pair in pairs for other in pair if row in pair and other != row)
        assert universe.friends_of.get_one(row).tolist() == friends
        assert universe.find_people_with("job", row).tolist() == np.flatnonzero(universe.job == row).tolist()
        born = int(universe.birth[row])
        same = np.flatnonzero(universe.birth == born).tolist() if born >= 0 else []
        assert universe.find_people_with("birth", born).tolist() == same


@given(st.integers(0, 9), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99))), st.lists(st.integers(0, 9)))
def test_compressed_lists_equal_dictionaries_of_sorted_values(more, entries, keys):
    n = 10 + more
    lists = CompressedLists.from_pairs(
        n, np.array([key for key, _ in entries], np.int32), np.array([value for _, value in entries], np.int32)
    )
    expected = [sorted(value for key, value in entries if key == of) for of in range(n)]
    assert [lists.get_one(key).tolist() for key in range(n)] == expected
    assert lists.list_sizes().tolist() == [len(values) for values in expected]
    assert lists.get_many(np.array(keys, np.int32)).tolist() == [value for key in keys for value in expected[key]]
    assert lists.get_one(-1).tolist() == lists.get_one(n).tolist() == []


def test_a_single_person_has_no_relatives(tmp_path: Path):
    alone = make_universe(GenerationOptions(people=1, seed=1))
    assert alone.children.get_one(0).tolist() == alone.friends_of.get_one(0).tolist() == []
    alone.save(tmp_path / "alone.npz")
    assert digest(Universe.load(tmp_path / "alone.npz")) == digest(alone)
    assert digest(replace(alone, today=1)) != digest(alone)


@pytest.mark.parametrize("split", ["everywhere", "text=50,graph=35,web=15", "graph=100"])
def test_facts_are_counted_by_their_sources(tmp_path, split):
    universe = make_universe(GenerationOptions(people=90, seed=4, split=split))
    fact_sources = assign_sources(universe, parse_split(split), 4)
    universe.save(tmp_path / "u.npz")
    fact_sources.save(tmp_path / "t.npz")
    counts = count_by_sources(tmp_path / "u.npz", tmp_path / "t.npz")

    def named(mask: int) -> str:
        return " + ".join(name for name, bit in SOURCES.items() if mask & bit)

    for fact in FACTS:
        rows = [row for row in range(len(universe)) if getattr(universe, fact)[row] > NONE]
        assert counts[fact] == Counter(named(int(fact_sources.masks[fact][row])) for row in rows)
    assert counts["friend"] == Counter(named(int(mask)) for mask in fact_sources.friends)
    assert list(counts) == [*FACTS, "friend"]


def test_a_damaged_split_raises_an_error(tmp_path):
    universe = make_universe(GenerationOptions(people=10, seed=4))
    universe.save(tmp_path / "u.npz")
    (tmp_path / "t.npz").write_bytes(b"nothing")
    with pytest.raises(WorldError, match="cannot be read"):
        count_by_sources(tmp_path / "u.npz", tmp_path / "t.npz")
