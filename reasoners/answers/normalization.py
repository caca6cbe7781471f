"""Answer normalization: compares answers whatever the notation of names, lists, dates, numbers, units, yes and no.

`parse_answer` parses a text into parts; `AnswerMatcher` decides which answers are equal. A part has words and
qualifiers (a remark in brackets, a title, the noun of a count). Qualifiers are compared only if both sides have one, or
if two candidates differ only by them: "John Smith (judge)" equals "John Smith", but not "John Smith (painter)".

HumanIQ uses the agreement between the answers of several sources as a measure of confidence.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from showhow.db.unanswerable import read_unanswerable
from showhow.reasoners.answers.dates_and_numbers import UNITS, format_number, normalize_quantities

Words = tuple[str, ...]

_HYPHENS = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-") | dict.fromkeys("\u2018\u2019\u02bc", "'")
)
_LIST_MARKER = re.compile(r"^[^\S\n]*+(?:\d+[.)]|[-*\u2022])\s+", re.MULTILINE)
_CITATION = re.compile(r"\[\d+\]")
_SUFFIX_COMMA = re.compile(r",(?=\s*(?:jr|sr|esq|ph\.?d|m\.?d)\b)", re.IGNORECASE)
_SEPARATOR = re.compile(r"([,;\n&]|\band\b)(?![^()]{0,200}\))", re.IGNORECASE)
_REMARK = re.compile(r"(?:^|(?<=\s))\(([^()]*)\)")
_WIKIDATA_ID = r"(?:wd:|https?://[^\s()\[\]]*/)?([QP]\d+)"
_BRACKETED_ID = re.compile(rf"[(\[]\s*{_WIKIDATA_ID}\s*[)\]]", re.IGNORECASE)
_BARE_ID = re.compile(rf"^\s*{_WIKIDATA_ID}(?:\s*$|:?\s+(?=[^\W\d]))|\b(Q\d{{3,}})\s*$", re.IGNORECASE)
_ARTICLE = re.compile(r"^\W*(?:the|an|a)\s+(?=\S)|(?<=\s)the\s+(?=\S)", re.IGNORECASE)
_INITIALS = re.compile(r"\b([A-Za-z])[. ]+(?=[A-Za-z]\b)")
_TOKEN = re.compile(
    r"(?<!\w)-?\d+(?:[.:/-]\d+)*[^\W_]*|[^\W\d_]\w{0,60}(?:\+\+|[#+])?(?![+#\w])|[^\W_]+|[%\N{DEGREE SIGN}]"
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_NUMBER_WITH_SYMBOL = re.compile(r"(-?\d+(?:\.\d+)?)([^\W\d_]+2?)")
_YES_OR_NO = re.compile(
    r"(yes|true|no|false)(?:\s*(?:[.!]*$|[,.;:!-]+\s*(?P<clause>.*))|\s+(?P<sentence>(?:he|she|it|they|there)\b.*))",
    re.IGNORECASE | re.DOTALL,
)
_SENTENCE = re.compile(r"(?!\d).*(?<!\w)[a-z]", re.DOTALL)
_OPPOSITES = {
    "yes": re.compile(r"\b(?:no|false)\b", re.IGNORECASE),
    "no": re.compile(r"\b(?:yes|true)\b", re.IGNORECASE),
}
_BUT, _NOT = re.compile(r"\bbut\b", re.IGNORECASE), re.compile(r"\bnot\b", re.IGNORECASE)
_NO_ANSWER_WORDS = frozenset({("no", "answer"), ("nobody",), ("no", "one"), ("nothing",)})
_TITLES = {
    **{title: title for title in "mr mrs ms miss dr prof sir dame lord lady rev pope president".split()},
    **{title: title for title in "king queen prince princess emperor empress".split()},
    **{"mister": "mr", "doctor": "dr", "professor": "prof", "reverend": "rev"},
}
_TITLES_IN_NAMES = frozenset({"doctor", "miss", "lady", "lord"})
"""Titles that count only before a full name: Doctor Who and Lady Gaga are names."""
_NOT_A_COUNT = frozenset({"or", "plus", "minus", "to"})
SOURCE_NAMES = {"text": "the articles", "graph": "the graph", "model": "the model's memory"}
ALL_AGREE, TWO_AGREE, CONFLICT, SINGLE_SOURCE, NO_ANSWERS = "all agree", "two agree", "conflict", "one only", "none"


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """One name, value or quantity in an answer."""

    words: Words
    """All of its normalized words, without ids."""
    name: Words = ()
    """The words that identify it, without remark, title and the noun of a count."""
    remark: Words = ()
    title: str = ""
    noun: Words = ()
    """The noun that a number counts: children in "5 children"."""
    entity: str | None = None
    """The Wikidata id written beside it."""

    @property
    def qualifiers(self) -> tuple[Words, Words, Words]:
        """The qualifiers that may distinguish two parts with the same name."""
        return self.remark, (self.title,) if self.title else (), self.noun


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """A parsed answer with its distinct parts."""

    parts: tuple[AnswerPart, ...]
    words: Words
    """The words of the whole text."""
    is_pair: bool = False
    """Whether it has the form "X and Y", which may be one name, such as Trinidad and Tobago."""

    @property
    def is_yes_or_no(self) -> bool:
        """Whether the answer is yes or no."""
        return self.words in (("yes",), ("no",))

    @property
    def entities(self) -> frozenset[str]:
        """The Wikidata ids in the answer."""
        return frozenset(part.entity for part in self.parts if part.entity is not None)


def parse_answer(text: str, entity: str | None = None) -> ParsedAnswer:
    """Parse an answer; if its `entity` is known, it has a single part."""
    if read_unanswerable(text):
        # Whatever the reason is, as other words that there is no answer.
        return ParsedAnswer((AnswerPart(("none",), ("none",)),), ("none",))
    normalized = _fold_signs(text)
    verdict = _read_yes_or_no(normalized)
    if verdict is not None:
        # The empty word keeps "No" apart from the name of "Dr. No"; no other name contains one.
        return ParsedAnswer((AnswerPart((verdict,), ("", verdict), entity=entity),), (verdict,))
    normalized = _SUFFIX_COMMA.sub(
        " ", _CITATION.sub("", normalize_quantities(_LIST_MARKER.sub("\n", normalized).strip()))
    )
    pieces = _SEPARATOR.split(normalized)
    if entity is not None or len(pieces) == 1:
        part = _parse_part(normalized, entity)
        return ParsedAnswer((part,), part.words)
    parts = tuple(dict.fromkeys(part for part in map(_parse_part, pieces[::2]) if part.words))
    separators = [sign.lower() for sign in pieces[1::2]]
    is_pair = (
        len(parts) == len(pieces[::2]) == 2
        and separators[0] in ("and", "&")
        and not any(part.entity for part in parts)
        and min(len(part.words) for part in parts) == 1
    )
    whole = _parse_part(_SEPARATOR.sub(lambda match: " and " if match[0].lower() in ("&", "and") else " ", normalized))
    if len(parts) <= 1:
        # Only separators, or a name such as Johnson & Johnson; "Ada, Ada" is one part.
        parts = (whole,) if not parts or "and" in separators or "&" in separators else parts
    return ParsedAnswer(parts, whole.words, is_pair)


class AnswerMatcher:
    """Decides whether answers are equal; `candidates` are all the answers that are compared with each other."""

    def __init__(self, candidates: Iterable[ParsedAnswer] = ()) -> None:
        qualifiers_by_name: dict[Words, tuple[set[Words], set[Words], set[Words]]] = {}
        for part in {part for answer in candidates for part in answer.parts}:
            for qualifiers, qualifier in zip(
                qualifiers_by_name.setdefault(part.name, (set(), set(), set())), part.qualifiers, strict=True
            ):
                qualifiers.update({qualifier} if qualifier else ())
        self._decisive = {
            name: tuple(len(qualifiers) > 1 for qualifiers in qualifier_sets)
            for name, qualifier_sets in qualifiers_by_name.items()
        }

    def parts_match(self, first: AnswerPart, second: AnswerPart) -> bool:
        """Whether two parts are equal."""
        if first.entity is not None and second.entity is not None:
            return first.entity == second.entity
        if first.words == second.words:
            return True
        if first.name != second.name:
            return False
        decisive = self._decisive.get(first.name, (False, False, False))
        return all(
            own == other or not (is_decisive or (own and other))
            for own, other, is_decisive in zip(first.qualifiers, second.qualifiers, decisive, strict=True)
        )

    def answers_match(self, first: ParsedAnswer, second: ParsedAnswer) -> bool:
        """Whether two answers are equal; the order of a list is ignored, the order of a name is not."""
        if len(first.parts) == len(second.parts) == 1:
            return self.parts_match(first.parts[0], second.parts[0])
        if first.entities and second.entities and first.entities != second.entities:
            return False
        if first.words == second.words or _is_inverted_name(first, second) or _is_inverted_name(second, first):
            return True
        if first.is_pair and second.is_pair:
            return False
        return self.contains_all(first, second) and self.contains_all(second, first)

    def contains_all(self, answer: ParsedAnswer, expected: ParsedAnswer) -> bool:
        """Whether the answer has a match for every part of `expected`."""
        parts_by_key: dict[Words, list[AnswerPart]] = {}
        for part in answer.parts:
            for key in _part_keys(part):
                parts_by_key.setdefault(key, []).append(part)
        return all(
            any(self.parts_match(part, other) for key in _part_keys(other) for part in parts_by_key.get(key, ()))
            for other in expected.parts
        )


def _part_keys(part: AnswerPart) -> set[Words]:
    """Equal parts share one of them: their words, their name or their entity."""
    return {part.words, part.name} | ({("", part.entity)} if part.entity is not None else set())


def list_keys(answer: ParsedAnswer) -> set[Words]:
    """Equal answers share one of them."""
    keys = {answer.words}.union(*map(_part_keys, answer.parts))
    # "Lund, Ada" is "Ada Lund".
    return keys | ({answer.parts[1].words + answer.parts[0].words} if len(answer.parts) == 2 else set())


def answers_equal(first: str, second: str) -> bool:
    """Whether two answers are equal, with no other candidates."""
    one, other = parse_answer(first), parse_answer(second)
    return AnswerMatcher((one, other)).answers_match(one, other)


def group_equal_answers(answers: Mapping[str, str]) -> list[list[str]]:
    """Group the keys of `answers` by equal answers."""
    parsed = {name: parse_answer(answer) for name, answer in answers.items()}
    matcher = AnswerMatcher(parsed.values())
    groups: list[list[str]] = []
    for name, answer in parsed.items():
        group = next((g for g in groups if all(matcher.answers_match(answer, parsed[other]) for other in g)), None)
        if group is None:
            groups.append([name])
        else:
            group.append(name)
    return groups


def normalize_answer(answer: str) -> frozenset[str]:
    """The normalized parts of an answer, for searching them in a text."""
    return frozenset(" ".join(part.name + part.noun).strip() for part in parse_answer(answer).parts)


def word_overlap(first: Words, second: Words) -> float:
    """F1 over the words of two texts; the same words in another order score less than 1."""
    if first == second:
        return 1.0
    overlap = (Counter(first) & Counter(second)).total()
    if overlap == len(first) == len(second):
        overlap = _common_subsequence_length(first, second)
    return 2 * overlap / (len(first) + len(second))


def _common_subsequence_length(first: Words, second: Words) -> int:
    """The length of the longest common subsequence: a bit for each word of the second (Hyyrö, 2004)."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(second):
        places.setdefault(word, []).append(place)
    every = (1 << len(second)) - 1
    row = every
    for word in first:
        matches = row & sum(1 << place for place in places.get(word, ()))
        row = ((row + matches) | (row - matches)) & every
    return len(second) - row.bit_count()


