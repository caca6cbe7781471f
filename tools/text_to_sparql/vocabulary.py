"""The relations that a question may need: all of a small graph; of a large one those of its entities and its words."""

from collections.abc import Iterator, Sequence
from itertools import chain

from tools.text_to_sparql.lexicon import GENDER_RELATION
from tools.text_to_sparql.scan import FUNCTION_WORDS, find_anchors
from worlds.lexicon.english import PathExpression, PhraseKey, QuestionWord, load_lexicon, phrase_key, split_words
from worlds.source import Entity, GraphSource, NotFound, Relation, Relations, RelationSearch

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
        if not free[start] or first.folded in FUNCTION_WORDS:
            continue
        for end in range(start + 1, min(len(words), start + _MAX_PHRASE_WORDS) + 1):
            last = words[end - 1].folded
            if not free[end - 1] or not last[:1].isalnum():
                break
            if last not in FUNCTION_WORDS or last in _FINAL_WORDS:
                yield start, end


def _content_runs(words: Sequence[QuestionWord], free: Sequence[bool]) -> Iterator[list[QuestionWord]]:
    run: list[QuestionWord] = []
    for word, is_free in zip(words, free, strict=True):
        if is_free and word.folded not in FUNCTION_WORDS and word.folded[:1].isalnum():
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
