"""What replay takes from a demonstration: its slots, its look-ups with the origins of their arguments, and its answer.

A look-up asks one thing ("director", "When was ... born?", a query) of a subject, and observes values. Its subject is a
slot of the question or the values of an earlier look-up; its ask may hold a word of the question, which then is a slot
as well. A way is the calls by which a look-up was made; another look-up with such an ask can be made in the same way.

The names, dates and numbers of a question are found by what the world knows.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np

from db.models import Step
from reasoners.provenance import DATE_PATTERN, BrokenOrigin, Origin, resolve_origin
from reasoners.replay.derivations import (
    ALL,
    FUNCTION_WORDS,
    NONE,
    UNREMARKABLE_WORDS,
    Evidence,
    LookUpResult,
    LookUpRows,
    ReplayValue,
    stem,
    tokenize,
)
from tools.tool import EncodeFunction
from worlds import terms
from worlds.embedded.graph import EmbeddedGraph
from worlds.embedded.text import EmbeddedText
from worlds.source import World
from worlds.text_normalization import normalize_name

NAME, ID, WORD, STEM, ASK = "\x00", "\x01", "\x02", "\x03", "\x04"
"""The places for the name and the id of a subject, for the word that is a slot, or its stem, and for a whole ask."""


@dataclass(frozen=True, slots=True)
class QuestionSlot:
    """A span of the question that an argument or the answer came from."""

    start: int
    end: int
    text: str
    is_relation: bool = False
    """Whether it is a word for what is asked, such as director, and not a name, a date or a number."""


class SlotText(NamedTuple):
    """A place in an argument for a span of the question."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class StepValue:
    """A place in an argument for a value of an earlier step, or for a span of it."""

    step: int
    pointer: str
    start: int = 0
    end: int | None = None

    @property
    def is_instrument(self) -> bool:
        """Whether it carries the same look-up on: a query, the address of a page, the id of a relation."""
        return self.pointer.endswith(("/sparql", "/address")) or self.pointer.startswith("/relations/")

    @property
    def is_id(self) -> bool:
        """Whether it is the id of an entity."""
        return self.pointer.endswith(("/id", "/entity", "/value"))


ArgumentPart = str | SlotText | StepValue


def split_argument(value: Any, origin: Origin) -> Iterator[ArgumentPart]:
    """Yield the parts of an argument by where they come from."""
    if origin["from"] == "question":
        yield SlotText(origin["start"], origin["end"])
    elif origin["from"] == "step":
        yield StepValue(origin["step"], origin["pointer"], origin.get("start", 0), origin.get("end"))
    elif isinstance(value, list):
        for item, part in zip(value, origin.get("parts", ()), strict=False):
            yield from split_argument(item, part["origin"])
    elif origin["from"] == "parts":
        end = 0
        for part in origin["parts"]:
            yield from filter(None, [value[end : part["start"]]])
            yield from split_argument(value[part["start"] : part["end"]], part["origin"])
            end = part["end"]
        yield from filter(None, [value[end:]])
    else:
        yield from filter(None, [str(value)])


def resolve_part(part: ArgumentPart, question: str, data: Mapping[int, Any]) -> str:
    """The text of a part; BrokenOrigin if the question or the observation does not have it."""
    if isinstance(part, str):
        return part
    if isinstance(part, SlotText):
        return resolve_origin({"from": "question", "start": part.start, "end": part.end}, question, data)
    span = {} if part.end is None else {"start": part.start, "end": part.end}
    return resolve_origin({"from": "step", "step": part.step, "pointer": part.pointer, **span}, question, data)


def read_text(data: Any, pointer: str) -> str | None:
    """The text at a JSON Pointer into an observation; None if there is none."""
    try:
        return resolve_part(StepValue(0, pointer), "", {0: data})
    except BrokenOrigin:
        return None


RELATION = "/relations/*/id"
"""The pointer to the relation that the ask names, wherever it stands."""


class CallValue(NamedTuple):
    """An argument from an earlier call of a way."""

    call: int
    pointer: str