def _is_inverted_name(first: ParsedAnswer, second: ParsedAnswer) -> bool:
    """Whether the first is "Lund, Ada" and the second "Ada Lund"."""
    return (
        len(first.parts) == 2
        and len(second.parts) == 1
        and "and" not in first.words
        and first.parts[1].words + first.parts[0].words == second.parts[0].words
    )


def _fold_signs(text: str) -> str:
    # Without the combining signs of the text itself, which normalization would sort, in quadratic time.
    plain = "".join(sign for sign in text.translate(_HYPHENS) if not unicodedata.combining(sign))
    decomposed = unicodedata.normalize("NFKD", plain)
    return "".join(sign for sign in decomposed if not unicodedata.combining(sign)).strip()


def _read_yes_or_no(text: str) -> str | None:
    """Return "yes" or "no" if the answer is one of them, with or without a sentence that agrees; otherwise None."""
    match = _YES_OR_NO.fullmatch(text)
    if match is None:
        return None
    verdict = "yes" if match[1].lower() in ("yes", "true") else "no"
    rest = match["clause"] or match["sentence"]
    if rest and (not _SENTENCE.match(rest) or _is_withdrawn(verdict, rest)):
        return None
    return verdict


def _is_withdrawn(verdict: str, rest: str) -> bool:
    """Whether the rest says the opposite: "Yes, but he was not"."""
    if _OPPOSITES[verdict].search(rest):
        return True
    but = _BUT.search(rest) if verdict == "yes" else None
    return but is not None and _NOT.search(rest, but.end()) is not None


