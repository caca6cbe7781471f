"""LangChain's chat models as ChatModel; imported with the first request, since LangChain takes a second to import."""

import gc
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import httpx
import httpx2
import openai
from langchain_core.exceptions import LangChainException
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import Runnable
from pydantic import SecretStr

from showhow.guard.proxy import choose_proxy
from showhow.guard.redaction import redactor_of
from showhow.llm.errors import ChatBadRequest, ChatError, ChatInterrupted, ChatReplyFiltered, ChatUnavailable
from showhow.llm.openai_compatible import (
    CALL_PIECES,
    HEADER_LISTENER,
    BackgroundCall,
    CompatibleChatOpenAI,
    StopSequenceFilter,
    align_logprobs,
    truncate_at_stop,
)
from showhow.llm.provider_errors import ModelEndpoint, to_chat_error
from showhow.llm.provider_models import build_model
from showhow.llm.providers import check_address, find_provider
from showhow.llm.streamed_calls import assemble_calls
from showhow.llm.text_tool_calls import TextCallFilter, match_tool_name, parse_text_reply
from showhow.llm.types import (
    ANY_OBJECT,
    ChatReply,
    ChatRequest,
    FinishReason,
    Message,
    ModelProfile,
    ModelToolCall,
    ToolSpec,
    parse_finish_reason,
)
from showhow.llm.usage import Usage

ResultT = TypeVar("ResultT")


# LangChain's errors for what servers report, and built-in errors for responses that are not a reply. They are caught
# only around calls of providers' packages.
PROVIDER_ERRORS = (
    ChatError,
    LangChainException,
    openai.OpenAIError,
    httpx.HTTPError,
    httpx2.HTTPError,
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RuntimeError,
)
CACHE_MARKING_PROVIDER = "anthropic:"
"""The provider that caches prompts only up to marks; others cache every common prefix, or nothing."""
_CACHE_MARK = {"type": "ephemeral"}
_MAX_REFUSAL_CHARACTERS = 240
_THOUGHT_BLOCKS = ("thinking", "reasoning", "reasoning_content")
_FINISH_REASON_KEYS = ("finish_reason", "stop_reason", "done_reason", "stopReason")


_OTHER_PROVIDER_ERRORS = (
    ("anthropic", "AnthropicError"),
    ("google.genai.errors", "APIError"),
    ("ollama", "ResponseError"),
    ("ollama", "RequestError"),
)
"""The modules of optional packages and their errors, which have no base class in common."""


def _provider_errors() -> tuple[type[Exception], ...]:
    """PROVIDER_ERRORS and those of the optional packages that are loaded."""
    modules = ((sys.modules.get(module), name) for module, name in _OTHER_PROVIDER_ERRORS)
    return (*PROVIDER_ERRORS, *(getattr(module, name) for module, name in modules if module is not None))


