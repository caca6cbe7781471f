"""The client records each request before it is sent and its reply before the caller gets it."""

import math
import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from showhow.llm.client import DEFAULT_PURPOSE, build_chat_client
from showhow.llm.errors import ChatBadRequest, ChatEmptyReply, ChatError
from showhow.llm.types import ChatReply, Message, ModelProfile, ModelToolCall, OutgoingRequest
from showhow.llm.usage import Usage
from showhow.tools.registry import BUILT_IN_TOOLS
from showhow.tools.tool import Observation, Tool, ToolContext
from showhow.worlds.source import World
from showhow.worlds.text_normalization import make_storable
from tests.servers.model import Fails, ModelServer, Says

QUESTION = [Message("user", "Which city?")]


@dataclass
class MemoryCallRecorder:
    """The calls in the order of their events."""

    requests: list[OutgoingRequest] = field(default_factory=list)
    events: list[tuple[str, int, Any]] = field(default_factory=list)

    def take_unused_reply(self, request: OutgoingRequest) -> ChatReply | None:  # noqa: ARG002 - nothing was stored before
        return None

    def begin(self, request: OutgoingRequest, most: Usage) -> int:
        assert most.unreported_calls == 1
        self.requests.append(request)
        self.events.append(("begin", len(self.requests), request.purpose))
        return len(self.requests)

    def complete(self, handle: int, reply: ChatReply) -> None:
        self.events.append(("complete", handle, reply.text))

    def fail(self, handle: int, error: BaseException) -> None:
        self.events.append(("fail", handle, error))


class FullRecorder(MemoryCallRecorder):
    """Stores at most so many events."""

    def __init__(self, space: int) -> None:
        super().__init__()
        self.space = space

    def begin(self, request: OutgoingRequest, most: Usage) -> int:
        self.take_space()
        return super().begin(request, most)

    def complete(self, handle: int, reply: ChatReply) -> None:
        self.take_space()
        super().complete(handle, reply)

    def take_space(self) -> None:
        if not self.space:
            raise OSError("no space left")
        self.space -= 1


def test_a_request_is_recorded_before_it_is_sent_and_its_reply_before_it_is_returned() -> None:
    recorder = MemoryCallRecorder()
    recorded_when_sent: list[list[tuple[str, int, Any]]] = []

    def script(request: Any) -> Says:
        recorded_when_sent.append(list(recorder.events))
        return Says("Harbourton", usage=(7, 3))

    with ModelServer(script) as server:
        chat = server.chat(key="the-key-of-the-server").recording(recorder)
        reply = chat.with_purpose("step").ask(QUESTION, stop=["\n"], tools=[BUILT_IN_TOOLS["read"]])
    assert reply.text == "Harbourton"
    assert recorded_when_sent == [[("begin", 1, "step")]]
    assert recorder.events == [("begin", 1, "step"), ("complete", 1, "Harbourton")]
    (request,) = recorder.requests
    assert (request.model, request.messages) == ("scripted", [{"role": "user", "content": "Which city?"}])
    assert request.parameters["base_url"] == server.url
    assert (request.parameters["temperature"], request.parameters["stop"]) == (None, ["\n"])
    assert [tool["name"] for tool in request.parameters["tools"]] == ["read"]
    assert "the-key-of-the-server" not in repr(request)


def test_the_temperature_of_a_request_is_among_its_recorded_parameters() -> None:
    recorder = MemoryCallRecorder()
    with ModelServer([Says("Harbourton")]) as server:
        server.chat().recording(recorder).ask(QUESTION, temperature=0.7)
    assert recorder.requests[0].parameters["temperature"] == server.requests[0].body["temperature"] == 0.7


def test_tool_calls_and_their_results_are_recorded_with_their_ids() -> None:
    recorder = MemoryCallRecorder()
    messages = [
        *QUESTION,
        Message("assistant", "", (ModelToolCall("c1", "read", {"title": "Harbourton"}),)),
        Message("tool", "A town.", answers="c1"),
    ]
    with ModelServer([Says("Harbourton")]) as server:
        server.chat().recording(recorder).ask(messages)
    assert recorder.requests[0].messages[1:] == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "name": "read", "arguments": {"title": "Harbourton"}}],
        },
        {"role": "tool", "content": "A town.", "tool_call_id": "c1"},
    ]


def test_retries_belong_to_one_recorded_call() -> None:
    recorder = MemoryCallRecorder()
    with ModelServer([Fails(429, "busy", {"Retry-After": "0"}), Says("now")]) as server:
        server.chat().recording(recorder).ask(QUESTION)
        assert len(server.requests) == 2
    assert [event[0] for event in recorder.events] == ["begin", "complete"]


