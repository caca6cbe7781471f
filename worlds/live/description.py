"""A live world's world.toml: which wiki and which graph it asks, and how often they may be asked.

presets/example.toml explains every field.

Tables of a TOML file read field by field; whatever is wrong is told in one sentence with its place.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from worlds.folder import WorldError
from worlds.live.http.access import RequestPolicy
from worlds.live.http.endpoint import LABEL_SOURCES, QUERY_METHODS, SEARCH_MODES, VOCABULARY_SOURCES, SparqlEndpoint
from worlds.live.http.request import get_host

_IRI_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")
_LANGUAGE_PATTERN = re.compile(r"[a-z]{2,12}(-[a-z0-9]{2,8})*")
_PREFIX_PATTERN = re.compile(r"[A-Za-z](?:[\w.-]*[\w-])?")
_HEADER_PATTERN = re.compile(r"[A-Za-z0-9-]+")
_RESERVED_HEADERS = frozenset(
    {"host", "user-agent", "accept-encoding", "content-length", "transfer-encoding", "connection"}
)
"""Headers that are Showhow's to write."""
_VARIABLE_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class InvalidLiveConfig(WorldError):
    """A description of a world has a field that is wrong, unknown or missing."""


FieldParser = Callable[[Any], Any]
"""Gives the value as it is used, or raises a ValueError that says what it should be."""


def parse_fields(table: Mapping[str, Any], place: str, readers: Mapping[str, FieldParser]) -> dict[str, Any]:
    """The values of a table's fields; WrongDescription for the first one that is wrong or that nobody knows."""
    found = {}
    for name, value in table.items():
        if name not in readers:
            near = get_close_matches(name, readers, 1)
            meant = f"did you mean {near[0]}?" if near else f"it may have {', '.join(readers)}."
            raise InvalidLiveConfig(f"{place} {name} is no field that is known; {meant}")
        try:
            found[name] = readers[name](value)
        except ValueError as wrong:
            raise InvalidLiveConfig(f"{place} {name} {wrong}.") from None
    return found


def parse_choice(choices: Sequence[str]) -> FieldParser:
    """One of some words."""

    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}, not {_format_value(value)}")
        return str(value)

    return read


