"""Locate the entities of a question in its text."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from worlds.lexicon.english import POSSESSIVE_SUFFIX, QuestionWord, split_words
from worlds.source import Entity

MIN_SIMILARITY = 0.5
_BRACKETED_SUFFIX = re.compile(r"\s*\([^)]*\)\s*$")
_FUNCTION_WORDS = frozenset(
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


def find_anchors(words: Sequence[QuestionWord], entities: Sequence[Entity]) -> tuple[list[Anchor], list[Entity]]:
    """The anchors in reading order, and the entities that the question does not name.

    Exact names win over similar ones, long ones over short ones, so that "Ada Reed" is not found in "Ada Reed Hall".
    """
    anchors: list[Anchor] = []
    names = [(name, entity) for entity in entities for name in entity_names(entity)]
    for name, entity in sorted(names, key=lambda pair: -len(pair[0])):
        if all(anchor.entity is not entity for anchor in anchors):
            anchors.extend(_match_exact(words, name, entity, anchors))
    for search in (_match_similar, _match_capitalised):
        for entity in entities:
            if all(anchor.entity is not entity for anchor in anchors):
                anchors.extend(search(words, entity, anchors))
    named = [anchor.entity for anchor in anchors]
    return sorted(anchors, key=lambda anchor: anchor.start), [e for e in entities if e not in named]


def entity_names(entity: Entity) -> list[tuple[str, ...]]:
    """Everything that an entity is called, as folded words; also without what a title adds in brackets."""
    texts = [text for text in (entity.title, entity.label, *entity.aliases) if text]
    texts += [_BRACKETED_SUFFIX.sub("", text) for text in texts]
    return [name for name in dict.fromkeys(_fold_words(text) for text in texts) if name]


def _fold_words(text: str) -> tuple[str, ...]:
    return tuple(word.folded for word in split_words(text))


def _is_free(start: int, end: int, anchors: Sequence[Anchor]) -> bool:
    return all(end <= anchor.start or anchor.end <= start for anchor in anchors)


def _match_exact(
    words: Sequence[QuestionWord], name: tuple[str, ...], entity: Entity, anchors: Sequence[Anchor]
) -> Iterator[Anchor]:
    # Marks inside a name are compared too, but one that only one side has is forgiven by comparing without any.
    for spelling in (name, tuple(part for part in name if part.isalnum() or part == POSSESSIVE_SUFFIX)):
        for start in range(len(words) - len(spelling) + 1):
            end = start + len(spelling)
            if spelling and _is_free(start, end, anchors) and tuple(w.folded for w in words[start:end]) == spelling:
                yield Anchor(entity, start, _extend_over_brackets(words, end))
                return


def _extend_over_brackets(words: Sequence[QuestionWord], end: int) -> int:
    """The end of a name with the "(film)" or "(1890-1960)" that may follow it."""
    if end < len(words) and words[end].folded == "(":
        for place in range(end, len(words)):
            if words[place].folded == ")":
                return place + 1
    return end


def _match_similar(words: Sequence[QuestionWord], entity: Entity, anchors: Sequence[Anchor]) -> Iterator[Anchor]:
    """The run of words that shares most with one of the names: "Ada Reed" for "Ada Mary Reed"."""
    best, place = MIN_SIMILARITY, None
    for name in entity_names(entity):
        content_words = set(name) - _FUNCTION_WORDS
        for start, end in _iterate_runs(words, anchors, len(name) + 2):
            run = [word.folded for word in words[start:end]]
            shared = len(content_words.intersection(run))
            likeness = 2 * shared / (len(content_words) + len(set(run) - _FUNCTION_WORDS)) if shared else 0.0
            if run[0] in content_words and run[-1] in content_words and likeness > best:
                best, place = likeness, (start, end)
    if place:
        yield Anchor(entity, place[0], _extend_over_brackets(words, place[1]))


def _iterate_runs(words: Sequence[QuestionWord], anchors: Sequence[Anchor], longest: int) -> Iterator[tuple[int, int]]:
    for start in range(len(words)):
        for end in range(start + 1, min(len(words), start + longest) + 1):
            if _is_free(start, end, anchors):
                yield start, end


def _match_capitalised(words: Sequence[QuestionWord], entity: Entity, anchors: Sequence[Anchor]) -> Iterator[Anchor]:
    """The longest run of capitalised words, the question's first word aside: a name that the graph does not know."""
    best = (0, 0)
    for start, end in _iterate_runs(words, anchors, 20):
        run = words[start:end]
        ends = run[0].capitalized and run[-1].capitalized and start > 0
        between = all(word.capitalized or word.folded in _FUNCTION_WORDS or not word.folded.isalpha() for word in run)
        if ends and between and all(w.folded != POSSESSIVE_SUFFIX for w in run) and end - start > best[1] - best[0]:
            best = (start, end)
    if best[1]:
        yield Anchor(entity, best[0], _extend_over_brackets(words, best[1]))
