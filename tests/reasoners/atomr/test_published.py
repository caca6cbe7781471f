"""The preset `published` with gold replies: it answers what has an answer, with the calls that its plan needs."""

from collections.abc import Iterator

import pytest

from showhow.db.unanswerable import find_gold_reason
from showhow.evaluation.scoring.scoring import score_outcome
from showhow.reasoners.atomr.options import PUBLISHED
from tests.oracles.test_skills import WORLDS, Ground, make_ground


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    yield from make_ground(WORLDS["everywhere"])


@pytest.mark.parametrize("overlap", [0.0, PUBLISHED["overlap"]])
def test_gold_replies_lead_the_published_method_to_every_answer(ground: Ground, overlap: float):
    for question in ground.questions:
        if find_gold_reason(question.gold_answers):
            # An empty list is unknown in the paper, so that nobody is no answer.
            continue
        outcome, recorder = ground.run("atomr", question, ground.oracle(question), **{**PUBLISHED, "overlap": overlap})
        score = score_outcome(question, outcome)
        assert not [step for step in recorder.steps if (step.data or {}).get("dropped")]
        assert score.scores is not None
        assert score.scores["f1"] == 1.0, question.text
        assert score.model_calls == score.model_calls_expected, question.text
