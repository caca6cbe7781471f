"""Triple terms of RDF 1.2, `<<( subject predicate object )>>`: how deep those of a file are within each other.

The graph's library keeps them by recursion, so that a deep one would end the process.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from showhow.worlds.input_files import MalformedFile, open_bytes, reading

MAX_TRIPLE_TERM_DEPTH = 256
_OPENING, _CLOSING = b"<<(", b")>>"
_CHUNK_BYTES = 1 << 20
_LONGEST_TOKEN = 3
_TOKEN = re.compile(rb"""<<\(|\)>>|<<|\"{3}|'{3}|["'#<]|\\.""", re.DOTALL)
"""What is outside of texts, names and comments: their beginnings, and the brackets of triple terms."""
_ENDS = {
    b'"""': re.compile(rb'\\.|"""', re.DOTALL),
    b"'''": re.compile(rb"\\.|'''", re.DOTALL),
    b'"': re.compile(rb'\\.|["\n\r]', re.DOTALL),
    b"'": re.compile(rb"\\.|['\n\r]", re.DOTALL),
    b"#": re.compile(rb"[\n\r]"),
    b"<": re.compile(rb"[>\s]"),
}
"""What ends each of them; after a backslash, nothing does."""


def require_shallow_triple_terms(file: Path) -> None:
    """Raise MalformedFile for a Turtle or N-Triples file whose triple terms are too deep within each other."""
    with open_bytes(file) as stream, reading(file):
        # Of nearly all files, nothing else has to be looked at.
        if _count_openings(stream) <= MAX_TRIPLE_TERM_DEPTH:
            return
    depth = 0
    with open_bytes(file) as stream, reading(file):
        for token in _iterate_brackets(stream):
            depth = depth + 1 if token == _OPENING else max(0, depth - 1)
            if depth > MAX_TRIPLE_TERM_DEPTH:
                reason = f"more than {MAX_TRIPLE_TERM_DEPTH} triple terms are within each other"
                raise MalformedFile(file, None, reason)


def _count_openings(stream: BinaryIO) -> int:
    count, rest = 0, b""
    while chunk := stream.read(_CHUNK_BYTES):
        data = rest + chunk
        count += data.count(_OPENING)
        rest = data[1 - _LONGEST_TOKEN :]
    return count


def _iterate_brackets(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the brackets of triple terms outside of texts, names and comments."""
    pattern, data, is_read = _TOKEN, b"", False
    while not is_read:
        chunk = stream.read(_CHUNK_BYTES)
        is_read = not chunk
        data += chunk
        position = 0
        while match := pattern.search(data, position):
            # A token may go on in what follows.
            if not is_read and match.start() > len(data) - _LONGEST_TOKEN:
                break
            token, position = match[0], match.end()
            if pattern is _TOKEN:
                pattern = _ENDS.get(token, _TOKEN)
                if token in (_OPENING, _CLOSING):
                    yield token
            elif not token.startswith(b"\\"):
                pattern = _TOKEN
        data = data[max(position, len(data) - _LONGEST_TOKEN) :]
