"""Aligns a question with that of a demonstration: names and relations fill its slots, the other words mean the same.

Names, dates and numbers are found by what the world knows; a relation is whatever else stands where the demonstration
has one, if the tools take it. Confidence is calibrated by leaving one demonstration out.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from showhow.reasoners.mentions import WorldWords, find_question_mentions
from showhow.reasoners.replay.demonstration import Fillers, Program, QuestionSlot
from showhow.reasoners.replay.derivations import (
    ALL,
    COUNT,
    COUNT_OF,
    FILTERS,
    OPPOSITES,
    ORDERS,
    Mismatch,
)
from showhow.tools.tool import EncodeFunction
from showhow.worlds.lexicon.english import (
    DECISIVE_WORDS,
    MINOR_WORDS,
    QuestionWord,
    asks_yes_or_no,
    has_content,
    list_words,
    phrase_key,
)

MASKS = "XYZUVW"
MAX_COMPARED, MAX_NEIGHBOURS, MAX_CALIBRATED = 200, 8, 1000
"""The most similar demonstrations that a question is aligned with, or one of the calibration, and how many that has."""
PRIOR_RIGHT, PRIOR_WEIGHT, MAX_WRONG_SHARE = 1.8, 2.0, 0.03
"""The alignments that a library without any is taken to have had, and the share that may be wrong."""
MIN_WORD_COSINE, SOFT_WORD_COST = 0.7, 0.02
"""From which cosine on a word may be taken for another one, and what that costs of the similarity of two questions.

Opposites have the cosine of two words with one meaning as well, so that other conditions hold beside it.
"""


class MaskedQuestion(NamedTuple):
    """A question whose mentions are masked: names, dates and numbers."""

    text: str
    mentions: Sequence[tuple[int, int]]
    content: Sequence[QuestionWord]
    """The words with a meaning of their own."""
    descriptions: Sequence[QuestionWord]
    """Those before a name that say what kind of thing it is: the film X."""

    @classmethod
    def build(cls, question: str, mentions: Sequence[tuple[int, int]], world: WorldWords) -> "MaskedQuestion":
        """The question with these mentions."""
        words = [word for word in list_words(question) if not any(s < word.end <= end for s, end in mentions)]
        content = [word for word in words if word.folded not in MINOR_WORDS]
        named = {start - 1: question[start:end] for start, end in mentions}
        descriptions = [word for word in content if word.end in named and world.describes(named[word.end], word.stem)]
        return cls(question, mentions, content, descriptions)

    @property
    def kind(self) -> QuestionWord | None:
        """The word of content directly behind which or what, which says what is asked for; None without one."""
        pairs = itertools.pairwise(list_words(self.text))
        return next((noun for word, noun in pairs if word.folded in ("which", "what") and noun in self.content), None)

    @property
    def joint(self) -> tuple[str, ...] | None:
        """The side of the only name, and the words between it and the nearest word of content; None without these."""
        content = [word for word in self.content if word not in self.descriptions]
        if len(self.mentions) != 1 or not content:
            return None
        ((start, end),) = self.mentions
        nearest = min(content, key=lambda word: max(start - word.end, word.start - end))
        is_before = nearest.end <= start
        between = self.text[nearest.end : start] if is_before else self.text[end : nearest.start]
        # An article before the name is one of its description; behind it, the name belongs to another relation.
        ignored = {"the", *(word.stem for word in self.descriptions)} if is_before else set()
        return ("before" if is_before else "after", *(stem for stem in phrase_key(between) if stem not in ignored))


def mask_spans(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The text with a letter in place of each span."""
    for place, (start, end) in reversed(list(enumerate(spans))):
        text = text[:start] + MASKS[place % len(MASKS)] + text[end:]
    return text


