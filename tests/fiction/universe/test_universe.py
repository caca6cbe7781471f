from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fiction.universe.build import make_universe
from fiction.universe.options import GenerationOptions
from fiction.universe.universe import (
    ALL_SOURCES,
    FACTS,
    GRAPH,
    NONE,
    TEXT,
    WEB,
    WITHHELD,
    CompressedLists,
    FactSources,
    Universe,
)
from tests.fiction.universe.drawn import digest
from worlds.folder import WorldError

MADE = make_universe(GenerationOptions(people=120, seed=11, collisions=0.1))


def told(seed: int = 0) -> FactSources:
    chance = np.random.default_rng(seed)
    masks = {fact: chance.integers(0, 8, len(MADE)).astype(np.uint8) for fact in FACTS}
    return FactSources(masks, chance.integers(0, 8, len(MADE.friends.pairs)).astype(np.uint8))


def test_a_universe_comes_back_from_its_file(tmp_path: Path):
    MADE.save(tmp_path / "universe.npz")
    assert digest(Universe.load(tmp_path / "universe.npz")) == digest(MADE)


def test_masks_come_back_from_their_file(tmp_path: Path):
    told().save(tmp_path / "told.npz")
    found = FactSources.load(tmp_path / "told.npz")
    assert found.friends.tolist() == told().friends.tolist()
    assert {fact: mask.tolist() for fact, mask in found.masks.items()} == {
        fact: mask.tolist() for fact, mask in told().masks.items()
    }


@pytest.mark.parametrize("kind", [Universe, FactSources])
@pytest.mark.parametrize("damage", ["missing", "empty", "text", "cut off", "of another kind"])
def test_a_file_that_is_none_is_refused(tmp_path: Path, kind, damage):
    file = tmp_path / "file.npz"
    MADE.save(file) if kind is Universe else told().save(file)
    whole = file.read_bytes()
    if damage == "missing":
        file.unlink()
    elif damage == "of another kind":
        np.savez(file, numbers=np.zeros(3))
    else:
        file.write_bytes({"empty": b"", "text": b"hello", "cut off": whole[: len(whole) // 2]}[damage])
    with pytest.raises(WorldError, match=r"cannot be read .* make the world again"):
        kind.load(file)


@pytest.mark.parametrize("sources", [TEXT, GRAPH, WEB, TEXT | GRAPH, TEXT | WEB, GRAPH | WEB])
def test_sources_tell_exactly_what_their_masks_say(sources):
    masks = told()
    seen = MADE.restrict_to_sources(masks, sources)
    for fact in FACTS:
        for row, (value, mask) in enumerate(zip(getattr(MADE, fact).tolist(), masks.masks[fact].tolist(), strict=True)):
            expected = value if value == NONE or mask & sources else WITHHELD
            assert getattr(seen, fact)[row] == expected
    kept = [
        pair for pair, mask in zip(MADE.friends.pairs.tolist(), masks.friends.tolist(), strict=True) if mask & sources
    ]
    assert seen.friends.pairs.tolist() == kept
    unchanged = [each.name for each in fields(MADE) if each.name not in (*FACTS, "friends")]
    assert all(getattr(seen, name) is getattr(MADE, name) for name in unchanged)


def test_all_sources_together_tell_everything_that_any_tells():
    assert MADE.restrict_to_sources(told(), ALL_SOURCES) is MADE


@pytest.mark.parametrize("universe", [MADE, MADE.restrict_to_sources(told(), TEXT)], ids=["whole", "in part"])
def test_children_friends_and_people_of_a_value_are_those_that_one_finds_by_looking(universe):
    pairs = universe.friends.pairs.tolist()
    for row in range(len(universe)):
        parents = zip(universe.father.tolist(), universe.mother.tolist(), strict=True)
        assert universe.children.of_one(row).tolist() == [child for child, two in enumerate(parents) if row in two]
        friends = sorted(other for pair in pairs for other in pair if row in pair and other != row)
        assert universe.friends_of.of_one(row).tolist() == friends
        assert universe.people_with("job", row).tolist() == np.flatnonzero(universe.job == row).tolist()
        born = int(universe.birth[row])
        same = np.flatnonzero(universe.birth == born).tolist() if born >= 0 else []
        assert universe.people_with("birth", born).tolist() == same


@given(st.integers(0, 9), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99))), st.lists(st.integers(0, 9)))
def test_lists_are_dictionaries_of_sorted_values(more, entries, asked):
    n = 10 + more
    found = CompressedLists.from_pairs(
        n, np.array([key for key, _ in entries], np.int32), np.array([value for _, value in entries], np.int32)
    )
    expected = [sorted(value for key, value in entries if key == of) for of in range(n)]
    assert [found.get_one(key).tolist() for key in range(n)] == expected
    assert found.list_sizes().tolist() == [len(values) for values in expected]
    assert found.get_many(np.array(asked, np.int32)).tolist() == [value for key in asked for value in expected[key]]
    assert found.get_one(-1).tolist() == found.get_one(n).tolist() == []


def test_a_universe_of_one_person_has_nobody_related(tmp_path: Path):
    alone = make_universe(GenerationOptions(people=1, seed=1))
    assert alone.children.get_one(0).tolist() == alone.friends_of.get_one(0).tolist() == []
    alone.save(tmp_path / "alone.npz")
    assert digest(Universe.load(tmp_path / "alone.npz")) == digest(alone)
    assert digest(replace(alone, today=1)) != digest(alone)