@pytest.mark.parametrize(("reply", "error"), [(Says("", usage=(7, 0)), ChatEmptyReply), (Fails(400), ChatBadRequest)])
def test_a_failed_request_is_recorded_with_its_error_and_usage(reply: Any, error: type[ChatError]) -> None:
    recorder = MemoryCallRecorder()
    with ModelServer([reply]) as server, pytest.raises(error) as raised:
        server.chat().recording(recorder).ask(QUESTION)
    assert recorder.events[1:] == [("fail", 1, raised.value)]
    assert raised.value.usage is not None
    assert raised.value.usage.calls == 1


def test_a_model_that_does_not_load_is_a_failed_call() -> None:
    recorder = MemoryCallRecorder()
    with pytest.raises(ChatError):
        build_chat_client(ModelProfile("no-such-provider:model")).recording(recorder).ask(QUESTION)
    assert [event[0] for event in recorder.events] == ["begin", "fail"]


def test_an_unrecorded_request_is_not_sent_and_an_unrecorded_reply_is_withheld() -> None:
    with ModelServer([Says("one")]) as server:
        with pytest.raises(OSError, match="no space"):
            server.chat().recording(FullRecorder(0)).ask(QUESTION)
        assert server.requests == []
        with pytest.raises(OSError, match="no space"):
            server.chat().recording(FullRecorder(1)).ask(QUESTION)
        assert len(server.requests) == 1


def test_streamed_requests_are_recorded_with_the_purpose_of_the_caller() -> None:
    recorder = MemoryCallRecorder()
    with ModelServer([Says("Harbourton is it.")]) as server:
        chat = server.chat().recording(recorder).with_purpose("response")
        deltas: list[str] = []
        chat.ask(QUESTION, on_text=deltas.append)
        assert chat.total_usage.calls == 1
    assert "".join(deltas) == "Harbourton is it."
    assert recorder.events == [("begin", 1, "response"), ("complete", 1, "Harbourton is it.")]


def test_requests_of_a_tool_have_the_tool_as_their_purpose() -> None:
    recorder = MemoryCallRecorder()

    def ask(context: ToolContext, _arguments: Any) -> Observation:
        assert context.chat is not None
        return Observation(context.chat.ask(QUESTION).text, {})

    tool = Tool("guess", "Guess", "Guesses.", {}, ask, ())
    with ModelServer([Says("Harbourton"), Says("Harbourton")]) as server:
        chat = server.chat().recording(recorder)
        context = ToolContext(World("empty"), lambda texts: np.zeros((len(texts), 1), np.float32), chat)
        result = tool.call(context, {})
        chat.ask(QUESTION)
    assert result.usage is not None
    assert result.usage.calls == 1
    assert [request.purpose for request in recorder.requests] == ["tool:guess", DEFAULT_PURPOSE]


def test_an_address_is_recorded_without_user_password_and_query() -> None:
    profile = ModelProfile("one", "https://user:secret@host:8443/v1?api-key=secret", "secret")
    assert profile.parameters == {"base_url": "https://host:8443/v1", "temperature": None}


def test_threads_that_share_a_client_record_calls_of_their_own() -> None:
    recorder = MemoryCallRecorder()
    lock = threading.Lock()

    class LockedRecorder(MemoryCallRecorder):
        def begin(self, request: OutgoingRequest, most: Usage) -> int:
            with lock:
                return recorder.begin(request, most)

        def complete(self, handle: int, reply: ChatReply) -> None:
            with lock:
                recorder.complete(handle, reply)

    with ModelServer(lambda request: Says(request.prompt)) as server:
        chat = server.chat().recording(LockedRecorder())
        threads = [threading.Thread(target=lambda n=n: chat.ask([Message("user", f"I am {n}.")])) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    replies = {event[1]: event[2] for event in recorder.events if event[0] == "complete"}
    sent = {number: request.messages[0]["content"] for number, request in enumerate(recorder.requests, 1)}
    assert replies == sent
    assert len(sent) == 8


def test_the_text_is_streamed_and_the_reply_can_be_stored() -> None:
    deltas: list[str] = []
    reply = Says("Zero \x00 byte", calls=[("read\x00", {"title": "half \ud800", "list": [1, {"a\x00": "b"}]})])
    with ModelServer([reply, reply]) as server:
        streamed = server.chat().ask(QUESTION, on_text=deltas.append)
        whole = server.chat().ask(QUESTION)
    assert "".join(deltas).startswith("Zero ")
    for result in (streamed, whole):
        assert "\x00" not in result.text
        (call,) = result.calls
        assert "\x00" not in call.name
        assert "\x00" not in str(call.arguments)
        str(call.arguments).encode()


def test_numbers_that_are_not_json_become_text() -> None:
    assert make_storable([math.nan, -math.inf, 1.5, True, None]) == ["nan", "-inf", 1.5, True, None]
