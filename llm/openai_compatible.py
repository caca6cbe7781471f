"""OpenAI's chat model for all servers that speak its API: what other servers add to replies, and streamed text.

OpenAI's client transforms every field of every message, which LangChain's messages never need. For a prompt of fifty
messages this takes four times as long as everything else. PassthroughCompletions passes messages and tools as an extra
request body, which is sent unchanged.
"""

import atexit
import json
import queue
import re
import ssl
import threading
import time
import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import accumulate
from typing import Any, Generic, TypeVar

import certifi
import httpx2
import openai
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from showhow.guard.proxy import HttpProxy, choose_proxy
from showhow.llm.errors import ChatInvalidReply, ChatTimeout
from showhow.llm.providers import make_request_guard
from showhow.llm.types import ModelProfile, TokenLogprob

# LangChain advises functions of its own where a model refuses a schema; the error says what was refused.
warnings.filterwarnings("ignore", "(?s).*structured output", UserWarning, r"langchain_openai\.")

_PASSTHROUGH_FIELDS = ("messages", "tools")
_REASONING_FIELDS = ("reasoning_content", "reasoning")
CALL_PIECES = "call_pieces"
"""The additional field of messages that has the calls in the pieces in which they came."""
_NO_CHOICE = [{"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}]
"""What a reply without choices is read as: the model has said nothing."""
MAX_REPLY_BYTES = 16_000_000
_ASKS_FOR_STREAM = re.compile(rb'"stream":\s?true')
HEADER_LISTENER: ContextVar[Callable[[Mapping[str, str]], None] | None] = ContextVar("header_listener", default=None)
"""Called with the headers of the responses to the requests of this thread."""


class PassthroughCompletions:
    """OpenAI's chat completions without the transformation of messages and tools."""

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
        completion = self._completions.create(messages=[], extra_body=extra_body, **options)
        return _iterate_chunks(completion) if options.get("stream") else completion


@contextmanager
def _iterate_chunks(stream: Any) -> Iterator[Iterator[dict[str, Any]]]:
    """The chunks of a stream as they came; LangChain would warn of fields that have another type than OpenAI's."""
    with stream:
        yield (chunk.model_dump(warnings=False) for chunk in stream)


class CompatibleChatOpenAI(ChatOpenAI):
    """ChatOpenAI that keeps the reasoning, refusals and calls of replies of all servers."""

    def _get_request_payload(
        self,
        input_: Any,
        *,
        stop: list[str] | None = None,
        leave_out_empty_content: bool = False,
        refused_fields: Collection[str] = (),
        **kwargs: Any,
    ) -> dict[str, Any]:
        payload: dict[str, Any] = super()._get_request_payload(input_, stop=stop, **kwargs)
        for message in payload["messages"]:
            # LangChain writes null beside calls, which some servers refuse; most take an empty text, others none.
            if message.get("content", "") is None:
                message["content"] = ""
            if leave_out_empty_content and message.get("tool_calls") and not message["content"]:
                del message["content"]
        extra = payload.get("extra_body") or {}
        if extra.keys() & set(refused_fields):
            payload["extra_body"] = {name: value for name, value in extra.items() if name not in refused_fields}
        refused = {name: payload.pop(name, extra.get(name)) for name in refused_fields}
        if (limit := refused.get("max_tokens")) is not None:
            # The limit stays, under its newer name.
            payload["max_completion_tokens"] = limit
        if "system" in refused_fields:
            payload["messages"] = _join_instructions(payload["messages"])
        return payload

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], default_chunk_class: type, base_generation_info: dict[str, Any] | None
    ) -> ChatGenerationChunk | None:
        choices = chunk.get("choices") or []
        delta: dict[str, Any] = {}
        if choices:
            # Some servers end with a whole message in place of a delta; its text has been streamed.
            whole = choices[0].get("message") or {}
            delta = choices[0]["delta"] = choices[0].get("delta") or {"tool_calls": whole.get("tool_calls")}
        extra = _extra_fields(delta)
        generation = super()._convert_chunk_to_generation_chunk(chunk, default_chunk_class, base_generation_info)
        if generation is not None:
            generation.message.additional_kwargs.update(extra)
        return generation

    def _create_chat_result(self, response: Any, generation_info: dict[str, Any] | None = None) -> ChatResult:
        document = response.model_dump(warnings=False) if isinstance(response, openai.BaseModel) else response
        choices = document.get("choices") if isinstance(document, dict) else None
        if choices == [] and not document.get("error"):
            choices = document["choices"] = _NO_CHOICE
        extra = [_extra_fields(choice.get("message") or {}) for choice in choices or ()]
        result = super()._create_chat_result(document, generation_info)
        for fields, generation in zip(extra, result.generations, strict=False):
            generation.message.additional_kwargs.update(fields)
        return result


