"""What is found on the way: things and values, compared by how they are called."""

from collections.abc import Iterable
from dataclasses import dataclass

from reasoners.replay.english import as_day, format_day, plain


@dataclass(frozen=True, slots=True)
class FoundEntity:
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
    return (text, bare_name(text), format_day(day)) if day else (text, bare_name(text))


def is_same(one: FoundEntity, other: FoundEntity) -> bool:
    """Whether two findings are of one thing: by id, else by title, else by name."""
    if one.id and other.id:
        return one.id == other.id
    if "(" in one.text and "(" in other.text:
        return plain(one.text) == plain(other.text)
    return plain(bare_name(one.text)) == plain(bare_name(other.text))


def merge_entities(known: Iterable[FoundEntity], more: Iterable[FoundEntity]) -> list[FoundEntity]:
    """All of them, each once, with the id and the title where these are known."""
    results: list[FoundEntity] = []
    for thing in (*known, *more):
        place = next((place for place, item in enumerate(results) if is_same(item, thing)), None)
        if place is None:
            results.append(thing)
        else:
            there = results[place]
            titled = thing if "(" in thing.text and "(" not in there.text else there
            results[place] = FoundEntity(titled.text, there.id or thing.id)
    return results
