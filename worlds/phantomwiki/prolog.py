"""The little of Prolog's writing that facts and queries need: terms of strings, atoms, numbers and variables."""

import re
from dataclasses import dataclass

# Possessive, so that a text without its last quote is not tried in all the ways that its escapes could be read.
_TOKEN = re.compile(r'\s*(?:"((?:[^"\\]|\\x[0-9a-fA-F]+\\|\\.|"")*+)"|([A-Za-z_]\w*)|(\d+)|([(),]))', re.DOTALL)
_ESCAPE = re.compile(r'\\x([0-9a-fA-F]+)\\|\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})|\\(.)|""', re.DOTALL)
_PLAIN = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'", "`": "`"}
_DEEPEST = 20


class NotProlog(ValueError):
    """The text is no term; the message says what stands where something else should."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A name that begins with a capital or an underscore."""

    name: str


@dataclass(frozen=True, slots=True)
class Term:
    """An atom or number (without arguments) or a name with its arguments; a string is a plain `str`."""

    name: str
    args: tuple["Value", ...] = ()


Value = str | Variable | Term


def read_goal(text: str) -> Term:
    """The term that the whole text is."""
    value, end = read_value(text, 0)
    if not isinstance(value, Term):
        raise NotProlog("a goal begins with the name of a relation")
    if text[end:].strip(" \t\r\n."):
        raise NotProlog(f"{_excerpt(text, end)} follows the goal")
    return value


def read_value(text: str, start: int, depth: int = 0) -> tuple[Value, int]:
    """The value that begins there, and where it ends."""
    if depth > _DEEPEST:
        raise NotProlog(f"terms are nested more than {_DEEPEST} deep")
    found = _TOKEN.match(text, start)
    if found is None or found[4]:
        raise NotProlog(f"a name, string or number is needed, not {_excerpt(text, start)}")
    string, name, number, _ = found.groups()
    if string is not None:
        return _unescaped(string), found.end()
    if number is not None:
        return Term(number), found.end()
    if name[0].isupper() or name[0] == "_":
        return Variable(name), found.end()
    if not text.startswith("(", found.end()):
        return Term(name), found.end()
    args, end = _arguments(text, found.end() + 1, depth)
    return Term(name, args), end


def _arguments(text: str, start: int, depth: int) -> tuple[tuple[Value, ...], int]:
    args: list[Value] = []
    while True:
        value, end = read_value(text, start, depth + 1)
        args.append(value)
        mark = _TOKEN.match(text, end)
        if mark is None or mark[4] not in (",", ")"):
            raise NotProlog(f"a comma or ) is needed, not {_excerpt(text, end)}")
        if mark[4] == ")":
            return tuple(args), mark.end()
        start = mark.end()


def _unescaped(written: str) -> str:
    return _ESCAPE.sub(_character, written) if "\\" in written or '""' in written else written


def _character(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    if code:
        number = int(code, 16)
        if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
            raise NotProlog(f"{found[0]} is no character")
        return chr(number)
    if found[4] is None:
        return '"'
    if found[4] not in _PLAIN:
        raise NotProlog(f"the escape {found[0]} is not known")
    return _PLAIN[found[4]]


def _excerpt(text: str, start: int) -> str:
    left = text[start : start + 200].strip()
    return repr(left[:30]) if left else "the end of the text"


def quoted(text: str) -> str:
    """The text as a Prolog string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def fact(name: str, *values: str) -> str:
    """A ground fact of strings, as a line of a file has it."""
    return f"{name}({', '.join(quoted(value) for value in values)})."