@dataclass(frozen=True, slots=True)
class WayCall:
    """One call of a way; an argument is a text with the places NAME, ID and ASK, or a value of an earlier call."""

    tool: str
    arguments: tuple[tuple[str, str | CallValue, bool], ...]
    """Name, content, and whether the argument is a list with this one item."""


@dataclass(frozen=True, slots=True)
class LookUpWay:
    """The calls of a look-up, and the list of its last observation with the values; None if it has sentences."""

    calls: tuple[WayCall, ...]
    path: str | None


@dataclass(frozen=True, slots=True)
class LookUp:
    """One look-up: what is asked of which subject, and what was observed."""

    subject: int
    """The index of a slot; from -1 downwards the earlier look-up whose values are the subjects."""
    ask: str
    """With NAME or ID in place of the subject, and WORD in place of the word that is a slot."""
    word: int | None
    """The index of the slot whose text is the ask's word."""
    ways: tuple[LookUpWay, ...]
    observed: LookUpRows
    contexts: tuple[tuple[str, str], ...] = ()
    """The words before a value in the sentence that it was read in, and the mark or word after it."""

    @property
    def is_label(self) -> bool:
        """Whether the ask is the label of a relation, without a place for the subject."""
        return NAME not in self.ask and ID not in self.ask

    @property
    def values(self) -> list[ReplayValue]:
        """What was observed, of all subjects."""
        return [value for _, values in self.observed for value in values]

    def fill(self, texts: Sequence[str]) -> str:
        """The ask with these texts in the slots."""
        return self.ask if self.word is None else fill_word(self.ask, texts[self.word])


def fill_word(text: str, word: str) -> str:
    """Put a word in its place."""
    return text.replace(WORD, word).replace(STEM, stem(word.casefold()))


@dataclass(frozen=True, slots=True)
class Program:
    """A demonstration as it can be followed; one with a `problem` can only be repeated on its own question."""

    id: UUID
    question: str
    steps: tuple[Step, ...]
    answer: str
    slots: tuple[QuestionSlot, ...] = ()
    lookups: tuple[LookUp, ...] = ()
    given: int | None = None
    """The slot whose text is compared with observed values."""
    derivation: str | None = None
    readings: Mapping[str, str] = field(default_factory=dict)
    """How a tool said that it understood an ask."""
    identifiers: tuple[tuple[str, str], ...] = ()
    """The calls that gave the id of a name: tool and argument."""
    problem: str | None = None
    """Why it cannot be followed, as a clause."""

    def is_relation_at(self, place: int) -> bool:
        """Whether the character of the question is part of a relation word that is a slot."""
        return any(slot.is_relation and slot.start <= place < slot.end for slot in self.slots)

    @property
    def shows_ids(self) -> bool:
        """Whether its answer has the id of an entity after the name."""
        return any(value.id and f"({value.id})" in self.answer for o in self.lookups for value in o.values)

    @property
    def texts(self) -> list[str]:
        """The texts of its own slots."""
        return [slot.text for slot in self.slots]

    @property
    def names(self) -> list[int]:
        """The slots that are names, dates or numbers, in the order of the question."""
        slots = [index for index, slot in enumerate(self.slots) if not slot.is_relation]
        return sorted(slots, key=lambda index: self.slots[index].start)

    @property
    def is_cut_short(self) -> bool:
        """Whether it ends where a look-up has no value, though its question asks for more than it looks up."""
        asked = {stem(word) for lookup in self.lookups for word, _, _ in tokenize(lookup.fill(self.texts))}
        words = (token for token in tokenize(self.question) if not self._is_in_slot(token[1]))
        return self.derivation == NONE and any(stem(w) not in asked | UNREMARKABLE_WORDS for w, _, _ in words)

    def _is_in_slot(self, place: int) -> bool:
        return any(slot.start <= place < slot.end for slot in self.slots)

    def signature(self, texts: Sequence[str], derivation: str | None = None) -> tuple[Any, ...]:
        """What is asked apart from names, with these texts in the slots."""
        asks = []
        for lookup in self.lookups:
            subject = lookup.subject if lookup.subject < 0 else self.names.index(lookup.subject)
            asks.append((subject, lookup.fill([stem(text.casefold()) for text in texts])))
        derivation = derivation or self.derivation
        return (*asks, ALL if derivation == NONE and not self.is_cut_short else derivation)

    def evidence(self, rows: Sequence[LookUpRows], texts: Sequence[str], **options: bool) -> Evidence:
        """What the answer is derived from: the values of the look-ups that no other look-up takes."""
        taken = {-1 - lookup.subject for lookup in self.lookups if lookup.subject < 0}
        results = tuple(LookUpResult(self._root(i), tuple(own)) for i, own in enumerate(rows) if i not in taken)
        given = None if self.given is None else ReplayValue(texts[self.given])
        return Evidence(results, tuple(texts), given, **options)

    def _root(self, index: int) -> int:
        """The slot that the chain of a look-up begins with."""
        subject = self.lookups[index].subject
        return subject if subject >= 0 else self._root(-1 - subject)


