"""OpenAI, vLLM, Anthropic, Gemini and Ollama through their packages: what each fault comes to, whole and streamed."""

import gc
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from anthropic.types import Message as AnthropicMessage
from anthropic.types import RawMessageStreamEvent
from google.genai.types import GenerateContentResponse
from ollama import ChatResponse as OllamaResponse
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import BaseModel, TypeAdapter

from showhow.llm.client import build_chat_client
from showhow.llm.errors import (
    ChatAuthenticationError,
    ChatBadRequest,
    ChatContextTooLong,
    ChatError,
    ChatInterrupted,
    ChatModelNotFound,
    ChatQuotaExceeded,
    ChatRateLimited,
    ChatReplyFiltered,
    ChatServerError,
)
from showhow.llm.limitations import LOGPROBS_UNSUPPORTED
from showhow.llm.structured_output import mean_field_logprobs, request_json_reply
from showhow.llm.types import Message, ModelProfile, ModelToolCall
from showhow.llm.usage import TokenPrice
from showhow.tools.registry import BUILT_IN_TOOLS
from tests.servers.model import Breaks, Cut, Fails, Reply, Says
from tests.servers.provider_models import (
    CALL_NOTATIONS,
    AnthropicFormat,
    Event,
    GeminiFormat,
    OllamaFormat,
    OpenAIFormat,
    ProviderServer,
    VllmFormat,
    WireFormat,
)

# Anthropic's and Ollama's clients leave connections to the garbage collector after an error.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

ASKED = [Message("system", "Be brief."), Message("user", "Which city?")]
FORMATS: list[WireFormat] = [OpenAIFormat(), VllmFormat(), AnthropicFormat(), GeminiFormat(), OllamaFormat()]
PARIS = {"title": "Paris", "question": "Where is it, and who was born there?"}

streamed = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
providers = pytest.mark.parametrize("wire", FORMATS, ids=lambda wire: type(wire).__name__)


@pytest.fixture(autouse=True, scope="module")
def closed_connections() -> Iterator[None]:
    """Collects the connections here, so that no later test is blamed for them."""
    yield
    gc.collect()


@pytest.fixture(autouse=True)
def quick_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short waits between attempts, and no limits of an earlier test's server, whose port may be used again."""
    monkeypatch.setattr("showhow.llm.client._INITIAL_BACKOFF_SECONDS", 0.001)
    monkeypatch.setattr("showhow.llm.rate_limiter._LIMITERS", {})
    monkeypatch.setattr("showhow.llm.rate_limiter._STORES", {})


@streamed
@providers
def test_text_usage_and_finish_reason(wire: WireFormat, streamed: bool) -> None:  # noqa: FBT001 - a case
    pieces: list[str] = []
    with ProviderServer(wire, [Says("The capital is Zürich.", usage=(20, 9), piece=3)]) as server:
        reply = server.chat(price=TokenPrice(1.0, 1.0)).ask(ASKED, on_text=pieces.append if streamed else None)
    assert (reply.text, reply.stopped, reply.calls) == ("The capital is Zürich.", "stop", ())
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (20, 9)
    assert "".join(pieces) == (reply.text if streamed else "")


@streamed
@providers
def test_parallel_calls_with_thoughts(wire: WireFormat, streamed: bool) -> None:  # noqa: FBT001 - a case
    said = Says("", calls=[("read", PARIS), ("read", {"title": "Lyon"})], extra={"reasoning_content": "I need both."})
    with ProviderServer(wire, [said, Says("Paris.")]) as server:
        chat = server.chat()
        on_text = str.strip if streamed else None
        reply = chat.ask(ASKED, tools=[BUILT_IN_TOOLS["read"]], on_text=on_text)
        assert [(call.name, call.arguments) for call in reply.calls] == [("read", PARIS), ("read", {"title": "Lyon"})]
        assert reply.thoughts == "I need both."
        results = [Message("tool", f"found {call.arguments}", answers=call.id) for call in reply.calls]
        history = [
            *ASKED,
            Message("assistant", "", tuple(ModelToolCall(c.id, c.name, c.arguments) for c in reply.calls)),
        ]
        assert chat.ask([*history, *results], tools=[BUILT_IN_TOOLS["read"]], on_text=on_text).text == "Paris."


