"""LangChain's chat models as the Model of tools/chat.py; imported when a model is first asked, as it takes a second.

OpenAI's client asked without its walk through every field of every message.

The client looks for names to be rewritten and files to be read in; LangChain's messages have neither. With a prompt of
fifty messages that walk takes four times as long as all else together, while a body that is given beside the parameters
is sent as it stands.
Words as they come from a model: up to the first stop sequence, and no longer than anybody waits.
"""

import atexit
import json
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from worlds.memory import freeze_loaded_objects

_PASSTHROUGH_FIELDS = ("messages", "tools")


class PassthroughCompletions:
    """The client's chat completions, as LangChain calls them."""

    def __init__(self, completions: Any) -> None:
        self._completions = completions

    @property
    def with_raw_response(self) -> "PassthroughCompletions":
        """The same with the headers of the response beside it."""
        return PassthroughCompletions(self._completions.with_raw_response)

    def create(self, **asked: Any) -> Any:
        """Ask for a completion."""
        body = {name: asked.pop(name) for name in _PASSTHROUGH_FIELDS if name in asked}
        beside = {**(asked.pop("extra_body", None) or {}), **body}
        return self._completions.create(messages=[], extra_body=beside, **asked)


ResultT = TypeVar("ResultT")


def truncate_at_stop(text: str, stop: Sequence[str]) -> str:
    """The text before the stop sequence that is complete first; servers need not know them."""
    found = [(place + len(one), place) for one in stop if one and (place := text.find(one)) >= 0]
    return text[: min(found)[1]] if found else text


class StopSequenceFilter:
    """Hands over words as soon as it is certain that they do not begin a stop sequence."""

    def __init__(self, on_text: Callable[[str], None], stop: Sequence[str]) -> None:
        self._on_text = on_text
        self._stop = [one for one in stop if one]
        self._text = ""
        self._emitted_length = 0

    @property
    def has_emitted(self) -> bool:
        """Whether any word was handed over."""
        return self._emitted_length > 0

    def feed(self, piece: str) -> None:
        """Take the next piece."""
        self._text += piece
        whole = truncate_at_stop(self._text, self._stop)
        held = 0 if len(whole) < len(self._text) else self._partial_stop_length()
        self._emit_until(len(whole) - held)

    def flush(self) -> None:
        """Hand over what was held back."""
        self._emit_until(len(truncate_at_stop(self._text, self._stop)))

    def _partial_stop_length(self) -> int:
        longest = max(map(len, self._stop), default=1) - 1
        lengths = range(min(longest, len(self._text)), 0, -1)
        return next((n for n in lengths if any(one.startswith(self._text[-n:]) for one in self._stop)), 0)

    def _emit_until(self, end: int) -> None:
        if end > self._emitted_length:
            given, self._emitted_length = self._emitted_length, end
            self._on_text(self._text[given:end])


class BackgroundCall(Generic[ResultT]):
    """Work of a provider's package in a thread of its own, so that nobody waits for it longer than the time given.

    `run` is given the errand: it hands words over by `say` and looks at `abandoned` between pieces.
    """

    def __init__(self, run: Callable[["BackgroundCall[ResultT]"], ResultT | ChatError]) -> None:
        self._run = run
        self._queue: queue.SimpleQueue[str | tuple[ResultT | ChatError | None]] = queue.SimpleQueue()
        self._abandoned = threading.Event()

    @property
    def abandoned(self) -> bool:
        """Whether nobody waits for it any more."""
        return self._abandoned.is_set()

    def emit_text(self, words: str) -> None:
        """Hand words over to who waits."""
        self._queue.put(words)

    def result(self, seconds: float, on_words: Callable[[str], None], late: str) -> ResultT:
        """What `run` found; its ChatError, or ChatTimeout(late) when the seconds are over."""
        threading.Thread(target=self._run_in_thread, daemon=True, name="language model").start()
        ends = time.monotonic() + seconds
        try:
            while True:
                news = self._next_item(ends, late)
                if not isinstance(news, str):
                    break
                on_words(news)
        finally:
            self._abandoned.set()
        (found,) = news
        if found is None:
            raise ChatError("The request to the language model failed by a fault of the program; see its log.")
        if isinstance(found, ChatError):
            raise found
        return found

    def _next_item(self, ends: float, late: str) -> str | tuple[ResultT | ChatError | None]:
        try:
            return self._queue.get(timeout=max(0.0, ends - time.monotonic()))
        except queue.Empty:
            pass
        raise ChatTimeout(late)

    def _run_in_thread(self) -> None:
        found: ResultT | ChatError | None = None
        try:
            found = self._run(self)
        finally:
            self._queue.put((found,))


