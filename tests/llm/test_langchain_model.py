import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage

from showhow.llm.client import ChatClient, build_chat_client
from showhow.llm.errors import (
    ChatAuthenticationError,
    ChatBadRequest,
    ChatContextTooLong,
    ChatEmptyReply,
    ChatError,
    ChatInterrupted,
    ChatInvalidReply,
    ChatModelNotFound,
    ChatQuotaExceeded,
    ChatRateLimited,
    ChatReplyFiltered,
    ChatServerError,
    ChatTimeout,
    ChatUnavailable,
    ChatUnreachable,
)
from showhow.llm.langchain_model import LangChainModel
from showhow.llm.provider_errors import ModelEndpoint
from showhow.llm.types import Message, ModelProfile, ModelToolCall
from showhow.llm.usage import TokenPrice, Usage
from showhow.tools.registry import BUILT_IN_TOOLS
from tests.servers.litellm_proxy import pass_on
from tests.servers.model import Breaks, Cut, Fails, Hangs, ModelServer, Reply, Request, Says, Sends, Trickles
from tests.servers.strict import make_script

KEY = "sk-planted-5f3a9c"
ASKED = [Message("system", "Be brief."), Message("user", "Which city?")]


def test_a_reply_has_text_finish_reason_usage_and_cost():
    with ModelServer([Says("Paris.", usage=(1000, 10))]) as server:
        reply = server.chat(price=TokenPrice(2.0, 8.0)).ask(ASKED)
    assert (reply.text, reply.calls, reply.stopped) == ("Paris.", (), "stop")
    assert (reply.usage.model, reply.usage.calls) == ("scripted", 1)
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (1000, 10)
    assert reply.usage.cost == pytest.approx(0.00208)
    body = server.requests[0].body
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Which city?"},
    ]
    assert (body["model"], body["stream"]) == ("scripted", False)
    assert "temperature" not in body


def test_a_streamed_reply_emits_its_text_and_counts_tokens():
    pieces: list[str] = []
    with ModelServer([Says("The capital of France is Paris.", usage=(20, 9))]) as server:
        reply = server.chat().ask(ASKED, on_text=pieces.append)
    assert "".join(pieces) == reply.text == "The capital of France is Paris."
    assert len(pieces) > 3
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cost) == (20, 9, None)


@pytest.mark.parametrize("streamed", [False, True])
def test_usage_is_unknown_if_the_server_reports_none(streamed: bool):  # noqa: FBT001 - a case
    with ModelServer([Says("Paris.", usage=None), Says("Lyon.")]) as server:
        chat = server.chat(price=TokenPrice(1, 1))
        used = chat.ask(ASKED, on_text=str.strip if streamed else None).usage
        assert (used.input_tokens, used.output_tokens, used.cost) == (None, None, None)
        chat.ask(ASKED)
    assert (chat.total_usage.calls, chat.total_usage.input_tokens, chat.total_usage.cost) == (2, None, None)


@pytest.mark.parametrize("streamed", [False, True])
def test_tool_calls_and_their_results_are_sent_and_received(streamed: bool):  # noqa: FBT001 - a case
    arguments = {"title": "Paris", "question": "Who?"}
    script = [Says("I look.", calls=[("read", arguments), ("read", {}), ("runQuery", '{"sparql": "SEL')]), Says("Ada.")]
    with ModelServer(script) as server:
        chat = server.chat()
        reply = chat.ask(ASKED, tools=[BUILT_IN_TOOLS["read"]], on_text=str.strip if streamed else None)
        assert reply.text == "I look."
        assert [call.name for call in reply.calls] == ["read", "read", "runQuery"]
        assert [call.arguments for call in reply.calls] == [arguments, {}, '{"sparql": "SEL']
        results = [Message("tool", f"found {n}", answers=call.id) for n, call in enumerate(reply.calls)]
        assert chat.ask([*ASKED, Message("assistant", reply.text, reply.calls), *results]).text == "Ada."
    assert server.requests[0].body["tools"][0]["function"]["parameters"] == BUILT_IN_TOOLS["read"].schema
    assistant_message, *result_messages = server.requests[1].body["messages"][2:]
    assert [call["function"]["arguments"] for call in assistant_message["tool_calls"]][1:] == ["{}", '{"sparql": "SEL']
    assert [(one["role"], one["content"], one["tool_call_id"]) for one in result_messages] == [
        ("tool", f"found {n}", call.id) for n, call in enumerate(reply.calls)
    ]


