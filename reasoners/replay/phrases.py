"""Parses noun phrases that lead from a name to other entities: "the friend of the daughter of Ada Lund"."""

import re
from dataclasses import dataclass

from reasoners.replay.english import NAME, singular

_RELATION = re.compile(
    r"(?:(?:the|an|a) )?(?P<relation>[a-z][\w'-]*(?: [a-z][\w'-]*){0,5}?) of (?=(?:the|those) [a-z]|[A-Z]|people )"
)
_HAVING = re.compile(r"(?:(?:(?:the|a|an|those) )?(?P<who>[a-z]+) )?(?=whose )")
_WHOSE = re.compile(r"whose (?P<fact>[a-z][a-z '-]*?) is (?P<value>.+?)(?= and whose |$)(?: and )?")
_RANKED = re.compile(r"(?P<order>first|last|earliest|latest)-(?P<event>[a-z]+)")
_LEAD = re.compile(
    r"(?:(?<=\s)|^)(?:the|a|an) [a-z][\w'-]*(?: (?!the )[a-z][\w'-]*){0,5} of $"
    r"|(?<=Which )[a-z][a-z '-]* of $|(?<=many )[a-z][a-z '-]* of $"
)


@dataclass(frozen=True, slots=True)
class NameReference:
    """A name in the question."""

    text: str


@dataclass(frozen=True, slots=True)
class PropertyReference:
    """All entities with these properties: (("occupation", "baker"), ("hobby", "chess"))."""

    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """A parsed noun phrase: its start, and the relations that lead away from it, the outermost first."""

    relations: tuple[str, ...]
    start: NameReference | PropertyReference

    @property
    def names(self) -> tuple[str, ...]:
        """The relations and properties in the phrase."""
        facts = self.start.facts if isinstance(self.start, PropertyReference) else ()
        return (*self.relations, *(fact for fact, _ in facts))


def parse_phrase(text: str) -> NounPhrase | None:
    """Parse a text as a noun phrase; None if it is none."""
    relations, rest = [], text.strip()
    while match := _RELATION.match(rest):
        relations.append(match["relation"])
        rest = rest[match.end() :]
    start = _start(rest)
    if start is None:
        return None
    plural_indexes = [index for index in range(len(relations)) if index == 0 or parse_ranking(relations[index - 1])]
    for index in plural_indexes:
        relations[index] = singular(relations[index])
    return NounPhrase(tuple(relations), start)


def parse_ranking(relation: str) -> tuple[str, str] | None:
    """The order and the event of a superlative: (latest, born) for latest-born; None for any other noun."""
    match = _RANKED.fullmatch(relation)
    return (match["order"], match["event"]) if match else None


def _start(text: str) -> NameReference | PropertyReference | None:
    if NAME.fullmatch(text):
        return NameReference(text)
    match = _HAVING.match(text)
    if match is None:
        return None
    facts, position = [], match.end()
    while fact := _WHOSE.match(text, position):
        facts.append((fact["fact"], fact["value"]))
        position = fact.end()
    return PropertyReference(tuple(facts)) if facts and position == len(text) else None


def widen_phrase(question: str, start: int, end: int) -> tuple[int, int]:
    """Extend a span of the question to the widest noun phrase around it, with its relations or properties."""
    lead = re.search(r"(?:(?:the|a|an|those) )?(?:[a-z]+ )?whose [a-z][a-z '-]*? is $", question[:start])
    if lead:
        before = re.search(r"(?:(?:the|a|an|those) )?(?:person|people|one)? ?whose .* and $", question[: lead.start()])
        start = before.start() if before else _noun(question, lead.start())
        after = re.match(r" and whose [a-z][a-z '-]*? is [^?]+", question[end:])
        end += after.end() if after else 0
    while wider_start := _widen_once(question, start, end):
        start = wider_start
    return start, end


def _noun(question: str, place: int) -> int:
    """The start of the noun before "whose", or of "whose" if there is no such noun."""
    match = re.compile(r"(?:the |a |an |those )?(?:person|people|one|somebody|everybody) ").match(question, place)
    return place if match else question.index("whose ", place)


def _widen_once(question: str, start: int, end: int) -> int | None:
    """The start of the phrase extended by one relation; None if there is none before it."""
    lead = _LEAD.search(question[:start])
    if lead is None:
        return None
    return lead.start() if parse_phrase(question[lead.start() : end]) else None
