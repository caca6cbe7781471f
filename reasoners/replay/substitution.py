"""Substitution: a question in the words of a demonstration, with other values in the places of linked ones.

No world tells what the results of external tools mean. So all other words of the two questions have to be the same, each
argument is taken from the place that the demonstration took it from, and the answer stands where its answer stood.
Mismatch where it is not clear which value that is.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from db.answer_formats import AnswerFormat, AnswerKind
from db.models import Step
from db.trace_record import TraceRecord
from db.types import dump_json, load_json
from reasoners.answers.normalization import parse_answer
from reasoners.linking import complete_origins, iterate_origins
from reasoners.provenance import (
    DATE_PATTERN,
    EXTERNAL_FIELDS,
    TYPED_ORIGIN,
    BrokenOrigin,
    Origin,
    compile_name_pattern,
    is_number,
    iterate_scalars,
    resolve_origin,
    split_argument,
)
from reasoners.replay.calls import ReplayCalls, ReplayMoves
from reasoners.replay.demonstration import QuestionSlot
from reasoners.replay.derivations import SEPARATOR, Mismatch
from worlds.lexicon.english import has_content
from worlds.text_normalization import normalize_name

VALUE, SPAN, COLUMN, LENGTH = "value", "span", "column", "length"
"""What an answer is: a value, words of a text, all values of a column or of a list, or the length of a list."""
DERIVATIONS_OF_PLACES = {
    VALUE: "the value at the same place",
    SPAN: "the words at the same place",
    COLUMN: "all values at the same place",
    LENGTH: "the number of entries",
}
MAX_NAME_WORDS, MAX_SENTENCE_NAME_WORDS = 6, 3
"""Longer texts, without and with a mark at their end, are no names but messages, of which any may stand for another."""
_NAME = compile_name_pattern("of|the|de|von|van", numbers=True)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_PIECES = re.compile(r"(?<=[.!?;])\s+|\n+")
_END_MARKS = "?.! "
_QUOTES = frozenset("'\"`\\")
_LIMIT_STEP = 5
"""Lengths that are multiples of it, from its double on, may be limits of a tool instead of lengths."""


class AnswerPlace(NamedTuple):
    """Where an answer, or a part of it, stands in the data of a step."""

    kind: str
    step: int
    pointer: str
    column: str | None = None
    span: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class SubstitutionProgram:
    """A demonstration with the slots of its question, the steps that its answer needs, and the places of that."""

    id: str
    question: str
    answer: str
    slots: tuple[QuestionSlot, ...] = ()
    steps: tuple[Step, ...] = ()
    origins: Mapping[int, Mapping[str, Origin]] = field(default_factory=dict)
    places: Mapping[str | None, AnswerPlace] = field(default_factory=dict)
    """By the names of the parts of an answer that is a JSON object; by None for the whole answer."""
    problem: str | None = None
    """Why it cannot be followed with other values, as a clause."""

    @property
    def derivation(self) -> str:
        """How the answer follows, as a phrase."""
        return " and ".join(dict.fromkeys(DERIVATIONS_OF_PLACES[place.kind] for place in self.places.values()))

    def match(self, question: str) -> dict[int, str] | None:
        """The texts of a question in the places of the slots, by their starts; None if it has other words."""
        ends = [0, *(slot.end for slot in self.slots)]
        starts = [*(slot.start for slot in self.slots), len(self.question)]
        literals = [self.question[end:start] for end, start in zip(ends, starts, strict=True)]
        text = question.strip()
        if literals[-1]:
            literals[-1], text = literals[-1].rstrip(_END_MARKS), text.rstrip(_END_MARKS)
        folded = _fold(text)
        first, *others = map(_fold, literals)
        if not folded.startswith(first) or (not others and folded != first):
            return None
        fillers, start = {}, len(first)
        for number, (slot, literal) in enumerate(zip(self.slots, others, strict=True), 1):
            if number < len(self.slots):
                end = folded.find(literal, start + 1) if literal else -1
            else:
                end = len(text) - len(literal) if folded.endswith(literal) else -1
            filler = text[start:end] if end > start else ""
            if not filler or filler != filler.strip():
                return None
            fillers[slot.start] = filler
            start = end + len(literal)
        return fillers


def is_alike(there: str, here: str) -> bool:
    """Whether a text may stand for another one: names for names, dates for dates, numbers for numbers, as many words."""
    if len(there.split()) > (MAX_SENTENCE_NAME_WORDS if there[-1:] in _END_MARKS else MAX_NAME_WORDS):
        return True
    for pattern in (DATE_PATTERN, _NUMBER, _NAME):
        kinds = [pattern.fullmatch(text) is not None for text in (there, here)]
        if any(kinds):
            return all(kinds)
    return len(there.split()) == len(here.split()) and has_content(here)


def _fold(text: str) -> str:
    folded = text.lower()
    return folded if len(folded) == len(text) else text


def uses_external_results(record: TraceRecord) -> bool:
    """Whether a step of the trace observed the result of an external tool."""
    return any(EXTERNAL_FIELDS & (step.data or {}).keys() for step in record.steps if step.tool)


def compile_substitution(record: TraceRecord) -> SubstitutionProgram:
    """Compile a demonstration; a problem says why it cannot be followed."""
    question, answer = record.question.full_text, record.trace.final_answer or ""
    steps = {step.position: step for step in record.steps if step.tool and step.data is not None and not step.error}
    origins = complete_origins(record)
    program = SubstitutionProgram(str(record.trace.id), question, answer)
    try:
        places = dict(_find_answers(record, answer, steps))
        needed = _slice_back({place.step for place in places.values()}, steps, origins)
        slots = _find_slots(question, needed, origins)
    except Mismatch as problem:
        return SubstitutionProgram(program.id, question, answer, problem=str(problem))
    kept = tuple(steps[position] for position in needed)
    typed = [step for step in kept if not _is_linked(step, origins[step.position])]
    problem = f"step {typed[0].position} takes nothing from the question or from an earlier step" if typed else None
    return SubstitutionProgram(program.id, question, answer, slots, kept, origins, places, problem)


def _is_linked(step: Step, origins: Mapping[str, Origin]) -> bool:
    """Whether a value of a call is linked; a call without texts takes none."""
    texts = [name for name, value in step.arguments.items() if isinstance(value, str | list) and value]
    return not texts or any(True for name in step.arguments for _ in iterate_origins(origins.get(name, TYPED_ORIGIN)))


def _slice_back(
    first_steps: set[int], steps: Mapping[int, Step], origins: Mapping[int, Mapping[str, Origin]]
) -> list[int]:
    """The steps that these need, in order."""
    needed, open_steps = set[int](), list(first_steps)
    while open_steps:
        position = open_steps.pop()
        if position in needed:
            continue
        if position not in steps:
            raise Mismatch(f"a value comes from step {position}, which has no result")
        needed.add(position)
        own = [o for name in steps[position].arguments for o in iterate_origins(origins[position][name])]
        open_steps += [origin["step"] for origin in own if origin["from"] == "step"]
    return sorted(needed)


def _find_slots(
    question: str, needed: Sequence[int], origins: Mapping[int, Mapping[str, Origin]]
) -> tuple[QuestionSlot, ...]:
    own = [o for position in needed for origin in origins[position].values() for o in iterate_origins(origin)]
    spans = sorted({(o["start"], o["end"]) for o in own if o["from"] == "question"})
    slots = tuple(QuestionSlot(start, end, question[start:end]) for start, end in spans)
    if any(one.end >= other.start for one, other in zip(slots, slots[1:], strict=False)):
        raise Mismatch("values that it takes from its question overlap")
    return slots


def _find_answers(
    record: TraceRecord, answer: str, steps: Mapping[int, Step]
) -> Iterator[tuple[str | None, AnswerPlace]]:
    kind = AnswerFormat.from_json(record.project.answer_format).kind
    if kind == AnswerKind.NONE or not answer:
        raise Mismatch("it has no answer")
    try:
        value = load_json(answer) if kind == AnswerKind.JSON else answer
    except ValueError as error:
        raise Mismatch("its answer is not JSON") from error
    parts: dict[str | None, Any] = dict(value) if isinstance(value, dict) else {None: value}
    for name, part in parts.items():
        if not isinstance(part, str) and not is_number(part):
            raise Mismatch(f"the {name or 'answer'} is no text and no number")
        place = next(filter(None, (_find_place(step, _write(part)) for _, step in sorted(steps.items())[::-1])), None)
        if place is None:
            said = "its answer" if name is None else f"the part {name} of its answer"
            raise Mismatch(f"{said} stands in no result of its steps, so that it was judged by whoever answered")
        yield name, place


def _find_place(step: Step, answer: str) -> AnswerPlace | None:
    """Where an answer stands in the data of a step; None if nowhere, Mismatch if at several places."""
    data = {name: value for name, value in (step.data or {}).items() if name in EXTERNAL_FIELDS}
    key, parts = normalize_name(answer), {normalize_name(part) for part in answer.split(SEPARATOR)}
    texts = list(iterate_scalars(data, ""))
    values = [AnswerPlace(VALUE, step.position, pointer) for text, pointer in texts if normalize_name(text) == key]
    columns, lengths = [], []
    for pointer, items in _iterate_lists(data, ""):
        names: list[Any] = list(dict.fromkeys(c for row in items if isinstance(row, dict) for c in row)) or [None]
        for column in names:
            own = _read_column(items, column)
            if own is not None and len(own) > 1 and {normalize_name(text) for text in own} == parts:
                columns.append(AnswerPlace(COLUMN, step.position, pointer, column))
        if str(len(items)) == answer:
            lengths.append(AnswerPlace(LENGTH, step.position, pointer))
    if len(values) == 1 and len(texts) == 1:
        return values[0]
    places = [*([] if columns else values), *columns, *lengths]
    if not places:
        pattern = re.compile(rf"(?<!\w){re.escape(answer)}(?!\w)")
        places = [
            AnswerPlace(SPAN, step.position, pointer, span=match.span())
            for text, pointer in texts
            for match in pattern.finditer(text)
        ]
    if len(places) > 1:
        raise Mismatch("its answer stands at several places of a result, which may differ for other values")
    return places[0] if places else None


def _iterate_lists(value: Any, pointer: str) -> Iterator[tuple[str, list[Any]]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _iterate_lists(inner, f"{pointer}/{str(name).replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        yield pointer, value


def _read_column(items: Sequence[Any], column: str | None) -> list[str] | None:
    """The values of a column, or the items themselves; None if one is no text and no number."""
    cells = [item.get(column) if isinstance(item, Mapping) else item for item in items] if items else []
    if any((isinstance(item, Mapping)) != (column is not None) for item in items):
        return None
    return [_write(cell) for cell in cells] if all(isinstance(c, str) or is_number(c) for c in cells) else None


def _write(value: Any) -> str:
    """The value as answers write it: without the decimals of a whole number."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def substitute(
    programs: Sequence[SubstitutionProgram],
    question: str,
    calls: ReplayCalls,
    failures: list[tuple[str, str]],
    corrected: tuple[str, Sequence[str]],
) -> ReplayMoves:
    """The answer by the first program that fits, with what was followed; None if none does.

    `corrected` is the program that a person has chosen, with the texts of its slots.
    """
    chosen, texts = corrected
    for program in programs:
        fillers = program.match(question)
        if chosen:
            own = program.id == chosen and len(program.slots) == len(texts)
            fillers = {slot.start: text for slot, text in zip(program.slots, texts, strict=True)} if own else None
        if fillers is None:
            failures.append((program.question, program.problem or "its question has other words around its values"))
            continue
        try:
            answer = yield from SubstitutionFollower(calls, program, fillers).follow()
        except Mismatch as mismatch:
            failures.append((program.question, str(mismatch)))
            continue
        slots = [{"there": s.text, "here": fillers[s.start], "relation": False} for s in program.slots]
        alignment = {"program": program.id, "slots": slots, "derivation": program.derivation}
        shown = {"id": program.id, "question": program.question}
        return answer, {"alignment": alignment, "demonstrations": [shown]}
    return None


