"""Follows a demonstration with external tools: the values that stand here where the demonstration's stood.

Mismatch where it is not clear which value that is, or where there is none.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from showhow.db.types import dump_json
from showhow.reasoners.answers.normalization import parse_answer
from showhow.reasoners.provenance import (
    DATE_PATTERN,
    BrokenOrigin,
    Origin,
    compile_name_pattern,
    is_number,
    resolve_origin,
    split_argument,
)
from showhow.reasoners.replay.calls import ReplayCalls, ReplayMoves
from showhow.reasoners.replay.derivations import SEPARATOR, Mismatch
from showhow.reasoners.replay.substitution import (
    COLUMN,
    END_MARKS,
    LENGTH,
    NUMBER,
    SPAN,
    VALUE,
    AnswerPlace,
    SubstitutionProgram,
    read_column,
    write_value,
)
from showhow.worlds.lexicon.english import has_content
from showhow.worlds.text_normalization import normalize_name

MAX_NAME_WORDS, MAX_SENTENCE_NAME_WORDS = 6, 3
"""Longer texts, without and with a mark at their end, are no names but messages, of which any may stand for another."""
_NAME = compile_name_pattern("of|the|de|von|van", numbers=True)
_ANY_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_PIECES = re.compile(r"(?<=[.!?;])\s+|\n+")
_QUOTES = frozenset("'\"`\\")
_LIMIT_STEP = 5
"""Lengths that are multiples of it, from its double on, may be limits of a tool instead of lengths."""


def is_alike(there: str, here: str) -> bool:
    """Whether a text may stand for another: names for names, dates for dates, numbers for numbers, as many words."""
    if len(there.split()) > (MAX_SENTENCE_NAME_WORDS if there[-1:] in END_MARKS else MAX_NAME_WORDS):
        return True
    for pattern in (DATE_PATTERN, NUMBER, _NAME):
        kinds = [pattern.fullmatch(text) is not None for text in (there, here)]
        if any(kinds):
            return all(kinds)
    return len(there.split()) == len(here.split()) and has_content(here)


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
        return write_value(parts[None]) if None in parts else dump_json(parts)

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
        text = write_value(here)
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
        self._names.setdefault(there, write_value(here))
        return there, here

    def _read(self, place: AnswerPlace) -> Any:
        """What stands at a place here; Mismatch if that is not clear, or if there is nothing."""
        there: Any = self._shown[place.step]
        here: Any = self._here[place.step]
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
        own = read_column(items, place.column) if place.kind == COLUMN else [""]
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
        raise Mismatch(
            f"the demonstration took one of several entries of step {step}, and only a reader can tell which one"
        )

    def _read_span(self, there: str, here: str, span: tuple[int, int]) -> str:
        """The words here between those between which the demonstration's stand, in the only sentence with these."""
        start, end = span
        first = max((m.end() for m in _PIECES.finditer(there) if m.end() <= start), default=0)
        last = min((m.start() for m in _PIECES.finditer(there) if m.start() >= end), default=len(there))
        before, behind = there[first:start], there[end:last]
        if not re.search(r"\w", before + behind):
            raise Mismatch("no words beside a value tell which one it is")
        shown = _read_between(there, before, behind)
        own = _read_between(here, self._rename(before), self._rename(behind))
        if len(shown) != 1 or len(own) != 1 or not is_alike(shown[0], own[0]):
            raise Mismatch("no sentence of a result has the demonstration's words around another value")
        return own[0]

    def _rename(self, text: str) -> str:
        for there in sorted(self._names, key=len, reverse=True):
            here = self._names[there].replace("\\", r"\\")
            text = re.sub(rf"(?<!\w){re.escape(there)}(?!\w)", here, text)
        return text


def _read_between(text: str, before: str, behind: str) -> list[str]:
    """What stands between these words in the sentences and lines of a text; numbers among the words may be others."""
    one, other = (_ANY_NUMBER.sub(lambda _: _ANY_NUMBER.pattern, re.escape(words)) for words in (before, behind))
    pattern = re.compile(f"{one}(.+){other}")
    return [match.group(1) for match in map(pattern.fullmatch, _PIECES.split(text)) if match]


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
