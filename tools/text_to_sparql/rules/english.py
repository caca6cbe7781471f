"""English phrasings of questions, read from english.toml, and a question's words without case and accents."""

import re
import tomllib
import unicodedata
from dataclasses import dataclass
from functools import cache
from importlib import resources

POSSESSIVE_SUFFIX = "'s"

# The possessive, whether 's or the bare apostrophe of a plural; runs of letters and digits; the marks that separate.
_WORD = re.compile(r"(?P<own>['’]s\b|(?<=s)['’](?=\s))|(?P<word>[^\W_]+)|(?P<mark>[,?;:()\"])", re.IGNORECASE)

_IRREGULAR_SINGULARS = {
    "wives": "wife",
    "people": "person",
    "persons": "person",
    "men": "man",
    "women": "woman",
}


@dataclass(frozen=True, slots=True)
class QuestionWord:
    """One word of a text: as compared (`folded`, and `stem` without plural) and where it stands."""

    folded: str
    stem: str
    start: int
    end: int
    capitalized: bool


def split_words(text: str) -> list[QuestionWord]:
    """The words and separating marks of a text, in order; hyphens part words."""
    keys = []
    for match in _WORD.finditer(text):
        folded = POSSESSIVE_SUFFIX if match["own"] else fold_text(match[0])
        keys.append(QuestionWord(folded, stem_word(folded), match.start(), match.end(), match[0][:1].isupper()))
    return keys


def fold_text(text: str) -> str:
    """The text without accents and case."""
    parts = unicodedata.normalize("NFKD", text)
    return "".join(c for c in parts if not unicodedata.combining(c)).casefold()


def stem_word(word: str) -> str:
    """The singular of an English noun, near enough to compare by."""
    if word in _IRREGULAR_SINGULARS:
        return _IRREGULAR_SINGULARS[word]
    if word.endswith("children"):
        return word[: -len("ren")]
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "ches", "shes", "xes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def phrase_key(text: str) -> tuple[str, ...]:
    """A phrase as the stems of its words, marks left out."""
    return tuple(word.stem for word in split_words(text) if word.folded.isalnum() or word.folded == POSSESSIVE_SUFFIX)


PhraseKey = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LexicalEntry:
    """What a word leads to, by how the question begins: paths in the notation of the table."""

    name: str
    """The first form of the word."""
    default_paths: tuple[str, ...]
    paths_by_question_word: dict[str, tuple[str, ...]]

    def paths_for(self, question_word: str | None) -> tuple[str, ...]:
        """The paths for a question that begins with where, when, why or who, or with none of them."""
        return self.paths_by_question_word.get(question_word or "", self.default_paths)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison: the end of the order it wants, and the relations it compares when the question names none.

    `span` names two dates whose distance is compared; `counts` says that it may compare how many there are.
    """

    most: bool
    measures: tuple[str, ...]
    date_span: tuple[str, ...]
    can_count: bool


@dataclass(frozen=True, slots=True)
class EnglishPhrases:
    """The whole table, by phrase."""

    relation_synonyms: dict[PhraseKey, tuple[str, ...]]
    words: dict[PhraseKey, LexicalEntry]
    comparisons: dict[PhraseKey, Comparison]


@cache
def load_english_phrases() -> EnglishPhrases:
    """The table, read once."""
    table = tomllib.loads(
        resources.files("tools.text_to_sparql.rules").joinpath("english.toml").read_text(encoding="utf-8")
    )
    words: dict[PhraseKey, LexicalEntry] = {}
    for entry in table["word"]:
        by_question = {
            question_word: tuple(entry[question_word])
            for question_word in ("where", "when", "why", "who")
            if question_word in entry
        }
        words.update(
            dict.fromkeys(map(phrase_key, entry["ask"]), LexicalEntry(entry["ask"][0], tuple(entry["to"]), by_question))
        )
    thans: dict[PhraseKey, Comparison] = {}
    for entry in table["than"]:
        than = Comparison(
            entry["order"] == "most", tuple(entry.get("of", ())), tuple(entry.get("span", ())), "counts" in entry
        )
        thans.update(dict.fromkeys(map(phrase_key, entry["ask"]), than))
    return EnglishPhrases({phrase_key(name): tuple(others) for name, others in table["names"].items()}, words, thans)