@streamed
@pytest.mark.parametrize(
    ("wire", "reason"),
    [
        (OpenAIFormat(), "length"),
        (VllmFormat(), "length"),
        (AnthropicFormat(), "max_tokens"),
        (AnthropicFormat(), "model_context_window_exceeded"),
        (GeminiFormat(), "MAX_TOKENS"),
        (OllamaFormat(), "length"),
    ],
)
def test_a_cut_reply_is_known_as_one(wire: WireFormat, reason: str, streamed: bool) -> None:  # noqa: FBT001 - a case
    with ProviderServer(wire, [Says("Half an", reason=reason)]) as server:
        reply = server.chat().ask(ASKED, on_text=str.strip if streamed else None)
    assert (reply.text, reply.stopped) == ("Half an", "length")


@pytest.mark.parametrize(
    "fault", [Cut("The answer is Par"), Says("The answer is Par", unfinished=True)], ids=["closed", "no final event"]
)
@providers
def test_a_stream_that_ends_early_is_an_error(wire: WireFormat, fault: Reply) -> None:
    with ProviderServer(wire, [fault]) as server, pytest.raises(ChatInterrupted, match="broke off"):
        server.chat().ask(ASKED, on_text=str.strip)


OVERLOADED = {"type": "overloaded_error", "message": "Overloaded", "code": 503, "status": "UNAVAILABLE"}
QUOTA = "You exceeded your current quota, please check your plan and billing details."
WINDOW = (
    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, "
    "1000 in the completion). Please reduce the length of the messages or completion."
)
NO_PARSER = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
RESPONSES_ONLY = "This model is only supported in v1/responses and not in v1/chat/completions."
FAULTS: list[tuple[WireFormat, Fails | Says, type[ChatError], str]] = [
    (
        OpenAIFormat(),
        Fails(401, "Incorrect API key provided: planted-key-7f31.", code="invalid_api_key"),
        ChatAuthenticationError,
        "refuses the key",
    ),
    (OpenAIFormat(), Fails(429, QUOTA, code="insufficient_quota"), ChatQuotaExceeded, "no credit left"),
    (OpenAIFormat(), Fails(400, WINDOW, code="context_length_exceeded"), ChatContextTooLong, "4096"),
    (
        OpenAIFormat(),
        Fails(404, "The model `scripted` does not exist", code="model_not_found"),
        ChatModelNotFound,
        "no",
    ),
    (OpenAIFormat(), Fails(404, RESPONSES_ONLY), ChatModelNotFound, "responses API"),
    (
        OpenAIFormat(),
        Fails(400, "Unrecognized request argument supplied: seed", code="unknown_parameter"),
        ChatBadRequest,
        "Unrecognized request argument",
    ),
    (
        OpenAIFormat(),
        Fails(429, "Rate limit reached for requests. Please try again in 15m0s.", code="rate_limit_exceeded"),
        ChatRateLimited,
        "another 900 s",
    ),
    (OpenAIFormat(), Says("", extra={"refusal": "I can't help."}), ChatReplyFiltered, "I can't help."),
    (OpenAIFormat(), Says("Half an", reason="content_filter"), ChatReplyFiltered, "content_filter"),
    (VllmFormat(), Fails(401, "Unauthorized"), ChatAuthenticationError, "refuses the key"),
    (VllmFormat(), Fails(400, WINDOW), ChatContextTooLong, "4096"),
    (VllmFormat(), Fails(404, "The model `scripted` does not exist."), ChatModelNotFound, "has no model"),
    (
        VllmFormat(),
        Fails(400, "[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs are not permitted'}]"),
        ChatBadRequest,
        "Extra inputs are not permitted",
    ),
    (VllmFormat(), Fails(400, NO_PARSER), ChatBadRequest, "--tool-call-parser"),
    (VllmFormat(), Fails(429, "Too Many Requests", {"Retry-After": "900"}), ChatRateLimited, "another 900 s"),
    (AnthropicFormat(), Fails(401, "invalid x-api-key", code="authentication_error"), ChatAuthenticationError, "key"),
    (
        AnthropicFormat(),
        Fails(400, "Your credit balance is too low to access the Anthropic API."),
        ChatQuotaExceeded,
        "credit",
    ),
    (AnthropicFormat(), Fails(400, "prompt is too long: 210000 tokens > 200000 maximum"), ChatContextTooLong, "210000"),
    (AnthropicFormat(), Fails(404, "model: scripted", code="not_found_error"), ChatModelNotFound, "has no model"),
    (AnthropicFormat(), Fails(400, "temperature: Extra inputs are not permitted"), ChatBadRequest, "Extra inputs"),
    (
        AnthropicFormat(),
        Fails(429, "slow down", {"retry-after": "900"}, "rate_limit_error"),
        ChatRateLimited,
        "another 900 s",
    ),
    (AnthropicFormat(), Says("No", reason="refusal"), ChatReplyFiltered, "refused to reply"),
    (
        GeminiFormat(),
        Fails(400, "API key not valid. Please pass a valid API key."),
        ChatAuthenticationError,
        "refuses the key",
    ),
    (
        GeminiFormat(),
        Fails(400, "The input token count (1200000) exceeds the maximum of tokens allowed."),
        ChatContextTooLong,
        "1200000",
    ),
    (
        GeminiFormat(),
        Fails(404, "models/scripted is not found for API version v1beta", code="NOT_FOUND"),
        ChatModelNotFound,
        "no model",
    ),
    (GeminiFormat(), Fails(400, 'Invalid JSON payload received. Unknown name "seed"'), ChatBadRequest, "Unknown name"),
    (GeminiFormat(), Fails(429, QUOTA, {"Retry-After": "900"}, "RESOURCE_EXHAUSTED"), ChatRateLimited, "another 900 s"),
    (GeminiFormat(), Fails(429, QUOTA, {}, "RESOURCE_EXHAUSTED"), ChatQuotaExceeded, "billing"),
    (GeminiFormat(), Says("No", reason="SAFETY"), ChatReplyFiltered, "SAFETY"),
    (GeminiFormat(), Says("", reason="PROHIBITED_CONTENT"), ChatReplyFiltered, "PROHIBITED_CONTENT"),
    (OllamaFormat(), Fails(404, "model 'scripted' not found"), ChatModelNotFound, "has no model"),
    (OllamaFormat(), Fails(400, "scripted does not support tools"), ChatBadRequest, "does not support tools"),
    (OllamaFormat(), Fails(400, "input length exceeds the context length"), ChatContextTooLong, "exceeds the context"),
]


