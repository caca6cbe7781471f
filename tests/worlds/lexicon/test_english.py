"""The words of English: stems, plurals, articles, titles, and the notation of paths."""

import pytest

from showhow.worlds.lexicon.english import (
    PathSegment,
    RelationTerm,
    asks_yes_or_no,
    has_content,
    load_lexicon,
    parse_path,
    phrase_key,
    pluralize,
    split_words,
    stem_word,
    takes_article_an,
    title_for,
)


@pytest.mark.parametrize(
    ("plural", "singular"),
    [
        *(("children", "child"), ("grandchildren", "grandchild"), ("wives", "wife"), ("people", "person")),
        *(("men", "man"), ("women", "woman"), ("uncles", "uncle"), ("hobbies", "hobby"), ("churches", "church")),
        *(("specimen", "specimen"), ("bus", "bus"), ("kiss", "kiss"), ("his", "his")),
    ],
)
def test_a_stem_is_the_singular(plural: str, singular: str):
    assert stem_word(plural) == singular


@pytest.mark.parametrize(
    ("singular", "plural"),
    [
        *(("child", "children"), ("great-grandchild", "great-grandchildren"), ("wife", "wives"), ("friend", "friends")),
        *(("sister-in-law", "sisters-in-law"), ("male second cousin", "male second cousins")),
        *(("male first cousin once removed", "male first cousins once removed"), ("human", "humans")),
    ],
)
def test_a_plural_inflects_the_head_noun(singular: str, plural: str):
    assert pluralize(singular) == plural
    assert phrase_key(plural) == phrase_key(singular)


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
def test_the_indefinite_article_follows_the_sound(word: str, *, an: bool):
    assert takes_article_an(word) is an


def test_a_title_states_the_gender():
    assert (title_for(female=True), title_for(female=False)) == ("Ms", "Mr")
    assert set(load_lexicon().titles.values()) == {"male", "female"}


def test_a_path_is_parsed_into_segments():
    path = parse_path("spouse/parent|^child:male!")
    father = PathSegment((RelationTerm("parent"), RelationTerm("child", inverse=True)), "male")
    assert path.segments == (PathSegment((RelationTerm("spouse"),)), father)
    assert path.excludes_start
    assert path.relations == ()
    assert [segment.relation for segment in path.segments] == ["spouse", None]
    assert parse_path("child|^parent|son").relations == ("child", "son")


def test_words_are_compared_without_case_accents_and_hyphens():
    words = split_words("Zoë's sisters-in-law?")
    assert [word.folded for word in words] == ["zoe", "'s", "sisters", "in", "law", "?"]
    assert phrase_key("Great-Aunts") == phrase_key("great aunt") == ("great", "aunt")


def test_other_names_are_aliases_and_synonyms():
    names = load_lexicon().other_names(phrase_key("date of birth"))
    assert names[:2] == ("born on", "birth date")
    assert "dob" in names
    assert load_lexicon().other_names(phrase_key("wizard")) == ()


def test_a_question_for_yes_or_no_opens_with_an_auxiliary_and_offers_no_choice():
    assert all(
        map(asks_yes_or_no, ["Is Ada older than Bo?", 'is "Ada" older?', "Could Ada have met Bo?", "Will Ada go?"])
    )
    assert not any(map(asks_yes_or_no, ["Is Ada or Bo older?", "Who is it?", ""]))


def test_content_is_a_word_that_is_neither_minor_nor_decisive():
    assert all(map(has_content, ["Ada's", "the director"]))
    assert not any(map(has_content, ["of the", "not before", "'s", "", "?"]))
