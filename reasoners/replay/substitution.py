"""Demonstrations with external tools, compiled: the slots of the question, the steps that the answer needs, its places.

No world tells what the results of external tools mean. So all other words of a question have to be the same, each
argument is taken from the place that the demonstration took it from, and the answer stands where its answer stood
(counterparts.py).
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from showhow.db.models import Step
from showhow.db.questions.answer_formats import AnswerFormat, AnswerKind
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.types import load_json
from showhow.reasoners.linking import complete_origins, iterate_origins
from showhow.reasoners.provenance import (
    EXTERNAL_FIELDS,
    MIN_PART_CHARS,
    TYPED_ORIGIN,
    Origin,
    is_number,
    iterate_scalars,
)
from showhow.reasoners.replay.demonstration import QuestionSlot
from showhow.reasoners.replay.derivations import SEPARATOR, Mismatch
from showhow.worlds.text_normalization import normalize_name

VALUE, SPAN, COLUMN, LENGTH = "value", "span", "column", "length"
"""What an answer is: a value, words of a text, all values of a column or of a list, or the length of a list."""
DERIVATIONS_OF_PLACES = {
    VALUE: "the value at the same place",
    SPAN: "the words at the same place",
    COLUMN: "all values at the same place",
    LENGTH: "the number of entries",
}
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
END_MARKS = "?.! "


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
        if literals[-1] or self.slots[-1].text[-1] not in END_MARKS:
            literals[-1], text = literals[-1].rstrip(END_MARKS), text.rstrip(END_MARKS)
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
        slots = _find_slots(question, needed, origins, steps, places.values())
    except Mismatch as mismatch:
        return SubstitutionProgram(program.id, question, answer, problem=str(mismatch))
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
    question: str,
    needed: Sequence[int],
    origins: Mapping[int, Mapping[str, Origin]],
    steps: Mapping[int, Step],
    places: Iterable[AnswerPlace],
) -> tuple[QuestionSlot, ...]:
    """The spans that arguments were taken from, or by which an entry of a result was chosen."""
    own = [o for position in needed for origin in origins[position].values() for o in iterate_origins(origin)]
    spans = {(o["start"], o["end"]) for o in own if o["from"] == "question"}
    pointers = {(o["step"], o["pointer"]) for o in own if o["from"] == "step"} | {(p.step, p.pointer) for p in places}
    for position, pointer in sorted(pointers):
        spans |= set(_find_choices(question, steps[position].data or {}, pointer))
    slots = tuple(QuestionSlot(start, end, question[start:end]) for start, end in sorted(spans))
    if any(one.end >= other.start for one, other in itertools.pairwise(slots)):
        raise Mismatch("values that it takes from its question overlap")
    return slots


def _find_choices(question: str, data: Any, pointer: str) -> Iterator[tuple[int, int]]:
    """The only name in the question by which an entry differs from the others of its list."""
    for key in pointer.split("/")[1:]:
        name = key.replace("~1", "/").replace("~0", "~")
        if isinstance(data, list) and len(data) > 1 and isinstance(data[int(name)], Mapping):
            for column, cell in data[int(name)].items():
                is_only = sum(isinstance(row, Mapping) and row.get(column) == cell for row in data) == 1
                matches = list(re.finditer(rf"(?<!\w){re.escape(str(cell))}(?!\w)", question)) if is_only else []
                if len(matches) == 1 and len(str(cell)) >= MIN_PART_CHARS:
                    yield matches[0].span()
        data = data[int(name)] if isinstance(data, list) else data[name]


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
        place = next(
            filter(None, (_find_place(step, write_value(part)) for _, step in sorted(steps.items())[::-1])), None
        )
        if place is None:
            where = "its answer" if name is None else f"the part {name} of its answer"
            raise Mismatch(f"{where} stands in no result of its steps: a person or model judged it")
        yield name, place


def _find_place(step: Step, answer: str) -> AnswerPlace | None:
    """Where an answer stands in the data of a step; None if nowhere, Mismatch if at several places."""
    data = {name: value for name, value in (step.data or {}).items() if name in EXTERNAL_FIELDS}
    key, parts = _key(answer), {_key(part) for part in answer.split(SEPARATOR)}
    texts = list(iterate_scalars(data, ""))
    values = [AnswerPlace(VALUE, step.position, pointer) for text, pointer in texts if _key(text) == key]
    columns, lengths = [], []
    for pointer, items in _iterate_lists(data, ""):
        names: list[Any] = list(dict.fromkeys(c for row in items if isinstance(row, dict) for c in row)) or [None]
        for column in names:
            own = read_column(items, column)
            if own is not None and len(own) > 1 and set(map(_key, own)) == parts:
                columns.append(AnswerPlace(COLUMN, step.position, pointer, column))
        if str(len(items)) == key:
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


def read_column(items: Sequence[Any], column: str | None) -> list[str] | None:
    """The values of a column, or the items themselves; None if one is no text and no number."""
    cells = [item.get(column) if isinstance(item, Mapping) else item for item in items] if items else []
    if any((isinstance(item, Mapping)) != (column is not None) for item in items):
        return None
    return [write_value(cell) for cell in cells] if all(isinstance(c, str) or is_number(c) for c in cells) else None


def _key(text: str) -> str:
    """What is compared: a name, or a number without marks of thousands and decimals of a whole number."""
    plain = _THOUSANDS.sub("", text)
    return normalize_name(plain.removesuffix(".0") if NUMBER.fullmatch(plain) else text)


def write_value(value: Any) -> str:
    """The value as answers write it: without the decimals of a whole number."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
