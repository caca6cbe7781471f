"""Families from the graph and from the universe, compared with each other and with the arrays."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from showhow.fiction.family import GraphKinshipSource, UniverseKinshipSource, build_family, build_universe_family
from showhow.fiction.generator.build import generate_world
from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.items import ItemCatalog
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.universe import NONE, Universe
from showhow.worlds.build import WorldContents, build_world
from showhow.worlds.open import open_world
from showhow.worlds.source import World

OPTIONS = GenerationOptions(people=130, seed=11, per_template=1)


@pytest.fixture(scope="module")
def universe() -> Universe:
    return make_universe(OPTIONS)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world whose graph has all facts."""
    worlds = tmp_path_factory.mktemp("home") / "worlds"
    generate_world(worlds, "kin", OPTIONS)
    opened = open_world(worlds, "kin")
    yield opened
    opened.graph.close()


def test_a_complete_graph_gives_the_true_family(world, universe):
    items = ItemCatalog(universe)
    for row in range(0, len(universe), 6):
        person = items.person(row)
        stated, true = build_family(GraphKinshipSource(world.graph), person), build_universe_family(universe, person)
        if true is None:
            assert stated is None
            continue
        assert stated.people == true.people
        assert stated.siblings == true.siblings
        for ours, theirs in ((stated.parents, true.parents), (stated.partners, true.partners)):
            assert {one: set(others) for one, others in ours.items()} == {
                one: set(others) for one, others in theirs.items()
            }
        assert stated.children(person) == true.children(person)


def test_a_family_has_exactly_the_relatives_within_two_generations(universe):
    items = ItemCatalog(universe)
    up = [[p for p in (int(universe.father[r]), int(universe.mother[r])) if p > NONE] for r in range(len(universe))]
    down = [[c for c in range(len(universe)) if r in up[c]] for r in range(len(universe))]
    married = [[int(universe.spouse[r])] if universe.spouse[r] > NONE else [] for r in range(len(universe))]
    for row in range(len(universe)):
        near = {row, *up[row], *married[row], *down[row]}
        near |= {relative for parent in up[row] for relative in (*up[parent], *down[parent])}
        near |= {relative for child in down[row] for relative in (*down[child], *married[child])}
        family = build_universe_family(universe, items.person(row))
        if len(near) == 1:
            assert family is None
        else:
            assert set(family.people) == {items.person(one) for one in near}


def test_siblings_and_children_are_sorted_by_age(universe):
    items = ItemCatalog(universe)
    families = [one for row in range(len(universe)) if (one := build_universe_family(universe, items.person(row)))]
    assert any(len(one.siblings) > 1 for one in families)
    for one in families:
        for group in (list(one.siblings), one.children(one.centre)):
            assert group == sorted(group, key=lambda person: one.people[person].born)


def test_an_entity_that_is_no_person_has_no_family(world, universe):
    items = ItemCatalog(universe)
    assert build_universe_family(universe, items.town(0)) is None
    assert build_universe_family(universe, "Q42") is None
    assert build_universe_family(universe, "http://elsewhere.example/1") is None
    assert build_family(GraphKinshipSource(world.graph), items.town(0)) is None
    assert build_family(GraphKinshipSource(world.graph), 'no id > "') is None
    with pytest.raises(KeyError):
        UniverseKinshipSource(universe).parents([items.job(0)])


def test_a_graph_without_dates_has_families(tmp_path: Path):

    entity, direct = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"
    (tmp_path / "g.nt").write_text(
        f"<{entity}Q1> <{direct}P40> <{entity}Q2> .\n<{entity}Q2> <{direct}P3373> <{entity}Q3> .\n"
    )
    build_world(tmp_path / "worlds", "bare", WorldContents(graph=tmp_path / "g.nt"))
    world = open_world(tmp_path / "worlds", "bare")
    family = build_family(GraphKinshipSource(world.graph), "Q2")
    world.graph.close()
    assert (family.parents, family.siblings) == ({"Q2": ("Q1",)}, ("Q3",))
    assert {one.born for one in family.people.values()} == {""}