def _join_instructions(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with their instructions at the beginning of the first message of the user."""
    texts = [message["content"] for message in messages if message["role"] == "system"]
    others = [message for message in messages if message["role"] != "system"]
    if others and others[0]["role"] == "user" and isinstance(others[0]["content"], str):
        texts.append(others.pop(0)["content"])
    return [{"role": "user", "content": "\n\n".join(map(str, texts))}, *others] if texts else others


def _extra_fields(message: dict[str, Any]) -> dict[str, Any]:
    """The reasoning, under its usual name, the refusal, and the calls of a message or a part of one.

    The calls are taken out of it, since LangChain puts them together by their index alone.
    """
    reasoning = next((value for name in _REASONING_FIELDS if isinstance(value := message.get(name), str)), "")
    refusal, calls = message.get("refusal"), message.pop("tool_calls", None) or ()
    calls = [calls] if isinstance(calls, Mapping) else calls
    values = {
        "reasoning_content": reasoning,
        "refusal": refusal if isinstance(refusal, str) else "",
        # Each in an object of its own, which LangChain appends and does not merge.
        CALL_PIECES: [{"piece": call} for call in calls if isinstance(call, Mapping)],
    }
    return {name: value for name, value in values.items() if value}


def align_logprobs(metadata: Any, text: str) -> tuple[TokenLogprob, ...] | None:
    """The tokens of the text that have a log-probability, from OpenAI's `logprobs` or the list that Ollama writes.

    None if there are no tokens; () if they do not spell the text. Tokens of the reasoning before it are left out.
    """
    tokens = metadata.get("content") if isinstance(metadata, Mapping) else metadata
    if not isinstance(tokens, list) or not tokens:
        return None
    # Ollama's package makes objects of them.
    tokens = [token.model_dump() if isinstance(token, BaseModel) else token for token in tokens]
    if not all(isinstance(token, Mapping) for token in tokens):
        return ()
    # Some tokens are parts of a character, so offsets are counted in bytes first.
    pieces = [_token_bytes(token) for token in tokens]
    begin = b"".join(pieces).rfind(text.encode(errors="replace"))
    if begin < 0:
        return ()
    starts = [0, *accumulate(len(character.encode(errors="replace")) for character in text)]
    aligned = []
    position = -begin
    for token, piece in zip(tokens, pieces, strict=True):
        start, position = position, position + len(piece)
        logprob = token.get("logprob")
        if position > 0 and start < starts[-1] and isinstance(logprob, int | float) and abs(logprob) < _MAX_LOGPROB:
            first, last = bisect_right(starts, max(start, 0)) - 1, bisect_left(starts, min(position, starts[-1]))
            aligned.append(TokenLogprob(first, last, float(logprob)))
    return tuple(aligned)


_MAX_LOGPROB = 1e9
"""Numbers beyond it, and NaN, are no log-probabilities."""


def _token_bytes(token: Mapping[str, Any]) -> bytes:
    """The token in UTF-8; it may be a part of a character."""
    values = token.get("bytes")
    # A number in place of the list would stand for as many zeros.
    if values and isinstance(values, list) and all(isinstance(value, int) and 0 <= value < 256 for value in values):
        return bytes(values)
    return str(token.get("token", "")).encode(errors="replace")


def make_http_client(profile: ModelProfile, address: str) -> httpx2.Client:
    """The HTTP client of a profile, which sends its key to `address` only; all clients share their connections.

    It takes no proxy and no .netrc from the environment, and follows no redirect; the settings may state a proxy.
    """
    hooks: dict[str, list[Callable[..., Any]]] = {
        "request": [make_request_guard(profile, address)],
        "response": [_check_response],
    }
    transport = _transport(choose_proxy(profile.proxy, address))
    return httpx2.Client(transport=transport, trust_env=False, follow_redirects=False, event_hooks=hooks)


@cache
def _transport(proxy: HttpProxy | None) -> httpx2.HTTPTransport:
    """The connection pool of this process for all models that are reached in this way."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64)
    transport = httpx2.HTTPTransport(
        verify=ssl_context(), limits=limits, proxy=proxy.url if proxy else None, trust_env=False
    )
    atexit.register(transport.close)
    return transport


@cache
def ssl_context() -> ssl.SSLContext:
    """Certificates of the system (SSL_CERT_FILE may name a company's own authority) and those of browsers."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


class _BoundedReplyStream(httpx2.SyncByteStream):
    """A response body that fails if it exceeds the size limit of a reply."""

    def __init__(self, stream: httpx2.SyncByteStream, address: str) -> None:
        self._stream = stream
        self._address = address

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for chunk in self._stream:
            size += len(chunk)
            if size > MAX_REPLY_BYTES:
                raise ChatInvalidReply(
                    f"{self._address} sends more than {MAX_REPLY_BYTES / 1e6:g} MB, the limit of a reply."
                )
            yield chunk

    def close(self) -> None:
        self._stream.close()


def _check_response(response: httpx2.Response) -> None:
    """Report the headers; refuse responses that are no reply, or too long."""
    listener = HEADER_LISTENER.get()
    if listener is not None:
        listener({name.lower(): value for name, value in response.headers.items()})
    address = response.request.url.netloc.decode()
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if response.is_success and kind not in ("application/json", "text/event-stream"):
        raise ChatInvalidReply(
            f"{address} responded with {kind or 'content of no type'} instead of a reply; check the base URL of its "
            "profile."
        )
    if isinstance(response.stream, httpx2.SyncByteStream):
        response.stream = _BoundedReplyStream(response.stream, address)
        # A text in the request has its quotation marks escaped.
        if kind == "application/json" and response.is_success and _ASKS_FOR_STREAM.search(response.request.content):
            response.stream = _WholeReplyStream(response.stream)


class _WholeReplyStream(httpx2.SyncByteStream):
    """The reply, or the error, of a server that does not stream, as the only event of a stream."""

    def __init__(self, stream: httpx2.SyncByteStream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        body = b"".join(self._stream)
        try:
            reply = json.loads(body)
        except ValueError:
            # Other servers stream with the wrong type.
            yield body
            return
        match reply:
            case {"error": str(message)} | {"detail": str(message)} | {"message": str(message)}:
                reply = {"error": {"message": message}}
            case {"choices": list(choices)}:
                choices = choices or _NO_CHOICE
                whole = [choice | {"delta": choice.get("message")} for choice in choices if isinstance(choice, dict)]
                reply |= {"object": "chat.completion.chunk", "choices": whole}
            case {"error": _}:
                pass
            case _:
                yield body
                return
        yield b"data: " + json.dumps(reply).encode() + b"\n\n"

    def close(self) -> None:
        self._stream.close()


ResultT = TypeVar("ResultT")


def truncate_at_stop(text: str, stop: Sequence[str]) -> str:
    """The text before the stop sequence that is completed first, for servers that ignore stop sequences."""
    matches = [(start + len(sequence), start) for sequence in stop if sequence and (start := text.find(sequence)) >= 0]
    return text[: min(matches)[1]] if matches else text


class StopSequenceFilter:
    """Emits streamed text as soon as it is certain not to begin a stop sequence."""

    def __init__(self, on_text: Callable[[str], None], stop: Sequence[str]) -> None:
        self._on_text = on_text
        self._stop = [sequence for sequence in stop if sequence]
        self._text = ""
        self._emitted_length = 0

    def feed(self, piece: str) -> None:
        """Add the next piece of the reply."""
        self._text += piece
        visible = truncate_at_stop(self._text, self._stop)
        held_back = 0 if len(visible) < len(self._text) else self._partial_stop_length()
        self._emit_until(len(visible) - held_back)

    def _partial_stop_length(self) -> int:
        longest = max(map(len, self._stop), default=1) - 1
        lengths = range(min(longest, len(self._text)), 0, -1)
        return next((n for n in lengths if any(stop.startswith(self._text[-n:]) for stop in self._stop)), 0)

    def _emit_until(self, end: int) -> None:
        if end > self._emitted_length:
            start, self._emitted_length = self._emitted_length, end
            self._on_text(self._text[start:end])


class BackgroundCall(Generic[ResultT]):
    """Runs blocking work in its own thread, which the caller abandons at its deadline.

    `work` is called with this object: it streams text with `emit_text` and stops early once `abandoned` is true.
    """

    def __init__(self, work: Callable[["BackgroundCall[ResultT]"], ResultT]) -> None:
        self._work = work
        self._queue: queue.SimpleQueue[str | Future[ResultT]] = queue.SimpleQueue()
        self._abandoned = threading.Event()

    @property
    def abandoned(self) -> bool:
        """Whether the caller no longer waits."""
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
                event = self._next_event(deadline, timeout_message)
                if isinstance(event, Future):
                    return event.result()
                on_text(event)
        finally:
            self._abandoned.set()

    def _next_event(self, deadline: float, timeout_message: str) -> str | Future[ResultT]:
        try:
            return self._queue.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            pass
        raise ChatTimeout(timeout_message)

    def _run_in_thread(self) -> None:
        future: Future[ResultT] = Future()
        try:
            future.set_result(self._work(self))
        # The future hands every exception of this thread to the caller's thread, where result() raises it.
        except BaseException as error:  # noqa: BLE001
            future.set_exception(error)
        self._queue.put(future)
