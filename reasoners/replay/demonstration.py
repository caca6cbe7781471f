"""A demonstration as it can be followed: look-ups with the origins of their arguments, slots, and a derivation.

A look-up asks one thing ("director", "When was ... born?", a query) of a subject, and observes values. Its subject is a
slot of the question or the values of an earlier look-up; its ask may hold a word of the question, which then is a slot
as well. A way is the calls by which a look-up was made; another look-up with such an ask can be made in the same way.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from uuid import UUID

from db.models import Step
from db.trace_record import TraceRecord
from reasoners.provenance import DATE_PATTERN, TYPED_ORIGIN, ArgumentPart, Origin, resolve_origin, split_argument
from reasoners.replay.derivations import (
    FUNCTION_WORDS,
    SEPARATOR,
    SHARED,
    Evidence,
    LookUpRows,
    ReplayValue,
    has_content,
    iterate_runs,
    list_names,
    list_stems,
    list_values,
    read_context,
    recognize_derivation,
    stem,
    unique_values,
)
from worlds.text_normalization import normalize_name

NAME, ID, WORD, ASK = "\x00", "\x01", "\x02", "\x03"
"""The places for the name and the id of a subject, for the word that is a slot, and for a whole ask."""


class CannotFollow(Exception):
    """The demonstration can be repeated, but not followed on other questions; the message is a clause that says why."""


class QuestionSlot(NamedTuple):
    """A span of the question that an argument or the answer came from."""

    start: int
    end: int
    text: str
    is_relation: bool = False
    """Whether it is a word for what is asked, such as director, and not a name, a date or a number."""


class CallValue(NamedTuple):
    """An argument from an earlier call of a way; * in the pointer stands for the relation that the ask names."""

    call: int
    pointer: str


class WayCall(NamedTuple):
    """One call of a way; an argument is a text with the places NAME, ID and ASK, or a value of an earlier call."""

    tool: str
    arguments: tuple[tuple[str, str | CallValue, bool], ...]
    """Name, content, and whether the argument is a list with this one item."""
    empty: tuple[str, ...]
    """The lists that were empty, and have to be so again if a later call takes a value."""


class LookUpWay(NamedTuple):
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
    form: str
    """The word in the form of the ask."""
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
        """The ask with these texts in the slots: a label as it is, and any other word in the singular."""
        text = "" if self.word is None else texts[self.word]
        if stem(text.casefold()) == stem(self.form.casefold()):
            text = self.form
        if self.is_label or " " in text.strip():
            last = text.rpartition(" ")[2].casefold()
            # A phrase may bring its own words before the name: the people whose hobby is ...
            joint = self.ask.partition(WORD)[2].partition(NAME)[0] if last in FUNCTION_WORDS else ""
            return self.ask.replace(WORD + joint, text + " " * bool(joint))
        return self.ask.replace(WORD, stem(text.casefold()))


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

    def signature(self, texts: Sequence[str]) -> tuple[Any, ...]:
        """What is asked apart from names, with these texts in the slots."""
        subjects = [o.subject if o.subject < 0 else self.names.index(o.subject) for o in self.lookups]
        asks = [lookup.fill(texts).casefold() for lookup in self.lookups]
        return (*zip(subjects, asks, strict=True), self.derivation)

    def evidence(self, rows: Sequence[LookUpRows], texts: Sequence[str], **options: bool) -> Evidence:
        """What the answer is derived from: the values of the look-ups that no other look-up takes."""
        taken = {-1 - lookup.subject for lookup in self.lookups}
        results = tuple((texts[self._root(i)], own) for i, own in enumerate(rows) if i not in taken)
        return Evidence(results, None if self.given is None else ReplayValue(texts[self.given]), **options)

    def _root(self, index: int) -> int:
        """The slot that the chain of a look-up begins with."""
        subject = self.lookups[index].subject
        return subject if subject >= 0 else self._root(-1 - subject)


def _is_instrument(origin: Origin) -> bool:
    """Whether it carries the same look-up on: a query, the address of a page, a relation."""
    pointer: str = origin.get("pointer", "")
    return pointer.endswith(("/sparql", "/address")) or pointer.startswith("/relations/")


def _is_id(origin: Origin) -> bool:
    return str(origin.get("pointer", "")).endswith(("/id", "/entity", "/value"))


@dataclass(eq=False)
class _Group:
    """A look-up while it is compiled; its root is the span of a slot or an earlier look-up."""

    root: "tuple[int, int] | _Group"
    ask: str
    ways: dict[LookUpWay, None] = field(default_factory=dict)
    observed: dict[str, tuple[ReplayValue, list[ReplayValue]]] = field(default_factory=dict)
    contexts: dict[tuple[str, str], None] = field(default_factory=dict)

    def add(self, subject: ReplayValue, values: Sequence[ReplayValue]) -> None:
        """Add observed values of a subject."""
        own = self.observed.setdefault(subject.key, (subject, []))[1]
        own[:] = unique_values([*own, *values])


class _TraceStep(NamedTuple):
    """What a step asks of whom, the step and those that its query, address or relation come from, and its look-up."""

    root: tuple[int, int] | _Group
    subject: ReplayValue
    ask: str
    chain: list[int]
    group: _Group | None


class TraceCompiler:
    """Compiles the steps of one trace."""

    def __init__(self, record: TraceRecord) -> None:
        self._question, self._answer = record.question.full_text, record.trace.final_answer or ""
        self.program = Program(record.trace.id, self._question, tuple(record.steps), self._answer)
        self._steps = {step.position: step for step in record.steps if step.tool and step.data is not None}
        self._data = {position: step.data for position, step in self._steps.items()}
        self._parts = {
            position: {n: list(split_argument(v, step.origins.get(n, TYPED_ORIGIN))) for n, v in step.arguments.items()}
            for position, step in self._steps.items()
        }
        self._locate_names()
        self._uses = [part for own in self._parts.values() for parts in own.values() for part in parts]
        self._read: dict[int, _TraceStep] = {}
        self._groups: dict[Any, _Group] = {}
        self._identifiers: dict[tuple[str, str], None] = {}

    def _locate_names(self) -> None:
        """Split the spans of the question that hold a shorter one: an ask may repeat the question as a whole."""
        for arguments in self._parts.values():
            for name, parts in arguments.items():
                # A word of the question beside another argument says what is asked.
                if len(arguments) > 1 and len(parts) == 1 and parts[0][0].islower():
                    arguments[name] = [(parts[0][0], TYPED_ORIGIN)] if "pointer" not in parts[0][1] else parts
        own = [part for arguments in self._parts.values() for parts in arguments.values() for part in parts]
        spans = {(o["start"], o["end"]) for text, o in own if o["from"] == "question" and has_content(text)}
        inner = sorted(s for s in spans if not any(o != s and s[0] <= o[0] and o[1] <= s[1] for o in spans))
        for arguments in self._parts.values():
            for name, parts in arguments.items():
                arguments[name] = [piece for part in parts for piece in self._split_span(part, inner)]

    def _split_span(self, part: ArgumentPart, spans: Sequence[tuple[int, int]]) -> Iterator[ArgumentPart]:
        origin = part[1]
        if origin["from"] != "question":
            yield part
            return
        end = origin["start"]
        for span in (span for span in spans if origin["start"] <= span[0] and span[1] <= origin["end"]):
            if self._question[end : span[0]]:
                yield self._question[end : span[0]], TYPED_ORIGIN
            yield self._question[slice(*span)], {"from": "question", "start": span[0], "end": span[1]}
            end = span[1]
        if self._question[end : origin["end"]]:
            yield self._question[end : origin["end"]], TYPED_ORIGIN

    def compile(self) -> Program:
        """Return the program without its derivation; CannotFollow for the first step that is not understood."""
        instruments = {origin["step"] for _, origin in self._uses if _is_instrument(origin)}
        for position in self._steps:
            step = self._read[position] = self._read_step(position)
            if step.ask and position not in instruments and self._has_values(position):
                self._read[position] = self._add_look_up(position, step)
        groups = [group for group in self._groups.values() if group.ask or group.observed]
        if not groups:
            raise CannotFollow("it has no look-up")
        roots = {group.root for group in groups if not isinstance(group.root, _Group)}
        words = [self._find_word(group.ask, roots) for group in groups]
        spans = sorted({(*root, False) for root in roots} | {(*word[:2], True) for word in words if word})
        starts = [start for start, _, _ in spans]
        lookups = []
        for group, word in zip(groups, words, strict=True):
            subject = -1 - groups.index(group.root) if isinstance(group.root, _Group) else starts.index(group.root[0])
            observed = tuple((name, tuple(values)) for name, values in group.observed.values())
            index, ask, form = (starts.index(word[0]), *word[2:]) if word else (None, group.ask, "")
            lookups.append(LookUp(subject, ask, index, form, tuple(group.ways), observed, tuple(group.contexts)))
        slots = tuple(QuestionSlot(start, end, self._question[start:end], r) for start, end, r in spans)
        return replace(self.program, slots=slots, lookups=tuple(lookups), identifiers=tuple(self._identifiers))

    def _has_values(self, position: int) -> bool:
        """Whether an observation may hold values; a query that was written, but not run, holds none."""
        data = self._data[position] or {}
        return "sentences" in data or all(own or not data[path[1:]] for path, own in list_values(data).items())

    def _read_step(self, position: int) -> _TraceStep:
        """What a step asks of whom: constants are its ask, and names and values its subject."""
        subjects, chain, asks = {}, {position}, [""]
        for name, parts in self._parts[position].items():
            for _, origin in (part for part in parts if part[1]["from"] != "typed"):
                if _is_instrument(origin):
                    earlier = self._read[origin["step"]]
                    chain.update(earlier.chain)
                    root, subject = earlier.root, earlier.subject
                    asks.append(earlier.ask or self._label(origin))
                else:
                    root, subject = self._find_subject(origin, f"the {name} of step {position}")
                subjects[root, normalize_name(subject.text)] = root, subject
            text = self._mask(parts)
            if re.search(r"[^\W\d_]", text):
                asks.append(text)
        if len(subjects) != 1:
            raise CannotFollow(f"step {position} has {len(subjects) or 'no'} subjects")
        return _TraceStep(*next(iter(subjects.values())), asks[-1], sorted(chain), None)

    def _label(self, origin: Origin) -> str:
        """The label of the relation that an argument comes from; none for queries and addresses."""
        item = origin["pointer"].rpartition("/")[0]
        if not item.startswith("/relations/"):
            return ""
        return resolve_origin({"from": "step", "step": origin["step"], "pointer": f"{item}/label"}, "", self._data)

    @staticmethod
    def _mask(parts: Sequence[ArgumentPart]) -> str:
        """An argument with the places of its subject."""
        return "".join(
            text if origin["from"] == "typed" else "" if _is_instrument(origin) else ID if _is_id(origin) else NAME
            for text, origin in parts
        )

    def _find_subject(self, origin: Origin, argument: str) -> tuple[Any, ReplayValue]:
        """The slot or the look-up that a part of an argument comes from, with its value."""
        if origin["from"] == "question":
            return (origin["start"], origin["end"]), ReplayValue(self._question[origin["start"] : origin["end"]])
        if origin["step"] not in self._read:
            raise CannotFollow(f"{argument} comes from step {origin['step']}, which is no look-up")
        step, value = self._read[origin["step"]], self._value_at(origin)
        if step.group is not None:
            # An observation may repeat the name of its subject.
            subject = next((own for own, _ in step.group.observed.values() if own.key == value.key), None)
            return (step.group.root, subject) if subject is not None else (step.group, value)
        if _is_id(origin):
            arguments = self._parts[origin["step"]]
            if not any(_is_id(part[1]) for parts in arguments.values() for part in parts):
                self._identifiers[str(self._steps[origin["step"]].tool), next(iter(arguments))] = None
        if _is_id(origin) or normalize_name(value.text) in normalize_name(step.subject.text):
            return step.root, step.subject
        # A result of a search is a value of a look-up of the same subject, if there is one.
        group = next((group for group in self._groups.values() if group.root == step.root), None)
        if group is None:
            raise CannotFollow(f"{argument} is a result of a search, and only a reader can tell which results count")
        group.add(step.subject, [value])
        return group, value

    def _value_at(self, origin: Origin) -> ReplayValue:
        text = resolve_origin(origin, self._question, self._data)
        items = [value for values in list_values(self._data[origin["step"]]).values() for value in values]
        return next((value for value in items if text in (value.id, value.text)), ReplayValue(text))

    def _add_look_up(self, position: int, step: _TraceStep) -> _TraceStep:
        data = self._data[position] or {}
        group = self._groups.setdefault((step.root, step.ask), _Group(step.root, step.ask))
        path = None if "sentences" in data else next(iter(list_values(data)), None)
        group.ways[LookUpWay(tuple(self._build_call(own, step.chain) for own in step.chain), path)] = None
        values = list_values(data)[path] if path else self._read_sentences(position, step)
        group.add(step.subject, values)
        for value, sentence in ((v, s) for v in values for s in data.get("sentences", ())):
            if match := re.search(rf"(?<!\w){re.escape(value.text)}(?!\w)", sentence):
                before, after = read_context(sentence, *match.span(), step.subject.text)
                # Only words with a meaning of their own, or a mark, tell what a value is.
                if after or has_content(before.replace(NAME, "")):
                    group.contexts[before, after] = None
        return step._replace(group=group)

    def _build_call(self, position: int, chain: Sequence[int]) -> WayCall:
        step, arguments = self._steps[position], []
        for name, parts in self._parts[position].items():
            content: str | CallValue = self._mask(parts)
            instrument = next((origin for _, origin in parts if _is_instrument(origin)), None)
            if instrument is not None:
                pointer = re.sub(r"^/relations/\d+/", "/relations/*/", instrument["pointer"])
                content = CallValue(chain.index(instrument["step"]), pointer)
            elif re.search(r"[^\W\d_]", str(content)):
                content = ASK
            arguments.append((name, content, isinstance(step.arguments[name], list)))
        empty = tuple(name for name, items in (step.data or {}).items() if items == [])
        return WayCall(str(step.tool), tuple(arguments), empty)

    def _read_sentences(self, position: int, step: _TraceStep) -> list[ReplayValue]:
        """The values in sentences: those that later steps take, or the answer or the question names; else all names."""
        data, name = self._data[position] or {}, normalize_name(step.subject.text)
        uses = [self._value_at(o) for _, o in self._uses if o.get("step") == position]
        uses = [value for value in uses if normalize_name(value.text) != name]
        sentences = [best["text"] for best in sorted(data.get("best", ()), key=lambda best: -float(best["score"]))]
        if uses or not sentences:
            return uses
        stated = [part for part in self._answer.split(SEPARATOR) if len(part) > 1 and normalize_name(part) != name]
        asked = set(list_stems(step.ask))
        for text in sentences:
            if names := [part for part in stated if part in text]:
                return list(map(ReplayValue, names))
        for phrase in iterate_runs(self._question):
            # A sentence that tells one thing ends with it.
            stems = list_stems(phrase)
            is_last = list_stems(sentences[0])[-len(stems) :] == stems
            if is_last and not asked.intersection(stems) and normalize_name(phrase) not in name:
                return [ReplayValue(phrase)]
        return list(map(ReplayValue, list_names(sentences[0], step.subject.text)))

    def _find_word(self, ask: str, roots: set[tuple[int, int]]) -> tuple[int, int, str, str] | None:
        """The longest run of content words of the question that the ask has: its span, the ask without it, its form."""
        words = list_stems(ask)
        for run in iterate_runs(self._question):
            stems, start = list_stems(run), self._question.index(run)
            is_inside = any(words[first : first + len(stems)] == stems for first in range(len(words)))
            if is_inside and ID not in ask and (NAME in ask or stems == words):
                form = re.compile(rf"(?<!\w)(?:{re.escape(run)}|{re.escape(' '.join(stems))})(?!\w)", re.IGNORECASE)
                match, end = form.search(ask.partition(NAME)[0]), start + len(run)
                if match and not any(start < slot[1] and slot[0] < end for slot in roots):
                    return start, end, f"{ask[: match.start()]}{WORD}{ask[match.end() :]}", match.group()
        return None


def build_program(record: TraceRecord) -> Program:
    """Compile a demonstration; a problem says why it cannot be followed on other questions."""
    compiler = TraceCompiler(record)
    try:
        program = compiler.compile()
    except CannotFollow as problem:
        return replace(compiler.program, problem=str(problem))
    rows = [lookup.observed for lookup in program.lookups]
    is_read = any(way.path is None for lookup in program.lookups for way in lookup.ways)
    for given in [*_find_given(program), None]:
        slots = (*program.slots, given) if given else program.slots
        candidate = replace(program, slots=slots, given=len(program.slots) if given else None)
        evidence = candidate.evidence(rows, candidate.texts, shows_ids=program.shows_ids)
        derivation = recognize_derivation(evidence, program.answer)
        # What an article calls a value, another may call otherwise.
        if derivation and not (is_read and derivation in SHARED[:2]):
            return replace(candidate, derivation=derivation)
    return replace(program, problem="its answer does not follow from its observations in a known way")


def _find_given(program: Program) -> list[QuestionSlot]:
    """The dates and numbers outside slots, and the observed values that the question names."""
    texts = {value.text for lookup in program.lookups for value in lookup.values}
    patterns = [DATE_PATTERN, re.compile(r"(?<![\w-])\d+(?![\w-])")]
    patterns += [re.compile(rf"(?<!\w){re.escape(text)}(?!\w)") for text in sorted(texts) if text]
    spans = dict.fromkeys(match.span() for pattern in patterns for match in pattern.finditer(program.question))
    slots = [QuestionSlot(*span, program.question[slice(*span)]) for span in spans]
    return [slot for slot in slots if not any(o.start < slot.end and slot.start < o.end for o in program.slots)]
