"""A scripted language model behind a real OpenAI-compatible server on loopback: the stand-in for every model in tests.

    with ModelServer([Says("Paris."), Says(calls=[("read", {"title": "Paris", "question": "Who?"})])]) as server:
        chat = server.chat()                      # a ChatClient of it; or use server.url as base URL
        chat.ask([Message("user", "Which city?")])
        assert server.requests[0].body["messages"][0]["content"] == "Which city?"

A script is a list of replies, sent one after the other (a request beyond its end is answered 400 "the script is over",
which no client repeats), or a function from a Request to a reply, called in the thread of each request, so that many
may be answered at once. The server streams where the request asks for it, and replies in one piece where it does not.

Replies, all with `latency` (seconds of waiting before the first byte):
  Says(text, calls, usage, reason)  a good one. `calls` are (name, arguments) pairs: arguments as a dict, or a text that
                                    is sent as it is (bad JSON). usage is (input, output) tokens, None to tell none.
                                    Words come in pieces of `piece` characters, `pause` seconds apart. Stop sequences of
                                    the request are honoured unless `deaf`. `extra` are further fields of the message,
                                    such as reasoning_content, `details` further fields of the usage, and `headers`
                                    those of the response. A stream ends without its final chunk if `unfinished`.
                                    `logprobs` are (token, log-probability) pairs for requests that ask for them.
  Says("")                          an empty message
  Fails(status, message, headers)   an error as such servers report it: 401, 404, 429 with {"Retry-After": "1"}, 500 ...
  Cut(text)                         the beginning of a good reply, then the connection is closed in its midst; None
                                    closes a stream before its first event
  Breaks(text, error)               the beginning of a streamed reply, then an error event; if not streamed, an error
                                    with status 200
  Hangs()                           nothing at all until the server is closed
  Trickles()                        a reply that comes byte by byte for ever and never ends
  Sends(body, kind, status)         any bytes of any content type

`key` makes the server refuse others with 401 (and, as some servers do, repeat the wrong key in the message), `models`
makes it answer 404 for names that are not among them. Requests are recorded in the order of their arrival.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any

from showhow.llm.client import ChatClient, build_chat_client
from showhow.llm.types import ModelProfile
from showhow.llm.usage import TokenPrice
from tests.servers.loopback import QuietServer


@dataclass(frozen=True)
class Request:
    """One request: the JSON body, the headers (names in lower case), and its number from 0."""

    body: dict[str, Any]
    headers: Mapping[str, str]
    place: int

    @property
    def prompt(self) -> str:
        """The texts of all messages, joined."""
        return "\n".join(str(message.get("content") or "") for message in self.body["messages"])

    @property
    def tools(self) -> list[str]:
        """The names of the offered tools."""
        return [tool["function"]["name"] for tool in self.body.get("tools", ())]


@dataclass(frozen=True)
class Says:
    """A complete reply."""

    text: str = ""
    calls: Sequence[tuple[str, dict[str, Any] | str]] = ()
    usage: tuple[int, int] | None = (100, 10)
    reason: str | None = None
    latency: float = 0.0
    piece: int = 7
    pause: float = 0.0
    deaf: bool = False
    extra: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    unfinished: bool = False
    logprobs: Sequence[tuple[str, float | None]] | None = None


@dataclass(frozen=True)
class Fails:
    """A response with an error status."""

    status: int
    message: str = "something is wrong"
    headers: Mapping[str, str] = field(default_factory=dict)
    code: str | None = None
    latency: float = 0.0
    type_: str = "error"


@dataclass(frozen=True)
class Cut:
    """A reply whose connection is closed after `text`."""

    text: str | None = "Half a"
    latency: float = 0.0


@dataclass(frozen=True)
class Breaks:
    """A streamed reply that ends with an error event."""

    text: str
    error: Mapping[str, Any]
    latency: float = 0.0


@dataclass(frozen=True)
class Hangs:
    """No response."""

    latency: float = 0.0


@dataclass(frozen=True)
class Trickles:
    """An endless reply, one byte every `pause` seconds."""

    pause: float = 0.05
    latency: float = 0.0


@dataclass(frozen=True)
class Sends:
    """A response with these bytes."""

    body: bytes
    kind: str = "text/html"
    status: int = 200
    latency: float = 0.0


Reply = Says | Fails | Cut | Breaks | Hangs | Trickles | Sends
Script = Sequence[Reply] | Callable[[Request], Reply]


class ModelServer:
    """The server; use it with `with`, or start() and close() it."""

    def __init__(self, script: Script, *, key: str | None = None, models: Sequence[str] = (), port: int = 0) -> None:
        self.script = script
        self.requests: list[Request] = []
        self.closing = threading.Event()
        self._key = key
        self._models = models
        self._lock = threading.Lock()
        self._serving: threading.Thread | None = None
        self._http = _Server(("127.0.0.1", port), self)

    @property
    def url(self) -> str:
        """The base URL for clients."""
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def chat(
        self, name: str = "scripted", *, key: str | None = None, seconds: float = 60.0, price: TokenPrice | None = None
    ) -> ChatClient:
        """A client of this server."""
        return build_chat_client(ModelProfile(name, self.url, key, seconds, price=price))

    def start(self) -> "ModelServer":
        """Serve in a background thread."""
        self._serving = threading.Thread(target=self._http.serve_forever, daemon=True)
        self._serving.start()
        return self

    def close(self) -> None:
        """Stop serving; open requests lose their connection."""
        self.closing.set()
        if self._serving is not None:
            self._http.shutdown()
            self._serving.join()
        self._http.server_close()

    def __enter__(self) -> "ModelServer":
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def reply_to(self, body: dict[str, Any], headers: Mapping[str, str]) -> tuple[Request, Reply]:
        """Record the request and choose its response."""
        with self._lock:
            request = Request(body, headers, len(self.requests))
            self.requests.append(request)
        key = headers.get("authorization", "").removeprefix("Bearer ")
        if self._key is not None and key != self._key:
            return request, Fails(401, f"Incorrect API key provided: {key}.", code="invalid_api_key")
        if self._models and body["model"] not in self._models:
            return request, Fails(404, f"The model {body['model']} does not exist.", code="model_not_found")
        if callable(self.script):
            return request, self.script(request)
        if request.place >= len(self.script):
            return request, Fails(400, f"the script is over: it has {len(self.script)} replies")
        return request, self.script[request.place]


class QuietHandler(BaseHTTPRequestHandler):
    """A handler that sends at once and logs nothing."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the class above
        """Log nothing."""


