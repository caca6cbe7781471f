"""Gold sub-questions: the answers follow from the facts or from the referenced answers."""

import json
import re
from datetime import date
from pathlib import Path
from typing import Any

from hypothesis import given, settings

from showhow.fiction.questions.decomposition import build_subquestions
from showhow.fiction.questions.evaluate import ExpressionEvaluator
from showhow.fiction.questions.expressions import Named, Related
from showhow.fiction.questions.reasoning import ReasoningBuilder
from tests.examples import examples
from tests.fiction.questions.plain_world import PlainWorld, parse_day
from tests.fiction.questions.sample_expressions import EXPRESSIONS, THINGS, UNIVERSE

WORLD = PlainWorld(UNIVERSE)
REFERENCE = re.compile(r"#(\d+)")
SENTENCES = (
    r"(?P<s>.+) is (?P<r>female|male)\.",
    r"The (?P<r>father|mother|child|sibling|spouse|friend|occupation|hobby|residence) of (?P<s>.+) is (?P<o>.+)\.",
    r"(?P<s>.+) (?P<r>was born|died|married) on (?P<o>\d+ \w+ \d+)\.",
    r"(?P<s>.+) (?P<r>was born) in (?P<o>.+)\.",
    r"(?P<s>.+) lies in the (?P<r>region|country) (?P<o>.+)\.",
)
BY_SUBJECT = ("Who of ", "Whose ", "Who was born ")
"""Questions whose answers are the subjects of the facts; for all others they are the objects."""


def build(expression: Any) -> list[dict[str, Any]]:
    reasoning = ReasoningBuilder(THINGS)
    encoded: list[dict[str, Any]] = build_subquestions(reasoning, reasoning.build_tree(expression))
    return encoded


def read(sentence: str) -> tuple[str, str, str]:
    """Parse a sentence into subject, relation and object; asserts that it is true."""
    match = next(filter(None, (re.fullmatch(pattern, sentence) for pattern in SENTENCES)), None)
    assert match, sentence
    subject, relation, value = match["s"], match["r"], match.groupdict().get("o", "")
    if not value:
        assert WORLD.people[subject]["female"] == (relation == "female")
        return subject, relation, value
    words = {"died": "date of death", "married": "date of marriage"}
    words["was born"] = "date of birth" if " on " in sentence.removeprefix(subject) else "place of birth"
    day = parse_day(value) if words.get(relation, "").startswith("date") else value
    assert day in WORLD.relate(subject, words.get(relation, relation)), sentence
    return subject, relation, text(day)


def text(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)


@settings(max_examples=examples(200))
@given(EXPRESSIONS)
def test_the_facts_of_a_subquestion_give_exactly_its_answers(expression: Any) -> None:
    for one in build(expression):
        answers = [answer["text"] for answer in one["answers"]]
        assert one["count"] == len(answers) + one.get("left_off", 0)
        if not one["retrieval"]:
            assert one["facts"] == []
        elif not one.get("more_facts") and not one.get("left_off"):
            facts = [read(sentence) for sentence in one["facts"]]
            by_subject = one["question"].startswith(BY_SUBJECT)
            related = {subject if by_subject else value for subject, _, value in facts if value}
            assert related == set(answers)


@settings(max_examples=examples(200))
@given(EXPRESSIONS)
def test_the_last_answer_is_that_of_the_question_and_references_point_back(expression: Any) -> None:
    subquestions = build(expression)
    for place, one in enumerate(subquestions, 1):
        assert all(int(number) < place for number in REFERENCE.findall(one["question"]))
        # A question either needs a source or refers to other answers.
        assert one["retrieval"] or REFERENCE.search(one["question"])
    answer = ExpressionEvaluator(UNIVERSE).evaluate(expression)
    gold = [THINGS.answer_text(answer.kind, value) for value in answer.values]
    if subquestions:
        assert [answer["text"] for answer in subquestions[-1]["answers"]] == gold[: len(subquestions[-1]["answers"])]
        assert subquestions[-1]["count"] == len(gold)


def test_namesakes_are_named_by_title() -> None:
    namesakes = [row for row, title in enumerate(UNIVERSE.titles) if title != UNIVERSE.names[row]]
    assert namesakes
    for row in namesakes:
        (subquestions,) = build(Related("parent", Named(row)))
        assert subquestions["question"] == f"Who is the parent of {UNIVERSE.titles[row]}?"


def is_published_decomposition(questions: list[str]) -> bool:
    """Whether each question refers only to earlier answers."""
    return all(
        isinstance(question, str)
        and question.rstrip().endswith("?")
        and all(int(number) < place for number in REFERENCE.findall(question))
        for place, question in enumerate(questions, 1)
    )


def test_most_published_decompositions_have_the_expected_format(shared_data: Path) -> None:
    rows = json.loads((shared_data / "strategyqa" / "dev_150.json").read_text("utf-8"))
    matches = [is_published_decomposition(row["decomposition"]) for row in rows]
    assert sum(matches) > 140


@settings(max_examples=examples(100))
@given(EXPRESSIONS)
def test_subquestions_have_the_published_format(expression: Any) -> None:
    subquestions = build(expression)
    assert is_published_decomposition([one["question"] for one in subquestions])
    assert all(isinstance(fact, str) and fact.endswith(".") for one in subquestions for fact in one["facts"])
