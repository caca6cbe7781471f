"""Triples with numbered unknowns such as person#1, and the order in which they can be completed."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from pydantic import BaseModel, ConfigDict

from showhow.llm.structured_output import ReplyText
from showhow.reasoners.answers.normalization import answers_equal
from showhow.reasoners.skills.named_things import NamedThings
from showhow.reasoners.skills.set_operations import OperationUndefined, compare_values
from showhow.reasoners.skills.values import AnswerValue, distinct_values

MAX_TRIPLES = 20
_UNKNOWN = re.compile(r"[^#]+#\d+")
_CONDITION = re.compile(r"(before|after) (.+)", re.DOTALL)


class Triple(BaseModel):
    """A fact to be found; an end such as person#1 is unknown, and an object may be a condition: before 5 March 1931."""

    model_config = ConfigDict(frozen=True)

    subject: ReplyText
    """A name, or an unknown such as person#1."""
    relation: ReplyText
    """The relation between subject and object in words."""
    object: ReplyText
    """A name, an unknown such as place#2, or a condition: before 5 March 1931."""

    @property
    def unknowns(self) -> list[str]:
        """The unknown ends."""
        return [end for end in (self.subject, self.object) if is_unknown(end)]

    def __str__(self) -> str:
        return f"({self.subject}, {self.relation}, {self.object})"


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison with a date or number."""

    test: str
    """before or after."""
    value: str


@dataclass(frozen=True, slots=True)
class ScheduledTriple:
    """A triple with the end that is known when its turn comes."""

    number: int
    triple: Triple
    from_subject: bool
    after: frozenset[int] = frozenset()
    """The triples that give the known end its values."""

    @property
    def known_end(self) -> str:
        """The end that is known when its turn comes."""
        return self.triple.subject if self.from_subject else self.triple.object

    @property
    def other_end(self) -> str:
        """The end that its facts complete or have to meet."""
        return self.triple.object if self.from_subject else self.triple.subject


def is_unknown(end: str) -> bool:
    """Whether an end of a triple is an unknown such as person#1."""
    return _UNKNOWN.fullmatch(end.strip()) is not None


def parse_condition(end: str) -> Condition | None:
    """Read a condition such as "before 5 March 1931"; None for any other end."""
    match = _CONDITION.fullmatch(end.strip())
    return Condition(match[1], match[2].strip()) if match else None


def fits_end(value: str, end: str) -> bool:
    """Whether a value can stand at an end: any at an unknown, one that meets a condition, or one that a name names."""
    if is_unknown(end):
        return True
    condition = parse_condition(end)
    try:
        if condition is not None:
            return compare_values(value, condition.value) == condition.test
        return compare_values(value, end) == "equal"
    except OperationUndefined:
        return condition is None and answers_equal(value, end)


def schedule_triples(triples: Sequence[Triple]) -> list[ScheduledTriple]:
    """The triples that can be completed, in an order in which each begins at a known end.

    A triple waits for those that give its known end values; what it shares with others is joined afterwards.
    """
    scheduled: list[ScheduledTriple] = []
    sources: dict[str, list[int]] = {}
    remaining = list(enumerate(triples))
    while remaining:
        ready = next(
            ((number, triple) for number, triple in remaining if _known_end(triple, sources) is not None), None
        )
        if ready is None:
            break
        number, triple = ready
        remaining.remove(ready)
        from_subject = _known_end(triple, sources) == "subject"
        entry = ScheduledTriple(number, triple, from_subject)
        scheduled.append(replace(entry, after=frozenset(sources.get(entry.known_end, ()))))
        if is_unknown(entry.other_end):
            sources.setdefault(entry.other_end, []).append(number)
    return scheduled


def list_ancestors(entry: ScheduledTriple, scheduled: Sequence[ScheduledTriple]) -> list[ScheduledTriple]:
    """The triples whose values lead to the known end of this one, in the order of the schedule."""
    numbers = set(entry.after)
    for earlier in reversed(scheduled):
        if earlier.number in numbers:
            numbers |= earlier.after
    return [earlier for earlier in scheduled if earlier.number in numbers]


