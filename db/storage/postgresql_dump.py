"""Read the rows of a dump that pg_dump made, without running any of its SQL.

A dump is a program: its definitions, functions, triggers and even its COPY statements are SQL of whoever made it, which
pg_restore would run with our rights. So pg_restore writes one table after the other as text, connected to nothing; of
that, the lines of rows are taken, and sent with a COPY statement of our own.
"""

import re
import resource
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer
from typing import IO, Any

import psycopg
from psycopg import sql

from showhow.db.database import StoreError, StoreUnavailable
from showhow.db.storage.backup import client_command, client_failure, run_client_program
from showhow.db.storage.foreign_objects import LEFT_OUT, POSTGRESQL_ACTIVE
from showhow.db.storage.schema import MIGRATIONS_TABLE, require_known_revision

_NAME = rb'(?:[A-Za-z_][A-Za-z0-9_$]*|"[A-Za-z0-9_$]+")'
_COPY = re.compile(
    rb"COPY (" + _NAME + rb")\.(" + _NAME + rb") \((" + _NAME + rb"(?:, " + _NAME + rb")*)\) FROM stdin;\n"
)
_ENCODING = re.compile(rb"SET client_encoding = '([A-Za-z0-9_]{1,30})';\n")
_LISTED = re.compile(r"\d+; \d+ \d+ ([A-Z][A-Z ]*[A-Z]) (.*)")
_ACTIVE_KINDS = (
    "FUNCTION", "PROCEDURE", "AGGREGATE", "TRIGGER", "EVENT TRIGGER", "RULE", "VIEW", "MATERIALIZED VIEW", "EXTENSION",
    "FOREIGN TABLE", "FOREIGN DATA WRAPPER", "SERVER", "POLICY", "ROW SECURITY", "OPERATOR", "CAST", "TYPE", "DOMAIN",
    "BLOB", "BLOBS", "PROCEDURAL LANGUAGE", "PUBLICATION", "SUBSCRIPTION",
)  # fmt: skip
_QUEUE_SCHEMA = "showhow_queue_"
"""The workers' queue has functions and triggers of its own; it is made anew by the next worker."""
_OURS = {(kind.upper(), " ".join(reversed(name.split(" of ")))) for kind, name in POSTGRESQL_ACTIVE}
"""As pg_restore lists them; they are made anew, too."""
_MAX_NAMED = 5
_MAX_LINE_BYTES = 256 * 1024 * 1024
_MAX_EXPANSION = 200
_FREE_BYTES = 256 * 1024 * 1024
"""The rows have at most so many bytes, and so many times those of the compressed dump; those of pg_dump have less."""
_MIN_SECONDS = 60.0
_BYTES_PER_SECOND = 256 * 1024
_CLIENT_MEMORY_BYTES = 2 * 1024**3
_CHUNK_BYTES = 256 * 1024


