"""The values exchanged with a language model: profile, message, request, reply, tool call, text delta."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from statistics import fmean
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

from showhow.guard.proxy import HttpProxy
from showhow.llm.usage import TokenPrice, Usage

DEFAULT_TIMEOUT_SECONDS = 120.0
DEFAULT_PROFILE_NAME = "default"
"""The profile of the environment's settings, such as SHOWHOW_MODEL."""
NATIVE_PROVIDERS = ("anthropic", "google_genai", "ollama")
"""Providers whose own API is spoken also at a base URL."""


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """How one model is called: provider and name, or its name for the server at `base_url`, its limits.

    Stored and checked by llm/profiles.py, except for the key, which stays in the environment.
    """

    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    """The key of the server; without it, requests have none."""
    seconds: float = DEFAULT_TIMEOUT_SECONDS
    """The time limit of a reply in seconds; a client without a deadline retries no longer than this."""
    temperature: float | None = None
    """None for the provider's default; some models accept no other."""
    price: TokenPrice | None = None
    reply_limit: int | None = None
    """The most tokens of a reply, including its reasoning; None for the provider's default."""
    requests_per_minute: float | None = None
    """The most requests per minute; None to learn the limit from the server."""
    key_variable: str | None = None
    """The environment variable of `api_key`, for messages; None if none is configured."""
    name: str = DEFAULT_PROFILE_NAME
    """The name of the profile, not of the model."""
    reasoning_effort: str | None = None
    """None for the provider's default; models that do not reason accept no other."""
    context_window: int | None = None
    """The most tokens of a prompt with its reply; None to take it from LangChain's data about the model."""
    tokens_per_minute: int | None = None
    """The most tokens of prompts and replies per minute; None to learn the limit from the server."""
    concurrency: int | None = None
    """The most requests under way at the same time; None for no limit."""
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the body of each request to an OpenAI-compatible server."""
    proxy: HttpProxy | None = field(default=None, repr=False)
    """The proxy of this installation, through which the server is reached unless it is on this machine."""
    key_refusal: str | None = None
    """Why the key may not be sent to the server, in one sentence; nothing is asked then."""

    @property
    def parameters(self) -> dict[str, Any]:
        """What determines a reply apart from the model's name and the request, without credentials."""
        values = {"base_url": self.base_url and _strip_credentials(self.base_url), "temperature": self.temperature}
        optional = {
            "reply_limit": self.reply_limit,
            "reasoning_effort": self.reasoning_effort,
            "extra_body": dict(self.extra_body) or None,
        }
        return values | {name: value for name, value in optional.items() if value is not None}

    @property
    def is_openai_compatible(self) -> bool:
        """Whether requests go to OpenAI, or to a server that speaks its API."""
        return self.model.partition(":")[0] not in NATIVE_PROVIDERS


