"""Sentence patterns: learned from a sentence that states a value of a subject, matched against other sentences."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reasoners.replay.english import NAME, TITLES, as_day, days_in, format_day, singular

DAY, THING, WORD = "day", "name", "word"
SUBJECT, VALUE, RELATION = "<subject>", "<value>", "<relation>"
_CLASSES = (
    ("he", "she", "they"),
    ("his", "her", "their"),
    ("is", "was", "are", "were"),
    ("has", "had", "have"),
    ("a", "an"),
    ("mr", "ms", "mrs"),
)
"""Words that vary with the subject and the time of a sentence."""
SPLIT = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class SentencePattern:
    """A sentence with holes for its subject, the value and, if it names one, the relation."""

    parts: tuple[str, ...]
    """Regular expressions, SUBJECT, VALUE and RELATION."""
    kind: str
    """The kind of the value: day, name or word."""

    def values(self, sentence: str, subject: str, relation: str) -> list[str]:
        """The values that the sentence states for the subject; [] if it does not match."""
        holes = {
            SUBJECT: rf"(?:(?:{TITLES}) )?(?:{_name_alternatives(subject)})",
            VALUE: "(?P<value>.+)",
            RELATION: f"(?:{re.escape(relation)}|(?P<several>[a-z -]+))",
        }
        pattern = "".join(f"(?:{holes[part]})" if part in holes else part for part in self.parts)
        match = re.fullmatch(pattern, sentence)
        if match is None or singular(match.groupdict().get("several") or relation) != relation:
            return []
        return _parse_values(match["value"], self.kind)


def kind_of(value: str) -> str:
    """The kind of a value: day, name or word."""
    if as_day(value):
        return DAY
    return THING if NAME.fullmatch(value) else WORD


def learn_pattern(sentence: str, subject: str, value: str, relation: str) -> SentencePattern | None:
    """Learn the pattern of a sentence that states the value; None if it does not mention subject and value."""
    spans = {VALUE: _span(sentence, value)}
    if spans[VALUE] is None:
        return None
    for spelling in sorted(_name_variants(subject), key=len, reverse=True):
        spans[SUBJECT] = spans.get(SUBJECT) or _span(sentence, spelling)
    if spans[SUBJECT] is None and not re.search(r"\b(?:he|she|his|her|they|their)\b", sentence, re.IGNORECASE):
        return None
    parts: list[str] = []
    position = 0
    for hole, span in sorted(((h, s) for h, s in spans.items() if s), key=lambda pair: pair[1]):
        if span[0] < position:
            return None
        parts += [*_generalize_text(sentence[position : span[0]], relation), hole]
        position = span[1]
    return SentencePattern((*parts, *_generalize_text(sentence[position:], relation)), kind_of(value))


def _name_alternatives(subject: str) -> str:
    return "|".join(map(re.escape, sorted(_name_variants(subject), key=len, reverse=True)))


def relation_in(sentence: str, subject: str) -> str | None:
    """The noun of a relation to the subject in a sentence: Ada's mother, the mother of Ada, her mother was."""
    subject_pattern = rf"(?:(?:{TITLES}) )?(?:{_name_alternatives(subject)})"
    patterns = (
        rf"(?:{subject_pattern})'s ([a-z][a-z-]*)",
        rf"the ([a-z][a-z-]*) of (?:{subject_pattern})",
        r"(?:His|Her) ([a-z][a-z-]*) (?:is|was)\b",
    )
    return next((match[1] for pattern in patterns if (match := re.search(pattern, sentence))), None)


def _span(sentence: str, text: str) -> tuple[int, int] | None:
    if day := as_day(text):
        return next(((start, end) for start, end, date in days_in(sentence) if date == day), None)
    match = re.search(rf"(?<!\w){re.escape(text)}(?!\w)", sentence)
    return match.span() if match else None


def _generalize_text(text: str, relation: str) -> list[str]:
    """The patterns of the text between holes; words that vary with subject and time match all their forms."""
    if relation:
        match = re.search(rf"(?<![\w-]){re.escape(relation)}(?![\w-])", text) or _find_plural(text, relation)
        if match:
            return [*_generalize_text(text[: match.start()], ""), RELATION, *_generalize_text(text[match.end() :], "")]
    return [generalize_token(token) for token in SPLIT.findall(text)]


def _find_plural(text: str, relation: str) -> re.Match[str] | None:
    return next((m for m in re.finditer(r"[a-z][a-z-]*", text) if singular(m[0]) == relation), None)


def generalize_token(token: str) -> str:
    """The regular expression of a token; words that vary with subject and time match all their forms."""
    for forms in _CLASSES:
        if token.casefold() in forms:
            either = "|".join(form.capitalize() if token[0].isupper() else form for form in forms)
            return f"(?:{either})"
    return re.escape(token)


def _name_variants(subject: str) -> set[str]:
    """The spellings of a subject: a date in words, a name also without its disambiguation."""
    day = as_day(subject)
    return {format_day(day), subject} if day else {subject, subject.partition(" (")[0]}


def _parse_values(text: str, kind: str) -> list[str]:
    """The values of this kind in a text; [] if it holds anything else."""
    if kind == DAY:
        day = as_day(text)
        return [day] if day else []
    if kind == WORD:
        return [text] if text[:1].islower() else []
    names = [re.sub(rf"^(?:{TITLES}) ", "", name) for name in re.split(r", | and ", text)]
    return names if all(NAME.fullmatch(name) for name in names) else []


def extract_values(
    patterns: Iterable[SentencePattern], sentences: Sequence[str], subject: str, relation: str
) -> list[str]:
    """The distinct values that the sentences state by one of the patterns."""
    known_patterns = list(patterns)
    return list(
        dict.fromkeys(
            value
            for sentence in sentences
            for pattern in known_patterns
            for value in pattern.values(sentence, subject, relation)
        )
    )