def _stream_of(*choices: dict[str, Any]) -> Sends:
    lines = [f"data: {json.dumps({'id': 'r', 'choices': [choice]})}\n\n" for choice in choices]
    return Sends("".join([*lines, "data: [DONE]\n\n"]).encode(), "text/event-stream")


def test_calls_that_are_objects_and_come_again_at_the_end_are_read_streamed_and_whole():
    call = {"index": 0, "id": "a", "function": {"name": "read", "arguments": {"title": "Paris", "question": "Who?"}}}
    written = {**call, "function": {"name": "read", "arguments": json.dumps(json.dumps({"title": "Rome"}))}}
    message = {"role": "assistant", "content": "I look.", "tool_calls": [call, written]}
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    streamed = _stream_of(
        {"index": 0, "delta": {"content": "I look."}},
        {"index": 0, "delta": {"tool_calls": call}},
        {"index": 0, "delta": {"tool_calls": [{**written, "id": "b"}]}},
        {"index": 0, "message": {**message, "tool_calls": [call]}, "finish_reason": "tool_calls"},
    )
    pieces: list[str] = []
    with ModelServer([Sends(json.dumps(whole).encode(), "application/json"), streamed]) as server:
        replies = [server.chat().ask(ASKED, tools=[BUILT_IN_TOOLS["read"]], on_text=on) for on in (None, pieces.append)]
    for reply in replies:
        assert reply.text == "I look."
        assert [call.arguments for call in reply.calls] == [{"title": "Paris", "question": "Who?"}, {"title": "Rome"}]
        assert len({call.id for call in reply.calls}) == 2
    assert "".join(pieces) == "I look."


def test_a_text_that_comes_again_at_the_end_of_its_stream_is_read_once():
    delta = {"index": 0, "delta": {"content": "Paris"}}
    again = {"index": 0, "delta": {"content": "Paris, France"}, "finish_reason": "stop"}
    pieces: list[str] = []
    with ModelServer([_stream_of(delta, {"index": 0, "delta": {"content": ", France"}}, again)]) as server:
        assert server.chat().ask(ASKED, on_text=pieces.append).text == "Paris, France"
    assert "".join(pieces) == "Paris, France"


@pytest.mark.parametrize("deaf", [False, True])
@pytest.mark.parametrize("piece", [1, 5, 1000])
def test_the_text_ends_before_a_stop_sequence_whether_the_server_knows_it_or_not(
    deaf: bool,  # noqa: FBT001 - a case
    piece: int,
):
    text = "Thought: I look.\nAction: read[x]\nObservation: I made this up.\nThought: so"
    pieces: list[str] = []
    with ModelServer([Says(text, deaf=deaf, piece=piece)] * 2) as server:
        chat = server.chat()
        expected = "Thought: I look.\nAction: read[x]"
        assert chat.ask(ASKED, stop=["\nObservation:", "\nQuestion:"]).text == expected
        reply = chat.ask(ASKED, stop=["\nObservation:", "\nQuestion:"], on_text=pieces.append)
    assert "".join(pieces) == reply.text == expected
    assert server.requests[0].body["stop"] == ["\nObservation:", "\nQuestion:"]


def test_without_stop_sequences_the_whole_text_is_streamed():
    pieces: list[str] = []
    with ModelServer([Says("It ends in \nObser", piece=3)]) as server:
        server.chat().ask(ASKED, stop=["\nObservation:"], on_text=pieces.append)
    assert "".join(pieces) == "It ends in \nObser"