class Form(NamedTuple):
    """Demonstrations whose questions differ at most in names, by one of them."""

    program: Program
    question: MaskedQuestion
    fixed: Sequence[QuestionWord]
    """The words of content that are no relation."""
    relations: Sequence[QuestionSlot]
    key: tuple[Any, ...]
    """What is asked apart from names and relations."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """How a question follows a program, with the texts of its slots."""

    program: Program
    fillers: Fillers
    score: float
    """The similarity of the masked questions, less the cost of soft words; confidence is calibrated by it."""
    soft_words: Sequence[tuple[str, str]] = ()
    """Words that were taken for others, which they resemble: movie for film."""

    @property
    def key(self) -> tuple[Any, ...]:
        """What is asked, apart from names; equal for two alignments with the same look-ups and derivation."""
        return self.program.signature(self.fillers)


class QuestionAligner:
    """Aligns questions with the programs of a library."""

    def __init__(self, programs: Sequence[Program], world: WorldWords, encode: EncodeFunction) -> None:
        self.programs, self.world, self._encode = programs, world, encode
        forms: dict[Any, Form] = {}
        for program in programs:
            key, names = program.signature({slot.start: "*" for slot in program.slots}), [s[:2] for s in program.names]
            if (place := (mask_spans(program.question, names), key)) not in forms:
                question, slots = (
                    MaskedQuestion.build(program.question, names, world),
                    [s for s in program.slots if s.is_relation],
                )
                fixed = [word for word in question.content if not any(s.start <= word.start < s.end for s in slots)]
                forms[place] = Form(program, question, fixed, _order_outward(question, slots), key)
        self.forms = list(forms.values())
        self._joints = {form.question.joint for form in self.forms}
        self._rows = encode([masked for masked, _ in forms])
        self._keys_of_word: dict[str, set[Any]] = defaultdict(set)
        counting, others = [], set[str]()
        for form in self.forms:
            stems = {word.stem for word in form.fixed}
            for stem in stems:
                self._keys_of_word[stem].add(form.key)
            if str(form.program.derivation).startswith(COUNT):
                counting.append(stems)
            else:
                others |= stems
        self._count_words = set.intersection(*counting) - others if counting else set()
        """The words by which alone demonstrations ask for a number: how many."""

    def mask(self, question: str) -> MaskedQuestion:
        """The question with its mentions masked."""
        mentions = find_question_mentions(question, self.world.knows, self._keys_of_word)
        return MaskedQuestion.build(question, mentions, self.world)

    def align_all(
        self, question: MaskedQuestion, left_out: int | None = None
    ) -> tuple[list[Alignment], list[tuple[str, str]]]:
        """The distinct alignments, best first; and the other questions, nearest first, each with its mismatch."""
        alignments: dict[Any, Alignment] = {}
        mismatches, masked = [], mask_spans(question.text, question.mentions)
        nearest = (self._rows @ self._encode([masked])[0]).tolist() if self.forms else []
        places = [place for place in np.argsort(nearest)[::-1].tolist() if place != left_out]
        for place in places[: MAX_COMPARED if left_out is None else MAX_NEIGHBOURS]:
            try:
                alignment = self._align(question, self.forms[place], nearest[place])
            except Mismatch as mismatch:
                mismatches.append((self.forms[place].program.question, str(mismatch)))
                continue
            key = alignment.key, *(alignment.fillers[slot.start] for slot in alignment.program.names)
            if key not in alignments or alignments[key].score < alignment.score:
                alignments[key] = alignment
        return sorted(alignments.values(), key=lambda alignment: -alignment.score), mismatches

    def _align(self, question: MaskedQuestion, form: Form, similarity: float) -> Alignment:
        names, known = form.program.names, form.question
        if len(question.mentions) != len(names):
            raise Mismatch(f"this question names {len(question.mentions)} things where that names {len(names)}")
        if asks_yes_or_no(question.text) != asks_yes_or_no(known.text):
            raise Mismatch("one of the two is a question for yes or no")
        if _compares_with_name(question) and not _compares_with_name(known):
            raise Mismatch("this question compares with what that chooses from")
        if question.joint is not None and question.joint not in self._joints:
            raise Mismatch("its name stands in another place than in any demonstration")
        extra = _subtract(question.content, form.fixed, question.descriptions)
        absent = _subtract(form.fixed, question.content, known.descriptions)
        program, soft = self._reconcile(form.program, extra, absent)
        if program.derivation in ORDERS and question.kind in extra and known.kind in form.fixed:
            # "Which director is older, that of X or that of Y?" chooses from what the relation gives.
            raise Mismatch("this question asks for another thing than that chooses")
        texts = None if absent else self._fill(question, program, _order_outward(question, extra), form.relations)
        if texts is None:
            lacking = f"not {', '.join(word.stem for word in absent)}" if absent else ""
            # What both say stands in the place of a relation there.
            shared = {word.stem for word in known.content}
            clauses = filter(None, [", ".join(word.stem for word in extra if word.stem not in shared), lacking])
            raise Mismatch(f"this question says {' and '.join(clauses) or 'nothing in place of a relation'}")
        fillers = {slot.start: question.text[slice(*span)] for slot, span in zip(names, question.mentions, strict=True)}
        fillers |= {slot.start: text for slot, text in zip(form.relations, texts, strict=True)}
        return Alignment(program, fillers, similarity - SOFT_WORD_COST * len(soft), soft)

    def _reconcile(
        self, program: Program, extra: list[QuestionWord], absent: list[QuestionWord]
    ) -> tuple[Program, list[tuple[str, str]]]:
        """Remove pairs of an unknown word and one that it resembles, and words that only turn the derivation round."""
        derivation, soft, keys = str(program.derivation), [], self._keys_of_word
        for other in tuple(absent):
            own = self._turns(other.stem)
            fitting = (own, OPPOSITES[own]) if own in OPPOSITES else ()
            word = next((word for word in extra if self._turns(word.stem) in fitting), None)
            if word is not None:
                derivation = derivation.replace(own, self._turns(word.stem))
            elif len(keys[other.stem]) > 1:
                # A great-grandfather is no grandfather, however much the words resemble each other.
                unknown = [word for word in extra if not any(known in word.stem for known in keys)]
                cosines = self._encode([word.stem for word in unknown] or [""]) @ self._encode([other.stem])[0]
                word = unknown[cosines.argmax()] if unknown and cosines.max() >= MIN_WORD_COSINE else None
                soft += [(word.stem, other.stem)] if word is not None else []
            if word is not None:
                extra.remove(word)
                absent.remove(other)
        if self._count_words and self._count_words <= {word.stem for word in extra} and derivation in (ALL, *FILTERS):
            derivation = COUNT if derivation == ALL else COUNT_OF + derivation
            extra[:] = [word for word in extra if word.stem not in self._count_words]
        return replace(program, derivation=derivation), soft

    def _turns(self, word: str) -> str:
        """The only derivation of the demonstrations with this word, if they look up different things; else empty."""
        keys = self._keys_of_word.get(word, set())
        derivations = {str(key[-1]).removeprefix(COUNT_OF) for key in keys}
        return derivations.pop() if len(derivations) == 1 and len({key[:-1] for key in keys}) > 1 else ""

    def _fill(
        self,
        question: MaskedQuestion,
        program: Program,
        words: Sequence[QuestionWord],
        relations: Sequence[QuestionSlot],
    ) -> list[str] | None:
        """Divide the words among the slots of relations in their order; None if they do not fit."""
        if not relations:
            return None if words else []
        for count in range(len(words) - len(relations) + 1, 0, -1):
            text = self._read_relation(question, program, relations[0], words[:count])
            rest = self._fill(question, program, words[count:], relations[1:]) if text else None
            if text and rest is not None:
                # "The birthplace and the father of X" asks twice, "the birthplace of the father of X" once.
                own = _read_between(question.text, words[:count], words[count:], question.mentions)
                shown = _read_between(program.question, relations[:1], relations[1:], [n[:2] for n in program.names])
                return [text, *rest] if own == shown or None in (own, shown) else None
        return None

    def _read_relation(
        self, question: MaskedQuestion, program: Program, slot: QuestionSlot, words: Sequence[QuestionWord]
    ) -> str | None:
        """The relation that the words name: a label of the world, or else the words themselves; None for none."""
        start, end = min(word.start for word in words), max(word.end for word in words)
        inside = [word for word in question.content if start <= word.start < end]
        if len(inside) > len(words) or any(word.folded in DECISIVE_WORDS for word in inside):
            return None
        text, lookup = question.text[start:end], next(own for own in program.lookups if own.word == slot.start)
        return self.world.find_relation(text) if lookup.is_label else text


def _compares_with_name(question: MaskedQuestion) -> bool:
    """Whether a name stands behind "than", with no word of content and no comma between."""
    tails = [question.text[:start].casefold().rpartition(" than ")[1:] for start, _ in question.mentions]
    return any(than and "," not in tail and not has_content(tail) for than, tail in tails)


def _read_between(
    text: str, one: Sequence[Any], other: Sequence[Any], mentions: Sequence[tuple[int, int]]
) -> list[str] | None:
    """The words between two groups of words or slots, without articles; None if there is a name, or no second group."""
    if not other:
        return None
    (_, start), (end, _) = sorted(
        (min(own.start for own in group), max(own.end for own in group)) for group in (one, other)
    )
    is_apart = any(start <= first < end for first, _ in mentions)
    return None if is_apart else [stem for stem in phrase_key(text[start:end]) if stem != "the"]


def _subtract(
    words: Sequence[QuestionWord], others: Sequence[QuestionWord], descriptions: Sequence[QuestionWord]
) -> list[QuestionWord]:
    """The words without those that the others have, and without descriptions."""
    remaining, kept = Counter(word.stem for word in others), []
    for word in words:
        if remaining[word.stem]:
            remaining[word.stem] -= 1
        elif word not in descriptions:
            kept.append(word)
    return kept


def _order_outward(question: MaskedQuestion, pieces: Sequence[Any]) -> list[Any]:
    """Words or slots by their distance from the only name, as what stands next to it is looked up first."""
    if len(question.mentions) != 1:
        return sorted(pieces, key=lambda piece: piece.start)
    ((start, end),) = question.mentions
    return sorted(pieces, key=lambda piece: max(start - piece.end, piece.start - end))


@dataclass(frozen=True, slots=True)
class Calibration:
    """The score of each alignment of a demonstration with the others, and whether it was right."""

    outcomes: tuple[tuple[float, bool], ...]

    @classmethod
    def leave_one_out(cls, aligner: QuestionAligner) -> "Calibration":
        """Align the question of each form with the others; right if it then asks the same as the form itself."""
        outcomes, programs = [], [form.program for form in aligner.forms]
        known = {lookup.key(program.texts) for program in programs for lookup in program.lookups}
        for index in range(0, len(programs), 1 + len(programs) // MAX_CALIBRATED):
            alignments, _ = aligner.align_all(aligner.forms[index].question, index)
            # A tool decides about an ask that no demonstration shows.
            outcomes += [
                (best.score, best.key == programs[index].signature(programs[index].texts))
                for best in alignments[:1]
                if all(lookup.is_label or lookup.key(best.fillers) in known for lookup in best.program.lookups)
            ]
        return cls(tuple(sorted(outcomes, reverse=True)))

    def confidence(self, score: float) -> float:
        """The share of right ones among the alignments with at least this score, with a prior of nine in ten."""
        reached = [is_right for own, is_right in self.outcomes if own >= score]
        return (PRIOR_RIGHT + sum(reached)) / (PRIOR_WEIGHT + len(reached))

    @property
    def threshold(self) -> float:
        """The least confidence with which at most MAX_WRONG_SHARE of the alignments were wrong."""
        wrong = enumerate(itertools.accumulate(not is_right for _, is_right in self.outcomes), 1)
        exceeding = [count for count, own in wrong if own > MAX_WRONG_SHARE * count]
        return max((self.confidence(self.outcomes[count - 1][0]) for count in exceeding), default=0.0)
