"""What is found on the way: things and values, compared by how they are called."""

from collections.abc import Iterable
from dataclasses import dataclass

from reasoners.following.english import as_day, plain, spoken


@dataclass(frozen=True, slots=True)
class Thing:
    """Something that was found: its name or value, and its id where the graph gave one."""

    text: str
    id: str | None = None


def same_value(value: str) -> str:
    """A value as it is compared."""
    return as_day(value) or plain(value)


def bare_name(name: str) -> str:
    """A title without what tells it from others of that name."""
    return name.partition(" (")[0]


def ways_to_write(text: str) -> tuple[str, ...]:
    """A value as graphs and as articles write it."""
    day = as_day(text)
    return (text, bare_name(text), spoken(day)) if day else (text, bare_name(text))


def merged(known: Iterable[Thing], more: Iterable[Thing]) -> list[Thing]:
    """All of them, each once, by name; an id is kept where one is known."""
    found: dict[str, Thing] = {}
    for thing in (*known, *more):
        key = next((key for key, each in found.items() if thing.id and each.id == thing.id), plain(thing.text))
        there = found.get(key)
        if there is None or there.id is None or ("(" in thing.text and "(" not in there.text and thing.id == there.id):
            found[key] = thing
    return list(found.values())
