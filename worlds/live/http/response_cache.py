"""Every response with its time, in SQLite: a cache for live work, and the source for offline work and replay."""

import hashlib
import json
import sqlite3
import threading
import zlib
from datetime import UTC, datetime
from pathlib import Path

from worlds.live.http.request import HttpResponse
from worlds.source import SourceUnavailable

RESPONSE_CACHE_FILE = "answers.sqlite"
_SCHEMA = """
create table if not exists bodies (digest blob primary key, packed blob not null);
create table if not exists answers (
    key blob not null, moment real not null, asked text not null, url text not null, status integer not null,
    headers text not null, body blob not null references bodies(digest), primary key (key, moment)
) without rowid;
"""
_STORED_HEADERS = ("content-type", "content-language", "last-modified")


class ResponseCache:
    """A file of answers beside world.toml; safe for many threads and several processes."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        try:
            self._connection = sqlite3.connect(file, timeout=20, isolation_level=None, check_same_thread=False)
            self._connection.execute("pragma journal_mode = wal")
            self._connection.execute("pragma synchronous = normal")
            self._connection.executescript(_SCHEMA)
        except sqlite3.Error as broken:
            raise self._cache_error("opened", broken) from broken

    def get_latest(self, key: str, until: datetime | None = None) -> HttpResponse | None:
        """The latest response to the request of that key, received by `until`; None if there is none."""
        query = (
            "select url, status, headers, packed, moment from answers join bodies on bodies.digest = answers.body "
            "where key = ? and moment <= ? order by moment desc limit 1"
        )
        last = until.timestamp() if until is not None else float("inf")
        try:
            with self._lock:
                row = self._connection.execute(query, (_sha256_digest(key.encode()), last)).fetchone()
            if row is None:
                return None
            url, status, headers, packed, moment = row
            response_headers, body = json.loads(headers), zlib.decompress(packed)
        except (sqlite3.Error, zlib.error, ValueError) as broken:
            raise self._cache_error("read", broken) from broken
        return HttpResponse(url, status, response_headers, body, datetime.fromtimestamp(moment, UTC))

    def store(self, key: str, answer: HttpResponse) -> None:
        """Add a response; none is ever overwritten, and equal bodies are stored once."""
        stored_headers = {n: v for n, v in answer.headers.items() if n in _STORED_HEADERS or n.startswith("x-sparql")}
        body = _sha256_digest(answer.body)
        row = (
            _sha256_digest(key.encode()),
            answer.received_at.timestamp(),
            key,
            answer.url,
            answer.status,
            json.dumps(stored_headers),
            body,
        )
        packed = zlib.compress(answer.body, 3)
        try:
            with self._lock:
                self._connection.execute("begin immediate")
                try:
                    self._connection.execute("insert or ignore into bodies values (?, ?)", (body, packed))
                    self._connection.execute("insert or ignore into answers values (?, ?, ?, ?, ?, ?, ?)", row)
                except sqlite3.Error:
                    self._connection.execute("rollback")
                    raise
                self._connection.execute("commit")
        except sqlite3.Error as broken:
            raise self._cache_error("written", broken) from broken

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    def _cache_error(self, what: str, broken: Exception) -> SourceUnavailable:
        return SourceUnavailable(
            f"The record of answers {self._file} cannot be {what} ({broken}); check the disk and who may write there."
        )


def _sha256_digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()