def _parse_part(text: str, entity: str | None = None) -> AnswerPart:
    written_id, text = _take_entity(text)
    entity = entity or written_id
    if not text.strip():
        words: Words = (written_id.lower(),) if written_id else ()
        return AnswerPart(words, words, entity=entity)
    words = _split_words(_REMARK.sub(r" \1 ", text))
    outside = _REMARK.sub(" ", text)
    remark = tuple(word for match in _REMARK.findall(text) for word in _split_words(match)) if outside.strip() else ()
    tokens = _TOKEN.findall(_strip_articles(outside if outside.strip() else text))
    name = _normalize_tokens(tokens) or words or (text.casefold().strip(),)
    title = _TITLES.get(name[0], "") if len(name) > (2 if name[0] in _TITLES_IN_NAMES else 1) else ""
    noun = _count_noun(tokens, name)
    name = name[1:] if title else name[:1] if noun else name
    if words in _NO_ANSWER_WORDS:
        words = name = ("none",)
    return AnswerPart(words or name, name, remark, title, noun, entity)


def _take_entity(text: str) -> tuple[str | None, str]:
    """Split a text into its Wikidata id, if any, and the rest."""
    match = _BRACKETED_ID.search(text) or _BARE_ID.search(text)
    if match is None:
        return None, text
    entity = next(group for group in match.groups() if group)
    return entity.upper(), f"{text[: match.start()]} {text[match.end() :]}"


