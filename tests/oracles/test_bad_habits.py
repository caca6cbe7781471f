"""Models that reply well, but not in the form that was asked for, cost no request, or one where nobody could guess."""

import json
from collections.abc import Callable, Iterator

import pytest
from pydantic import BaseModel

from showhow.evaluation.scoring.scoring import score_outcome
from showhow.reasoners.registry import REASONERS
from showhow.reasoners.skills.skill import ModelResponder, SkillCall
from tests.oracles.test_skills import WORLDS, Ground, is_short, make_ground, skill_of
from tests.servers.bad_habits import HABITS, forget, say_well
from tests.servers.model import ModelServer, Reply, Request, Says

METHODS = [entry.name for entry in REASONERS.values() if entry.skills]


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    yield from make_ground(WORLDS["everywhere"])


def ask(ground: Ground, method: str, write: Callable[[BaseModel, int], str]) -> tuple[int, float | None]:
    """The requests for a question, and its score; `write` writes the gold reply to a request by its place."""
    question = next(question for question in ground.questions if question.kind == "who" and is_short(question))
    oracle = ground.oracle(question)

    def reply(request: Request) -> Reply:
        skill = skill_of(request)
        asked = [message["content"] for message in request.body["messages"] if message["role"] == "user"]
        # A sentence on a rejected reply stands after the request.
        content = next(text for text in reversed(asked) if text.startswith("{"))
        call = SkillCall(skill, skill.request_type.model_validate(json.loads(content)), "here")
        value = oracle.reply(call, ()).value
        assert value is not None
        return Says(write(value, request.place))

    with ModelServer(reply) as server:
        outcome, _ = ground.run(method, question, ModelResponder(server.chat()))
    assert outcome.usage["calls"] == len(server.requests)
    scores = score_outcome(question, outcome).scores
    return len(server.requests), None if scores is None else scores["f1"]


@pytest.mark.parametrize("method", METHODS)
def test_a_bad_habit_costs_no_request_and_a_forgotten_field_one(ground: Ground, method: str):
    requests, score = ask(ground, method, lambda value, _: say_well(value))
    assert score == 1.0
    costs = {name: ask(ground, method, lambda value, _, write=habit: write(value)) for name, habit in HABITS.items()}
    assert {name: cost for name, cost in costs.items() if cost != (requests, score)} == {}
    for place in {0, requests - 1}:
        write = {place: forget}
        forgetful = ask(ground, method, lambda value, number, write=write: write.get(number, say_well)(value))
        assert forgetful in ((requests, score), (requests + 1, score)), place
