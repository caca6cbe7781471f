"""Values exchanged with a language model: profile, message, request, reply, tool call, text delta."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from llm.usage import TokenPrice, Usage

DEFAULT_TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """Which model, as LangChain's init_chat_model names it, or as an OpenAI-compatible server at `base_url` does."""

    name: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    """For the server at `base_url`; providers' own keys are read by their packages, from the environment."""
    seconds: float = DEFAULT_TIMEOUT_SECONDS
    """How long a reply may take."""
    temperature: float | None = 0.0
    """None leaves it to the provider; some models take no other."""
    price: TokenPrice | None = None


@dataclass(frozen=True, slots=True)
class ModelToolCall:
    """A tool call of the model; `arguments` is the raw text where the model wrote no JSON object."""

    id: str
    name: str
    arguments: dict[str, Any] | str


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation; `role` is system, user, assistant (words and calls) or tool (a call's result)."""

    role: str
    text: str
    calls: tuple[ModelToolCall, ...] = ()
    answers: str = ""
    """Of a tool's message: the id of the call."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What the model replied; `stopped` is why it ended: stop, tool_calls, length, or what else the server says."""

    text: str
    calls: tuple[ModelToolCall, ...]
    usage: Usage
    stopped: str


class ToolSpec(Protocol):
    """A tool as the model is told of it."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def schema(self) -> Mapping[str, Any]:
        """Its arguments as JSON Schema."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request to a model."""

    messages: Sequence[Message]
    stop: Sequence[str]
    tools: Sequence[ToolSpec]
    on_text: Callable[[str], None] | None


class ChatModel(Protocol):
    """A provider's model, safe to share between threads."""

    def reply(self, request: ChatRequest, seconds: float) -> ChatReply:
        """The reply to one request, sent once; its usage has tokens only. A ChatError where there is none."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of what a language model says, as it comes."""

    text: str
