"""Parser and writer of the Prolog subset of facts and queries: terms of strings, atoms, numbers and variables."""

import re
from dataclasses import dataclass

# Possessive, so that an unterminated string does not cause exponential backtracking.
_TOKEN_PATTERN = re.compile(r'\s*(?:"((?:[^"\\]|\\x[0-9a-fA-F]+\\|\\.|"")*+)"|([A-Za-z_]\w*)|(\d+)|([(),]))', re.DOTALL)
_ESCAPE_PATTERN = re.compile(r'\\x([0-9a-fA-F]+)\\|\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})|\\(.)|""', re.DOTALL)
_SIMPLE_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'", "`": "`"}
_MAX_DEPTH = 20


class PrologSyntaxError(ValueError):
    """The text is no valid term; the message states the expected and the actual token."""


@dataclass(frozen=True, slots=True)
class PrologVariable:
    """A variable: a name that begins with a capital or an underscore."""

    name: str


@dataclass(frozen=True, slots=True)
class PrologTerm:
    """An atom or number (without arguments), or a compound term; strings are plain `str`."""

    name: str
    args: tuple["PrologValue", ...] = ()


PrologValue = str | PrologVariable | PrologTerm


def parse_goal(text: str) -> PrologTerm:
    """Parse a text that is a single term."""
    value, end = parse_value(text, 0)
    if not isinstance(value, PrologTerm):
        raise PrologSyntaxError("a goal begins with the name of a relation")
    if text[end:].strip(" \t\r\n."):
        raise PrologSyntaxError(f"{_excerpt(text, end)} follows the goal")
    return value


def parse_value(text: str, start: int, depth: int = 0) -> tuple[PrologValue, int]:
    """Parse the value at `start`; returns it and its end."""
    if depth > _MAX_DEPTH:
        raise PrologSyntaxError(f"terms are nested more than {_MAX_DEPTH} deep")
    token = _TOKEN_PATTERN.match(text, start)
    if token is None or token[4]:
        raise PrologSyntaxError(f"a name, string or number is needed, not {_excerpt(text, start)}")
    string, name, number, _ = token.groups()
    if string is not None:
        return _decode_escapes(string), token.end()
    if number is not None:
        return PrologTerm(number), token.end()
    if name[0].isupper() or name[0] == "_":
        return PrologVariable(name), token.end()
    if not text.startswith("(", token.end()):
        return PrologTerm(name), token.end()
    args, end = _parse_arguments(text, token.end() + 1, depth)
    return PrologTerm(name, args), end


def _parse_arguments(text: str, start: int, depth: int) -> tuple[tuple[PrologValue, ...], int]:
    args: list[PrologValue] = []
    while True:
        value, end = parse_value(text, start, depth + 1)
        args.append(value)
        mark = _TOKEN_PATTERN.match(text, end)
        if mark is None or mark[4] not in (",", ")"):
            raise PrologSyntaxError(f"a comma or ) is needed, not {_excerpt(text, end)}")
        if mark[4] == ")":
            return tuple(args), mark.end()
        start = mark.end()


def _decode_escapes(written: str) -> str:
    return _ESCAPE_PATTERN.sub(_decode_escape, written) if "\\" in written or '""' in written else written


def _decode_escape(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    if code:
        number = int(code, 16)
        if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
            raise PrologSyntaxError(f"{escape[0]} is no character")
        return chr(number)
    if escape[4] is None:
        return '"'
    if escape[4] not in _SIMPLE_ESCAPES:
        raise PrologSyntaxError(f"the escape {escape[0]} is not known")
    return _SIMPLE_ESCAPES[escape[4]]


def _excerpt(text: str, start: int) -> str:
    left = text[start : start + 200].strip()
    return repr(left[:30]) if left else "the end of the text"


def quote_string(text: str) -> str:
    """Quote a text as a Prolog string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def format_fact(name: str, *values: str) -> str:
    """Format a ground fact of strings."""
    return f"{name}({', '.join(quote_string(value) for value in values)})."
