"""What English knows of relations: who an uncle is, and the words by which one is told from the other side."""

from dataclasses import dataclass
from functools import cache

from tools.text_to_sparql.rules.english import load_english_phrases, phrase_key

MALE, FEMALE = "male", "female"
_TITLES = {"Mr": MALE, "Ms": FEMALE, "Mrs": FEMALE}


@dataclass(frozen=True, slots=True)
class RelationPath:
    """Relations that lead to another one, the first step first: to an uncle by a parent and a brother."""

    steps: tuple[str, ...]
    excludes_start: bool
    """Whether who is reached must not be where the way began."""


@dataclass(frozen=True, slots=True)
class InverseRelation:
    """A word for the relation seen from the other side, and the gender that it then leaves open."""

    word: str
    gender: str | None = None


def is_compound(relation: str) -> bool:
    """Whether English has no other way to a relation than by others: nobody tells of cousins but by their parents."""
    readings = _readings(relation)
    return bool(readings) and "/" in readings[0]


def is_personal(relation: str) -> bool:
    """Whether English knows the relation as one between people."""
    return bool(relation) and bool(
        find_relation_path(relation) or inverse_relations(relation) or symmetric_relation(relation)
    )


@cache
def find_relation_path(relation: str) -> RelationPath | None:
    """The way to a relation by others; of brothers and sisters, whom sources also tell directly, by their parents."""
    for reading in _readings(relation):
        base, _, gender = reading.partition(":")
        if "/" in reading and (is_compound(relation) or reading.startswith("parent/")):
            return RelationPath(tuple(reading.rstrip("!").split("/")), reading.endswith("!"))
        if gender and "|" not in base and base != relation and (there := find_relation_path(base)):
            last = _gendered(there.steps[-1], gender)
            return RelationPath((*there.steps[:-1], last), there.excludes_start) if last else None
    return None


@cache
def path_lengths(relation: str) -> list[int]:
    """How many steps a relation takes, the most direct first: an uncle two; none where the word means several ways."""
    direct = find_relation_path(relation)
    if direct is None:
        return [1]
    if not is_compound(relation):
        return [1, len(direct.steps)]
    taken = [_path_length(reading.rstrip("!").split("/")) for reading in _readings(relation) if "/" in reading]
    return [] if taken[0] in taken[1:] else taken[:1]


def _path_length(steps: list[str]) -> int:
    word = [find_relation_path(step) if is_compound(step) else None for step in steps]
    return sum(_path_length(list(further.steps)) if further else 1 for further in word)


@cache
def inverse_relations(relation: str) -> tuple[InverseRelation, ...]:
    """How it is said from the other side: a child is whose father or mother somebody is."""
    results = []
    for reading in _readings(relation):
        base, _, gender = reading.partition(":")
        if "/" in reading:
            continue
        results += [InverseRelation(part[1:], gender or None) for part in base.split("|") if part.startswith("^")]
        if gender and "|" not in base:
            results += [InverseRelation(word.word, gender) for word in inverse_relations(base)]
    results = [word for word in results if word.word != relation or relation in ("brother", "sister")]
    return tuple(dict.fromkeys(word for word in results))


@cache
def narrower_words(relation: str) -> tuple[str, ...]:
    """Narrower words by which a relation is told, from either side: of parents the father, of a son the mother."""
    readings = [reading for reading in _readings(relation) if "/" not in reading and ":" not in reading]
    forwards = [part for reading in readings for part in reading.split("|") if not part.startswith("^")]
    return tuple(dict.fromkeys((*forwards, *(word.word for word in inverse_relations(relation)))))


@cache
def narrower(relation: str) -> tuple[str, ...]:
    """Words for a part of a relation: a son is a child."""
    parts = [part for reading in _readings(relation) if "/" not in reading for part in reading.split("|")]
    return tuple(part for part in parts if part != relation and not set("^:!") & set(part))


@cache
def other_side(relation: str) -> tuple[str, ...]:
    """Words for a relation as seen from who is reached."""
    parts = [part for reading in _readings(relation) if "/" not in reading for part in reading.split("|")]
    return tuple(part.strip("^") for part in parts if part.startswith("^"))


def symmetric_relation(relation: str) -> InverseRelation | None:
    """The relation that goes both ways of which this one is a part: friend, and of a wife the spouse."""
    for reading in _readings(relation):
        base, _, gender = reading.partition(":")
        if "/" not in reading and f"^{relation}" in base.split("|"):
            return InverseRelation(relation)
        if gender and (there := symmetric_relation(base)):
            return InverseRelation(there.word, gender)
    return None


def gender_of(title: str | None) -> str | None:
    """The gender that a title before a name tells."""
    return _TITLES.get(title or "")


@cache
def words_for(relation: str, asked: str) -> frozenset[str]:
    """English phrases that speak of a relation in questions that begin with when, where ...: died, passed away."""
    table = load_english_phrases()
    results = {relation, *table.relation_synonyms.get(phrase_key(relation), ())}
    for key, asking in table.words.items():
        if any(relation in _parts(path) for path in asking.paths_for(asked)[:1]):
            results.add(" ".join(key))
    return frozenset(results)


@cache
def find_relations(question: str, asked: str) -> frozenset[str]:
    """The relations that the words of a question lead to: when, died -> date of death."""
    stated = phrase_key(question)
    results = {
        part
        for key, asking in load_english_phrases().words.items()
        if any(stated[place : place + len(key)] == key for place in range(len(stated)))
        for part in _parts(next(iter(asking.paths_for(asked)), ""))
    }
    return frozenset(results)


def max_count(relation: str) -> int | None:
    """How many somebody has at most; None where it may be any number."""
    return {"father": 1, "mother": 1, "parent": 2}.get(relation)


def is_attribute(relation: str) -> bool:
    """Whether English knows the relation as one that leads to something else than people."""
    table, key = load_english_phrases(), phrase_key(relation)
    return (key in table.relation_synonyms or key in table.words) and not is_personal(relation)


def _parts(path: str) -> list[str]:
    return [] if "/" in path else path.split("|")


def _readings(relation: str) -> tuple[str, ...]:
    asking = load_english_phrases().words.get(phrase_key(relation))
    return asking.default_paths if asking else ()


def _gendered(relation: str, gender: str) -> str | None:
    """The word for a relation of one gender: a son for a child."""
    return next(
        (word.name for word in load_english_phrases().words.values() if f"{relation}:{gender}" in word.default_paths),
        None,
    )
