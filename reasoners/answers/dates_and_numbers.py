"""Normalizes numbers, dates and units of measure inside a text.

`normalize_quantities` writes "thirty" as 30, "first" as 1st, "12 May 1990" as 1990-05-12 and "2.5 million" as 2500000.
`read_days` tells which days a date may stand for, and `write_date` writes one in the notation of a data set.
"""

import re
from calendar import monthrange
from datetime import date
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_SCALES = {
    "hundred": 100,
    "thousand": 1_000,
    "million": 1_000_000,
    "billion": 1_000_000_000,
    "trillion": 1_000_000_000_000,
}
_CARDINALS = {word: value for value, word in enumerate(_UNITS)} | {
    word: 10 * n for n, word in enumerate(_TENS, start=2)
}
_IRREGULAR_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_ORDINALS = {_IRREGULAR_ORDINALS.get(word) or re.sub("y$", "ie", word) + "th": word for word in (*_CARDINALS, *_SCALES)}
_NUMBER_WORD = "|".join(sorted((*_CARDINALS, *_SCALES, *_ORDINALS), key=len, reverse=True))
# "no one" is not a number.
_NUMBER_PHRASE = re.compile(rf"(?<!\bno )\b(?:{_NUMBER_WORD})\b(?:(?:[ -]| and )(?:{_NUMBER_WORD})\b)*", re.IGNORECASE)
_MAX_NUMBER_WORDS = 100
"""More of them spell no number: "hundred hundred ..." would have thousands of digits."""
_MONTHS = "january february march april may june july august september october november december".split()
_MONTH = "|".join(rf"{name[:3]}(?:{name[3:]}|t)?\.?" for name in _MONTHS)
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_ERA = r"(?!\d)(?! ?b\.?c)"
_DAY_FIRST = re.compile(rf"\b{_DAY} (?:of )?({_MONTH}),? (\d{{3,4}}){_ERA}", re.IGNORECASE)
_MONTH_FIRST = re.compile(rf"\b({_MONTH}) {_DAY},? (\d{{3,4}}){_ERA}", re.IGNORECASE)
_MONTH_ONLY = re.compile(rf"\b({_MONTH}),? (\d{{4}})\b", re.IGNORECASE)
_DAY_OF_MONTH = re.compile(rf"\b{_DAY} (?:of )?({_MONTH})(?![\w.])", re.IGNORECASE)
_MONTH_AND_DAY = re.compile(rf"\b({_MONTH}) {_DAY}\b(?![.,:/-]?\d)", re.IGNORECASE)
_MIDNIGHT_TIMESTAMP = re.compile(r"(?<![\w-])\+?(\d{4}-\d\d-\d\d)T00:00:00(?:\.0+)?(?:Z|\+00:00)?(?!\w)", re.IGNORECASE)
_THOUSANDS = re.compile(r"(?<=\d)[, ](?=\d{3}(?!\d))")
_SCALED_NUMBER = re.compile(rf"(?<![\w.])(\d{{1,28}}(?:\.\d{{1,28}})?) ({'|'.join(_SCALES)})\b", re.IGNORECASE)
_NEGATIVE = re.compile(r"\b(?:minus|negative) (?=\d)", re.IGNORECASE)
_RANGE = re.compile(
    r"(?<![\w.-])(?:from )?(\d+(?:st|nd|rd|th|s)?) ?(?:-|\bto\b) ?(?=\d+(?:st|nd|rd|th|s)?\b(?!-))", re.IGNORECASE
)
_RANGE_BETWEEN = re.compile(r"\bbetween (\d+) and (\d+)\b", re.IGNORECASE)
_BEFORE_CHRIST = re.compile(r"(?<=\d) ?b\.? ?c\.?(?: ?e\b\.?)?(?!\w)", re.IGNORECASE)
_ANNO_DOMINI = re.compile(r"\ba\.?d\.? (?=\d)|(?<=\d) ?(?:a\.?d|c\.?e)(?:\.|\b)", re.IGNORECASE)
_PREFIX_OF_NUMBER = re.compile(
    r"\b(?:in|on|about|around|approximately|approx\.?|roughly|exactly) (?=-?\d)|~ ?(?=\d)", re.IGNORECASE
)
_CIRCA = re.compile(r"\b(?:[Cc]irca |[Cc]a?\. ?)(?=\d)|\bca? ?(?=\d{3,4}\b)")
_NUMBER_SIGN = re.compile(r"\b(?:no|nr)\.? ?(?=\d)|#(?=\d)", re.IGNORECASE)
_CURRENCY = re.compile(r"(?:\bUS ?)?([$\N{EURO SIGN}\N{POUND SIGN}]) ?(\d+(?:\.\d+)?)")
_CURRENCY_NAMES = {"$": "dollars", "\N{EURO SIGN}": "euros", "\N{POUND SIGN}": "pounds"}

