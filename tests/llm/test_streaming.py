import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.llm.errors import ChatError, ChatTimeout
from showhow.llm.openai_compatible import BackgroundCall, StopSequenceFilter, truncate_at_stop
from showhow.llm.types import Message
from tests.servers.model import ModelServer, Sends

LETTERS = st.text(st.sampled_from("ab\n"), max_size=30)
STOPS = st.lists(st.text(st.sampled_from("ab\n"), max_size=4), max_size=3)


@given(LETTERS, STOPS)
def test_the_text_ends_at_the_stop_sequence_that_is_completed_first(text: str, stop: list[str]):
    read = ""
    for letter in text:
        read += letter
        outcome = [one for one in stop if one and read.endswith(one)]
        if outcome:
            read = read[: -max(map(len, outcome))]
            break
    assert truncate_at_stop(text, stop) == read


@given(LETTERS, STOPS, st.lists(st.integers(1, 5), max_size=30))
def test_the_emitted_text_does_not_depend_on_how_it_is_split(text: str, stop: list[str], sizes: list[int]):
    emitted: list[str] = []
    spoken = StopSequenceFilter(emitted.append, stop)
    rest = text
    for size in [*sizes, len(text) or 1]:
        spoken.feed(rest[:size])
        rest = rest[size:]
        assert truncate_at_stop(text, stop).startswith("".join(emitted))
    held_back = truncate_at_stop(text, stop).removeprefix("".join(emitted))
    assert not held_back or any(one.startswith(held_back) for one in stop)


def test_a_background_call_emits_text_and_returns_its_result():
    emitted: list[str] = []

    def run(errand: BackgroundCall[int]) -> int:
        errand.emit_text("one")
        errand.emit_text("two")
        return 3

    assert BackgroundCall(run).result(60, emitted.append, "late") == 3
    assert emitted == ["one", "two"]


def test_a_background_call_is_abandoned_at_its_deadline():
    outcome: list[bool] = []

    def run(errand: BackgroundCall[int]) -> int:
        while not errand.abandoned:
            time.sleep(0.01)
        outcome.append(True)
        return 1

    with pytest.raises(ChatTimeout, match="late"):
        BackgroundCall(run).result(0.05, str.strip, "late")
    deadline = time.monotonic() + 60
    while not outcome and time.monotonic() < deadline:
        time.sleep(0.01)
    assert outcome


def test_an_exception_of_the_work_is_raised_in_the_thread_of_the_caller():
    def run(_: BackgroundCall[int]) -> int:
        raise ZeroDivisionError("ours")

    with pytest.raises(ZeroDivisionError, match="ours"):
        BackgroundCall(run).result(60, str.strip, "late")


WHOLE = {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}
USAGE = {"prompt_tokens": "7", "completion_tokens": "2", "total_tokens": "9"}


def whole_reply(reason: str | None) -> Sends:
    choices = [{"index": 0, "message": {"role": "assistant", "content": "Paris."}, "finish_reason": reason}]
    return Sends(json.dumps(WHOLE | {"choices": choices, "usage": USAGE}).encode(), "application/json")


def test_a_whole_reply_needs_no_reason_of_its_end():
    with ModelServer([whole_reply(None)]) as server:
        assert server.chat().ask([Message("user", "Which city?")]).text == "Paris."


def test_a_server_that_does_not_stream_is_read_where_a_stream_was_asked_for():
    texts: list[str] = []
    with ModelServer([whole_reply("stop")]) as server:
        reply = server.chat().ask([Message("user", "Which city?")], on_text=texts.append)
    assert (reply.text, "".join(texts), reply.usage.input_tokens) == ("Paris.", "Paris.", 7)


@pytest.mark.parametrize(
    "body", [{"error": {"message": "no such model"}}, {"error": "no such model"}, {"detail": "no such model"}]
)
def test_an_error_in_place_of_a_stream_is_told_in_the_words_of_the_server(body: dict[str, object]):
    script = [Sends(json.dumps(body).encode(), "application/json")] * 9
    with ModelServer(script) as server, pytest.raises(ChatError, match="no such model"):
        server.chat().ask([Message("user", "Which city?")], on_text=lambda _: None)
