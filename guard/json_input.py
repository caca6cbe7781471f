"""JSON that others wrote: its depth and the memory that it takes are known from a linear scan before it is parsed.

A list of any length is read element by element.
"""

import ast
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from showhow.guard.input_bounds import HINT, MEGABYTE, InputBoundExceeded, is_unbounded

MAX_DEPTH = 256
"""Lists and objects within each other."""
MAX_VALUE_MEGABYTES = 256
"""The memory of one parsed value: a line, an element of a list, or a document that is no list."""
BYTES_OF_CONTAINER = 224
BYTES_OF_FIELD = 100
"""What a list or object, and a field or element, take once they are parsed, about."""
_SMALL_TEXT = 256 * 1024
_BLOCK_BYTES = MEGABYTE
_CHUNK_CHARACTERS = 256 * 1024
_LONGEST_LITERAL = 16
"""An error so near to the end of what was read may be due to a value that was cut off."""
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_BLANK = re.compile(r"[ \t\n\r]*+")
_AFTER_VALUE = frozenset(" \t\n\r,]")
MAX_DIGITS = 4_300
"""The digits of a whole number, as many as Python converts to text and back."""
_TOO_DEEP = f"the JSON is nested too deeply, with more than {MAX_DEPTH} lists and objects within each other; flatten it"


class MalformedJson(ValueError):
    """A text is no JSON; has the line and the column in it, from 1."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(f"{reason} at line {line}, column {column}")
        self.reason, self.line, self.column = reason, line, column


class JsonScanner:
    """Counts brackets and fields of a JSON text outside its strings, in constant memory."""

    def __init__(self) -> None:
        self.depth = self.containers = self.fields = 0
        self._is_in_string = self._is_escaped = False

    def feed(self, data: bytes) -> None:
        """Scan the next part of the text; InputBoundExceeded where it is nested too deeply."""
        for start in range(0, len(data), _BLOCK_BYTES):
            self._scan(data[start : start + _BLOCK_BYTES])

    def _scan(self, block: bytes) -> None:
        if self._is_escaped:
            block = b"_" + block[1:]
        self._is_escaped = False
        if b"\\" in block:
            block = _ESCAPE.sub(b"__", block)
            self._is_escaped = block.endswith(b"\\")
        import numpy as np  # noqa: PLC0415 - takes 0.1 s, and few texts are so long

        characters = np.frombuffer(block, np.uint8)
        quotes = np.flatnonzero(characters == ord('"'))
        # [ and { differ in one bit, as do ] and }.
        folded = characters | 0x20
        openers = self._outside(np.flatnonzero(folded == ord("{")), quotes)
        closers = self._outside(np.flatnonzero(folded == ord("}")), quotes)
        separators = self._outside(np.flatnonzero((characters == ord(",")) | (characters == ord(":"))), quotes)
        self._is_in_string ^= bool(len(quotes) & 1)
        self.containers += len(openers)
        self.fields += len(separators)
        if self.depth + len(openers) > MAX_DEPTH:
            signs = np.concatenate([np.ones(len(openers), np.int32), np.full(len(closers), -1, np.int32)])
            order = np.argsort(np.concatenate([openers, closers]), kind="stable")
            if self.depth + int(np.cumsum(signs[order]).max()) > MAX_DEPTH:
                raise InputBoundExceeded(_TOO_DEEP)
        self.depth += len(openers) - len(closers)

    def _outside(self, places: Any, quotes: Any) -> Any:
        """Those of the places that are in no string."""
        return places[(quotes.searchsorted(places) + self._is_in_string) % 2 == 0]


def check_json(text: str | bytes) -> None:
    """Raise InputBoundExceeded for a text that is nested too deeply, or takes too much memory once it is parsed."""
    opening: tuple[Any, Any] = ("[", "{") if isinstance(text, str) else (b"[", b"{")
    is_flat = text.count(opening[0]) + text.count(opening[1]) <= MAX_DEPTH
    if is_flat and len(text) <= _SMALL_TEXT:
        return
    scanner = JsonScanner()
    if isinstance(text, bytes):
        scanner.feed(text)
    else:
        for start in range(0, len(text), _BLOCK_BYTES):
            scanner.feed(text[start : start + _BLOCK_BYTES].encode("utf-8", "surrogatepass"))
    size = 2 * sys.getsizeof(text) + BYTES_OF_CONTAINER * scanner.containers + BYTES_OF_FIELD * scanner.fields
    if size > MAX_VALUE_MEGABYTES * MEGABYTE and not is_unbounded():
        raise InputBoundExceeded(
            f"one of its JSON values would take {size / MEGABYTE:,.0f} MB of memory, more than the bound of "
            f"{MAX_VALUE_MEGABYTES} MB; {HINT}"
        )


def load_json(text: str | bytes, *, unique_names: bool = False, constants: bool = False) -> Any:
    """Parse one JSON value; InputBoundExceeded, MalformedJson or another ValueError says why it cannot be read.

    With `unique_names`, an object with two fields of the same name is refused; else JSON takes the last one.
    With `constants`, NaN and Infinity are read as Python writes them.
    """
    check_json(text)
    try:
        return json.loads(
            text, object_pairs_hook=_require_unique_names if unique_names else None, **_number_parsers(constants)
        )
    except json.JSONDecodeError as error:
        raise MalformedJson(error.msg, error.lineno, error.colno) from error
    except RecursionError as error:
        raise InputBoundExceeded(_TOO_DEEP) from error


def _number_parsers(constants: bool) -> dict[str, Any]:  # noqa: FBT001 - as load_json has it
    parsers: dict[str, Any] = {"parse_int": _parse_integer}
    return parsers if constants else parsers | {"parse_constant": _reject_constant, "parse_float": _parse_float}


def _parse_integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a number has {len(text):,} digits, more than the bound of {MAX_DIGITS:,}")
    return int(text)


def _parse_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:20]} is too large")
    return number


def _reject_constant(name: str) -> Any:
    """Refuse NaN and Infinity, which Python's parser would take."""
    raise ValueError(f"{name} is not a JSON number")