FAILURES: list[tuple[Reply, type[ChatError], str, int]] = [  # each with how often it is asked
    (Fails(403, "no"), ChatAuthenticationError, "refuses the key (403)", 1),
    (Fails(400, "context of 4096 tokens exceeded"), ChatContextTooLong, '(400): "context of 4096 tokens exceeded"', 1),
    (Fails(400, "'temperature' must be 1"), ChatBadRequest, "or set SHOWHOW_MODEL_TEMPERATURE=default.", 1),
    (Fails(404, "no such model"), ChatModelNotFound, "has no model scripted (404); check the model", 1),
    (Fails(402, "Payment required"), ChatQuotaExceeded, 'no credit left (402): "Payment required"; add credit', 1),
    (Fails(429, "no money", code="insufficient_quota"), ChatQuotaExceeded, 'no credit left (429): "no money"', 1),
    (Fails(400, "Your credit balance is too low"), ChatQuotaExceeded, "add credit or raise its limit", 1),
    (Fails(400, "API key not valid. Please pass a valid API key."), ChatAuthenticationError, "refuses the key", 1),
    (Fails(400, "no", code="context_length_exceeded"), ChatContextTooLong, "request is too long for scripted", 1),
    (
        Fails(400, "This model's maximum context length is 8192 tokens, you requested 9000 (8000 in the messages, "
        "1000 in the functions). Please reduce the length of the messages or functions."),
        ChatContextTooLong, "show fewer demonstrations", 1,
    ),
    (Fails(413, "too big"), ChatContextTooLong, "too long for scripted", 1),
    (Fails(429, "Request too large for m: Limit 6000, Requested 7000"), ChatContextTooLong, "too long", 1),
    (Fails(422, "unknown parameter: seed"), ChatBadRequest, 'request (422): "unknown parameter: seed"', 1),
    (Fails(500, "tools param requires --jinja flag"), ChatBadRequest, "requires --jinja", 1),
    (Fails(429, "slow down", {"Retry-After": "900"}), ChatRateLimited, "accepts no requests for another 900 s", 1),
    (Fails(503, "", {"Retry-After": "900"}), ChatServerError, "failed (503); try again", 1),
    (Sends(b"<html>Sign in</html>"), ChatInvalidReply, "responded with text/html instead of a reply", 4),
    (Sends(b'{"choices": ', "application/json"), ChatInvalidReply, "is no reply of a model", 4),
    (Sends(b'{"choices": null}', "application/json"), ChatInvalidReply, "is no reply of a model", 4),
    (Sends(b"[]", "application/json"), ChatInvalidReply, "is no reply of a model", 4),
    (Fails(307, "", {"Location": "http://127.0.0.1:9/"}), ChatInvalidReply, "sends requests elsewhere (307)", 4),
    (Cut(), ChatInterrupted, "broke off", 4),
    (Says(""), ChatEmptyReply, "empty message", 1),
    (Sends(b'{"object": "chat.completion", "choices": []}', "application/json"), ChatEmptyReply, "empty message", 1),
    (Says("", reason="length"), ChatEmptyReply, "used up its tokens", 1),
    (Says("Half an", reason="content_filter"), ChatReplyFiltered, "a filter withheld its reply (content_filter)", 1),
    (Says("", extra={"refusal": "I can't help."}), ChatReplyFiltered, '(stop): "I can\'t help."; ask otherwise', 1),
    (Says("Half", reason="insufficient_system_resource"), ChatInterrupted, "(insufficient_system_resource)", 4),
]  # fmt: skip


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("case", FAILURES, ids=lambda case: f"{case[1].__name__}: {case[2]}")
def test_each_failure_is_one_sentence_and_transient_ones_are_retried(
    case: tuple[Reply, type[ChatError], str, int],
    streamed: bool,  # noqa: FBT001 - a case
    quick_patience: None,
):
    reply, kind, words, requests = case
    with ModelServer(lambda _: reply) as server:
        chat = server.chat(key=KEY)
        with pytest.raises(kind) as failed:
            chat.ask(ASKED, on_text=str.strip if streamed else None)
    assert words in str(failed.value)
    # A cut stream has said words already, so that repeating it would say them twice.
    assert len(server.requests) == (1 if streamed and kind is ChatInterrupted else requests)
    assert "\n" not in str(failed.value)
    assert KEY not in _all_text_of(failed.value)
    assert chat.total_usage.calls == 1
    assert failed.value.usage == chat.total_usage