def _strip_articles(text: str) -> str:
    return _INITIALS.sub(r"\1", _ARTICLE.sub("", text))


def _split_words(text: str) -> Words:
    return _normalize_tokens(_TOKEN.findall(_strip_articles(text)))


def _normalize_tokens(tokens: list[str]) -> Words:
    words = [token.casefold() for token in tokens]
    if words and (match := _NUMBER_WITH_SYMBOL.fullmatch(words[0])) and match[2].removesuffix("2") in UNITS:
        words[:1] = [match[1], match[2]]
    if len(words) > 1 and _NUMBER.fullmatch(words[0]):
        words = [words[0], *_normalize_unit(words[1:])]
    return tuple(format_number(word) if _NUMBER.fullmatch(word) else word for word in words)


def _normalize_unit(words: list[str]) -> list[str]:
    """Replace unit symbols after a number by unit names: km2 and sq km are square kilometre."""
    if words[:2] == ["per", "cent"]:
        return ["percent", *words[2:]]
    unit: list[str] = []
    for word in words:
        if word.endswith("2") and word[:-1] in UNITS:
            unit += ["square", UNITS[word[:-1]]]
        elif word != "per" or not unit:
            unit += UNITS.get(word, word).split()
    return unit


def _count_noun(tokens: list[str], name: Words) -> Words:
    """The noun of a number that counts; empty for measures and for names such as 7 Up and 50 Cent."""
    rest = name[1:]
    is_count = (
        bool(rest)
        and _NUMBER.fullmatch(name[0]) is not None
        and rest[0] not in UNITS.values()
        and rest[0] not in _NOT_A_COUNT
        and all(token.isalpha() and token == token.lower() for token in tokens[1:])
    )
    return rest if is_count else ()


