"""What replay takes from a demonstration: its slots, its look-ups with the origins of their arguments, and its answer.

A look-up asks one thing ("director", "When was ... born?", a query) of a subject, and observes values. Its subject is a
slot of the question or the values of an earlier look-up; its ask may hold a word of the question, which then is a slot
as well. A way is the calls by which a look-up was made; another look-up with such an ask can be made in the same way.

The names, dates and numbers of a question are found by what the world knows.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from db.models import Step
from reasoners.provenance import DATE_PATTERN, TYPED_ORIGIN, Origin
from reasoners.replay.derivations import (
    ALL,
    FUNCTION_WORDS,
    NONE,
    UNREMARKABLE_WORDS,
    Evidence,
    LookUpResult,
    ReplayValue,
    find_similar,
    stem,
    tokenize,
)
from tools.tool import EncodeFunction
from worlds import terms
from worlds.embedded.graph import EmbeddedGraph
from worlds.embedded.text import EmbeddedText
from worlds.source import World
from worlds.text_normalization import normalize_name

NAME, ID, WORD, STEM = "\x00", "\x01", "\x02", "\x03"
"""The places in an ask for the name and the id of its subject, and for the word that is a slot, or its stem."""


@dataclass(frozen=True, slots=True)
class QuestionSlot:
    """A span of the question that an argument or the answer came from."""

    start: int
    end: int
    text: str
    is_relation: bool = False
    """Whether it is a word for what is asked, such as director, and not a name, a date or a number."""
    label: str = ""
    """The relation that the word was looked up as, if another word: spouse for wife."""


@dataclass(frozen=True, slots=True)
class SlotText:
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


def split_arguments(step: Step) -> dict[str, list[ArgumentPart]]:
    """The parts of each argument, by where they come from."""
    return {
        name: [part for part in _split(value, step.origins.get(name, TYPED_ORIGIN)) if part != ""]
        for name, value in step.arguments.items()
    }


def _split(value: Any, origin: Origin) -> Iterator[ArgumentPart]:
    if origin["from"] == "question":
        yield SlotText(origin["start"], origin["end"])
    elif origin["from"] == "step":
        yield StepValue(origin["step"], origin["pointer"], origin.get("start", 0), origin.get("end"))
    elif isinstance(value, list):
        for item, part in zip(value, origin.get("parts", ()), strict=False):
            yield from _split(item, part["origin"])
    elif origin["from"] == "parts":
        end = 0
        for part in origin["parts"]:
            yield value[end : part["start"]]
            yield from _split(value[part["start"] : part["end"]], part["origin"])
            end = part["end"]
        yield value[end:]
    else:
        yield str(value)


@dataclass(frozen=True, slots=True)
class CallValue:
    """An argument from an earlier call of a way; `by_label` takes the item of the list that the ask names."""

    call: int
    pointer: str
    by_label: bool = False


ASK = CallValue(-1, "")
"""The argument is the ask itself."""


@dataclass(frozen=True, slots=True)
class WayCall:
    """One call of a way; an argument is a text with the places NAME and ID, the ask, or a value of an earlier call."""

    tool: str
    arguments: tuple[tuple[str, str | CallValue, bool], ...]
    """Name, content, and whether the argument is a list with this one item."""


@dataclass(frozen=True, slots=True)
class LookUpWay:
    """The calls of a look-up, and the list of its last observation with the values; None if it has sentences."""

    calls: tuple[WayCall, ...]
    path: str | None
    takes_label: bool
    """Whether its ask is a word alone; the ask of another way holds the place of the subject."""


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
    observed: tuple[tuple[ReplayValue, tuple[ReplayValue, ...]], ...]
    """Each subject with its values."""
    contexts: tuple[tuple[str, str], ...] = ()
    """The words before a value in the sentence that it was read in, and the mark or word after it."""


def is_label(ask: str) -> bool:
    """Whether an ask is the label of a relation, without a place for the subject."""
    return NAME not in ask and ID not in ask


def fill_word(text: str, word: str) -> str:
    """Put a word in its place."""
    return text.replace(WORD, word).replace(STEM, stem(word.casefold()))


LookUpRows = Sequence[tuple[ReplayValue, tuple[ReplayValue, ...]]]


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
    identifiers: tuple[tuple[str, str, str], ...] = ()
    problem: str | None = None
    """Why it cannot be followed, as a clause."""

    def filled_ask(self, lookup: LookUp) -> str:
        """The ask of a look-up with the word of its own question."""
        return lookup.ask if lookup.word is None else fill_word(lookup.ask, self.own_fillers[lookup.word])

    def is_relation_at(self, place: int) -> bool:
        """Whether the character of the question is part of a relation word that is a slot."""
        return any(slot.is_relation and slot.start <= place < slot.end for slot in self.slots)

    @property
    def shows_ids(self) -> bool:
        """Whether its answer has the id of an entity after the name."""
        observed = (value for lookup in self.lookups for _, shown in lookup.observed for value in shown)
        return any(value.id and f"({value.id})" in self.answer for value in observed)

    @property
    def own_fillers(self) -> list[str]:
        """The texts of its own slots, with relations by their labels."""
        return [slot.label or slot.text for slot in self.slots]

    @property
    def names(self) -> list[int]:
        """The slots that are names, dates or numbers, in the order of the question."""
        slots = [index for index, slot in enumerate(self.slots) if not slot.is_relation]
        return sorted(slots, key=lambda index: self.slots[index].start)

    def signature(self, fillers: Sequence[str] | None, derivation: str | None = None) -> tuple[Any, ...]:
        """What is asked apart from names, with these texts in the slots; None leaves relation words open."""
        asks = []
        for lookup in self.lookups:
            word = "*" if lookup.word is None or fillers is None else stem(fillers[lookup.word].casefold())
            subject = lookup.subject if lookup.subject < 0 else self.names.index(lookup.subject)
            asks.append((subject, fill_word(lookup.ask, word)))
        derivation = derivation or self.derivation
        return (*asks, ALL if derivation == NONE else derivation)

    def evidence(
        self,
        values: Sequence[LookUpRows],
        fillers: Sequence[str],
        *,
        allows_missing: bool = False,
        shows_ids: bool | None = None,
    ) -> Evidence:
        """What the answer is derived from: the values of the look-ups that no other look-up takes."""
        taken = {-1 - lookup.subject for lookup in self.lookups if lookup.subject < 0}
        results = [
            LookUpResult(self.root(index), tuple(rows)) for index, rows in enumerate(values) if index not in taken
        ]
        given = None if self.given is None else ReplayValue(fillers[self.given])
        return Evidence(
            tuple(results), tuple(fillers), given, self.shows_ids if shows_ids is None else shows_ids, allows_missing
        )

    def root(self, index: int) -> int:
        """The slot that the chain of a look-up begins with."""
        subject = self.lookups[index].subject
        return subject if subject >= 0 else self.root(-1 - subject)


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
PROBED_ARTICLES, MIN_STATED_SHARE = 40, 0.5
"""The articles that are compared with the graph, and the share of its values that they state at least."""
DESCRIBING_SENTENCES = 2
"""The first sentences of an article, which say what kind of thing it is about."""


@dataclass(frozen=True, slots=True)
class MaskedQuestion:
    """A question whose names, dates and numbers are masked."""

    text: str
    mentions: tuple[tuple[int, int], ...]
    """The spans of the names, dates and numbers."""

    @property
    def fillers(self) -> list[str]:
        """The texts of the mentions."""
        return [self.text[start:end] for start, end in self.mentions]

    @property
    def masked(self) -> str:
        """The question with letters in place of the mentions."""
        pieces, end = [], 0
        for index, (start, stop) in enumerate(self.mentions):
            pieces += [self.text[end:start], MASKS[index % len(MASKS)]]
            end = stop
        return "".join([*pieces, self.text[end:]])

    @property
    def words(self) -> list[tuple[str, int, int]]:
        """The stems of the words outside mentions, with their spans; each mention is the word *."""
        starts = {start for start, _ in self.mentions}
        tokens = [
            (stem(word), start, end)
            for word, start, end in tokenize(self.text)
            if not any(begin < end and start < stop for begin, stop in self.mentions)
        ]
        return sorted(
            [*tokens, *(("*", start, end) for start, end in self.mentions if start in starts)], key=lambda t: t[1]
        )


def mask_question(question: str, world: "WorldWords", vocabulary: frozenset[str]) -> MaskedQuestion:
    """Find the mentions: dates, numbers, quotations and the longest names that the world knows, whatever their case.

    A single word of the vocabulary, which demonstrations use in their questions, is no name.
    """
    spans = [match.span() for match in DATE_PATTERN.finditer(question)]
    tokens = tokenize(question)
    has_names = any(question[start].isupper() for _, start, _ in tokens[1:])
    place = 0
    while place < len(tokens):
        if any(start <= tokens[place][1] < end for start, end in spans):
            place += 1
            continue
        last = _find_name(question, tokens[place:], world, vocabulary, has_names=has_names)
        if last:
            spans.append((tokens[place][1], _close_bracket(question, tokens[place][1], tokens[place + last - 1][2])))
        elif tokens[place][0].isdecimal():
            spans.append(tokens[place][1:])
        place += last or 1
    return MaskedQuestion(question, tuple(sorted(spans)))


def _find_name(
    question: str, tokens: Words, world: "WorldWords", vocabulary: frozenset[str], *, has_names: bool
) -> int:
    first = tokens[0]
    is_capital = question[first[1]].isupper() or first[0].isdecimal()
    if world.is_searchable:
        longest = MAX_NAME_WORDS if is_capital or not has_names else 3
        for count in range(min(longest, len(tokens)), 0, -1):
            word = tokens[count - 1]
            text = question[first[1] : _close_bracket(question, first[1], word[2])]
            if count == 1 and (stem(first[0]) in vocabulary or first[0] in UNREMARKABLE_WORDS):
                return 0
            if count == 1 and not is_capital and len(tokens) > 1 and tokens[1][0] not in FUNCTION_WORDS:
                # It belongs to the noun after it: male cousins.
                return 0
            if word[0] == "s" and question[word[1] - 1] in "'’":
                continue
            if world.knows(text):
                return count
    # A name that the world does not know, or cannot be asked for without a step.
    if not is_capital or first[0].isdecimal() or (first is tokens[0] and first[1] == 0):
        return 0
    count = 0
    for index, (_, start, _) in enumerate(tokens):
        if not question[start].isupper() and not question[start].isdecimal():
            break
        count = index + 1
    return count


def _close_bracket(question: str, start: int, end: int) -> int:
    text = question[start:end]
    return end + 1 if text.count("(") > text.count(")") and question[end : end + 1] == ")" else end


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

    def find_relation(self, phrase: str) -> str | None:
        """The label of the relation with this name, or with one that clearly resembles it; None if there is none."""
        exact = self._labels.get(normalize_name(phrase))
        labels = sorted(set(self._labels.values()))
        if exact is not None or len(labels) > MAX_COMPARED_LABELS or not phrase.islower():
            return exact
        place = find_similar(phrase, labels, self._encode)
        return None if place is None else labels[place]

    def spreads_facts(self) -> bool:
        """Whether articles lack facts that the graph has: then lists of one source may be incomplete."""
        if self._text is None or self._graph is None:
            return False
        stated = total = 0
        for article in self._text.list_articles(PROBED_ARTICLES):
            if article.entity is None:
                continue
            rows = self._graph.query(
                f"SELECT DISTINCT ?value WHERE {{ {terms.format_node(article.entity)} ?relation ?value }}"
            ).rows
            ids = [cell.value for (cell,) in rows if cell is not None and cell.kind == "entity"]
            labels = [entity.label for entity in self._graph.entities(ids)]
            total += len(labels)
            stated += sum(label.casefold() in article.text.casefold() for label in labels)
        return stated < MIN_STATED_SHARE * total

    def describes(self, name: str, word: str) -> bool:
        """Whether the first sentences of the article about a name have this word: they say what kind of thing it is."""
        if self._text is None or not self._text.has_title(name):
            return False
        sentences = self._text.article(name).sentences[:DESCRIBING_SENTENCES]
        return any(stem(token) == word for sentence in sentences for token, _, _ in tokenize(sentence))
