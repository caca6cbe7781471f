"""What sentences state: the relation of a thing to a value, read by the lexicon and by sentences of demonstrations.

A sentence is read clause by clause. What it names is masked, so that one wording is one pattern; a pattern states the
relation whose word it has, or the one that demonstrations read in it. A clause that names a value and is not understood
is told by the kind of that value, so that a look-up knows whether it may have missed one.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from showhow.reasoners.mentions import DATE, NUMBER, WorldWords, find_question_mentions
from showhow.worlds.embedded.text import strip_parenthesis
from showhow.worlds.lexicon import kinship
from showhow.worlds.lexicon.english import (
    COPULAS,
    MINOR_WORDS,
    POSSESSIONS,
    POSSESSIVE_SUFFIX,
    PREPOSITIONS,
    RELATIVE_PRONOUNS,
    THIRD_PERSON_PRONOUNS,
    VALUE_QUESTION_WORDS,
    has_content,
    list_words,
    load_lexicon,
    nouns_for_kinds,
    word_root,
)

MAX_RELATION_WORDS, MAX_OTHER_WORDS = 6, 3
"""The most words of a relation, and the words of content beside it in a clause that is understood."""
MAX_CACHED_READINGS = 10_000
"""The texts whose statements are kept; the questions of a world read the same ones again."""
ARTICLES = frozenset(["the", "a", "an"])
_SUBJECT, _VALUE, _BE, _HAVE = "S", "V", "be", "have"
_LIFE = ("date of birth", "date of death")
_SUBORDINATE = RELATIVE_PRONOUNS | VALUE_QUESTION_WORDS | {"whose", _SUBJECT}
_CLAUSES = re.compile(r"; |\.$")
_JOINT = re.compile(r"(?:, | and |, and )\Z")
Pattern = tuple[str, ...]


class Statement(NamedTuple):
    """That a thing has a value by a relation; `gender` is that of the value, where the sentence tells it."""

    relation: str
    value: str
    gender: str | None = None


@dataclass(slots=True)
class Reading:
    """What sentences state about a thing, and the values of clauses that are not understood, by their kinds."""

    statements: list[Statement] = field(default_factory=list)
    unread: list[tuple[frozenset[str], str]] = field(default_factory=list)
    """The kinds of the values of each clause that is not understood, and the clause."""


class _Clause(NamedTuple):
    text: str
    words: tuple[str, ...]
    """Folded words, with the subject and the values as letters."""
    values: tuple[str, ...]
    counts: tuple[int, ...]
    """How many values each letter stands for."""
    titles: tuple[str | None, ...]
    """The genders that titles before the values state."""

    @property
    def pattern(self) -> Pattern:
        """The words by which two clauses are told apart, whatever their tense and articles."""
        kept = (_BE if w in COPULAS else _HAVE if w in POSSESSIONS else w for w in self.words)
        return tuple(w if w in (_SUBJECT, _VALUE, _BE, _HAVE) else word_root(w) for w in kept if w not in ARTICLES)


def find_relations(words: Iterable[str], world: WorldWords) -> list[tuple[int, int, frozenset[str]]]:
    """The words for relations, the longest first from each place: their span, and what they may mean."""
    texts, spans, start = list(words), [], 0
    while start < len(texts):
        if texts[start] in MINOR_WORDS:
            start += 1
            continue
        for end in range(min(len(texts), start + MAX_RELATION_WORDS), start, -1):
            phrase = " ".join(texts[start:end])
            meanings = frozenset() if phrase in (_SUBJECT, _VALUE) else world.meanings_of(phrase)
            if meanings:
                spans.append((start, end, meanings))
                start = end - 1
                break
        start += 1
    return spans


class SentenceReader:
    """Reads sentences of a world."""

    def __init__(self, world: WorldWords) -> None:
        self.world = world
        self._clauses: dict[tuple[str, str, bool], _Clause] = {}
        """The masked clauses by text, subject and whether that is the title."""
        self._learnt: dict[Pattern, set[str]] = defaultdict(set)
        self._readings: dict[tuple[str, bool, tuple[str, ...]], Reading] = {}

    def unlearnt(self) -> "SentenceReader":
        """A reader of the same world that shares what is masked, and has learnt nothing."""
        reader = SentenceReader(self.world)
        reader._clauses = self._clauses
        return reader

    def suggest(self, sentences: Iterable[str], subject: str, relation: str, *, is_title: bool) -> Pattern | None:
        """The pattern of the only clause that may state a relation which no other clause states."""
        clauses = [c for c in self._list_clauses(sentences, subject, is_title=is_title) if c.values]
        stated = [c for c in clauses if self._states(c, relation)]
        unknown = [c for c in clauses if not self._meanings(c) and self._fits(c, relation)]
        return unknown[0].pattern if not stated and len(unknown) == 1 else None

    def learn(self, pattern: Pattern, relation: str) -> None:
        """Read clauses with a pattern as stating a relation of the subject."""
        self._learnt[pattern].add(relation)
        self._readings.clear()

    def forget(self, pattern: Pattern, relation: str) -> None:
        """Read them no longer so."""
        self._learnt[pattern].discard(relation)
        self._readings.clear()

    def read(self, sentences: Iterable[str], subject: str, *, is_title: bool) -> Reading:
        """What sentences state about a subject; in a text with it as title, pronouns mean it."""
        key = subject, is_title, tuple(sentences)
        reading = self._readings.get(key)
        if reading is None:
            if len(self._readings) >= MAX_CACHED_READINGS:
                self._readings.clear()
            reading = self._readings[key] = self._read(*key)
        return reading

    def _read(self, subject: str, is_title: bool, sentences: Sequence[str]) -> Reading:  # noqa: FBT001 - the parts of a key
        reading = Reading()
        for clause in self._list_clauses(sentences, subject, is_title=is_title):
            if not clause.values:
                continue
            whole = self._state_whole(clause)
            parts = [] if whole else self._state_parts(clause)
            reading.statements += whole + parts
            unread = {*clause.values} - {own.value for own in parts}
            if not whole and unread:
                kinds = frozenset(kind for value in unread for kind in self.world.kinds_of(value))
                reading.unread.append((kinds, clause.text))
        return reading

    def list_names(self, sentence: str, value: str) -> list[str]:
        """What else a sentence names beside a value, without titles."""
        return [name for own in self._list_clauses([sentence], value, is_title=False) for name in own.values]

    def _list_clauses(self, sentences: Iterable[str], subject: str, *, is_title: bool) -> Iterator[_Clause]:
        subject = strip_parenthesis(subject) if is_title else subject
        for place, sentence in enumerate(sentences):
            opened = _name_subject(sentence, subject) if is_title and place == 0 else sentence
            for text in filter(None, _CLAUSES.split(opened)):
                key = text, subject, is_title
                clause = self._clauses.get(key)
                if clause is None:
                    if len(self._clauses) >= MAX_CACHED_READINGS:
                        self._clauses.clear()
                    clause = self._clauses[key] = self._mask(*key)
                if _SUBJECT in clause.words:
                    yield clause

    def _mask(self, text: str, subject: str, is_title: bool) -> _Clause:  # noqa: FBT001 - the parts of a key
        """The clause with a letter for the subject and one for its values, which "and" may join."""
        named = [m.span() for m in re.finditer(rf"(?<!\w){re.escape(subject)}(?!\w)", text, re.IGNORECASE)]
        others = [
            span
            for span in find_question_mentions(text, self.world.knows, nouns_for_kinds())
            if not any(start < span[1] and span[0] < end for start, end in named)
        ]
        spans = sorted([*named, *others])
        words: list[str] = []
        values: list[str] = []
        counts: list[int] = []
        titles: list[str | None] = []
        end = 0
        for start, stop in [*spans, (len(text), len(text))]:
            between = [w.folded for w in list_words(text[end:start])]
            first, _, name = text[start:stop].partition(" ")
            title = load_lexicon().titles.get(first.rstrip("."))
            if title is None and (title := load_lexicon().titles.get(text[end:start].rstrip(". ").rpartition(" ")[2])):
                between = between[:-1]
            is_value = (start, stop) not in named
            if between and not (is_value and words[-1:] == [_VALUE] and between == ["and"]):
                words += between
            if start == stop:
                break
            if not is_value:
                words.append(_SUBJECT)
            else:
                if words[-1:] != [_VALUE]:
                    words.append(_VALUE)
                    counts.append(0)
                counts[-1] += 1
                values.append(name if first.rstrip(".") in load_lexicon().titles else text[start:stop])
                titles.append(title)
            end = stop
        if is_title or named:
            words = [_SUBJECT if w in THIRD_PERSON_PRONOUNS else w for w in words]
        return _Clause(text, tuple(words), tuple(values), tuple(counts), tuple(titles))

    def _meanings(self, clause: _Clause) -> list[str]:
        """The relations that a clause may state, of which its values are."""
        if learnt := self._learnt.get(clause.pattern):
            return [relation for relation in learnt if self._fits(clause, relation)]
        spans = find_relations(clause.words, self.world)
        inside = {place for start, end, _ in spans for place in range(start, end)}
        other = [w for p, w in enumerate(clause.words) if p not in inside and w not in (_SUBJECT, _VALUE)]
        if sum(map(has_content, other)) > MAX_OTHER_WORDS:
            return []
        if not spans:
            # What only one relation leads to needs no word for it.
            return [own for own in [self.world.only_relation_to(clause.values)] if own is not None]
        possible = {r: None for _, _, meanings in spans for r in sorted(meanings) if self._fits(clause, r)}
        return list(possible) if len(possible) == 1 else []

    def _fits(self, clause: _Clause, relation: str) -> bool:
        """Whether the values are of the kinds that the relation leads to."""
        kinds = self.world.value_kinds(relation)
        return all(self.world.kinds_of(value) & kinds for value in clause.values)

    def _states(self, clause: _Clause, relation: str) -> bool:
        stated = [own.relation for own in self._state_whole(clause) or self._state_parts(clause)]
        return any(relation == own or relation in _steps(own) or own in _steps(relation) for own in stated)

    def _state_whole(self, clause: _Clause) -> list[Statement]:
        """The statements of a clause that is understood as a whole."""
        return [own for relation in self._meanings(clause) for own in self._state(clause, relation)]

    def _state_parts(self, clause: _Clause) -> list[Statement]:
        """What a clause about its subject states of single values, by the words right before each: directed by."""
        stated = self._state_life(clause)
        values, start, names_other = list(clause.values), 1, clause.words[:1] != (_SUBJECT,)
        letters = (place for place, word in enumerate(clause.words) if word == _VALUE)
        for place, count in zip(letters, clause.counts, strict=True):
            own, values = values[:count], values[count:]
            words = clause.words[start:place]
            if count == 1 and (not names_other or words[:1] == ("and",)) and clause.words[0] == _SUBJECT:
                relations = self._relations_before(words, own[0])
                stated += [Statement(relation, own[0]) for relation in relations if len(relations) == 1]
            # "Is an American film" names nothing else.
            is_adjective = place == 3 and clause.words[1] in COPULAS and clause.words[2] in ARTICLES
            is_name = any(self.world.kinds_of(value) - {DATE, NUMBER} for value in own)
            names_other = names_other or (is_name and not is_adjective)
            start = place + 1
        return stated

    def _state_life(self, clause: _Clause) -> list[Statement]:
        """The days of birth and death that stand behind a name, each with its place or without."""
        behind = itertools.takewhile(lambda word: word == _VALUE or word in PREPOSITIONS, clause.words[1:])
        values = clause.values[: sum(clause.counts[: list(behind).count(_VALUE)])]
        dates = [value for value in values if DATE in self.world.kinds_of(value)]
        is_life = clause.words[0] == _SUBJECT and len(dates) == len(_LIFE) and dates[0] == values[0]
        return list(map(Statement, _LIFE, dates)) if is_life else []

    def _relations_before(self, words: Sequence[str], value: str) -> list[str]:
        """The relations that words may state of a value behind them: those that they end with, beside a preposition."""
        is_literal = bool(self.world.kinds_of(value) & {DATE, NUMBER})
        *others, last = find_relations(words, self.world) or [(0, 0, frozenset[str]())]
        ends = [end for _, end, _ in others]
        is_end = PREPOSITIONS.issuperset(words[last[1] :]) and (is_literal or PREPOSITIONS.intersection(words[-1:]))
        # Of somebody else's relation nothing follows: who studied under the director born in V.
        is_own = _SUBORDINATE.isdisjoint(words) and all(words[end : end + 1] == ("and",) for end in ends)
        if not is_end or not is_own or not (is_literal or self.world.knows(value)):
            return []
        fitting = [relation for relation in last[2] if self.world.kinds_of(value) & self.world.value_kinds(relation)]
        return [relation for relation in fitting if not kinship.relates_people(relation)]

    def _state(self, clause: _Clause, relation: str) -> Iterator[Statement]:
        """The statements about the subject: what its values are, or what it is to them as seen from its side."""
        holder = self._find_holder(clause, relation)
        for value, gender in zip(clause.values, clause.titles, strict=True):
            if holder == _SUBJECT:
                yield Statement(relation, value, gender)
            elif holder == _VALUE:
                with suppress(KeyError):  # Not every relation has an inverse.
                    yield Statement(kinship.inverse_step(" / ".join(_steps(relation))), value, gender)

    def _find_holder(self, clause: _Clause, relation: str) -> str | None:
        """Who has the relation: behind "of", or before the possessive, or else who has or does something."""
        if not kinship.relates_people(relation) or self._learnt.get(clause.pattern):
            return _SUBJECT
        spans = [span for span in find_relations(clause.words, self.world) if relation in span[2]]
        if not spans:
            return None
        before, behind = (
            [w for w in words if w not in ARTICLES]
            for words in (clause.words[: spans[0][0]], clause.words[spans[0][1] :])
        )
        if behind[:1] == ["of"] and behind[1:2] and behind[1] in (_SUBJECT, _VALUE):
            return behind[1]
        owner = before[:-1] if before[-1:] == [POSSESSIVE_SUFFIX] else before
        if owner[-1:] == [_SUBJECT] or (owner is not before and owner[-1:] == [_VALUE]):
            return owner[-1]
        is_mutual = kinship.symmetric_relation(relation) == kinship.InverseRelation(relation)
        has_value = before[:1] == [_SUBJECT] and any(word in POSSESSIONS for word in before)
        return _SUBJECT if is_mutual or has_value else None


def _name_subject(sentence: str, subject: str) -> str:
    """The first sentence of an article with its title in place of the full name before a bracket, which means it."""
    name, bracket, rest = sentence.partition("(")
    words = [word.folded for word in list_words(name)]
    is_name = bracket and not COPULAS.intersection(words) and {word.folded for word in list_words(subject)} & {*words}
    return f"{subject} ({rest}" if is_name else sentence


def _steps(relation: str) -> tuple[str, ...]:
    """The basic relations of a relation between people: child for a son."""
    return kinship.basic_path(relation).steps if kinship.relates_people(relation) else ()
