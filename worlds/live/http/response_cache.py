"""Recorded HTTP responses with their times, in SQLite: a cache while online, the only source offline and in replay."""

import hashlib
import json
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from showhow.worlds.live.http.request import HttpResponse
from showhow.worlds.source import SourceUnavailable

RESPONSE_CACHE_FILE = "answers.sqlite"
_SCHEMA = """
create table if not exists bodies (digest blob primary key, packed blob not null);
create table if not exists answers (
    key blob not null, moment real not null, asked text not null, url text not null, status integer not null,
    headers text not null, body blob not null references bodies(digest), primary key (key, moment)
) without rowid;
create table if not exists readable_pages (address text primary key) without rowid;
"""
_FOREIGN_OBJECTS = (
    "select type, name from sqlite_schema where type in ('trigger', 'view') or sql like 'create virtual%' limit 1"
)
"""What runs when our tables are used: a world's files may be those of anybody's backup."""
_BUSY_TIMEOUT_SECONDS = 20.0
_MAX_BODY_BYTES = 1 << 26
_STORED_HEADERS = ("content-type", "content-language", "last-modified")
_STORED_PREFIXES = ("x-sparql", "x-sql", "x-neptune-status")


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch the file to a -wal; SQLite itself does not wait where another connection is just doing so."""
    deadline = time.monotonic() + _BUSY_TIMEOUT_SECONDS
    while True:
        try:
            connection.execute("pragma journal_mode = wal")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


class ResponseCache:
    """The recorded responses of one world, in a file beside world.toml; safe for threads and processes."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        try:
            self._connection = sqlite3.connect(
                file, timeout=_BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
            )
            for kind, name in self._connection.execute(_FOREIGN_OBJECTS):
                raise sqlite3.DatabaseError(f"it has the {kind} {name!r}, which Showhow did not make")
            _use_write_ahead_log(self._connection)
            self._connection.execute("pragma synchronous = normal")
            self._connection.executescript(f"begin immediate; {_SCHEMA} commit;")
        except sqlite3.Error as error:
            raise self._cache_error("opened", error) from error

    def get_latest(self, key: str, until: datetime | None = None) -> HttpResponse | None:
        """The latest response to the request with this key, received by `until`; None if there is none."""
        query = (
            "select url, status, headers, packed, moment from answers join bodies on bodies.digest = answers.body "
            "where key = ? and moment <= ? order by moment desc limit 1"
        )
        latest = until.timestamp() if until is not None else float("inf")
        try:
            with self._lock:
                row = self._connection.execute(query, (_sha256_digest(key.encode()), latest)).fetchone()
            if row is None:
                return None
            url, status, headers, packed, moment = row
            return HttpResponse(url, status, json.loads(headers), _unpack(packed), datetime.fromtimestamp(moment, UTC))
        except (sqlite3.Error, zlib.error, ValueError, TypeError, OverflowError, RecursionError) as error:
            raise self._cache_error("read", error) from error

    def store(self, key: str, response: HttpResponse) -> None:
        """Add a response; none is ever overwritten, and equal bodies are stored once."""
        stored_headers = {
            n: v for n, v in response.headers.items() if n in _STORED_HEADERS or n.startswith(_STORED_PREFIXES)
        }
        body = _sha256_digest(response.body)
        row = (
            _sha256_digest(key.encode()),
            response.received_at.timestamp(),
            key,
            response.url,
            response.status,
            json.dumps(stored_headers),
            body,
        )
        packed = zlib.compress(response.body, 3)
        with self._transaction():
            self._connection.execute("insert or ignore into bodies values (?, ?)", (body, packed))
            self._connection.execute("insert or ignore into answers values (?, ?, ?, ?, ?, ?, ?)", row)

    def add_readable_pages(self, addresses: Iterable[str]) -> None:
        """Remember addresses of web pages that a search returned or a person typed."""
        new_addresses = [address for address in addresses if not self.is_readable_page(address)]
        if new_addresses:
            with self._transaction():
                self._connection.executemany(
                    "insert or ignore into readable_pages values (?)", [(address,) for address in new_addresses]
                )

    def is_readable_page(self, address: str) -> bool:
        """Whether `add_readable_pages` was called with this address, by any process."""
        try:
            with self._lock:
                row = self._connection.execute("select 1 from readable_pages where address = ?", (address,)).fetchone()
        except sqlite3.Error as error:
            raise self._cache_error("read", error) from error
        return row is not None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Commit what is written inside; SourceUnavailable, with nothing written, if that fails."""
        try:
            with self._lock:
                self._connection.execute("begin immediate")
                try:
                    yield
                except sqlite3.Error:
                    self._connection.execute("rollback")
                    raise
                self._connection.execute("commit")
        except sqlite3.Error as error:
            raise self._cache_error("written", error) from error

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _cache_error(self, action: str, error: Exception) -> SourceUnavailable:
        return SourceUnavailable(
            f"The response cache {self._file} cannot be {action} ({error}); check the disk and its write permissions."
        )


def _unpack(packed: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    body = unpacker.decompress(packed, _MAX_BODY_BYTES)
    if not unpacker.eof:
        raise ValueError(f"a response is cut off, or has more than {_MAX_BODY_BYTES:,} bytes")
    return body


def _sha256_digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()
