"""The values and words that replay compares: names, dates and numbers of questions and observations."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reasoners.provenance import DATE_PATTERN, MONTHS
from tools.tool import EncodeFunction
from worlds.text_normalization import STOP_WORDS, normalize_name

MIN_RELATION_COSINE, MIN_RELATION_LEAD = 0.84, 0.15
"""A word names a relation if its cosine with the label is so high, and so much higher than with any other label."""
ENTITY, DATE, NUMBER, TEXT = "entity", "date", "number", "text"
_DISTINGUISHING_WORDS = frozenset(
    (
        "after before during ever every how last many more most much no nor not only over same under until "
        "when where why"
    ).split()
)
FUNCTION_WORDS = (STOP_WORDS | {"than", "there", "doe"}) - _DISTINGUISHING_WORDS
"""Words that may differ between two questions with the same meaning."""
UNREMARKABLE_WORDS = FUNCTION_WORDS | _DISTINGUISHING_WORDS
"""Words that name no relation."""
_TOKEN = re.compile(r"[^\W_]+(?:[-.][^\W_]+)*(?:['’][^\W_]+)?\.?|\S")
_ISO_DATE = re.compile(r"(-?\d{4,})-(\d\d)-(\d\d)(?:T.*)?")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class ReplayValue:
    """A value of the question or of an observation: its text, and its id if it is an entity."""

    text: str
    id: str | None = None

    @property
    def kind(self) -> str:
        """entity, date, number or text."""
        if self.id is not None:
            return ENTITY
        if parse_date(self.text):
            return DATE
        return NUMBER if _NUMBER.fullmatch(self.text) else TEXT

    @property
    def key(self) -> str:
        """What is compared: the id, or else the date or the name in one notation."""
        date = parse_date(self.text)
        return self.id or ("-".join(map(str, date)) if date else normalize_name(self.text))


def parse_date(text: str) -> tuple[int, int, int] | None:
    """Year, month and day of a text that is one date, 0 where it does not tell; None for any other text."""
    if match := _ISO_DATE.fullmatch(text.strip()):
        parts = (int(match[1]), int(match[2]), int(match[3]))
        # A date that is known to the year only is stored as its first day.
        return (parts[0], 0, 0) if parts[1:] == (1, 1) else parts
    if not DATE_PATTERN.fullmatch(text.strip()):
        return (int(text), 0, 0) if re.fullmatch(r"[12]\d{3}", text.strip()) else None
    month = next((index for index, name in enumerate(MONTHS, 1) if name in text), 0)
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    year = next((number for number in numbers if number > 31), None)
    return None if year is None else (year, month, next((number for number in numbers if number <= 31), 0))


def tokenize(text: str) -> list[tuple[str, int, int]]:
    """The words of a text in lower case, each with its span; a possessive s is a word of its own."""
    tokens = []
    for match in _TOKEN.finditer(text):
        word, start = match.group().casefold().replace("’", "'"), match.start()
        if word.endswith("'s") and len(word) > 2:
            tokens += [(word[:-2], start, match.end() - 2), ("s", match.end() - 1, match.end())]
        elif any(map(str.isalnum, word)):
            tokens.append((word.rstrip("."), start, match.end()))
    return tokens


def list_values(data: Mapping[str, Any] | None) -> dict[str, list[ReplayValue]]:
    """The values in each list of an observation by its path; rows give their first column, search results nothing."""
    lists: dict[str, list[ReplayValue]] = {}
    for name, items in (data or {}).items():
        if isinstance(items, list):
            cells = [item[0] if isinstance(item, list) and len(item) == 1 else item for item in items]
            if all(isinstance(cell, Mapping) and "snippet" not in cell for cell in cells):
                lists[f"/{name}"] = [value for cell in cells if (value := _parse_value(cell)) is not None]
    return lists


def _parse_value(cell: Mapping[str, Any]) -> ReplayValue | None:
    literal = cell.get("literal", cell.get("value") if cell.get("kind") == "literal" else None)
    if isinstance(literal, str):
        return ReplayValue(literal.partition("T")[0] if _ISO_DATE.fullmatch(literal) else literal)
    identifier = cell.get("id") or cell.get("entity") or (cell.get("value") if cell.get("kind") == ENTITY else None)
    text = cell.get("label") or cell.get("title") or identifier
    return ReplayValue(str(text), identifier) if text else None


def stem(word: str) -> str:
    """The word without the ending of a plural."""
    word = re.sub(r"(?<=[^s]{2})s(?=-in-)", "", word)
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def is_form(singular: str, word: str) -> bool:
    """Whether a word is this one or a plural of it."""
    name, other = normalize_name(singular), normalize_name(word)
    return name in (other, stem(other)) or (len(name) > 3 and other.startswith(name) and len(other) - len(name) <= 3)


def find_similar(text: str, others: Sequence[str], encode: EncodeFunction) -> int | None:
    """The index of the one text that clearly resembles this one more than the others do; None without such a text."""
    if not others:
        return None
    cosines = encode(list(others)) @ encode([text])[0]
    order = cosines.argsort()[::-1]
    runner_up = cosines[order[1]] if len(order) > 1 else 0.0
    is_clear = cosines[order[0]] >= MIN_RELATION_COSINE and cosines[order[0]] - runner_up >= MIN_RELATION_LEAD
    return int(order[0]) if is_clear else None


_FULL_NAME = re.compile(r"[^\W\d_a-z][\w'-]+(?: [^\W\d_a-z][\w'-]+)+")
_NAME_RUN = re.compile(r"[^\W\d_a-z][\w'’.-]*(?: (?:(?:of|the|de|von|van) )?[^\W\d_a-z][\w'’.-]*)*")


def read_context(sentence: str, start: int, end: int, subject: str) -> tuple[str, str]:
    """The two words before a span, with the subject's place; or the mark before a date, and what stands after it."""
    before = sentence[:start].replace(subject, "\x00").split()
    after = re.match(r"\s*([^\w\s]|\w+|$)", sentence[end:])
    is_marked = bool(before) and not before[-1][-1].isalnum()
    if parse_date(sentence[start:end]) is None or not is_marked:
        return " ".join(before[-2:]), ""
    return before[-1][-1], after[1] if after else ""


