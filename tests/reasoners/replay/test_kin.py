"""What English knows of relations, against the steps and genders of the 45 relations of PhantomWiki."""

import re

import pytest

from fiction.universe.relations import RELATIONS, KinshipRelation
from reasoners.replay import kin
from tests.reasoners.replay.conftest import Namesakes

_STEPS = {"parent", "child", "sibling", "spouse", "friend"}
_WOMEN = {"mother": "parent", "daughter": "child", "sister": "sibling", "wife": "spouse"}
_MEN = {"father": "parent", "son": "child", "brother": "sibling", "husband": "spouse"}


def expanded(word: str) -> tuple[list[str], bool | None]:
    """The steps of a word down to the plainest, and the gender of whom the last one reaches."""
    if word in _STEPS:
        return [word], None
    for gendered, women in ((_WOMEN, True), (_MEN, False)):
        if word in gendered:
            return [gendered[word]], women
    way = kin.find_relation_path(word)
    assert way is not None, word
    each = [expanded(step) for step in way.steps]
    return [step for steps, _ in each for step in steps], each[-1][1]


@pytest.mark.parametrize("relation", RELATIONS.values(), ids=lambda relation: relation.name)
def test_the_ways_are_those_of_the_45_relations(relation: KinshipRelation) -> None:
    assert expanded(relation.singular) == (list(relation.steps), relation.women)
    assert kin.is_personal(relation.singular)
    assert kin.is_compound(relation.singular) == (len(relation.steps) > 1)


@pytest.mark.parametrize("relation", RELATIONS.values(), ids=lambda relation: relation.name)
def test_a_length_counts_the_steps_and_none_is_given_where_a_word_means_two_ways_as_long(
    relation: KinshipRelation,
) -> None:
    several = re.search(r"(brother|sister|son|daughter)-in-law|once removed|second (uncle|aunt)", relation.singular)
    if several:
        assert kin.path_lengths(relation.singular) == []
    else:
        assert kin.path_lengths(relation.singular)[0] == len(relation.steps)


def test_who_is_told_from_the_other_side_is_who_is_related(namesakes: Namesakes) -> None:
    """By brute force over the town: Ada is a son's mother where he is her son, if the gender is right."""
    titles, female = namesakes.universe.titles, namesakes.universe.female
    by_title = {title: row for row, title in enumerate(titles)}
    told = 0
    for word in ("father", "mother", "parent", "child", "son", "daughter", "wife", "husband"):
        for reverse in kin.inverse_relations(word):
            if reverse.word not in RELATIONS:
                continue
            for row in range(len(titles)):
                if reverse.gender is not None and female[row] != (reverse.gender == kin.FEMALE):
                    continue
                for other in namesakes.related(reverse.word, row):
                    assert titles[row] in namesakes.related(word, by_title[other])
                    told += 1
    assert told > 100


@pytest.mark.parametrize("word", ["occupation", "hobby", "date of birth", "residence"])
def test_what_somebody_has_is_no_relation_between_people(word: str) -> None:
    assert kin.is_attribute(word)
    assert not kin.is_personal(word)
    assert kin.find_relation_path(word) is None


def test_an_unknown_word_has_no_way() -> None:
    assert kin.find_relation_path("wizard") is None
    assert not kin.is_personal("wizard")
    assert not kin.is_attribute("wizard")
    assert kin.max_count("wizard") is None


def test_nobody_has_more_parents_than_are_counted(namesakes: Namesakes) -> None:
    for word in ("father", "mother", "parent"):
        found = [len(namesakes.related(word, row)) for row in range(len(namesakes.universe))]
        assert max(found) == kin.max_count(word)


def test_words_of_a_question_lead_to_what_it_asks() -> None:
    assert kin.find_relations("When did she pass away?", "when") == {"date of death"}
    assert "passed away" in kin.words_for("date of death", "when")
