"""LangChain's chat models as the Model of tools/chat.py; imported when a model is first asked, as it takes a second."""

import atexit
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import httpx
import httpx2
import openai
from langchain.chat_models import init_chat_model
from langchain_core.exceptions import LangChainException
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import Runnable
from pydantic import SecretStr

from tools.as_it_stands import AsItStands
from tools.chat import Call, Message, ModelSetup, Offered, Reply, Request
from tools.chat_errors import ChatBroken, ChatCut, ChatError, ChatUnavailable
from tools.chat_failures import Asked, told
from tools.chat_stream import Errand, Spoken, before_stop
from tools.usage import Usage
from worlds.memory import keep_loaded

MOST_BYTES = 16_000_000
# What providers' packages raise: LangChain's family for what servers report, the rest for replies that are none. Only
# their code runs where these are caught.
RAISED = (
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
_REASONS = ("finish_reason", "stop_reason", "done_reason", "stopReason")


class LangChainModel:
    """A chat model of LangChain, asked once a request; `told_ends` where it always says why a reply ended."""

    def __init__(self, model: BaseChatModel, asked: Asked, *, told_ends: bool) -> None:
        self._model = model
        self._asked = asked
        self._told_ends = told_ends

    def reply(self, request: Request, seconds: float) -> Reply:
        """The reply within `seconds`, or a ChatError."""
        spoken = Spoken(request.on_text or _nobody, request.stop)
        errand: Errand[AIMessage] = Errand(lambda errand: self._sent(request, errand))
        place = self._asked.place
        late = f"{place} did not finish its reply in time; ask for less, or allow more (SHOWHOW_MODEL_SECONDS)."
        try:
            message = errand.result(seconds, spoken.more, late)
        except ChatError as failed:
            failed.again = failed.again and not spoken.any
            raise
        spoken.end()
        return _reply(message, request.stop)

    def _sent(self, request: Request, errand: Errand[AIMessage]) -> AIMessage | ChatError:
        try:
            messages = [_message(one) for one in request.messages]
            model: Runnable[Any, Any] = self._model
            if request.tools:
                model = self._model.bind_tools([_function(tool) for tool in request.tools])
            options: dict[str, Any] = {"stop": list(request.stop)} if request.stop else {}
            if request.on_text is None:
                message = model.invoke(messages, **options)
            else:
                message = _gathered(model.stream(messages, **options), errand)
        except RAISED as error:
            return told(error, self._asked)
        return message if isinstance(message, AIMessage) and self._ended(message) else self._cut()

    def _ended(self, message: AIMessage) -> bool:
        return not self._told_ends or bool(_reason(message))

    def _cut(self) -> ChatCut:
        return ChatCut(f"The reply of {self._asked.place} broke off; try again.")


def load(setup: ModelSetup) -> LangChainModel:
    """The model of that setup: at an OpenAI-compatible server where there is a base_url, else its provider's.

    ChatUnavailable when its package is missing, its name is no model's, or it is not given what it needs.
    """
    name, base_url = setup.name, setup.base_url
    compatible = base_url is not None or name.startswith("openai:")
    failure: ChatUnavailable
    try:
        model = init_chat_model(name.removeprefix("openai:") if compatible else name, **_options(setup))
    except ImportError as missing:
        failure = ChatUnavailable(f"The model {name} needs a package: {missing}.")
    except openai.OpenAIError:
        failure = ChatUnavailable(f"The model {name} needs a key: set OPENAI_API_KEY in the environment.")
    except ValueError as wrong:
        first = str(wrong).split("\n", 1)[0]
        failure = ChatUnavailable(f"SHOWHOW_MODEL is {name!r}, which names no model that can be set up: {first}")
    else:
        if compatible:
            model.client = AsItStands(model.client)
        keep_loaded("langchain")
        place = httpx2.URL(base_url).netloc.decode() if base_url else name
        return LangChainModel(model, Asked(name, place, _secrets(model)), told_ends=compatible)
    raise failure


def _options(setup: ModelSetup) -> dict[str, Any]:
    options: dict[str, Any] = {"timeout": setup.seconds, "max_retries": 0}
    if setup.temperature is not None:
        options["temperature"] = setup.temperature
    if setup.base_url is not None or setup.name.startswith("openai:"):
        options |= {"model_provider": "openai", "stream_usage": True, "http_client": _client()}
    if setup.base_url is not None:
        # Local servers want no key, but the package wants to send one.
        key = SecretStr(setup.key or "none")
        options |= {"base_url": setup.base_url, "api_key": key, "use_responses_api": False}
    return options


@cache
def _client() -> httpx2.Client:
    """The connections of this process to all OpenAI-compatible servers."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64)
    client = httpx2.Client(limits=limits, event_hooks={"response": [_bounded]})
    atexit.register(client.close)
    return client


class _Bounded(httpx2.SyncByteStream):
    """A body that ends with an error where it is longer than any reply."""

    def __init__(self, stream: httpx2.SyncByteStream, place: str) -> None:
        self._stream = stream
        self._place = place

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for chunk in self._stream:
            size += len(chunk)
            if size > MOST_BYTES:
                raise ChatBroken(f"{self._place} sends more than {MOST_BYTES / 1e6:g} MB, which is no reply.")
            yield chunk

    def close(self) -> None:
        self._stream.close()


def _bounded(response: httpx2.Response) -> None:
    place = response.request.url.netloc.decode()
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if response.is_success and kind not in ("application/json", "text/event-stream"):
        raise ChatBroken(
            f"{place} answered with {kind or 'something of no type'} instead of a reply; check SHOWHOW_MODEL_BASE_URL."
        )
    if isinstance(response.stream, httpx2.SyncByteStream):
        response.stream = _Bounded(response.stream, place)


def _secrets(model: BaseChatModel) -> list[str]:
    """The keys that the model holds, so that no message repeats one."""
    held = [value.get_secret_value() for value in vars(model).values() if isinstance(value, SecretStr)]
    return [value for value in held if len(value) > 4]


def _nobody(words: str) -> None:
    """Words that nobody waits for."""


def _function(tool: Offered) -> dict[str, Any]:
    described = {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}
    return {"type": "function", "function": described}


def _message(message: Message) -> BaseMessage:
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


def _gathered(pieces: Iterator[AIMessageChunk], errand: Errand[AIMessage]) -> AIMessageChunk | None:
    whole: AIMessageChunk | None = None
    for piece in pieces:
        if errand.abandoned:
            return None
        whole = piece if whole is None else whole + piece
        if piece.text:
            errand.say(str(piece.text))
    return whole


def _reply(message: AIMessage, stop: Sequence[str]) -> Reply:
    told_usage: Mapping[str, Any] = message.usage_metadata or {}
    usage = Usage("", 1, told_usage.get("input_tokens"), told_usage.get("output_tokens"), 0.0, None)
    text = str(message.text)
    return Reply(before_stop(text, stop), tuple(_calls(message)), usage, _reason(message))


def _reason(message: AIMessage) -> str:
    return next((str(message.response_metadata[key]) for key in _REASONS if message.response_metadata.get(key)), "")


def _calls(message: AIMessage) -> Iterator[Call]:
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
        yield Call(id_ or f"call_{place + 1}", name or "", _arguments(arguments))


def _arguments(written: Any) -> dict[str, Any] | str:
    if isinstance(written, dict):
        return written
    text = str(written or "")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, dict) else text