def load_python_literal(node: ast.expr) -> Any:
    """The JSON value that a literal of Python stands for; ValueError if it is none, or JSON has no such value."""
    try:
        return json.loads(json.dumps(ast.literal_eval(node), allow_nan=False))
    except TypeError as error:
        raise ValueError(f"it is no value of JSON ({error})") from error


def _require_unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        (repeated, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"an object has {repeated!r} twice")
    return fields


def iterate_json_list(read: Callable[[int], str], *, constants: bool = False) -> Iterator[tuple[int, Any]]:
    """Yield the elements of a JSON list with the lines on which they begin; `read` returns the next characters.

    Only one element is in memory at a time. Errors are those of `load_json`, after the elements before them.
    """
    return _ListReader(read, constants=constants).iterate()


class _ListReader:
    def __init__(self, read: Callable[[int], str], *, constants: bool) -> None:
        self._read = read
        self._text, self._position = "", 0
        # The line of the place up to which lines were counted.
        self._line, self._counted = 1, 0
        # The characters of the current line that were dropped before the text.
        self._dropped = 0
        self._scanner = JsonScanner()
        self._decoder = json.JSONDecoder(**_number_parsers(constants))

    def iterate(self) -> Iterator[tuple[int, Any]]:
        self._expect("[", "a list is required")
        if self._peek() == "]":
            self._position += 1
        else:
            while True:
                self._peek()
                line = self._line_at(self._position)
                yield line, self._parse_element()
                if self._expect(",]", "Expecting ',' delimiter") == "]":
                    break
        if self._peek():
            raise self._error("Extra data", self._position)

    def _parse_element(self) -> Any:
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._position)
            except json.JSONDecodeError as error:
                may_be_cut = error.msg.startswith("Unterminated") or error.pos > len(self._text) - _LONGEST_LITERAL
                if not may_be_cut or not self._grow():
                    raise self._error(error.msg, error.pos) from error
            except RecursionError as error:
                raise InputBoundExceeded(_TOO_DEEP) from error
            else:
                # A number may go on in what follows.
                is_whole = end < len(self._text) - _LONGEST_LITERAL or self._text[end : end + 1] in _AFTER_VALUE
                if is_whole or not self._grow():
                    self._position = end
                    return value

    def _expect(self, signs: str, reason: str) -> str:
        sign = self._peek()
        if not sign or sign not in signs:
            raise self._error(reason, self._position)
        self._position += 1
        return sign

    def _peek(self) -> str:
        """The next character that is not blank; empty at the end of the text."""
        while True:
            self._position = _BLANK.match(self._text, self._position).end()  # type: ignore[union-attr]
            if self._position < len(self._text):
                return self._text[self._position]
            if not self._grow():
                return ""

    def _grow(self) -> bool:
        """Read more; twice as much each time that an element does not end, so that the work stays linear."""
        rest = self._text[self._position :]
        chunk = self._read(max(_CHUNK_CHARACTERS, len(rest)))
        if not chunk:
            return False
        self._scanner.feed(chunk.encode())
        self._line_at(self._position)
        line_start = self._text.rfind("\n", 0, self._position) + 1
        self._dropped = self._position - line_start + (0 if line_start else self._dropped)
        self._text, self._position, self._counted = rest + chunk, 0, 0
        if len(rest) >= _CHUNK_CHARACTERS:
            check_json(self._text)
        return True

    def _line_at(self, position: int) -> int:
        self._line += self._text.count("\n", self._counted, position)
        self._counted = position
        return self._line

    def _error(self, reason: str, position: int) -> MalformedJson:
        line_start = self._text.rfind("\n", 0, position) + 1
        column = position - line_start + 1 + (0 if line_start else self._dropped)
        return MalformedJson(reason, self._line_at(position), column)
