"""Ids that a model makes up are looked up by no method: gold replies get one for every answer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from showhow.fiction.universe.options import GenerationOptions
from showhow.oracles.skills import OracleResponder
from showhow.reasoners.skills.skill import SkillAttempt, SkillCall, SkillReply
from showhow.reasoners.skills.values import AnswersReply
from tests.oracles.test_skills import Ground, make_ground

INVENTED = "Q99999999"
WORLDS = {
    "spread": GenerationOptions(people=80, seed=9, depth=4, per_template=1, split="text=50,graph=35,web=15"),
    "everywhere": GenerationOptions(people=80, seed=9, depth=4, per_template=1),
}


@dataclass
class InventsIds:
    """The oracle, except that every answer has an id that the graph does not have."""

    oracle: OracleResponder
    name: str = "invents ids"
    answered: int = 0

    def reply(self, call: SkillCall[Any, Any], rejections: Sequence[SkillAttempt]) -> SkillReply:
        reply = self.oracle.reply(call, rejections)
        if not isinstance(reply.value, AnswersReply) or not reply.value.answers:
            return reply
        self.answered += 1
        answers = [
            answer.model_copy(update={"entity": f"{INVENTED}{number}"})
            for number, answer in enumerate(reply.value.answers)
        ]
        value = reply.value.model_copy(update={"answers": answers})
        return replace(reply, value=value, text=value.model_dump_json())


@pytest.fixture(scope="module", params=WORLDS)
def ground(request: pytest.FixtureRequest) -> Iterator[Ground]:
    yield from make_ground(WORLDS[request.param], sampled=12)


@pytest.mark.parametrize(("method", "options"), [
    ("geek", {}), ("pdrr", {}), ("pdrr", {"mode": "beam"}), ("atomr", {}), ("probtree", {}),
])  # fmt: skip
def test_no_made_up_id_is_looked_up(ground: Ground, method: str, options: dict[str, Any]):
    answered = 0
    for question in ground.questions:
        responder = InventsIds(ground.oracle(question))
        _, recorder = ground.run(method, question, responder, **options)
        answered += responder.answered
        asked = [str(step.arguments) for step in recorder.steps if step.tool not in (None, "getLabel")]
        assert not [arguments for arguments in asked if INVENTED in arguments], question.text
    assert answered > 0
