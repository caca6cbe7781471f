"""Scripted models behind real servers that speak the wire formats of several providers, streaming included.

OpenAI (chat completions), vLLM (with a parser of tool calls, or without one), Anthropic, Gemini and Ollama.

    with ProviderServer(AnthropicFormat(), [Says("Paris."), Fails(529, "Overloaded")]) as server:
        chat = server.chat()

The replies are those of tests/servers/model.py; their texts, calls and reasoning are written as each provider does.
"""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, Protocol

from showhow.llm.client import ChatClient, build_chat_client
from showhow.llm.types import ModelProfile
from showhow.llm.usage import TokenPrice
from tests.servers.loopback import QuietServer
from tests.servers.model import Breaks, Cut, Fails, Hangs, QuietHandler, Reply, Says

Event = dict[str, Any]


class WireFormat(Protocol):
    """How a provider writes replies."""

    model: ClassVar[str]
    """The model's name for LangChain."""
    content_type: ClassVar[str]
    """The type of streamed replies."""
    path: ClassVar[str]
    """The path of the base URL."""

    def is_streamed(self, path: str, body: Event) -> bool: ...
    def whole(self, reply: Says) -> Event: ...
    def events(self, reply: Says) -> Iterator[Event]: ...
    def beginning(self, text: str) -> Iterator[Event]:
        """The events of a reply that does not end."""

    def error(self, reply: Fails) -> Event: ...
    def stream_error(self, reply: Breaks) -> Event: ...
    def encode(self, event: Event) -> bytes: ...


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _parse(arguments: dict[str, Any] | str) -> Any:
    return json.loads(arguments) if isinstance(arguments, str) else arguments


