"""English knowledge of relations, read from english.toml, classes of function words, and the words of a text."""

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from importlib import resources
from itertools import chain
from typing import Any

from showhow.worlds.text_normalization import STOP_WORDS

MALE, FEMALE = "male", "female"
POSSESSIVE_SUFFIX = "'s"
_PARENT_OF_SIDE = {"paternal": "father", "maternal": "mother"}
_MIN_COMPOUND_PLURAL = 5
"""Letters of an irregular plural that also ends compounds: grandchildren, but not specimen."""

AUXILIARY_VERBS = frozenset(["is", "are", "was", "were", "do", "does", "did", "has", "have", "had", "can"])
POSSESSIONS = frozenset(["has", "have", "had"])
SUPPORTS = frozenset(["do", "does", "did"])
DETERMINERS = frozenset(["the", "a", "an", "both", "his", "her", "its", "their", "all", "of"])
RELATIVE_PRONOUNS = frozenset(["who", "that", "which", "whoever"])
PREPOSITIONS = frozenset(["of", "in", "on", "at", "to", "for", "by", "with", "from", "as", "about"])
CONJUNCTIONS = frozenset(["and", "or"])
_PRONOUNS = frozenset(
    "this these those it he she they them me us one ones each any there whom whose whoever somebody anybody".split()
)
_EMPHASES = frozenset("please exactly precisely actually really responsible credited".split())
"""Words that stress a question, or say of a relation only that somebody has it."""
INTRANSITIVE_LIGHT_VERBS = frozenset("come comes came occur occurs occurred happen happens happened".split())
LIGHT_VERBS = INTRANSITIVE_LIGHT_VERBS | frozenset(
    "get gets got take takes took taken hold holds held given go goes went".split()
)
"""Verbs that mean nothing of their own beside the noun that they support: took as a spouse, got an education."""

VALUE_QUESTION_WORDS = frozenset(["where", "when"])
"""Words that ask for a value, and so not for one of several things, nor for yes or no."""
_QUESTION_WORDS = VALUE_QUESTION_WORDS | {"what", "whether"}
GENERIC_NOUNS = frozenset("person man woman guy individual human thing someone".split())
GENDERED_NOUNS = {"man": MALE, "woman": FEMALE, MALE: MALE, FEMALE: FEMALE}
"""The words that state a gender where they are asked for: which woman, which of them are female."""
THIRD_PERSON_PRONOUNS = frozenset("he she it they him her them his its their".split())
POSSESSIVE_PRONOUNS = frozenset("his her its their".split())
PERSON_ENDINGS = ("er", "or", "ist", "ian", "man", "woman", "ess")
"""Endings of nouns for people by what they do."""
_MARKS = frozenset([",", "?", ";", ":", "(", ")", '"', "!", POSSESSIVE_SUFFIX])
REASON_WORDS = frozenset(["why", "how"])
COUNT_WORDS = frozenset(["many", "number"])
COMPARISON_WORDS = frozenset(["than", "other"])
CHOICE_WORDS = frozenset(["out", "between", "among", "either", "two", "other"])
"""Words about a set of several entities."""
SAMENESS_WORDS = frozenset(["same", "share", "shared", "common", "different"])
PARTS_OF_DATES = frozenset(["month", "year"])
"""Nouns for less than a date says, so that two dates may differ in the same year."""
MODAL_VERBS = frozenset(["would", "could"])
YES_NO_OPENERS = AUXILIARY_VERBS | MODAL_VERBS | frozenset("am may might must shall should will".split())
"""Words that open a question for yes or no."""
SPEAKERS = frozenset(["i", "you", "we"])
REQUEST_WORDS = frozenset(
    "name tell give list state say show know find identify looking pick like want wish".split()
    + "would could d i me you us we".split()
)
"""Words that mean nothing where a question begins with them: tell me, could you say."""
RESTRICTIONS = frozenset(
    "not never no none neither nor without except but unlike only behind after before during since until against near "
    "over under above below beside besides despite within beyond around through via".split()
)
"""Negations and prepositions that change what is asked, and so are no part of a noun before a name."""
DECISIVE_WORDS = (
    RESTRICTIONS | REASON_WORDS | VALUE_QUESTION_WORDS | frozenset("ever every last many more most much same".split())
)
"""Words without content of their own that change what is asked."""
MINOR_WORDS = (STOP_WORDS | {"than", "there", POSSESSIVE_SUFFIX}) - DECISIVE_WORDS
"""Words that may differ between two questions with the same meaning."""
COPULAS = frozenset(["is", "are", "was", "were"])
PLAIN_WORDS = (
    AUXILIARY_VERBS
    | DETERMINERS
    | RELATIVE_PRONOUNS
    | PREPOSITIONS
    | CONJUNCTIONS
    | _PRONOUNS
    | _QUESTION_WORDS
    | GENERIC_NOUNS
    | _MARKS
    | _EMPHASES
    | {"be", "been", "being"}
)
"""Words that carry no content of their own wherever they stand."""
FUNCTION_WORDS = (
    PLAIN_WORDS
    | REASON_WORDS
    | COUNT_WORDS
    | COMPARISON_WORDS
    | CHOICE_WORDS
    | SAMENESS_WORDS
    | REQUEST_WORDS
    | LIGHT_VERBS
    | {"much"}
)
"""The plain words, and those that only some questions account for; none is an unknown relation."""
MIN_ROOT_LETTERS = 4
_MAX_CACHED_WORDS = 8192
_VERB_ENDINGS = ("ing", "ed", "er", "or", "e")