@streamed
@pytest.mark.parametrize("case", FAULTS, ids=lambda case: f"{type(case[0]).__name__}: {case[2].__name__}")
def test_a_permanent_fault_is_one_sentence_and_not_retried(
    case: tuple[WireFormat, Fails | Says, type[ChatError], str],
    streamed: bool,  # noqa: FBT001 - a case
) -> None:
    wire, fault, kind, words = case
    with ProviderServer(wire, [fault] * 3) as server:
        with pytest.raises(kind) as failed:
            server.chat().ask(ASKED, on_text=str.strip if streamed else None)
        assert len(server.requests) == 1
    assert words in str(failed.value)
    assert "\n" not in str(failed.value)
    assert "planted-key" not in repr(vars(failed.value)) + str(failed.value)


@streamed
@pytest.mark.parametrize(
    "fault",
    [
        Fails(429, "slow down. Please retry in 0.01s", code="rate_limit_error"),
        Fails(500, "oops", code="api_error"),
        Fails(529, "Overloaded", code="overloaded_error"),
        Fails(503, "The model is overloaded.", code="UNAVAILABLE"),
    ],
    ids=lambda fault: str(fault.status),
)
@providers
def test_a_transient_fault_is_retried(wire: WireFormat, fault: Reply, streamed: bool) -> None:  # noqa: FBT001 - a case
    with ProviderServer(wire, [*[fault] * 2, Says("Paris.")]) as server:
        assert server.chat().ask(ASKED, on_text=str.strip if streamed else None).text == "Paris."


@providers
def test_an_overloaded_server_in_mid_stream_is_asked_again_unless_words_were_shown(wire: WireFormat) -> None:
    with ProviderServer(wire, [Breaks("", OVERLOADED), Says("Paris.")]) as server:
        assert server.chat().ask(ASKED, on_text=str.strip).text == "Paris."
    with ProviderServer(wire, [Breaks("The answer", OVERLOADED), Says("Paris.")]) as server:
        with pytest.raises(ChatServerError, match="Overloaded"):
            server.chat().ask(ASKED, on_text=str.strip)
        assert len(server.requests) == 1


