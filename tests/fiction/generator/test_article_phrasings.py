"""Phrasings: complete for every kind and shape, with the words of the lexicon."""

import string
from itertools import product

import pytest

from showhow.fiction.generator.articles import (
    DECEASED,
    FEMALE,
    SENTENCE_KINDS,
    SHAPE_COUNT,
    VOWEL,
    load_prose_style,
    load_web_phrasings,
)

ALL = {
    **{("prose", kind): phrasings for kind, phrasings in load_prose_style(plain=False).phrasings.items()},
    **{("plain", kind): phrasings for kind, phrasings in load_prose_style(plain=True).phrasings.items()},
    **{("now", kind): phrasings for kind, phrasings in load_web_phrasings(past=False).items()},
    **{("then", kind): phrasings for kind, phrasings in load_web_phrasings(past=True).items()},
}


@pytest.mark.parametrize("kind", ALL)
def test_phrasings_have_all_shapes_and_only_name_and_value_placeholders(kind: tuple[str, str]):
    phrasings = ALL[kind]
    assert len(phrasings.formats) == (phrasings.single_count + phrasings.several_count) * SHAPE_COUNT
    assert phrasings.single_count > 0
    for text in phrasings.formats:
        assert {field for _, field, _, _ in string.Formatter().parse(text)} <= {None, "0", "1"}
        assert ("{1}" in text) == (kind[1] != "gender")
        assert text.endswith(".")


@pytest.mark.parametrize("plain", [False, True])
def test_every_kind_of_fact_is_in_one_section(*, plain: bool):
    stated = [kind for _, kinds in load_prose_style(plain=plain).sections for kind in kinds]
    assert sorted(stated) == sorted(SENTENCE_KINDS) == sorted(load_prose_style(plain=plain).phrasings)
    assert len(load_prose_style(plain=plain).phrasings["birth"].formats) == (1 if plain else 4) * SHAPE_COUNT


def test_shapes_select_gender_tense_and_article():
    job = load_prose_style(plain=False).phrasings["job"].formats
    texts = {
        job[female * FEMALE + gone * DECEASED + vowel * VOWEL + 2 * SHAPE_COUNT]
        for female, gone, vowel in product((0, 1), repeat=3)
    }
    assert texts == {
        f"By occupation, {she} {verb} {article} {{1}}."
        for she, verb, article in product(("he", "she"), ("is", "was"), ("a", "an"))
    }
    assert job[2 * SHAPE_COUNT + FEMALE + VOWEL] == "By occupation, she is an {1}."


def test_several_values_are_joined_in_the_style():
    assert [load_prose_style(plain=False).join_values(list(names)) for names in ("A", "AB", "ABC")] == [
        "A",
        "A and B",
        "A, B and C",
    ]
    assert [load_prose_style(plain=True).join_values(list(names)) for names in ("A", "AB", "ABC")] == [
        "A",
        "A, B",
        "A, B, C",
    ]
