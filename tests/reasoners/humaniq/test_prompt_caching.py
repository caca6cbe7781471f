"""The marks up to which Anthropic caches a prompt, as its server gets them."""

import gc
import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from langchain_anthropic import _client_utils

from showhow.db.run_spec import RunLimits
from showhow.reasoners.base import Task
from showhow.reasoners.humaniq.agent import HumanIQ
from showhow.runs.recorders import MemoryRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.tools.registry import available_tools
from tests.fixtures.town import Town
from tests.reasoners.agents import ALONE, as_native_calls, as_text
from tests.servers.provider_models import AnthropicFormat, GeminiFormat, OllamaFormat, OpenAIFormat, ProviderServer

# Anthropic's client leaves connections to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

MAX_MARKS = 4
"""Anthropic refuses requests with more."""


@pytest.fixture(autouse=True, scope="module")
def closed_connections() -> Iterator[None]:
    """Collects the connections here, so that no later test is blamed for them."""
    yield
    _client_utils._get_default_httpx_client.cache_clear()
    gc.collect()


def blocks(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The blocks of a request in the order in which Anthropic caches them."""
    yield from request.get("tools", ())
    for message in [{"role": "system", "content": request["system"]}, *request["messages"]]:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        yield from ({"role": message["role"], **part} for part in parts)


def requests_of_run(town: Town, form: str, wire: Any) -> list[dict[str, Any]]:
    record = max(town.gold, key=lambda one: len(one.steps))
    script = (as_native_calls if form == "chat" else as_text)(record)
    with ProviderServer(wire, script) as server:
        agent = HumanIQ(replace(ALONE, form=form), chat=server.chat())
        task = Task(record.question.text, town.context, available_tools(town.context.world), town.gold[:2])
        outcome = run_reasoner(agent, task, MemoryRecorder(), RunControl(RunLimits(steps=20)))
        assert outcome.ending == "answered", outcome.failure
        assert len(server.requests) == len(record.steps) + 1
        return server.requests


def without_marks(request: dict[str, Any]) -> list[dict[str, Any]]:
    return [{name: value for name, value in block.items() if name != "cache_control"} for block in blocks(request)]


def test_tools_demonstrations_and_steps_are_marked_and_what_is_marked_stays_the_same(town: Town) -> None:
    requests = requests_of_run(town, "chat", AnthropicFormat())
    ends = [[n for n, block in enumerate(blocks(request)) if "cache_control" in block] for request in requests]
    tool_count = len(requests[0]["tools"])
    for request, places in zip(requests, ends, strict=True):
        assert len(places) == 3 <= MAX_MARKS
        # After the tools, after the demonstrations, which end before the question, and after the steps so far.
        assert places[:2] == [tool_count - 1, ends[0][1]]
        assert places[2] == len(list(blocks(request))) - 1
    question = list(blocks(requests[0]))[ends[0][1] + 1]
    assert question["text"] == max(town.gold, key=lambda one: len(one.steps)).question.text
    for before, after in itertools.pairwise(requests):
        assert without_marks(after)[: len(without_marks(before))] == without_marks(before)


def test_a_prompt_as_text_is_marked_after_its_demonstrations(town: Town) -> None:
    for request in requests_of_run(town, "text", AnthropicFormat()):
        marked = ["cache_control" in block for block in blocks(request)]
        assert marked == [True, False]


@pytest.mark.parametrize("wire", [OpenAIFormat(), GeminiFormat(), OllamaFormat()], ids=lambda wire: wire.model)
def test_other_providers_are_sent_no_marks(town: Town, wire: Any) -> None:
    assert "cache_control" not in str(requests_of_run(town, "chat", wire))
