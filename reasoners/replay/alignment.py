"""Aligns a question with that of a demonstration: names fill its slots, and all other words have to mean the same."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from reasoners.replay.demonstration import MaskedQuestion, Program, Words, WorldWords, is_label
from reasoners.replay.derivations import (
    ALL,
    DATE,
    FUNCTION_WORDS,
    NUMBER,
    OPPOSITES,
    SYMMETRIC,
    UNREMARKABLE_WORDS,
    ReplayValue,
    stem,
    tokenize,
)
from tools.tool import EncodeFunction

ARTICLES = frozenset(("the", "a", "an"))
MAX_NEIGHBOURS = 8
"""The most similar questions that a demonstration is aligned with for the calibration."""
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

    @property
    def fillers_by_name(self) -> tuple[str, ...]:
        """The names, dates and numbers in the slots."""
        return tuple(self.fillers[slot] for slot in self.program.names)


class Mismatch(Exception):
    """A question does not follow a program; the message is a clause that says which words do not fit."""


class QuestionAligner:
    """Aligns questions with the programs of a library."""

    def __init__(self, programs: Sequence[Program], encode: EncodeFunction) -> None:
        self.programs = programs
        self._encode = encode
        self.questions = [
            MaskedQuestion(p.question, tuple((p.slots[i].start, p.slots[i].end) for i in p.names)) for p in programs
        ]
        self._keys = [program.signature(None) for program in programs]
        self._contents = [
            frozenset(w for w, start, _ in q.words if w not in FUNCTION_WORDS and not p.is_relation_at(start))
            for p, q in zip(programs, self.questions, strict=True)
        ]
        self._keys_of_word: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
        for key, words in zip(self._keys, self._contents, strict=True):
            for word in words:
                self._keys_of_word[word].add(key)
        self.vocabulary = frozenset(self._keys_of_word)
        self._similar_words: dict[str, str | None] = {}

        self._phrases = [phrase for index in range(len(programs)) if (phrase := self._phrase(index))]

    def _phrase(self, index: int) -> tuple[int, list[str]] | None:
        """The noun phrase in a question that asks who or what it is, with ? for relation words: the ? of *."""
        program = self.programs[index]
        relations = [(slot.start, slot.end) for slot in program.slots if slot.is_relation]
        words: list[str] = []
        for word, start, _ in self.questions[index].words:
            is_relation = any(begin <= start < end for begin, end in relations)
            if not is_relation or words[-1:] != ["?"]:
                words.append("?" if is_relation else word)
        while words and words[0] in FUNCTION_WORDS - ARTICLES:
            del words[0]
        is_phrase = words[:1] and words[0] in ARTICLES and words.count("*") == 1 and words[-1] == "*"
        return (index, words) if is_phrase and program.derivation == ALL else None

    def reduce(self, question: MaskedQuestion) -> tuple[MaskedQuestion, Alignment] | None:
        """Put one mention in place of the last phrase that a demonstration resolves; None if there is none."""
        words = question.words
        for first in range(len(words) - 1, -1, -1):
            if words[first][0] not in ARTICLES:
                continue
            for index, phrase in self._phrases:
                match = _match_phrase(phrase, words[first:])
                if match is None:
                    continue
                last, relation = match
                start, end = words[first][1], words[first + last - 1][2]
                name = question.text[words[first + last - 1][1] : end]
                inner = (
                    ""
                    if relation is None
                    else question.text[words[first + relation[0]][1] : words[first + relation[1]][2]]
                )
                texts = tuple(inner if slot.is_relation else name for slot in self.programs[index].slots)
                mentions = [span for span in question.mentions if not (start <= span[0] and span[1] <= end)]
                reduced = replace(question, mentions=tuple(sorted([*mentions, (start, end)])))
                return reduced, Alignment(self.programs[index], texts, 1.0)
        return None

    @cached_property
    def rows(self) -> np.ndarray:
        """The embeddings of the masked questions."""
        return self._encode([question.masked for question in self.questions])

    def align_all(
        self, question: MaskedQuestion, world: WorldWords, *, left_out: int | None = None, most: int | None = None
    ) -> tuple[list[Alignment], list[tuple[float, int, str]]]:
        """The alignments, best first; and of the other programs the similarity, the index and the mismatch.

        At most `most` programs are compared, the most similar ones.
        """
        similarities = self.rows @ self._encode([question.masked])[0]
        alignments, mismatches = [], []
        for index in similarities.argsort()[::-1].tolist()[:most]:
            similarity = float(similarities[index])
            if index == left_out:
                continue
            try:
                alignments.append(self._align(question, index, similarity, world, left_out))
            except Mismatch as mismatch:
                mismatches.append((similarity, index, str(mismatch)))
        return sorted(alignments, key=lambda a: -a.score), mismatches

    def _align(
        self,
        question: MaskedQuestion,
        index: int,
        similarity: float,
        world: WorldWords,
        left_out: int | None,
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
        shown = [token for token in known.words if token[0] not in FUNCTION_WORDS]
        is_reordered = [word for word, _, _ in asked] != [word for word, _, _ in shown]
        places = self._fill_relations(program, question, asked, shown, fillers, world)
        self._drop_descriptions(question, known, asked, shown, world)
        soft, derivation = self._match_rest(index, asked, shown, left_out)
        if self._changes_roles(program, question, places, fillers) or (
            is_reordered and len(question.mentions) > 1 and program.derivation not in SYMMETRIC and not places
        ):
            raise Mismatch("its words are in another order")
        texts = tuple(fillers[slot] for slot in range(len(program.slots)))
        return Alignment(program, texts, similarity, tuple(soft), derivation)

    def _fill_relations(  # noqa: PLR0913, PLR0917 - each is a part of the alignment
        self,
        program: Program,
        question: MaskedQuestion,
        asked: Words,
        shown: Words,
        fillers: dict[int, str],
        world: WorldWords,
    ) -> dict[int, int]:
        """Fill the slots of relation words, and remove the words from both lists; returns where each filler begins."""
        open_slots = []
        places: dict[int, int] = {}
        for slot in (index for index, slot in enumerate(program.slots) if slot.is_relation):
            stems = [stem(word) for word, _, _ in tokenize(program.slots[slot].text)]
            in_slot = [t for t in shown if program.slots[slot].start <= t[1] < program.slots[slot].end]
            shown[:] = [token for token in shown if token not in in_slot]
            run = _find_run([token[0] for token in question.words], stems)
            if run is not None:
                span = question.words[run][1], question.words[run + len(stems) - 1][2]
                places[slot] = span[0]
                fillers[slot] = program.slots[slot].label or question.text[span[0] : span[1]]
                asked[:] = [token for token in asked if not span[0] <= token[1] < span[1]]
            else:
                open_slots.append(slot)
        known = Counter(word for word, _, _ in shown)
        for slot in open_slots:
            takes_label = any(
                way.takes_label for lookup in program.lookups if lookup.word == slot for way in lookup.ways
            )
            phrase = _find_phrase(question, asked, known, world if takes_label else None)
            if phrase is None:
                raise Mismatch(f"it has no word in place of {program.slots[slot].text}")
            start, end, fillers[slot] = phrase
            places[slot] = start
            asked[:] = [token for token in asked if not start <= token[1] < end]
        return places

    def _drop_descriptions(
        self, question: MaskedQuestion, known: MaskedQuestion, asked: Words, shown: Words, world: WorldWords
    ) -> None:
        """Drop the words before a name that say what kind of thing it is: the film X, both villages, X and Y."""
        for words, other, masked in ((asked, shown, question), (shown, asked, known)):
            common = {word for word, _, _ in other}
            names = iter(masked.fillers)
            for token, following in pairwise(masked.words):
                if following[0] != "*":
                    continue
                name = next(names)
                if token in words and token[0] != "*" and token[0] not in common and world.describes(name, token[0]):
                    words.remove(token)

    def _match_rest(
        self, index: int, asked: Words, shown: Words, left_out: int | None
    ) -> tuple[list[tuple[str, str]], str | None]:
        """Match the other words; returns those taken for others, and another derivation if a word turns it round.

        Mismatch if a word has no counterpart.
        """
        common = Counter(w for w, _, _ in asked) & Counter(w for w, _, _ in shown)
        extra, missing = (_subtract(words, common) for words in (asked, shown))
        peers = [
            words
            for other, words in enumerate(self._contents)
            if self._keys[other] == self._keys[index] and other not in (index, left_out)
        ]
        soft = []
        for word in list(extra):
            similar = self._find_similar(word)
            if any(word in words for words in peers):
                extra.remove(word)
            elif similar is not None and similar in missing and len(self._keys_of_word[similar]) > 1:
                soft.append((word, similar))
                extra.remove(word)
                missing.remove(similar)
        missing = [word for word in missing if all(word in words for words in peers) or not peers]
        if len(extra) == len(missing) == 1:
            derivation = OPPOSITES.get(str(self.programs[index].derivation))
            if (
                derivation
                and self._turns(missing[0]) == self.programs[index].derivation
                and self._turns(extra[0]) == derivation
            ):
                return soft, derivation
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
        if word not in self._similar_words:
            words = sorted(self.vocabulary - UNREMARKABLE_WORDS - {"*"})
            nearest = None
            if word not in self.vocabulary and words:
                cosines = self._encode(words) @ self._encode([word])[0]
                best = int(cosines.argmax())
                nearest = words[best] if cosines[best] >= MIN_WORD_COSINE else None
            self._similar_words[word] = nearest
        return self._similar_words[word]

    def _changes_roles(
        self, program: Program, question: MaskedQuestion, places: Mapping[int, int], fillers: Mapping[int, str]
    ) -> bool:
        """Whether other relations than those of the demonstration stand in another order among themselves and names."""
        own = {index: slot.label or slot.text for index, slot in enumerate(program.slots) if slot.is_relation}
        if len(own) < 2 or all(stem(fillers[slot].casefold()) == stem(text.casefold()) for slot, text in own.items()):
            return False
        starts = dict(zip(program.names, (start for start, _ in question.mentions), strict=True)) | dict(places)
        shown = sorted(range(len(program.slots)), key=lambda slot: program.slots[slot].start)
        return sorted(starts, key=lambda slot: starts[slot]) != shown


@dataclass(frozen=True, slots=True)
class Calibration:
    """The score of each alignment of a demonstration with the others, and whether it was right."""

    outcomes: tuple[tuple[float, bool], ...]

    @classmethod
    def leave_one_out(cls, aligner: QuestionAligner, world: WorldWords) -> "Calibration":
        """Align the question of each program with the others; right if it then asks the same as the program itself."""
        outcomes = []
        known = {ask for program in aligner.programs for _, ask in program.signature(program.own_fillers)[:-1]}
        for index, program in enumerate(aligner.programs):
            alignments, _ = aligner.align_all(aligner.questions[index], world, left_out=index, most=MAX_NEIGHBOURS)
            # A tool decides about an ask that no demonstration shows.
            if alignments and all(ask in known or is_label(ask) for _, ask in alignments[0].key[:-1]):
                is_right = alignments[0].key == program.signature(program.own_fillers)
                outcomes.append((alignments[0].score, is_right))
        return cls(tuple(sorted(outcomes, reverse=True)))

    def confidence(self, score: float) -> float:
        """The share of right ones among the alignments with at least this score, with a prior of nine in ten."""
        shares, right = [PRIOR_RIGHT / PRIOR_WEIGHT], PRIOR_RIGHT
        for count, (reached, is_right) in enumerate(self.outcomes, 1):
            if reached < score:
                break
            right += is_right
            shares.append(right / (count + PRIOR_WEIGHT))
        return shares[-1]

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


def _match_phrase(phrase: Sequence[str], words: Words) -> tuple[int, tuple[int, int] | None] | None:
    """The number of words that a phrase covers from the first one on, and the first and last word of its relation."""
    place, relation = 0, None
    for part, following in zip(phrase, [*phrase[1:], None], strict=True):
        if place >= len(words):
            return None
        if part == "?":
            length = next((n for n, token in enumerate(words[place : place + 6]) if token[0] == following), 0)
            if not length or any(token[0] in ("*", *ARTICLES) for token in words[place : place + length]):
                return None
            relation = (place, place + length - 1)
            place += length
        elif words[place][0] == part:
            place += 1
        else:
            return None
    return place, relation


def _find_run(words: Sequence[str], run: Sequence[str]) -> int | None:
    starts = (start for start in range(len(words)) if list(words[start : start + len(run)]) == list(run))
    return next(starts, None)


def _find_phrase(
    question: MaskedQuestion, asked: Words, known: Mapping[str, int], world: WorldWords | None
) -> tuple[int, int, str] | None:
    """The first phrase that the demonstration has not, with its span: a relation of the world, or else any run."""
    words = question.words
    free = {t for t in asked if t[0] not in known and t[0] != "*" and t[0] not in UNREMARKABLE_WORDS}
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


def _subtract(words: Words, common: Counter[str]) -> list[str]:
    rest = common.copy()
    left = []
    for word, _, _ in words:
        if rest[word]:
            rest[word] -= 1
        else:
            left.append(word)
    return left