class LangChainModel:
    """A chat model of LangChain."""

    def __init__(self, model: BaseChatModel, endpoint: ModelEndpoint) -> None:
        self._model = model
        self._endpoint = endpoint

    def reply(self, request: ChatRequest, seconds: float) -> ChatReply:
        """Send the request once and return the reply within `seconds`; ChatError if there is none."""
        call_filter = TextCallFilter(request.on_text or _discard_text, [tool.name for tool in request.tools])
        stop_filter = StopSequenceFilter(call_filter.feed, request.stop)
        call: BackgroundCall[AIMessage] = BackgroundCall(lambda call: self._send(request, call))
        address = self._endpoint.address
        timeout = f"{address} did not finish its reply in time; ask for less, or allow more seconds in its profile."
        try:
            message = call.result(seconds, stop_filter.feed, timeout)
            reply = to_chat_reply(message, request, self._endpoint)
        except ChatError as error:
            error.retryable = error.retryable and not call_filter.has_emitted
            raise
        if request.on_text is not None:
            call_filter.finish(reply.text)
        return reply

    def _send(self, request: ChatRequest, call: BackgroundCall[AIMessage]) -> AIMessage:
        HEADER_LISTENER.set(request.on_headers)
        messages = [to_langchain_message(message) for message in request.messages]
        tools = [tool_definition(tool) for tool in request.tools]
        if self._endpoint.model.startswith(CACHE_MARKING_PROVIDER):
            messages = list(map(_to_cacheable_message, messages, request.messages))
            tools = _mark_last_tool(request.tools)
        options: dict[str, Any] = {"stop": list(request.stop)} if request.stop else {}
        options |= _schema_options(request.reply_schema, self._model)
        if request.leaves_out_empty_text and isinstance(self._model, CompatibleChatOpenAI):
            options["leave_out_empty_content"] = True
        if request.refused_fields and isinstance(self._model, CompatibleChatOpenAI):
            options["refused_fields"] = request.refused_fields
        base = _with_temperature(self._model, request.temperature, self._endpoint.model)
        base = _with_logprobs(base, self._endpoint.model) if request.logprobs else base
        model: Runnable[Any, Any] = base
        if tools:
            model = self._call_provider(lambda: base.bind_tools(tools))
        if request.on_text is None:
            message = self._call_provider(lambda: model.invoke(messages, **options))
        else:
            chunks = self._call_provider(lambda: model.stream(messages, **options))
            message = self._collect(chunks, call)
        # Some servers give no reason of the end. A reply that was not streamed is whole, and so are calls before usage.
        is_ended = isinstance(message, AIMessage) and (
            request.on_text is None
            or (message.usage_metadata and CALL_PIECES in message.additional_kwargs)
            or _finish_reason(message)
        )
        if not isinstance(message, AIMessage) or not is_ended:
            raise ChatInterrupted(f"The reply of {self._endpoint.address} broke off; try again.")
        return message

    def _collect(self, chunks: Iterator[AIMessageChunk], call: BackgroundCall[AIMessage]) -> AIMessageChunk | None:
        message: AIMessageChunk | None = None
        while True:
            chunk = self._call_provider(lambda: next(chunks, None))
            if chunk is None:
                return message
            if call.abandoned:
                return None
            if message is not None and chunk.text and _finish_reason(chunk) and chunk.text == message.text:
                # Some servers end with the whole text again.
                chunk = chunk.model_copy(update={"content": ""})
            message = self._call_provider(lambda m=message, c=chunk: c if m is None else m + c)  # type: ignore[misc]
            if chunk.text:
                call.emit_text(str(chunk.text))

    def _call_provider(self, call: Callable[[], ResultT]) -> ResultT:
        """Call code of the provider's package, and convert its exceptions to ChatErrors."""
        try:
            return call()
        except _provider_errors() as failure:
            error = to_chat_error(failure, self._endpoint)
        # Raised outside the except block, so that the failure, which may hold a key, is not its context.
        raise error


@cache
def _freeze_loaded_objects() -> None:
    """Exclude LangChain from garbage collection, once; a full collection would stop every thread for half a second."""
    gc.freeze()


def load_model(profile: ModelProfile) -> LangChainModel:
    """Load the model of a profile, through the provider's own package or OpenAI's.

    ChatUnavailable if its package or its key is missing, if its key or its prompts may not go to its address, or if
    that is unknown.
    """
    name = profile.model
    if profile.key_refusal is not None:
        raise ChatUnavailable(profile.key_refusal)
    address = check_address(profile)
    provider = find_provider(profile) if profile.base_url is None else None
    variable = profile.key_variable or (provider.key_variables[0] if provider and provider.key_variables else None)
    if variable is not None and not profile.api_key:
        raise ChatUnavailable(f"The model {name} needs a key: set {variable} in the environment.")
    failure: ChatUnavailable
    try:
        model = build_model(profile, address)
    except ImportError as error:
        package = (error.name or "").replace("_", "-")
        failure = ChatUnavailable(f"The model {name} needs the package {package}: pip install {package}.")
    except (openai.OpenAIError, ValueError) as error:
        first_line = str(error).split("\n", 1)[0]
        failure = ChatUnavailable(f"The model {name!r} of the profile {profile.name} cannot be set up: {first_line}")
    else:
        _freeze_loaded_objects()
        proxy = choose_proxy(profile.proxy, address)
        server = httpx2.URL(address).netloc.decode() if profile.base_url else name
        return LangChainModel(
            model, ModelEndpoint(name, server, redactor_of(read_secrets(model)), variable or "", proxy)
        )
    raise failure


def read_secrets(model: BaseChatModel) -> tuple[str, ...]:
    """The API keys of the model, which are removed from error messages."""
    return tuple(value.get_secret_value() for value in vars(model).values() if isinstance(value, SecretStr))


