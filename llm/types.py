"""The values exchanged with a language model: profile, message, request, reply, tool call, text delta."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

from llm.usage import TokenPrice, Usage

DEFAULT_TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """A model, by the name that LangChain's init_chat_model or the OpenAI-compatible server at `base_url` knows."""

    name: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    """The key for the server at `base_url`; packages of providers read their own keys from the environment."""
    seconds: float = DEFAULT_TIMEOUT_SECONDS
    """Seconds that a reply may take, retries included."""
    temperature: float | None = 0.0
    """None leaves it to the provider; some models accept only their own."""
    price: TokenPrice | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """What determines a reply besides the model's name and the request, without credentials."""
        return {"base_url": self.base_url and _strip_credentials(self.base_url), "temperature": self.temperature}


@dataclass(frozen=True, slots=True)
class ModelToolCall:
    """A tool call of the model; `arguments` is the raw text if the model wrote no JSON object."""

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
    """The id of the call that a tool's message answers."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A reply; `stopped` is the finish reason: stop, tool_calls, length, or the server's own."""

    text: str
    calls: tuple[ModelToolCall, ...]
    usage: Usage
    stopped: str


class ToolSpec(Protocol):
    """A tool as it is described to the model."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def schema(self) -> Mapping[str, Any]:
        """The arguments as JSON Schema."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request to a model."""

    messages: Sequence[Message]
    stop: Sequence[str]
    tools: Sequence[ToolSpec]
    on_text: Callable[[str], None] | None


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """One request as JSON values, as it is recorded and hashed; it holds no key of the provider."""

    purpose: str
    model: str
    messages: list[dict[str, Any]]
    parameters: dict[str, Any]
    """All else that determines the reply: address, temperature, stop sequences and tools."""

    @classmethod
    def from_request(
        cls, purpose: str, model: str, request: ChatRequest, parameters: Mapping[str, Any]
    ) -> "OutgoingRequest":
        """Convert a request to that model with these parameters."""
        tools = [
            {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}
            for tool in request.tools
        ]
        messages = [_message_to_json(message) for message in request.messages]
        return cls(purpose, model, messages, {**parameters, "stop": list(request.stop), "tools": tools})


class ChatModel(Protocol):
    """A provider's model, safe to share between threads."""

    def reply(self, request: ChatRequest, seconds: float) -> ChatReply:
        """Send the request once and return the reply, whose usage has tokens only; ChatError if there is none."""


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
    """The address without user, password and query, where keys may stand."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
