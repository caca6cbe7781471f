"""Links of arguments to the places that their values come from: those of a whole trace, and those that are offered.

A demonstration can be repeated with other names where its arguments are linked; what was typed stays as it is.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from showhow.db.models import Step
from showhow.db.traces.trace_record import TraceRecord
from showhow.reasoners.provenance import (
    EXTERNAL_FIELDS,
    MIN_PART_CHARS,
    TYPED_ORIGIN,
    BrokenOrigin,
    KnownValue,
    Origin,
    collect_known_sentences,
    collect_known_values,
    find_origin,
    is_number,
    iterate_scalars,
    rebuild_argument,
    split_argument,
    trace_argument_origins,
)
from showhow.worlds.text_normalization import normalize_name

MAX_OFFERS = 3
"""The places that are offered for one argument."""
_NUMBER = re.compile(r"(?<![\w.,:#-])\d+(?:\.\d+)?(?![\w-])")


class LinkOffer(NamedTuple):
    """A place that an argument may have been taken from."""

    origin: Origin
    text: str
    """What stands there, as a whole."""


class ArgumentToLink(NamedTuple):
    """An argument that was typed, or whose origin leads nowhere; with the places that may be its origin."""

    step: Step
    name: str
    is_broken: bool
    offers: Sequence[LinkOffer]


def iterate_origins(origin: Origin) -> Iterator[Origin]:
    """Yield the places in the question and in steps from which parts of a value were taken."""
    if origin["from"] == "parts":
        for part in origin["parts"]:
            yield from iterate_origins(part["origin"])
    elif origin["from"] != "typed":
        yield origin


def complete_origins(record: TraceRecord) -> dict[int, dict[str, Origin]]:
    """The origins of all arguments by step; where a trace has none, as imported ones, they are traced."""
    data: dict[int, Mapping[str, Any] | None] = {}
    origins: dict[int, dict[str, Origin]] = {}
    for step in record.steps:
        missing = {name: value for name, value in step.arguments.items() if name not in step.origins}
        traced = trace_argument_origins(missing, record.question.full_text, data) if missing else {}
        own = {name: step.origins.get(name) or traced[name] for name in step.arguments}
        origins[step.position] = _link_numbers(step.arguments, own, record.question.full_text, data)
        data[step.position] = step.data
    return origins


def trace_external_origins(
    arguments: Mapping[str, Any], question: str, data: Mapping[int, Mapping[str, Any] | None]
) -> dict[str, Origin]:
    """The origins of the arguments of an external tool, those of numbers within texts included.

    Nothing else in a text tells that a number was taken from somewhere; so it has to be the only one that it can be: of
    several digits and once in the question, or the only number of the latest result.
    """
    return _link_numbers(arguments, trace_argument_origins(arguments, question, data), question, data)


def _link_numbers(
    arguments: Mapping[str, Any],
    origins: Mapping[str, Origin],
    question: str,
    data: Mapping[int, Mapping[str, Any] | None],
) -> dict[str, Origin]:
    places = _list_numbers(question, data)
    return {name: _link_number(value, origins[name], places) for name, value in arguments.items()}


def _list_numbers(question: str, data: Mapping[int, Mapping[str, Any] | None]) -> dict[str, Origin]:
    spans: dict[str, list[tuple[int, int]]] = {}
    for match in _NUMBER.finditer(question):
        spans.setdefault(match.group(), []).append(match.span())
    places: dict[str, Origin] = {
        number: {"from": "question", "start": own[0][0], "end": own[0][1]}
        for number, own in spans.items()
        if len(own) == 1 and len(number) >= MIN_PART_CHARS
    }
    latest = max(data, default=0)
    result = {name: value for name, value in ((data.get(latest) or {}).items()) if name in EXTERNAL_FIELDS}
    numbers = [(text, pointer) for text, pointer in iterate_scalars(result, "") if _NUMBER.fullmatch(text)]
    if len(numbers) == 1:
        places.setdefault(numbers[0][0], {"from": "step", "step": latest, "pointer": numbers[0][1]})
    return places


def _link_number(value: Any, origin: Origin, places: Mapping[str, Origin]) -> Origin:
    if origin == TYPED_ORIGIN and is_number(value):
        return places.get(str(value), origin)
    if not isinstance(value, str) or origin["from"] not in ("typed", "parts"):
        return origin
    parts = list(origin.get("parts", ()))
    matches = list(_NUMBER.finditer(value))
    for match in matches:
        is_free = all(match.end() <= part["start"] or part["end"] <= match.start() for part in parts)
        is_only = sum(other.group() == match.group() for other in matches) == 1
        if is_free and is_only and match.group() in places:
            parts.append({"start": match.start(), "end": match.end(), "origin": places[match.group()]})
    return {"from": "parts", "parts": sorted(parts, key=lambda part: int(part["start"]))} if parts else origin


def list_arguments_to_link(record: TraceRecord) -> list[ArgumentToLink]:
    """The arguments of calls that were typed as a whole, and those whose origins lead nowhere."""
    question, data = record.question.full_text, dict[int, Mapping[str, Any]]()
    unlinked = []
    for step in record.steps:
        for name, value in step.arguments.items() if step.tool is not None and step.error is None else ():
            origin = step.origins.get(name, TYPED_ORIGIN)
            is_broken = not _is_rebuilt(value, origin, question, data)
            if is_broken or _is_typed(value, origin):
                offers = find_offers(value, question, data) if isinstance(value, str) or is_number(value) else []
                unlinked.append(ArgumentToLink(step, name, is_broken, offers))
        data[step.position] = step.data or {}
    return unlinked


def _is_rebuilt(value: Any, origin: Origin, question: str, data: Mapping[int, Mapping[str, Any]]) -> bool:
    try:
        return bool(rebuild_argument(value, origin, question, data) == value)
    except BrokenOrigin:
        return False


def _is_typed(value: Any, origin: Origin) -> bool:
    """Whether the value is a text, or a list of texts, of which no part has an origin."""
    is_text = isinstance(value, str | list) and bool(value)
    return is_text and all(own == TYPED_ORIGIN for _, own in split_argument(value, origin))


def find_offers(value: Any, question: str, data: Mapping[int, Mapping[str, Any]]) -> list[LinkOffer]:
    """The places that may be the origin of an argument: values that equal it, before those that contain it."""
    known = collect_known_values(data)
    places = [KnownValue(question, {"from": "question"}), *known, *collect_known_sentences(data)]
    text = str(value).strip()
    origin = find_origin(value, question, known, collect_known_sentences(data))
    offers = [LinkOffer(origin, _shown_text(origin, places))] if origin["from"] in ("question", "step") else []
    key = normalize_name(text)
    equal = [LinkOffer(own.origin, own.text) for own in known if normalize_name(own.text) == key]
    containing = (
        LinkOffer({**own.origin, "start": start, "end": start + len(text)}, own.text)
        for own in places
        if len(text) >= MIN_PART_CHARS and (start := own.text.casefold().find(text.casefold())) >= 0
    )
    for offer in chain(equal, () if is_number(value) else containing):
        same_text = all(other.text != offer.text for other in offers)
        if same_text and len(offers) < MAX_OFFERS:
            offers.append(offer)
    return offers


def _shown_text(origin: Origin, places: Sequence[KnownValue]) -> str:
    at = (origin["from"], origin.get("step"), origin.get("pointer"))
    fitting = (p.text for p in places if (p.origin["from"], p.origin.get("step"), p.origin.get("pointer")) == at)
    return next(fitting, "")
