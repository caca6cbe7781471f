"""LangChain's chat models as ChatModel; imported with the first request, since LangChain takes a second to import.

OpenAI's client walks through every field of every message to rename fields and read in files, which LangChain's
messages never need. For a prompt of fifty messages the walk takes four times as long as everything else; the request
body that PassthroughCompletions passes beside the parameters is sent unchanged.
"""

import atexit
import json
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import cache
from typing import Any, Generic, TypeVar

import httpx
import httpx2
import openai
from langchain.chat_models import init_chat_model
from langchain_core.exceptions import LangChainException
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import Runnable
from pydantic import SecretStr

from llm.errors import ChatError, ChatInterrupted, ChatServerError, ChatTimeout, ChatUnavailable
from llm.provider_errors import ModelEndpoint, to_chat_error
from llm.types import ChatReply, ChatRequest, Message, ModelProfile, ModelToolCall, ToolSpec
from llm.usage import Usage
from worlds.garbage_collection import freeze_loaded_objects

_PASSTHROUGH_FIELDS = ("messages", "tools")


class PassthroughCompletions:
    """OpenAI's chat completions without the walk through the messages."""

    def __init__(self, completions: Any) -> None:
        self._completions = completions

    @property
    def with_raw_response(self) -> "PassthroughCompletions":
        """The variant whose results have the headers of the response."""
        return PassthroughCompletions(self._completions.with_raw_response)

    def create(self, **options: Any) -> Any:
        """Request a completion."""
        body = {name: options.pop(name) for name in _PASSTHROUGH_FIELDS if name in options}
        extra_body = {**(options.pop("extra_body", None) or {}), **body}
        return self._completions.create(messages=[], extra_body=extra_body, **options)


ResultT = TypeVar("ResultT")


def truncate_at_stop(text: str, stop: Sequence[str]) -> str:
    """The text before the stop sequence that is completed first, for servers that ignore stop sequences."""
    matches = [(start + len(one), start) for one in stop if one and (start := text.find(one)) >= 0]
    return text[: min(matches)[1]] if matches else text


class StopSequenceFilter:
    """Emits streamed text as soon as it is certain not to begin a stop sequence."""

    def __init__(self, on_text: Callable[[str], None], stop: Sequence[str]) -> None:
        self._on_text = on_text
        self._stop = [one for one in stop if one]
        self._text = ""
        self._emitted_length = 0

    @property
    def has_emitted(self) -> bool:
        """Whether any text was emitted."""
        return self._emitted_length > 0

    def feed(self, piece: str) -> None:
        """Add the next piece of the reply."""
        self._text += piece
        visible = truncate_at_stop(self._text, self._stop)
        held_back = 0 if len(visible) < len(self._text) else self._partial_stop_length()
        self._emit_until(len(visible) - held_back)

    def flush(self) -> None:
        """Emit the text that was held back."""
        self._emit_until(len(truncate_at_stop(self._text, self._stop)))

    def _partial_stop_length(self) -> int:
        longest = max(map(len, self._stop), default=1) - 1
        lengths = range(min(longest, len(self._text)), 0, -1)
        return next((n for n in lengths if any(one.startswith(self._text[-n:]) for one in self._stop)), 0)

    def _emit_until(self, end: int) -> None:
        if end > self._emitted_length:
            start, self._emitted_length = self._emitted_length, end
            self._on_text(self._text[start:end])


class BackgroundCall(Generic[ResultT]):
    """Blocking work in its own thread, so that the caller can leave at its deadline.

    `work` gets this call: it streams text with `emit_text` and stops early once `abandoned` is set.
    """

    def __init__(self, work: Callable[["BackgroundCall[ResultT]"], ResultT]) -> None:
        self._work = work
        self._queue: queue.SimpleQueue[str | Future[ResultT]] = queue.SimpleQueue()
        self._abandoned = threading.Event()

    @property
    def abandoned(self) -> bool:
        """Whether the caller has left."""
        return self._abandoned.is_set()

    def emit_text(self, text: str) -> None:
        """Pass text to the caller."""
        self._queue.put(text)

    def result(self, seconds: float, on_text: Callable[[str], None], timeout_message: str) -> ResultT:
        """Run the work and return its result; raises its exception, or ChatTimeout after `seconds`."""
        threading.Thread(target=self._run_in_thread, daemon=True, name="language model").start()
        deadline = time.monotonic() + seconds
        try:
            while True:
                item = self._next_item(deadline, timeout_message)
                if isinstance(item, Future):
                    return item.result()
                on_text(item)
        finally:
            self._abandoned.set()

    def _next_item(self, deadline: float, timeout_message: str) -> str | Future[ResultT]:
        try:
            return self._queue.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            pass
        raise ChatTimeout(timeout_message)

    def _run_in_thread(self) -> None:
        future: Future[ResultT] = Future()
        try:
            future.set_result(self._work(self))
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread of the caller
            future.set_exception(error)
        self._queue.put(future)


