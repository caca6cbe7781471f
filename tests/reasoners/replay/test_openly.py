"""Sentences that no demonstration shows are read by their words: what is read of any article is true, or nothing is."""

import pytest

from fiction.questions.names import NameFormatter
from reasoners.replay import inquiry, kin
from tests.reasoners.replay.conftest import Namesakes

TOLD = ("father", "mother", "brother", "sister", "son", "daughter", "wife", "husband", "friend")


def test_whoever_is_read_as_kin_is_kin_and_nearly_all_are_read(namesakes: Namesakes) -> None:
    read: set[tuple[int, str, str]] = set()
    for row, sentence in namesakes.said():
        for word in TOLD:
            found = inquiry.extract_people(sentence, namesakes.universe.titles[row], word)
            assert set(found) <= namesakes.related(word, row), (sentence, word)
            read |= {(row, word, title) for title in found}
    true = {
        (row, w, title) for row in range(len(namesakes.universe)) for w in TOLD for title in namesakes.related(w, row)
    }
    assert len(read) > 0.95 * len(true)


@pytest.mark.parametrize(
    ("fact", "relation", "asked"),
    [("birth", "date of birth", "when"), ("death", "date of death", "when"), ("wedding", "date of marriage", "when")],
)
def test_a_day_that_is_read_is_the_day(namesakes: Namesakes, fact: str, relation: str, asked: str) -> None:
    phrases, days = kin.words_for(relation, asked), 0
    values = getattr(namesakes.universe, fact)
    for row, sentence in namesakes.said():
        found = inquiry.extract_day(sentence, namesakes.universe.titles[row], phrases)
        if found:
            assert found == [NameFormatter(namesakes.universe).answer_text("day", int(values[row]))]
            days += 1
    assert days > 20


@pytest.mark.parametrize(("fact", "relation"), [("job", "occupation"), ("hobby", "hobby")])
def test_what_somebody_is_or_likes_is_read_whole(namesakes: Namesakes, fact: str, relation: str) -> None:
    universe, found = namesakes.universe, 0
    kinds = {"job": universe.jobs, "hobby": universe.hobbies}
    values = getattr(universe, fact)
    for row, sentence in namesakes.said():
        told = inquiry.extract_words(sentence, universe.titles[row], {relation, *kin.words_for(relation, "what")})
        if told:
            assert told == [kinds[fact][int(values[row])]], sentence
            found += 1
    assert found > 20


@pytest.mark.parametrize(
    ("sentence", "relation", "who"),
    [
        ("Ms Ada Lund and Mr Bo Reed became friends.", "friend", ["Bo Reed"]),
        ("Mr Bo Reed is the father of Ms Ada Lund.", "father", ["Bo Reed"]),
        ("Mr Bo Reed is the father of Ms Ada Lund.", "mother", []),
        ("Mr Bo Reed is the father of Ms Cy Holm.", "father", []),
        ("Ada Lund's father, Bo Reed, knew the father of Cy Holm.", "father", []),
        ("Her father met Bo Reed.", "father", []),
    ],
)
def test_people_are_told_by_the_words_between_them(sentence: str, relation: str, who: list[str]) -> None:
    assert inquiry.extract_people(sentence, "Ada Lund", relation) == who


@pytest.mark.parametrize(
    ("sentence", "value"),
    [
        ("Ms Ada Lund took up wine making as a hobby.", ["wine making"]),
        ("Ms Ada Lund chose chess as her hobby.", ["chess"]),
        ("Ms Ada Lund despises chess as a hobby.", []),
        ("Her hobby is chess on Bo Reed.", []),
    ],
)
def test_a_hobby_is_read_where_nothing_else_is_said(sentence: str, value: list[str]) -> None:
    assert inquiry.extract_words(sentence, "Ada Lund", ["hobby"]) == value


@pytest.mark.parametrize(
    ("sentence", "says"),
    [
        ("Ms Ada Lund became a general practitioner.", True),
        ("Ms Ada Lund (general practitioner) took up the occupation of general practitioner.", True),
        ("Ms Ada Lund is not a general practitioner.", False),
        ("Ms Ada Lund married a general practitioner.", False),
        ("Ms Ada Lund became a general practitioner assistant.", False),
    ],
)
def test_a_value_that_is_known_is_found_again(sentence: str, says: bool) -> None:  # noqa: FBT001
    who = "Ada Lund (general practitioner)" if "(" in sentence else "Ada Lund"
    assert inquiry.states_value(sentence, who, "general practitioner", ["occupation"]) is says