PROXIED: list[tuple[Reply, type[ChatError], str]] = [
    (
        Fails(400, "This model's maximum context length is 2048 tokens.", code="context_length_exceeded"),
        ChatContextTooLong,
        "maximum context length is 2048 tokens",
    ),
    (Fails(400, "unknown parameter: seed"), ChatBadRequest, "unknown parameter: seed"),
    (
        Fails(429, "You exceeded your current quota, please check your plan and billing details.", code="no money"),
        ChatQuotaExceeded,
        "no credit left",
    ),
    (Fails(429, "Rate limit reached", {"Retry-After": "900"}), ChatRateLimited, "another 900 s"),
    (Fails(500, "out of order"), ChatServerError, "out of order"),
    (Cut(), ChatServerError, "Connection error"),
]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("case", PROXIED, ids=lambda case: case[2])
def test_failures_behind_a_proxy_that_words_them_anew_are_those_of_the_server(
    case: tuple[Reply, type[ChatError], str],
    streamed: bool,  # noqa: FBT001 - a case
    quick_patience: None,
):
    reply, kind, words = case
    with ModelServer(lambda _: pass_on(reply, streamed=streamed)) as server:
        with pytest.raises(kind, match=words):
            server.chat().ask(ASKED, on_text=str.strip if streamed else None)
        assert len(server.requests) <= 3


TRANSIENT = [
    Fails(429, "slow down", {"Retry-After": "0"}),
    Fails(408, "time out", {"Retry-After": "0"}),
    Fails(409, "conflict", {"Retry-After": "0"}),
    Breaks("", {"message": "Please try again in 10ms", "type": "rate_limit_exceeded"}),
]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("fault", TRANSIENT, ids=str)
def test_a_transient_failure_is_retried_more_often_than_four_times(
    fault: Reply,
    streamed: bool,  # noqa: FBT001 - a case
    quick_patience: None,
):
    with ModelServer([fault] * 7 + [Says("Paris.")]) as server:
        reply = server.chat().ask(ASKED, on_text=str.strip if streamed else None)
    assert (reply.text, reply.usage.unreported_calls) == ("Paris.", 0)


REPEATED = [
    lambda _: Fails(500, "out of order"),
    lambda request: Fails(500, f"out of order, see request 7f{request.place}a"),
    lambda _: Fails(503, "starting"),
    lambda _: Fails(529, "Overloaded", {"Retry-After": "0"}),
    lambda _: Fails(502, ""),
    lambda _: Breaks("", {"message": "Overloaded", "type": "overloaded_error"}),
]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("script", REPEATED)
def test_a_server_that_fails_three_times_with_one_sentence_is_not_asked_again(
    script: Callable[[Request], Reply],
    streamed: bool,  # noqa: FBT001 - a case
    quick_patience: None,
):
    with ModelServer(script) as server, pytest.raises(ChatServerError, match="failed"):
        server.chat().ask(ASKED, on_text=str.strip if streamed else None)
    assert len(server.requests) == 3


def test_a_server_that_fails_in_different_ways_is_asked_again(quick_patience: None):
    with ModelServer([*[Fails(503, "starting")] * 2, *[Fails(500, "no memory")] * 2, Says("Paris.")]) as server:
        assert server.chat().ask(ASKED).text == "Paris."


