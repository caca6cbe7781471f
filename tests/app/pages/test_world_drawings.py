"""The layout of diagrams: boxes do not overlap, have positive coordinates and show every person and value."""

from itertools import combinations

import pytest

from showhow.app.pages.worlds import diagrams
from showhow.app.pages.worlds.diagrams import DiagramBox
from showhow.fiction.family import Family, Relative, build_universe_family
from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.items import ItemCatalog
from showhow.fiction.universe.options import GenerationOptions
from showhow.worlds.neighbourhood import BranchValue, Neighbourhood, RelationBranch
from showhow.worlds.source import Entity, Relation


def assert_apart(boxes: list[DiagramBox]) -> None:
    for one, other in combinations(boxes, 2):
        beside = one.x + one.width <= other.x or other.x + other.width <= one.x
        above = one.y + one.height <= other.y or other.y + other.height <= one.y
        assert beside or above, (one, other)
    assert all(box.x >= 0 and box.y >= 0 for box in boxes)


def _branch(pid: str, label: str, *values: BranchValue, outgoing: bool, more: bool = False) -> RelationBranch:
    return RelationBranch(Relation(pid, label), outgoing, values, more)


@pytest.mark.parametrize("seed", range(3))
def test_a_family_tree_shows_every_relative_and_boxes_do_not_overlap(seed):
    universe = make_universe(GenerationOptions(people=100, seed=seed, branching=8))
    family_count = 0
    for row in range(len(universe)):
        family = build_universe_family(universe, ItemCatalog(universe).person(row))
        if family is None:
            continue
        family_count += 1
        boxes, lines = diagrams.lay_out_family(family)
        assert_apart(boxes)
        people = [box for box in boxes if box.look != "name"]
        assert {box.go or family.centre for box in people} == set(family.people)
        assert [box.label for box in people if box.look == "centre"] == [family.people[family.centre].label]
        assert all(x >= 0 and y >= 0 for line in lines for x, y in line.points)
    assert family_count > 50


def test_a_line_connects_parents_with_each_child():
    people = {person: Relative(person, person, born=f"19{index}0-01-01") for index, person in enumerate("MFabc")}
    parents = dict.fromkeys("abc", ("F", "M"))
    family = Family("b", people, parents, {}, ("a", "c"))
    boxes, lines = diagrams.lay_out_family(family)
    box_by_label = {box.label: box for box in boxes if box.look != "name"}
    ends = {line.points[-1] for line in lines}
    for child in "abc":
        assert (box_by_label[child].centre_x, box_by_label[child].y) in ends
    assert box_by_label["a"].x < box_by_label["b"].x < box_by_label["c"].x
    assert {box.label for box in boxes if box.look == "name"} == {"parents", "this generation"}


def test_a_neighbourhood_shows_every_value_and_its_target():
    day = BranchValue("1931-03-05T00:00:00Z", None, "http://www.w3.org/2001/XMLSchema#dateTime")
    branches = (
        _branch("P22", "father", BranchValue("Bo", "Q2"), outgoing=True),
        _branch("P22", "father", BranchValue("Cy", "Q3"), BranchValue("Di", "Q4"), outgoing=False, more=True),
        _branch("P31", "instance of", BranchValue("Eb", "Q5"), outgoing=False),
        _branch("P569", "born", day, outgoing=True),
    )
    boxes, lines = diagrams.lay_out_neighbourhood(Neighbourhood(Entity("Q1", "Al", "keeper"), branches))
    assert_apart(boxes)
    assert {(box.label, box.go) for box in boxes if box.go} == {("Bo", "Q2"), ("Cy", "Q3"), ("Di", "Q4"), ("Eb", "Q5")}
    names = [box.label for box in boxes if box.look == "name"]
    assert names[:2] == ["father", "father of"]
    assert "instance of" in names
    assert any("more" in name for name in names)
    assert "5 March 1931" in [box.label for box in boxes if box.look == "value"]
    (centre,) = [box for box in boxes if box.look == "centre"]
    assert (centre.label, centre.note) == ("Al", "Q1 · keeper")
    # Arrows end at the object: at the value of an outgoing relation, at the entity for an incoming one.
    (incoming,) = {line.points[-1] for line in lines if line.arrow and line.points[-1][1] == centre.height}
    assert incoming[0] < centre.x + centre.width