_UNIT_SYMBOLS = {
    "kilometre": "km kms kilometer",
    "metre": "m meter",
    "centimetre": "cm centimeter",
    "millimetre": "mm millimeter",
    "mile": "mi",
    "foot": "ft feet",
    "inch": "in inches",
    "yard": "yd",
    "kilogram": "kg kgs kilogramme kilo",
    "gram": "g gramme",
    "milligram": "mg",
    "pound": "lb lbs",
    "ounce": "oz",
    "tonne": "t",
    "litre": "l liter",
    "millilitre": "ml milliliter",
    "hour": "h hr hrs",
    "minute": "min mins",
    "second": "s sec secs",
    "percent": "%",
    "degree": "\N{DEGREE SIGN} deg",
    "celsius": "c centigrade",
    "fahrenheit": "f",
    "hectare": "ha",
    "acre": "",
    "square": "sq",
    "cubic": "",
    "mile hour": "mph",
    "dollar": "usd",
    "euro": "eur",
    "kelvin": "k",
    "hertz": "hz",
    "watt": "w",
    "volt": "v",
    "am": "",
    "pm": "",
    "bc": "",
    "light-year": "ly",
}
UNITS = {
    spelling: name for name, symbols in _UNIT_SYMBOLS.items() for spelling in (name, f"{name}s", *symbols.split())
} | {f"{symbol}s": name for name, symbols in _UNIT_SYMBOLS.items() for symbol in symbols.split() if len(symbol) > 3}
"""Unit names by spelling: km, kilometer, kilometers, kilometre and kilometres all map to kilometre."""

ISO_DATE = re.compile(r"(-\d{4,9}(?=-)|\d{4}(?=-)|[12]\d{3})(?:-(\d\d))?(?:-(\d\d))?(?:T.*)?")
"""A date, a month or a year in the notation of ISO 8601; years before 1000 and after 2999 only with a month."""


def normalize_quantities(text: str) -> str:
    """Rewrite numbers, dates, ranges and currencies to one notation; letters keep their case."""
    text = _MIDNIGHT_TIMESTAMP.sub(r"\1", _THOUSANDS.sub("", text))
    text = _SCALED_NUMBER.sub(lambda match: _format_decimal(Decimal(match[1]) * _SCALES[match[2].lower()]), text)
    text = _NUMBER_PHRASE.sub(lambda match: _read_phrase(match[0]), text)
    text = _NEGATIVE.sub("-", text)
    text = _BEFORE_CHRIST.sub(" bc", text)
    text = _normalize_dates(_ANNO_DOMINI.sub(" ", text))
    text = _RANGE_BETWEEN.sub(r"\1-\2", _RANGE.sub(r"\1-", text))
    text = _NUMBER_SIGN.sub("number ", text)
    text = _CIRCA.sub("", _PREFIX_OF_NUMBER.sub("", text))
    return _CURRENCY.sub(lambda match: f"{match[2]} {_CURRENCY_NAMES[match[1]]}", text)


