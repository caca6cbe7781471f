"""What of a graph a question speaks of: the entities where it names them, and the relations that it may need.

These are all relations of a small graph; of a large one those of its entities and its words.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from tools.text_to_sparql.lexicon import GENDER_RELATION
from worlds.lexicon.english import (
    PLAIN_WORDS,
    POSSESSIVE_SUFFIX,
    PathExpression,
    PhraseKey,
    QuestionWord,
    load_lexicon,
    phrase_key,
    split_words,
)
from worlds.source import Entity, GraphSource, NotFound, Relation, Relations, RelationSearch

MIN_SIMILARITY = 0.5
_BRACKETED_SUFFIX = re.compile(r"\s*\([^)]*\)\s*$")
_NAME_PARTICLES = frozenset(
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
        content_words = set(name) - _NAME_PARTICLES
        for start, end in _iterate_runs(words, anchors, len(name) + 2):
            run = [word.folded for word in words[start:end]]
            shared = len(content_words.intersection(run))
            likeness = 2 * shared / (len(content_words) + len(set(run) - _NAME_PARTICLES)) if shared else 0.0
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
        between = all(word.capitalized or word.folded in _NAME_PARTICLES or not word.folded.isalpha() for word in run)
        if ends and between and all(w.folded != POSSESSIVE_SUFFIX for w in run) and end - start > best[1] - best[0]:
            best = (start, end)
    if best[1]:
        yield Anchor(entity, best[0], _extend_over_brackets(words, best[1]))


_MAX_PHRASE_WORDS = 6
_MAX_NAMES = 200
_MAX_SEARCHED_PHRASES = 4
"""Phrases of the question for which the graph's own search is asked."""
_FINAL_WORDS = frozenset(["by", "in", "of", "at", "on", "to", "for", "from", "with"])
"""Function words in which the name of a relation may end: directed by, member of."""


def load_vocabulary(graph: GraphSource, question: str, entities: Sequence[Entity]) -> tuple[Relation, ...]:
    """The relations of the graph that the question may need, without duplicates."""
    if not isinstance(graph, RelationSearch) or not graph.has_large_vocabulary:
        return graph.vocabulary()
    relations_by_entity = [fetch_relations(graph, entity) for entity in entities]
    own = chain.from_iterable((*relations.outgoing, *relations.incoming) for relations in relations_by_entity)
    words = split_words(question)
    anchors, _ = find_anchors(words, entities)
    free = [all(not anchor.start <= place < anchor.end for anchor in anchors) for place in range(len(words))]
    spans = [words[start:end] for start, end in _iterate_spans(words, free)]
    names = dict.fromkeys(chain(_span_names(question, spans), _lexicon_names(spans), _relation_names(GENDER_RELATION)))
    phrases = [question[run[0].start : run[-1].end] for run in _content_runs(words, free)]
    named = graph.find_relations(list(names)[:_MAX_NAMES], phrases[:_MAX_SEARCHED_PHRASES])
    return tuple(dict.fromkeys((*own, *named)))


def fetch_relations(graph: GraphSource, entity: Entity) -> Relations:
    """The entity's relations; none if the graph knows nothing but its name."""
    try:
        return graph.relations(entity.id)
    except NotFound:
        return Relations()


def _iterate_spans(words: Sequence[QuestionWord], free: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """The spans that may be a relation's name, outside the names of entities."""
    for start, first in enumerate(words):
        if not free[start] or first.folded in PLAIN_WORDS:
            continue
        for end in range(start + 1, min(len(words), start + _MAX_PHRASE_WORDS) + 1):
            last = words[end - 1].folded
            if not free[end - 1] or not last[:1].isalnum():
                break
            if last not in PLAIN_WORDS or last in _FINAL_WORDS:
                yield start, end


def _content_runs(words: Sequence[QuestionWord], free: Sequence[bool]) -> Iterator[list[QuestionWord]]:
    run: list[QuestionWord] = []
    for word, is_free in zip(words, free, strict=True):
        if is_free and word.folded not in PLAIN_WORDS and word.folded[:1].isalnum():
            run.append(word)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _span_names(question: str, spans: Sequence[Sequence[QuestionWord]]) -> Iterator[str]:
    for span in spans:
        yield question[span[0].start : span[-1].end]
        yield " ".join(word.stem for word in span)
        yield from load_lexicon().other_names(tuple(word.stem for word in span))


def _lexicon_names(spans: Sequence[Sequence[QuestionWord]]) -> Iterator[str]:
    """The relations that English says with these words: born is place of birth, and grandfather is father."""
    lexicon = load_lexicon()
    seen: set[PhraseKey] = set()
    for span in spans:
        for key in dict.fromkeys((tuple(word.folded for word in span), tuple(word.stem for word in span))):
            yield from _expand_word(key, seen)
            if comparison := lexicon.comparisons.get(key):
                for measure in (*comparison.measures, *comparison.date_span):
                    yield from _relation_names(measure)
                    yield from _expand_word(phrase_key(measure), seen)


def _expand_word(key: PhraseKey, seen: set[PhraseKey]) -> Iterator[str]:
    entry = load_lexicon().words.get(key)
    if entry is None or key in seen:
        return
    seen.add(key)
    expressions: Iterator[PathExpression] = chain(entry.default_paths, *entry.paths_by_question_word.values())
    for expression in expressions:
        for term in (term for segment in expression.segments for term in segment.terms):
            yield from _relation_names(term.relation)
            yield from _expand_word(phrase_key(term.relation), seen)


def _relation_names(name: str) -> Iterator[str]:
    yield name
    yield from load_lexicon().other_names(phrase_key(name))
