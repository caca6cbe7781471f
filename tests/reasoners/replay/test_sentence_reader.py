"""Extraction from sentences without a learned pattern: every extracted value is true."""

import pytest

from fiction.questions.names import NameFormatter
from reasoners.replay import sentence_reader
from tests.reasoners.replay.conftest import Namesakes
from worlds.lexicon import kinship

TOLD = ("father", "mother", "brother", "sister", "son", "daughter", "wife", "husband", "friend")


def test_relations_between_people_are_extracted_without_errors(namesakes: Namesakes) -> None:
    read: set[tuple[int, str, str]] = set()
    for row, sentence in namesakes.said():
        for word in TOLD:
            people = sentence_reader.extract_people(sentence, namesakes.universe.titles[row], word)
            assert set(people) <= namesakes.related(word, row), (sentence, word)
            read |= {(row, word, title) for title in people}
    true = {
        (row, w, title) for row in range(len(namesakes.universe)) for w in TOLD for title in namesakes.related(w, row)
    }
    assert len(read) > 0.95 * len(true)


@pytest.mark.parametrize(
    ("fact", "relation", "asked"),
    [("birth", "date of birth", "when"), ("death", "date of death", "when"), ("wedding", "date of marriage", "when")],
)
def test_extracted_dates_are_correct(namesakes: Namesakes, fact: str, relation: str, asked: str) -> None:
    phrases, days = kinship.relation_phrases(relation, asked), 0
    values = getattr(namesakes.universe, fact)
    for row, sentence in namesakes.said():
        extracted_days = sentence_reader.extract_day(sentence, namesakes.universe.titles[row], phrases)
        if extracted_days:
            assert extracted_days == [NameFormatter(namesakes.universe).answer_text("day", int(values[row]))]
            days += 1
    assert days > 20


@pytest.mark.parametrize(("fact", "relation"), [("job", "occupation"), ("hobby", "hobby")])
def test_occupations_and_hobbies_are_extracted_completely(namesakes: Namesakes, fact: str, relation: str) -> None:
    universe, extracted = namesakes.universe, 0
    kinds = {"job": universe.jobs, "hobby": universe.hobbies}
    phrases = {relation, *kinship.relation_phrases(relation, "what")}
    values = getattr(universe, fact)
    for row, sentence in namesakes.said():
        extracted_words = sentence_reader.extract_words(sentence, universe.titles[row], phrases)
        if extracted_words:
            assert extracted_words == [kinds[fact][int(values[row])]], sentence
            extracted += 1
    assert extracted > 20


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
def test_related_people_are_extracted_by_the_noun_between_them(sentence: str, relation: str, who: list[str]) -> None:
    assert sentence_reader.extract_people(sentence, "Ada Lund", relation) == who


@pytest.mark.parametrize(
    ("sentence", "value"),
    [
        ("Ms Ada Lund took up wine making as a hobby.", ["wine making"]),
        ("Ms Ada Lund chose chess as her hobby.", ["chess"]),
        ("Ms Ada Lund despises chess as a hobby.", []),
        ("Her hobby is chess on Bo Reed.", []),
    ],
)
def test_a_hobby_is_extracted_only_without_other_content_words(sentence: str, value: list[str]) -> None:
    assert sentence_reader.extract_words(sentence, "Ada Lund", ["hobby"]) == value


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
def test_a_sentence_that_states_a_known_value_is_recognized(sentence: str, says: bool) -> None:  # noqa: FBT001
    who = "Ada Lund (general practitioner)" if "(" in sentence else "Ada Lund"
    assert sentence_reader.states_value(sentence, who, "general practitioner", ["occupation"]) is says