class OpenAIFormat:
    """OpenAI's chat completions."""

    model = "openai:scripted"
    content_type = "text/event-stream"
    path = "/v1"
    reasoning_field = "reasoning_content"

    def is_streamed(self, path: str, body: Event) -> bool:
        assert path == "/v1/chat/completions", path
        return bool(body.get("stream"))

    def whole(self, reply: Says) -> Event:
        message = {"role": "assistant", "content": self._text(reply), "tool_calls": self._calls(reply)}
        message |= {name: value for name, value in self._extra(reply).items() if value}
        choice = {"index": 0, "message": message, "finish_reason": self._reason(reply), "logprobs": None}
        return {**self._frame("chat.completion"), "choices": [choice], "usage": self._usage(reply)}

    def events(self, reply: Says) -> Iterator[Event]:
        yield self._chunk({"role": "assistant", "content": ""})
        for name, text in self._extra(reply).items():
            yield from (self._chunk({name: piece}) for piece in _pieces(text, reply.piece))
        yield from (self._chunk({"content": piece}) for piece in _pieces(self._text(reply), reply.piece))
        for call in self._calls(reply):
            function = call["function"]
            yield self._chunk({"tool_calls": [{**call, "function": {"name": function["name"], "arguments": ""}}]})
            for piece in _pieces(function["arguments"], reply.piece):
                yield self._chunk({"tool_calls": [{"index": call["index"], "function": {"arguments": piece}}]})
        if not reply.unfinished:
            yield self._chunk({}, self._reason(reply))
            yield {**self._chunk({}), "choices": [], "usage": self._usage(reply)}
            yield {"done": True}

    def beginning(self, text: str) -> Iterator[Event]:
        return self.events(Says(text, unfinished=True))

    def error(self, reply: Fails) -> Event:
        kind = "invalid_request_error" if reply.status < 500 else "server_error"
        return {"error": {"message": reply.message, "type": kind, "param": None, "code": reply.code}}

    def stream_error(self, reply: Breaks) -> Event:
        return {"error": reply.error}

    def encode(self, event: Event) -> bytes:
        return b"data: [DONE]\n\n" if event == {"done": True} else f"data: {json.dumps(event)}\n\n".encode()

    def _frame(self, kind: str) -> Event:
        return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "scripted"}

    def _chunk(self, delta: Event, reason: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
        return {**self._frame("chat.completion.chunk"), "choices": [choice]}

    def _extra(self, reply: Says) -> dict[str, str]:
        return {
            self.reasoning_field if name == "reasoning_content" else name: text for name, text in reply.extra.items()
        }

    def _text(self, reply: Says) -> str:
        return reply.text

    def _calls(self, reply: Says) -> list[Event]:
        return [
            {
                "index": index,
                "id": f"call_{index}",
                "type": "function",
                "function": {"name": name, "arguments": _write(arguments)},
            }
            for index, (name, arguments) in enumerate(reply.calls)
        ]

    def _reason(self, reply: Says) -> str:
        return reply.reason or ("tool_calls" if self._calls(reply) else "stop")

    def _usage(self, reply: Says) -> Event:
        tokens = reply.usage or (0, 0)
        counts = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
        return {**counts, **reply.details}


def _write(arguments: dict[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


Calls = Sequence[tuple[str, Any]]
CALL_NOTATIONS: dict[str, Callable[[Calls], str]] = {
    "hermes": lambda calls: "\n".join(
        f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>" for name, arguments in calls
    ),
    "llama3_json": lambda calls: "; ".join(
        json.dumps({"name": name, "parameters": arguments}) for name, arguments in calls
    ),
    "pythonic": lambda calls: "[{}]".format(
        ", ".join(f"{name}({', '.join(f'{key}={value!r}' for key, value in args.items())})" for name, args in calls)
    ),
    "mistral": lambda calls: (
        "[TOOL_CALLS]" + json.dumps([{"name": name, "arguments": arguments} for name, arguments in calls])
    ),
    "qwen3_coder": lambda calls: "\n".join(
        f"<tool_call>\n<function={name}>\n"
        + "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in arguments.items())
        + "</function>\n</tool_call>"
        for name, arguments in calls
    ),
    "glm45": lambda calls: "\n".join(
        f"<tool_call>{name}\n"
        + "".join(f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n" for key, value in arguments.items())
        + "</tool_call>"
        for name, arguments in calls
    ),
    "kimi_k2": lambda calls: (
        "<|tool_calls_section_begin|>"
        + "".join(
            f"<|tool_call_begin|>functions.{name}:{number}<|tool_call_argument_begin|>{json.dumps(arguments)}<|tool_call_end|>"
            for number, (name, arguments) in enumerate(calls)
        )
        + "<|tool_calls_section_end|>"
    ),
    "harmony": lambda calls: "".join(
        f"<|start|>assistant<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>"
        f"{json.dumps(arguments)}<|call|>"
        for name, arguments in calls
    ),
}
"""How models write calls; the names are those of vLLM's parsers, which turn them into tool calls."""


@dataclass(frozen=True)
class VllmFormat(OpenAIFormat):
    """vLLM's chat completions; without a parser for the model's notation, its calls stay in the text."""

    notation: str | None = None
    """The notation of a model whose calls the server does not parse; None if it does."""
    reasoning_field = "reasoning"

    def error(self, reply: Fails) -> Event:
        if reply.status == 401:
            return {"error": "Unauthorized"}
        if reply.status == 429:
            # The gateway before the server.
            return {"detail": reply.message}
        kinds = {400: "BadRequestError", 404: "NotFoundError"}
        kind = kinds.get(reply.status, "InternalServerError")
        return {"error": {"message": reply.message, "type": kind, "param": None, "code": reply.status}}

    def stream_error(self, reply: Breaks) -> Event:
        error = {"message": reply.error["message"], "type": "InternalServerError", "param": None, "code": 500}
        return {"error": error}

    def _text(self, reply: Says) -> str:
        if self.notation is None or not reply.calls:
            return reply.text
        return "\n".join(filter(None, [reply.text, CALL_NOTATIONS[self.notation](reply.calls)]))

    def _calls(self, reply: Says) -> list[Event]:
        return super()._calls(reply) if self.notation is None else []


class AnthropicFormat:
    """Anthropic's messages."""

    model = "anthropic:scripted"
    content_type = "text/event-stream"
    path = ""

    def is_streamed(self, path: str, body: Event) -> bool:  # noqa: ARG002 - others look at it
        return bool(body.get("stream"))

    def whole(self, reply: Says) -> Event:
        return {**self._message(reply), "content": self._blocks(reply), "stop_reason": self._reason(reply)}

    def events(self, reply: Says) -> Iterator[Event]:
        yield {"type": "message_start", "message": self._message(reply)}
        for index, block in enumerate(self._blocks(reply)):
            kind = block["type"]
            content = json.dumps(block["input"]) if kind == "tool_use" else block[kind]
            start = {**block, "input": {}} if kind == "tool_use" else {**block, kind: ""}
            yield {"type": "content_block_start", "index": index, "content_block": start}
            for piece in _pieces(content, reply.piece):
                delta = {
                    "text": {"type": "text_delta", "text": piece},
                    "thinking": {"type": "thinking_delta", "thinking": piece},
                }
                parts = delta.get(kind, {"type": "input_json_delta", "partial_json": piece})
                yield {"type": "content_block_delta", "index": index, "delta": parts}
            yield {"type": "content_block_stop", "index": index}
        if not reply.unfinished:
            usage = {**self._message(reply)["usage"], "output_tokens": (reply.usage or (0, 0))[1]}
            yield {
                "type": "message_delta",
                "delta": {"stop_reason": self._reason(reply), "stop_sequence": None},
                "usage": usage,
            }
            yield {"type": "message_stop"}

    def beginning(self, text: str) -> Iterator[Event]:
        return (event for event in self.events(Says(text, unfinished=True)) if event["type"] != "content_block_stop")

    def error(self, reply: Fails) -> Event:
        return {"type": "error", "error": {"type": reply.code or "invalid_request_error", "message": reply.message}}

    def stream_error(self, reply: Breaks) -> Event:
        return {"type": "error", "error": reply.error}

    def encode(self, event: Event) -> bytes:
        return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()

    def _message(self, reply: Says) -> Event:
        usage = {
            "input_tokens": (reply.usage or (0, 0))[0],
            "output_tokens": (reply.usage or (0, 1))[1],
            **reply.details,
        }
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": []}
        return {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}

    def _blocks(self, reply: Says) -> list[Event]:
        thinking = reply.extra.get("reasoning_content")
        blocks: list[Event] = [{"type": "thinking", "thinking": thinking, "signature": "c2ln"}] if thinking else []
        blocks += [{"type": "text", "text": reply.text}] if reply.text else []
        return blocks + [
            {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": _parse(arguments)}
            for number, (name, arguments) in enumerate(reply.calls, 1)
        ]

    def _reason(self, reply: Says) -> str:
        return reply.reason or ("tool_use" if reply.calls else "end_turn")


class GeminiFormat:
    """Gemini's generateContent."""

    model = "google_genai:scripted"
    content_type = "text/event-stream"
    path = ""

    def is_streamed(self, path: str, body: Event) -> bool:  # noqa: ARG002 - others look at it
        return "streamGenerateContent" in path

    def whole(self, reply: Says) -> Event:
        return self._chunk(self._parts(reply), reply)

    def events(self, reply: Says) -> Iterator[Event]:
        for part in self._parts(reply):
            if "text" in part:
                for piece in _pieces(part["text"], reply.piece):
                    yield self._chunk([{**part, "text": piece}], None)
            else:
                yield self._chunk([part], None)
        if not reply.unfinished:
            yield self._chunk([], reply)

    def beginning(self, text: str) -> Iterator[Event]:
        return self.events(Says(text, unfinished=True))

    def error(self, reply: Fails) -> Event:
        error: Event = {"code": reply.status, "message": reply.message, "status": reply.code or "INVALID_ARGUMENT"}
        if "Retry-After" in reply.headers:
            kind = "type.googleapis.com/google.rpc.RetryInfo"
            error["details"] = [{"@type": kind, "retryDelay": f"{reply.headers['Retry-After']}s"}]
        return {"error": error}

    def stream_error(self, reply: Breaks) -> Event:
        return {"error": reply.error}

    def encode(self, event: Event) -> bytes:
        return f"data: {json.dumps(event)}\r\n\r\n".encode()

    def _parts(self, reply: Says) -> list[Event]:
        thinking = reply.extra.get("reasoning_content")
        parts: list[Event] = [{"text": thinking, "thought": True}] if thinking else []
        parts += [{"text": reply.text}] if reply.text else []
        return parts + [{"functionCall": {"name": name, "args": _parse(arguments)}} for name, arguments in reply.calls]

    def _chunk(self, parts: Sequence[Event], end: Says | None) -> Event:
        candidate: Event = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
        chunk: Event = {"candidates": [candidate], "modelVersion": "scripted"}
        if end is not None:
            candidate["finishReason"] = end.reason or "STOP"
            tokens = end.usage or (0, 0)
            counts = {"promptTokenCount": tokens[0], "candidatesTokenCount": tokens[1], "totalTokenCount": sum(tokens)}
            chunk["usageMetadata"] = {**counts, **end.details}
        return chunk


class OllamaFormat:
    """Ollama's chat, which is always streamed by its client."""

    model = "ollama:scripted"
    content_type = "application/x-ndjson"
    path = ""

    def is_streamed(self, path: str, body: Event) -> bool:  # noqa: ARG002 - others look at it
        return bool(body.get("stream", True))

    def whole(self, reply: Says) -> Event:
        message: Event = {"role": "assistant", "content": reply.text, "tool_calls": self._calls(reply)}
        return {**self._event(message), **self._end(reply)}

    def events(self, reply: Says) -> Iterator[Event]:
        for piece in _pieces(reply.extra.get("reasoning_content", ""), reply.piece):
            yield self._event({"role": "assistant", "content": "", "thinking": piece})
        if reply.logprobs is None:
            for piece in _pieces(reply.text, reply.piece):
                yield self._event({"role": "assistant", "content": piece})
        for token, logprob in reply.logprobs or ():
            message = self._event({"role": "assistant", "content": token})
            yield {**message, "logprobs": [{"token": token, "logprob": logprob}]}
        if reply.calls:
            yield self._event({"role": "assistant", "content": "", "tool_calls": self._calls(reply)})
        if not reply.unfinished:
            yield {**self._event({"role": "assistant", "content": ""}), **self._end(reply)}

    def beginning(self, text: str) -> Iterator[Event]:
        return self.events(Says(text, unfinished=True))

    def error(self, reply: Fails) -> Event:
        return {"error": reply.message}

    def stream_error(self, reply: Breaks) -> Event:
        return {"error": reply.error["message"]}

    def encode(self, event: Event) -> bytes:
        return json.dumps(event).encode() + b"\n"

    def _event(self, message: Event) -> Event:
        return {"model": "scripted", "created_at": "2026-11-22T10:00:00Z", "message": message, "done": False}

    def _end(self, reply: Says) -> Event:
        tokens = reply.usage or (0, 0)
        counts = {"prompt_eval_count": tokens[0], "eval_count": tokens[1], "total_duration": 1}
        return {"done": True, "done_reason": reply.reason or "stop", **counts}

    def _calls(self, reply: Says) -> list[Event]:
        return [{"function": {"name": name, "arguments": _parse(arguments)}} for name, arguments in reply.calls]


class ProviderServer:
    """A server with a script of replies; use it with `with`."""

    def __init__(self, wire_format: WireFormat, script: Sequence[Reply]) -> None:
        self.wire_format = wire_format
        self.script = script
        self.requests: list[Event] = []
        self.closing = threading.Event()
        self.lock = threading.Lock()
        self._http = _Server(("127.0.0.1", 0), self)

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._http.server_port}{self.wire_format.path}"

    def chat(self, *, seconds: float = 30.0, price: TokenPrice | None = None) -> ChatClient:
        """A client of this server through the provider's own package."""
        profile = ModelProfile(self.wire_format.model, self.url, "planted-key-7f31", seconds, price=price)
        return build_chat_client(profile)

    def next_reply(self, body: Event) -> Reply:
        """Record the request and choose its reply."""
        with self.lock:
            self.requests.append(body)
            place = len(self.requests) - 1
        return self.script[place] if place < len(self.script) else Fails(400, "the script is over")

    def __enter__(self) -> "ProviderServer":
        self._serving = threading.Thread(target=self._http.serve_forever, daemon=True)
        self._serving.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._http.shutdown()
        self._serving.join()
        self._http.server_close()


class _Server(QuietServer):
    def __init__(self, address: tuple[str, int], provider: ProviderServer) -> None:
        self.provider = provider
        super().__init__(address, _Handler)


class _Handler(QuietHandler):
    server: _Server

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        """Answer a request for a reply."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        provider, wire_format = self.server.provider, self.server.provider.wire_format
        reply = provider.next_reply(body)
        streamed = wire_format.is_streamed(self.path, body)
        if isinstance(reply, Fails):
            self._send(reply.status, json.dumps(wire_format.error(reply)).encode(), reply.headers)
        elif isinstance(reply, Says) and not streamed:
            self._send(200, json.dumps(wire_format.whole(reply)).encode(), reply.headers)
        elif isinstance(reply, Says):
            self._stream(list(wire_format.events(reply)), ended=True)
        elif isinstance(reply, Breaks) and streamed:
            self._stream([*wire_format.beginning(reply.text), wire_format.stream_error(reply)], ended=True)
        elif isinstance(reply, Cut) and streamed:
            self._stream(list(wire_format.beginning(reply.text)), ended=False)
        elif isinstance(reply, Hangs):
            provider.closing.wait()
            self.close_connection = True
        else:
            self.close_connection = True

    def _send(self, status: int, body: bytes, headers: Any) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, events: Sequence[Event], *, ended: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", self.server.provider.wire_format.content_type)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        content = b"".join(self.server.provider.wire_format.encode(event) for event in events)
        # In odd chunks, which split events and characters.
        for start in range(0, len(content), 37):
            chunk = content[start : start + 37]
            self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
        if ended:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True
