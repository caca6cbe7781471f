"""Where the arguments of an action came from, so that a trace can be followed on another question.

An origin is a JSON object in one of four forms; places count characters (code points):

    {"from": "question", "start": 23, "end": 37}             a span of the question's text
    {"from": "step", "step": 2, "pointer": "/hits/0/title"}  a value in the data of step 2 (JSON Pointer, RFC 6901);
                                                             with "start" and "end" a span of that value
    {"from": "typed"}                                        the person's head
    {"from": "parts", "parts": [{"start": 0, "end": 8, "origin": {...}}, ...]}
        a text whose spans have origins, or, with "item" in place of "start" and "end", a list whose items have
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Origin = dict[str, Any]

TYPED_ORIGIN: Origin = {"from": "typed"}
# Fields that hold what a person would pick; scores, flags and places are none.
VALUE_FIELDS = frozenset({"title", "entity", "id", "label", "value", "sparql", "address"})
MIN_PART_CHARS = 2
MONTHS = tuple("January February March April May June July August September October November December".split())
_MONTH = f"(?:{'|'.join(MONTHS)})"
DATE_PATTERN = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)? {_MONTH},? \d{{3,4}}|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{3,4}}"
    rf"|\d{{1,2}}(?:st|nd|rd|th)? {_MONTH}|{_MONTH} \d{{3,4}}|{_MONTH} \d{{1,2}}|\d{{4}}-\d\d-\d\d)\b"
)
"""A date as sentences write it; it is one value, never its month alone."""
_NAME_PATTERN = re.compile(r"\b[A-Z][\w'.-]*(?: (?:(?:of|the|and|de|von|van) )?[A-Z0-9][\w'.-]*)*")


class BrokenOrigin(ValueError):
    """An origin points at nothing: the question or the observation has no such place."""


@dataclass(frozen=True, slots=True)
class KnownValue:
    """A value that a trace has seen, and where."""

    text: str
    origin: Origin


def collect_known_values(data_by_step: Mapping[int, Mapping[str, Any] | None]) -> list[KnownValue]:
    """Every value in the observations, the latest step first, each text once."""
    values: dict[str, KnownValue] = {}
    for step in sorted(data_by_step, reverse=True):
        for text, pointer in _iterate_values(data_by_step[step] or {}, ""):
            values.setdefault(text, KnownValue(text, {"from": "step", "step": step, "pointer": pointer}))
    return list(values.values())


def _iterate_values(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            place = f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}"
            if isinstance(inner, str):
                if key in VALUE_FIELDS and inner.strip():
                    yield inner, place
            else:
                yield from _iterate_values(inner, place)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _iterate_values(inner, f"{pointer}/{number}")


def collect_known_sentences(data_by_step: Mapping[int, Mapping[str, Any] | None]) -> list[KnownValue]:
    """Every sentence that was read, the latest step first."""
    return [
        KnownValue(text, {"from": "step", "step": step, "pointer": f"/sentences/{place}"})
        for step in sorted(data_by_step, reverse=True)
        for place, text in enumerate((data_by_step[step] or {}).get("sentences", ()))
    ]


def trace_argument_origins(
    arguments: Mapping[str, Any], question: str, data_by_step: Mapping[int, Mapping[str, Any] | None]
) -> dict[str, Origin]:
    """The origin of each argument of a call that was written after these observations."""
    known, sentences = collect_known_values(data_by_step), collect_known_sentences(data_by_step)
    return {name: find_origin(value, question, known, sentences) for name, value in arguments.items()}


def find_origin(value: Any, question: str, known: Sequence[KnownValue], sentences: Sequence[KnownValue] = ()) -> Origin:
    """The origin of an argument as it stands, whether it was clicked or typed: the shortest explanation first.

    Of numbers and things no origin is told.
    """
    if not isinstance(value, str):
        items = value if isinstance(value, (list, tuple)) else ()
        origins = [find_origin(item, question, known, sentences) for item in items]
        parts = [{"item": place, "origin": origin} for place, origin in enumerate(origins)]
        return {"from": "parts", "parts": parts} if parts else TYPED_ORIGIN
    text = value.strip()
    if not text:
        return TYPED_ORIGIN
    for candidate in known:
        if candidate.text.casefold() == text.casefold():
            return candidate.origin
    if span := _find_span(text, question):
        return {"from": "question", "start": span[0], "end": span[1]}
    for sentence in sentences:
        if span := _find_span(text, sentence.text):
            return {**sentence.origin, "start": span[0], "end": span[1]}
    parts = _find_parts(value, question, known, sentences)
    return {"from": "parts", "parts": parts} if parts else TYPED_ORIGIN


def _find_span(text: str, question: str) -> tuple[int, int] | None:
    match = re.search(rf"(?<!\w){re.escape(text)}(?!\w)", question, re.IGNORECASE)
    return match.span() if match else None


def _find_parts(
    value: str, question: str, known: Sequence[KnownValue], sentences: Sequence[KnownValue]
) -> list[dict[str, Any]]:
    """The spans of `value` that are values of an observation, longest first, without overlap, then names of the
    question and of sentences that were read.
    """
    taken: list[dict[str, Any]] = []
    for candidate in sorted(known, key=lambda k: -len(k.text)):
        # Most values are not in the text at all, and asking that first spares a pattern for each.
        if MIN_PART_CHARS <= len(candidate.text) < len(value) and candidate.text in value:
            for match in re.finditer(rf"(?<!\w){re.escape(candidate.text)}(?!\w)", value):
                _add_part(taken, match, candidate.origin)
    texts = (KnownValue(question, {"from": "question"}), *sentences)
    for match in _iterate_dates_and_names(value):
        origin = next(filter(None, (_find_exact_name(match.group(), text) for text in texts)), None)
        if origin is not None:
            _add_part(taken, match, origin)
    return sorted(taken, key=lambda part: int(part["start"]))


def _iterate_dates_and_names(value: str) -> Iterator[re.Match[str]]:
    """Whole dates, then the runs of capitalized words outside of them, each before the names that "and" joins in it."""
    dates = list(DATE_PATTERN.finditer(value))
    yield from dates
    for match in _NAME_PATTERN.finditer(value):
        if any(match.start() < date.end() and date.start() < match.end() for date in dates):
            continue
        yield match
        if " and " in match.group():
            for name in match.group().split(" and "):
                start = value.index(name, match.start())
                yield from _NAME_PATTERN.finditer(value, start, start + len(name))


def _find_exact_name(name: str, text: KnownValue) -> Origin | None:
    # As it is spelled: the WHERE of a query is not the question's first word.
    if name not in text.text:
        return None
    match = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text.text)
    return {**text.origin, "start": match.start(), "end": match.end()} if match else None


def _add_part(taken: list[dict[str, Any]], match: re.Match[str], origin: Origin) -> None:
    if all(match.end() <= part["start"] or match.start() >= part["end"] for part in taken):
        taken.append({"start": match.start(), "end": match.end(), "origin": origin})


def resolve_origin(origin: Origin, question: str, data_by_step: Mapping[int, Mapping[str, Any] | None]) -> str:
    """The text that a question, step or span origin points at; BrokenOrigin when there is none."""
    if origin["from"] == "question":
        text = question
    elif origin["from"] == "step":
        text = _resolve_pointer(data_by_step.get(origin["step"]), origin["pointer"])
    else:
        raise BrokenOrigin(f"an origin of the form {origin['from']!r} names no single place")
    if "start" in origin:
        if not 0 <= origin["start"] < origin["end"] <= len(text):
            raise BrokenOrigin(f"the place {origin['start']}-{origin['end']} is outside of the text it points into")
        return text[origin["start"] : origin["end"]]
    return text


def _resolve_pointer(value: Any, pointer: str) -> str:
    for key in pointer.split("/")[1:]:
        name = key.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            raise BrokenOrigin(f"the observation has nothing at {pointer}")
    if not isinstance(value, str):
        raise BrokenOrigin(f"what stands at {pointer} is no text")
    return value


def describe_origin(origin: Origin | None) -> str:
    """The origin in a few words for the reader of a trace; empty when it was typed or is not known."""
    if origin is None or origin["from"] == "typed":
        return ""
    if origin["from"] == "question":
        return "(from the question)"
    if origin["from"] == "step":
        return f"(from step {origin['step']})"
    named = dict.fromkeys(filter(None, (describe_origin(part["origin"]).strip("()") for part in origin["parts"])))
    return f"({', '.join(named)})" if named else ""