MAX_REPLY_BYTES = 16_000_000
# LangChain's own errors for what servers report; the built-in ones for responses that are no reply. They are caught
# around calls of providers' packages only.
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
_FINISH_REASON_KEYS = ("finish_reason", "stop_reason", "done_reason", "stopReason")


class LangChainModel:
    """A chat model of LangChain; `reports_finish_reason` if every complete reply has a finish reason."""

    def __init__(self, model: BaseChatModel, endpoint: ModelEndpoint, *, reports_finish_reason: bool) -> None:
        self._model = model
        self._endpoint = endpoint
        self._reports_finish_reason = reports_finish_reason

    def reply(self, request: ChatRequest, seconds: float) -> ChatReply:
        """Send the request once and return the reply within `seconds`; ChatError if there is none."""
        stop_filter = StopSequenceFilter(request.on_text or _discard_text, request.stop)
        call: BackgroundCall[AIMessage] = BackgroundCall(lambda call: self._send(request, call))
        address = self._endpoint.address
        late = f"{address} did not finish its reply in time; ask for less, or allow more (SHOWHOW_MODEL_SECONDS)."
        try:
            message = call.result(seconds, stop_filter.feed, late)
        except ChatError as error:
            error.retryable = error.retryable and not stop_filter.has_emitted
            raise
        stop_filter.flush()
        return _to_chat_reply(message, request.stop)

    def _send(self, request: ChatRequest, call: BackgroundCall[AIMessage]) -> AIMessage:
        messages = [_to_langchain_message(message) for message in request.messages]
        tools = [_tool_definition(tool) for tool in request.tools]
        options: dict[str, Any] = {"stop": list(request.stop)} if request.stop else {}
        model: Runnable[Any, Any] = self._model
        if tools:
            model = self._call_provider(lambda: self._model.bind_tools(tools))
        if request.on_text is None:
            message = self._call_provider(lambda: model.invoke(messages, **options))
        else:
            chunks = self._call_provider(lambda: model.stream(messages, **options))
            message = self._collect(chunks, call)
        if not isinstance(message, AIMessage) or (self._reports_finish_reason and not _finish_reason(message)):
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
            message = self._call_provider(lambda m=message, c=chunk: c if m is None else m + c)  # type: ignore[misc]
            if chunk.text:
                call.emit_text(str(chunk.text))

    def _call_provider(self, call: Callable[[], ResultT]) -> ResultT:
        """Run code of the provider's package only, and convert what it raises into a ChatError."""
        try:
            return call()
        except PROVIDER_ERRORS as failure:
            error = to_chat_error(failure, self._endpoint)
        # Raised out here without the failure as its context, which may hold a key.
        raise error


def load_model(profile: ModelProfile) -> LangChainModel:
    """Load the model of a profile: from an OpenAI-compatible server if there is a base_url, else from its provider.

    ChatUnavailable if its package or its key is missing, or no model has that name.
    """
    name, base_url = profile.name, profile.base_url
    compatible = base_url is not None or name.startswith("openai:")
    failure: ChatUnavailable
    try:
        model = init_chat_model(name.removeprefix("openai:") if compatible else name, **_model_options(profile))
    except ImportError as missing:
        failure = ChatUnavailable(f"The model {name} needs a package: {missing}.")
    except openai.OpenAIError:
        failure = ChatUnavailable(f"The model {name} needs a key: set OPENAI_API_KEY in the environment.")
    except ValueError as wrong:
        first = str(wrong).split("\n", 1)[0]
        failure = ChatUnavailable(f"SHOWHOW_MODEL is {name!r}, which names no model that can be set up: {first}")
    else:
        if compatible:
            model.client = PassthroughCompletions(model.client)
        freeze_loaded_objects("langchain")
        address = httpx2.URL(base_url).netloc.decode() if base_url else name
        endpoint = ModelEndpoint(name, address, _model_secrets(model))
        return LangChainModel(model, endpoint, reports_finish_reason=compatible)
    raise failure