def name_owners(pairs: Sequence[AnswerValue], known: Sequence[AnswerValue]) -> list[AnswerValue]:
    """The values with the key of the known value that each belongs to; of several it may stay unnamed."""
    texts = Counter(value.text for value in known)
    keys = {value.text: value.key for value in known if texts[value.text] == 1}
    keys |= {value.key: value.key for value in known}
    only = known[0].key if len(known) == 1 else None
    return [pair.model_copy(update={"of": keys.get(pair.of or "", only)}) for pair in pairs]


def join_values(
    completed: Sequence[tuple[ScheduledTriple, Sequence[AnswerValue]]],
) -> dict[str, list[AnswerValue]]:
    """The values of each unknown for which all these triples can hold; where unknowns form a circle, perhaps more.

    Each triple comes with the values of its other end, with their owners at the known end. Values that a triple
    excludes are left out until nothing changes, so the order of the triples does not matter. A value without an id
    may be any of the things of its name (named_things.py).
    """
    things = NamedThings(chain.from_iterable(pairs for _, pairs in completed))
    completed = [(entry, [thing for pair in pairs for thing in things.identify(pair)]) for entry, pairs in completed]
    values: dict[str, list[AnswerValue]] = {}
    size = None
    while size != (size := sum(map(len, values.values()), len(values))):
        for entry, pairs in completed:
            kept = select_joined(entry, pairs, values)
            if is_unknown(entry.other_end):
                values[entry.other_end] = distinct_values(kept)
            owners = {pair.of for pair in kept}
            if entry.known_end in values and None not in owners:
                values[entry.known_end] = [value for value in values[entry.known_end] if value.key in owners]
    return values


def select_joined(
    entry: ScheduledTriple, pairs: Sequence[AnswerValue], values: Mapping[str, Sequence[AnswerValue]]
) -> list[AnswerValue]:
    """The values of a triple's other end that fit it, and whose both ends are among these values."""
    known, other = (
        {value.key for value in values[end]} if end in values else None for end in (entry.known_end, entry.other_end)
    )
    return [
        pair
        for pair in pairs
        if fits_end(pair.text, entry.other_end)
        and (known is None or pair.of is None or pair.of in known)
        and (other is None or pair.key in other)
    ]


def schedule_independently(triples: Sequence[Triple]) -> list[ScheduledTriple]:
    """The triples that have an end that the question names, each from that end."""
    return [
        ScheduledTriple(number, triple, end == "subject")
        for number, triple in enumerate(triples)
        if (end := _known_end(triple, {})) is not None
    ]


def _known_end(triple: Triple, bound: Mapping[str, Sequence[int]]) -> str | None:
    """The end to begin at: a known subject first; a condition cannot be looked up."""
    if not is_unknown(triple.subject) or triple.subject in bound:
        return "subject"
    if triple.object in bound or not (is_unknown(triple.object) or parse_condition(triple.object)):
        return "object"
    return None


def check_triples(triples: Sequence[Triple], answer: str) -> str | None:
    """What is wrong with a decomposition as one sentence; None if it can be completed."""
    return next(_list_problems(triples, answer), None)


def _list_problems(triples: Sequence[Triple], answer: str) -> Iterator[str]:
    if not triples:
        yield "There is no triple; write at least one."
    if len(triples) > MAX_TRIPLES:
        yield f"There are {len(triples):,} triples; use at most {MAX_TRIPLES}."
    for triple in triples:
        if not (triple.subject.strip() and triple.relation.strip() and triple.object.strip()):
            yield "A part of a triple is empty."
        if is_unknown(triple.relation):
            yield f"The relation {triple.relation} is unknown; name the relation in words."
    scheduled = {entry.number for entry in schedule_triples(triples)}
    for number, triple in enumerate(triples):
        if number not in scheduled:
            yield (
                f"The triple ({triple.subject}, {triple.relation}, {triple.object}) is connected with no name of the "
                "question; begin at a name."
            )
    unknowns = {unknown for triple in triples for unknown in triple.unknowns}
    if is_unknown(answer) and answer not in unknowns:
        yield f"The answer {answer} is in no triple; name one of {', '.join(sorted(unknowns))}."
