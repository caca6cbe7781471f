"""Answers in the one way of writing in which they are compared.

Ids, remarks in brackets, titles of people, articles, case, accents and punctuation are left away; dates, numbers and
yes and no are written in one way. Parts stand between commas, semicolons, lines, "&" and "and". Where some answers
count and others count things, such as 12 and 12 people, the numbers decide.
"""

import re
import unicodedata
from collections.abc import Mapping

_MONTHS = "january february march april may june july august september october november december".split()
_MONTH = "|".join(rf"{name[:3]}(?:{name[3:]}|t)?\.?" for name in _MONTHS)
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)? (?:of )?({_MONTH}),? (\d{{3,4}})\b")
_MONTH_FIRST = re.compile(rf"\b({_MONTH}) (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{3,4}})\b")
_MONTH_ONLY = re.compile(rf"\b({_MONTH}),? (\d{{4}})\b")
_MOMENT = re.compile(r"(?<![\w-])\+?(\d{4}-\d\d-\d\d)t00:00:00(?:\.0+)?(?:z|\+00:00)?\b")
_REMARK = re.compile(r"\([^()]*\)")
_THOUSANDS = re.compile(r"(?<=\d)[, ](?=\d{3}(?:[, ]\d{3})*(?!\d))")
_ITEM = re.compile(r"^\s*(?:\d+[.)]|[-*])\s+", re.MULTILINE)
_BETWEEN = re.compile(r"[,;\n&]|\band\b")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_TITLE = re.compile(r"^\s*(?:mr|mrs|ms|miss)\b\.?")
_ID = re.compile(r"\b[qp]\d+\b")
_INITIALS = re.compile(r"\b([a-z])[. ]+(?=[a-z]\b)")
_NO_WORD = re.compile(r"[^\w.+#-]+|(?<!\d)\.|[.-](?!\d)|(?<=[^\W\d])-|(?<![^\W\d+#])[+#]")
_ABOUT = re.compile(r"\b(?:in|on|about|around|approximately|exactly)(?= -?\d)")
_ZEROS = re.compile(r"(?<!\S)(-?\d+)(?:\.0+|(\.\d*[1-9])0+)(?!\S)")
_MULTIPLE = re.compile(r"(?<!\S)(-?\d+(?:\.\d+)?) (thousand|million|billion)\b")
_MULTIPLES = {"thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
).split()
_COUNT = re.compile(r"(-?\d+(?:\.\d+)?)(?: (\D+))?")
_WHETHER = re.compile(r"\s*(yes|true|no|false)\s*(?:[,.;!].*)?", re.DOTALL)
_NONE = frozenset({"no answer", "nobody", "no one", "nothing"})


def parts(answer: str) -> frozenset[str]:
    """The parts of an answer in the one way of writing that they are compared in."""
    decomposed = unicodedata.normalize("NFKD", answer.replace("\N{MINUS SIGN}", "-"))
    plain = "".join(sign for sign in decomposed if not unicodedata.combining(sign)).casefold().strip()
    if whether := _WHETHER.fullmatch(plain):
        return frozenset({"yes" if whether[1] in ("yes", "true") else "no"})
    plain = _THOUSANDS.sub("", _without(_REMARK, _dated(_ITEM.sub("\n", plain))))
    found = {_part(part) for part in _BETWEEN.split(plain)}
    return frozenset(found - {""}) or frozenset({plain.strip()})


def compared(answers: Mapping[str, str]) -> Mapping[str, frozenset[str]]:
    """The parts of answers by their names, as they are to be compared with each other."""
    told = {name: parts(answer) for name, answer in answers.items()}
    counts = {name: _COUNT.fullmatch(next(iter(each))) if len(each) == 1 else None for name, each in told.items()}
    nouns = {count[2] for count in counts.values() if count and count[2]}
    if len(nouns) > 1:
        return told
    return {name: frozenset({count[1]}) if (count := counts[name]) else each for name, each in told.items()}


def _dated(text: str) -> str:
    text = _MOMENT.sub(r"\1", text)
    text = _DAY_FIRST.sub(lambda m: f"{_month(m[3], m[2])}-{int(m[1]):02}", text)
    text = _MONTH_FIRST.sub(lambda m: f"{_month(m[3], m[1])}-{int(m[2]):02}", text)
    return _MONTH_ONLY.sub(lambda m: _month(m[2], m[1]), text)


def _month(year: str, month: str) -> str:
    number = next(place for place, name in enumerate(_MONTHS, start=1) if name.startswith(month[:3]))
    return f"{int(year):04}-{number:02}"


def _part(part: str) -> str:
    for pattern in (_ID, _TITLE, _ARTICLE):
        part = _without(pattern, part)
    part = _INITIALS.sub(r"\1", part.replace("%", " percent"))
    words = _NO_WORD.sub(" ", part).split()
    plain = " ".join(str(_NUMBERS.index(word)) if word in _NUMBERS else word for word in words)
    plain = _ZEROS.sub(r"\1\2", _ABOUT.sub("", plain).strip())
    plain = _MULTIPLE.sub(lambda m: f"{float(m[1]) * _MULTIPLES[m[2]]:.0f}", plain)
    return "none" if plain in _NONE else plain


def _without(pattern: re.Pattern[str], text: str) -> str:
    """The text without what matches, unless that is all of it."""
    rest = pattern.sub(" ", text)
    return rest if rest.strip(" ,;\n") else text
