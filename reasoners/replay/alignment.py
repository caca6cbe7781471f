"""Aligns a question with that of a demonstration: names and relations fill its slots, the other words mean the same.

Names, dates and numbers are found by what the world knows; a relation is whatever else stands where the demonstration
has one, if the tools take it. Confidence is calibrated by leaving one demonstration out.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from reasoners.provenance import DATE_PATTERN
from reasoners.replay.demonstration import NAME, WORD, Program
from reasoners.replay.derivations import (
    DATE,
    DECISIVE_WORDS,
    FUNCTION_WORDS,
    NUMBER,
    ReplayValue,
    Words,
    list_stems,
    stem,
    tokenize,
)
from tools.tool import EncodeFunction
from worlds import terms
from worlds.embedded.graph import EmbeddedGraph
from worlds.embedded.text import EmbeddedText
from worlds.source import World
from worlds.text_normalization import normalize_name

MASKS, MENTION = "XYZUVW", "*"
MAX_NAME_WORDS, MAX_COMPARED_LABELS = 14, 400
"""The most words of a name; in a graph with more relations, a word names a relation only by its exact label."""
MIN_RELATION_COSINE, MIN_RELATION_LEAD, MIN_WORD_COSINE = 0.84, 0.15, 0.7
"""A word names a relation if its cosine with the label is so high, and so much higher than with any other label.