MAX_REPLY_BYTES = 16_000_000
# What providers' packages raise: LangChain's family for what servers report, the rest for replies that are none. Only
# their code runs where these are caught.
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
    """A chat model of LangChain, asked once a request; `told_ends` where it always says why a reply ended."""

    def __init__(self, model: BaseChatModel, asked: ModelEndpoint, *, told_ends: bool) -> None:
        self._model = model
        self._endpoint = asked
        self._reports_finish_reason = told_ends

    def reply(self, request: ChatRequest, seconds: float) -> ChatReply:
        """The reply within `seconds`, or a ChatError."""
        spoken = StopSequenceFilter(request.on_text or _discard_text, request.stop)
        errand: BackgroundCall[AIMessage] = BackgroundCall(lambda errand: self._send(request, errand))
        place = self._endpoint.address
        late = f"{place} did not finish its reply in time; ask for less, or allow more (SHOWHOW_MODEL_SECONDS)."
        try:
            message = errand.result(seconds, spoken.feed, late)
        except ChatError as failed:
            failed.retryable = failed.retryable and not spoken.has_emitted
            raise
        spoken.flush()
        return _to_chat_reply(message, request.stop)

    def _send(self, request: ChatRequest, errand: BackgroundCall[AIMessage]) -> AIMessage | ChatError:
        try:
            messages = [_to_langchain_message(one) for one in request.messages]
            model: Runnable[Any, Any] = self._model
            if request.tools:
                model = self._model.bind_tools([_tool_definition(tool) for tool in request.tools])
            options: dict[str, Any] = {"stop": list(request.stop)} if request.stop else {}
            if request.on_text is None:
                message = model.invoke(messages, **options)
            else:
                message = _collect_stream(model.stream(messages, **options), errand)
        except PROVIDER_ERRORS as error:
            return to_chat_error(error, self._endpoint)
        return message if isinstance(message, AIMessage) and self._is_complete(message) else self._interrupted_error()

    def _is_complete(self, message: AIMessage) -> bool:
        return not self._reports_finish_reason or bool(_finish_reason(message))

    def _interrupted_error(self) -> ChatInterrupted:
        return ChatInterrupted(f"The reply of {self._endpoint.address} broke off; try again.")


def load_model(setup: ModelProfile) -> LangChainModel:
    """The model of that setup: at an OpenAI-compatible server where there is a base_url, else its provider's.

    ChatUnavailable when its package is missing, its name is no model's, or it is not given what it needs.
    """
    name, base_url = setup.name, setup.base_url
    compatible = base_url is not None or name.startswith("openai:")
    failure: ChatUnavailable
    try:
        model = init_chat_model(name.removeprefix("openai:") if compatible else name, **_model_options(setup))
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
        place = httpx2.URL(base_url).netloc.decode() if base_url else name
        return LangChainModel(model, ModelEndpoint(name, place, _model_secrets(model)), told_ends=compatible)
    raise failure


def _model_options(setup: ModelProfile) -> dict[str, Any]:
    options: dict[str, Any] = {"timeout": setup.seconds, "max_retries": 0}
    if setup.temperature is not None:
        options["temperature"] = setup.temperature
    if setup.base_url is not None or setup.name.startswith("openai:"):
        options |= {"model_provider": "openai", "stream_usage": True, "http_client": _http_client()}
    if setup.base_url is not None:
        # Local servers want no key, but the package wants to send one.
        key = SecretStr(setup.api_key or "none")
        options |= {"base_url": setup.base_url, "api_key": key, "use_responses_api": False}
    return options


@cache
def _http_client() -> httpx2.Client:
    """The connections of this process to all OpenAI-compatible servers."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64)
    client = httpx2.Client(limits=limits, event_hooks={"response": [_limit_response]})
    atexit.register(client.close)
    return client


class _BoundedReplyStream(httpx2.SyncByteStream):
    """A body that ends with an error where it is longer than any reply."""

    def __init__(self, stream: httpx2.SyncByteStream, place: str) -> None:
        self._stream = stream
        self._address = place

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
    place = response.request.url.netloc.decode()
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if response.is_success and kind not in ("application/json", "text/event-stream"):
        raise ChatServerError(
            f"{place} answered with {kind or 'something of no type'} instead of a reply; check SHOWHOW_MODEL_BASE_URL."
        )
    if isinstance(response.stream, httpx2.SyncByteStream):
        response.stream = _BoundedReplyStream(response.stream, place)


def _model_secrets(model: BaseChatModel) -> list[str]:
    """The keys that the model holds, so that no message repeats one."""
    held = [value.get_secret_value() for value in vars(model).values() if isinstance(value, SecretStr)]
    return [value for value in held if len(value) > 4]


def _discard_text(words: str) -> None:
    """Words that nobody waits for."""


def _tool_definition(tool: ToolSpec) -> dict[str, Any]:
    described = {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}
    return {"type": "function", "function": described}


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


def _collect_stream(pieces: Iterator[AIMessageChunk], errand: BackgroundCall[AIMessage]) -> AIMessageChunk | None:
    whole: AIMessageChunk | None = None
    for piece in pieces:
        if errand.abandoned:
            return None
        whole = piece if whole is None else whole + piece
        if piece.text:
            errand.emit_text(str(piece.text))
    return whole


def _to_chat_reply(message: AIMessage, stop: Sequence[str]) -> ChatReply:
    told_usage: Mapping[str, Any] = message.usage_metadata or {}
    usage = Usage("", 1, told_usage.get("input_tokens"), told_usage.get("output_tokens"), 0.0, None)
    text = str(message.text)
    return ChatReply(truncate_at_stop(text, stop), tuple(_parse_tool_calls(message)), usage, _finish_reason(message))


def _finish_reason(message: AIMessage) -> str:
    return next(
        (str(message.response_metadata[key]) for key in _FINISH_REASON_KEYS if message.response_metadata.get(key)), ""
    )


def _parse_tool_calls(message: AIMessage) -> Iterator[ModelToolCall]:
    if isinstance(message, AIMessageChunk):
        # LangChain completes broken JSON of a stream silently; what the model really wrote is in the pieces.
        written: list[tuple[str | None, str | None, Any]] = [
            (piece["id"], piece["name"], piece["args"] or "{}") for piece in message.tool_call_chunks
        ]
    else:
        written = [
            (call["id"], call["name"], call["args"]) for call in (*message.tool_calls, *message.invalid_tool_calls)
        ]
    for place, (id_, name, arguments) in enumerate(written):
        yield ModelToolCall(id_ or f"call_{place + 1}", name or "", _parse_arguments(arguments))


def _parse_arguments(written: Any) -> dict[str, Any] | str:
    if isinstance(written, dict):
        return written
    text = str(written or "")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, dict) else text
