"""The gold sub-questions: the answers of each follow from its facts, or from the answers that it names."""

import json
import re
from datetime import date
from pathlib import Path
from typing import Any

from hypothesis import given, settings

from fiction.questions.decomposition import build_subquestions
from fiction.questions.evaluate import ExpressionEvaluator
from fiction.questions.expressions import Named, Related
from fiction.questions.reasoning import ReasoningBuilder
from tests.examples import examples
from tests.fiction.questions.asked import EXPRESSIONS, THINGS, UNIVERSE
from tests.fiction.questions.plain_world import PlainWorld, spoken

WORLD = PlainWorld(UNIVERSE)
REFERENCE = re.compile(r"#(\d+)")
SENTENCES = (
    r"(?P<s>.+) is (?P<r>female|male)\.",
    r"The (?P<r>father|mother|child|sibling|spouse|friend|occupation|hobby) of (?P<s>.+) is (?P<o>.+)\.",
    r"(?P<s>.+) (?P<r>was born|died|married) on (?P<o>\d+ \w+ \d+)\.",
    r"(?P<s>.+) (?P<r>was born|lives) in (?P<o>.+)\.",
    r"(?P<s>.+) lies in the (?P<r>region|country) (?P<o>.+)\.",
)
BY_SUBJECT = ("Who of ", "Who works as ", "Whose hobby ", "Who was born ", "Who lives in ")
"""The questions whose answers have the fact; those of all others are what the facts lead to."""


def told(expression: Any) -> list[dict[str, Any]]:
    reasoning = ReasoningBuilder(THINGS)
    found: list[dict[str, Any]] = build_subquestions(reasoning, reasoning.build_tree(expression))
    return found


def read(sentence: str) -> tuple[str, str, str]:
    """Subject, relation and object of a sentence; AssertionError unless it is true."""
    found = next(filter(None, (re.fullmatch(pattern, sentence) for pattern in SENTENCES)), None)
    assert found, sentence
    subject, relation, value = found["s"], found["r"], found.groupdict().get("o", "")
    if not value:
        assert WORLD.people[subject]["female"] == (relation == "female")
        return subject, relation, value
    words = {"lives": "residence", "died": "date of death", "married": "date of marriage"}
    words["was born"] = "date of birth" if " on " in sentence.removeprefix(subject) else "place of birth"
    day = spoken(value) if words.get(relation, "").startswith("date") else value
    assert day in WORLD.relate(subject, words.get(relation, relation)), sentence
    return subject, relation, text(day)


def text(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)


@settings(max_examples=examples(200))
@given(EXPRESSIONS)
def test_the_answers_of_what_is_looked_up_are_in_its_facts_and_nothing_else_is(expression: Any) -> None:
    for one in told(expression):
        answers = [answer["text"] for answer in one["answers"]]
        assert one["count"] == len(answers) + one.get("left_off", 0)
        if not one["retrieval"]:
            assert one["facts"] == []
        elif not one.get("more_facts") and not one.get("left_off"):
            facts = [read(sentence) for sentence in one["facts"]]
            by_subject = one["question"].startswith(BY_SUBJECT)
            found = {subject if by_subject else value for subject, _, value in facts if value}
            assert found == set(answers)


@settings(max_examples=examples(200))
@given(EXPRESSIONS)
def test_the_last_answer_is_the_questions_and_a_reference_points_back(expression: Any) -> None:
    asked = told(expression)
    for place, one in enumerate(asked, 1):
        assert all(int(number) < place for number in REFERENCE.findall(one["question"]))
        # Whoever could be looked up needs a source; what follows from other answers names some.
        assert one["retrieval"] or REFERENCE.search(one["question"])
    answer = ExpressionEvaluator(UNIVERSE).evaluate(expression)
    gold = [THINGS.answer_text(answer.kind, value) for value in answer.values]
    if asked:
        assert [each["text"] for each in asked[-1]["answers"]] == gold[: len(asked[-1]["answers"])]
        assert asked[-1]["count"] == len(gold)


def test_whoever_shares_a_name_is_asked_about_with_what_tells_them_apart() -> None:
    namesakes = [row for row, title in enumerate(UNIVERSE.titles) if title != UNIVERSE.names[row]]
    assert namesakes
    for row in namesakes:
        (asked,) = told(Related("parent", Named(row)))
        assert asked["question"] == f"Who is the parent of {UNIVERSE.titles[row]}?"


def is_published_decomposition(questions: list[str]) -> bool:
    """Whether they are questions of which each names only answers of earlier ones."""
    return all(
        isinstance(question, str)
        and question.rstrip().endswith("?")
        and all(int(number) < place for number in REFERENCE.findall(question))
        for place, question in enumerate(questions, 1)
    )


def test_the_published_decompositions_have_the_form_that_is_looked_for_here(shared_data: Path) -> None:
    rows = json.loads((shared_data / "strategyqa" / "dev_150.json").read_text("utf-8"))
    found = [is_published_decomposition(row["decomposition"]) for row in rows]
    assert sum(found) > 140


@settings(max_examples=examples(100))
@given(EXPRESSIONS)
def test_the_sub_questions_have_the_published_form(expression: Any) -> None:
    asked = told(expression)
    assert is_published_decomposition([one["question"] for one in asked])
    assert all(isinstance(fact, str) and fact.endswith(".") for one in asked for fact in one["facts"])