PARALLEL = Says("I look.", calls=[("read", PARIS), ("read", {"title": "Lyon", "question": "Since when?"})], piece=5)


@streamed
@pytest.mark.parametrize("piece", [1, 4, 1000])
@pytest.mark.parametrize("notation", CALL_NOTATIONS)
def test_calls_that_vllm_left_in_the_text_are_read_and_never_shown(
    notation: str,
    piece: int,
    streamed: bool,  # noqa: FBT001 - a case
) -> None:
    said = replace(PARALLEL, piece=piece, text="" if notation == "harmony" else PARALLEL.text)
    shown: list[str] = []
    with ProviderServer(VllmFormat(notation), [said]) as server:
        reply = server.chat().ask(ASKED, tools=[BUILT_IN_TOOLS["read"]], on_text=shown.append if streamed else None)
    assert [(call.name, call.arguments) for call in reply.calls] == list(PARALLEL.calls)
    assert reply.text == said.text
    assert "".join(shown).strip() == (said.text if streamed else "")


@streamed
def test_a_call_in_the_text_that_was_cut_off_is_no_call(streamed: bool) -> None:  # noqa: FBT001 - a case
    text = '<tool_call>\n{"name": "read", "arguments": {"title": "Par'
    shown: list[str] = []
    with ProviderServer(VllmFormat("hermes"), [Says(text, reason="length")]) as server:
        reply = server.chat().ask(ASKED, tools=[BUILT_IN_TOOLS["read"]], on_text=shown.append if streamed else None)
    assert (reply.stopped, reply.calls, shown) == ("length", (), [])


@pytest.mark.parametrize("reason", ["abort", "error"])
@pytest.mark.parametrize("wire", [VllmFormat(), VllmFormat("hermes")], ids=["parser", "no parser"])
def test_a_reply_that_vllm_aborted_is_asked_for_again(wire: WireFormat, reason: str) -> None:
    with ProviderServer(wire, [Says("Half an", reason=reason), Says("Paris.")]) as server:
        assert server.chat().ask(ASKED).text == "Paris."


@pytest.mark.parametrize("wire", [OpenAIFormat(), VllmFormat()], ids=["OpenAI", "vLLM"])
def test_usage_of_a_stream_is_asked_for(wire: WireFormat) -> None:
    with ProviderServer(wire, [Says("Paris.")]) as server:
        server.chat().ask(ASKED, on_text=str.strip)
        assert server.requests[0]["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("name", ["openai:gpt-5.2-pro", "openai:gpt-5-codex", "openai:scripted"])
def test_no_model_of_openai_is_asked_through_the_responses_api(name: str) -> None:
    with ProviderServer(OpenAIFormat(), [Says("Paris.")]) as server:
        assert build_chat_client(ModelProfile(name, server.url, "planted-key-7f31")).ask(ASKED).text == "Paris."


def _openai_types(event: Event, *, is_whole: bool) -> None:
    if event != {"done": True}:
        (ChatCompletion if is_whole else ChatCompletionChunk).model_validate(event)


def _anthropic_types(event: Event, *, is_whole: bool) -> None:
    (TypeAdapter(AnthropicMessage) if is_whole else TypeAdapter(RawMessageStreamEvent)).validate_python(event)


def _gemini_types(event: Event, *, is_whole: bool) -> None:
    GenerateContentResponse.model_validate(event)


def _ollama_types(event: Event, *, is_whole: bool) -> None:
    OllamaResponse.model_validate(event)


CHECKS = [_openai_types, _openai_types, _anthropic_types, _gemini_types, _ollama_types]


@pytest.mark.parametrize(
    ("wire", "check"), list(zip(FORMATS, CHECKS, strict=True)), ids=[type(wire).__name__ for wire in FORMATS]
)
def test_what_the_servers_send_are_values_of_the_providers_own_types(
    wire: WireFormat, check: Callable[..., None]
) -> None:
    for said in (Says("Zürich"), PARALLEL, Says("", calls=[("read", PARIS)], extra={"reasoning_content": "I look."})):
        check(wire.whole(said), is_whole=True)
        for event in wire.events(said):
            check(event, is_whole=False)


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("wire", "path"),
    [
        (OpenAIFormat(), ("response_format", "json_schema", "schema")),
        (VllmFormat(), ("response_format", "json_schema", "schema")),
        (AnthropicFormat(), ("output_config", "format", "schema")),
        (GeminiFormat(), ("generationConfig", "responseJsonSchema")),
        (OllamaFormat(), ("format",)),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, tuple) else "",
)
@streamed
def test_a_schema_is_sent_through_the_providers_own_feature(
    wire: WireFormat,
    path: tuple[str, ...],
    streamed: bool,  # noqa: FBT001 - a case
) -> None:
    with ProviderServer(wire, [Says('{"a": "b"}'), Says("no JSON"), Says("Paris.")]) as server:
        chat = server.chat()
        for text in ('{"a": "b"}', "no JSON"):
            assert chat.ask(ASKED, reply_schema=SCHEMA, on_text=str.strip if streamed else None).text == text
        sent: Any = server.requests[0]
        for name in path:
            sent = sent[name]
        assert sent == SCHEMA
        assert chat.ask(ASKED).text == "Paris."
        assert path[0] not in server.requests[2] or path[1] not in server.requests[2][path[0]]