def read_values(
    sentences: Sequence[str], subject: str, contexts: Sequence[tuple[str, str]], *, dates: bool
) -> list[ReplayValue]:
    """The values that stand in one of these contexts: dates, or else names."""
    pattern, values = DATE_PATTERN if dates else _NAME_RUN, {}
    for sentence in sentences:
        for match in pattern.finditer(sentence):
            end = match.start() + len(match.group().rstrip("."))
            if re.match(r", [^\W\d_a-z]", sentence[end:]) and not dates:
                # The name may go on: Mendon, Massachusetts.
                continue
            if _FULL_NAME.search(sentence[: match.start()].replace(subject, "")):
                # The sentence may tell it of somebody else.
                continue
            if read_context(sentence, match.start(), end, subject) in contexts:
                value = ReplayValue(sentence[match.start() : end])
                values[value.key] = value
    return list(values.values())


def iterate_runs(text: str) -> Iterator[str]:
    """Yield the runs of up to four words that neither begin nor end with a function word, the longest first."""
    tokens = tokenize(text)
    for count in range(4, 0, -1):
        for first in range(len(tokens) - count + 1):
            run = tokens[first : first + count]
            if not {run[0][0], run[-1][0]} & UNREMARKABLE_WORDS:
                yield text[run[0][1] : run[-1][2]]


def is_unremarkable(text: str) -> bool:
    """Whether a text has no word with a meaning of its own."""
    return all(word in UNREMARKABLE_WORDS for word, _, _ in tokenize(text))
