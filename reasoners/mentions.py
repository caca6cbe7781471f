"""Finds mentions: the dates, numbers, names and relations in a sentence or a question, by what a world knows."""

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache, cached_property

import numpy as np

from showhow.reasoners.answers.dates_and_numbers import read_days
from showhow.reasoners.provenance import DATE_PATTERN, MONTHS
from showhow.tools.tool import EncodeFunction
from showhow.worlds import terms
from showhow.worlds.embedded.graph import EmbeddedGraph
from showhow.worlds.embedded.text import EmbeddedText
from showhow.worlds.lexicon import kinship
from showhow.worlds.lexicon.english import MINOR_WORDS, QuestionWord, has_content, list_words, load_lexicon, phrase_key
from showhow.worlds.source import Entity, World
from showhow.worlds.text_normalization import normalize_name

DATE, NUMBER, THING = "date", "number", "thing"
"""The kinds of values that the graph does not tell."""
MAX_CACHED_NAMES = 100_000
"""What may be names, and is known to be one or not."""
_QUESTION_WORDS = ("when", "where", "who")
NameLookup = Callable[[str], bool]
"""Whether the world has an article, an entity or a label of that name."""
_NAME_RUN_PATTERN = re.compile(
    r"(?<![\w'’])[^\W\d_a-z][\w'’.-]*(?:\s(?:(?:of|the|de|von|van|der|al|du|la|and)\s)?[^\W\d_a-z][\w'’-]*)*"
)
"""A run of capitalized words and connecting words: one name, or several names joined by "and"."""
_WORD_PATTERN = re.compile(r"\S+")
_NUMBER_PATTERN = re.compile(r"(?<![\w.,-])\d+(?:[.,]\d+)*(?![\w-])")
_POSSESSIVE_PATTERN = re.compile(r"['’]s?$")
_SENTENCE_OPENERS = frozenset(
    {"He", "She", "It", "They", "The", "A", "An", "In", "On", "At", "His", "Her", "Its", "Their", "This", "That", "As"}
)
_MAX_COMPARED_LABELS = 400
"""In a graph with more relations, a word names a relation only by its exact label."""
_MIN_RELATION_COSINE, _MIN_RELATION_LEAD = 0.84, 0.15
"""A word names a relation if its cosine with the label is so high, or so much higher than with any other label."""
_PROBED_ARTICLES, _MIN_STATED_SHARE, _DESCRIBING_SENTENCES = 40, 0.5, 2
"""The articles compared with the graph, the share of its values that they state; the sentences that say what it is."""
_MAX_NAME_WORDS, _MAX_QUESTION_NAME_WORDS = 10, 14
MIN_NAME_LENGTH = 2
"""Without a lookup, names are longer than this, since initials are not names."""


def name_lookup(world: World | None) -> NameLookup | None:
    """The name lookup of an embedded world; None for a live world, which would need network requests."""
    if world is None:
        return None
    texts = [source for source in (world.text,) if isinstance(source, EmbeddedText)]
    graphs = [source for source in (world.graph,) if isinstance(source, EmbeddedGraph)]
    if not texts and not graphs:
        return None
    return lambda name: any(text.has_title(name) for text in texts) or any(graph.has_name(name) for graph in graphs)


def find_values(sentence: str, is_known_name: NameLookup | None = None) -> list[tuple[int, int]]:
    """Find the spans of dates, names and numbers in a sentence; without a lookup, any capitalized run is a name."""
    spans = [match.span() for match in DATE_PATTERN.finditer(sentence)]
    for match in _NAME_RUN_PATTERN.finditer(sentence):
        words = [
            (match.start() + word.start(), match.start() + word.end()) for word in _WORD_PATTERN.finditer(match.group())
        ]
        names = _split_run(sentence, words) if is_known_name is None else _known_names(sentence, words, is_known_name)
        spans += [span for span in names if not _overlaps(span, spans)]
    spans += [span for number in _NUMBER_PATTERN.finditer(sentence) if not _overlaps(span := number.span(), spans)]
    return sorted(spans)