class PostgresqlDump:
    """A dump in the custom format; StoreError if it is none of Showhow."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._size = path.stat().st_size
        self.findings = self._list_left_out()
        self._schema: str | None = None
        rows = self._read_revisions()
        if len(rows) != 1 or not re.fullmatch(rb"\w{1,32}\n", rows[0]):
            raise StoreError(f"{path} is no database of Showhow; name a file that `showhow db backup` made")
        self.revision = rows[0].decode().strip()
        require_known_revision(self.revision)

    def _list_left_out(self) -> list[str]:
        listed = run_client_program("pg_restore", ["--list", str(self.path)])
        entries = [match.groups() for match in map(_LISTED.fullmatch, listed.splitlines()) if match]
        named = [
            f"{kind.lower()} {' '.join(name.split()[:-1])[:60]}"
            for kind, name in entries
            if kind in _ACTIVE_KINDS
            and not name.startswith(_QUEUE_SCHEMA)
            and (kind, " ".join(name.split()[1:-1])) not in _OURS
        ]
        if not named:
            return []
        more = f" and {len(named) - _MAX_NAMED} more" if len(named) > _MAX_NAMED else ""
        return [f"{LEFT_OUT}: {'; '.join(named[:_MAX_NAMED])}{more}"]

    def _read_revisions(self) -> list[bytes]:
        with self._table_rows(MIGRATIONS_TABLE) as (columns, _, rows):
            return [row for row, _ in zip(rows, range(2), strict=False)] if columns == ["version_num"] else []

    def copy_rows(self, connection: "psycopg.Connection[Any]", table: str, columns: Sequence[str]) -> None:
        """Copy the rows into the table of that name; columns that are not named are left out."""
        with self._table_rows(table) as (stored, encoding, rows):
            if missing := [column for column in columns if column not in stored]:
                raise StoreError(f"{self.path} has no column {missing[0]} in its table {table}; restore another backup")
            places = None if list(stored) == list(columns) else [stored.index(column) for column in columns]
            statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
                sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
            )
            try:
                with connection.cursor() as cursor:
                    # What a migration stored.
                    cursor.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
                    cursor.execute("SELECT set_config('client_encoding', %s, true)", [encoding])
                    with cursor.copy(statement) as copy:
                        for chunk in _join(rows if places is None else _pick(rows, places)):
                            copy.write(chunk)
                    cursor.execute("SELECT set_config('client_encoding', 'UTF8', true)")
            except psycopg.Error as error:
                message = str(error).strip().partition("\n")[0]
                raise StoreUnavailable(
                    f"rows of the table {table} in {self.path} cannot be stored ({message}); restore another backup"
                ) from error

    @contextmanager
    def _table_rows(self, table: str) -> Iterator[tuple[list[str], str, Iterator[bytes]]]:
        """The columns of a table, the encoding, and its rows as lines of PostgreSQL's text format."""
        schema = [f"--schema={self._schema}"] if self._schema else []
        command, environment = client_command(
            "pg_restore", ["--data-only", *schema, f"--table={table}", "--file=-", str(self.path)]
        )
        with (
            TemporaryFile() as errors,
            subprocess.Popen(  # noqa: S603 - PostgreSQL's own program, connected to nothing
                command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            ) as process,
        ):
            with suppress(ProcessLookupError, AttributeError):  # it has ended; a system without limits of others
                resource.prlimit(process.pid, resource.RLIMIT_AS, (_CLIENT_MEMORY_BYTES, _CLIENT_MEMORY_BYTES))
            timer = Timer(_MIN_SECONDS + self._size / _BYTES_PER_SECOND, process.kill)
            timer.start()
            try:
                lines = self._read_lines(process.stdout)
                columns, encoding = self._find_block(table, lines)
                if columns:
                    yield columns, encoding, self._read_rows(table, lines)
                    if self._find_block(table, lines)[0]:
                        raise StoreError(f"{self.path} has the table {table} twice; restore another backup")
                if process.wait():
                    errors.seek(0)
                    raise client_failure("pg_restore", errors.read(1000).decode(errors="replace"))
            finally:
                timer.cancel()
                process.kill()
        if not columns:
            raise StoreError(f"{self.path} has no rows of a table {table}; restore another backup")

    def _read_lines(self, stream: IO[bytes] | None) -> Iterator[bytes]:
        left = _FREE_BYTES + _MAX_EXPANSION * self._size
        while stream is not None and (line := stream.readline(_MAX_LINE_BYTES)):
            left -= len(line)
            if left < 0 or len(line) == _MAX_LINE_BYTES:
                raise StoreError(f"the rows of {self.path} are far larger than the file; restore another backup")
            yield line

    def _find_block(self, table: str, lines: Iterator[bytes]) -> tuple[list[str], str]:
        """Read up to the rows of the table; returns its columns, none if there are no rows, and the encoding."""
        encoding = "UTF8"
        for line in lines:
            if match := _ENCODING.fullmatch(line):
                encoding = match[1].decode()
            match = _COPY.fullmatch(line)
            if match and _plain(match[2]) == table and self._schema in (None, _plain(match[1])):
                # The revision is read first; the other tables are those beside it.
                self._schema = _plain(match[1])
                return [_plain(column) for column in match[3].split(b", ")], encoding
        return [], encoding

    def _read_rows(self, table: str, lines: Iterator[bytes]) -> Iterator[bytes]:
        for line in lines:
            if line == b"\\.\n":
                return
            yield line
        raise StoreError(f"{self.path} ends within the rows of the table {table}; restore another backup")


def _plain(name: bytes) -> str:
    return name.strip(b'"').decode("ascii")


def _pick(rows: Iterator[bytes], places: Sequence[int]) -> Iterator[bytes]:
    """The fields at those places; a tab within a value is written as two characters."""
    for row in rows:
        fields = row.rstrip(b"\n").split(b"\t")
        if len(fields) <= max(places):
            raise StoreError("a row of the backup has too few fields; restore another backup")
        yield b"\t".join(fields[place] for place in places) + b"\n"


def _join(rows: Iterator[bytes]) -> Iterator[bytes]:
    """Several rows at once."""
    chunk: list[bytes] = []
    size = 0
    for row in rows:
        chunk.append(row)
        size += len(row)
        if size >= _CHUNK_BYTES:
            yield b"".join(chunk)
            chunk, size = [], 0
    yield b"".join(chunk)