@streamed
@pytest.mark.parametrize("by_lifetime", [False, True], ids=["in all", "by lifetime"])
def test_anthropics_writes_and_reads_of_its_cache_are_counted_and_priced(
    streamed: bool,  # noqa: FBT001 - a case
    by_lifetime: bool,  # noqa: FBT001 - a case
) -> None:
    details: dict[str, Any] = {"cache_read_input_tokens": 600, "cache_creation_input_tokens": 100}
    if by_lifetime:
        details["cache_creation"] = {"ephemeral_5m_input_tokens": 70, "ephemeral_1h_input_tokens": 30}
    with ProviderServer(AnthropicFormat(), [Says("Paris.", usage=(300, 10), details=details)]) as server:
        chat = server.chat(price=TokenPrice(3.0, 15.0, cached=0.3, cache_write=3.75))
        usage = chat.ask(ASKED, on_text=str.strip if streamed else None).usage
    assert (usage.input_tokens, usage.cached_tokens, usage.cache_written_tokens) == (1000, 600, 100)
    assert usage.cost == pytest.approx((300 * 3 + 600 * 0.3 + 100 * 3.75 + 10 * 15) / 1e6)


def _sent_temperature(body: Event) -> object:
    holder = body.get("generationConfig") or body.get("options") or body
    return holder.get("temperature")


@providers
@streamed
def test_the_temperature_of_a_request_replaces_that_of_the_profile_for_this_request_only(
    wire: WireFormat,
    streamed: bool,  # noqa: FBT001 - a case
) -> None:
    on_text = str.strip if streamed else None
    with ProviderServer(wire, [Says("Paris.")] * 3) as server:
        chat = build_chat_client(replace(server.chat().profile, temperature=0.25))
        chat.ask(ASKED, on_text=on_text)
        chat.ask(ASKED, on_text=on_text, tools=[BUILT_IN_TOOLS["read"]], temperature=0.75)
        chat.ask(ASKED, on_text=on_text)
        assert [_sent_temperature(body) for body in server.requests] == [0.25, 0.75, 0.25]


class CityReply(BaseModel):
    city: str


@pytest.mark.parametrize("wire", [AnthropicFormat(), GeminiFormat(), OllamaFormat()], ids=lambda wire: wire.model)
def test_only_ollama_gives_log_probabilities_beside_openai_and_others_are_known_not_to(wire: WireFormat):
    scored = (('{"city": ', -9.0), ('"Pa', -1.0), ('ris"', -2.0), ("}", -9.0))
    says = Says("".join(token for token, _ in scored), logprobs=scored)
    with ProviderServer(wire, [says]) as server:
        chat = server.chat()
        reply = request_json_reply(chat, ASKED, CityReply, logprobs=True)
    if isinstance(wire, OllamaFormat):
        assert server.requests[0]["logprobs"] is True
        assert mean_field_logprobs(reply, "city") == (-1.5,)
    else:
        assert reply.logprobs is None
        assert chat.known_limitations == {LOGPROBS_UNSUPPORTED}
