"""A small real model writes nonsense: runs end by their limits, in words, and count what the server got."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from showhow.db.run_spec import RunLimits
from showhow.llm.client import ChatClient, build_chat_client
from showhow.llm.types import FinishReason, Message
from showhow.reasoners.base import Task
from showhow.reasoners.registry import make_reasoner
from showhow.runs.recorders import MemoryRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.tools.registry import available_tools
from showhow.tools.tool import ToolContext
from tests.browser.server import PREPARED
from tests.servers.real_model import REPLY_LIMIT, RealModel, serving

LIMITS = RunLimits(steps=3, seconds=120.0, model_calls=3)
"""A reply takes about 10 s on a quiet machine; on a busy one, the run ends at its seconds."""


@pytest.fixture(scope="module")
def model() -> Iterator[RealModel]:
    folder = Path(os.environ[PREPARED]) / "real-model"
    folder.mkdir()
    with serving(folder) as running:
        yield running


@pytest.fixture
def chat(model: RealModel) -> ChatClient:
    return build_chat_client(model.profile())


def test_words_come_as_they_are_written_until_the_reply_is_cut_off(chat: ChatClient, model: RealModel):
    before, pieces = model.count_requests(), list[str]()
    reply = chat.ask([Message("user", "Write a long story about a ship.")], on_text=pieces.append)
    assert reply.stopped == FinishReason.LENGTH
    assert reply.usage.output_tokens == REPLY_LIMIT
    assert len(pieces) > REPLY_LIMIT // 4
    assert "".join(pieces).strip() == reply.text.strip()
    assert model.count_requests() == before + 1


@pytest.mark.parametrize(
    ("method", "options"),
    [("humaniq", {"form": "chat"}), ("humaniq", {"form": "text"}), ("geek", {})],
    ids=["humaniq in chat", "humaniq in text", "geek"],
)
def test_a_run_ends_within_its_limits_and_counts_the_requests_of_the_server(
    chat: ChatClient, model: RealModel, without_meaning: ToolContext, method: str, options: dict[str, object]
):
    before = model.count_requests()
    context = replace(without_meaning, chat=chat)
    task = Task("Who is the mother of Ada Reed?", context, available_tools(context.world))
    outcome = run_reasoner(make_reasoner(method, options), task, MemoryRecorder(), RunControl(LIMITS))
    assert outcome.ending in ("answered", "refused", "limit", "failed"), outcome
    assert outcome.ending == "answered" or outcome.failure, outcome
    sent = model.count_requests() - before
    assert outcome.usage["calls"] == sent, outcome
    assert 0 < sent <= 3
