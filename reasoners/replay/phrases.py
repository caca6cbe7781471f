"""Noun phrases that lead from something named to what is asked: "the friend of the daughter of Ada Lund"."""

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
    """A name as it stands in the question."""

    text: str


@dataclass(frozen=True, slots=True)
class PropertyReference:
    """Everybody who has these values: (("occupation", "baker"), ("hobby", "chess"))."""

    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """Who or what is meant: relations, the outermost first, that lead away from the start."""

    relations: tuple[str, ...]
    start: NameReference | PropertyReference

    @property
    def names(self) -> tuple[str, ...]:
        """Every relation and fact that it names."""
        facts = self.start.facts if isinstance(self.start, PropertyReference) else ()
        return (*self.relations, *(fact for fact, _ in facts))


def parse_phrase(text: str) -> NounPhrase | None:
    """What a whole text means as a noun phrase; None where it is none."""
    relations, rest = [], text.strip()
    while match := _RELATION.match(rest):
        relations.append(match["relation"])
        rest = rest[match.end() :]
    start = _start(rest)
    if start is None:
        return None
    several = [place for place in range(len(relations)) if place == 0 or parse_ranking(relations[place - 1])]
    for place in several:
        relations[place] = singular(relations[place])
    return NounPhrase(tuple(relations), start)


def parse_ranking(relation: str) -> tuple[str, str] | None:
    """The order and the event where a noun picks one of several: the latest-born, latest and born."""
    match = _RANKED.fullmatch(relation)
    return (match["order"], match["event"]) if match else None


def _start(text: str) -> NameReference | PropertyReference | None:
    if NAME.fullmatch(text):
        return NameReference(text)
    match = _HAVING.match(text)
    if match is None:
        return None
    facts, place = [], match.end()
    while results := _WHOSE.match(text, place):
        facts.append((results["fact"], results["value"]))
        place = results.end()
    return PropertyReference(tuple(facts)) if facts and place == len(text) else None


def widen_phrase(question: str, start: int, end: int) -> tuple[int, int]:
    """The widest noun phrase of a question that grows from a span: to its relations, or to all that somebody has."""
    lead = re.search(r"(?:(?:the|a|an|those) )?(?:[a-z]+ )?whose [a-z][a-z '-]*? is $", question[:start])
    if lead:
        before = re.search(r"(?:(?:the|a|an|those) )?(?:person|people|one)? ?whose .* and $", question[: lead.start()])
        start = before.start() if before else _noun(question, lead.start())
        after = re.match(r" and whose [a-z][a-z '-]*? is [^?]+", question[end:])
        end += after.end() if after else 0
    while results := _widen_once(question, start, end):
        start = results
    return start, end


def _noun(question: str, place: int) -> int:
    """Where the noun before "whose" begins, which is none where another word stands there."""
    match = re.compile(r"(?:the |a |an |those )?(?:person|people|one|somebody|everybody) ").match(question, place)
    return place if match else question.index("whose ", place)


def _widen_once(question: str, start: int, end: int) -> int | None:
    """Where the phrase begins with one more relation before it."""
    lead = _LEAD.search(question[:start])
    if lead is None:
        return None
    return lead.start() if parse_phrase(question[lead.start() : end]) else None
