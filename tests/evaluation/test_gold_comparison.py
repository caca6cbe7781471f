"""The comparison with gold reasoning: gold replies differ nowhere, and one wrong reply is the first difference."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from showhow.evaluation.comparison.gold_comparison import can_compare, compare_with_gold, find_first_difference
from showhow.fiction.questions.evaluate import GENDERED_RELATIONS
from showhow.fiction.universe.options import GenerationOptions
from showhow.oracles.reasoning import GoldReasoning
from showhow.oracles.skill_sources import Fault, FaultyResponder
from showhow.oracles.skills import OracleResponder
from showhow.reasoners.skills.skill import SkillAttempt, SkillCall, SkillReply
from showhow.reasoners.skills.values import format_values
from showhow.reasoners.sources import SELECT_SOURCES
from tests.oracles.test_skills import Ground, make_ground

pytestmark = pytest.mark.long

OPTIONS = GenerationOptions(people=120, seed=4, depth=4, per_template=1)
"""Every source states every fact: PDRR asks the graph alone where it states some of the facts."""
METHODS = ("atomr", "pdrr", "geek")


def can_differ(method: str, gold: GoldReasoning) -> bool:
    """Whether gold replies may differ: the graph states siblings where a triple of PDRR asks for brothers."""
    return method == "pdrr" and any(triple.relation in GENDERED_RELATIONS for triple in gold.triples)


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    yield from make_ground(OPTIONS, sampled=36)


@dataclass
class WrongAt:
    """The oracle, except that the calls at one place get another valid reply."""

    oracle: OracleResponder
    wrong: FaultyResponder
    place: str
    name: str = "wrong at one place"

    def reply(self, call: SkillCall[Any, Any], rejections: Sequence[SkillAttempt]) -> SkillReply:
        is_wrong = call.node.startswith(f"{self.place}/") and call.skill.name != "select_sources"
        return (self.wrong if is_wrong else self.oracle).reply(call, rejections)


@pytest.mark.parametrize("method", METHODS)
def test_gold_replies_differ_nowhere(ground: Ground, method: str):
    compared = 0
    for question in ground.questions:
        gold = GoldReasoning(ground.gold, question.text, question.details)
        if can_differ(method, gold):
            continue
        _, recorder = ground.run(method, question, ground.oracle(question))
        verdicts = compare_with_gold(method, recorder.steps, gold)
        assert find_first_difference(verdicts) is None, (question.text, verdicts)
        compared += len(verdicts)
    assert compared > len(ground.questions)


@pytest.mark.parametrize("method", METHODS)
def test_one_wrong_reply_is_the_first_difference_with_the_gold_answers_beside(ground: Ground, method: str):
    noticed = unnoticed = 0
    for question in ground.questions[::3]:
        gold = GoldReasoning(ground.gold, question.text, question.details)
        if can_differ(method, gold):
            continue
        _, right = ground.run(method, question, ground.oracle(question))
        places = {verdict.position: verdict for verdict in compare_with_gold(method, right.steps, gold)}
        asked = {step.parent_id for step in right.steps if step.skill not in (None, "node", SELECT_SOURCES.reference)}
        for step in right.steps:
            if step.position not in places or step.id not in asked:
                continue
            oracle = ground.oracle(question)
            faulty = FaultyResponder(oracle, Fault("wrong", 1.0, seed=1), gold)
            _, wrong = ground.run(method, question, WrongAt(oracle, faulty, step.node or ""))
            first = find_first_difference(compare_with_gold(method, wrong.steps, gold))
            if first is None:
                # A wrong answer in place of none has no support, so that it is not taken.
                assert places[step.position].gold == format_values([]), question.text
                unnoticed += 1
                continue
            noticed += 1
            part = wrong.steps[first.position - 1]
            # PDRR looks a second time for what the first look did not find.
            node = (part.node or "").removesuffix("/again" if method == "pdrr" else "")
            assert (node, first.gold) == (step.node, places[step.position].gold), question.text
    assert (noticed, unnoticed) == {"atomr": (38, 2), "pdrr": (15, 3), "geek": (28, 4)}[method]


@pytest.mark.parametrize("mode", ["published", "beam"])
def test_kept_facts_that_are_right_agree_and_a_wrong_one_is_the_first_difference(ground: Ground, mode: str):
    compared = noticed = 0
    for question in ground.questions:
        gold = GoldReasoning(ground.gold, question.text, question.details)
        _, recorder = ground.run("pdrr", question, ground.oracle(question), mode=mode)
        verdicts = {verdict.position: verdict for verdict in compare_with_gold("pdrr", recorder.steps, gold)}
        for step in recorder.steps:
            values = [entry for kept in (step.data or {}).get("values", {}).values() for entry in kept]
            if step.position not in verdicts or not values:
                continue
            compared += 1
            first = find_first_difference(list(verdicts.values()))
            if first is None:
                # A thing that no triple of the question has.
                step.data["values"] |= {name: [{"text": "Nobody"}] for name in step.data["values"]}  # type: ignore[index]
                changed = find_first_difference(compare_with_gold("pdrr", recorder.steps, gold))
                assert changed is not None
                assert changed.position == step.position
                noticed += 1
            break
    assert noticed >= compared * 0.6 > 2


def test_only_methods_with_parts_can_be_compared(ground: Ground):
    question = ground.questions[0]
    gold = GoldReasoning(ground.gold, question.text, question.details)
    assert [name for name in ("atomr", "pdrr", "geek", "self-ask", None) if can_compare(name)] == list(METHODS)
    assert compare_with_gold("self-ask", [], gold) == compare_with_gold("atomr", [], gold) == []
