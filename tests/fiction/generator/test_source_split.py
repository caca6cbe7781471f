"""The split: each fact in its source, with exact shares."""

import re
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from showhow.fiction.generator.source_split import WEB_PERCENT, SourceSplit, assign_sources, parse_split
from showhow.fiction.universe.universe import ALL_SOURCES, FACTS, GRAPH, SOURCES, TEXT, FactSources, Universe
from showhow.worlds.folder import WorldError
from tests.examples import examples
from tests.fiction.generator.split_universes import SPLITS, split_universe

shares = st.tuples(st.integers(0, 100), st.integers(0, 100)).map(
    lambda cuts: (min(cuts), max(cuts) - min(cuts), 100 - max(cuts))
)


def masks_of(universe: Universe, fact_sources: FactSources, fact: str) -> Iterator[tuple[int, int]]:
    """Rows that have the fact with their masks; couples once, without the jobs of namesakes."""
    for row, (value, mask) in enumerate(
        zip(getattr(universe, fact).tolist(), fact_sources.masks[fact].tolist(), strict=True)
    ):
        of_couple = fact in ("spouse", "wedding")
        in_title = fact == "job" and universe.names[row] != universe.titles[row]
        if value >= 0 and not (of_couple and universe.spouse[row] < row) and not in_title:
            yield row, mask


def test_a_split_is_parsed():
    assert parse_split(" everywhere ") == SourceSplit(None, "both")
    assert parse_split("web=20, text = 50,graph=30", "entity") == SourceSplit((50, 30, 20), "entity")
    assert parse_split("graph=100", "relation") == SourceSplit((0, 100, 0), "relation")


@pytest.mark.parametrize(
    ("text", "by", "message"),
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
def test_an_invalid_split_raises_a_clear_error(text: str, by: str, message: str):
    with pytest.raises(WorldError, match=rf"^[^\n]*{re.escape(message)}[^\n]*\.$"):
        parse_split(text, by)


@settings(max_examples=examples(30))
@given(shares, st.integers(0, 2**63 - 1))
def test_shares_of_every_kind_of_fact_hold_up_to_rounding(shares: tuple[int, int, int], seed: int):
    universe, _, _ = split_universe(1)
    fact_sources = assign_sources(universe, SourceSplit(shares), seed)
    kinds = [[mask for _, mask in masks_of(universe, fact_sources, fact)] for fact in FACTS]
    for masks in [*kinds, fact_sources.friends.tolist()]:
        for share, source in zip(shares, SOURCES.values(), strict=True):
            assert abs(masks.count(source) - len(masks) * share / 100) < 1


@settings(max_examples=examples(30))
@given(shares, st.integers(0, 2**63 - 1))
def test_split_by_entity_each_person_has_one_source(shares: tuple[int, int, int], seed: int):
    universe, _, _ = split_universe(1)
    fact_sources = assign_sources(universe, SourceSplit(shares, "entity"), seed)
    of_person: dict[int, set[int]] = {row: set() for row in range(len(universe))}
    for fact in FACTS:
        for row, mask in masks_of(universe, fact_sources, fact):
            of_person[row].add(mask)
    for one, mask in zip(universe.friends.pairs[:, 0].tolist(), fact_sources.friends.tolist(), strict=True):
        of_person[one].add(mask)
    assert {len(sources) for sources in of_person.values()} == {1}
    assigned = [sources.pop() for sources in of_person.values()]
    for share, source in zip(shares, SOURCES.values(), strict=True):
        assert abs(assigned.count(source) - len(universe) * share / 100) < 1


@settings(max_examples=examples(30))
@given(shares, st.integers(0, 2**63 - 1))
def test_split_by_relation_each_kind_of_fact_has_one_source(shares: tuple[int, int, int], seed: int):
    universe, _, _ = split_universe(1)
    fact_sources = assign_sources(universe, SourceSplit(shares, "relation"), seed)
    assigned = [{mask for _, mask in masks_of(universe, fact_sources, fact)} for fact in FACTS] + [
        set(fact_sources.friends.tolist())
    ]
    assert {len(sources) for sources in assigned} == {1}
    sources = [kind.pop() for kind in assigned]
    for share, source in zip(shares, SOURCES.values(), strict=True):
        assert abs(sources.count(source) - len(assigned) * share / 100) < 1


def test_the_split_everywhere_puts_all_facts_in_text_and_graph():
    universe, fact_sources, _ = split_universe(1)
    for fact in FACTS:
        masks = [mask for _, mask in masks_of(universe, fact_sources, fact)]
        assert set(masks) == {TEXT | GRAPH, ALL_SOURCES}
        assert abs(masks.count(ALL_SOURCES) - len(masks) * WEB_PERCENT / 100) < 1
    assert set(fact_sources.friends.tolist()) == {TEXT | GRAPH, ALL_SOURCES}


@pytest.mark.parametrize(("split", "by"), SPLITS)
def test_couples_share_masks_and_namesakes_jobs_are_in_all_sources(split: str, by: str):
    universe, fact_sources, _ = split_universe(2, split, by)
    namesakes = 0
    for row in range(len(universe)):
        for fact in ("spouse", "wedding"):
            if universe.spouse[row] >= 0:
                assert fact_sources.masks[fact][row] == fact_sources.masks[fact][universe.spouse[row]]
        for fact in FACTS:
            assert getattr(universe, fact)[row] >= 0 or fact_sources.masks[fact][row] == ALL_SOURCES
        if universe.names[row] != universe.titles[row]:
            assert fact_sources.masks["job"][row] == ALL_SOURCES
            namesakes += 1
    assert namesakes


def test_the_split_depends_only_on_the_seed():
    universe, _, _ = split_universe(1)
    one, again, other = (assign_sources(universe, parse_split("text=50,graph=50"), seed) for seed in (1, 1, 2))
    same = [all(np.array_equal(one.masks[fact], other.masks[fact]) for fact in FACTS) for other in (again, other)]
    assert (same, np.array_equal(one.friends, again.friends)) == ([True, False], True)