def _model_options(profile: ModelProfile) -> dict[str, Any]:
    options: dict[str, Any] = {"timeout": profile.seconds, "max_retries": 0}
    if profile.temperature is not None:
        options["temperature"] = profile.temperature
    if profile.base_url is not None or profile.name.startswith("openai:"):
        options |= {"model_provider": "openai", "stream_usage": True, "http_client": _http_client()}
    if profile.base_url is not None:
        # Local servers need no key, but the package always sends one.
        key = SecretStr(profile.api_key or "none")
        options |= {"base_url": profile.base_url, "api_key": key, "use_responses_api": False}
    return options


@cache
def _http_client() -> httpx2.Client:
    """The connection pool of this process for all OpenAI-compatible servers."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64)
    client = httpx2.Client(limits=limits, event_hooks={"response": [_limit_response]})
    atexit.register(client.close)
    return client


class _BoundedReplyStream(httpx2.SyncByteStream):
    """A response body that fails when it is longer than any reply."""

    def __init__(self, stream: httpx2.SyncByteStream, address: str) -> None:
        self._stream = stream
        self._address = address

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for chunk in self._stream:
            size += len(chunk)
            if size > MAX_REPLY_BYTES:
                raise ChatServerError(
                    f"{self._address} sends more than {MAX_REPLY_BYTES / 1e6:g} MB, which is no reply."
                )
            yield chunk

    def close(self) -> None:
        self._stream.close()


def _limit_response(response: httpx2.Response) -> None:
    address = response.request.url.netloc.decode()
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if response.is_success and kind not in ("application/json", "text/event-stream"):
        raise ChatServerError(
            f"{address} answered with {kind or 'something of no type'} instead of a reply; "
            "check SHOWHOW_MODEL_BASE_URL."
        )
    if isinstance(response.stream, httpx2.SyncByteStream):
        response.stream = _BoundedReplyStream(response.stream, address)


def _model_secrets(model: BaseChatModel) -> list[str]:
    """The keys that the model holds, to be removed from messages."""
    secrets = [value.get_secret_value() for value in vars(model).values() if isinstance(value, SecretStr)]
    return [secret for secret in secrets if len(secret) > 4]


def _discard_text(text: str) -> None:
    """Ignore the text of a reply that is not streamed."""


def _tool_definition(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}
    return {"type": "function", "function": function}


def _to_langchain_message(message: Message) -> BaseMessage:
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


def _to_chat_reply(message: AIMessage, stop: Sequence[str]) -> ChatReply:
    tokens: Mapping[str, Any] = message.usage_metadata or {}
    usage = Usage("", 1, tokens.get("input_tokens"), tokens.get("output_tokens"), 0.0, None)
    text = str(message.text)
    return ChatReply(truncate_at_stop(text, stop), tuple(_parse_tool_calls(message)), usage, _finish_reason(message))


def _finish_reason(message: AIMessage) -> str:
    return next(
        (str(message.response_metadata[key]) for key in _FINISH_REASON_KEYS if message.response_metadata.get(key)), ""
    )


def _parse_tool_calls(message: AIMessage) -> Iterator[ModelToolCall]:
    if isinstance(message, AIMessageChunk):
        # LangChain silently completes broken JSON of a stream; the chunks have what the model really wrote.
        calls: list[tuple[str | None, str | None, Any]] = [
            (chunk["id"], chunk["name"], chunk["args"] or "{}") for chunk in message.tool_call_chunks
        ]
    else:
        calls = [
            (call["id"], call["name"], call["args"]) for call in (*message.tool_calls, *message.invalid_tool_calls)
        ]
    for number, (id_, name, arguments) in enumerate(calls, 1):
        yield ModelToolCall(id_ or f"call_{number}", name or "", _parse_arguments(arguments))


def _parse_arguments(raw: Any) -> dict[str, Any] | str:
    if isinstance(raw, dict):
        return raw
    text = str(raw or "")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict) else text