@lru_cache(maxsize=100_000)
def read_days(text: str) -> tuple[int, int] | None:
    """The first and the last day that a date may stand for, as ordinals; None for any other text, such as 31 June.

    Years are those of ISO 8601: 0 is 1 BC. The first day of a year stands for the year, as which it is stored.
    """
    match = ISO_DATE.fullmatch(normalize_quantities(text.strip())) if re.search(r"\d", text) else None
    if match is None:
        return None
    year, month, day = (int(part or 0) for part in match.groups())
    month, day = (0, 0) if (month, day) == (1, 1) else (month, day)
    # The calendar repeats after 400 years, which have 146,097 days; `date` has the years from 1 on.
    like, shift = 2000 + year % 400, (year // 400 - 5) * 146_097
    try:
        last = day or monthrange(like, month or 12)[1]
        return date(like, month or 1, day or 1).toordinal() + shift, date(like, month or 12, last).toordinal() + shift
    except ValueError:
        return None


class DateNotation(StrEnum):
    """A notation of days, by the example of one."""

    ISO = "1931-03-05"
    DAY_FIRST = "5 March 1931"
    MONTH_FIRST = "March 5, 1931"


def write_date(text: str, notation: DateNotation) -> str:
    """A day, or a month with its year, in this notation; any other text unchanged."""
    normal = normalize_quantities(text.strip()) if re.search(r"\d", text) else ""
    match = ISO_DATE.fullmatch(normal)
    if match is None or not match[2] or match[1].startswith("-") or "T" in normal or read_days(normal) is None:
        return text
    year, month = match[1], _MONTHS[int(match[2]) - 1].capitalize()
    if notation == DateNotation.ISO:
        return normal
    if not match[3]:
        return f"{month} {int(year)}"
    day = int(match[3])
    return f"{day} {month} {int(year)}" if notation == DateNotation.DAY_FIRST else f"{month} {day}, {int(year)}"


def format_number(number: str) -> str:
    """A decimal number without trailing zeros: 3.50 is 3.5."""
    return number.rstrip("0").rstrip(".") if "." in number else number


def _normalize_dates(text: str) -> str:
    text = _DAY_FIRST.sub(lambda m: f"{int(m[3]):04}-{_month_number(m[2])}-{int(m[1]):02}", text)
    text = _MONTH_FIRST.sub(lambda m: f"{int(m[3]):04}-{_month_number(m[1])}-{int(m[2]):02}", text)
    text = _MONTH_ONLY.sub(lambda m: f"{int(m[2]):04}-{_month_number(m[1])}", text)
    text = _DAY_OF_MONTH.sub(lambda m: f"{_month_number(m[2])}-{int(m[1]):02}", text)
    return _MONTH_AND_DAY.sub(lambda m: f"{_month_number(m[1])}-{int(m[2]):02}", text)


def _month_number(month: str) -> str:
    return f"{next(n for n, name in enumerate(_MONTHS, start=1) if name.startswith(month[:3].lower())):02}"


def _read_phrase(phrase: str) -> str:
    """The numbers that consecutive number words spell: "twenty-one" is 21, "one two" is 1 2, "first" is 1st."""
    words = re.split(r"[ -]+", phrase.lower())
    if len(words) > _MAX_NUMBER_WORDS:
        return phrase
    numbers: list[str] = []
    total = current = 0
    is_open = may_add = False
    for word in words:
        if word == "and":
            if not may_add:
                numbers += [str(total + current), "and"] if is_open else ["and"]
                total = current = 0
                is_open = False
            continue
        cardinal = _ORDINALS.get(word, word)
        if cardinal in _SCALES:
            scale = _SCALES[cardinal]
            current = max(current, 1) * scale
            if scale > 100:
                total, current = total + current, 0
            may_add = is_open = True
        else:
            value = _CARDINALS[cardinal]
            if is_open and not _can_follow(current, value, after_scale=may_add):
                numbers.append(str(total + current))
                total = current = 0
            current += value
            is_open, may_add = True, False
        if cardinal != word:
            numbers.append(_format_ordinal(total + current))
            total = current = 0
            is_open = may_add = False
    return " ".join([*numbers, str(total + current)] if is_open else numbers)


def _can_follow(current: int, value: int, *, after_scale: bool) -> bool:
    return after_scale or (0 < value < 10 and current % 100 >= 20 and current % 10 == 0)


def _format_ordinal(number: int) -> str:
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def _format_decimal(number: Decimal) -> str:
    return format_number(f"{number:f}")
