"""Facts of an instance as a universe, and inconsistent facts."""

from datetime import date
from pathlib import Path

import pytest

from showhow.fiction.phantomwiki.prolog import parse_facts
from showhow.worlds.input_files import MalformedFile
from tests.fiction.phantomwiki.small_instance import FACTS

FILE = Path("facts.pl")


def test_rows_follow_the_order_of_declaration():
    facts = parse_facts(FILE, FACTS)
    universe = facts.universe
    assert universe.titles == ("Ann Lee", "Bo Lee", "Cy Lee", "Di Lee", "Ed Oak")
    assert universe.female.tolist() == [True, False, False, True, False]
    assert universe.father.tolist() == [-1, -1, 1, 1, -1]
    assert universe.mother.tolist() == [-1, -1, 0, 0, -1]
    assert universe.spouse.tolist() == [1, 0, -1, -1, -1]
    assert [date.fromordinal(day).isoformat() for day in universe.birth.tolist()][:2] == ["0950-01-02", "0949-03-04"]
    assert [universe.jobs[job] for job in universe.job.tolist()] == ["baker", "judge", "baker", "miller", "judge"]
    assert universe.hobbies[universe.hobby[3]] == "checkers (draughts)"
    assert universe.friends.pairs.tolist() == [[0, 4], [3, 4]]
    assert facts.attributes["rowing"] == 2


def test_couples_without_children_are_stated_by_a_separate_fact():
    universe = parse_facts(FILE, f'{FACTS}\nmarried_("Ed Oak", "Di Lee").\nmarried_("Bo Lee", "Ann Lee").\n').universe
    assert universe.spouse.tolist() == [1, 0, -1, 4, 3]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('type("Bo Lee", person).', 'type("Bo Lee", town).', "facts.pl, line 10: 'Bo Lee' is a town; only people"),
        ('type("Bo Lee", person).', 'type("Ann Lee", person).', "line 10: two people are named 'Ann Lee'"),
        ('type("Bo Lee", person).', 'type("Bo Lee").', "line 10: not a fact: type takes 2 strings"),
        ('type("Bo Lee", person).', 'type("Bo Lee", X).', "line 10: not a fact: type takes 2 strings"),
        (
            'type("Bo Lee", person).',
            'type("Bo Lee", person)',
            "line 10: not a fact: a fact that ends with a full stop is expected",
        ),
        ('type("Bo Lee", person).', 'type("Bo Lee, person).', "line 10: not a fact: a comma or ) is expected"),
        ('type("Bo Lee", person).', 'type(" ", person).', "line 10: a name or value is blank"),
        ('gender("Bo Lee", "male").', "", "facts.pl: no gender of 'Bo Lee' is stated"),
        ('gender("Bo Lee", "male").', 'gender("Bo Lee", "x").', "the gender 'x' is neither female nor male"),
        ('gender("Bo Lee", "male").', 'gender("Bob", "male").', "'Bob' is unknown"),
        ('job("Bo Lee", "judge").', 'job("Bo Lee", "a").\njob("Bo Lee", "a").', "'Bo Lee' has a second job"),
        ('dob("Bo Lee", "0949-03-04").', 'dob("Bo Lee", "0949-3-4").', "'0949-3-4' is not a valid day"),
        ('dob("Bo Lee", "0949-03-04").', 'dob("Bo Lee", "0949-02-30").', "'0949-02-30' is not a valid day"),
        ('parent("Di Lee", "Ann Lee").', 'parent("Di Lee", "Ed Oak").', "line 24: a second father of 'Di Lee'"),
        ('parent("Di Lee", "Ann Lee").', 'parent("Di Lee", "Di Lee").', "'Di Lee' would be their own parent"),
        ('friend_("Ann Lee", "Ed Oak").', 'friend_("Ann Lee", "Ann Lee").', "stated as their own friend"),
        ('friend_("Ann Lee", "Ed Oak").', 'married_("Ann Lee", "Ed Oak").', "a person may have at most one partner"),
        ('friend_("Ann Lee", "Ed Oak").', 'married_("Ed Oak", "Ed Oak").', "a person may have at most one partner"),
    ],
)
def test_inconsistent_facts_are_reported_with_their_line(old: str, new: str, message: str):
    assert old in FACTS
    with pytest.raises(MalformedFile) as refused:
        parse_facts(FILE, FACTS.replace(old, new))
    assert message in str(refused.value)


def test_rules_without_people_are_not_an_instance():
    with pytest.raises(MalformedFile, match="it declares no person"):
        parse_facts(FILE, FACTS.split("type(")[0])
