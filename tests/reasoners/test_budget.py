"""The budget of a question: reasoners cut their fans to what the run may still spend, and say what they dropped."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import inf
from typing import Any

import pytest

from showhow.db.models import Question
from showhow.db.run_spec import RunLimits
from showhow.db.runs.runs import RunOutcome
from showhow.evaluation.scoring.scoring import score_outcome
from showhow.oracles.skills import OracleResponder
from showhow.reasoners.base import CallBudget, Fan, Task
from showhow.reasoners.registry import make_reasoner
from showhow.reasoners.skills.skill import SkillAttempt, SkillCall, SkillReply
from showhow.reasoners.skills.values import AnswerValue
from showhow.runs.recorders import MemoryRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.tools.registry import available_tools
from tests.oracles.test_skills import WORLDS, Ground, make_ground

CASES: dict[str, tuple[str, dict[str, object]]] = {
    "atomr": ("atomr", {}),
    "geek": ("geek", {"explore": 3, "rounds": 4}),
    "pdrr": ("pdrr", {}),
    "pdrr published": ("pdrr", {"mode": "published", "triples": 3}),
    "pdrr beam": ("pdrr", {"mode": "beam", "width": 6}),
    "cot-sc": ("cot-sc", {}),
    "chain-of-knowledge": ("chain-of-knowledge", {"own": "free", "agreement": 1.0}),
    "probtree": ("probtree", {}),
    "tog": ("tog", {}),
    "pog": ("pog", {}),
    "tog-2": ("tog-2", {"samples": 3}),
    "structgpt": ("structgpt", {"hops": 5}),
}
"""The reasoners that fan out, with their options."""
SPREAD = ("atomr", "geek")
"""Those that are run where facts are spread over sources."""
DISAGREEING = ("chain-of-knowledge", "tog-2")
"""Those that go on only if samples disagree."""


@pytest.fixture(scope="module")
def grounds() -> Iterator[dict[str, Ground]]:
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(contextmanager(make_ground)(WORLDS[name])) for name in ("spread", "everywhere")
        }


class Disagreeing:
    """The gold replies, except that no samples before the sources are read agree."""

    name = "disagreeing"

    def __init__(self, oracle: OracleResponder) -> None:
        self._oracle = oracle

    def reply(self, call: SkillCall[Any, Any], rejections: Sequence[SkillAttempt]) -> SkillReply:
        value = self._oracle.reply(call, rejections).value
        assert value is not None
        if call.skill.name in {"draft_rationales", "cot_answer"}:
            value = value.model_copy(update={"answers": [AnswerValue(text=f"Guess {call.sample}")], "unknown": False})
        return SkillReply(value.model_dump_json(), value)


@dataclass(frozen=True)
class Case:
    """A method with the largest question that it answers."""

    ground: Ground
    method: str
    options: dict[str, object]
    disagrees: bool
    question: Question

    def run(self, limits: RunLimits, prior: MemoryRecorder | None = None) -> tuple[MemoryRecorder, RunOutcome]:
        context = self.ground.gold.context
        oracle = self.ground.oracle(self.question)
        responder = Disagreeing(oracle) if self.disagrees else oracle
        recorder = prior or MemoryRecorder()
        task = Task(self.question.text, context, available_tools(context.world), responder=responder)
        return recorder, run_reasoner(make_reasoner(self.method, self.options), task, recorder, RunControl(limits))


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest, grounds: dict[str, Ground]) -> Case:
    method, options = CASES[request.param]
    ground = grounds["spread" if method in SPREAD else "everywhere"]
    for question in sorted(ground.questions, key=lambda question: len(str(question.details)), reverse=True):
        case = Case(ground, method, options, method in DISAGREEING, question)
        _, outcome = case.run(limits())
        scores = score_outcome(question, outcome).scores
        if scores is not None and scores["f1"] == 1.0:
            return case
    raise AssertionError(f"{request.param} answers no question")


def limits(**more: int) -> RunLimits:
    return RunLimits(steps=None, seconds=None, **more)


def notes(recorder: MemoryRecorder) -> list[str]:
    return [step.thought for step in recorder.steps if (step.data or {}).get("kept") is not None]


def test_a_run_stays_within_any_budget_and_says_what_it_dropped(case: Case):
    free, outcome = case.run(limits())
    assert not notes(free)
    needed = outcome.calls["model_calls"]
    dropped = set()
    for limit in sorted({*range(1, 14, 2), *range(13, needed, -(-needed // 8)), needed - 1, needed + 8}):
        recorder, outcome = case.run(limits(model_calls=limit))
        assert outcome.calls["model_calls"] <= limit
        assert outcome.ending in {"answered", "refused", "limit"}
        if limit > 12:
            assert outcome.ending != "limit", (limit, notes(recorder))
        dropped |= {note.partition(":")[0] for note in notes(recorder)}
        if outcome.ending == "answered" and not notes(recorder):
            scores = score_outcome(case.question, outcome).scores
            assert scores is not None
            assert scores["f1"] == 1.0
    assert any("keep" in note for note in dropped)


def test_a_budget_of_retrievals_cuts_the_fans(case: Case):
    _, free = case.run(limits())
    for limit in (free.calls["retrievals"], free.calls["retrievals"] // 2, 4):
        recorder, outcome = case.run(limits(retrievals=limit))
        assert outcome.calls["retrievals"] <= limit
        # A lane of GEEK that looks at further sources than its share has no fan left to cut: it ends at the limit.
        assert outcome.ending != "limit" or notes(recorder) or case.method == "geek", limit


def test_a_resumed_run_drops_what_it_had_dropped(case: Case):
    _, free = case.run(limits())
    budget = limits(model_calls=free.calls["model_calls"] - 2)
    whole, expected = case.run(budget)
    assert notes(whole)
    for cut in range(1, len(whole.steps), max(7, len(whole.steps) // 8)):
        resumed, outcome = case.run(budget, MemoryRecorder(whole.steps[:cut]))
        # A tool that failed is called once more.
        assert {step.node for step in resumed.steps} == {step.node for step in whole.steps}
        assert notes(resumed) == notes(whole)
        # The steps that are cited come one later where a tool was called once more.
        answers = [result.answers and result.answers.final_answer for result in (outcome, expected)]
        assert answers[0] == answers[1]
        assert outcome.calls["model_calls"] == expected.calls["model_calls"]


@pytest.mark.parametrize(
    ("left", "count"),
    [
        (CallBudget(), 4),
        (CallBudget(29, inf), 4),
        (CallBudget(28, inf), 3),
        (CallBudget(inf, 6), 2),
        (CallBudget(8, 2), 0),
        (CallBudget(0, 0), 0),
        (CallBudget(-3, 5), 0),
    ],
)
def test_a_fan_is_cut_to_what_is_left_after_the_reserve(left: CallBudget, count: int):
    assert Fan("lanes", 4, CallBudget(7, 3), CallBudget(1, 0), least=0).count_affordable(left) == count
    assert Fan("lanes", 4, CallBudget(7, 3), CallBudget(1, 0)).count_affordable(left) == max(1, count)


def test_fans_at_the_same_time_share_what_is_left():
    assert Fan("lanes", 4, CallBudget(5, 0), sharers=2).count_affordable(CallBudget(20, 0)) == 2
