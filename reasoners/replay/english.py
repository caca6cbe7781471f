"""English words for comparing questions: inflections, opposites, names, dates."""

import re
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