def test_an_error_in_a_stream_after_the_first_words_interrupts_the_reply_and_quotes_the_server():
    with ModelServer([Breaks("The capital", {"message": "Overloaded", "type": "overloaded_error"})]) as server:
        with pytest.raises(ChatServerError, match='failed: "Overloaded"; try again') as failed:
            server.chat().ask(ASKED, on_text=str.strip)
        assert len(server.requests) == 1
    assert "BASE_URL" not in str(failed.value)


def test_a_stream_that_breaks_off_before_its_first_word_is_asked_for_in_one_piece(quick_patience: None):
    pieces: list[str] = []
    with ModelServer([Cut(None), Says("Paris.")]) as server:
        assert server.chat().ask(ASKED, on_text=pieces.append).text == "Paris."
    assert pieces == ["Paris."]
    with ModelServer(make_script("Paris.", context=3)) as server:
        with pytest.raises(ChatContextTooLong, match="maximum context length is 3 tokens"):
            server.chat().ask(ASKED, on_text=pieces.append)
        assert [request.body["stream"] for request in server.requests] == [True, False]


def test_a_stream_that_keeps_breaking_off_is_asked_for_in_both_ways(quick_patience: None):
    with ModelServer([Cut(None), Fails(500), Cut(None), Cut("Half"), Says("Paris.")]) as server:
        assert server.chat().ask(ASKED, on_text=str.strip).text == "Paris."
        assert [request.body["stream"] for request in server.requests] == [True, False, True, False, True]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_reply_cut_off_at_a_limit_says_so(streamed: bool):  # noqa: FBT001 - a case
    for reason in ("length", "max_tokens", "MAX_TOKENS"):
        with ModelServer([Says("Half an", reason=reason)]) as server:
            assert server.chat().ask(ASKED, on_text=str.strip if streamed else None).stopped == "length"


def test_a_stream_without_its_final_event_is_an_error():
    cut = Says("The answer is Par", unfinished=True)
    with ModelServer([cut]) as server, pytest.raises(ChatInterrupted, match="broke off"):
        server.chat().ask(ASKED, on_text=str.strip)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_the_reasoning_beside_text_and_calls_is_kept(field: str, streamed: bool):  # noqa: FBT001 - a case
    said = Says("", calls=[("read", {"title": "Paris"})], extra={field: "I need the page of Paris."})
    text: list[str] = []
    with ModelServer([said, Says("Paris.", extra={field: "Easy."})]) as server:
        chat = server.chat()
        on_text = text.append if streamed else None
        reply = chat.ask(ASKED, tools=[BUILT_IN_TOOLS["read"]], on_text=on_text)
        assert (reply.text, reply.thoughts) == ("", "I need the page of Paris.")
        assert [call.name for call in reply.calls] == ["read"]
        reply = chat.ask(ASKED, on_text=on_text)
        assert (reply.text, reply.thoughts) == ("Paris.", "Easy.")
    assert "".join(text) == ("Paris." if streamed else "")


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_call_that_the_server_left_in_the_text_is_read(streamed: bool):  # noqa: FBT001 - a case
    text = 'I look.\n<tool_call>{"name": "functions.read", "arguments": {"title": "Paris"}}</tool_call>'
    with ModelServer([Says(text)] * 2) as server:
        chat = server.chat()
        reply = chat.ask(ASKED, tools=[BUILT_IN_TOOLS["read"]], on_text=str.strip if streamed else None)
        assert (reply.text, reply.calls) == ("I look.", (ModelToolCall("call_1", "read", {"title": "Paris"}),))
        assert chat.ask(ASKED).calls == ()


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_cached_and_reasoning_tokens_are_counted_and_priced(streamed: bool):  # noqa: FBT001 - a case
    details = {
        "prompt_tokens_details": {"cached_tokens": 600},
        "completion_tokens_details": {"reasoning_tokens": 80},
    }
    with ModelServer([Says("Paris.", usage=(1000, 100), details=details)]) as server:
        chat = server.chat(price=TokenPrice(2.0, 8.0, cached=0.5))
        usage = chat.ask(ASKED, on_text=str.strip if streamed else None).usage
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens, usage.reasoning_tokens) == (
        1000,
        600,
        100,
        80,
    )
    assert usage.cost == pytest.approx((400 * 2.0 + 600 * 0.5 + 100 * 8.0) / 1e6)
    assert usage.max_cost == usage.cost


