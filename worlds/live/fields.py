"""Tables of a TOML file read field by field; whatever is wrong is told in one sentence with its place."""

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any
from urllib.parse import SplitResult, urlsplit

from worlds.folder import WorldError

_IRI_BEGINNING = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")
_LANGUAGE = re.compile(r"[a-z]{2,12}(-[a-z0-9]{2,8})*")
_PREFIX = re.compile(r"[A-Za-z](?:[\w.-]*[\w-])?")
_HEADER = re.compile(r"[A-Za-z0-9-]+")
_OURS = frozenset({"host", "user-agent", "accept-encoding", "content-length", "transfer-encoding", "connection"})
"""Headers that are Showhow's to write."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class WrongDescription(WorldError):
    """A description of a world has a field that is wrong, unknown or missing."""


Reader = Callable[[Any], Any]
"""Gives the value as it is used, or raises a ValueError that says what it should be."""


def read_table(table: Mapping[str, Any], place: str, readers: Mapping[str, Reader]) -> dict[str, Any]:
    """The values of a table's fields; WrongDescription for the first one that is wrong or that nobody knows."""
    found = {}
    for name, value in table.items():
        if name not in readers:
            near = get_close_matches(name, readers, 1)
            meant = f"did you mean {near[0]}?" if near else f"it may have {', '.join(readers)}."
            raise WrongDescription(f"{place} {name} is no field that is known; {meant}")
        try:
            found[name] = readers[name](value)
        except ValueError as wrong:
            raise WrongDescription(f"{place} {name} {wrong}.") from None
    return found


def one_of(choices: Sequence[str]) -> Reader:
    """One of some words."""

    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}, not {_shown(value)}")
        return str(value)

    return read


def whole(least: int, most: int) -> Reader:
    """A whole number within bounds."""

    def read(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError(f"must be a whole number from {least:,} to {most:,}, not {_shown(value)}")
        return value

    return read


def number(least: float, most: float) -> Reader:
    """A number within bounds."""

    def read(value: Any) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError(f"must be a number from {least:g} to {most:,g}, not {_shown(value)}")
        return float(value)

    return read


def text(value: Any) -> str:
    """Some text."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"must be some text, not {_shown(value)}")
    return value.strip()


def yes_or_no(value: Any) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {_shown(value)}")  # noqa: TRY004 - Reader's one error
    return value


def address(value: Any) -> str:
    """An address of the web without a query, a fragment or a password."""
    parts = _split(value)
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must be an address such as https://query.wikidata.org/sparql")
    if parts.username is not None or parts.query or parts.fragment:
        # The value is not shown: what stands there may well be a key.
        raise ValueError(
            "must be an address without ?, # and @; keys go into headers, which name an environment variable"
        )
    if not str(value).isascii():
        raise ValueError("must be an address in plain characters, as a browser copies it: xn--... and %C3%BC for a ü")
    return str(value)


def _split(value: Any) -> SplitResult | None:
    """The parts of an address; None for what is none."""
    if not isinstance(value, str) or not _IRI_BEGINNING.fullmatch(value):
        return None
    try:
        parts = urlsplit(value)
        # A port that is no number shows only when it is asked for.
        port = parts.port
    except ValueError:
        return None
    return None if port == 0 else parts


def iri(value: Any) -> str:
    """An IRI or the beginning of IRIs."""
    if not isinstance(value, str) or not _IRI_BEGINNING.fullmatch(value):
        raise ValueError(f"must be an IRI such as http://www.wikidata.org/entity/, not {_shown(value)}")
    return value


def iri_or_nothing(value: Any) -> str:
    """An IRI, or "" for any."""
    return "" if value == "" else iri(value)


def language(value: Any) -> str:
    """The code of a language."""
    if not isinstance(value, str) or not _LANGUAGE.fullmatch(value):
        raise ValueError(f"must be the code of a language such as en, not {_shown(value)}")
    return value


def prefixes(value: Any) -> dict[str, str]:
    """Prefixes with their IRIs."""
    if not isinstance(value, dict):
        raise ValueError('must be a table of prefixes, such as { ex = "http://ex.example/" }')  # noqa: TRY004 - likewise
    for name in value:
        if not _PREFIX.fullmatch(name):
            raise ValueError(f"holds {name!r}, which cannot be a prefix")
    return {name: iri(place) for name, place in value.items()}


def headers(value: Any) -> dict[str, str]:
    """Names of headers with the names of the environment variables that hold their values."""
    if not isinstance(value, dict):
        raise ValueError('must be a table such as { Authorization = "MY_TOKEN" }')  # noqa: TRY004 - likewise
    for name, variable in value.items():
        if not _HEADER.fullmatch(name):
            raise ValueError(f"holds {name!r}, which cannot be a header")
        if name.lower() in _OURS:
            raise ValueError(f"must leave {name} away, which Showhow writes itself")
        if not isinstance(variable, str) or not _VARIABLE.fullmatch(variable):
            # What stands there is not shown: somebody may have put the key itself there.
            raise ValueError(
                f"must name for {name} an environment variable that holds the value, never the value itself"
            )
    return dict(value)


def _shown(value: Any) -> str:
    told = repr(value)
    return told if len(told) <= 60 else f"{told[:60]} ..."