def _discard_text(text: str) -> None:
    """Ignore the text of a reply that is not streamed."""


def _schema_options(schema: Mapping[str, Any] | None, model: BaseChatModel) -> dict[str, Any]:
    """The options of the provider's structured output; LangChain's packages translate those of OpenAI."""
    if schema is None or (schema == ANY_OBJECT and not isinstance(model, CompatibleChatOpenAI)):
        return {}
    reply_format = {"type": "json_schema", "json_schema": {"name": "reply", "schema": dict(schema), "strict": True}}
    reply_format = {"type": "json_object"} if schema == ANY_OBJECT else reply_format
    if isinstance(model, CompatibleChatOpenAI):
        # As an option of its own it would have OpenAI's client parse the reply, which fails if that is no JSON.
        return {"extra_body": {**(model.extra_body or {}), "response_format": reply_format}}
    return {"response_format": reply_format}


def _with_temperature(model: BaseChatModel, temperature: float | None, name: str) -> BaseChatModel:
    """The model at this temperature, as a copy that shares its connections; itself for None.

    Providers name the option of a request differently, but the field of the model alike. ChatBadRequest without it.
    """
    if temperature is None:
        return model
    if "temperature" not in type(model).model_fields:
        raise ChatBadRequest(f"The model {name} has no temperature; ask it without one.")
    return model.model_copy(update={"temperature": temperature})


def _with_logprobs(model: BaseChatModel, name: str) -> BaseChatModel:
    """The model whose replies have log-probabilities, as a copy; ChatBadRequest if its package cannot ask for them."""
    if "logprobs" not in type(model).model_fields:
        raise ChatBadRequest(f"The model {name} gives no log-probabilities; ask it without them.")
    return model.model_copy(update={"logprobs": True})


def _to_cacheable_message(message: BaseMessage, source: Message) -> BaseMessage:
    """The message with its text as a block, so that it is the same in every request, with or without a mark."""
    if not source.text.strip():
        return message
    mark = {"cache_control": _CACHE_MARK} if source.ends_prefix else {}
    return message.model_copy(update={"content": [{"type": "text", "text": source.text, **mark}]})


def _mark_last_tool(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """The tools in Anthropic's form; the mark of the last one has all of them cached."""
    definitions: list[dict[str, Any]] = [
        {"name": tool.name, "description": tool.description, "input_schema": dict(tool.schema)} for tool in tools
    ]
    return [*definitions[:-1], *({**last, "cache_control": _CACHE_MARK} for last in definitions[-1:])]


def tool_definition(tool: ToolSpec) -> dict[str, Any]:
    """The declaration of a tool in the form of OpenAI's API."""
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}
    return {"type": "function", "function": function}


def to_langchain_message(message: Message) -> BaseMessage:
    """The message as one of LangChain."""
    if message.role == "system":
        return SystemMessage(message.text)
    if message.role == "user":
        return HumanMessage(message.text)
    if message.role == "tool":
        return ToolMessage(message.text, tool_call_id=message.answers)
    return AIMessage(
        message.text,
        tool_calls=[
            {"name": call.name, "args": call.arguments, "id": call.id, "type": "tool_call"}
            for call in message.calls
            if isinstance(call.arguments, dict)
        ],
        invalid_tool_calls=[
            {"name": call.name, "args": call.arguments, "id": call.id, "error": None, "type": "invalid_tool_call"}
            for call in message.calls
            if isinstance(call.arguments, str)
        ],
    )


