"""The algebra of relations, by brute force over a generated town and by the words of English."""

import numpy as np
import pytest

from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.relations import RELATIONS, KinshipRelation, find_related, get_relation
from showhow.worlds.lexicon import kinship
from showhow.worlds.lexicon.english import FEMALE, load_lexicon

UNIVERSE = make_universe(GenerationOptions(people=90, seed=21, depth=4))
BASIC_RELATIONS = {"parent", "child", "sibling", "spouse", "friend"}


def relatives(name: str, row: int) -> set[int]:
    return set(find_related(UNIVERSE, get_relation(name), np.array([row], np.int32)).tolist())


def follow(path: kinship.RelationPath, row: int) -> set[int]:
    """The people at the end of a path, one step after the other."""
    people = {row}
    for step in path.steps:
        people = {relative for person in people for relative in relatives(step.replace(" ", "_"), person)}
    return people - {row} if path.excludes_start else people


@pytest.mark.parametrize("relation", RELATIONS.values(), ids=lambda relation: relation.name)
def test_a_definition_leads_to_the_same_people_as_the_relation(relation: KinshipRelation):
    assert kinship.relates_people(relation.singular)
    assert kinship.is_compound(relation.singular) == (len(relation.steps) > 1)
    definition = kinship.find_relation_path(relation.singular)
    if definition is None:
        assert set(relation.steps) <= BASIC_RELATIONS
        assert len(relation.steps) == 1
    else:
        for row in range(len(UNIVERSE)):
            assert follow(definition, row) == relatives(relation.name, row)


@pytest.mark.parametrize("word", ["father", "mother", "parent", "child", "son", "daughter", "wife", "husband"])
def test_an_inverse_relation_holds_from_the_other_side(word: str):
    compared = 0
    for inverse in kinship.inverse_relations(word):
        if inverse.relation not in RELATIONS:
            continue
        for row in range(len(UNIVERSE)):
            if inverse.gender is None or UNIVERSE.female[row] == (inverse.gender == FEMALE):
                for other in relatives(inverse.relation, row):
                    assert row in relatives(word, other)
                    compared += 1
    assert compared > 10


@pytest.mark.parametrize(
    ("relation", "inverse"),
    [("parent", "child"), ("child", "parent"), ("sibling", "sibling"), ("spouse", "spouse"), ("friend", "friend")],
)
def test_each_basic_relation_has_a_basic_inverse(relation: str, inverse: str):
    assert kinship.inverse_step(relation) == inverse


def test_gendered_words_and_related_words_of_relations():
    assert kinship.gendered_words("parent") == ("father", "mother")
    assert kinship.gendered_words("child") == ("son", "daughter")
    assert kinship.gendered_words("spouse") == ("husband", "wife")
    assert kinship.narrower_relations("child") == ("son", "daughter")
    assert kinship.narrower_relations("father") == ()
    assert kinship.inverse_words("husband") == ("wife",)
    assert kinship.symmetric_relation("wife") == kinship.InverseRelation("spouse", "female")


def test_labels_are_spelled_as_english_spells_them():
    assert kinship.relation_label("great grandmother") == "great-grandmother"
    assert kinship.relation_label("female first cousin once removed") == "female first cousin once removed"
    assert kinship.relation_names("spouse") == ("spouse", "husband", "wife", "partner")
    for lookup in (kinship.relation_label, kinship.relation_names, kinship.basic_path):
        with pytest.raises(KeyError):
            lookup("wizard")


@pytest.mark.parametrize("word", ["occupation", "hobby", "date of birth", "residence"])
def test_a_fact_of_a_person_is_no_relation_between_people(word: str):
    assert not kinship.relates_people(word)
    assert kinship.find_relation_path(word) is None


def test_an_unknown_word_has_no_definition():
    assert kinship.find_relation_path("wizard") is None
    assert not kinship.relates_people("wizard")
    assert kinship.max_relatives("wizard") is None


def test_the_largest_number_of_parents_in_a_town_is_the_number_of_the_lexicon():
    for word in ("father", "mother", "parent"):
        assert max(len(relatives(word, row)) for row in range(len(UNIVERSE))) == kinship.max_relatives(word)


def test_the_words_of_a_question_lead_to_its_relation():
    assert kinship.relations_in_question("When did she pass away?", "when") == {"date of death"}
    assert "passed away" in kinship.relation_phrases("date of death", "when")


def test_a_text_names_relations_by_their_names_and_by_other_words():
    assert kinship.named_relations("residence of") == ("residence",)
    assert kinship.named_relations("Who lives in Gullhaven?") == ("residence",)
    assert kinship.named_relations("place of birth") == ("place of birth",)
    assert {"date of birth", "place of birth"} == set(kinship.named_relations("Who was born in Gullhaven?"))
    assert kinship.named_relations("Who is the wizard of Gullhaven?") == ()
    assert {"home", "reside", "live"} <= set(kinship.phrases_for("residence"))
    assert {"father", "mother", "son"} <= set(kinship.phrases_for("Who is the child of Ada?"))
    assert kinship.phrases_for("wizard") == ()


def test_a_relation_that_others_define_is_read_in_a_text():
    sister = kinship.find_defined_relation("Who is the sister of Ada Reed?")
    assert sister is not None
    assert (sister.steps, sister.excludes_start) == (("parent", "daughter"), True)
    great_uncle = kinship.find_defined_relation("great-uncle")
    assert great_uncle == kinship.find_relation_path("great-uncle")
    for text in ("Who is the mother of Ada Reed?", "hobby", "Where was Ada born?", ""):
        assert kinship.find_defined_relation(text) is None


def test_every_compound_word_for_people_is_made_of_basic_relations():
    compounds = {entry.label for entry in load_lexicon().words.values() if kinship.is_compound(entry.label)}
    assert len(compounds) > 40
    for word in compounds:
        assert set(kinship.basic_path(word).steps) <= BASIC_RELATIONS, word
