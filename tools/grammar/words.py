"""A question as words that can be compared: without case and accents, with their places in the text."""

import re
import unicodedata
from dataclasses import dataclass

POSSESSIVE = "'s"

# The possessive, whether 's or the bare apostrophe of a plural; runs of letters and digits; the marks that separate.
_WORD = re.compile(r"(?P<own>['’]s\b|(?<=s)['’](?=\s))|(?P<word>[^\W_]+)|(?P<mark>[,?;:()\"])", re.IGNORECASE)

_IRREGULAR = {
    "wives": "wife",
    "people": "person",
    "persons": "person",
    "men": "man",
    "women": "woman",
}


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a text: as compared (`folded`, and `stem` without plural) and where it stands."""

    folded: str
    stem: str
    start: int
    end: int
    capital: bool


def words_of(text: str) -> list[Word]:
    """The words and separating marks of a text, in order; hyphens part words."""
    found = []
    for match in _WORD.finditer(text):
        folded = POSSESSIVE if match["own"] else fold(match[0])
        found.append(Word(folded, stem(folded), match.start(), match.end(), match[0][:1].isupper()))
    return found


def fold(text: str) -> str:
    """The text without accents and case."""
    parts = unicodedata.normalize("NFKD", text)
    return "".join(c for c in parts if not unicodedata.combining(c)).casefold()


def stem(word: str) -> str:
    """The singular of an English noun, near enough to compare by."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word.endswith("children"):
        return word[: -len("ren")]
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "ches", "shes", "xes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def key_of(text: str) -> tuple[str, ...]:
    """A phrase as the stems of its words, marks left out."""
    return tuple(word.stem for word in words_of(text) if word.folded.isalnum() or word.folded == POSSESSIVE)
