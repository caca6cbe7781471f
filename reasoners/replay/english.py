"""English of questions: words as they are compared (inflections, opposites, names, dates), and noun phrases.

A phrase leads from a name to other entities: "the friend of the daughter of Ada Lund".
"""

import re
from dataclasses import dataclass
from datetime import date

from worlds.lexicon.english import load_lexicon, stem_word

TITLES = "|".join(load_lexicon().titles)
"""A title before a name, as a regular expression."""
FUNCTION_WORDS = frozenset(
    "a an the of in on at by to for and or is are was were be been do does did have has had who whom whose what which "
    "when where how many much there that this these those it he she they him her his their person people one with from "
    "could would".split()
)
"""Words that carry no content of a question."""
OPPOSITES = {
    "first": "last",
    "last": "first",
    "earlier": "later",
    "later": "earlier",
    "before": "after",
    "after": "before",
    "earliest": "latest",
    "latest": "earliest",
}
_WORD = r"[A-Z](?:\.(?= [A-Z])|[\w'.-]*\w)?"
NAME = re.compile(rf"(?<![\w'-]){_WORD}(?: (?:(?:of|the|de|von|van|la|le) )?(?:{_WORD}|\d+))*(?: \([^()]+\))?")
YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)")
_MONTHS = "January February March April May June July August September October November December".split()
_SPOKEN = re.compile(rf"(?<!\d)(\d{{1,2}}) ({'|'.join(_MONTHS)}) (\d{{1,4}})(?!\d)")
_ISO = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:T[\d:.]+Z?)?")
_INVARIANT_NOUNS = frozenset(("gender", "residence", "species", "series"))


def words(text: str) -> list[str]:
    """The words of a text in lower case; hyphens separate words."""
    return re.findall(r"[a-z']+", text.casefold().replace("-", " "))


def singular(phrase: str) -> str:
    """The singular of a noun phrase, such as great-aunts, sons-in-law or hobbies."""
    parts = re.split(r"([ -])", phrase)
    return "".join(part if part in _INVARIANT_NOUNS or part in FUNCTION_WORDS else stem_word(part) for part in parts)


def content(text: str) -> set[str]:
    """The content words of a text as stems, without function words."""
    return {_root(word) for word in words(text) if word not in FUNCTION_WORDS}


_VERBS = {"birth": "born", "birthplace": "born", "death": "die", "dead": "die", "wed": "marry", "settled": "reside"}
"""Nouns and verbs mapped to the usual verb of the same meaning."""


def _root(word: str) -> str:
    """The common stem of the forms of a verb: died and die; married, marry and marriage."""
    word = _VERBS.get(word, stem_word(word))
    for ending, instead in (("ied", "y"), ("iage", "y"), ("ed", ""), ("ing", ""), ("e", "")):
        if word.endswith(ending) and len(word) - len(ending) > 1:
            return word.removesuffix(ending) + instead
    return word


LIGHT = content(
    "become became make made take took count among each other couple place day date up together favourite "
    "choose chose chosen pick picked"
)
"""Light words, which add nothing to the noun beside them: became friends, took place, counts among her friends."""


def days_in(text: str) -> list[tuple[int, int, str]]:
    """The dates in a text as (start, end, ISO date)."""
    dates = [(m.start(), m.end(), _day(int(m[3]), _MONTHS.index(m[2]) + 1, int(m[1]))) for m in _SPOKEN.finditer(text)]
    dates += [(m.start(), m.end(), _day(*map(int, m.groups()))) for m in _ISO.finditer(text)]
    return [(start, end, day) for start, end, day in dates if day is not None]


def names_in(text: str) -> list[str]:
    """The names in a text, without dates and function words."""
    for start, end, _ in days_in(text):
        text = text[:start] + "_" * (end - start) + text[end:]
    names = [re.sub(rf"^(?:{TITLES}|His|Her|In|By) ", "", match[0]) for match in NAME.finditer(text)]
    return [name for name in names if name.casefold() not in FUNCTION_WORDS]


def as_day(text: str) -> str | None:
    """The ISO date of a text that is one date; None for any other text."""
    dates = days_in(text)
    return dates[0][2] if len(dates) == 1 and dates[0][:2] == (0, len(text)) else None


def _day(year: int, month: int, day: int) -> str | None:
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return None


def format_day(day: str) -> str:
    """An ISO date as sentences write it: 20 August 1930."""
    year, month, number = (int(part) for part in day.split("-"))
    return f"{number} {_MONTHS[month - 1]} {year}"


def plain(text: str) -> str:
    """A text normalized for comparison: lower case, hyphens as spaces, single spaces."""
    return " ".join(text.casefold().replace("-", " ").split())


def join_names(texts: list[str]) -> str:
    """Join names as "A, B and C"; "Nothing" if there are none."""
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1]))) if texts else "Nothing"


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