# The possessive, whether 's or the bare apostrophe of a plural; runs of letters and digits; the marks that separate.
_WORD = re.compile(r"(?P<own>['’]s\b|(?<=s)['’](?=\s))|(?P<word>[^\W_]+)|(?P<mark>[,?;:()\"])", re.IGNORECASE)

PhraseKey = tuple[str, ...]
"""A phrase as the stems of its words."""


@dataclass(frozen=True, slots=True)
class QuestionWord:
    """One word of a text: as compared (`folded`, and `stem` without plural) and where it stands."""

    folded: str
    stem: str
    start: int
    end: int
    capitalized: bool


@dataclass(frozen=True, slots=True)
class RelationTerm:
    """One relation, followed forwards or backwards."""

    relation: str
    inverse: bool = False


@dataclass(frozen=True, slots=True)
class PathSegment:
    """One step of a path: any of these relations, to people of a gender (male, female) if one is stated."""

    terms: tuple[RelationTerm, ...]
    gender: str | None = None

    @property
    def relation(self) -> str | None:
        """The only relation of the segment; None if it has several, or follows it backwards."""
        return self.terms[0].relation if len(self.terms) == 1 and not self.terms[0].inverse else None


@dataclass(frozen=True, slots=True)
class PathExpression:
    """One reading of a word: segments to follow one after the other."""

    segments: tuple[PathSegment, ...]
    excludes_start: bool = False
    """Whether the end must differ from the start."""
    excluded: str | None = None
    """The relation of the start that the end must not be: a stepmother is not the mother."""
    suggestive: bool = False
    """Whether it only suggests the word: the mother's brother-in-law for an uncle."""

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations that each by itself state a path of one step without gender; else empty."""
        if len(self.segments) > 1 or self.segments[0].gender:
            return ()
        return tuple(term.relation for term in self.segments[0].terms if not term.inverse)


@dataclass(frozen=True, slots=True)
class LexicalEntry:
    """A word of the lexicon: its forms, and the paths that it leads to."""

    forms: tuple[str, ...]
    default_paths: tuple[PathExpression, ...]
    paths_by_question_word: dict[str, tuple[PathExpression, ...]] = field(default_factory=dict)
    at_most: int | None = None
    """How many a person can have; None for any number."""

    @property
    def label(self) -> str:
        """The first form of the word."""
        return self.forms[0]

    def paths_for(self, question_word: str | None) -> tuple[PathExpression, ...]:
        """The paths for a question that begins with where, when, why or who, or with none of them."""
        return self.paths_by_question_word.get(question_word or "", self.default_paths)


@dataclass(frozen=True, slots=True)
class RelationNames:
    """Other names of a relation in graphs."""

    aliases: tuple[str, ...] = ()
    """Names that generated graphs list, too."""
    synonyms: tuple[str, ...] = ()
    """Names that only other graphs have."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison: the end of the order it wants, and the relations it compares when the question names none.

    `span` names two dates whose distance is compared; `counts` says that it may compare how many there are.
    """

    most: bool
    measures: tuple[str, ...]
    date_span: tuple[str, ...]
    can_count: bool

    @property
    def compares_ages(self) -> bool:
        """Whether it says of people how old they are."""
        return self.measures[:1] == ("date of birth",)

    @property
    def orders_dates(self) -> bool:
        """Whether it may compare any date, as earlier does."""
        return not self.compares_ages and any("date" in measure for measure in self.measures)


@dataclass(frozen=True)
class EnglishLexicon:
    """The whole file, by phrase."""

    titles: Mapping[str, str]
    """Titles before a name (Mr, Ms), with the gender that they state."""
    relations: Mapping[PhraseKey, RelationNames]
    words: Mapping[PhraseKey, LexicalEntry]
    comparisons: Mapping[PhraseKey, Comparison]
    kinds: Mapping[str, frozenset[str]]
    """By question word, the nouns that only say of what kind a value is: where, in which town."""
    holders: Mapping[PhraseKey, str]
    """What has a relation, by its names, where that is only ever people or only works: person or work."""

    @cached_property
    def answers_to_where(self) -> frozenset[PhraseKey]:
        """The relations that some word means after "where"."""
        paths = chain.from_iterable(entry.paths_by_question_word.get("where", ()) for entry in self.words.values())
        return frozenset(phrase_key(relation) for path in paths for relation in path.relations)

    def other_names(self, key: PhraseKey) -> tuple[str, ...]:
        """What graphs call the relation beside its label."""
        return _other_names(self.relations, key)


@cache
def nouns_for_kinds() -> frozenset[str]:
    """The nouns that only say of what kind a value is: town, date."""
    return frozenset().union(*load_lexicon().kinds.values())


def _other_names(relations: Mapping[PhraseKey, RelationNames], key: PhraseKey) -> tuple[str, ...]:
    names = relations.get(key, RelationNames())
    return (*names.aliases, *names.synonyms)


def split_words(text: str) -> list[QuestionWord]:
    """The words and separating marks of a text, in order; hyphens part words."""
    keys = []
    for match in _WORD.finditer(text):
        folded = POSSESSIVE_SUFFIX if match["own"] else fold_text(match[0])
        keys.append(QuestionWord(folded, stem_word(folded), match.start(), match.end(), match[0][:1].isupper()))
    return keys


def list_words(text: str) -> list[QuestionWord]:
    """The words of a text without marks; a possessive s is a word of its own."""
    return [word for word in split_words(text) if word.folded.isalnum() or word.folded == POSSESSIVE_SUFFIX]


def has_content(text: str) -> bool:
    """Whether a text has a word with a meaning of its own."""
    return any(word.folded not in MINOR_WORDS | DECISIVE_WORDS for word in list_words(text))


def asks_yes_or_no(question: str) -> bool:
    """Whether it opens with an auxiliary and offers no choice."""
    words = [word.folded for word in list_words(question)]
    return bool(words) and words[0] in YES_NO_OPENERS and "or" not in words


def fold_text(text: str) -> str:
    """The text without accents and case."""
    if text.isascii():
        return text.casefold()
    parts = unicodedata.normalize("NFKD", text)
    return "".join(c for c in parts if not unicodedata.combining(c)).casefold()


@lru_cache(maxsize=_MAX_CACHED_WORDS)
def stem_word(word: str) -> str:
    """The singular of an English noun, near enough to compare by."""
    for plural, singular in _read_irregular_plurals().items():
        if word == plural or (word.endswith(plural) and len(plural) >= _MIN_COMPOUND_PLURAL):
            return word.removesuffix(plural) + singular
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "ches", "shes", "xes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


@lru_cache(maxsize=_MAX_CACHED_WORDS)
def word_root(word: str) -> str:
    """What the forms of a verb and its agent have in common: direct of directs, directed, directing and director."""
    root = stem_word(word)
    while ending := next((e for e in _VERB_ENDINGS if root.endswith(e) and len(root) - len(e) >= MIN_ROOT_LETTERS), ""):
        root = root.removesuffix(ending)
        if root[-1] == root[-2] and root[-1] not in "lsz":
            root = root[:-1]
    return root


def pluralize(noun: str) -> str:
    """The plural of a relation between people: great-aunts, sisters-in-law, grandchildren."""
    for modifier in ("-in-law", " once removed"):
        if noun.endswith(modifier):
            return pluralize(noun.removesuffix(modifier)) + modifier
    for plural, singular in _read_irregular_plurals().items():
        if noun == singular or (noun.endswith(singular) and len(plural) >= _MIN_COMPOUND_PLURAL):
            return noun.removesuffix(singular) + plural
    return f"{noun}s"


def takes_article_an(word: str) -> bool:
    """Whether the word takes "an" instead of "a"."""
    lower = word.lower()
    if lower.startswith(("uni", "uro", "use", "ute", "eu", "one")):
        return False
    return lower.startswith(("a", "e", "i", "o", "u", "hour", "honest", "honorary", "heir"))


@cache
def title_for(*, female: bool) -> str:
    """The title before a name that states the gender: Ms or Mr."""
    gender = FEMALE if female else MALE
    return next(title for title, stated in load_lexicon().titles.items() if stated == gender)


@lru_cache(maxsize=_MAX_CACHED_WORDS)
def phrase_key(text: str) -> PhraseKey:
    """A phrase as the stems of its words, marks left out."""
    return tuple(word.stem for word in list_words(text))


def parse_path(notation: str) -> PathExpression:
    """Parse a path in the notation of english.toml: parent/child!, child|^parent, spouse:male, father/wife!mother."""
    path, mark, excluded = notation.removesuffix("?").partition("!")
    return PathExpression(
        tuple(map(_parse_segment, path.split("/"))),
        excludes_start=bool(mark) and not excluded,
        excluded=excluded or None,
        suggestive=notation.endswith("?"),
    )


@cache
def load_lexicon() -> EnglishLexicon:
    """The lexicon, read once."""
    table = _read_table()
    words: dict[PhraseKey, LexicalEntry] = {}
    for row in table["word"]:
        by_question = {word: _parse_paths(row[word]) for word in ("where", "when", "why", "who") if word in row}
        entry = LexicalEntry(tuple(row["forms"]), _parse_paths(row["paths"]), by_question, row.get("at_most"))
        sides = chain.from_iterable(_name_sides(form, words) for form in entry.forms)
        words |= dict.fromkeys(map(phrase_key, (*entry.forms, *sides)), entry)
    comparisons: dict[PhraseKey, Comparison] = {}
    for row in table["comparison"]:
        comparison = Comparison(
            row["order"] == "most", tuple(row.get("measures", ())), tuple(row.get("span", ())), row.get("counts", False)
        )
        comparisons |= dict.fromkeys(map(phrase_key, row["forms"]), comparison)
    relations = {
        phrase_key(label): RelationNames(tuple(names.get("aliases", ())), tuple(names.get("synonyms", ())))
        for label, names in table["relations"].items()
    }
    kinds = {question_word: frozenset(nouns) for question_word, nouns in table["kinds"].items()}
    holders = {
        name: holder
        for holder, labels in table["holders"].items()
        for key in map(phrase_key, labels)
        for name in (key, *map(phrase_key, _other_names(relations, key)))
    }
    return EnglishLexicon(table["titles"], relations, words, comparisons, kinds, holders)


def _name_sides(form: str, words: Mapping[PhraseKey, LexicalEntry]) -> Iterator[str]:
    """Other ways to say paternal grandfather: paternal grandpa, grandfather on the paternal side, on the father's."""
    adjective, _, noun = form.partition(" ")
    if parent := _PARENT_OF_SIDE.get(adjective):
        for other in words[phrase_key(noun)].forms:
            yield f"{adjective} {other}"
            for owner in ("the", "his", "her", "their"):
                yield from (f"{other} on {owner} {side} side" for side in (adjective, f"{parent}{POSSESSIVE_SUFFIX}"))


@cache
def _read_table() -> dict[str, Any]:
    return tomllib.loads(resources.files("showhow.worlds.lexicon").joinpath("english.toml").read_text(encoding="utf-8"))


@cache
def _read_irregular_plurals() -> dict[str, str]:
    """Singular by plural."""
    return {plural: singular for singular, plural in _read_table()["plurals"].items()}


def _parse_paths(notations: list[str]) -> tuple[PathExpression, ...]:
    return tuple(map(parse_path, notations))


def _parse_segment(segment: str) -> PathSegment:
    terms, _, gender = segment.partition(":")
    return PathSegment(
        tuple(RelationTerm(term.removeprefix("^"), term.startswith("^")) for term in terms.split("|")), gender or None
    )
