"""English of questions: words as they are compared, noun phrases, and the operations that give an answer from values.

A phrase leads from a name to other entities: "the friend of the daughter of Ada Lund".
"""

import re
from collections.abc import Callable, Sequence
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


ALL, COUNT, EQUAL, BEFORE, AFTER = "all", "count", "equal", "before", "after"
FIRST, LAST, OVERLAP, WITHIN = "first", "last", "overlap", "within"
YES, NO = "yes", "no"
FLIPPED = {BEFORE: AFTER, AFTER: BEFORE, FIRST: LAST, LAST: FIRST}


class UndecidedAnswer(Exception):
    """The values do not decide the answer; the message says why."""


@dataclass(frozen=True, slots=True)
class LookupValues:
    """The values found for one hole: its things, and for each of them the values of every template."""

    things: tuple[str, ...]
    values: tuple[tuple[tuple[str, ...], ...], ...] = ()
    """values[i][j] holds the values of things[i] for template j."""


def apply_operation(operation: str, holes: Sequence[LookupValues], value: str = "") -> list[str]:
    """Return the answers, [] if there are none; UndecidedAnswer if the values are not sufficient."""
    return _OPERATIONS[operation](holes, value)


def _all(holes: Sequence[LookupValues], _value: str) -> list[str]:
    if any(hole.values for hole in holes):
        texts = [text for hole in holes for values_by_template in hole.values for text in values_by_template[-1]]
    else:
        texts = [thing for hole in holes for thing in hole.things]
    return list(dict.fromkeys(texts))


def _count(holes: Sequence[LookupValues], value: str) -> list[str]:
    return [str(len(_all(holes, value)))]


def _equal(holes: Sequence[LookupValues], value: str) -> list[str]:
    return [thing for hole in holes for thing, values in _pair_values(hole) if plain(value) in map(plain, values)]


def _before(holes: Sequence[LookupValues], value: str) -> list[str]:
    bound = f"{value}-01-01" if YEAR.fullmatch(value) else as_day(value) or value
    return [thing for thing, day in _collect_days(holes) if day < bound]


def _after(holes: Sequence[LookupValues], value: str) -> list[str]:
    bound = f"{value}-12-31" if YEAR.fullmatch(value) else as_day(value) or value
    return [thing for thing, day in _collect_days(holes) if day > bound]


def _first(holes: Sequence[LookupValues], _value: str) -> list[str]:
    return _at_end(holes, min)


def _last(holes: Sequence[LookupValues], _value: str) -> list[str]:
    return _at_end(holes, max)


def _at_end(holes: Sequence[LookupValues], end: Callable[[list[str]], str]) -> list[str]:
    if len(holes) > 1 and any(len(hole.things) != 1 for hole in holes):
        raise UndecidedAnswer("one side of the comparison has several entities or none")
    dated = _collect_days(holes)
    if len(holes) > 1 and len(dated) < len(holes):
        known = {thing for thing, _ in dated}
        missing = [thing for hole in holes for thing in hole.things if thing not in known]
        raise UndecidedAnswer(f"there is no date for {' and '.join(missing)}")
    if not dated:
        return []
    extreme = end([day for _, day in dated])
    return [thing for thing, day in dated if day == extreme]


def _overlap(holes: Sequence[LookupValues], _value: str) -> list[str]:
    spans = [_span(hole) for hole in holes if len(hole.values[0]) > 1]
    if len(spans) != 2:
        raise UndecidedAnswer("there are not two periods to compare")
    return [YES if max(spans[0][0], spans[1][0]) <= min(spans[0][1], spans[1][1]) else NO]


def _within(holes: Sequence[LookupValues], _value: str) -> list[str]:
    spans = [_span(hole) for hole in holes if hole.values and len(hole.values[0]) > 1]
    days = [_one_day(hole) for hole in holes if not hole.values or len(hole.values[0]) == 1]
    if len(spans) != 1 or len(days) != 1:
        raise UndecidedAnswer("there are not a period and a date to compare")
    return [YES if spans[0][0] <= days[0] <= spans[0][1] else NO]


def _span(hole: LookupValues) -> tuple[str, str]:
    """The first and the last day of a period; without a known end it is open."""
    if len(hole.things) != 1:
        raise UndecidedAnswer("one side of the comparison has several entities or none")
    starts, ends = hole.values[0][0], hole.values[0][1]
    if len(starts) != 1 or len(ends) > 1 or not all(map(as_day, (*starts, *ends))):
        raise UndecidedAnswer(f"there is no single date for {hole.things[0]}")
    return starts[0], ends[0] if ends else "9999-12-31"


def _one_day(hole: LookupValues) -> str:
    texts = _all([hole], "")
    if len(texts) != 1 or not as_day(texts[0]):
        raise UndecidedAnswer(f"there is no single date for {' and '.join(hole.things) or 'one of them'}")
    return texts[0]


def _pair_values(hole: LookupValues) -> list[tuple[str, tuple[str, ...]]]:
    return [(thing, values[-1]) for thing, values in zip(hole.things, hole.values, strict=True)]


def _collect_days(holes: Sequence[LookupValues]) -> list[tuple[str, str]]:
    days = []
    for thing, values in (pair for hole in holes for pair in _pair_values(hole)):
        if len(values) > 1 or not all(map(as_day, values)):
            raise UndecidedAnswer(f"there is no single date for {thing}")
        days += [(thing, day) for day in values]
    return days


_OPERATIONS: dict[str, Callable[[Sequence[LookupValues], str], list[str]]] = {
    ALL: _all,
    COUNT: _count,
    EQUAL: _equal,
    BEFORE: _before,
    AFTER: _after,
    FIRST: _first,
    LAST: _last,
    OVERLAP: _overlap,
    WITHIN: _within,
}
_OPERATION_WORDS = {"before": BEFORE, "after": AFTER}


def infer_operation(holes: Sequence[LookupValues], value: str, answer: str, words: set[str]) -> str | None:
    """Infer the operation that leads from the values of a demonstration to its answer; None if there is none."""
    expected = sorted(map(plain, answer.split(", ")))
    for operation in _candidates(value, answer, words):
        try:
            answers = apply_operation(operation, holes, value)
        except (UndecidedAnswer, IndexError):
            continue
        if sorted(map(plain, answers)) == expected:
            return operation
    # The values may be incomplete; then a word such as before or after in the question decides.
    word_operations = [_OPERATION_WORDS[word] for word in words if word in _OPERATION_WORDS]
    return word_operations[0] if value and word_operations else None


def _candidates(value: str, answer: str, words: set[str]) -> list[str]:
    if value:
        return [BEFORE, AFTER, EQUAL]
    if plain(answer) in (YES, NO):
        return [OVERLAP, WITHIN]
    if words & OPPOSITES.keys():
        return [FIRST, LAST]
    return [COUNT] if answer.isdecimal() else [ALL]