Opposites have the cosine of two words with one meaning as well, so that other conditions hold beside it.
"""
PROBED_ARTICLES, MIN_STATED_SHARE, DESCRIBING_SENTENCES = 40, 0.5, 2
"""The articles compared with the graph, the share of its values that they state; the sentences that say what it is."""
MAX_COMPARED, MAX_NEIGHBOURS, MAX_CALIBRATED = 200, 8, 1000
"""The most similar demonstrations that a question is aligned with, or one of the calibration, and how many that has."""
PRIOR_RIGHT, PRIOR_WEIGHT, MAX_WRONG_SHARE = 1.8, 2.0, 0.03
"""The alignments that a library without any is taken to have had, and the share that may be wrong."""
SOFT_WORD_COST = 0.02
"""What a word that was taken for another one costs of the similarity of two questions."""


@lru_cache(maxsize=8)
def _encode_labels(encode: EncodeFunction, labels: tuple[str, ...]) -> np.ndarray:
    return encode(labels)


class WorldWords:
    """The names and relations of a world; one that is not embedded is asked only by steps."""

    def __init__(self, world: World, encode: EncodeFunction) -> None:
        self._text = world.text if isinstance(world.text, EmbeddedText) else None
        self._graph = world.graph if isinstance(world.graph, EmbeddedGraph) else None
        self._encode = encode
        self._labels = {
            normalize_name(name): relation.label
            for relation in (self._graph.vocabulary() if self._graph else ())
            for name in (*relation.aliases, relation.label)
        }

    def knows(self, name: str, *, exactly: bool = False) -> bool:
        """Whether an article or an entity has this name, or has it with its marks; relations are no names."""
        if normalize_name(name) in self._labels:
            return False
        is_title = self._text is not None and self._text.has_title(name)
        if not exactly:
            return is_title or (self._graph is not None and self._graph.has_name(name))
        titles = [self._text.article(name).title] if is_title and self._text else []
        labels = [entity.label for entity in (self._graph.find(name, 1) if self._graph else ())]
        return name.casefold() in {own.casefold() for own in (*titles, *labels)}

    def find_relation(self, phrase: str) -> str | None:
        """The label of the relation with this name, or with one that clearly resembles it; None if there is none."""
        exact = self._labels.get(normalize_name(phrase)) or self._labels.get(" ".join(list_stems(phrase)))
        labels = tuple(sorted(set(self._labels.values())))
        if exact is not None or not 1 < len(labels) <= MAX_COMPARED_LABELS or not phrase.islower():
            return exact
        rows = _encode_labels(self._encode, labels)  # type: ignore[arg-type]  # hashed by its identity
        cosines = rows @ self._encode([phrase])[0]
        second, best = cosines.argsort()[-2:]
        is_clear = cosines[best] >= max(MIN_RELATION_COSINE, cosines[second] + MIN_RELATION_LEAD)
        return labels[best] if is_clear else None

    def spreads_facts(self) -> bool:
        """Whether articles lack facts that the graph has: then lists of one source may be incomplete."""
        stated: list[bool] = []
        for article in self._text.list_articles(PROBED_ARTICLES) if self._text and self._graph else ():
            if article.entity is not None and self._graph:
                query = f"SELECT DISTINCT ?value WHERE {{ {terms.format_node(article.entity)} ?relation ?value }}"
                cells = [cell for (cell,) in self._graph.query(query).rows if cell is not None]
                labels = self._graph.entities([cell.value for cell in cells if cell.kind == "entity"])
                stated += [entity.label.casefold() in article.text.casefold() for entity in labels]
        return sum(stated) < MIN_STATED_SHARE * len(stated)

    def describes(self, name: str, word: str) -> bool:
        """Whether the first sentences of the article about a name have this word: they say what kind of thing it is."""
        if self._text is None or not self._text.has_title(name):
            return False
        return word in list_stems(" ".join(self._text.article(name).sentences[:DESCRIBING_SENTENCES]))


@dataclass(frozen=True)
class MaskedQuestion:
    """A question whose names, dates and numbers are masked."""

    text: str
    mentions: tuple[tuple[int, int], ...]
    """The spans of the names, dates and numbers."""

    @property
    def fillers(self) -> list[str]:
        """The texts of the mentions."""
        return [self.text[start:end] for start, end in self.mentions]

    @cached_property
    def masked(self) -> str:
        """The question with letters in place of the mentions."""
        text = self.text
        for index, (start, end) in reversed(list(enumerate(self.mentions))):
            text = text[:start] + MASKS[index % len(MASKS)] + text[end:]
        return text

    @cached_property
    def words(self) -> Words:
        """The stems of the words outside mentions, with their spans; each mention is one word."""
        tokens = [
            (stem(word), start, end)
            for word, start, end in tokenize(self.text)
            if not any(begin < end and start < stop for begin, stop in self.mentions)
        ]
        return sorted([*tokens, *((MENTION, *span) for span in self.mentions)], key=lambda token: token[1])


def mask_question(question: str, world: WorldWords, vocabulary: frozenset[str]) -> MaskedQuestion:
    """Find the mentions: dates, numbers and the longest names that the world knows, whatever their case.

    A single word of the vocabulary, which demonstrations use in their questions, is no name.
    """
    spans = [match.span() for match in DATE_PATTERN.finditer(question)]
    tokens = tokenize(question)
    for place, (word, start, end) in enumerate(tokens):
        if not any(first <= start < last for first, last in spans):
            name_end = _find_name(question, tokens[place:], world, vocabulary) or (end if word.isdecimal() else None)
            spans += [(start, name_end)] if name_end else []
    return MaskedQuestion(question, tuple(sorted(spans)))


def _find_name(question: str, tokens: Words, world: WorldWords, vocabulary: frozenset[str]) -> int | None:
    """Where the name ends that begins with the first word; None without a name."""
    word, start, _ = tokens[0]
    is_capital = question[start].isupper()
    # A small word before another one belongs to its noun: male cousins.
    is_noun = is_capital or len(tokens) == 1 or tokens[1][0] in FUNCTION_WORDS
    is_word = not is_noun or stem(word) in vocabulary or word in FUNCTION_WORDS | DECISIVE_WORDS
    for count in range(min(MAX_NAME_WORDS, len(tokens)), 1 if is_word else 0, -1):
        end = tokens[count - 1][2]
        text, mark = question[start:end], question[end : end + 1]
        closes = (mark == ")" and "(" in text) or (mark == '"' and text.count('"') % 2 == 1)
        if closes or (mark in {"!", "?", "."} and question[end + 1 :].strip()):
            closes = closes or world.knows(text + mark, exactly=True)
        if world.knows(question[start : end + closes]):
            return end + closes
    # A name that the world does not know, or cannot be asked for without a step.
    capitals = itertools.takewhile(lambda t: question[t[1]].isupper() or question[t[1]].isdecimal(), tokens)
    return list(capitals)[-1][2] if start > 0 and is_capital and not is_word else None


@dataclass(frozen=True, slots=True)
class Alignment:
    """How a question follows a program: the texts of its slots, and the similarity of the rest."""

    program: Program
    fillers: tuple[str, ...]
    similarity: float
    soft_words: tuple[tuple[str, str], ...] = ()
    """Words that were taken for others, which they resemble: movie for film."""

    @property
    def score(self) -> float:
        """The similarity less the cost of soft words; confidence is calibrated by it."""
        return self.similarity - SOFT_WORD_COST * len(self.soft_words)

    @property
    def key(self) -> tuple[Any, ...]:
        """What is asked, apart from names; equal for two alignments with the same look-ups and derivation."""
        return self.program.signature(self.fillers)


class Mismatch(Exception):
    """A question does not follow a program; the message is a clause that says which words do not fit."""


Mismatches = list[tuple[float, int, str]]


class QuestionAligner:
    """Aligns questions with the programs of a library."""

    def __init__(self, programs: Sequence[Program], encode: EncodeFunction) -> None:
        self.programs, self._encode = programs, encode
        self.questions = [
            MaskedQuestion(p.question, tuple((p.slots[i].start, p.slots[i].end) for i in p.names)) for p in programs
        ]
        self._keys = [program.signature([MENTION] * len(program.slots)) for program in programs]
        self._contents: dict[Any, dict[frozenset[str], set[int]]] = defaultdict(lambda: defaultdict(set))
        """The questions by what they ask, and by their words without names and relations."""
        forms: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        self._keys_of_word: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
        for index, (program, question, key) in enumerate(zip(programs, self.questions, self._keys, strict=True)):
            forms[question.masked, key].append(index)
            content = frozenset(word for word, _, _ in _list_fixed(program, question))
            self._contents[key][content].add(index)
            for word in content - {MENTION}:
                self._keys_of_word[word].add(key)
        self._forms = list(forms.values())
        """The questions that differ at most in their names."""
        self.vocabulary = frozenset(self._keys_of_word)
        self._similar_words: dict[str, str | None] = {}

    @cached_property
    def rows(self) -> np.ndarray:
        """The embeddings of the different masked questions."""
        return self._encode([self.questions[indices[0]].masked for indices in self._forms])

    @cached_property
    def _word_rows(self) -> tuple[list[str], np.ndarray]:
        words = sorted(self.vocabulary)
        return words, self._encode(words)

    def align_all(
        self, question: MaskedQuestion, world: WorldWords, left_out: int | None = None
    ) -> tuple[list[Alignment], Mismatches]:
        """The distinct alignments, best first; and of the other programs the similarity, the index and the mismatch."""
        similarities = self.rows @ self._encode([question.masked])[0]
        alignments: list[Alignment] = []
        mismatches = []
        for place in similarities.argsort()[::-1].tolist()[: MAX_COMPARED if left_out is None else MAX_NEIGHBOURS]:
            similarity = float(similarities[place])
            for index in [index for index in self._forms[place] if index != left_out][:1]:
                try:
                    alignments.append(self._align(question, index, similarity, world, left_out))
                except Mismatch as mismatch:
                    mismatches.append((similarity, index, str(mismatch)))
        alignments.sort(key=lambda alignment: -alignment.score)
        distinct: dict[Any, Alignment] = {}
        for alignment in alignments:
            distinct.setdefault((alignment.key, *(alignment.fillers[i] for i in alignment.program.names)), alignment)
        return list(distinct.values()), mismatches

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
        shown = _list_fixed(program, known)
        common = Counter(word for word, _, _ in asked) & Counter(word for word, _, _ in shown)
        extra, missing = _subtract(asked, common), _subtract(shown, common)
        extra, missing = (_drop_descriptions(q, own, world) for q, own in ((question, extra), (known, missing)))
        # Words that other demonstrations of the same look-ups have or lack may differ.
        contents = self._contents[self._keys[index]].items()
        peers = [words for words, indices in contents if indices - {index, left_out}]
        extra = [token for token in extra if not any(token[0] in words for words in peers)]
        absent = [word for word, _, _ in missing if all(word in words for words in peers)]
        soft = []
        for token in list(extra):
            similar = self._find_similar(token[0])
            if similar in absent and len(self._keys_of_word[similar]) > 1:
                soft.append((token[0], similar))
                extra.remove(token)
                absent.remove(similar)
        spans = [(str(place), slot.start, slot.end) for place, slot in enumerate(program.slots) if slot.is_relation]
        relations = [int(place) for place, _, _ in _order_outward(known, spans)]
        pieces = _order_outward(question, _drop_repeated(question, extra))
        texts = _fill_relations(question, program, pieces, relations, world) if not absent else None
        if _list_outer(question, asked, common, pieces) != _list_outer(known, shown, common, spans):
            raise Mismatch("its words are in another order")
        if texts is None:
            words = filter(None, (", ".join(w for w, _, _ in extra), "not " + ", ".join(absent) if absent else ""))
            raise Mismatch(f"it says {' and '.join(words) or 'nothing in place of a relation'}")
        fillers |= dict(zip(relations, texts, strict=True))
        return Alignment(program, tuple(fillers[slot] for slot in range(len(program.slots))), similarity, tuple(soft))

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


def _list_fixed(program: Program, question: MaskedQuestion) -> Words:
    """The words of content that are no relation, nor repeat one."""
    relations = {stem(slot.text.casefold()) for slot in program.slots if slot.is_relation}
    relations = relations if len(question.mentions) > 1 else set()
    words = [token for token in question.words if token[0] not in FUNCTION_WORDS | relations]
    return [token for token in words if not program.is_relation_at(token[1])]


def _subtract(tokens: Words, common: Counter[str]) -> Words:
    """The tokens without those that two questions have in common."""
    remaining, kept = Counter(common), []
    for token in tokens:
        if remaining[token[0]]:
            remaining[token[0]] -= 1
        else:
            kept.append(token)
    return kept


def _drop_descriptions(question: MaskedQuestion, words: Words, world: WorldWords) -> Words:
    """The words without those before a name that say what kind of thing it is: the film X, both villages, X and Y."""
    described = {
        token
        for token, (word, start, end) in itertools.pairwise(question.words)
        if word == MENTION and token in words and world.describes(question.text[start:end], token[0])
    }
    return [token for token in words if token not in described]


def _drop_repeated(question: MaskedQuestion, words: Words) -> Words:
    """The words without those that an earlier name has, too: the director of X and the director of Y."""
    return [
        (word, start, end)
        for word, start, end in words
        if not any(o == word and first < name < start for o, first, _ in words for name, _ in question.mentions)
    ]


def _list_outer(
    question: MaskedQuestion, words: Words, common: Counter[str], relations: Words
) -> set[tuple[str, bool]]:
    """The common words, each with whether a relation stands between it and the only name."""
    names = question.mentions if len(question.mentions) == 1 else ()
    return {
        (word, any(min(start, name) < place < max(start, name) for _, place, _ in relations))
        for word, start, _ in words
        for name, _ in names
        if common[word] and word not in DECISIVE_WORDS | {MENTION}
    }


def _order_outward(question: MaskedQuestion, words: Words) -> Words:
    """The words by their distance from the only name, as what stands next to it is looked up first."""
    if len(question.mentions) != 1:
        return sorted(words, key=lambda word: word[1])
    ((start, end),) = question.mentions
    return sorted(words, key=lambda word: max(start - word[2], word[1] - end))


def _fill_relations(
    question: MaskedQuestion, program: Program, pieces: Words, relations: Sequence[int], world: WorldWords
) -> list[str] | None:
    """Divide the words among the slots of relations in their order; None if they do not fit."""
    if not relations:
        return None if pieces else []
    for count in range(len(pieces) - len(relations) + 1, 0, -1):
        text = _read_relation(question, program, relations[0], pieces[:count], world)
        rest = _fill_relations(question, program, pieces[count:], relations[1:], world) if text else None
        if text and rest is not None:
            return [text, *rest]
    return None


def _read_relation(
    question: MaskedQuestion, program: Program, slot: int, pieces: Words, world: WorldWords
) -> str | None:
    """The relation that these words name: a label of the world, or else the phrase up to the name; None for none."""
    start, end = min(piece[1] for piece in pieces), max(piece[2] for piece in pieces)
    inside = [word for word, begin, _ in question.words if start <= begin < end and word not in FUNCTION_WORDS]
    if len(inside) > len(pieces) or DECISIVE_WORDS.intersection(inside):
        return None
    text, shown = question.text[start:end], program.slots[slot].text
    lookup = next(lookup for lookup in program.lookups if lookup.word == slot)
    if list_stems(text) == list_stems(shown):
        return shown
    if lookup.is_label:
        return world.find_relation(text)
    nearest = next((place for place, mention in enumerate(question.mentions) if mention[0] >= end), None)
    if nearest is None:
        return text
    name = question.mentions[nearest][0]
    joint = question.text[end:name].strip()
    if joint == lookup.ask.partition(WORD)[2].partition(NAME)[0].strip():
        # A relation of the value that is compared with is another question.
        return None if program.names[nearest] == program.given else text
    return (
        text if any(word not in FUNCTION_WORDS for word, _, _ in tokenize(joint)) else question.text[start:name].strip()
    )


@dataclass(frozen=True, slots=True)
class Calibration:
    """The score of each alignment of a demonstration with the others, and whether it was right."""

    outcomes: tuple[tuple[float, bool], ...]

    @classmethod
    def leave_one_out(cls, aligner: QuestionAligner, world: WorldWords) -> "Calibration":
        """Align the question of each program with the others; right if it then asks the same as the program itself."""
        outcomes, programs = [], aligner.programs
        known = {lookup.fill(program.texts).casefold() for program in programs for lookup in program.lookups}
        for index in range(0, len(programs), 1 + len(programs) // MAX_CALIBRATED):
            alignments, _ = aligner.align_all(aligner.questions[index], world, index)
            for best in alignments[:1]:
                # A tool decides about an ask that no demonstration shows.
                asks = zip(best.program.lookups, best.key, strict=False)
                if all(ask in known or lookup.is_label for lookup, (_, ask) in asks):
                    outcomes.append((best.score, best.key == programs[index].signature(programs[index].texts)))
        return cls(tuple(sorted(outcomes, reverse=True)))

    def confidence(self, score: float) -> float:
        """The share of right ones among the alignments with at least this score, with a prior of nine in ten."""
        reached = [is_right for own, is_right in self.outcomes if own >= score]
        return (PRIOR_RIGHT + sum(reached)) / (PRIOR_WEIGHT + len(reached))

    @property
    def threshold(self) -> float:
        """The least confidence with which at most MAX_WRONG_SHARE of the alignments were wrong."""
        right, accepted = 0, 0.0
        for count, (score, is_right) in enumerate(self.outcomes, 1):
            right += is_right
            if count - right > MAX_WRONG_SHARE * count:
                accepted = max(accepted, self.confidence(score))
        return accepted