def _known_names(sentence: str, words: list[tuple[int, int]], is_known_name: NameLookup) -> Iterator[tuple[int, int]]:
    """Yield the spans of the longest known names, from left to right."""
    first_word = 0
    while first_word < len(words):
        last_words = range(min(len(words), first_word + _MAX_NAME_WORDS) - 1, first_word - 1, -1)
        candidates = (
            (last_word, _trim(sentence, words[first_word][0], words[last_word][1])) for last_word in last_words
        )
        match = next(
            ((last_word, span) for last_word, span in candidates if _is_name(sentence, span, is_known_name)), None
        )
        if match is not None:
            yield match[1]
        first_word = match[0] + 1 if match is not None else first_word + 1


def _is_name(sentence: str, span: tuple[int, int], is_known_name: NameLookup) -> bool:
    name = sentence[slice(*span)]
    return name not in _SENTENCE_OPENERS and name not in MONTHS and is_known_name(name)


def _split_run(sentence: str, words: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the names of a run, split at "and", without sentence openers and months."""
    names: list[list[tuple[int, int]]] = [[]]
    for word in words:
        if sentence[slice(*word)] == "and":
            names.append([])
        else:
            names[-1].append(word)
    for name in names:
        # The first word of a sentence is always capitalized.
        while name and sentence[slice(*name[0])] in _SENTENCE_OPENERS:
            name.pop(0)
        if name and (len(name) > 1 or sentence[slice(*name[0])] not in MONTHS):
            start, end = _trim(sentence, name[0][0], name[-1][1])
            if end - start > MIN_NAME_LENGTH:
                yield start, end


def _trim(sentence: str, start: int, end: int) -> tuple[int, int]:
    """Remove a possessive ending and final punctuation from the span."""
    text = sentence[start:end].rstrip(".-")
    return start, start + len(_POSSESSIVE_PATTERN.sub("", text))


def _overlaps(span: tuple[int, int], others: Iterable[tuple[int, int]]) -> bool:
    return any(span[0] < end and start < span[1] for start, end in others)


def find_question_mentions(
    question: str, is_known_name: NameLookup, vocabulary: Collection[str]
) -> list[tuple[int, int]]:
    """The dates, numbers and the longest known names of a question, whatever their case.

    A single word of the vocabulary, the stems of words that questions use, is no name.
    """
    spans, words = [match.span() for match in DATE_PATTERN.finditer(question)], list_words(question)
    for place, word in enumerate(words):
        if not any(first <= word.start < last for first, last in spans):
            end = _find_name_end(question, words[place:], is_known_name, vocabulary)
            end = end or (word.end if word.stem.isdecimal() else None)
            spans += [(word.start, end)] if end else []
    return sorted(spans)


def _find_name_end(
    question: str, words: Sequence[QuestionWord], is_known_name: NameLookup, vocabulary: Collection[str]
) -> int | None:
    """Where the name ends that begins with the first word; None without a name."""
    first, start = words[0].stem, words[0].start
    # A small word before another one belongs to its noun: male cousins.
    is_noun = words[0].capitalized or len(words) == 1 or words[1].folded in MINOR_WORDS
    is_word = not is_noun or first in vocabulary or not has_content(first)
    for count in range(min(_MAX_QUESTION_NAME_WORDS, len(words)), 1 if is_word else 0, -1):
        # A mark may belong to the name: Mulan (Film), Mamma Mia!
        for end in (words[count - 1].end + 1, words[count - 1].end):
            if not question[:end].endswith(" ") and is_known_name(question[start:end]):
                return end

    def is_part(word: QuestionWord) -> bool:
        return word.capitalized or word.stem.isdecimal() or not question[word.start - 1].isspace()

    # A name that the world does not know, or cannot be asked for without a step.
    is_unknown_name = start > 0 and words[0].capitalized and not is_word
    return list(itertools.takewhile(is_part, words))[-1].end if is_unknown_name else None


class WorldWords:
    """The names and relations of a world; one that is not embedded is asked only by steps."""

    def __init__(self, world: World, encode: EncodeFunction) -> None:
        self._text = world.text if isinstance(world.text, EmbeddedText) else None
        self._graph = world.graph if isinstance(world.graph, EmbeddedGraph) else None
        self._encode, self._is_known_name = encode, name_lookup(world)
        self._known: dict[str, bool] = {}
        self._meanings: dict[str, frozenset[str]] = {}
        self._kinds: dict[str, frozenset[str]] = {}
        self._value_kinds: dict[str, frozenset[str]] = {}

    @cached_property
    def _labels(self) -> dict[str, str]:
        """The labels of relations by their names."""
        relations = self._graph.vocabulary() if self._graph else ()
        return {normalize_name(name): own.label for own in relations for name in (*own.aliases, own.label)}

    def knows(self, name: str) -> bool:
        """Whether an article or an entity has this name; relations are no names."""
        if name not in self._known:
            if len(self._known) == MAX_CACHED_NAMES:
                self._known.clear()
            lookup = self._is_known_name
            self._known[name] = lookup is not None and normalize_name(name) not in self._labels and lookup(name)
        return self._known[name]

    @cached_property
    def _label_rows(self) -> tuple[list[str], np.ndarray]:
        labels = sorted(set(self._labels.values()))
        return labels, self._encode(labels)

    def find_relation(self, phrase: str) -> str | None:
        """The label of the relation with this name, or with one that clearly resembles it; None if there is none."""
        exact = self._labels.get(normalize_name(phrase)) or self._labels.get(" ".join(phrase_key(phrase)))
        if exact is not None or not 1 < len(set(self._labels.values())) <= _MAX_COMPARED_LABELS or not phrase.islower():
            return exact
        if any(stem in self._labels for stem in phrase_key(phrase)):
            # The father's father resembles the father.
            return None
        labels, rows = self._label_rows
        cosines = rows @ self._encode([phrase])[0]
        second, best = cosines.argsort()[-2:]
        is_clear = cosines[best] >= max(_MIN_RELATION_COSINE, cosines[second] + _MIN_RELATION_LEAD)
        return labels[best] if is_clear else None

    def find_label(self, phrase: str) -> str | None:
        """The label of the relation with this name, in whatever number; None if there is none."""
        return self._labels.get(normalize_name(phrase)) or self._labels.get(" ".join(phrase_key(phrase)))

    def meanings_of(self, phrase: str) -> frozenset[str]:
        """The relations that a phrase may mean: the one that it names, or those that its words lead to."""
        if phrase not in self._meanings:
            self._meanings[phrase] = self._find_meanings(phrase)
        return self._meanings[phrase]

    def _find_meanings(self, phrase: str) -> frozenset[str]:
        lexicon, key, named = load_lexicon(), phrase_key(phrase), self.find_label(phrase)
        if (entry := lexicon.words.get(key)) is None:
            names = [" ".join(own) for own, other in lexicon.relations.items() if key in map(phrase_key, other.aliases)]
            return frozenset([named] if named else [" ".join(key)] if key in lexicon.relations else names)
        if kinship.relates_people(" ".join(key)) and not entry.paths_by_question_word:
            return frozenset({entry.label})
        meanings = {r for w in (*_QUESTION_WORDS, None) for r in entry.paths_for(w)[0].relations}
        if general := {r for r in meanings if kinship.relates_people(r) and kinship.gendered_words(r)}:
            meanings = {r for r in meanings if not kinship.relates_people(r)} | general
        meanings |= {named} if named else set()
        known = {label for r in meanings if (label := self.find_label(r))}
        return frozenset({r for r in meanings if kinship.relates_people(r)} | known or meanings)

    def kinds_of(self, value: str) -> frozenset[str]:
        """The kinds of what has this name: date, number, the types in the graph, or THING if it tells none."""
        if value not in self._kinds:
            if read_days(value) is not None:
                kinds = {DATE}
            elif value.isdecimal():
                kinds = {NUMBER}
            else:
                same = [e.id for e in (self._graph.find(value) if self._graph else ()) if _has_label(e, value)]
                kinds = self._types([f"{terms.format_node(id_)} wdt:P31 ?kind" for id_ in same])
            self._kinds[value] = frozenset(kinds or {THING})
        return self._kinds[value]

    def list_names_like(self, name: str, limit: int) -> list[str]:
        """The names of other things of the kinds that what has this name has in the graph; none if it tells none."""
        kinds = sorted(self.kinds_of(name) - {DATE, NUMBER, THING})
        if self._graph is None or not kinds:
            return []
        patterns = " UNION ".join(f"{{ ?other wdt:P31 {terms.format_node(kind)} }}" for kind in kinds)
        table = self._graph.query(f"SELECT DISTINCT ?other WHERE {{ {patterns} }} LIMIT {limit}")
        others = self._graph.entities([cell.value for (cell,) in table.rows if cell is not None])
        return [other.label for other in others if not _has_label(other, name) and other.label != other.id]

    def value_kinds(self, relation: str) -> frozenset[str]:
        """The kinds of the values of a relation, by its label or by its word between people."""
        if relation not in self._value_kinds:
            kinds = {THING}
            for predicate, value in self._predicates(relation):
                kinds |= {value} if value != "entity" else set()
                kinds |= self._types([f"?s {predicate} ?o . ?o wdt:P31 ?kind"]) if value == "entity" else set()
            if relation in _answers_to_when():
                kinds = {DATE}
            self._value_kinds[relation] = frozenset(kinds)
        return self._value_kinds[relation]

    def only_relation_to(self, values: Sequence[str]) -> str | None:
        """The only relation of the graph that leads to a kind that all these values have; None for several."""
        kinds = frozenset.intersection(*map(self.kinds_of, values)) - {DATE, NUMBER, THING}
        own = (
            [label for label in sorted(set(self._labels.values())) if kinds & self.value_kinds(label)] if kinds else []
        )
        return own[0] if len(own) == 1 else None

    def has_one_value(self, relation: str) -> bool:
        """Whether nothing in the graph has two values of the relation."""
        predicates = [predicate for predicate, _ in self._predicates(relation)]
        return bool(predicates) and not any(
            self._graph.query(f"SELECT ?s WHERE {{ ?s {own} ?o, ?p FILTER(?o != ?p) }} LIMIT 1").rows
            for own in predicates
            if self._graph
        )

    def _predicates(self, relation: str) -> list[tuple[str, str]]:
        """The predicates of a relation with the types of their values; those of its basic relation between people."""
        names = {relation}
        if kinship.relates_people(relation):
            (*_, last) = kinship.basic_path(relation).steps
            names = {last, *kinship.gendered_words(last)}
        vocabulary = self._graph.vocabulary() if self._graph else ()
        predicates = ((terms.format_predicate(own.id), str(own.value)) for own in vocabulary if own.label in names)
        return [(predicate, value) for predicate, value in predicates if predicate is not None]

    def _types(self, patterns: Sequence[str]) -> set[str]:
        if self._graph is None or not patterns:
            return set()
        query = f"SELECT DISTINCT ?kind WHERE {{ {{ {' } UNION { '.join(patterns)} }} }} LIMIT 20"
        return {cell.value for (cell,) in self._graph.query(query).rows if cell is not None}

    def spreads_facts(self) -> bool:
        """Whether articles lack facts that the graph has: then lists of one source may be incomplete."""
        stated: list[bool] = []
        for article in self._text.list_articles(_PROBED_ARTICLES) if self._text and self._graph else ():
            if article.entity is not None and self._graph:
                query = f"SELECT DISTINCT ?value WHERE {{ {terms.format_node(article.entity)} ?relation ?value }}"
                cells = [cell for (cell,) in self._graph.query(query).rows if cell is not None]
                labels = self._graph.entities([cell.value for cell in cells if cell.kind == "entity"])
                stated += [entity.label.casefold() in article.text.casefold() for entity in labels]
        return sum(stated) < _MIN_STATED_SHARE * len(stated)

    def describes(self, name: str, word: str) -> bool:
        """Whether the first sentences of the article about a name have this word: they say what kind of thing it is."""
        if self._text is None or not self._text.has_title(name):
            return False
        return word in phrase_key(" ".join(self._text.article(name).sentences[:_DESCRIBING_SENTENCES]))


def _has_label(entity: Entity, name: str) -> bool:
    return normalize_name(name) in (normalize_name(entity.label), normalize_name(entity.title or ""))


@cache
def _answers_to_when() -> frozenset[str]:
    """The relations that some word of the lexicon means after "when"."""
    paths = [path for entry in load_lexicon().words.values() for path in entry.paths_by_question_word.get("when", ())]
    return frozenset(relation for path in paths for relation in path.relations if not kinship.relates_people(relation))
