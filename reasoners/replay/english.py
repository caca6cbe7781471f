"""The English that questions are compared with: inflections, opposites, names, dates."""

import re
from datetime import date

from tools.text_to_sparql.rules.english import stem_word

FUNCTION_WORDS = frozenset(
    "a an the of in on at by to for and or is are was were be been do does did have has had who whom whose what which "
    "when where how many much there that this these those it he she they him her his their person people one with from "
    "could would".split()
)
"""Words that say how a question is put, not what it is about."""
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
    """The words of a text in small letters; hyphens part words."""
    return re.findall(r"[a-z']+", text.casefold().replace("-", " "))


def singular(phrase: str) -> str:
    """A noun phrase for one instead of several: great-aunts, sons-in-law, hobbies."""
    parts = re.split(r"([ -])", phrase)
    return "".join(
        part if part in _INVARIANT_NOUNS or part in FUNCTION_WORDS else _singularize_word(part) for part in parts
    )


def _singularize_word(word: str) -> str:
    if word.endswith("wives"):
        return word.removesuffix("ves") + "fe"
    return stem_word(word)


def content(text: str) -> set[str]:
    """What a text speaks of: the stems of its words without those that only hold it together."""
    return {_root(word) for word in words(text) if word not in FUNCTION_WORDS}


_VERBS = {"birth": "born", "birthplace": "born", "death": "die", "dead": "die", "wed": "marry", "settled": "reside"}
"""Words whose usual verb looks otherwise."""


def _root(word: str) -> str:
    """A stem under which the forms of a verb meet: died and die, married and marry and marriage."""
    word = _VERBS.get(word, stem_word(word))
    for ending, instead in (("ied", "y"), ("iage", "y"), ("ed", ""), ("ing", ""), ("e", "")):
        if word.endswith(ending) and len(word) - len(ending) > 1:
            return word.removesuffix(ending) + instead
    return word


LIGHT = content(
    "become became make made take took count among each other couple place day date up together favourite "
    "choose chose chosen pick picked"
)
"""Words that add nothing to the noun beside them: became friends, took place, counts him among her friends."""


def days_in(text: str) -> list[tuple[int, int, str]]:
    """Every date in a text: where it stands and, as 1930-08-20, which day it is."""
    results = [
        (m.start(), m.end(), _day(int(m[3]), _MONTHS.index(m[2]) + 1, int(m[1]))) for m in _SPOKEN.finditer(text)
    ]
    results += [(m.start(), m.end(), _day(*map(int, m.groups()))) for m in _ISO.finditer(text)]
    return [(start, end, day) for start, end, day in results if day is not None]


def names_in(text: str) -> list[str]:
    """Every name in a text but those of months; the first word of a sentence is none by itself."""
    for start, end, _ in days_in(text):
        text = text[:start] + "_" * (end - start) + text[end:]
    results = [re.sub(r"^(?:Mr|Ms|Mrs|His|Her|In|By) ", "", match[0]) for match in NAME.finditer(text)]
    return [name for name in results if name.casefold() not in FUNCTION_WORDS]


def as_day(text: str) -> str | None:
    """The day that a text is, as 1930-08-20; None for any other text."""
    results = days_in(text)
    return results[0][2] if len(results) == 1 and results[0][:2] == (0, len(text)) else None


def _day(year: int, month: int, day: int) -> str | None:
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return None


def format_day(day: str) -> str:
    """A day as sentences write it: 20 August 1930."""
    year, month, number = (int(part) for part in day.split("-"))
    return f"{number} {_MONTHS[month - 1]} {year}"


def plain(text: str) -> str:
    """A text as it is compared: small letters, hyphens as spaces, one space."""
    return " ".join(text.casefold().replace("-", " ").split())


def join_names(texts: list[str]) -> str:
    """A, B and C."""
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1]))) if texts else "Nothing"
