"""Phrasings of facts, read from phrasings.toml and expanded for gender, living or dead, and "a" or "an"."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

_PHRASINGS_FILE = Path(__file__).with_name("phrasings.toml")
FEMALE, DECEASED, VOWEL = 4, 2, 1
"""Bits of a sentence's shape: a female subject, past tense, and a value that takes "an"."""
SHAPE_COUNT = FEMALE + DECEASED + VOWEL + 1
_GENDER_WORDS = {"She": "He", "she": "he", "Her": "His", "her": "his", "woman": "man", "female": "male"}
_PAST_WORDS = {
    "is": "was",
    "are": "were",
    "has": "had",
    "lives": "lived",
    "resides": "resided",
    "works": "worked",
    "enjoys": "enjoyed",
    "counts": "counted",
}


@dataclass(frozen=True, slots=True)
class Phrasings:
    """Phrasings of one kind of fact, as format strings: {0} is the subject, {1} the value.

    Phrasing p in shape s is formats[p * SHAPE_COUNT + s]; the phrasings for a single value come first.
    """

    formats: tuple[str, ...]
    single_count: int
    """Number of phrasings for a single value."""
    several_count: int
    """Number of phrasings for several values in one sentence."""


@dataclass(frozen=True, slots=True)
class ProseStyle:
    """Style of articles: sections, phrasings and formats."""

    sections: tuple[tuple[str, tuple[str, ...]], ...]
    """Headings with the kinds of facts below them, in order; the introduction has an empty heading."""
    phrasings: Mapping[str, Phrasings]
    date_style: str
    """Date format: "words" or "digits"."""
    subject_style: str
    """Whether sentences call the subject by "name" or by "title"."""
    last_separator: str
    """Separator before the last of several values; commas separate the others."""
    keep_empty_sections: bool
    """Whether headings of empty sections are written."""

    def join_values(self, values: Sequence[str]) -> str:
        """Join values into one phrase: "A, B and C"."""
        return self.last_separator.join((", ".join(values[:-1]), values[-1])) if len(values) > 1 else values[0]


@cache
def load_prose_style(*, plain: bool) -> ProseStyle:
    """The style of articles; `plain` is the single template of the PhantomWiki paper."""
    table = _read_table("plain" if plain else "prose")
    return ProseStyle(
        sections=tuple((heading, tuple(kinds)) for heading, *kinds in table["sections"]),
        phrasings={kind: _expand_phrasings(ways, table["many"].get(kind, ())) for kind, ways in table["one"].items()},
        date_style=table["date"],
        subject_style=table["subject"],
        last_separator=table["last"],
        keep_empty_sections=table["empty"],
    )


@cache
def load_web_phrasings(*, then: bool) -> Mapping[str, Phrasings]:
    """Phrasings of web pages by kind of fact; `then` selects those of old pages."""
    table = _read_table("web")["then" if then else "now"]
    return {kind: _expand_phrasings(ways, ()) for kind, ways in table.items()}


def takes_article_an(word: str) -> bool:
    """Whether the word takes "an" instead of "a"."""
    lower = word.lower()
    if lower.startswith(("uni", "uro", "use", "ute", "eu", "one")):
        return False
    return lower.startswith(("a", "e", "i", "o", "u", "hour", "honest", "honorary", "heir"))


def _read_table(table: str) -> dict[str, Any]:
    tables: dict[str, Any] = tomllib.loads(_PHRASINGS_FILE.read_text(encoding="utf-8"))[table]
    return tables


def _expand_phrasings(one: Sequence[str], many: Sequence[str]) -> Phrasings:
    formats = tuple(
        phrasing.format_map(_substitutions(female=female, gone=gone, vowel=vowel))
        for phrasing in (*one, *many)
        for female, gone, vowel in product((False, True), repeat=3)
    )
    return Phrasings(formats, len(one), len(many))


def _substitutions(*, female: bool, gone: bool, vowel: bool) -> dict[str, str]:
    genders = {word: word if female else other for word, other in _GENDER_WORDS.items()}
    lives = {word: past if gone else word for word, past in _PAST_WORDS.items()}
    return {**genders, **lives, "a": "an" if vowel else "a", "name": "{0}", "value": "{1}"}
