"""Answers in the one way of writing in which they are compared.

Ids, remarks in brackets, titles of people, articles, case, accents and punctuation are left away; dates, numbers and
yes and no are written in one way. Parts stand between commas, semicolons, lines, "&" and "and". Where some answers
count and others count things, such as 12 and 12 people, the numbers decide.

An answer without what models write round it: bold marks, quotes, a fence, a box, JSON.
"""

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

_BOXED = re.compile(r"\$?\\boxed\{(.*)\}\$?", re.DOTALL)
_QUOTED = re.compile(r"([\"'`“])([^\"'`”]*)[\"'`”]")
_ANSWER_KEYS = ("answer", "final_answer", "answers")


def strip_answer_markup(written: str) -> str:
    """The answer itself; several that stand in a JSON list come with commas between."""
    text = re.sub(r"\A```\w*\n|\n?```\Z", "", written.strip()).strip().strip("*").strip()
    boxed = _BOXED.fullmatch(text)
    if boxed:
        text = boxed[1].strip()
    quoted = _QUOTED.fullmatch(text)
    if quoted:
        return quoted[2].strip()
    return _parse_json_answer(text) if text[:1] in ("{", "[") else text


def _parse_json_answer(text: str) -> str:
    """The answer that a JSON object or list holds; the text as it stands where that cannot be told."""
    try:
        found = _answer_from_value(json.loads(text))
    except (ValueError, RecursionError):
        return text
    return text if found is None else found


def _answer_from_value(value: Any) -> str | None:
    if isinstance(value, dict):
        only = next(iter(value.values())) if len(value) == 1 else None
        return _answer_from_value(next((value[name] for name in _ANSWER_KEYS if name in value), only))
    if isinstance(value, list):
        parts = [_answer_from_value(each) for each in value]
        return ", ".join(filter(None, parts)) if all(parts) else None
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if isinstance(value, str | int | float) else None


_MONTHS = "january february march april may june july august september october november december".split()
_MONTH = "|".join(rf"{name[:3]}(?:{name[3:]}|t)?\.?" for name in _MONTHS)
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)? (?:of )?({_MONTH}),? (\d{{3,4}})\b")
_MONTH_FIRST = re.compile(rf"\b({_MONTH}) (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{3,4}})\b")
_MONTH_ONLY = re.compile(rf"\b({_MONTH}),? (\d{{4}})\b")
_MIDNIGHT_TIMESTAMP = re.compile(r"(?<![\w-])\+?(\d{4}-\d\d-\d\d)t00:00:00(?:\.0+)?(?:z|\+00:00)?\b")
_BRACKETED_REMARK = re.compile(r"\([^()]*\)")
_THOUSANDS = re.compile(r"(?<=\d)[, ](?=\d{3}(?:[, ]\d{3})*(?!\d))")
_LIST_MARKER = re.compile(r"^\s*(?:\d+[.)]|[-*])\s+", re.MULTILINE)
_PART_SEPARATOR = re.compile(r"[,;\n&]|\band\b")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_HONORIFIC = re.compile(r"^\s*(?:mr|mrs|ms|miss)\b\.?")
_ID = re.compile(r"\b[qp]\d+\b")
_INITIALS = re.compile(r"\b([a-z])[. ]+(?=[a-z]\b)")
_PUNCTUATION = re.compile(r"[^\w.+#-]+|(?<!\d)\.|[.-](?!\d)|(?<=[^\W\d])-|(?<![^\W\d+#])[+#]")
_NUMBER_PREPOSITION = re.compile(r"\b(?:in|on|about|around|approximately|exactly)(?= -?\d)")
_TRAILING_ZEROS = re.compile(r"(?<!\S)(-?\d+)(?:\.0+|(\.\d*[1-9])0+)(?!\S)")
_SCALED_NUMBER = re.compile(r"(?<!\S)(-?\d+(?:\.\d+)?) (thousand|million|billion)\b")
_SCALE_FACTORS = {"thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_NUMBER_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
).split()
_NUMBER_WITH_NOUN = re.compile(r"(-?\d+(?:\.\d+)?)(?: (\D+))?")
_YES_OR_NO = re.compile(r"\s*(yes|true|no|false)\s*(?:[,.;!].*)?", re.DOTALL)
_NO_ANSWER_WORDS = frozenset({"no answer", "nobody", "no one", "nothing"})


def normalize_answer(answer: str) -> frozenset[str]:
    """The parts of an answer in the one way of writing that they are compared in."""
    decomposed = unicodedata.normalize("NFKD", answer.replace("\N{MINUS SIGN}", "-"))
    plain = "".join(sign for sign in decomposed if not unicodedata.combining(sign)).casefold().strip()
    if whether := _YES_OR_NO.fullmatch(plain):
        return frozenset({"yes" if whether[1] in ("yes", "true") else "no"})
    plain = _THOUSANDS.sub("", _remove_pattern(_BRACKETED_REMARK, _normalize_dates(_LIST_MARKER.sub("\n", plain))))
    found = {_normalize_part(part) for part in _PART_SEPARATOR.split(plain)}
    return frozenset(found - {""}) or frozenset({plain.strip()})


def normalize_for_comparison(answers: Mapping[str, str]) -> Mapping[str, frozenset[str]]:
    """The parts of answers by their names, as they are to be compared with each other."""
    told = {name: normalize_answer(answer) for name, answer in answers.items()}
    counts = {
        name: _NUMBER_WITH_NOUN.fullmatch(next(iter(each))) if len(each) == 1 else None for name, each in told.items()
    }
    nouns = {count[2] for count in counts.values() if count and count[2]}
    if len(nouns) > 1:
        return told
    return {name: frozenset({count[1]}) if (count := counts[name]) else each for name, each in told.items()}


def _normalize_dates(text: str) -> str:
    text = _MIDNIGHT_TIMESTAMP.sub(r"\1", text)
    text = _DAY_FIRST.sub(lambda m: f"{_format_year_month(m[3], m[2])}-{int(m[1]):02}", text)
    text = _MONTH_FIRST.sub(lambda m: f"{_format_year_month(m[3], m[1])}-{int(m[2]):02}", text)
    return _MONTH_ONLY.sub(lambda m: _format_year_month(m[2], m[1]), text)


def _format_year_month(year: str, month: str) -> str:
    number = next(place for place, name in enumerate(_MONTHS, start=1) if name.startswith(month[:3]))
    return f"{int(year):04}-{number:02}"


def _normalize_part(part: str) -> str:
    for pattern in (_ID, _HONORIFIC, _ARTICLE):
        part = _remove_pattern(pattern, part)
    part = _INITIALS.sub(r"\1", part.replace("%", " percent"))
    words = _PUNCTUATION.sub(" ", part).split()
    plain = " ".join(str(_NUMBER_WORDS.index(word)) if word in _NUMBER_WORDS else word for word in words)
    plain = _TRAILING_ZEROS.sub(r"\1\2", _NUMBER_PREPOSITION.sub("", plain).strip())
    plain = _SCALED_NUMBER.sub(lambda m: f"{float(m[1]) * _SCALE_FACTORS[m[2]]:.0f}", plain)
    return "none" if plain in _NO_ANSWER_WORDS else plain


def _remove_pattern(pattern: re.Pattern[str], text: str) -> str:
    """The text without what matches, unless that is all of it."""
    rest = pattern.sub(" ", text)
    return rest if rest.strip(" ,;\n") else text