@pytest.mark.parametrize("count", ["²", "9" * 5_000, 10**30, -1, "many", [1], 1.5], ids=lambda count: str(count)[:9])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_odd_counts_of_tokens_are_no_counts(count: object, streamed: bool):  # noqa: FBT001 - a case
    details = {"prompt_tokens": count, "prompt_tokens_details": {"cached_tokens": count}}
    with ModelServer([Says("Paris.", usage=(7, 2), details=details)]) as server:
        refusal = ""
        try:
            reply = server.chat().ask(ASKED, on_text=str.strip if streamed else None)
        except ChatInvalidReply as error:
            refusal = str(error)
        else:
            assert (reply.text, reply.usage.cached_tokens) == ("Paris.", 0)
            assert reply.usage.input_tokens in (None, 1)
    assert "\n" not in refusal


def test_a_request_of_unknown_usage_has_an_upper_bound():
    with ModelServer([Says("Paris.", usage=None), Hangs()]) as server:
        chat = server.chat(price=TokenPrice(1000.0, 1000.0))
        used = chat.ask(ASKED).usage
        assert (used.cost, used.unreported_calls) == (None, 1)
        assert 0 < (used.max_tokens or 0) < 100
        chat.seconds = 0.5
        with pytest.raises(ChatTimeout) as failed:
            chat.ask(ASKED)
    assert failed.value.usage is not None
    assert 30_000 < (failed.value.usage.max_tokens or 0) < 40_000
    assert chat.total_usage.max_cost == pytest.approx((used.max_cost or 0) + (failed.value.usage.max_cost or 0))
    assert (chat.total_usage.cost, chat.total_usage.unreported_calls) == (None, 2)


def test_a_failed_attempt_counts_towards_the_bound_of_the_request(quick_patience: None):
    with ModelServer([Cut(), Says("Paris.", usage=(10, 5))]) as server:
        usage = server.chat(price=TokenPrice(1.0, 1.0)).ask(ASKED).usage
    assert (usage.input_tokens, usage.output_tokens, usage.unreported_calls) == (10, 5, 1)
    assert usage.cost == pytest.approx(15e-6)
    assert (usage.max_cost or 0) > 0.03


def test_a_reply_limit_is_sent_in_the_way_of_compatible_servers():
    with ModelServer([Says("Hi")]) as server:
        build_chat_client(ModelProfile("scripted", server.url, reply_limit=50)).ask(ASKED)
    assert server.requests[0].body["max_tokens"] == 50
    assert "max_completion_tokens" not in server.requests[0].body


def _all_text_of(error: BaseException) -> str:
    text = ""
    seen: BaseException | None = error
    while seen is not None:
        text += repr(seen) + repr(vars(seen))
        seen = seen.__cause__ or seen.__context__
    return text