def parse_integer(least: int, most: int) -> FieldParser:
    """A whole number within bounds."""

    def read(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError(f"must be a whole number from {least:,} to {most:,}, not {_format_value(value)}")
        return value

    return read


def parse_number(least: float, most: float) -> FieldParser:
    """A number within bounds."""

    def read(value: Any) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError(f"must be a number from {least:g} to {most:,g}, not {_format_value(value)}")
        return float(value)

    return read


def parse_text(value: Any) -> str:
    """Some text."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"must be some text, not {_format_value(value)}")
    return value.strip()


def parse_boolean(value: Any) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {_format_value(value)}")  # noqa: TRY004 - Reader's one error
    return value


def parse_url(value: Any) -> str:
    """An address of the web without a query, a fragment or a password."""
    parts = _split_url(value)
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


def _split_url(value: Any) -> SplitResult | None:
    """The parts of an address; None for what is none."""
    if not isinstance(value, str) or not _IRI_PATTERN.fullmatch(value):
        return None
    try:
        parts = urlsplit(value)
        # A port that is no number shows only when it is asked for.
        port = parts.port
    except ValueError:
        return None
    return None if port == 0 else parts


def parse_iri(value: Any) -> str:
    """An IRI or the beginning of IRIs."""
    if not isinstance(value, str) or not _IRI_PATTERN.fullmatch(value):
        raise ValueError(f"must be an IRI such as http://www.wikidata.org/entity/, not {_format_value(value)}")
    return value


def parse_optional_iri(value: Any) -> str:
    """An IRI, or "" for any."""
    return "" if value == "" else parse_iri(value)


def parse_language(value: Any) -> str:
    """The code of a language."""
    if not isinstance(value, str) or not _LANGUAGE_PATTERN.fullmatch(value):
        raise ValueError(f"must be the code of a language such as en, not {_format_value(value)}")
    return value


def parse_prefixes(value: Any) -> dict[str, str]:
    """Prefixes with their IRIs."""
    if not isinstance(value, dict):
        raise ValueError('must be a table of prefixes, such as { ex = "http://ex.example/" }')  # noqa: TRY004 - likewise
    for name in value:
        if not _PREFIX_PATTERN.fullmatch(name):
            raise ValueError(f"holds {name!r}, which cannot be a prefix")
    return {name: parse_iri(place) for name, place in value.items()}


def parse_headers(value: Any) -> dict[str, str]:
    """Names of headers with the names of the environment variables that hold their values."""
    if not isinstance(value, dict):
        raise ValueError('must be a table such as { Authorization = "MY_TOKEN" }')  # noqa: TRY004 - likewise
    for name, variable in value.items():
        if not _HEADER_PATTERN.fullmatch(name):
            raise ValueError(f"holds {name!r}, which cannot be a header")
        if name.lower() in _RESERVED_HEADERS:
            raise ValueError(f"must leave {name} away, which Showhow writes itself")
        if not isinstance(variable, str) or not _VARIABLE_PATTERN.fullmatch(variable):
            # What stands there is not shown: somebody may have put the key itself there.
            raise ValueError(
                f"must name for {name} an environment variable that holds the value, never the value itself"
            )
    return dict(value)


def _format_value(value: Any) -> str:
    told = repr(value)
    return told if len(told) <= 60 else f"{told[:60]} ..."


LIVE_KIND = "live"
PRESETS_FOLDER = Path(__file__).parent / "presets"
_MAX_CONCURRENT = 64
_WIKIMEDIA_DOMAINS = ("wikipedia.org", "wikidata.org", "wikimedia.org")
_WIKIMEDIA_MAX_CONCURRENT = 3
"""More at the same moment the Wikimedia Foundation asks programs not to have."""

TOP_LEVEL_FIELDS = {
    "kind": parse_choice([LIVE_KIND]),
    "title": parse_text,
    "licence": parse_text,
    "text": dict,
    "graph": dict,
    "limits": dict,
}
TABLE_FIELDS = {
    "text": {
        "kind": parse_choice(["mediawiki"]),
        "api": parse_url,
        "language": parse_language,
        "headers": parse_headers,
    },
    "graph": {
        "kind": parse_choice(["sparql"]),
        "endpoint": parse_url,
        "method": parse_choice(QUERY_METHODS),
        "headers": parse_headers,
        "default_graph": parse_iri,
        "prefixes": parse_prefixes,
        "labels": parse_choice(LABEL_SOURCES),
        "label_service": parse_boolean,
        "api": parse_url,
        "vocabulary": parse_choice(VOCABULARY_SOURCES),
        "search": parse_choice(SEARCH_MODES),
        "articles": parse_optional_iri,
        "entity": parse_iri,
        "property": parse_iri,
        "language": parse_language,
        "rows": parse_integer(1, 10_000),
    },
    "limits": {
        "at_once": parse_integer(1, _MAX_CONCURRENT),
        "per_minute": parse_integer(1, 1_000_000),
        "seconds": parse_number(1, 300),
        "bytes": parse_integer(10_000, 1_000_000_000),
        "attempts": parse_integer(1, 10),
        "cache_days": parse_number(0, 36_500),
    },
}
"""The fields of each table, with what reads them."""


@dataclass(frozen=True, slots=True)
class WikiConfig:
    """A wiki whose articles a world has."""

    api: str
    """The address of its api.php."""
    language: str = "en"
    headers: tuple[tuple[str, str], ...] = ()
    """Names of headers and of the environment variables that hold their values."""


@dataclass(frozen=True, slots=True)
class LiveWorldConfig:
    """What a world.toml of the kind "live" says."""

    text: WikiConfig | None
    graph: SparqlEndpoint | None
    limits: RequestPolicy
    """Without hosts and headers, which each source has of its own."""
    metadata: dict[str, Any]
    """What the lists of worlds show."""


def parse_live_config(written: str, file: str = "the description") -> LiveWorldConfig:
    """The description in a text; WrongDescription names the field that is wrong, unknown or missing."""
    try:
        table = tomllib.loads(written)
    except tomllib.TOMLDecodeError as wrong:
        raise InvalidLiveConfig(f"{file} is no TOML: {str(wrong)[:1].lower()}{str(wrong)[1:]}.") from wrong
    for name in ("text", "graph", "limits"):
        if not isinstance(table.get(name, {}), dict):
            raise InvalidLiveConfig(f"{file}: {name} must be a table, written [{name}].")
    top = parse_fields(table, f"{file}:", TOP_LEVEL_FIELDS)
    if "kind" not in top:
        raise InvalidLiveConfig(f'{file}: kind is missing; begin with kind = "live".')
    text, graph = _parse_wiki_config(table, file), _parse_endpoint(table, file)
    if text is None and graph is None:
        raise InvalidLiveConfig(
            f"{file} describes neither articles nor a graph; give it a table [text], [graph] or both."
        )
    limits = _parse_request_policy(table, file)
    _check_wikimedia_limits(
        limits, [address for address in (text and text.api, graph and graph.url, graph and graph.api) if address], file
    )
    return LiveWorldConfig(text, graph, limits, _build_metadata(table, text, graph))


def read_preset(name: str) -> str:
    """The text of a description that comes with Showhow."""
    known = list_presets()
    if name not in known:
        raise InvalidLiveConfig(f"There is no preset {name!r}; there are {', '.join(known)}.")
    return (PRESETS_FOLDER / f"{name}.toml").read_text(encoding="utf-8")


def list_presets() -> list[str]:
    """The names of the descriptions that come with Showhow."""
    return sorted(path.stem for path in PRESETS_FOLDER.glob("*.toml"))


def _parse_wiki_config(table: dict[str, Any], file: str) -> WikiConfig | None:
    if "text" not in table:
        return None
    found = parse_fields(table["text"], f"{file}: [text]", TABLE_FIELDS["text"])
    _require_fields(found, f"{file}: [text]", kind="mediawiki", api="https://en.wikipedia.org/w/api.php")
    return WikiConfig(found["api"], found.get("language", "en"), tuple(found.get("headers", {}).items()))


def _parse_endpoint(table: dict[str, Any], file: str) -> SparqlEndpoint | None:
    if "graph" not in table:
        return None
    place = f"{file}: [graph]"
    found = parse_fields(table["graph"], place, TABLE_FIELDS["graph"])
    _require_fields(found, place, kind="sparql", endpoint="https://query.wikidata.org/sparql")
    for name in ("labels", "search"):
        if found.get(name) == "api" and "api" not in found:
            raise InvalidLiveConfig(f'{place} {name} = "api" needs the field api, the address of the wiki\'s api.php.')
    url = found.pop("endpoint")
    del found["kind"]
    found.setdefault("label_service", found.get("labels") == "service")
    return SparqlEndpoint(url, **found)


def _parse_request_policy(table: dict[str, Any], file: str) -> RequestPolicy:
    found = parse_fields(table.get("limits", {}), f"{file}: [limits]", TABLE_FIELDS["limits"])
    usual = RequestPolicy(frozenset())
    return RequestPolicy(
        frozenset(),
        max_concurrent=found.get("at_once", usual.max_concurrent),
        max_per_minute=found.get("per_minute", usual.max_per_minute),
        timeout_seconds=found.get("seconds", usual.timeout_seconds),
        max_attempts=found.get("attempts", usual.max_attempts),
        max_bytes=found.get("bytes", usual.max_bytes),
        cache_lifetime=timedelta(days=found["cache_days"]) if "cache_days" in found else usual.cache_lifetime,
    )


def _check_wikimedia_limits(limits: RequestPolicy, addresses: list[str], file: str) -> None:
    for host in map(get_host, addresses):
        if host.endswith(_WIKIMEDIA_DOMAINS) and limits.max_concurrent > _WIKIMEDIA_MAX_CONCURRENT:
            raise InvalidLiveConfig(
                f"{file}: [limits] at_once must be at most {_WIKIMEDIA_MAX_CONCURRENT} for {host}, which asks for that."
            )


def _require_fields(found: dict[str, Any], place: str, **examples: str) -> None:
    for name, value in examples.items():
        if name not in found:
            raise InvalidLiveConfig(f'{place} {name} is missing; write for example {name} = "{value}".')


def _build_metadata(table: dict[str, Any], text: WikiConfig | None, graph: SparqlEndpoint | None) -> dict[str, Any]:
    digest = hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()
    found: dict[str, Any] = {"kind": LIVE_KIND, "hash": digest}
    found |= {name: table[name] for name in ("title", "licence") if name in table}
    if text is not None:
        found |= {"articles of": get_host(text.api), "language": text.language}
    if graph is not None:
        found["graph of"] = get_host(graph.url)
    addresses = [text.api if text else None, graph.url if graph else None, graph.api if graph else None]
    found["hosts"] = list(dict.fromkeys(get_host(address) for address in addresses if address))
    return found
