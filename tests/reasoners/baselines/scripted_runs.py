"""Runs a baseline on a question about the fleet, with a scripted model behind real HTTP."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from showhow.db.models import Step
from showhow.db.run_spec import RunLimits
from showhow.db.runs.runs import RunOutcome
from showhow.db.traces.recording import TraceAnswers
from showhow.llm.client import ChatClient, build_chat_client
from showhow.llm.types import ModelProfile
from showhow.reasoners.base import Reasoner, Task
from showhow.reasoners.baselines.rounds import React, build_cot_sc_react, build_react_cot_sc
from showhow.reasoners.registry import REASONERS, make_reasoner
from showhow.reasoners.skills.skill import ModelResponder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.tools.registry import available_tools
from showhow.tools.tool import ToolContext
from tests.oracles.test_skills import skill_of
from tests.reasoners.agents import recorder_with_steps
from tests.servers.model import ModelServer, Request, Says, Script

QUESTION = "In which town was the captain of Sea Star born?"


@dataclass(frozen=True)
class BaselineRun:
    """The outcome of a run, with its steps and the requests to the model."""

    outcome: RunOutcome
    steps: list[Step]
    requests: list[Request]

    @property
    def answers(self) -> TraceAnswers:
        assert self.outcome.answers is not None, self.outcome.failure
        return self.outcome.answers

    @property
    def tools(self) -> list[str]:
        """The tools of the steps that called one."""
        return [step.tool for step in self.steps if step.tool is not None]

    @property
    def prompts(self) -> str:
        """All messages of all requests, as golden files hold them."""
        return "\n\n".join(
            f"===== request {number}\n"
            + "\n".join(f"----- {message['role']}\n{message['content']}" for message in request.body["messages"])
            for number, request in enumerate(self.requests, 1)
        )

    def position_of(self, words: str) -> int:
        """The position of the step of `read` whose observation has these words."""
        return next(step.position for step in self.steps if step.tool == "read" and words in (step.observation or ""))


BUILD_WITH_CHAT: dict[str, Callable[[Any, ChatClient], Reasoner]] = {
    "react": React,
    "react-cot-sc": build_react_cot_sc,
    "cot-sc-react": build_cot_sc_react,
}
"""The baselines that ask the model beside skills."""


def run_baseline(
    name: str,
    context: ToolContext,
    script: Script,
    options: Mapping[str, Any] | None = None,
    window: int = 128_000,
    **more: Any,
) -> BaselineRun:
    """Run the baseline; the tools get no model, so that only its skills use the script.

    `more`: `limits` and `concurrency` of the run, the `tools` it may call, its `demonstrations`, the steps of a run
    that it resumes (`taken`), the type of the question (`gold_type`).
    """
    recorder = recorder_with_steps(more.get("taken", ()))
    with ModelServer(script) as server:
        chat = build_chat_client(ModelProfile("scripted", server.url, seconds=60.0, context_window=window))
        # Only in-context looks at the model's window, and calls no tool.
        own_context = replace(context, chat=chat) if name == "in-context" else context
        responder = ModelResponder(chat)
        parsed = REASONERS[name].parse_options(options or {})
        tools = [tool for tool in available_tools(context.world) if tool.name in more.get("tools", {tool.name})]
        tools = [*REASONERS[name].bring_tools(parsed)] or tools
        task = Task(
            QUESTION,
            own_context,
            tools,
            more.get("demonstrations", ()),
            responder=responder,
            gold_type=more.get("gold_type"),
        )
        build = BUILD_WITH_CHAT.get(name)
        reasoner = make_reasoner(name, options) if build is None else build(parsed, chat)
        control = RunControl(more.get("limits", RunLimits(steps=300)), concurrency=more.get("concurrency", 8))
        outcome = run_reasoner(reasoner, task, recorder, control)
        return BaselineRun(outcome, recorder.steps, list(server.requests))


def read_request(request: Request) -> dict[str, Any]:
    """The request of the skill, which the first user message holds."""
    payload: dict[str, Any] = json.loads(request.body["messages"][1]["content"])
    return payload


def skill_name(request: Request) -> str:
    """The name of the skill whose instructions the request has."""
    return skill_of(request).name


def passage_id(request: Request, words: str) -> str:
    """The id of the passage with these words."""
    return next(passage["id"] for passage in read_request(request)["passages"] if words in passage["text"])


def answers(*texts: str, support: tuple[str, ...] = (), unknown: bool = False) -> dict[str, Any]:
    """Answers as a reply has them."""
    return {"answers": [{"text": text} for text in texts], "support": list(support), "unknown": unknown}


def says(**fields: Any) -> Says:
    """A reply with these fields as JSON."""
    return Says(json.dumps(fields))