def list_subprograms(program: Program) -> Iterator[Program]:
    """Yield the questions that the look-ups of a demonstration ask of a tool, each as a demonstration of its own."""
    for lookup in program.lookups:
        ways = tuple(way for way in lookup.ways if way.path is not None)
        if NAME not in lookup.ask or not ways or lookup.ask not in program.readings or not lookup.observed:
            continue
        subject, values = lookup.observed[0]
        slots, text = [], ""
        for piece in re.split(f"([{NAME}{WORD}{STEM}])", lookup.ask):
            filler = subject.text if piece == NAME else piece
            if piece in (WORD, STEM) and lookup.word is not None:
                filler = fill_word(piece, program.slots[lookup.word].text)
            if piece in (NAME, WORD, STEM):
                slots.append(QuestionSlot(len(text), len(text) + len(filler), filler, is_relation=piece != NAME))
            text += filler
        word = next((index for index, slot in enumerate(slots) if slot.is_relation), None)
        place = next(index for index, slot in enumerate(slots) if not slot.is_relation)
        ask = lookup.ask.replace(STEM, WORD)
        own = replace(lookup, subject=place, ask=ask, word=word, ways=ways, observed=((subject, values),))
        readings = {ask: program.readings[lookup.ask].replace(STEM, WORD)}
        yield replace(
            program, question=text, slots=tuple(slots), lookups=(own,), given=None, derivation=ALL, readings=readings
        )


Words = list[tuple[str, int, int]]
MASKS = "XYZUVW"
MAX_NAME_WORDS = 14
"""The most words of a name that is looked up in the world."""
MAX_COMPARED_LABELS = 400
"""In a graph with more relations, a word names a relation only by its exact label."""
MIN_RELATION_COSINE, MIN_RELATION_LEAD = 0.84, 0.15
"""A word names a relation if its cosine with the label is so high, and so much higher than with any other label."""
PROBED_ARTICLES, MIN_STATED_SHARE = 40, 0.5
"""The articles that are compared with the graph, and the share of its values that they state at least."""
DESCRIBING_SENTENCES = 2
"""The first sentences of an article, which say what kind of thing it is about."""


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
        """The stems of the words outside mentions, with their spans; each mention is the word *."""
        tokens = [
            (stem(word), start, end)
            for word, start, end in tokenize(self.text)
            if not any(begin < end and start < stop for begin, stop in self.mentions)
        ]
        return sorted([*tokens, *(("*", start, end) for start, end in self.mentions)], key=lambda token: token[1])


def mask_question(question: str, world: "WorldWords", vocabulary: frozenset[str]) -> MaskedQuestion:
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


