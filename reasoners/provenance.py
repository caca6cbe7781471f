"""The origins of arguments: which part of the question or of an earlier observation each value was taken from.

Replay uses them to run a trace on another question. An origin is a JSON object in one of four forms; offsets count
characters (code points):

    {"from": "question", "start": 23, "end": 37}             a span of the question's text
    {"from": "step", "step": 2, "pointer": "/hits/0/title"}  a value in the data of step 2 (JSON Pointer, RFC 6901);
                                                             with "start" and "end" a span of that value
    {"from": "typed"}                                        typed by the person, from no source
    {"from": "parts", "parts": [{"start": 0, "end": 8, "origin": {...}}, ...]}
        a text whose spans have origins, or, with "item" in place of "start" and "end", a list whose items have
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

Origin = dict[str, Any]
ArgumentPart = tuple[str, Origin]
"""A text with the place that it comes from."""

TYPED_ORIGIN: Origin = {"from": "typed"}
IGNORED_FIELDS = frozenset({"score", "usage", "seconds"})
"""Fields of a tool's data that vary between identical calls and are not compared."""
# Fields of observations that hold values to use as arguments; scores, flags and offsets are not among them.
VALUE_FIELDS = frozenset({"title", "entity", "id", "label", "value", "literal", "sparql", "address"})
EXTERNAL_FIELDS = frozenset({"result", "text"})
"""The fields of an external tool's data with its values, of which each can be used: JSON, or a text alone."""
MIN_PART_CHARS = 2
MONTHS = tuple("January February March April May June July August September October November December".split())
_MONTH = f"(?:{'|'.join(MONTHS)})"
DATE_PATTERN = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)? {_MONTH},? \d{{3,4}}|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{3,4}}"
    rf"|\d{{1,2}}(?:st|nd|rd|th)? {_MONTH}|{_MONTH} \d{{3,4}}|{_MONTH} \d{{1,2}}|\d{{4}}-\d\d-\d\d)\b"
)
"""A date as sentences write it. A date is one value; its month alone is none."""


def compile_name_pattern(joining_words: str, *, numbers: bool) -> re.Pattern[str]:
    """A run of capitalized words, joined by a dash, a colon, an exclamation mark or one of these words (a|b), with the
    Jr. or Sr. that may end it; `numbers` may be words of a name after the first.
    """
    first, other = r"(?<!\w)[^\W\d_a-z]", r"[^\W_a-z]" if numbers else r"[^\W\d_a-z]"
    rest = r"[\w'’.-]*"
    joint = rf"(?:[:!]? (?:(?:{joining_words}) )?|–(?=\w))"
    return re.compile(rf"{first}{rest}(?:{joint}{other}{rest})*(?:,? [JS]r\.)?")


_NAME_PATTERN = compile_name_pattern("of|the|and|de|von|van", numbers=True)


_QUOTED_PATTERN = re.compile(r"(?<!\w)(['\"])[^'\"\n]*\1")
"""A text in quotation marks, as in a query."""


class BrokenOrigin(ValueError):
    """An origin points at a place that the question or the observation does not have."""


@dataclass(frozen=True, slots=True)
class KnownValue:
    """A value in the question or an observation, with its origin."""

    text: str
    origin: Origin


def collect_known_values(data_by_step: Mapping[int, Mapping[str, Any] | None]) -> list[KnownValue]:
    """Return the values in the observations, the latest step first, each text once."""
    values_by_text: dict[str, KnownValue] = {}
    for step in sorted(data_by_step, reverse=True):
        for text, pointer in _iterate_known(data_by_step[step] or {}):
            values_by_text.setdefault(text, KnownValue(text, {"from": "step", "step": step, "pointer": pointer}))
    return list(values_by_text.values())


