"""Where the boxes of a drawing lie: nothing covers anything else, nothing is outside, nobody is forgotten."""

from itertools import combinations

import pytest

from app.pages.worlds import diagrams
from app.pages.worlds.diagrams import DiagramBox
from fiction.family import Family, Relative, build_universe_family
from fiction.universe.build import make_universe
from fiction.universe.items import ItemCatalog
from fiction.universe.options import GenerationOptions
from worlds.neighbourhood import Branch, BranchValue, Neighbourhood
from worlds.source import Entity, Relation


def assert_apart(boxes: list[DiagramBox]) -> None:
    for one, other in combinations(boxes, 2):
        beside = one.x + one.width <= other.x or other.x + other.width <= one.x
        above = one.y + one.height <= other.y or other.y + other.height <= one.y
        assert beside or above, (one, other)
    assert all(box.x >= 0 and box.y >= 0 for box in boxes)


def _branch(pid: str, label: str, *values: BranchValue, outgoing: bool, more: bool = False) -> Branch:
    return Branch(Relation(pid, label), outgoing, values, more)


@pytest.mark.parametrize("seed", range(3))
def test_every_tree_shows_everybody_and_no_box_covers_another(seed):
    universe = make_universe(GenerationOptions(people=100, seed=seed, branching=8))
    drawn = 0
    for row in range(len(universe)):
        found = build_universe_family(universe, ItemCatalog(universe).person(row))
        if found is None:
            continue
        drawn += 1
        boxes, lines = diagrams.lay_out_family(found)
        assert_apart(boxes)
        people = [box for box in boxes if box.look != "name"]
        assert {box.go or found.centre for box in people} == set(found.people)
        assert [box.label for box in people if box.look == "centre"] == [found.people[found.centre].label]
        assert all(x >= 0 and y >= 0 for line in lines for x, y in line.points)
    assert drawn > 50


def test_a_line_leads_from_parents_to_each_child():
    people = {one: Relative(one, one, born=f"19{place}0-01-01") for place, one in enumerate("MFabc")}
    parents = dict.fromkeys("abc", ("F", "M"))
    found = Family("b", people, parents, {}, ("a", "c"))
    boxes, lines = diagrams.lay_out_family(found)
    at = {box.label: box for box in boxes if box.look != "name"}
    ends = {line.points[-1] for line in lines}
    for child in "abc":
        assert (at[child].centre_x, at[child].y) in ends
    assert at["a"].x < at["b"].x < at["c"].x
    assert {box.label for box in boxes if box.look == "name"} == {"parents", "this generation"}


def test_a_neighbourhood_shows_every_value_and_where_it_leads():
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
    # Arrows end at the object: at a value where the relation goes out, at the entity where it comes in.
    (incoming,) = {line.points[-1] for line in lines if line.arrow and line.points[-1][1] == centre.height}
    assert incoming[0] < centre.x + centre.width
