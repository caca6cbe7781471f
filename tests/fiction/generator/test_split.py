"""The split: every fact in its source, shares exactly as asked."""

import re
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fiction.generator.split import WEB_PERCENT, SourceSplit, assign_sources, parse_split
from fiction.universe.universe import ALL_SOURCES, FACTS, GRAPH, SOURCES, TEXT, FactSources, Universe
from tests.examples import examples
from tests.fiction.generator.told import SPLITS, made
from worlds.folder import WorldError

shares = st.tuples(st.integers(0, 100), st.integers(0, 100)).map(
    lambda cuts: (min(cuts), max(cuts) - min(cuts), 100 - max(cuts))
)


def masks_of(universe: Universe, told: FactSources, fact: str) -> Iterator[tuple[int, int]]:
    """Everybody who has the fact, with its mask, once a couple and without the jobs of namesakes."""
    for row, (value, mask) in enumerate(zip(getattr(universe, fact).tolist(), told.masks[fact].tolist(), strict=True)):
        of_couple = fact in ("spouse", "wedding")
        in_title = fact == "job" and universe.names[row] != universe.titles[row]
        if value >= 0 and not (of_couple and universe.spouse[row] < row) and not in_title:
            yield row, mask


def test_a_split_is_read_as_it_is_written():
    assert parse_split(" everywhere ") == SourceSplit(None, "both")
    assert parse_split("web=20, text = 50,graph=30", "entity") == SourceSplit((50, 30, 20), "entity")
    assert parse_split("graph=100", "relation") == SourceSplit((0, 100, 0), "relation")


@pytest.mark.parametrize(
    ("text", "by", "said"),
    [
        ("text=50,graph=20", "both", "add up to 70"),
        ("text=50,text=50", "both", "names text twice"),
        ("books=100", "both", "cannot be read at 'books=100'"),
        ("text", "both", "cannot be read at 'text'"),
        ("text=-1,graph=101", "both", "cannot be read at 'text=-1'"),
        ("text=½,graph=50", "both", "cannot be read"),
        ("", "both", "cannot be read at ''"),
        ("everywhere", "weekday", "not by 'weekday'"),
    ],
)
def test_what_is_no_split_is_told_in_one_sentence(text: str, by: str, said: str):
    with pytest.raises(WorldError, match=rf"^[^\n]*{re.escape(said)}[^\n]*\.$"):
        parse_split(text, by)


@settings(max_examples=examples(30))
@given(shares, st.integers(0, 2**63 - 1))
def test_shares_of_every_kind_of_fact_hold_up_to_rounding(asked: tuple[int, int, int], seed: int):
    universe, _, _ = made(1)
    told = assign_sources(universe, SourceSplit(asked), seed)
    kinds = [[mask for _, mask in masks_of(universe, told, fact)] for fact in FACTS]
    for masks in [*kinds, told.friends.tolist()]:
        for share, source in zip(asked, SOURCES.values(), strict=True):
            assert abs(masks.count(source) - len(masks) * share / 100) < 1


@settings(max_examples=examples(30))
@given(shares, st.integers(0, 2**63 - 1))
def test_split_by_entity_each_person_has_one_source(asked: tuple[int, int, int], seed: int):
    universe, _, _ = made(1)
    told = assign_sources(universe, SourceSplit(asked, "entity"), seed)
    of_person: dict[int, set[int]] = {row: set() for row in range(len(universe))}
    for fact in FACTS:
        for row, mask in masks_of(universe, told, fact):
            of_person[row].add(mask)
    for one, mask in zip(universe.friends.pairs[:, 0].tolist(), told.friends.tolist(), strict=True):
        of_person[one].add(mask)
    assert {len(sources) for sources in of_person.values()} == {1}
    found = [sources.pop() for sources in of_person.values()]
    for share, source in zip(asked, SOURCES.values(), strict=True):
        assert abs(found.count(source) - len(universe) * share / 100) < 1


@settings(max_examples=examples(30))
@given(shares, st.integers(0, 2**63 - 1))
def test_split_by_relation_each_kind_of_fact_has_one_source(asked: tuple[int, int, int], seed: int):
    universe, _, _ = made(1)
    told = assign_sources(universe, SourceSplit(asked, "relation"), seed)
    found = [{mask for _, mask in masks_of(universe, told, fact)} for fact in FACTS] + [set(told.friends.tolist())]
    assert {len(sources) for sources in found} == {1}
    sources = [kind.pop() for kind in found]
    for share, source in zip(asked, SOURCES.values(), strict=True):
        assert abs(sources.count(source) - len(found) * share / 100) < 1


def test_everywhere_text_and_graph_tell_all_and_pages_a_part():
    universe, told, _ = made(1)
    for fact in FACTS:
        masks = [mask for _, mask in masks_of(universe, told, fact)]
        assert set(masks) == {TEXT | GRAPH, ALL_SOURCES}
        assert abs(masks.count(ALL_SOURCES) - len(masks) * WEB_PERCENT / 100) < 1
    assert set(told.friends.tolist()) == {TEXT | GRAPH, ALL_SOURCES}


@pytest.mark.parametrize(("split", "by"), SPLITS)
def test_a_couple_is_told_of_alike_and_a_title_tells_the_job(split: str, by: str):
    universe, told, _ = made(2, split, by)
    namesakes = 0
    for row in range(len(universe)):
        for fact in ("spouse", "wedding"):
            if universe.spouse[row] >= 0:
                assert told.masks[fact][row] == told.masks[fact][universe.spouse[row]]
        for fact in FACTS:
            assert getattr(universe, fact)[row] >= 0 or told.masks[fact][row] == ALL_SOURCES
        if universe.names[row] != universe.titles[row]:
            assert told.masks["job"][row] == ALL_SOURCES
            namesakes += 1
    assert namesakes


def test_a_seed_tells_the_same_again_and_another_otherwise():
    universe, _, _ = made(1)
    one, again, other = (assign_sources(universe, parse_split("text=50,graph=50"), seed) for seed in (1, 1, 2))
    same = [all(np.array_equal(one.masks[fact], each.masks[fact]) for fact in FACTS) for each in (again, other)]
    assert (same, np.array_equal(one.friends, again.friends)) == ([True, False], True)