@dataclass(frozen=True, slots=True)
class Agreement:
    """The answer of each source, and which sources agree."""

    answers: Mapping[str, str | None]
    """By source; None for a source without an answer."""
    agreeing_sources: tuple[str, ...]
    """The largest group of sources with equal answers; empty if no two are equal."""

    @property
    def state(self) -> str:
        """One of: all agree, two agree, conflict, one only, none."""
        answering = [answer for answer in self.answers.values() if answer is not None]
        if len(self.agreeing_sources) == len(self.answers):
            return ALL_AGREE
        if self.agreeing_sources:
            return TWO_AGREE
        return CONFLICT if len(answering) > 1 else SINGLE_SOURCE if answering else NO_ANSWERS

    @property
    def hedge(self) -> str:
        """The opening sentence of a response if sources disagree or only one answers; otherwise empty."""
        statements = [
            f"{SOURCE_NAMES[name]} {_conjugate_say(name)} {answer}"
            for name, answer in self.answers.items()
            if answer is not None
        ]
        if self.state == CONFLICT:
            return f"The sources disagree: {', '.join(statements[:-1])} and {statements[-1]}."
        if self.state == SINGLE_SOURCE:
            (name,) = (name for name, answer in self.answers.items() if answer is not None)
            if name == "model":
                return "I could not verify this; I answer from memory alone."
            verb = "answer" if name == "text" else "answers"
            return f"Only {SOURCE_NAMES[name]} {verb} this; no other source confirms it."
        return ""

    @property
    def summary(self) -> str:
        """The state as a sentence."""
        if self.state == ALL_AGREE:
            return f"All {'three' if len(self.answers) == 3 else 'the'} sources agree."
        if self.state == TWO_AGREE:
            first, second = (SOURCE_NAMES[name] for name in self.agreeing_sources)
            other_sources = [name for name in self.answers if name not in self.agreeing_sources]
            no_answers = all(self.answers[name] is None for name in other_sources)
            rest = ", ".join(SOURCE_NAMES[name] for name in other_sources)
            tail = (
                f"{rest} {_conjugate_say(other_sources[0])} nothing"
                if no_answers
                else f"{rest} {_conjugate_say(other_sources[0])} otherwise"
            )
            sentence = f"{first} and {second} agree; {tail}."
            return sentence[0].upper() + sentence[1:]
        return self.hedge or "No source has an answer."

    def to_json(self) -> dict[str, Any]:
        """The fields stored in a trace's result."""
        return {
            "state": self.state,
            "words": self.summary,
            "answers": dict(self.answers),
            "agreeing": list(self.agreeing_sources),
        }


def measure_agreement(answers: Mapping[str, str | None]) -> Agreement:
    """Compare the answers of the sources; None stands for no answer."""
    groups = group_equal_answers({name: answer for name, answer in answers.items() if answer is not None})
    largest = max(groups, key=len, default=[])
    return Agreement(dict(answers), tuple(largest) if len(largest) > 1 else ())


def _conjugate_say(name: str) -> str:
    return "say" if name == "text" else "says"