def _iterate_known(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the values of an observation with their pointers; every value of an external tool's counts."""
    external = {name: value for name, value in data.items() if name in EXTERNAL_FIELDS}
    yield from _iterate_values({name: value for name, value in data.items() if name not in external}, "")
    yield from iterate_scalars(external, "")


def iterate_scalars(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    """Yield the texts and numbers in a JSON value."""
    if isinstance(value, Mapping):
        for key, inner_value in value.items():
            yield from iterate_scalars(inner_value, f"{pointer}/{_escape_pointer(key)}")
    elif isinstance(value, list):
        for index, inner_value in enumerate(value):
            yield from iterate_scalars(inner_value, f"{pointer}/{index}")
    elif is_number(value) or (isinstance(value, str) and value.strip()):
        yield str(value), pointer


def is_number(value: Any) -> bool:
    """Whether a JSON value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _escape_pointer(key: object) -> str:
    return str(key).replace("~", "~0").replace("/", "~1")


def _iterate_values(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner_value in value.items():
            inner_pointer = f"{pointer}/{_escape_pointer(key)}"
            if isinstance(inner_value, str):
                if key in VALUE_FIELDS and inner_value.strip():
                    yield inner_value, inner_pointer
            else:
                yield from _iterate_values(inner_value, inner_pointer)
    elif isinstance(value, list):
        for index, inner_value in enumerate(value):
            yield from _iterate_values(inner_value, f"{pointer}/{index}")


def collect_known_sentences(data_by_step: Mapping[int, Mapping[str, Any] | None]) -> list[KnownValue]:
    """Return the sentences in the observations, the latest step first."""
    return [
        KnownValue(text, {"from": "step", "step": step, "pointer": pointer})
        for step in sorted(data_by_step, reverse=True)
        for pointer, text in _iterate_sentences(data_by_step[step] or {})
    ]


def _iterate_sentences(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the texts of an external tool, and the sentences of an article; of one that was cut, also the best ones."""
    for text, pointer in iterate_scalars({name: data.get(name) for name in EXTERNAL_FIELDS}, ""):
        if len(text.split()) > 1:
            yield pointer, text
    sentences = data.get("sentences", ())
    for index, text in enumerate(sentences):
        yield f"/sentences/{index}", text
    for index, sentence in enumerate(data.get("best", ()) if sentences else ()):
        if sentence["place"] >= len(sentences):
            yield f"/best/{index}/text", sentence["text"]


class _KnownTexts:
    """The values and sentences of observations by text, those first that origins prefer."""

    def __init__(self, values: Iterable[KnownValue], sentences: Iterable[KnownValue]) -> None:
        self.values: dict[str, KnownValue] = {}
        self.sentences: dict[str, KnownValue] = {}
        self.origins_by_folded_text: dict[str, Origin] = {}
        for known in values:
            self.values.setdefault(known.text, known)
            self.origins_by_folded_text.setdefault(known.text.casefold(), known.origin)
        for sentence in sentences:
            self.sentences.setdefault(sentence.text, sentence)


class OriginTracer:
    """Finds the origins of arguments in the question and in the observations so far, each of which is read once."""

    def __init__(self, question: str) -> None:
        self._question = question
        self._known_by_step: dict[int, _KnownTexts] = {}
        self._steps_of_values: dict[str, int] = {}
        self._steps_of_sentences: dict[str, int] = {}

    def observe(self, step: int, data: Mapping[str, Any] | None) -> None:
        """Take the data of a step, unless it was taken before."""
        if step in self._known_by_step:
            return
        known = _KnownTexts(collect_known_values({step: data}), collect_known_sentences({step: data}))
        self._known_by_step[step] = known
        # A text is searched only where it was observed last, which is the place that its origin names.
        for text in [*known.values]:
            if (older := _set_latest(self._steps_of_values, text, step)) is not None:
                del self._known_by_step[older].values[text]
        for text in [*known.sentences]:
            if (older := _set_latest(self._steps_of_sentences, text, step)) is not None:
                del self._known_by_step[older].sentences[text]

    def trace(self, arguments: Mapping[str, Any]) -> dict[str, Origin]:
        """Find the origin of each argument of a call."""
        latest_first = [self._known_by_step[step] for step in sorted(self._known_by_step, reverse=True)]
        return {name: _find_origin(value, self._question, latest_first) for name, value in arguments.items()}


def _set_latest(steps: dict[str, int], text: str, step: int) -> int | None:
    """Note the step of a text if it is the latest; of two steps, return the older one."""
    other = steps.get(text)
    steps[text] = step if other is None else max(step, other)
    return None if other is None else min(step, other)


def trace_argument_origins(
    arguments: Mapping[str, Any], question: str, data_by_step: Mapping[int, Mapping[str, Any] | None]
) -> dict[str, Origin]:
    """Find the origin of each argument of a call, given the question and the data of the earlier steps."""
    tracer = OriginTracer(question)
    for step, data in data_by_step.items():
        tracer.observe(step, data)
    return tracer.trace(arguments)


def find_origin(
    value: Any, question: str, known_values: Sequence[KnownValue], sentences: Sequence[KnownValue] = ()
) -> Origin:
    """Find the origin of an argument, whether it was clicked or typed; the simplest origin that explains it wins.

    Order: a whole value of an observation, a span of the question, a span of a sentence, parts with origins of their
    own, typed. A number is a whole value or typed; objects count as typed.
    """
    return _find_origin(value, question, [_KnownTexts(known_values, sentences)])


def _find_origin(value: Any, question: str, latest_first: Sequence[_KnownTexts]) -> Origin:
    if isinstance(value, (list, tuple)):
        origins = [_find_origin(element, question, latest_first) for element in value]
        parts = [{"item": index, "origin": origin} for index, origin in enumerate(origins)]
        return {"from": "parts", "parts": parts} if parts else TYPED_ORIGIN
    if not isinstance(value, str) or not value.strip():
        return _find_number(value, latest_first) if is_number(value) else TYPED_ORIGIN
    text = value.strip()
    folded_text = text.casefold()
    for known in latest_first:
        if (origin := known.origins_by_folded_text.get(folded_text)) is not None:
            return origin
    pattern = re.compile(rf"(?<!\w){re.escape(text)}(?!\w)", re.IGNORECASE)
    if match := pattern.search(question):
        return {"from": "question", "start": match.start(), "end": match.end()}
    for known in latest_first:
        for sentence in known.sentences.values():
            if match := pattern.search(sentence.text):
                return {**sentence.origin, "start": match.start(), "end": match.end()}
    parts = _find_parts(value, question, latest_first)
    return {"from": "parts", "parts": parts} if parts else TYPED_ORIGIN


def _find_number(value: float, latest_first: Sequence[_KnownTexts]) -> Origin:
    """The origin of a number that an observation has; single digits are too often equal by chance."""
    text = str(value)
    if len(text) < MIN_PART_CHARS:
        return TYPED_ORIGIN
    return next((known.values[text].origin for known in latest_first if text in known.values), TYPED_ORIGIN)


def _find_parts(value: str, question: str, latest_first: Sequence[_KnownTexts]) -> list[dict[str, Any]]:
    """Find spans of `value` with an origin: values of observations, then names of the question and of sentences.

    Longer values come first, and spans do not overlap.
    """
    parts: list[dict[str, Any]] = []
    # Most values are not in the text; the substring test avoids compiling a pattern for each.
    contained = [
        candidate
        for known in latest_first
        for text, candidate in known.values.items()
        if MIN_PART_CHARS <= len(text) < len(value) and text in value
    ]
    for candidate in sorted(contained, key=lambda candidate: -len(candidate.text)):
        for match in re.finditer(rf"(?<!\w){re.escape(candidate.text)}(?!\w)", value):
            _add_part(parts, match.span(), candidate.origin)
    question_source = KnownValue(question, {"from": "question"})
    for match in _iterate_dates_and_names(value):
        sources = chain([question_source], *(known.sentences.values() for known in latest_first))
        origin = next(filter(None, (_find_exact_name(match.group(), text) for text in sources)), None)
        if origin is not None:
            _add_part(parts, match.span(), origin)
    for quoted in _QUOTED_PATTERN.finditer(value):
        start, end = _trim_to_words(value, *quoted.span())
        sources = chain([question_source], *(known.sentences.values() for known in latest_first))
        origins = (_find_words(value[start:end], text) for text in sources)
        if start < end and (origin := next(filter(None, origins), None)) is not None:
            _add_part(parts, (start, end), origin)
    return sorted(parts, key=lambda part: int(part["start"]))


def _iterate_dates_and_names(value: str) -> Iterator[re.Match[str]]:
    """Yield whole dates, then runs of capitalized words outside dates, each followed by the names that "and" joins."""
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


def mask_names(sentence: str) -> str:
    """The sentence with "…" for what it quotes, for its dates, numbers and names, and for a question at its end."""
    text = re.sub(r": [A-Z][^:]*\?$", ": …", sentence)
    text = re.sub(r"'[^']*'(?!\w)|\"[^\"]*\"", "…", text)
    names = [match.span() for match in _iterate_dates_and_names(text) if match.start() > 0]
    for start, end in sorted(set(names), reverse=True):
        text = f"{text[:start]}…{text[end:]}" if "…" not in text[start:end] else text
    return re.sub(r"…(?:[ ,]*(?:and |or )?…)+", "…", re.sub(r"\d[\d.,]*\d|\d", "…", text))


def _find_exact_name(name: str, source: KnownValue) -> Origin | None:
    # Case-sensitive: the WHERE of a query is not the first word of the question.
    if name not in source.text:
        return None
    match = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", source.text)
    return {**source.origin, "start": match.start(), "end": match.end()} if match else None


def _trim_to_words(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without what is no letter and no digit at its ends."""
    while start < end and not text[start].isalnum():
        start += 1
    while start < end and not text[end - 1].isalnum():
        end -= 1
    return start, end


def _find_words(words: str, source: KnownValue) -> Origin | None:
    """The origin of quoted words, in whichever case they are written."""
    match = re.search(rf"(?<!\w){re.escape(words)}(?!\w)", source.text, re.IGNORECASE)
    return {**source.origin, "start": match.start(), "end": match.end()} if match else None


def _add_part(parts: list[dict[str, Any]], span: tuple[int, int], origin: Origin) -> None:
    start, end = span
    if all(end <= part["start"] or start >= part["end"] for part in parts):
        parts.append({"start": start, "end": end, "origin": origin})


def strip_ignored_fields(data: Any) -> Any:
    """The data without the fields that are not compared."""
    if isinstance(data, Mapping):
        return {name: strip_ignored_fields(value) for name, value in data.items() if name not in IGNORED_FIELDS}
    return [strip_ignored_fields(value) for value in data] if isinstance(data, list | tuple) else data


def split_argument(value: Any, origin: Origin) -> Iterator[ArgumentPart]:
    """Yield the parts of an argument, each with the place in the question or in a step that it comes from, or typed."""
    end = 0
    for part in origin.get("parts", ()):
        own = value[part["item"]] if "item" in part else value[part["start"] : part["end"]]
        if "start" in part and value[end : part["start"]]:
            yield value[end : part["start"]], TYPED_ORIGIN
        yield from split_argument(own, part["origin"])
        end = part.get("end", len(value))
    if "parts" not in origin:
        yield str(value), origin
    elif value[end:]:
        yield value[end:], TYPED_ORIGIN


def divide_at_names(text: str, origin: Origin, names: Iterable[Origin]) -> list[ArgumentPart]:
    """The part itself, or a span of the question divided at the shorter names within it."""
    if origin["from"] != "question":
        return [(text, origin)]
    first = end = origin["start"]
    parts: list[ArgumentPart] = []
    for place in sorted(names, key=lambda place: (place["start"], place["end"])):
        is_within = end <= place["start"] and place["end"] <= origin["end"]
        if is_within and place["end"] - place["start"] < len(text):
            name = (text[place["start"] - first : place["end"] - first], place)
            parts += [(text[end - first : place["start"] - first], TYPED_ORIGIN), name]
            end = place["end"]
    parts.append((text[end - first :], TYPED_ORIGIN if parts else origin))
    return [part for part in parts if part[0]]


def resolve_origin(origin: Origin, question: str, data_by_step: Mapping[int, Mapping[str, Any] | None]) -> str:
    """Return the text that a question, step or span origin points at; BrokenOrigin if there is none."""
    if origin["from"] == "question":
        text = question
    elif origin["from"] == "step":
        text = _resolve_text(data_by_step.get(origin["step"]), origin["pointer"])
    else:
        raise BrokenOrigin(f"an origin of the form {origin['from']!r} points at no single text")
    if "start" in origin:
        if not 0 <= origin["start"] < origin["end"] <= len(text):
            raise BrokenOrigin(f"the span {origin['start']}-{origin['end']} is outside the text of the origin")
        return text[origin["start"] : origin["end"]]
    return text


def rebuild_argument(value: Any, origin: Origin, question: str, data_by_step: Mapping[int, Mapping[str, Any]]) -> Any:
    """The argument from its origin, as it was if only the case differs; BrokenOrigin if there is nothing."""
    if isinstance(value, list) and origin["from"] == "parts":
        items = zip(value, origin["parts"], strict=True)
        return [rebuild_argument(item, part["origin"], question, data_by_step) for item, part in items]
    if is_number(value) and origin["from"] == "step":
        number = _resolve_pointer(data_by_step.get(origin["step"]), origin["pointer"])
        return number if is_number(number) else value
    if not isinstance(value, str):
        return value
    parts = split_argument(value, origin)
    text = "".join(t if o["from"] == "typed" else resolve_origin(o, question, data_by_step) for t, o in parts)
    return value if text.casefold() == value.strip().casefold() else text


def _resolve_text(data: Any, pointer: str) -> str:
    value = _resolve_pointer(data, pointer)
    if is_number(value):
        return str(value)
    if not isinstance(value, str):
        raise BrokenOrigin("the result of the step has no text at the place that the value was taken from")
    return value


def _resolve_pointer(value: Any, pointer: str) -> Any:
    for key in pointer.split("/")[1:]:
        name = key.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and len(name) < 10 and int(name) < len(value):
            value = value[int(name)]
        else:
            raise BrokenOrigin("the result of the step has nothing at the place that the value was taken from")
    return value


def describe_origin(origin: Origin | None) -> str:
    """Describe the origin in a few words for a displayed trace; empty if it was typed or is unknown."""
    if origin is None or origin["from"] == "typed":
        return ""
    if origin["from"] == "question":
        return "(from the question)"
    if origin["from"] == "step":
        return f"(from step {origin['step']})"
    descriptions = dict.fromkeys(
        filter(None, (describe_origin(part["origin"]).strip("()") for part in origin["parts"]))
    )
    return f"({', '.join(descriptions)})" if descriptions else ""
