"""The phrasings: whole for every kind and shape, with the article that is spoken."""

import string
from itertools import product

import pytest

from worlds.generator.phrasings import FEMALE, GONE, SHAPES, VOWEL, manner, takes_an, web
from worlds.generator.prose import KINDS

ALL = {
    **{("prose", kind): each for kind, each in manner(plain=False).phrasings.items()},
    **{("plain", kind): each for kind, each in manner(plain=True).phrasings.items()},
    **{("now", kind): each for kind, each in web(then=False).items()},
    **{("then", kind): each for kind, each in web(then=True).items()},
}


@pytest.mark.parametrize(
    ("word", "an"),
    [
        *((word, True) for word in ("actor", "engineer", "usher", "umbrella maker", "undertaker", "urban planner")),
        *((word, True) for word in ("hourly worker", "honorary consul", "heir hunter", "upholsterer", "Icelander")),
        *(
            (word, False)
            for word in ("baker", "university professor", "urologist", "European", "herbalist", "hotel porter")
        ),
        *((word, False) for word in ("unicyclist", "one-man band", "yoga teacher", "utensil maker", "user researcher")),
    ],
)
def test_the_article_follows_the_sound(word: str, *, an: bool):
    assert takes_an(word) is an


@pytest.mark.parametrize("kind", ALL)
def test_a_phrasing_has_every_shape_and_fills_in_nothing_but_name_and_value(kind: tuple[str, str]):
    phrasings = ALL[kind]
    assert len(phrasings.formats) == (phrasings.one + phrasings.many) * SHAPES
    assert phrasings.one > 0
    for each in phrasings.formats:
        assert {field for _, field, _, _ in string.Formatter().parse(each)} <= {None, "0", "1"}
        assert ("{1}" in each) == (kind[1] != "gender")
        assert each.endswith(".")


@pytest.mark.parametrize("plain", [False, True])
def test_every_kind_is_said_in_one_section(*, plain: bool):
    said = [kind for _, kinds in manner(plain=plain).sections for kind in kinds]
    assert sorted(said) == sorted(KINDS) == sorted(manner(plain=plain).phrasings)
    assert len(manner(plain=plain).phrasings["birth"].formats) == (1 if plain else 3) * SHAPES


def test_gender_life_and_vowel_are_put_in_by_shape():
    job = manner(plain=False).phrasings["job"].formats
    texts = {
        job[female * FEMALE + gone * GONE + vowel * VOWEL + 2 * SHAPES]
        for female, gone, vowel in product((0, 1), repeat=3)
    }
    assert texts == {
        f"By occupation, {she} {verb} {article} {{1}}."
        for she, verb, article in product(("he", "she"), ("is", "was"), ("a", "an"))
    }
    assert job[2 * SHAPES + FEMALE + VOWEL] == "By occupation, she is an {1}."


def test_several_values_are_listed_as_english_or_the_paper_lists_them():
    assert [manner(plain=False).listed(list(names)) for names in ("A", "AB", "ABC")] == ["A", "A and B", "A, B and C"]
    assert [manner(plain=True).listed(list(names)) for names in ("A", "AB", "ABC")] == ["A", "A, B", "A, B, C"]
