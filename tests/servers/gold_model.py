"""A model that replies to skills with gold reasoning, over HTTP like any other model."""

import json
from collections.abc import Iterable
from typing import Any

from showhow.oracles.skills import OracleResponder
from showhow.reasoners.skills.skill import Skill, SkillCall, build_skill_messages
from tests.servers.model import Fails, Reply, Request, Says


class GoldModel:
    """Replies to the skills of a reasoner; `changed` replaces the replies of skills by name.

    `asked` has the names of the skills, `others` the number of further requests.
    """

    def __init__(self, oracle: OracleResponder, skills: Iterable[Skill[Any, Any]]) -> None:
        self._oracle = oracle
        self._skills = list(skills)
        self.changed: dict[str, Any] = {}
        self.asked: list[str] = []
        self.others = 0

    def __call__(self, request: Request) -> Reply:
        messages = request.body["messages"]
        instructions = messages[0]["content"]
        # Shots stand before the request, sentences on rejected replies after it.
        asked = [
            message["content"] for message in messages if message["role"] == "user" and message["content"][:1] == "{"
        ]
        # The prompt of a tool has no request of a skill.
        for skill in self._skills if asked else ():
            try:
                call = SkillCall(skill, skill.request_type.model_validate(json.loads(asked[-1])), "any")
            except ValueError:
                continue
            if build_skill_messages(call)[0].text == instructions:
                self.asked.append(skill.name)
                reply = self.changed.get(skill.name) or self._oracle.reply(call, ()).text
                return Says(reply)
        self.others += 1
        return Fails(400, "this model knows only the skills of one reasoner")
