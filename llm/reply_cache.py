"""A model's replies kept on disk as they come, so that work that was broken off is gone on with and not paid twice."""

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from types import TracebackType

from llm.client import ChatClient
from llm.types import ChatModel, ChatReply, ChatRequest, ModelToolCall
from llm.usage import Usage


class ReplyCache:
    """The replies of one piece of work, in an SQLite file; safe to share between threads."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._lock = Lock()
        self._connection = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        # A reply that was paid for survives a loss of power.
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("CREATE TABLE IF NOT EXISTS reply (key TEXT PRIMARY KEY, reply TEXT NOT NULL)")
        rows = self._connection.execute("SELECT reply FROM reply")
        self._total_usage = sum((Usage(**json.loads(told)["usage"]) for (told,) in rows), Usage())

    def __enter__(self) -> "ReplyCache":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def total_usage(self) -> Usage:
        """What the replies that are kept took, whoever asked for them and when."""
        return self._total_usage

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def caching_client(self, chat: ChatClient, scope: str) -> ChatClient:
        """The model with its replies kept under `scope`: in each new Chat of a scope, the first request that is like a
        kept one has its reply, the second the second one's, and so on.
        """
        return chat.with_model_wrapper(lambda model: _CachingModel(model, self, scope))

    def get(self, key: str) -> ChatReply | None:
        """The reply that is kept under the key."""
        with self._lock:
            found = self._connection.execute("SELECT reply FROM reply WHERE key = ?", (key,)).fetchone()
        if found is None:
            return None
        told = json.loads(found[0])
        calls = tuple(ModelToolCall(**call) for call in told["calls"])
        return ChatReply(told["text"], calls, Usage(**told["usage"]), told["stopped"])

    def put(self, key: str, reply: ChatReply) -> None:
        """Keep the reply; it is on disk when this returns."""
        with self._lock:
            self._connection.execute("INSERT OR REPLACE INTO reply VALUES (?, ?)", (key, json.dumps(asdict(reply))))
            self._total_usage += reply.usage


class _CachingModel:
    """A model that is asked only what has no kept reply."""

    def __init__(self, model: ChatModel, kept: ReplyCache, scope: str) -> None:
        self._model = model
        self._cache = kept
        self._scope = scope
        self._request_counts: Counter[str] = Counter()
        self._lock = Lock()

    def reply(self, request: ChatRequest, seconds: float) -> ChatReply:
        """The kept reply, or the model's own, which is kept when it says something."""
        key = self._cache_key(request)
        reply = self._cache.get(key)
        if reply is not None:
            _emit_text(request.on_text, reply.text)
            return reply
        reply = self._model.reply(request, seconds)
        if reply.text.strip() or reply.calls:
            self._cache.put(key, reply)
        return reply

    def _cache_key(self, request: ChatRequest) -> str:
        told = [
            self._scope,
            [asdict(message) for message in request.messages],
            list(request.stop),
            [[tool.name, tool.description, dict(tool.schema)] for tool in request.tools],
        ]
        digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
        with self._lock:
            self._request_counts[digest] += 1
            return f"{digest}:{self._request_counts[digest]}"


def _emit_text(on_text: Callable[[str], None] | None, text: str) -> None:
    if on_text is not None and text:
        on_text(text)