class _Server(QuietServer):
    def __init__(self, address: tuple[str, int], model: ModelServer) -> None:
        self.model = model
        super().__init__(address, _Handler)


class _Handler(QuietHandler):
    server: _Server

    def do_GET(self) -> None:
        """List the models."""
        self._whole(200, "application/json", _json({"object": "list", "data": [{"id": "scripted", "object": "model"}]}))

    def do_POST(self) -> None:
        """Answer a request for a chat completion."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not self.path.endswith("/chat/completions"):
            self._whole(404, "application/json", _json({"error": {"message": f"nothing at {self.path}"}}))
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        request, reply = self.server.model.reply_to(body, headers)
        if reply.latency:
            self.server.model.closing.wait(reply.latency)
        self._give(request, reply)

    def _give(self, request: Request, reply: Reply) -> None:
        if isinstance(reply, Says):
            self._say(request, reply)
        elif isinstance(reply, Fails):
            error = {"message": reply.message, "type": reply.type_, "param": None, "code": reply.code}
            self._whole(reply.status, "application/json", _json({"error": error}), reply.headers)
        elif isinstance(reply, Sends):
            self._whole(reply.status, reply.kind, reply.body)
        elif isinstance(reply, Cut):
            self._cut(request, reply)
        elif isinstance(reply, Breaks):
            self._break(request, reply)
        elif isinstance(reply, Trickles):
            self._trickle(reply)
        else:
            self.server.model.closing.wait()
            self.close_connection = True

    def _say(self, request: Request, reply: Says) -> None:
        text = reply.text if reply.deaf else _stopped(reply.text, request.body.get("stop"))
        if not request.body.get("stream"):
            self._whole(200, "application/json", _json(_completion(request, text, reply)), reply.headers)
            return
        self._begin_stream(reply.headers)
        for chunk in _chunks(request, text, reply):
            self._event(chunk)
            self.server.model.closing.wait(reply.pause)
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _break(self, request: Request, reply: Breaks) -> None:
        if not request.body.get("stream"):
            self._whole(200, "application/json", _json({"error": reply.error}))
            return
        self._begin_stream()
        for chunk in _deltas(request, [{"role": "assistant", "content": ""}, {"content": reply.text}]):
            self._event(chunk)
        self._event({"error": reply.error})
        self._chunk(b"")

    def _cut(self, request: Request, reply: Cut) -> None:
        if request.body.get("stream"):
            self._begin_stream()
            deltas = [] if reply.text is None else [{"role": "assistant", "content": ""}, {"content": reply.text}]
            for chunk in _deltas(request, deltas):
                self._event(chunk)
        else:
            text = reply.text or ""
            whole = _json(_completion(request, text, Says(text)))
            self._begin(200, "application/json", {"Content-Length": str(len(whole))})
            self.wfile.write(whole[: len(whole) // 2])
        self.close_connection = True

    def _trickle(self, reply: Trickles) -> None:
        self._begin(200, "application/json", {"Transfer-Encoding": "chunked"})
        while not self.server.model.closing.wait(reply.pause):
            self._chunk(b" ")

    def _whole(self, status: int, kind: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self._begin(status, kind, {"Content-Length": str(len(body)), **(headers or {})})
        self.wfile.write(body)

    def _begin(self, status: int, kind: str, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _begin_stream(self, headers: Mapping[str, str] | None = None) -> None:
        self._begin(200, "text/event-stream", {**(headers or {}), "Transfer-Encoding": "chunked"})

    def _event(self, event: Mapping[str, Any]) -> None:
        self._chunk(b"data: " + _json(event) + b"\n\n")

    def _chunk(self, body: bytes) -> None:
        self.wfile.write(f"{len(body):x}\r\n".encode() + body + b"\r\n")


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _stopped(text: str, stop: str | Sequence[str] | None) -> str:
    stops = [stop] if isinstance(stop, str) else stop or ()
    return text[: min((place for place in map(text.find, stops) if place >= 0), default=len(text))]


def _usage(usage: tuple[int, int], details: Mapping[str, Any]) -> dict[str, Any]:
    return {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage), **details}


def _calls(reply: Says) -> list[dict[str, Any]]:
    return [
        {
            "index": place,
            "id": f"call_{place + 1}",
            "type": "function",
            "function": {"name": name, "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments)},
        }
        for place, (name, arguments) in enumerate(reply.calls)
    ]


def _reason(reply: Says) -> str:
    return reply.reason or ("tool_calls" if reply.calls else "stop")


def _completion(request: Request, text: str, reply: Says) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text, **reply.extra}
    if reply.calls:
        message["tool_calls"] = _calls(reply)
    whole = {
        "id": f"chatcmpl-{request.place}",
        "object": "chat.completion",
        "created": 1,
        "model": request.body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": _reason(reply), **_logprobs(request, reply)}],
    }
    return whole if reply.usage is None else {**whole, "usage": _usage(reply.usage, reply.details)}


def _logprobs(request: Request, reply: Says) -> dict[str, Any]:
    """The tokens with their log-probabilities, if they are asked for."""
    if reply.logprobs is None or not request.body.get("logprobs"):
        return {}
    tokens = [
        {"token": token, "logprob": logprob, "bytes": list(token.encode()), "top_logprobs": []}
        for token, logprob in reply.logprobs
    ]
    return {"logprobs": {"content": tokens, "refusal": None}}


def _deltas(request: Request, deltas: Sequence[dict[str, Any]], reason: str | None = None) -> Iterator[dict[str, Any]]:
    for delta in deltas:
        yield {
            "id": f"chatcmpl-{request.place}",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": request.body["model"],
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        }


def _chunks(request: Request, text: str, reply: Says) -> Iterator[dict[str, Any]]:
    """The reply in pieces: words, then each call's name, then its arguments, the reason, and the usage if asked for."""
    pieces = [text[start : start + reply.piece] for start in range(0, len(text), reply.piece)]
    for name, value in reply.extra.items():
        parts = [value[start : start + reply.piece] for start in range(0, len(value), reply.piece)]
        yield from _deltas(request, [{"role": "assistant", "content": None, name: part} for part in parts])
    yield from _deltas(request, [{"role": "assistant", "content": ""}, *({"content": piece} for piece in pieces)])
    for call in _calls(reply):
        function = call["function"]
        started = {**call, "function": {"name": function["name"], "arguments": ""}}
        written = function["arguments"]
        parts = [written[start : start + reply.piece] for start in range(0, len(written), reply.piece)]
        more = [{"tool_calls": [{"index": call["index"], "function": {"arguments": part}}]} for part in parts]
        yield from _deltas(request, [{"tool_calls": [started]}, *more])
    if not reply.unfinished:
        yield from _deltas(request, [{}], _reason(reply))
    include_usage = (request.body.get("stream_options") or {}).get("include_usage")
    if include_usage and reply.usage is not None:
        (last,) = _deltas(request, [{}])
        yield {**last, "choices": [], "usage": _usage(reply.usage, reply.details)}
