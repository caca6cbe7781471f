"""Aligns a question with that of a demonstration: names fill its slots, and all other words have to mean the same."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from reasoners.replay.demonstration import MaskedQuestion, Program, Words, WorldWords
from reasoners.replay.derivations import (
    ALL,
    DATE,
    FUNCTION_WORDS,
    NUMBER,
    OPPOSITES,
    SYMMETRIC,
    ReplayValue,
    stem,
    tokenize,
)
from tools.tool import EncodeFunction

ARTICLES = frozenset(("the", "a", "an"))
MAX_COMPARED, MAX_NEIGHBOURS, MAX_CALIBRATED = 200, 8, 1000
"""The most similar demonstrations that a question is aligned with, or one of the calibration, and how many that has."""
MIN_WORD_COSINE = 0.6
"""The least cosine of two words with one meaning; opposites have it too, so that other conditions hold beside it."""
PRIOR_RIGHT, PRIOR_WEIGHT = 1.8, 2.0
"""The alignments that a library without any is taken to have had."""
MAX_WRONG_SHARE = 0.03
SOFT_WORD_COST = 0.02
"""What a word that was taken for another one costs of the similarity of two questions."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """How a question follows a program: the texts of its slots, and the similarity of the rest."""

    program: Program
    fillers: tuple[str, ...]
    similarity: float
    soft_words: tuple[tuple[str, str], ...] = ()
    """Words that were taken for others, which they resemble: movie for film."""
    derivation: str | None = None
    """The derivation, if a word turns that of the demonstration round: later for earlier."""
    phrases: Mapping[str, "Alignment"] = field(default_factory=dict)
    """The fillers that are no names, but phrases that another demonstration resolves: the mother of X."""

    @property
    def score(self) -> float:
        """The similarity less the cost of soft words; confidence is calibrated by it."""
        return self.similarity - SOFT_WORD_COST * len(self.soft_words)

    @property
    def key(self) -> tuple[Any, ...]:
        """What is asked, apart from names; equal for two alignments with the same look-ups and derivation."""
        return self.program.signature(self.fillers, self.derivation)


class Mismatch(Exception):
    """A question does not follow a program; the message is a clause that says which words do not fit."""


Mismatches = list[tuple[float, int, str]]


class QuestionAligner:
    """Aligns questions with the programs of a library."""

    def __init__(self, programs: Sequence[Program], encode: EncodeFunction) -> None:
        self.programs = programs
        self._encode = encode
        self.questions = [
            MaskedQuestion(p.question, tuple((p.slots[i].start, p.slots[i].end) for i in p.names)) for p in programs
        ]
        self._keys = [program.signature(["*"] * len(program.slots)) for program in programs]
        self._contents: dict[tuple[Any, ...], dict[frozenset[str], set[int]]] = defaultdict(lambda: defaultdict(set))
        """The questions by what they ask, and by their words without names and relations."""
        forms: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        self._keys_of_word: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
        self._phrases: dict[tuple[str, ...], Program] = {}
        for index, (program, question, key) in enumerate(zip(programs, self.questions, self._keys, strict=True)):
            open_words = _open_relations(program, question)
            forms[question.masked, key].append(index)
            content = frozenset(open_words) - FUNCTION_WORDS - {"?"}
            self._contents[key][content].add(index)
            for word in content:
                self._keys_of_word[word].add(key)
            if program.derivation == ALL and (phrase := _cut_phrase(open_words)):
                self._phrases.setdefault(phrase, program)
        self._forms = list(forms.values())
        """The questions that differ at most in their names."""
        self.vocabulary = frozenset(self._keys_of_word)
        self._similar_words: dict[str, str | None] = {}

    def reduce(self, question: MaskedQuestion) -> tuple[MaskedQuestion, Alignment] | None:
        """Put one mention in place of the last phrase that a demonstration resolves; None if there is none."""
        words = question.words
        for first in range(len(words) - 1, -1, -1):
            for phrase, program in self._phrases.items() if words[first][0] in ARTICLES else ():
                match = _match_phrase(phrase, words[first:])
                if match is None:
                    continue
                relation, name = match
                start, end = words[first][1], name[1]
                texts = tuple(question.text[slice(*(relation if s.is_relation else name))] for s in program.slots)
                mentions = [span for span in question.mentions if not (start <= span[0] and span[1] <= end)]
                reduced = replace(question, mentions=tuple(sorted([*mentions, (start, end)])))
                return reduced, Alignment(program, texts, 1.0)
        return None

    @cached_property
    def rows(self) -> np.ndarray:
        """The embeddings of the different masked questions."""
        return self._encode([self.questions[indices[0]].masked for indices in self._forms])

    @cached_property
    def _word_rows(self) -> tuple[list[str], np.ndarray]:
        words = sorted(self.vocabulary - FUNCTION_WORDS - {"*"})
        return words, self._encode(words)

    def align_all(
        self, question: MaskedQuestion, world: WorldWords, left_out: int | None = None
    ) -> tuple[list[Alignment], Mismatches]:
        """The alignments, best first; and of the other programs the similarity, the index and the mismatch."""
        similarities = self.rows @ self._encode([question.masked])[0]
        alignments, mismatches = [], []
        most = MAX_COMPARED if left_out is None else MAX_NEIGHBOURS
        for place in similarities.argsort()[::-1].tolist()[:most]:
            similarity = float(similarities[place])
            for index in [index for index in self._forms[place] if index != left_out][:1]:
                try:
                    alignments.append(self._align(question, index, similarity, world, left_out))
                except Mismatch as mismatch:
                    mismatches.append((similarity, index, str(mismatch)))
        return sorted(alignments, key=lambda a: -a.score), mismatches

    def _align(
        self, question: MaskedQuestion, index: int, similarity: float, world: WorldWords, left_out: int | None
    ) -> Alignment:
        program, known = self.programs[index], self.questions[index]
        if len(question.mentions) != len(known.mentions):
            raise Mismatch(
                f"it names {len(question.mentions)} things where the demonstration names {len(known.mentions)}"
            )
        fillers = dict(zip(program.names, question.fillers, strict=True))
        for slot, text in fillers.items():
            kinds = {ReplayValue(program.slots[slot].text).kind, ReplayValue(text).kind}
            if len(kinds) > 1 and kinds & {DATE, NUMBER} and kinds != {DATE, NUMBER}:
                raise Mismatch(f"{text} is of another kind than {program.slots[slot].text}")
        asked = [token for token in question.words if token[0] not in FUNCTION_WORDS]
        shown = [t for t in known.words if t[0] not in FUNCTION_WORDS and not program.is_relation_at(t[1])]
        places = _fill_relations(program, question, asked, shown, fillers, world)
        for words, other, masked in ((asked, shown, question), (shown, asked, known)):
            _drop_descriptions(masked, words, other, world)
        soft, derivation = self._match_rest(index, asked, shown, left_out)
        own = {slot: program.slots[slot].start for slot in places}
        orders = [
            [*_order_roles(program, starts, masked), *_order_words(starts, masked, own_words, other_words)]
            for starts, masked, own_words, other_words in (
                (own, known, shown, asked),
                (places, question, asked, shown),
            )
        ]
        if orders[0] != orders[1]:
            raise Mismatch("its words are in another order")
        texts = tuple(fillers[slot] for slot in range(len(program.slots)))
        return Alignment(program, texts, similarity, tuple(soft), derivation)

    def _match_rest(
        self, index: int, asked: Words, shown: Words, left_out: int | None
    ) -> tuple[list[tuple[str, str]], str | None]:
        """Match the other words; returns those taken for others, and another derivation if a word turns it round.

        Mismatch if a word has no counterpart. Words that other demonstrations of the same look-ups have or lack may
        differ.
        """
        own, others = (Counter(word for word, _, _ in words) for words in (asked, shown))
        extra, missing = list((own - others).elements()), list((others - own).elements())
        contents = self._contents[self._keys[index]].items()
        peers = [words for words, indices in contents if indices - {index, left_out}]
        extra = [word for word in extra if not any(word in words for words in peers)]
        soft = []
        for word in list(extra):
            similar = self._find_similar(word)
            if similar in missing and len(self._keys_of_word[similar]) > 1:
                soft.append((word, similar))
                extra.remove(word)
                missing.remove(similar)
        missing = [word for word in missing if all(word in words for words in peers)]
        if len(extra) == len(missing) == 1:
            derivation = self.programs[index].derivation
            opposite = OPPOSITES.get(str(derivation))
            if opposite and (self._turns(missing[0]), self._turns(extra[0])) == (derivation, opposite):
                return soft, opposite
        if extra or missing:
            differing = " and ".join(filter(None, (", ".join(extra), "not " + ", ".join(missing) if missing else "")))
            raise Mismatch(f"it says {differing}")
        return soft, None

    def _turns(self, word: str) -> str | None:
        """The only derivation of the demonstrations with this word, if they look up different things."""
        keys = self._keys_of_word.get(word, set())
        derivations = {key[-1] for key in keys}
        return next(iter(derivations)) if len(derivations) == 1 and len({key[-2][1] for key in keys}) > 1 else None

    def _find_similar(self, word: str) -> str | None:
        """The word of the library that a word outside it resembles most; None if none does, or it is in the library."""
        words, rows = self._word_rows
        if word not in self._similar_words:
            best = None
            if word not in self.vocabulary and words:
                cosines = rows @ self._encode([word])[0]
                best = words[int(cosines.argmax())] if cosines.max() >= MIN_WORD_COSINE else None
            self._similar_words[word] = best
        return self._similar_words[word]


def _open_relations(program: Program, question: MaskedQuestion) -> list[str]:
    """The words of a question with ? for its relations."""
    words: list[str] = []
    for word, start, _ in question.words:
        is_relation = program.is_relation_at(start)
        if not is_relation or words[-1:] != ["?"]:
            words.append("?" if is_relation else word)
    return words


def _cut_phrase(words: Sequence[str]) -> tuple[str, ...] | None:
    """The noun phrase in a question that asks who or what it is: the ? of *."""
    start = next((place for place, word in enumerate(words) if word not in FUNCTION_WORDS - ARTICLES), len(words))
    phrase = tuple(words[start:])
    is_phrase = phrase[:1] and phrase[0] in ARTICLES and phrase.count("*") == 1 and phrase[-1] == "*"
    return phrase if is_phrase else None


def _match_phrase(phrase: Sequence[str], words: Words) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """The spans of the relation and of the name, if the words begin with the phrase."""
    place, relation = 0, (0, 0)
    for part, following in pairwise([*phrase, ""]):
        length = 1
        if part == "?":
            length = next((n for n, token in enumerate(words[place : place + 6]) if token[0] == following), 0)
            run = words[place : place + length]
            if not run or any(token[0] in ("*", *ARTICLES) for token in run):
                return None
            relation = run[0][1], run[-1][2]
        elif place >= len(words) or words[place][0] != part:
            return None
        place += length
    return relation, words[place - 1][1:]


def _fill_relations(  # noqa: PLR0913, PLR0917 - each is a part of the alignment
    program: Program,
    question: MaskedQuestion,
    asked: Words,
    shown: Words,
    fillers: dict[int, str],
    world: WorldWords,
) -> dict[int, int]:
    """Fill the slots of relation words, and remove them from the asked words; returns where each filler begins.

    A relation that the question has too fills its own slot; another one is a relation of the world, or any other words.
    """
    words, places = question.words, {}
    relations = [index for index, slot in enumerate(program.slots) if slot.is_relation]
    for is_same in (True, False):
        for slot in (slot for slot in relations if slot not in places):
            stems = [stem(word) for word, _, _ in tokenize(program.slots[slot].text)]
            if is_same:
                starts = range(len(words) - len(stems) + 1)
                runs = (words[start : start + len(stems)] for start in starts)
                run = next((run for run in runs if [word for word, _, _ in run] == stems), None)
                phrase = (run[0][1], run[-1][2], question.text[run[0][1] : run[-1][2]]) if run else None
            else:
                is_label = any(lookup.is_label for lookup in program.lookups if lookup.word == slot)
                phrase = _find_phrase(question, asked, {word for word, _, _ in shown}, world if is_label else None)
                if phrase is None:
                    raise Mismatch(f"it has no word in place of {program.slots[slot].text}")
            if phrase:
                start, end, fillers[slot] = phrase
                places[slot] = start
                asked[:] = [token for token in asked if not start <= token[1] < end]
    return places


def _find_phrase(
    question: MaskedQuestion, asked: Words, known: set[str], world: WorldWords | None
) -> tuple[int, int, str] | None:
    """The first phrase that the demonstration has not, with its span: a relation of the world, or else any run."""
    words = question.words
    free = {t for t in asked if t[0] not in known and t[0] != "*" and t[0] not in FUNCTION_WORDS}
    for first in (index for index, token in enumerate(words) if token in free):
        for last in range(min(first + 3, len(words) - 1), first - 1, -1):
            start, end = words[first][1], words[last][2]
            text = question.text[start:end]
            if world is None and all(token in free for token in words[first : last + 1]):
                return start, end, text
            label = world.find_relation(text) if world is not None else None
            if label is not None and words[last] in free:
                return start, end, label
    return None


def _drop_descriptions(question: MaskedQuestion, words: Words, others: Words, world: WorldWords) -> None:
    """Drop the words before a name that say what kind of thing it is: the film X, both villages, X and Y."""
    common = {word for word, _, _ in others}
    for token, (word, start, end) in pairwise(question.words):
        is_named = word == "*" and token in words and token[0] not in ("*", *common)
        if is_named and world.describes(question.text[start:end], token[0]):
            words.remove(token)


def _order_roles(program: Program, places: Mapping[int, int], question: MaskedQuestion) -> list[int]:
    """The slots of relations by their distance from the names, as the relation next to a name is looked up first.

    Where it matters which name comes first, all slots in the order of the question.
    """
    starts = [start for start, _ in question.mentions]
    if len(starts) > 1 and program.derivation not in SYMMETRIC:
        places = {**places, **dict(zip(program.names, starts, strict=True))}
        return sorted(places, key=lambda slot: places[slot])
    return sorted(places, key=lambda slot: min((abs(places[slot] - start) for start in starts), default=0))


def _order_words(
    places: Mapping[int, int], question: MaskedQuestion, words: Words, others: Words
) -> list[tuple[str, int]]:
    """The words that two questions share, each with the number of relation slots between it and the only name."""
    if len(question.mentions) != 1:
        return []
    name, shared = question.mentions[0][0], {word for word, _, _ in others}
    return sorted(
        (word, sum(min(start, name) < place < max(start, name) for place in places.values()))
        for word, start, _ in words
        if word in shared and word != "*"
    )


@dataclass(frozen=True, slots=True)
class Calibration:
    """The score of each alignment of a demonstration with the others, and whether it was right."""

    outcomes: tuple[tuple[float, bool], ...]

    @classmethod
    def leave_one_out(cls, aligner: QuestionAligner, world: WorldWords) -> "Calibration":
        """Align the question of each program with the others; right if it then asks the same as the program itself."""
        outcomes, programs = [], aligner.programs
        known = {lookup.fill([stem(text.casefold()) for text in p.texts]) for p in programs for lookup in p.lookups}
        for index in range(0, len(programs), 1 + len(programs) // MAX_CALIBRATED):
            alignments, _ = aligner.align_all(aligner.questions[index], world, index)
            # A tool decides about an ask that no demonstration shows.
            best = next((alignment for alignment in alignments if not alignment.program.is_cut_short), None)
            asks = zip(best.program.lookups, best.key, strict=False) if best else ()
            if (
                best
                and not programs[index].is_cut_short
                and all(ask in known or lookup.is_label for lookup, (_, ask) in asks)
            ):
                outcomes.append((best.score, best.key == programs[index].signature(programs[index].texts)))
        return cls(tuple(sorted(outcomes, reverse=True)))

    def confidence(self, score: float) -> float:
        """The share of right ones among the alignments with at least this score, with a prior of nine in ten."""
        reached = [is_right for own, is_right in self.outcomes if own >= score]
        return (PRIOR_RIGHT + sum(reached)) / (PRIOR_WEIGHT + len(reached))

    @property
    def threshold(self) -> float:
        """The least confidence with which at most MAX_WRONG_SHARE of the alignments were wrong."""
        right = count = 0
        accepted = 0.0
        for count, (score, is_right) in enumerate(self.outcomes, 1):
            right += is_right
            if count - right > MAX_WRONG_SHARE * count:
                accepted = max(accepted, self.confidence(score))
        return accepted
