"""What replay takes from a demonstration: its slots, its look-ups with the origins of their arguments, and its answer.

A look-up asks one thing ("director", "When was ... born?", a query) of a subject, and observes values. Its subject is a
slot of the question or the values of an earlier look-up; its ask may hold a word of the question, which then is a slot
as well. A way is the calls by which a look-up was made; another look-up with such an ask can be made in the same way.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from db.models import Step
from db.trace_record import TraceRecord
from reasoners.provenance import DATE_PATTERN, TYPED_ORIGIN, Origin
from reasoners.replay.derivations import (
    ALL,
    COMPARISONS_OF_VALUES,
    NONE,
    SEPARATOR,
    Evidence,
    LookUpResult,
    recognize_derivation,
)
from reasoners.replay.values import UNREMARKABLE_WORDS, ReplayValue, find_similar, list_values, stem, tokenize
from tools.tool import EncodeFunction
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


@dataclass(frozen=True, slots=True)
class CompiledTrace:
    """The slots and look-ups of a demonstration, in the order of the question and of its steps."""

    slots: tuple[QuestionSlot, ...]
    lookups: tuple[LookUp, ...]
    readings: Mapping[str, str]
    """How a tool said that it understood an ask."""
    identifiers: tuple[tuple[str, str, str], ...]
    """Calls that give the id of a name: tool, argument, pointer."""


class CannotFollow(Exception):
    """The demonstration can be repeated, but not followed on other questions; the message is a clause that says why."""


@dataclass(eq=False, slots=True)
class _Group:
    """A look-up while it is compiled."""

    root: "SlotText | _Group"
    ask: str
    ways: list[LookUpWay] = field(default_factory=list)
    observed: dict[str, tuple[ReplayValue, list[ReplayValue]]] = field(default_factory=dict)


class TraceCompiler:
    """Compiles the steps of one trace."""

    def __init__(self, record: TraceRecord) -> None:
        self._question, self._answer = record.question.text, record.trace.final_answer or ""
        self._steps = {step.position: step for step in record.steps if step.tool and step.data is not None}
        self._parts = {step.position: _split_arguments(step) for step in self._steps.values()}
        self._split_sentences()
        self._groups: dict[tuple[Any, str], _Group] = {}
        self._group_of_step: dict[int, _Group] = {}
        self._readings: dict[str, str] = {}
        self._identifiers: dict[tuple[str, str, str], None] = {}

    def compile(self) -> CompiledTrace:
        """Return the slots and look-ups; CannotFollow for the first step that is not understood."""
        instruments = {part.step for part in self._iterate_uses() if part.is_instrument}
        for position in self._steps:
            if position not in instruments and not self._is_search_by_name(position):
                self._add_look_up(position)
        groups = list(self._groups.values())
        if not groups:
            raise CannotFollow("it has no look-up")
        self._add_answers()
        slots = {group.root: None for group in groups if isinstance(group.root, SlotText)}
        words = {group.ask: self._find_word(group.ask, slots) for group in groups}
        spans = sorted({(s.start, s.end, False) for s in slots} | {(*w, True) for w in words.values() if w})
        starts = [start for start, _, _ in spans]
        lookups = []
        for group in groups:
            root = group.root
            subject = starts.index(root.start) if isinstance(root, SlotText) else -1 - groups.index(root)
            word = words[group.ask]
            ask = _replace_word(group.ask, self._question[slice(*word)]) if word else group.ask
            observed = tuple((name, tuple(values)) for name, values in group.observed.values())
            lookups.append(LookUp(subject, ask, starts.index(word[0]) if word else None, tuple(group.ways), observed))
            if word and group.ask in self._readings:
                self._readings[ask] = _replace_word(self._readings[group.ask], self._question[slice(*word)])
        question_slots = tuple(QuestionSlot(start, end, self._question[start:end], r) for start, end, r in spans)
        return CompiledTrace(question_slots, tuple(lookups), self._readings, tuple(self._identifiers))

    def _split_sentences(self) -> None:
        """Split the spans of the question that hold a shorter one: an ask may repeat the question as a whole."""
        for arguments in self._parts.values():
            for name, parts in arguments.items():
                # A word of the question beside another argument says what is asked: the director of X.
                if len(arguments) > 1 and len(parts) == 1 and isinstance(parts[0], SlotText):
                    text = self._question[parts[0].start : parts[0].end]
                    arguments[name] = [text] if text.islower() else parts
                # So does the label of a relation.
                if len(parts) == 1 and isinstance(parts[0], StepValue) and parts[0].pointer.endswith("/label"):
                    arguments[name] = [self._text_of(parts[0])] if parts[0].is_instrument else parts
        parts = [part for arguments in self._parts.values() for parts in arguments.values() for part in parts]
        spans = {
            (part.start, part.end)
            for part in parts
            if isinstance(part, SlotText) and not _is_unremarkable(self._question[part.start : part.end])
        }
        inner = [s for s in spans if not any(o != s and s[0] <= o[0] and o[1] <= s[1] for o in spans)]
        for arguments in self._parts.values():
            for name, parts in arguments.items():
                arguments[name] = [piece for part in parts for piece in _split_span(part, inner, self._question)]

    def _add_answers(self) -> None:
        """Add the results of searches that the answer names to the values of a look-up of the same subject."""
        for position in filter(self._is_search_by_name, self._steps):
            for group in self._groups.values():
                if (roots := list(self._iterate_roots(position))) and group.root == roots[0][0]:
                    values = next(iter(group.observed.values()))[1]
                    hits = [str(hit.get("title")) for hit in (self._steps[position].data or {}).get("hits", ())]
                    known = {value.text for value in values} | {name.text for name, _ in group.observed.values()}
                    values += [ReplayValue(t) for t in hits if t in self._answer.split(SEPARATOR) and t not in known]

    def _iterate_uses(self) -> Iterator[StepValue]:
        for arguments in self._parts.values():
            yield from (part for parts in arguments.values() for part in parts if isinstance(part, StepValue))

    def _is_search_by_name(self, position: int) -> bool:
        """Whether the step only has a name as its argument: it gives the id or the article of this name."""
        parts = [part for parts in self._parts[position].values() for part in parts]
        return len(parts) == 1 and not isinstance(parts[0], str) and not _is_instrument(parts[0])

    def _add_look_up(self, position: int) -> None:
        chain = self._collect_chain(position)
        found = [pair for step in chain for pair in self._iterate_roots(step)]
        roots = {(root, normalize_name(subject.text)): (root, subject) for root, subject in found}
        if len(roots) != 1:
            raise CannotFollow(f"step {position} has {len(roots) or 'no'} subjects")
        root, subject = next(iter(roots.values()))
        ask, way = self._build_way(chain)
        group = self._groups.setdefault((root, ask), _Group(root, ask))
        if way not in group.ways:
            group.ways.append(way)
        values = group.observed.setdefault(subject.key, (subject, []))[1]
        known = {value.key for value in values}
        values += [value for value in self._observed_values(position, way.path) if value.key not in known]
        self._group_of_step[position] = group

    def _collect_chain(self, position: int) -> list[int]:
        """The steps of a look-up in order: those that gave its query, address or relation, and the step itself."""
        chain = [position]
        for parts in self._parts[position].values():
            for part in parts:
                if isinstance(part, StepValue) and part.is_instrument:
                    chain += [step for step in self._collect_chain(part.step) if step not in chain]
        return sorted(chain)

    def _iterate_roots(self, position: int) -> Iterator[tuple[SlotText | _Group, ReplayValue]]:
        """Yield the slots and the look-ups that the step's arguments come from, each with the subject's value."""
        for name, parts in self._parts[position].items():
            for part in parts:
                if isinstance(part, SlotText):
                    yield part, ReplayValue(self._question[part.start : part.end])
                elif isinstance(part, StepValue) and not part.is_instrument:
                    if self._is_search_by_name(part.step):
                        yield from self._iterate_identified(part)
                    else:
                        yield self._find_root(part, position, name)

    def _iterate_identified(self, part: StepValue) -> Iterator[tuple[SlotText | _Group, ReplayValue]]:
        step = self._steps[part.step]
        ((argument, name),) = step.arguments.items()
        if part.is_id and not any(_is_id(own) for own in self._parts[part.step][argument]):
            self._identifiers[str(step.tool), argument, part.pointer] = None
        roots = list(self._iterate_roots(part.step))
        if part.is_id or normalize_name(_resolve(step.data, part.pointer)) == normalize_name(str(name)):
            yield from roots
            return
        # A result of a search is a value of a look-up of the same subject, if there is one.
        group = next((group for group in self._groups.values() if group.root == roots[0][0]), None)
        if group is None:
            raise CannotFollow(f"step {part.step} searches with a name, and only a reader can tell which results count")
        values, value = next(iter(group.observed.values()))[1], self._value_at(part)
        values += [value] if value.key not in {known.key for known in values} else []
        yield group, value

    def _find_root(self, part: StepValue, position: int, argument: str) -> tuple[SlotText | _Group, ReplayValue]:
        value, group = self._value_at(part), self._group_of_step.get(part.step)
        if group is None:
            raise CannotFollow(f"the {argument} of step {position} comes from step {part.step}, which is no look-up")
        # An observation may repeat the name of its subject.
        subject = next((own for own, _ in group.observed.values() if own.key == value.key), None)
        return (group.root, subject) if subject is not None else (group, value)

    def _text_of(self, part: StepValue) -> str:
        return _resolve(self._steps[part.step].data, part.pointer)

    def _value_at(self, part: StepValue) -> ReplayValue:
        data = self._steps[part.step].data
        if part.end is None:
            items = [value for values in list_values(data).values() for value in values]
            text = _resolve(data, part.pointer)
            return next((value for value in items if text in (value.id, value.text)), ReplayValue(text))
        return ReplayValue(_resolve(data, part.pointer)[part.start : part.end])

    def _observed_values(self, position: int, path: str | None) -> list[ReplayValue]:
        """The values of the observation; of sentences those that later steps or the answer take, or the only date."""
        data = self._steps[position].data or {}
        if path is not None:
            return list_values(data)[path]
        roots = [root for step in self._collect_chain(position) for root in self._iterate_roots(step)]
        subjects = {normalize_name(subject.text) for _, subject in roots}
        uses = [self._value_at(use) for use in self._iterate_uses() if use.step == position]
        taken = {value.key: value for value in uses if normalize_name(value.text) not in subjects}
        best = max(data.get("best", ()), key=lambda sentence: float(sentence["score"]), default=None)
        if taken or best is None:
            return list(taken.values())
        answers = [a for a in self._answer.split(SEPARATOR) if len(a) > 1 and a in best["text"]]
        dates = [match.group() for match in DATE_PATTERN.finditer(best["text"])]
        if answers and not subjects & set(map(normalize_name, answers)):
            return [ReplayValue(answer) for answer in answers]
        if len(dates) == 1:
            return [ReplayValue(dates[0])]
        names = [name for name in _FULL_NAME.findall(best["text"]) if normalize_name(name) not in subjects]
        named = self._named_in_question(position, best["text"], subjects)
        return named or [ReplayValue(name) for name in names]

    def _named_in_question(self, position: int, sentence: str, subjects: set[str]) -> list[ReplayValue]:
        """The words at the end of a sentence that the question has too, but the ask has not: a value that it names."""
        shared = [word for word, _, _ in tokenize(sentence)]
        asked = {w for value in self._steps[position].arguments.values() for w, _, _ in tokenize(str(value))}
        for phrase in _iterate_runs(self._question):
            words = [word for word, _, _ in tokenize(phrase)]
            is_name = any(normalize_name(phrase) in subject for subject in subjects)
            if shared[-len(words) :] == words and not is_name and not asked.intersection(words):
                return [ReplayValue(phrase)]
        return []

    def _build_way(self, chain: Sequence[int]) -> tuple[str, LookUpWay]:
        """The ask of a look-up and its way."""
        asks: list[str] = []
        calls = []
        for position in chain:
            arguments = []
            for name, parts in self._parts[position].items():
                instrument = next((part for part in parts if isinstance(part, StepValue) and part.is_instrument), None)
                content: str | CallValue = "".join(map(_to_place, parts))
                if instrument is not None:
                    content = CallValue(chain.index(instrument.step), instrument.pointer)
                    item = _resolve_item(self._steps[instrument.step].data, instrument.pointer)
                    if instrument.pointer.startswith("/relations/"):
                        content = CallValue(content.call, "/relations", by_label=True)
                        asks.append(str(item["label"]))
                    elif "reading" in item and asks:
                        self._readings[asks[-1]] = self._mask_subject(str(item["reading"]), chain)
                elif re.search(r"[^\W\d_]", str(content)):
                    asks.append(str(content))
                    content = ASK
                arguments.append((name, content, isinstance(self._steps[position].arguments[name], list)))
            calls.append(WayCall(str(self._steps[position].tool), tuple(arguments)))
        if not asks:
            raise CannotFollow(f"step {chain[-1]} does not say what it asks for")
        paths = list_values(self._steps[chain[-1]].data)
        path = next((path for path in paths if path not in {"/best", "/candidates"}), None)
        return asks[-1], LookUpWay(tuple(calls), path, takes_label=is_label(asks[-1]))

    def _mask_subject(self, reading: str, chain: Sequence[int]) -> str:
        for step in chain:
            for _, subject in self._iterate_roots(step):
                reading = reading.replace(subject.text, NAME)
        return reading

    def _find_word(self, ask: str, slots: Iterable[SlotText]) -> tuple[int, int] | None:
        """The span of the question with the longest run of content words that also stands in the ask."""
        if ID in ask:
            return None
        words = [stem(word) for word, _, _ in tokenize(ask)]
        tokens = [
            token
            for token in tokenize(self._question)
            if not any(slot.start < token[2] and token[1] < slot.end for slot in slots)
        ]
        longest: tuple[int, int, int] | None = None
        for first in range(len(tokens)):
            for last in range(first, len(tokens)):
                run = [stem(word) for word, _, _ in tokens[first : last + 1]]
                is_inside = any(words[start : start + len(run)] == run for start in range(len(words)))
                is_inside &= NAME in ask or run == words
                if is_inside and not {run[0], run[-1]} & UNREMARKABLE_WORDS and (not longest or len(run) > longest[0]):
                    longest = len(run), tokens[first][1], tokens[last][2]
        return longest and longest[1:]


def _replace_word(text: str, word: str) -> str:
    """Put the place of a word in place of the word or its stem."""
    for form, place in ((word, WORD), (stem(word.casefold()), STEM)):
        replaced, count = re.subn(rf"(?<!\w){re.escape(form)}(?!\w)", place, text, count=1, flags=re.IGNORECASE)
        if count:
            return replaced
    return text


def is_label(ask: str) -> bool:
    """Whether an ask is the label of a relation, without a place for the subject."""
    return NAME not in ask and ID not in ask


def fill_word(text: str, word: str) -> str:
    """Put a word in its place."""
    return text.replace(WORD, word).replace(STEM, stem(word.casefold()))


def _iterate_runs(text: str) -> Iterator[str]:
    """Yield the runs of up to four words that neither begin nor end with a function word, the longest first."""
    tokens = tokenize(text)
    for count in range(4, 0, -1):
        for first in range(len(tokens) - count + 1):
            run = tokens[first : first + count]
            if not {run[0][0], run[-1][0]} & UNREMARKABLE_WORDS:
                yield text[run[0][1] : run[-1][2]]


def _is_unremarkable(text: str) -> bool:
    return all(word in UNREMARKABLE_WORDS for word, _, _ in tokenize(text))


def _split_span(part: ArgumentPart, spans: Sequence[tuple[int, int]], question: str) -> Iterator[ArgumentPart]:
    end = part.start if isinstance(part, SlotText) else 0
    if not isinstance(part, SlotText) or (part.start, part.end) in spans:
        yield part
        return
    for start, stop in sorted(span for span in spans if part.start <= span[0] and span[1] <= part.end):
        yield from filter(None, [question[end:start]])
        yield SlotText(start, stop)
        end = stop
    yield from filter(None, [question[end : part.end]])


def _is_instrument(part: ArgumentPart) -> bool:
    return isinstance(part, StepValue) and part.is_instrument


def _is_id(part: ArgumentPart) -> bool:
    return isinstance(part, StepValue) and part.is_id


def _to_place(part: ArgumentPart) -> str:
    return part if isinstance(part, str) else ID if _is_id(part) else NAME


def _resolve_item(data: Any, pointer: str) -> Any:
    """The object that holds the value at the pointer."""
    for key in pointer.split("/")[1:-1]:
        data = data[int(key)] if isinstance(data, list) else data[key]
    return data


def _resolve(data: Any, pointer: str) -> str:
    return str(_resolve_item(data, pointer + "/"))


def _split_arguments(step: Step) -> dict[str, list[ArgumentPart]]:
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


LookUpRows = Sequence[tuple[ReplayValue, tuple[ReplayValue, ...]]]
_FULL_NAME = re.compile(r"[^\W\d_a-z][\w'-]+(?: [^\W\d_a-z][\w'-]+)+")
_NUMBER = re.compile(r"(?<![\w-])\d+(?![\w-])")


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


def build_program(record: TraceRecord, encode: EncodeFunction) -> Program:
    """Compile a demonstration; a problem says why it cannot be followed on other questions."""
    question, answer = record.question.text, record.trace.final_answer or ""
    program = Program(record.trace.id, question, tuple(record.steps), answer)
    compiler = TraceCompiler(record)
    try:
        compiled = compiler.compile()
    except CannotFollow as problem:
        return replace(program, problem=str(problem))
    program = replace(
        program, **{name: getattr(compiled, name) for name in ("slots", "lookups", "readings", "identifiers")}
    )
    program = _find_similar_words(program, encode)
    rows = [lookup.observed for lookup in program.lookups]
    for given in [*_find_given(program, rows), None]:
        slots = (*program.slots, given) if given else program.slots
        candidate = replace(program, slots=slots, given=len(program.slots) if given else None)
        evidence = candidate.evidence(rows, [slot.text for slot in slots])
        derivation = recognize_derivation(evidence, answer)
        is_read = any(way.path is None for lookup in program.lookups for way in lookup.ways)
        if derivation and not (is_read and derivation in COMPARISONS_OF_VALUES):
            return replace(candidate, derivation=derivation)
        if given:
            program = replace(program, problem="its answer does not follow from its observations in a known way")
    return replace(program, problem="its answer does not follow from its observations in a known way")


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


def _find_similar_words(program: Program, encode: EncodeFunction) -> Program:
    """Make a slot of a word that resembles the relation that was looked up, as wife resembles spouse."""
    slots, lookups = list(program.slots), list(program.lookups)
    for lookup in program.lookups:
        if lookup.word is not None or not lookup.ways[0].takes_label:
            continue
        free = [
            token
            for token in tokenize(program.question)
            if token[0] not in UNREMARKABLE_WORDS and not any(s.start <= token[1] < s.end for s in slots)
        ]
        place = find_similar(lookup.ask, [word for word, _, _ in free], encode)
        if place is not None:
            _, start, end = free[place]
            lookups = [replace(o, word=len(slots), ask=WORD) if o.ask == lookup.ask else o for o in lookups]
            slots.append(QuestionSlot(start, end, program.question[start:end], is_relation=True, label=lookup.ask))
    return replace(program, slots=tuple(slots), lookups=tuple(lookups))


def _find_given(program: Program, rows: Sequence[LookUpRows]) -> list[QuestionSlot]:
    """The dates and numbers outside slots, and the observed values that the question names."""
    texts = [value.text for row in rows for _, values in row for value in values]
    patterns = [DATE_PATTERN, _NUMBER, *(re.compile(rf"(?<!\w){re.escape(text)}(?!\w)") for text in texts if text)]
    spans = [match.span() for pattern in patterns for match in pattern.finditer(program.question)]
    return [
        QuestionSlot(start, end, program.question[start:end])
        for start, end in dict.fromkeys(spans)
        if not any(slot.start < end and start < slot.end for slot in program.slots)
    ]
