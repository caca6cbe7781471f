"""The facts that a graph tells, as N-Triples shaped like Wikidata's; written in blocks, never whole in memory."""

import json
from collections.abc import Iterable, Iterator
from datetime import date

import numpy as np
import numpy.typing as npt

from worlds import terms
from worlds.generator.items import (
    CLASSES,
    FEMALE,
    FIRST,
    HUMAN,
    KIND_CLASS,
    MALE,
    PLACES,
    PROPERTIES,
    PROPERTY,
    VALUES,
    Items,
)
from worlds.universe.relations import sibling_pairs
from worlds.universe.universe import NONE, Ids, Universe

BLOCK = 1 << 15
"""People whose triples are written at once."""
_DIGITS = 10
_DAYS = ("birth", "death", "wedding")
_SUBJECT, _END = f"<{terms.ENTITY}Q".encode(), b"> .\n"
_TYPED = 'T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n'

Numbers = npt.NDArray[np.int64]


def statements(told: Universe) -> Iterator[bytes]:
    """The triples of what the universe tells, each once, a line each, some thousands of people at a time."""
    yield of_things(told)
    for start in range(0, len(told), BLOCK):
        yield from of_people(told, range(start, min(start + BLOCK, len(told))))


def of_things(told: Universe) -> bytes:
    """The triples of properties, classes, places, jobs and hobbies."""
    return "".join((*_vocabulary(), *_things(told, Items(told)))).encode()


def of_people(told: Universe, block: range) -> Iterator[bytes]:
    """The triples of the people of these rows, in some runs of lines."""
    rows = np.arange(block.start, block.stop, dtype=np.int32)
    yield "".join(_names(told, Items(told), rows)).encode()
    yield "".join(_days(told, rows)).encode()
    yield from _claims(told, rows)


def _vocabulary() -> Iterator[str]:
    for pid, (label, *aliases) in PROPERTIES.items():
        yield from _named(pid, label, aliases)
    for item, label in CLASSES.items():
        yield from _named(item, label, ())
        yield _described(item, "class")


def _things(told: Universe, items: Items) -> Iterator[str]:
    """Places, jobs and hobbies."""
    for kind, of_class in KIND_CLASS.items():
        for number, label in enumerate(items.labels(kind)):
            item = f"Q{FIRST[kind] + number}"
            yield from _named(item, label, ())
            yield _described(item, items.description(kind, number))
            yield _claim(item, "P31", of_class)
            if kind in PLACES:
                yield _sitelink(label, item)
    places = told.places
    for town, region in enumerate(places.region.tolist()):
        yield _claim(items.town(town), PROPERTY["region"], items.region(region))
        yield _claim(items.town(town), PROPERTY["country"], items.country(int(places.country[region])))
    for region, country in enumerate(places.country.tolist()):
        yield _claim(items.region(region), PROPERTY["country"], items.country(country))


def _names(told: Universe, items: Items, rows: Ids) -> Iterator[str]:
    for row in rows.tolist():
        item = items.person(row)
        yield from _named(item, told.names[row], items.aliases(row))
        yield _described(item, items.description("person", row))
        yield _sitelink(told.titles[row], item)


def _days(told: Universe, rows: Ids) -> Iterator[str]:
    for fact in _DAYS:
        days = getattr(told, fact)[rows]
        predicate = f'> <{terms.DIRECT}{PROPERTY[fact]}> "'
        for row, day in zip(rows[days > NONE].tolist(), days[days > NONE].tolist(), strict=True):
            yield f"<{terms.ENTITY}Q{FIRST['person'] + row}{predicate}{date.fromordinal(day).isoformat()}{_TYPED}"


def _claims(told: Universe, rows: Ids) -> Iterator[bytes]:
    """What leads from people to items."""
    yield _all_lead("P31", rows, HUMAN)
    yield _all_lead(PROPERTY["gender"], rows[told.female[rows]], FEMALE)
    yield _all_lead(PROPERTY["gender"], rows[~told.female[rows]], MALE)
    for fact, kind in VALUES.items():
        values = getattr(told, fact)[rows]
        yield _each_leads(PROPERTY[fact], rows[values > NONE], values[values > NONE], kind)
    for relation, lists in (("child", told.children), ("friend", told.friends_of)):
        yield _each_leads(PROPERTY[relation], np.repeat(rows, lists.sizes()[rows]), lists.of(rows), "person")
    yield _each_leads(PROPERTY["sibling"], *sibling_pairs(told, rows), "person")


def _all_lead(pid: str, rows: Ids, target: str) -> bytes:
    return _lines(_SUBJECT, _numbers(rows, "person"), _leads(pid) + target.encode() + _END)


def _each_leads(pid: str, rows: Ids | Numbers, values: Ids | Numbers, kind: str) -> bytes:
    return _lines(_SUBJECT, _numbers(rows, "person"), _leads(pid) + b"Q", _numbers(values, kind), _END)


def _numbers(values: Ids | Numbers, kind: str) -> Numbers:
    return values.astype(np.int64) + FIRST[kind]


def _leads(pid: str) -> bytes:
    return f"> <{terms.DIRECT}{pid}> <{terms.ENTITY}".encode()


def _lines(*parts: bytes | Numbers) -> bytes:
    """A line a number, all at once: every number has as many digits, so that all lines are equally long."""
    count = next(len(part) for part in parts if isinstance(part, np.ndarray))
    widths = [len(part) if isinstance(part, bytes) else _DIGITS for part in parts]
    lines = np.empty((count, sum(widths)), np.uint8)
    end = 0
    for part, width in zip(parts, widths, strict=True):
        start, end = end, end + width
        lines[:, start:end] = np.frombuffer(part, np.uint8) if isinstance(part, bytes) else _digits(part)
    return lines.tobytes()


def _digits(numbers: Numbers) -> npt.NDArray[np.uint8]:
    digits = np.empty((len(numbers), _DIGITS), np.uint8)
    rest = numbers
    for place in range(_DIGITS - 1, -1, -1):
        rest, digit = np.divmod(rest, 10)
        digits[:, place] = digit + ord("0")
    return digits


def _named(item: str, label: str, aliases: Iterable[str]) -> Iterator[str]:
    yield f"<{terms.ENTITY}{item}> <{terms.RDFS_LABEL}> {_text(label)} .\n"
    for alias in aliases:
        yield f"<{terms.ENTITY}{item}> <{terms.SKOS_ALT_LABEL}> {_text(alias)} .\n"


def _described(item: str, description: str) -> str:
    return f"<{terms.ENTITY}{item}> <{terms.SCHEMA_DESCRIPTION}> {_text(description)} .\n"


def _sitelink(title: str, item: str) -> str:
    return f"<{terms.page_of_title(title)}> <{terms.SCHEMA_ABOUT}> <{terms.ENTITY}{item}> .\n"


def _claim(subject: str, pid: str, target: str) -> str:
    return f"<{terms.ENTITY}{subject}> <{terms.DIRECT}{pid}> <{terms.ENTITY}{target}> .\n"


def _text(value: str) -> str:
    # A JSON string is an N-Triples string for everything that is said here.
    return json.dumps(value, ensure_ascii=False) + "@en"