@pytest.fixture
def quick_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short waits between attempts."""
    monkeypatch.setattr("showhow.llm.client._INITIAL_BACKOFF_SECONDS", 0.001)


def test_the_error_of_a_wrong_key_does_not_hold_the_key():
    with ModelServer([Says("Hi")] * 2, key="the-right-one") as server:
        with pytest.raises(ChatAuthenticationError, match="refuses the key") as failed:
            server.chat(key=KEY).ask(ASKED)
        assert KEY not in _all_text_of(failed.value)
        assert server.chat(key="the-right-one").ask(ASKED).text == "Hi"


def test_an_error_that_repeats_headers_does_not_hold_the_key():
    with ModelServer(lambda request: Fails(400, f"bad header {request.headers['authorization']}")) as server:
        with pytest.raises(ChatBadRequest, match="bad header Bearer") as failed:
            server.chat(key=KEY).ask(ASKED)
        assert KEY not in _all_text_of(failed.value)
    assert KEY not in repr(ModelProfile("scripted", server.url, KEY))


def test_a_local_server_needs_no_key():
    with ModelServer([Says("Hi")]) as server:
        assert server.chat("llama3:8b").ask(ASKED).text == "Hi"
    assert server.requests[0].body["model"] == "llama3:8b"
    assert server.requests[0].headers["authorization"] == "Bearer none"


def test_a_rate_limited_request_is_retried_after_the_time_of_retry_after():
    with ModelServer([Fails(429, headers={"Retry-After": "1"}), Says("Now.")]) as server:
        reply = server.chat().ask(ASKED)
    assert reply.text == "Now."
    assert reply.usage.calls == 1
    assert reply.usage.seconds >= 1


@pytest.mark.parametrize("reply", [Hangs(), Trickles(), Says("slow", latency=30), Says("a" * 999, piece=1, pause=0.1)])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_request_ends_at_its_deadline(reply: Reply, streamed: bool):  # noqa: FBT001 - a case
    if isinstance(reply, Says) and reply.piece == 1 and not streamed:
        reply = Trickles(0.2)
    with ModelServer(lambda _: reply) as server:
        chat = server.chat()
        chat.seconds = 0.6
        chat_started = time.monotonic()
        with pytest.raises(ChatTimeout, match="did not finish its reply in time") as failed:
            chat.ask(ASKED, on_text=str.strip if streamed else None)
        assert time.monotonic() - chat_started < 10
    assert failed.value.usage is not None
    assert failed.value.usage.input_tokens is None


def test_an_attempt_that_failures_of_the_server_left_little_time_fails_as_they_did(quick_patience: None):
    with ModelServer([Fails(503, "restarting"), Hangs()]) as server:
        chat = server.chat()
        chat.seconds = 1.5
        with pytest.raises(ChatServerError, match="restarting") as failed:
            chat.ask(ASKED)
    assert len(server.requests) == 2
    # The second attempt may have spent tokens.
    assert failed.value.unreported_attempts == 1


def test_an_address_without_a_server_is_unreachable(quick_patience: None):
    server = ModelServer([])
    url = server.url
    server.close()
    with pytest.raises(ChatUnreachable, match=r"127\.0\.0\.1:\d+ does not answer; check that it runs") as failed:
        build_chat_client(ModelProfile("scripted", url, KEY)).ask(ASKED)
    assert failed.value.usage is not None
    assert failed.value.usage.input_tokens == 0


def test_a_reply_that_exceeds_the_size_limit_fails():
    endless = Sends(b" " * 17_000_000, "application/json")
    with ModelServer(lambda _: endless) as server, pytest.raises(ChatServerError, match="more than 16 MB"):
        server.chat().ask(ASKED)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mistralai:mistral-9", "needs a key: set MISTRAL_API_KEY"),
        ("nosuch", "cannot be set up"),
        ("openai:gpt-9", "needs a key: set OPENAI_API_KEY"),
    ],
)
def test_the_error_of_a_model_that_does_not_load_says_what_to_do(
    name: str, words: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    chat = build_chat_client(ModelProfile(name))
    with pytest.raises(ChatUnavailable, match=words):
        chat.ask(ASKED)
    assert chat.total_usage == Usage()


def test_a_key_in_the_environment_is_in_no_error(monkeypatch: pytest.MonkeyPatch, quick_patience: None):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ModelServer([Fails(401, f"Incorrect API key provided: {KEY}."), Fails(400, f"{KEY}?")]) as server:
        chat = build_chat_client(ModelProfile("openai:scripted", server.url, KEY))
        for _ in range(2):
            with pytest.raises(ChatError) as failed:
                chat.ask(ASKED)
            assert KEY not in _all_text_of(failed.value)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_an_exception_of_the_listener_ends_the_reply():
    class Enough(Exception):
        pass

    def listen(words: str) -> None:
        raise Enough(words)

    with ModelServer([Says("word " * 200, pause=0.05)]) as server, pytest.raises(Enough):
        server.chat().ask(ASKED, on_text=listen)


def test_concurrent_requests_get_their_own_replies():
    def echo(request: Request) -> Reply:
        return Says(request.prompt, latency=0.2, usage=(1, 2))

    with ModelServer(echo) as server:
        chat = server.chat()
        chat.ask([Message("user", "warm")])
        started = time.monotonic()
        with ThreadPoolExecutor(32) as pool:
            replies = list(pool.map(lambda n: chat.ask([Message("user", f"I am {n}.")]).text, range(64)))
        took = time.monotonic() - started
    assert replies == [f"I am {n}." for n in range(64)]
    assert took < 64 * 0.2 / 4
    assert (chat.total_usage.calls, chat.total_usage.input_tokens, chat.total_usage.output_tokens) == (65, 65, 130)


def test_a_meter_counts_its_own_calls_only():
    with ModelServer([Says("a"), Says("b")]) as server:
        chat = server.chat()
        one, other = chat.with_new_meter(), chat.with_new_meter()
        one.ask(ASKED)
        assert (one.total_usage.calls, other.total_usage.calls, chat.total_usage.calls) == (1, 0, 0)
        other.ask(ASKED)
        assert (one.total_usage.input_tokens, other.total_usage.calls) == (100, 1)


def test_concurrent_first_requests_load_the_model_once():
    with ModelServer(lambda _: Says("hi", latency=0.1)) as server:
        chat = server.chat()
        threads = [threading.Thread(target=lambda: chat.with_new_meter().ask(ASKED)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(server.requests) == 8


def test_a_model_of_any_provider_is_asked_through_langchain():
    calls = [{"name": "read", "args": {"title": "Paris"}, "id": "7"}]
    message = AIMessage("Paris.\nObservation: no", tool_calls=calls, response_metadata={"stop_reason": "tool_use"})
    model = LangChainModel(FakeMessagesListChatModel(responses=[message]), ModelEndpoint("fake", "fake"))
    chat = ChatClient(ModelProfile("fake", price=TokenPrice(1.0, 1.0)), lambda: model)
    reply = chat.ask(ASKED, stop=["\nObservation:"])
    assert reply.text == "Paris."
    assert reply.calls == (ModelToolCall("7", "read", {"title": "Paris"}),)
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cost) == (None, None, None)
    with pytest.raises(ChatError, match="no reply of a model"):
        chat.ask(ASKED, tools=[BUILT_IN_TOOLS["read"]])  # this one cannot be given tools


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_programming_error_before_the_request_is_not_a_model_error(streamed: bool):  # noqa: FBT001 - a case
    class BrokenTool:
        name, description = "broken", "Breaks."

        @property
        def schema(self) -> dict[str, object]:
            return {}["missing"]

    with ModelServer([Says("Hi")]) as server:
        with pytest.raises(KeyError, match="missing"):
            server.chat().ask(ASKED, tools=[BrokenTool()], on_text=str.strip if streamed else None)
        with pytest.raises(TypeError):
            server.chat().ask([Message("assistant", "", None)], on_text=str.strip if streamed else None)  # type: ignore[arg-type]
        assert server.requests == []


def test_an_error_of_the_listener_reaches_the_caller():
    def listen(text: str) -> None:
        raise LookupError(text)

    with ModelServer([Says("Hi")]) as server, pytest.raises(LookupError, match="Hi"):
        server.chat().ask(ASKED, on_text=listen)
