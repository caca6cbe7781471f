"""What the demonstrations of a question must not show: names and answers, in other wordings and scripts."""

import pytest

from showhow.fewshot_library.library import shows_any
from showhow.reasoners.withheld import list_withheld, write_shown_text
from tests.fixtures.town import Town


@pytest.mark.parametrize("wording", ["Who is the mother of {}?", "{} has which occupation?", "Name {}'s friends."])
def test_the_names_that_the_world_knows_are_withheld_in_every_wording(town: Town, wording: str) -> None:
    assert town.context.world.text is not None
    title = town.context.world.text.search("mother", 1)[0].title
    golds = [{"text": "Cora Reed", "entity": "Q1", "aliases": ["Cora"]}]
    for question in (wording.format(title), wording.format(title.casefold())):
        assert [name.casefold() for name in list_withheld("entities", question, golds, town.context)] == [
            title.casefold()
        ]
        assert list_withheld("answers", question, golds, town.context)[1:] == ["Cora Reed", "Cora", "Q1"]
        assert list_withheld("question", question, golds, town.context) == []


@pytest.mark.parametrize("answer", ["yes", "No", "3", "12,5", "", "This question cannot be answered."])
def test_what_nearly_every_demonstration_shows_is_not_withheld(answer: str) -> None:
    assert list_withheld("answers", "who is it?", [{"text": answer}]) == []


@pytest.mark.parametrize("answer", ["spring 1941", "ferry pilot", "東京"])
def test_things_and_names_in_other_scripts_are_withheld(answer: str) -> None:
    assert list_withheld("answers", "who is it?", [{"text": answer}]) == [answer]


def test_a_day_is_withheld_in_every_notation_and_an_entity_by_its_id() -> None:
    assert list_withheld("answers", "when?", [{"text": "1941-03-05"}]) == [
        "1941-03-05",
        "5 March 1941",
        "March 5, 1941",
    ]
    assert list_withheld("answers", "who?", [{"text": "Ada", "entity": "Q42"}]) == ["Ada", "Q42"]


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Who is the mother of Ada Reed?", ["Ada Reed"]),
        ("Ada Reed was born where?", ["Ada Reed"]),
        ("Wo wurde Ada Reed geboren?", ["Ada Reed"]),
        ("Which river crosses both Paris and Rouen?", ["Paris", "Rouen"]),
    ],
)
def test_without_a_world_capitalized_words_are_names(question: str, names: list[str]) -> None:
    assert list_withheld("entities", question) == names


@pytest.mark.parametrize(
    ("text", "name", "shown"),
    [
        ("The mother is\nCora  Reed.", "cora reed", True),
        ("She lives in Canada.", "Ada", False),
        ("Ada's mother", "Ada", True),
        ("the year 1941-03-050", "1941-03-05", False),
        ("首都是東京。", "東京", True),
        ("Adam, then Ada", "ada", True),
    ],
)
def test_a_name_is_shown_as_whole_words_whatever_its_case(text: str, name: str, *, shown: bool) -> None:
    assert shows_any(text, [name]) is shown


def test_all_of_a_trace_is_shown(town: Town) -> None:
    record = town.gold[0]
    text = write_shown_text(record)
    for part in (record.question.text, *(step.observation or "" for step in record.steps), record.trace.final_answer):
        assert str(part) in text
