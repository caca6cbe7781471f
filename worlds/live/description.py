"""A live world's world.toml: which wiki and which graph it asks, and how often they may be asked.

presets/example.toml explains every field.
"""

import hashlib
import json
import tomllib
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from worlds.live import fields
from worlds.live.access import Policy
from worlds.live.endpoint import LABELS, METHODS, SEARCHES, VOCABULARIES, Endpoint
from worlds.live.fields import WrongDescription, read_table
from worlds.live.request import host_of

LIVE = "live"
PRESETS = Path(__file__).parent / "presets"
_MOST_AT_ONCE = 64
_WIKIMEDIA = ("wikipedia.org", "wikidata.org", "wikimedia.org")
_WIKIMEDIA_AT_ONCE = 3
"""More at the same moment the Wikimedia Foundation asks programs not to have."""

TOP = {
    "kind": fields.one_of([LIVE]),
    "title": fields.text,
    "licence": fields.text,
    "text": dict,
    "graph": dict,
    "limits": dict,
}
TABLES = {
    "text": {
        "kind": fields.one_of(["mediawiki"]),
        "api": fields.address,
        "language": fields.language,
        "headers": fields.headers,
    },
    "graph": {
        "kind": fields.one_of(["sparql"]),
        "endpoint": fields.address,
        "method": fields.one_of(METHODS),
        "headers": fields.headers,
        "default_graph": fields.iri,
        "prefixes": fields.prefixes,
        "labels": fields.one_of(LABELS),
        "label_service": fields.yes_or_no,
        "api": fields.address,
        "vocabulary": fields.one_of(VOCABULARIES),
        "search": fields.one_of(SEARCHES),
        "articles": fields.iri_or_nothing,
        "entity": fields.iri,
        "property": fields.iri,
        "language": fields.language,
        "rows": fields.whole(1, 10_000),
    },
    "limits": {
        "at_once": fields.whole(1, _MOST_AT_ONCE),
        "per_minute": fields.whole(1, 1_000_000),
        "seconds": fields.number(1, 300),
        "bytes": fields.whole(10_000, 1_000_000_000),
        "attempts": fields.whole(1, 10),
        "cache_days": fields.number(0, 36_500),
    },
}
"""The fields of each table, with what reads them."""


@dataclass(frozen=True, slots=True)
class Site:
    """A wiki whose articles a world has."""

    api: str
    """The address of its api.php."""
    language: str = "en"
    headers: tuple[tuple[str, str], ...] = ()
    """Names of headers and of the environment variables that hold their values."""


@dataclass(frozen=True, slots=True)
class Description:
    """What a world.toml of the kind "live" says."""

    text: Site | None
    graph: Endpoint | None
    limits: Policy
    """Without hosts and headers, which each source has of its own."""
    about: dict[str, Any]
    """What the lists of worlds show."""


def read_description(written: str, file: str = "the description") -> Description:
    """The description in a text; WrongDescription names the field that is wrong, unknown or missing."""
    try:
        table = tomllib.loads(written)
    except tomllib.TOMLDecodeError as wrong:
        raise WrongDescription(f"{file} is no TOML: {str(wrong)[:1].lower()}{str(wrong)[1:]}.") from wrong
    for name in ("text", "graph", "limits"):
        if not isinstance(table.get(name, {}), dict):
            raise WrongDescription(f"{file}: {name} must be a table, written [{name}].")
    top = read_table(table, f"{file}:", TOP)
    if "kind" not in top:
        raise WrongDescription(f'{file}: kind is missing; begin with kind = "live".')
    text, graph = _site(table, file), _endpoint(table, file)
    if text is None and graph is None:
        raise WrongDescription(
            f"{file} describes neither articles nor a graph; give it a table [text], [graph] or both."
        )
    limits = _limits(table, file)
    _keep_polite(
        limits, [address for address in (text and text.api, graph and graph.url, graph and graph.api) if address], file
    )
    return Description(text, graph, limits, _about(table, text, graph))


def preset(name: str) -> str:
    """The text of a description that comes with Showhow."""
    known = presets()
    if name not in known:
        raise WrongDescription(f"There is no preset {name!r}; there are {', '.join(known)}.")
    return (PRESETS / f"{name}.toml").read_text(encoding="utf-8")


def presets() -> list[str]:
    """The names of the descriptions that come with Showhow."""
    return sorted(path.stem for path in PRESETS.glob("*.toml"))


def _site(table: dict[str, Any], file: str) -> Site | None:
    if "text" not in table:
        return None
    found = read_table(table["text"], f"{file}: [text]", TABLES["text"])
    _require(found, f"{file}: [text]", kind="mediawiki", api="https://en.wikipedia.org/w/api.php")
    return Site(found["api"], found.get("language", "en"), tuple(found.get("headers", {}).items()))


def _endpoint(table: dict[str, Any], file: str) -> Endpoint | None:
    if "graph" not in table:
        return None
    place = f"{file}: [graph]"
    found = read_table(table["graph"], place, TABLES["graph"])
    _require(found, place, kind="sparql", endpoint="https://query.wikidata.org/sparql")
    for name in ("labels", "search"):
        if found.get(name) == "api" and "api" not in found:
            raise WrongDescription(f'{place} {name} = "api" needs the field api, the address of the wiki\'s api.php.')
    url = found.pop("endpoint")
    del found["kind"]
    found.setdefault("label_service", found.get("labels") == "service")
    return Endpoint(url, **found)


def _limits(table: dict[str, Any], file: str) -> Policy:
    found = read_table(table.get("limits", {}), f"{file}: [limits]", TABLES["limits"])
    usual = Policy(frozenset())
    return Policy(
        frozenset(),
        at_once=found.get("at_once", usual.at_once),
        per_minute=found.get("per_minute", usual.per_minute),
        seconds=found.get("seconds", usual.seconds),
        attempts=found.get("attempts", usual.attempts),
        most_bytes=found.get("bytes", usual.most_bytes),
        keep=timedelta(days=found["cache_days"]) if "cache_days" in found else usual.keep,
    )


def _keep_polite(limits: Policy, addresses: list[str], file: str) -> None:
    for host in map(host_of, addresses):
        if host.endswith(_WIKIMEDIA) and limits.at_once > _WIKIMEDIA_AT_ONCE:
            raise WrongDescription(
                f"{file}: [limits] at_once must be at most {_WIKIMEDIA_AT_ONCE} for {host}, which asks for that."
            )


def _require(found: dict[str, Any], place: str, **examples: str) -> None:
    for name, value in examples.items():
        if name not in found:
            raise WrongDescription(f'{place} {name} is missing; write for example {name} = "{value}".')


def _about(table: dict[str, Any], text: Site | None, graph: Endpoint | None) -> dict[str, Any]:
    digest = hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()
    found: dict[str, Any] = {"kind": LIVE, "hash": digest}
    found |= {name: table[name] for name in ("title", "licence") if name in table}
    if text is not None:
        found |= {"articles of": host_of(text.api), "language": text.language}
    if graph is not None:
        found["graph of"] = host_of(graph.url)
    addresses = [text.api if text else None, graph.url if graph else None, graph.api if graph else None]
    found["hosts"] = list(dict.fromkeys(host_of(address) for address in addresses if address))
    return found
