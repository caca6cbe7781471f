"""The facts of GEEK's runs beside the gold ones: one change of a right run is one kind of mistake."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from showhow.db.models import SPAN_SKILL, Step
from showhow.evaluation.comparison.fact_comparison import compare_facts, write_facts
from showhow.fiction.universe.options import GenerationOptions
from showhow.oracles.reasoning import GoldReasoning
from showhow.runs.recorders import MemoryRecorder
from tests.oracles.test_skills import Ground, make_ground

OPTIONS = GenerationOptions(people=80, seed=9, depth=4, per_template=1)
Change = Callable[[list[Step]], None]


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    yield from make_ground(OPTIONS, sampled=500)


def facts_of(steps: list[Step]) -> list[Step]:
    return [step for step in steps if step.skill == SPAN_SKILL and "planned" in (step.data or {})]


def answer_wrongly(steps: list[Step], how: str) -> None:
    facts_of(steps)[-1].data |= {"answers": [{"text": "Nobody"}], "how": how}  # type: ignore[operator]


def ask_otherwise(steps: list[Step]) -> None:
    facts_of(steps)[-1].data |= {"planned": "Tell me more."}  # type: ignore[operator]


def ask_for_something_else(steps: list[Step]) -> None:
    facts_of(steps)[-1].data |= {"planned": "Who is it not?", "answers": [{"text": "Nobody"}]}  # type: ignore[operator]


def leave_the_last_out(steps: list[Step]) -> None:
    steps.remove(facts_of(steps)[-1])


def run_out_of_rounds(steps: list[Step]) -> None:
    leave_the_last_out(steps)
    steps[:] = [step for step in steps if not str(step.node).endswith("/next")]


@pytest.mark.parametrize(
    ("change", "mistakes", "counts"),
    [
        (lambda _steps: None, ("deduction",), (0, 0, 0)),
        (ask_otherwise, ("deduction",), (0, 0, 0)),
        (lambda steps: answer_wrongly(steps, "retrieved"), ("facts",), (1, 1, 0)),
        (lambda steps: answer_wrongly(steps, "concluded"), ("action",), (1, 1, 0)),
        (ask_for_something_else, ("decomposition",), (1, 0, 1)),
        (leave_the_last_out, ("action",), (1, 0, 0)),
        (run_out_of_rounds, ("decomposition",), (1, 0, 0)),
    ],
)
def test_each_change_of_a_right_run_is_one_mistake(
    ground: Ground, change: Change, mistakes: tuple[str, ...], counts: tuple[int, int, int]
):
    for gold, recorder, answer in list_runs(ground):
        size = len(gold.subquestions)
        change(recorder.steps)
        compared = compare_facts(recorder.steps, gold, answer)
        assert compared.mistakes == mistakes, gold.text
        assert (compared.missed, compared.wrong, compared.beside) == counts, gold.text
        assert compared.matched == size - compared.missed


def words_of(facts: str) -> list[str]:
    """The words of facts, whatever the order of their answers."""
    return sorted(re.findall(r"[\w-]+", facts))


def list_runs(ground: Ground) -> Iterator[tuple[GoldReasoning, MemoryRecorder, str]]:
    """Runs with gold replies that ask at least two sub-questions."""
    kinds: dict[str, Any] = {question.kind: question for question in ground.questions}
    for question in (kinds["composition"], kinds["conjunction"]):
        gold = GoldReasoning(ground.gold, question.text, question.details)
        outcome, recorder = ground.run("geek", question, ground.oracle(question), rounds=20)
        assert outcome.answers is not None
        assert len(facts_of(recorder.steps)) >= 2
        yield gold, recorder, outcome.answers.final_answer


def test_of_several_lanes_the_one_that_answered_is_compared(ground: Ground):
    question = next(question for question in ground.questions if question.kind == "conjunction")
    gold = GoldReasoning(ground.gold, question.text, question.details)
    outcome, recorder = ground.run("geek", question, ground.oracle(question), rounds=20, explore=2)
    assert outcome.answers is not None
    answer = outcome.answers.final_answer
    own, expected = write_facts(recorder.steps, gold, answer)
    assert words_of(own) == words_of(expected)
    assert "#" not in own
    spoilt = [step for step in facts_of(recorder.steps) if str(step.node).startswith("lane.1")]
    assert spoilt
    for step in spoilt:
        step.data |= {"answers": [{"text": "Nobody"}]}  # type: ignore[operator]
    assert compare_facts(recorder.steps, gold, answer).wrong == len(spoilt)
    for step in recorder.steps:
        if str(step.node).startswith("lane.1") and str(step.node).endswith("/conclude"):
            step.data["reply"]["answers"] = [{"text": "Nobody"}]  # type: ignore[index]
    assert compare_facts(recorder.steps, gold, answer).wrong == 0