def _find_name(question: str, tokens: Words, world: "WorldWords", vocabulary: frozenset[str]) -> int | None:
    """Where the name ends that begins with the first word; None without a name."""
    first, start, _ = tokens[0]
    is_capital = question[start].isupper() or first.isdecimal()
    # A small word before another one belongs to its noun: male cousins.
    is_noun = is_capital or len(tokens) == 1 or tokens[1][0] in FUNCTION_WORDS
    is_word = not is_noun or stem(first) in vocabulary or first in UNREMARKABLE_WORDS
    for count in range(min(MAX_NAME_WORDS, len(tokens)), 1 if is_word else 0, -1):
        end = _end_name(question, start, tokens[count - 1][2], world)
        text = question[start:end]
        if world.knows(text):
            return end
        if text.endswith(".") and world.knows(text[:-1]):
            return end - 1
    # A name that the world does not know, or cannot be asked for without a step.
    is_unknown = start > 0 and question[start].isupper() and not (is_word and world.is_searchable)
    capitals = itertools.takewhile(lambda t: question[t[1]].isupper() or question[t[1]].isdecimal(), tokens)
    return list(capitals)[-1][2] if is_unknown else None


def _end_name(question: str, start: int, end: int, world: "WorldWords") -> int:
    """Where a name ends: after the bracket or quotation that it opens, or the mark with which the world knows it."""
    text, mark = question[start:end], question[end : end + 1]
    closes = (mark == ")" and text.count("(") > text.count(")")) or (mark == '"' and text.count('"') % 2 == 1)
    if not closes and mark in {"!", "?", "."}:
        closes = bool(question[end + 1 :].strip()) and world.is_searchable and world.has_exact_name(text + mark)
    return end + closes


@lru_cache(maxsize=8)
def _encode_labels(encode: EncodeFunction, labels: tuple[str, ...]) -> np.ndarray:
    return encode(labels)


class WorldWords:
    """The names and relations of a world; one that is not embedded is asked only by steps."""

    def __init__(self, world: World, encode: EncodeFunction) -> None:
        self._text = world.text if isinstance(world.text, EmbeddedText) else None
        self._graph = world.graph if isinstance(world.graph, EmbeddedGraph) else None
        self._encode = encode
        self._labels: dict[str, str] = {}
        for relation in self._graph.vocabulary() if self._graph else ():
            self._labels |= {normalize_name(name): relation.label for name in (*relation.aliases, relation.label)}

    @property
    def is_searchable(self) -> bool:
        """Whether names can be looked up without a step."""
        return self._text is not None or self._graph is not None

    def knows(self, name: str) -> bool:
        """Whether an article or an entity has this name; relations are no names."""
        if normalize_name(name) in self._labels:
            return False
        return bool((self._text and self._text.has_title(name)) or (self._graph and self._graph.has_name(name)))

    def has_exact_name(self, name: str) -> bool:
        """Whether an article has this title, or an entity this label, with its marks."""
        if self._text is not None and self._text.has_title(name):
            return self._text.article(name).title.casefold() == name.casefold()
        entities = self._graph.find(name, 1) if self._graph is not None else []
        return any(entity.label.casefold() == name.casefold() for entity in entities)

    def find_relation(self, phrase: str) -> str | None:
        """The label of the relation with this name, or with one that clearly resembles it; None if there is none."""
        exact = self._labels.get(normalize_name(phrase))
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
        if self._text is None or self._graph is None:
            return False
        stated: list[bool] = []
        for article in self._text.list_articles(PROBED_ARTICLES):
            if article.entity is not None:
                node = terms.format_node(article.entity)
                rows = self._graph.query(f"SELECT DISTINCT ?value WHERE {{ {node} ?relation ?value }}").rows
                ids = [cell.value for (cell,) in rows if cell is not None and cell.kind == "entity"]
                labels = [entity.label.casefold() for entity in self._graph.entities(ids)]
                stated += [label in article.text.casefold() for label in labels]
        return sum(stated) < MIN_STATED_SHARE * len(stated)

    def describes(self, name: str, word: str) -> bool:
        """Whether the first sentences of the article about a name have this word: they say what kind of thing it is."""
        if self._text is None or not self._text.has_title(name):
            return False
        sentences = self._text.article(name).sentences[:DESCRIBING_SENTENCES]
        return any(stem(token) == word for sentence in sentences for token, _, _ in tokenize(sentence))
