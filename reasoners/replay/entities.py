"""The entities and values found during a run, compared by id, title or name."""

from collections.abc import Iterable
from dataclasses import dataclass

from reasoners.replay.english import as_day, format_day, plain


@dataclass(frozen=True, slots=True)
class FoundEntity:
    """An entity or value: its name or text, and its id if the graph returned one."""

    text: str
    id: str | None = None


def same_value(value: str) -> str:
    """A value normalized for comparison."""
    return as_day(value) or plain(value)


def bare_name(name: str) -> str:
    """A title without its disambiguation in brackets."""
    return name.partition(" (")[0]


def ways_to_write(text: str) -> tuple[str, ...]:
    """The spellings of a value in graphs and in articles."""
    day = as_day(text)
    return (text, bare_name(text), format_day(day)) if day else (text, bare_name(text))


def is_same(one: FoundEntity, other: FoundEntity) -> bool:
    """Whether two entities are the same: by id, or else by title, or else by name."""
    if one.id and other.id:
        return one.id == other.id
    if "(" in one.text and "(" in other.text:
        return plain(one.text) == plain(other.text)
    return plain(bare_name(one.text)) == plain(bare_name(other.text))


def merge_entities(known: Iterable[FoundEntity], more: Iterable[FoundEntity]) -> list[FoundEntity]:
    """Merge two lists of entities without duplicates; keep ids and titles that only one list has."""
    merged: list[FoundEntity] = []
    for entity in (*known, *more):
        index = next((place for place, other in enumerate(merged) if is_same(other, entity)), None)
        if index is None:
            merged.append(entity)
        else:
            existing = merged[index]
            titled = entity if "(" in entity.text and "(" not in existing.text else existing
            merged[index] = FoundEntity(titled.text, existing.id or entity.id)
    return merged