@dataclass(frozen=True, slots=True)
class ModelToolCall:
    """A tool call of the model; `arguments` is the raw text if it is not a JSON object."""

    id: str
    name: str
    arguments: dict[str, Any] | str


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation; `role` is system, user, assistant (text and calls) or tool (a call's result)."""

    role: str
    text: str
    calls: tuple[ModelToolCall, ...] = ()
    answers: str = ""
    """The id of the call whose result a tool message holds."""
    ends_prefix: bool = False
    """Whether later requests begin with the messages up to this one, so that it pays to cache them."""


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """The natural log-probability of a token, which stands in the characters `start` to `end` of the reply's text."""

    start: int
    end: int
    logprob: float


class FinishReason(StrEnum):
    """Why a reply ended."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    """The reply was cut off at a limit of tokens."""
    FILTERED = "content_filter"
    """The model refused to reply, or a filter withheld the reply."""
    INTERRUPTED = "interrupted"
    """The server ended the reply for another reason."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A reply; one with the finish reason LENGTH is incomplete."""

    text: str
    calls: tuple[ModelToolCall, ...]
    usage: Usage
    stopped: str
    """A FinishReason: stop, tool_calls or length."""
    thoughts: str = ""
    """The model's reasoning, which the server sends beside the text and the calls."""
    calls_in_text: bool = False
    """Whether the model wrote the calls as text, from which they were parsed."""
    logprobs: tuple[TokenLogprob, ...] | None = None
    """The tokens of the text that the server gave a log-probability for; None if it gave none at all."""

    def mean_logprob(self, start: int, end: int) -> float | None:
        """The mean log-probability of the tokens of these characters; None unless tokens with one cover all of them."""
        tokens = [token for token in self.logprobs or () if token.start < end and token.end > start]
        covered = start
        for token in tokens:
            if token.start > covered:
                return None
            covered = max(covered, token.end)
        return fmean(token.logprob for token in tokens) if tokens and covered >= end else None


class ToolSpec(Protocol):
    """A tool declaration for the model."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def schema(self) -> Mapping[str, Any]:
        """The arguments as JSON Schema."""


ANY_OBJECT: Mapping[str, Any] = {"type": "object"}
"""The schema of every JSON object, which servers know under a name of its own."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request to a model."""

    messages: Sequence[Message]
    stop: Sequence[str]
    tools: Sequence[ToolSpec]
    on_text: Callable[[str], None] | None
    on_headers: Callable[[Mapping[str, str]], None] | None = None
    """Called with the headers of the response when they arrive; names are in lower case."""
    reply_schema: Mapping[str, Any] | None = None
    """The form of the reply as JSON Schema, which the server enforces; None for text, ANY_OBJECT for any JSON."""
    temperature: float | None = None
    """The temperature of this request; None for that of the profile."""
    logprobs: bool = False
    """Whether the reply shall have the log-probabilities of its tokens."""
    leaves_out_empty_text: bool = False
    """Whether messages with calls and no text have no content, for servers that refuse an empty one."""
    refused_fields: frozenset[str] = frozenset()
    """Fields of the request that the server does not take, and "system" for the role."""


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """One request as JSON values, for recording and hashing; it contains no API key."""

    purpose: str
    model: str
    messages: list[dict[str, Any]]
    parameters: dict[str, Any]
    """The other values that determine the reply: address, temperature, stop sequences, tools and its schema."""

    @classmethod
    def from_request(
        cls, purpose: str, model: str, request: ChatRequest, parameters: Mapping[str, Any]
    ) -> "OutgoingRequest":
        """Convert a request to the model with these parameters."""
        tools = [
            {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}
            for tool in request.tools
        ]
        messages = [_message_to_json(message) for message in request.messages]
        schema = {} if request.reply_schema is None else {"reply_schema": dict(request.reply_schema)}
        temperature = {} if request.temperature is None else {"temperature": request.temperature}
        logprobs = {"logprobs": True} if request.logprobs else {}
        own = {"stop": list(request.stop), "tools": tools, **schema, **temperature, **logprobs}
        return cls(purpose, model, messages, {**parameters, **own})


class ChatModel(Protocol):
    """A provider's model; thread-safe."""

    def reply(self, request: ChatRequest, seconds: float) -> ChatReply:
        """Send the request once; return the reply with its tokens as usage. ChatError if there is no reply."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of a streamed reply."""

    text: str


def _message_to_json(message: Message) -> dict[str, Any]:
    values: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.calls:
        values["tool_calls"] = [asdict(call) for call in message.calls]
    if message.answers:
        values["tool_call_id"] = message.answers
    return values


def _strip_credentials(url: str) -> str:
    """The address without user, password and query, which may contain keys."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


# Providers name the same few things in different words; the first row that shares a word with the reason decides.
_WORDS = (
    (FinishReason.TOOL_CALLS, {"tool", "tools", "function"}),
    (FinishReason.FILTERED, {
        *("filter", "filtered", "refusal", "refused", "safety", "blocked", "blocklist", "prohibited", "recitation"),
        *("spii", "moderation", "guardrail", "language", "sensitive"),
    }),
    (FinishReason.STOP, {"stop", "stopped", "end", "eos", "complete", "completed", "finished", "done"}),
    (FinishReason.LENGTH, {"length", "max", "limit", "window", "tokens"}),
)  # fmt: skip
_FAILED_CALLS = {"malformed", "unexpected", "many", "missing", "invalid", "error"}


def parse_finish_reason(reason: str) -> FinishReason:
    """The finish reason in any provider's words; one that is not known counts as an interruption."""
    words = set(re.findall(r"[a-z]+", reason.casefold()))
    if words & _FAILED_CALLS:
        return FinishReason.INTERRUPTED
    return next((kind for kind, known in _WORDS if words & known), FinishReason.INTERRUPTED)
