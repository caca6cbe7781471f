"""Where a question speaks of the entities it was given."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tools.grammar.words import POSSESSIVE, Word, words_of
from worlds.source import Entity

ENOUGH = 0.5
_BRACKETED = re.compile(r"\s*\([^)]*\)\s*$")
_SMALL = frozenset(
    [
        "the",
        "a",
        "an",
        "of",
        "and",
        "or",
        "in",
        "on",
        "at",
        "to",
        "for",
        "by",
        "with",
        "from",
        "de",
        "la",
        "von",
        "van",
        "der",
        "den",
        "du",
        "le",
    ]
)


@dataclass(frozen=True, slots=True)
class Anchor:
    """An entity and the words of the question, from `start` up to `end`, that name it."""

    entity: Entity
    start: int
    end: int


def find_anchors(words: Sequence[Word], entities: Sequence[Entity]) -> tuple[list[Anchor], list[Entity]]:
    """The anchors in reading order, and the entities that the question does not name.

    Exact names win over similar ones, long ones over short ones, so that "Ada Reed" is not found in "Ada Reed Hall".
    """
    found: list[Anchor] = []
    names = [(name, entity) for entity in entities for name in names_of(entity)]
    for name, entity in sorted(names, key=lambda pair: -len(pair[0])):
        if all(anchor.entity is not entity for anchor in found):
            found.extend(_exact(words, name, entity, found))
    for search in (_similar, _capitalised):
        for entity in entities:
            if all(anchor.entity is not entity for anchor in found):
                found.extend(search(words, entity, found))
    named = [anchor.entity for anchor in found]
    return sorted(found, key=lambda anchor: anchor.start), [e for e in entities if e not in named]


def names_of(entity: Entity) -> list[tuple[str, ...]]:
    """Everything that an entity is called, as folded words; also without what a title adds in brackets."""
    texts = [text for text in (entity.title, entity.label, *entity.aliases) if text]
    texts += [_BRACKETED.sub("", text) for text in texts]
    return [name for name in dict.fromkeys(_folded(text) for text in texts) if name]


def _folded(text: str) -> tuple[str, ...]:
    return tuple(word.folded for word in words_of(text))


def _free(start: int, end: int, found: Sequence[Anchor]) -> bool:
    return all(end <= anchor.start or anchor.end <= start for anchor in found)


def _exact(words: Sequence[Word], name: tuple[str, ...], entity: Entity, found: Sequence[Anchor]) -> Iterator[Anchor]:
    # Marks inside a name are compared too, but one that only one side has is forgiven by comparing without any.
    for wanted in (name, tuple(part for part in name if part.isalnum() or part == POSSESSIVE)):
        for start in range(len(words) - len(wanted) + 1):
            end = start + len(wanted)
            if wanted and _free(start, end, found) and tuple(w.folded for w in words[start:end]) == wanted:
                yield Anchor(entity, start, _with_brackets(words, end))
                return


def _with_brackets(words: Sequence[Word], end: int) -> int:
    """The end of a name with the "(film)" or "(1890-1960)" that may follow it."""
    if end < len(words) and words[end].folded == "(":
        for place in range(end, len(words)):
            if words[place].folded == ")":
                return place + 1
    return end


def _similar(words: Sequence[Word], entity: Entity, found: Sequence[Anchor]) -> Iterator[Anchor]:
    """The run of words that shares most with one of the names: "Ada Reed" for "Ada Mary Reed"."""
    best, place = ENOUGH, None
    for name in names_of(entity):
        wanted = set(name) - _SMALL
        for start, end in _runs(words, found, len(name) + 2):
            run = [word.folded for word in words[start:end]]
            shared = len(wanted.intersection(run))
            likeness = 2 * shared / (len(wanted) + len(set(run) - _SMALL)) if shared else 0.0
            if run[0] in wanted and run[-1] in wanted and likeness > best:
                best, place = likeness, (start, end)
    if place:
        yield Anchor(entity, place[0], _with_brackets(words, place[1]))


def _runs(words: Sequence[Word], found: Sequence[Anchor], longest: int) -> Iterator[tuple[int, int]]:
    for start in range(len(words)):
        for end in range(start + 1, min(len(words), start + longest) + 1):
            if _free(start, end, found):
                yield start, end


def _capitalised(words: Sequence[Word], entity: Entity, found: Sequence[Anchor]) -> Iterator[Anchor]:
    """The longest run of capitalised words, the question's first word aside: a name that the graph does not know."""
    best = (0, 0)
    for start, end in _runs(words, found, 20):
        run = words[start:end]
        ends = run[0].capital and run[-1].capital and start > 0
        between = all(word.capital or word.folded in _SMALL or not word.folded.isalpha() for word in run)
        if ends and between and all(w.folded != POSSESSIVE for w in run) and end - start > best[1] - best[0]:
            best = (start, end)
    if best[1]:
        yield Anchor(entity, best[0], _with_brackets(words, best[1]))
