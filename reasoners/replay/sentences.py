"""How sentences say something: learned from one that was read, found again in others about somebody else."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reasoners.replay.english import NAME, as_day, days_in, format_day, singular

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
"""Words that change with of whom and of when a sentence speaks."""
SPLIT = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class SentencePattern:
    """A sentence with holes: for whom it is about, for the value, and for the word of the relation if it has one."""

    parts: tuple[str, ...]
    """Regular expressions, and SUBJECT, VALUE and RELATION."""
    kind: str
    """Of the value: a day, a name or a word."""

    def values(self, sentence: str, subject: str, relation: str) -> list[str]:
        """What the sentence says of the subject; [] where it says something else."""
        holes = {
            SUBJECT: rf"(?:(?:Mr|Ms|Mrs) )?(?:{_name_alternatives(subject)})",
            VALUE: "(?P<value>.+)",
            RELATION: f"(?:{re.escape(relation)}|(?P<several>[a-z -]+))",
        }
        whole = "".join(f"(?:{holes[part]})" if part in holes else part for part in self.parts)
        match = re.fullmatch(whole, sentence)
        if match is None or singular(match.groupdict().get("several") or relation) != relation:
            return []
        return _parse_values(match["value"], self.kind)


def kind_of(value: str) -> str:
    """Whether a value is a day, a name or a word."""
    if as_day(value):
        return DAY
    return THING if NAME.fullmatch(value) else WORD


def learn_pattern(sentence: str, subject: str, value: str, relation: str) -> SentencePattern | None:
    """The pattern of a sentence that says the value of the subject; None where it does not speak of the subject."""
    spans = {VALUE: _span(sentence, value)}
    if spans[VALUE] is None:
        return None
    for way in sorted(_name_variants(subject), key=len, reverse=True):
        spans[SUBJECT] = spans.get(SUBJECT) or _span(sentence, way)
    if spans[SUBJECT] is None and not re.search(r"\b(?:he|she|his|her|they|their)\b", sentence, re.IGNORECASE):
        return None
    parts: list[str] = []
    place = 0
    for hole, span in sorted(((h, s) for h, s in spans.items() if s), key=lambda pair: pair[1]):
        if span[0] < place:
            return None
        parts += [*_generalize_text(sentence[place : span[0]], relation), hole]
        place = span[1]
    return SentencePattern((*parts, *_generalize_text(sentence[place:], relation)), kind_of(value))


def _name_alternatives(subject: str) -> str:
    return "|".join(map(re.escape, sorted(_name_variants(subject), key=len, reverse=True)))


def relation_in(sentence: str, subject: str) -> str | None:
    """The noun by which a sentence calls somebody's relation: Ada's mother, the mother of Ada, her mother was."""
    whom = rf"(?:(?:Mr|Ms|Mrs) )?(?:{_name_alternatives(subject)})"
    ways = (
        rf"(?:{whom})'s ([a-z][a-z-]*)",
        rf"the ([a-z][a-z-]*) of (?:{whom})",
        r"(?:His|Her) ([a-z][a-z-]*) (?:is|was)\b",
    )
    return next((match[1] for way in ways if (match := re.search(way, sentence))), None)


def _span(sentence: str, text: str) -> tuple[int, int] | None:
    if day := as_day(text):
        return next(((start, end) for start, end, results in days_in(sentence) if results == day), None)
    match = re.search(rf"(?<!\w){re.escape(text)}(?!\w)", sentence)
    return match.span() if match else None


def _generalize_text(text: str, relation: str) -> list[str]:
    """What stands between the holes, with the words free that change with who and when."""
    if relation:
        match = re.search(rf"(?<![\w-]){re.escape(relation)}(?![\w-])", text) or _find_plural(text, relation)
        if match:
            return [*_generalize_text(text[: match.start()], ""), RELATION, *_generalize_text(text[match.end() :], "")]
    return [generalize_token(token) for token in SPLIT.findall(text)]


def _find_plural(text: str, relation: str) -> re.Match[str] | None:
    return next((m for m in re.finditer(r"[a-z][a-z-]*", text) if singular(m[0]) == relation), None)


def generalize_token(token: str) -> str:
    """The regular expression for a token, with those free that change with who and when."""
    for forms in _CLASSES:
        if token.casefold() in forms:
            either = "|".join(form.capitalize() if token[0].isupper() else form for form in forms)
            return f"(?:{either})"
    return re.escape(token)


def _name_variants(subject: str) -> set[str]:
    """A day as it is spoken; a name also without what tells it from others of that name."""
    day = as_day(subject)
    return {format_day(day), subject} if day else {subject, subject.partition(" (")[0]}


def _parse_values(text: str, kind: str) -> list[str]:
    """The values in a text of that kind; [] where it holds something else."""
    if kind == DAY:
        day = as_day(text)
        return [day] if day else []
    if kind == WORD:
        return [text] if text[:1].islower() else []
    names = [re.sub(r"^(?:Mr|Ms|Mrs) ", "", name) for name in re.split(r", | and ", text)]
    return names if all(NAME.fullmatch(name) for name in names) else []


def extract_values(
    patterns: Iterable[SentencePattern], sentences: Sequence[str], subject: str, relation: str
) -> list[str]:
    """Every value that a sentence says by one of the patterns, each once."""
    known = list(patterns)
    return list(
        dict.fromkeys(
            value for sentence in sentences for item in known for value in item.values(sentence, subject, relation)
        )
    )
