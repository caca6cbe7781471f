"""A small real model writes nonsense: runs end by their limits, in words, and count what the server got."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from showhow.db.run_spec import RunLimits
from showhow.llm.client import ChatClient, build_chat_client
from showhow.llm.types import ChatReply, FinishReason, Message, OutgoingRequest
from showhow.llm.usage import Usage
from showhow.reasoners.base import Task
from showhow.reasoners.registry import make_reasoner
from showhow.runs.recorders import MemoryRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.tools.registry import available_tools
from showhow.tools.tool import ToolContext
from tests.browser.server import PREPARED
from tests.servers.real_model import REPLY_LIMIT, RealModel, serving

# The model is written, and loaded, once; a busy machine takes many times as long.
pytestmark = pytest.mark.timeout(2_400)
LIMITS = RunLimits(steps=2, seconds=45.0, model_calls=2)
"""A reply takes up to 10 s on a quiet machine; on a busy one, the run ends at its seconds: three in three minutes."""


class CountingRecorder:
    """Counts the calls as a store would keep them."""

    def __init__(self) -> None:
        self.begun = 0

    def take_unused_reply(self, _request: OutgoingRequest) -> None:
        return None

    def begin(self, _request: OutgoingRequest, _most: Usage) -> None:
        self.begun += 1

    def complete(self, _handle: Any, _reply: ChatReply) -> None:
        pass

    def fail(self, _handle: Any, _error: BaseException) -> None:
        pass


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
    before, recorded = model.count_requests(), CountingRecorder()
    context = replace(without_meaning, chat=chat.recording(recorded))
    task = Task("Who is the mother of Ada Reed?", context, available_tools(context.world))
    outcome = run_reasoner(make_reasoner(method, options), task, MemoryRecorder(), RunControl(LIMITS))
    assert outcome.ending in ("answered", "refused", "limit", "failed"), outcome
    assert outcome.ending == "answered" or outcome.failure, outcome
    sent = model.count_requests() - before
    assert 0 < sent <= LIMITS.model_calls
    assert recorded.begun == sent
    counted = outcome.usage.get("calls", 0)
    # The time may end while a call is under way.
    assert counted == sent or (outcome.ending == "limit" and counted < sent), outcome
