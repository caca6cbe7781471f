from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.constraints import find_family_trees, find_violations
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.universe import Friendships, Universe
from tests.examples import examples
from tests.fiction.universe.random_options import options

OPTIONS = GenerationOptions(people=200, seed=3, collisions=0.1)
UNIVERSE = make_universe(OPTIONS)


def limit_violations(universe: Universe, **changes: float) -> list[str]:
    return list(find_violations(universe, replace(OPTIONS, **changes)))


def walk_tree(universe: Universe, start: int) -> dict[int, int]:
    """All people of a person's tree with their generation relative to the start, by a graph walk."""
    levels, waiting = {start: 0}, [start]
    while waiting:
        row = waiting.pop()
        near = [(int(universe.spouse[row]), 0), (int(universe.father[row]), -1), (int(universe.mother[row]), -1)]
        near += [
            (child, 1) for child in range(len(universe)) if row in (universe.father[child], universe.mother[child])
        ]
        for other, deeper in near:
            if other >= 0 and other not in levels:
                levels[other] = levels[row] + deeper
                waiting.append(other)
    return levels


@settings(max_examples=examples(25))
@given(options(most=80))
def test_trees_and_generations_equal_those_of_a_graph_walk(options):
    universe = make_universe(options)
    tree, generation = find_family_trees(universe)
    for start in np.unique(tree).tolist():
        members = walk_tree(universe, start)
        assert sorted(members) == np.flatnonzero(tree == start).tolist()
        assert all(generation[row] == level for row, level in members.items())
        assert start == min(members)
        assert len(members) <= options.family_size
        assert max(members.values()) - min(members.values()) < options.generations


def test_trees_have_the_requested_size_and_the_last_has_the_remainder():
    tree, _ = find_family_trees(make_universe(GenerationOptions(people=110, seed=1, family_size=25)))
    assert np.unique(tree, return_counts=True)[1].tolist() == [25, 25, 25, 25, 10]


def test_violations_of_the_options_are_reported():
    assert limit_violations(UNIVERSE) == []
    assert limit_violations(UNIVERSE, people=201) == ["There are 200 people; 201 were requested."]
    assert any(sentence.endswith("children, more than 2.") for sentence in limit_violations(UNIVERSE, branching=2))
    assert any(
        sentence.endswith("has 25 people, more than 24.") for sentence in limit_violations(UNIVERSE, family_size=24)
    )
    assert any(
        sentence.endswith("has 5 generations, more than 4.") for sentence in limit_violations(UNIVERSE, generations=4)
    )
    assert limit_violations(UNIVERSE, collisions=0) == ["20 people have a namesake; 0 were requested."]
    assert limit_violations(UNIVERSE, collisions=0.2) == ["20 people have a namesake; 40 were requested."]
    assert limit_violations(UNIVERSE, friends=30) == [
        f"There are {len(UNIVERSE.friends.pairs)} friendships; about 2,985 were requested."
    ]
    assert len(limit_violations(replace(UNIVERSE, friends=Friendships(UNIVERSE.friends.pairs[:0])))) == 1


def test_a_surname_other_than_the_fathers_is_reported():
    child = int(np.flatnonzero(UNIVERSE.father >= 0)[0])
    names = list(UNIVERSE.names)
    names[child] = f"{names[child].split(' ')[0]} Elsewhere"
    sentences = limit_violations(replace(UNIVERSE, names=names))
    assert sentences[0].endswith(f"does not have the surname of {UNIVERSE.titles[UNIVERSE.father[child]]}, the father.")


def test_namesakes_with_the_same_job_are_reported():
    shared = [row for row, name in enumerate(UNIVERSE.names) if UNIVERSE.names.count(name) > 1]
    job = UNIVERSE.job.copy()
    job[shared] = 0
    sentences = limit_violations(replace(UNIVERSE, job=job))
    assert sum(sentence.endswith("have the same job.") for sentence in sentences) == 10


def test_titles_that_do_not_match_names_are_reported():
    titles = list(UNIVERSE.titles)
    alone = next(row for row, title in enumerate(titles) if "(" not in title)
    titles[alone] += " (unknown)"
    assert limit_violations(replace(UNIVERSE, titles=titles)) == [
        f"The article of {UNIVERSE.names[alone]} has the title {titles[alone]} instead of {UNIVERSE.names[alone]}."
    ]


@pytest.mark.parametrize("size", [1, 2, 25, 499])
@given(st.integers(2, 20), st.integers(2, 20), st.integers(0, 2**63 - 1))
@settings(max_examples=examples(10))
def test_families_of_any_size_grow_within_the_limits(size, generations, branching, seed):
    options = GenerationOptions(people=size, seed=seed, family_size=size, generations=generations, branching=branching)
    tree, _ = find_family_trees(make_universe(options))
    assert not tree.any()