class SubstitutionFollower:
    """Follows a program with other texts in its slots."""

    def __init__(self, calls: ReplayCalls, program: SubstitutionProgram, fillers: Mapping[int, str]) -> None:
        self._calls, self._program, self._fillers = calls, program, fillers
        self._shown = {step.position: step.data or {} for step in program.steps}
        self._here: dict[int, Mapping[str, Any]] = {}
        self._names = {slot.text: fillers[slot.start] for slot in program.slots}
        """The values of the demonstration with those that stand for them here."""

    def follow(self) -> ReplayMoves:
        """Make the calls and return the answer; Mismatch if there is none."""
        program = self._program
        changed = [(slot.text, self._fillers[slot.start]) for slot in program.slots]
        changed = [(there, here) for there, here in changed if there != here]
        if changed and program.problem:
            raise Mismatch(program.problem)
        for there, here in changed:
            if not is_alike(there, here):
                raise Mismatch(f"{here!r} may be something else than {there!r}")
        named = " and ".join(f"{here} in place of {there}" for there, here in changed)
        for step in program.steps:
            thought = f"As in step {step.position} of the demonstration{f', with {named}' if named else ''}."
            origins = program.origins[step.position]
            arguments = {name: self._fill(value, origins[name]) for name, value in step.arguments.items()}
            data = yield from self._calls.call(thought, str(step.tool), arguments)
            if data.get("cut"):
                raise Mismatch(f"the result of step {step.position} is too long to be read completely")
            self._here[step.position] = data
        parts = {name: self._read(place) for name, place in program.places.items()}
        return _write(parts[None]) if None in parts else dump_json(parts)

    def _fill(self, value: Any, origin: Origin) -> Any:
        """The argument with the values that stand here for those that it was taken from."""
        if isinstance(value, list) and origin["from"] == "parts":
            return [self._fill(item, part["origin"]) for item, part in zip(value, origin["parts"], strict=True)]
        if origin["from"] == "parts":
            return "".join(self._fill_part(text, own) for text, own in split_argument(value, origin))
        if origin["from"] == "typed":
            return value
        there, here = self._find_counterpart(origin)
        if is_number(value):
            return here if is_number(here) else _parse_number(here, value)
        text = _write(here)
        return value if text == there else text.lower() if value == there.lower() != there else text

    def _fill_part(self, text: str, origin: Origin) -> str:
        filled = str(self._fill(text, origin))
        if filled != text and _QUOTES.intersection(filled):
            raise Mismatch(f"{filled!r} has a mark that ends a text in a query")
        return filled

    def _find_counterpart(self, origin: Origin) -> tuple[str, Any]:
        """The text that an origin points at in the demonstration, and the value that stands here for it."""
        try:
            there = resolve_origin(origin, self._program.question, self._shown)
        except BrokenOrigin as error:
            raise Mismatch(str(error)) from error
        if origin["from"] == "question":
            return there, self._fillers[origin["start"]]
        span = (origin["start"], origin["end"]) if "start" in origin else None
        here = self._read(AnswerPlace(SPAN if span else VALUE, origin["step"], origin["pointer"], span=span))
        self._names.setdefault(there, _write(here))
        return there, here

    def _read(self, place: AnswerPlace) -> Any:
        """What stands at a place here; Mismatch if that is not clear, or if there is nothing."""
        there, here = self._shown[place.step], self._here[place.step]
        for key in place.pointer.split("/")[1:]:
            there, here = self._descend(there, here, key.replace("~1", "/").replace("~0", "~"), place.step)
        if type(there) is not type(here) and not (is_number(there) and is_number(here)):
            raise Mismatch(f"the result of step {place.step} has another shape")
        if place.kind in (COLUMN, LENGTH):
            return self._read_list(place, here)
        if place.span is not None:
            here = self._read_span(there, here, place.span)
        if (there and not here) or (isinstance(here, str) and _says_none(here) and not _says_none(str(there))):
            raise Mismatch(f"step {place.step} observed nothing")
        return here

    @staticmethod
    def _read_list(place: AnswerPlace, items: Sequence[Any]) -> str:
        own = _read_column(items, place.column) if place.kind == COLUMN else [""]
        if own is None or not items:
            raise Mismatch(f"step {place.step} observed nothing" if not items else "a column has other values here")
        if len(items) >= 2 * _LIMIT_STEP and not len(items) % _LIMIT_STEP:
            raise Mismatch(f"step {place.step} returned exactly {len(items)} entries, which may be its limit")
        return SEPARATOR.join(dict.fromkeys(own)) if place.kind == COLUMN else str(len(items))

    def _descend(self, there: Any, here: Any, key: str, step: int) -> tuple[Any, Any]:
        """The entry with this key or index in the demonstration's value, and the one that stands here for it."""
        if isinstance(there, list) and isinstance(here, list):
            return there[int(key)], self._choose(there, here, int(key), step)
        if not isinstance(here, Mapping) or key not in here:
            raise Mismatch(f"the result of step {step} has no {key}")
        return there[key], here[key]

    def _choose(self, there: Sequence[Any], here: Sequence[Any], index: int, step: int) -> Any:
        """The only entry, or the one that has a known value where the demonstration's entry has its counterpart."""
        if len(there) == len(here) == 1:
            return here[0]
        if len(there) > 1 and isinstance(there[index], Mapping):
            for column, cell in there[index].items():
                name = self._names.get(str(cell))
                if name is not None and _count(there, column, str(cell)) == 1 == _count(here, column, name):
                    return next(item for item in here if _has(item, column, name))
        if not here:
            raise Mismatch(f"step {step} observed nothing")
        raise Mismatch(f"step {step} returned {len(here)} entries, and only a reader can tell which of them counts")

    def _read_span(self, there: str, here: str, span: tuple[int, int]) -> str:
        """The words here between those between which the demonstration's stand, in the only sentence with these."""
        start, end = span
        first = max((m.end() for m in _PIECES.finditer(there) if m.end() <= start), default=0)
        last = min((m.start() for m in _PIECES.finditer(there) if m.start() >= end), default=len(there))
        before, behind = there[first:start], there[end:last]
        if not re.search(r"\w", before + behind):
            raise Mismatch("no words beside a value tell which one it is")
        pairs = ((there, before, behind), (here, self._rename(before), self._rename(behind)))
        shown, own = ([*_cut(text, *words)] for text, *words in pairs)
        if len(shown) != 1 or len(own) != 1 or not is_alike(shown[0], own[0]):
            raise Mismatch("no sentence of a result has the demonstration's words around another value")
        return own[0]

    def _rename(self, text: str) -> str:
        for there in sorted(self._names, key=len, reverse=True):
            here = self._names[there]
            text = re.sub(rf"(?<!\w){re.escape(there)}(?!\w)", lambda _, here=here: here, text)
        return text


def _cut(text: str, before: str, behind: str) -> Iterator[str]:
    """What stands between these words in the sentences and lines of a text."""
    for piece in _PIECES.split(text):
        if len(piece) > len(before) + len(behind) and piece.startswith(before) and piece.endswith(behind):
            yield piece[len(before) : len(piece) - len(behind)]


def _has(item: Any, column: str, text: str) -> bool:
    return isinstance(item, Mapping) and normalize_name(str(item.get(column))) == normalize_name(text)


def _count(items: Sequence[Any], column: str, text: str) -> int:
    return sum(_has(item, column, text) for item in items)


def _says_none(text: str) -> bool:
    return parse_answer(text).words == ("none",)


def _parse_number(text: str, shown: float) -> float:
    try:
        return type(shown)(text)
    except ValueError as error:
        raise Mismatch(f"{text!r} is no number") from error