def to_chat_reply(message: AIMessage, request: ChatRequest, endpoint: ModelEndpoint) -> ChatReply:
    """The reply; ChatReplyFiltered or ChatInterrupted if it ended for another reason than its length."""
    reason = _finish_reason(message)
    stopped = parse_finish_reason(reason or FinishReason.STOP)
    refusal = " ".join(str(message.additional_kwargs.get("refusal") or "").split())
    if stopped is FinishReason.FILTERED or refusal:
        quoted = f': "{refusal[:_MAX_REFUSAL_CHARACTERS]}"' if refusal else ""
        raise ChatReplyFiltered(
            f"{endpoint.model} refused to reply, or a filter withheld its reply ({reason}){quoted}; ask otherwise, or "
            "use another model."
        )
    if stopped is FinishReason.INTERRUPTED:
        raise ChatInterrupted(f"{endpoint.address} ended the reply before its end ({reason}); try again.")
    tools = [tool.name for tool in request.tools]
    calls = tuple(_parse_tool_calls(message, tools))
    text, thoughts = truncate_at_stop(str(message.text), request.stop), _thoughts(message)
    calls_in_text = False
    if not calls:
        text_reply = parse_text_reply(text, tools)
        text, thoughts = text_reply.text, "\n".join(filter(None, (thoughts, text_reply.thoughts)))
        numbered_calls = enumerate(text_reply.calls, 1)
        calls = tuple(ModelToolCall(f"call_{number}", call.name, call.arguments) for number, call in numbered_calls)
        calls_in_text = bool(calls)
    logprobs = align_logprobs(message.response_metadata.get("logprobs"), text) if request.logprobs else None
    return ChatReply(text, calls, _read_usage(message), stopped, thoughts, calls_in_text, logprobs)


def _read_count(value: Any) -> int | None:
    """A number of tokens, which some servers write as a text; None if it is none."""
    return int(value) if isinstance(value, int | str) and re.fullmatch(r"[0-9]{1,15}", str(value)) else None


def _read_usage(message: AIMessage) -> Usage:
    tokens: Mapping[str, Any] = message.usage_metadata or {}
    input_details, output_details = tokens.get("input_token_details") or {}, tokens.get("output_token_details") or {}
    # Names have a prefix if the provider bills the request at a special tier.
    cached = sum(_read_count(value) or 0 for name, value in input_details.items() if name.endswith("cache_read"))
    written = sum(
        _read_count(value) or 0
        for name, value in input_details.items()
        if name.endswith("cache_creation") or name.startswith("ephemeral_")
    )
    reasoning = sum(_read_count(value) or 0 for name, value in output_details.items() if name.endswith("reasoning"))
    return Usage(
        "",
        1,
        _read_count(tokens.get("input_tokens")),
        _read_count(tokens.get("output_tokens")),
        cost=None,
        cached_tokens=cached,
        cache_written_tokens=written,
        reasoning_tokens=reasoning,
    )


def _thoughts(message: AIMessage) -> str:
    """The reasoning that the server sent beside the text."""
    beside = message.additional_kwargs.get("reasoning_content")
    thoughts = [beside] if isinstance(beside, str) else []
    blocks = message.content if isinstance(message.content, list) else []
    for block in blocks:
        if isinstance(block, dict) and block.get("type") in _THOUGHT_BLOCKS:
            texts = (block.get(name) for name in ("thinking", "reasoning", "reasoning_content", "text"))
            thoughts.append(next((text for text in texts if isinstance(text, str)), ""))
    return "\n".join(filter(None, (thought.strip() for thought in thoughts)))


def _finish_reason(message: AIMessage) -> str:
    return next(
        (str(message.response_metadata[key]) for key in _FINISH_REASON_KEYS if message.response_metadata.get(key)), ""
    )


def _parse_tool_calls(message: AIMessage, tools: Sequence[str]) -> Iterator[ModelToolCall]:
    calls: list[tuple[str | None, str | None, Any]]
    if pieces := message.additional_kwargs.get(CALL_PIECES):
        calls = [*assemble_calls((entry["piece"] for entry in pieces), tools)]
    elif isinstance(message, AIMessageChunk):
        # LangChain silently completes truncated JSON of a stream; the chunks have the original text.
        calls = [(chunk["id"], chunk["name"], chunk["args"] or "{}") for chunk in message.tool_call_chunks]
    else:
        calls = [
            (call["id"], call["name"], call["args"]) for call in (*message.tool_calls, *message.invalid_tool_calls)
        ]
    ids = [id_ for id_, _, _ in calls]
    for number, (id_, name, arguments) in enumerate(calls, 1):
        # Results are told apart by the ids of their calls.
        own_id = id_ if id_ and ids.index(id_) == number - 1 else f"call_{number}"
        yield ModelToolCall(own_id, match_tool_name(name or "", tools), _parse_arguments(arguments))


def _parse_arguments(raw: Any) -> dict[str, Any] | str:
    if isinstance(raw, dict):
        return raw
    text = str(raw or "")
    try:
        value = json.loads(text)
        # Some servers write the text of the object as a JSON text.
        value = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict) else text
