"""Parser of articles and web pages into facts, with patterns independent of the generator."""

import re
from dataclasses import dataclass
from datetime import date

MONTHS = "January February March April May June July August September October November December".split()
PAST = {"was", "were", "had", "lived", "resided", "worked", "enjoyed", "counted"}

WHO, WHOSE, WHAT = "(?P<who>.+?)", "(?P<whose>.+'s|His|Her)", "(?P<what>.+)"
IS, ARE, HAS = "(?P<verb>is|was)", "(?P<verb>are|were)", "(?P<verb>has|had)"
DAY, WORK = r"(?P<what>\d+ [A-Z][a-z]+ \d+)", "(?P<a>an?) (?P<what>[a-z -]+)"
FREE_TIME = "In (?P<whose>his|her) free time, (?P<who>he|she)"


def _patterns(patterns: dict[str, list[str]]) -> list[tuple[str, re.Pattern[str]]]:
    return [(kind, re.compile(rf"{pattern}\.")) for kind, several in patterns.items() for pattern in several]


def _kin(kin: str) -> list[str]:
    return [
        rf"{WHOSE} {kin} {IS} {WHAT}",
        rf"{WHOSE} {kin}s {ARE} (?P<several>.+)",
        rf"{WHO} {HAS} a {kin}, {WHAT}",
        rf"{WHO} {HAS} {kin}s: (?P<several>.+)",
        rf"{WHAT} {IS} (?P<whose>his|her) {kin}",
        rf"(?P<several>.+) {ARE} (?P<whose>his|her) {kin}s",
    ]


PROSE = _patterns(
    {
        "gender": [
            rf"{WHO} {IS} a (?P<what>man|woman)",
            rf"This article is about {WHO}, a (?P<what>man|woman)",
            rf"Here follows the life of {WHO}, a (?P<what>man|woman)",
        ],
        "birth": [
            rf"{WHO} was born on {DAY}",
            rf"{WHOSE} date of birth is {DAY}",
            rf"{WHO} came into the world on {DAY}",
            rf"On {DAY}, {WHO} was born",
        ],
        "birthplace": [
            rf"{WHO} was born in {WHAT}",
            rf"{WHOSE} place of birth is {WHAT}",
            rf"{WHO} {IS} a native of {WHAT}",
            rf"It was in {WHAT} that {WHO} was born",
        ],
        "residence": [
            rf"{WHO} (?P<verb>lives|lived) in {WHAT}",
            rf"{WHO} (?P<verb>resides|resided) in {WHAT}",
            rf"{WHOSE} home {IS} in {WHAT}",
            rf"{WHAT} {IS} home to {WHO}",
            rf"{WHO} {HAS} (?P<whose>his|her) home in {WHAT}",
        ],
        "death": [
            rf"{WHO} died on {DAY}",
            rf"{WHO} passed away on {DAY}",
            rf"{WHOSE} life ended on {DAY}",
            rf"Death came to {WHO} on {DAY}",
        ],
        "father": [
            rf"{WHOSE} father {IS} {WHAT}",
            rf"(?P<what>.+) {IS} the father of {WHO}",
            rf"{WHO} {HAS} {WHAT} as (?P<whose>his|her) father",
        ],
        "mother": [
            rf"{WHOSE} mother {IS} {WHAT}",
            rf"(?P<what>.+) {IS} the mother of {WHO}",
            rf"{WHO} {HAS} {WHAT} as (?P<whose>his|her) mother",
        ],
        "sister": _kin("sister"),
        "brother": _kin("brother"),
        "daughter": _kin("daughter"),
        "son": _kin("son"),
        "husband": [
            rf"{WHOSE} husband {IS} {WHAT}",
            rf"{WHO} {IS} the wife of {WHAT}",
            rf"{WHAT} {IS} (?P<whose>his|her) husband",
        ],
        "wife": [
            rf"{WHOSE} wife {IS} {WHAT}",
            rf"{WHO} {IS} the husband of {WHAT}",
            rf"{WHAT} {IS} (?P<whose>his|her) wife",
        ],
        "wedding": [
            rf"{WHO} married on {DAY}",
            rf"{WHOSE} wedding day was {DAY}",
            rf"{WHOSE} wedding took place on {DAY}",
            rf"{WHO} was wed on {DAY}",
            rf"On {DAY}, {WHO} married",
        ],
        "job": [
            rf"{WHO} (?P<verb>works|worked) as {WORK}",
            rf"{WHO} {IS} {WORK} by occupation",
            rf"By occupation, (?P<who>he|she) {IS} {WORK}",
            rf"{WHO} {HAS} the occupation of {WHAT}",
        ],
        "hobby": [
            rf"{WHOSE} hobby {IS} {WHAT}",
            rf"{WHOSE} favourite pastime {IS} {WHAT}",
            rf"{FREE_TIME} (?P<verb>enjoys|enjoyed) {WHAT}",
            rf"{WHO} (?P<verb>enjoys|enjoyed) {WHAT} as a hobby",
        ],
        "friend": [
            rf"{WHOSE} friend {IS} {WHAT}",
            rf"{WHOSE} friends {ARE} (?P<several>.+)",
            rf"{WHO} {IS} friends with (?P<some>.+)",
            rf"{WHO} {HAS} a friend, {WHAT}",
            rf"{WHO} {HAS} friends: (?P<several>.+)",
            rf"{WHO} (?P<verb>counts|counted) (?P<several>.+) among (?P<whose>his|her) friends",
        ],
    }
)

_PLAIN = {
    "birth": "date of birth", "death": "date of death", "wedding": "date of wedding", "birthplace": "place of birth",
    "job": "occupation",
}  # fmt: skip
PLAIN = _patterns(
    {
        **{
            kind: [rf"The {_PLAIN.get(kind, kind)} of {WHO} is {WHAT}"]
            for kind in ("gender", *_PLAIN, "residence", "hobby", "mother", "father", "wife", "husband")
        },
        **{
            kind: [rf"The {kind} of {WHO} is {WHAT}", rf"The {kind}s of {WHO} are (?P<several>.+)"]
            for kind in ("sister", "brother", "daughter", "son", "friend")
        },
    }
)

_SHE, _PERSON = "(?P<who>M[rs] .+?)", "(?P<what>M[rs] .+)"
WEB = _patterns(
    {
        "birth": [rf"{_SHE} was born on {DAY}", rf"The date of birth of {_SHE} is {DAY}"],
        "birthplace": [rf"{_SHE} was born in {WHAT}", rf"The birthplace of {_SHE} is {WHAT}"],
        "residence": [
            rf"{_SHE} settled in {WHAT}",
            rf"{_SHE} took up residence in {WHAT}",
            rf"{_SHE} (?P<verb>lives) in {WHAT}",
            rf"The residence of {_SHE} (?P<verb>is) {WHAT}",
        ],
        "death": [rf"{_SHE} died on {DAY}", rf"The date of death of {_SHE} is {DAY}"],
        "father": [rf"{_PERSON} is the father of {_SHE}", rf"The father of {_SHE} is {_PERSON}"],
        "mother": [rf"{_PERSON} is the mother of {_SHE}", rf"The mother of {_SHE} is {_PERSON}"],
        "spouse": [
            rf"{_SHE} married {_PERSON}",
            rf"{_SHE} and {_PERSON} married each other",
            rf"{_SHE} (?P<verb>is) married to {_PERSON}",
            rf"{_SHE} and {_PERSON} (?P<verb>are) a married couple",
        ],
        "wedding": [rf"{_SHE} married on {DAY}", rf"The wedding of {_SHE} took place on {DAY}"],
        "job": [
            rf"{_SHE} became {WORK}",
            rf"{_SHE} took up the occupation of {WHAT}",
            rf"{_SHE} (?P<verb>works) as {WORK}",
            rf"The occupation of {_SHE} (?P<verb>is) {WHAT}",
        ],
        "hobby": [
            rf"{_SHE} took up {WHAT} as a hobby",
            rf"{_SHE} chose {WHAT} as (?P<whose>his|her) hobby",
            rf"{_SHE} (?P<verb>enjoys) {WHAT}",
            rf"The hobby of {_SHE} (?P<verb>is) {WHAT}",
        ],
        "friend": [rf"{_SHE} made friends with {_PERSON}", rf"{_SHE} and {_PERSON} became friends"],
        "region": [r"(?P<who>\w+) is a town in (?P<what>\w+)"],
        "country": [r"(?P<who>\w+) is a region of (?P<what>\w+)"],
        "written": [rf"(?P<who>This page) was written on {DAY}"],
    }
)


@dataclass(frozen=True)
class Reading:
    """A parsed sentence: kind, phrasing, subject and values."""

    kind: str
    pattern: str
    who: str
    values: tuple[str, ...]
    past: bool | None
    """Whether it is in the past tense; None if the sentence does not depend on it."""


def clauses(sentence: str) -> list[str]:
    """The two facts of a sentence as sentences; a sentence of one fact as it is."""
    first, semicolon, second = sentence.partition("; ")
    return [f"{first}.", second[0].upper() + second[1:]] if semicolon else [sentence]


def read(sentence: str, patterns: list[tuple[str, re.Pattern[str]]]) -> Reading:
    """Parse a sentence; ValueError unless exactly one pattern matches."""
    readings = [(kind, pattern, match) for kind, pattern in patterns if (match := pattern.fullmatch(sentence))]
    if len(readings) != 1:
        raise ValueError(f"{sentence!r} matches {len(readings)} patterns")
    [(kind, pattern, match)] = readings
    groups = {name: value for name, value in match.groupdict().items() if value is not None}
    if "a" in groups and (groups["a"] == "an") != (
        groups["what"][0] in "aeiou" and not groups["what"].startswith(("uni", "uro"))
    ):
        raise ValueError(f"{sentence!r} has the wrong article")
    values = _listed(groups.get("several", groups.get("some", groups.get("what", ""))))
    if ("several" in groups) != (len(values) > 1) and "some" not in groups:
        raise ValueError(f"{sentence!r} has the wrong number")
    who = {groups[group] for group in ("who", "whose") if group in groups}
    verb = groups.get("verb")
    return Reading(kind, pattern.pattern, " & ".join(sorted(who)), values, None if verb is None else verb in PAST)


def _listed(text: str) -> tuple[str, ...]:
    # Text in parentheses belongs to a title, even if it contains a separator.
    return tuple(_day(pattern) for pattern in re.split(r"(?:, | and )(?![^(]*\))", text))


def _day(text: str) -> str:
    match = re.fullmatch(r"(\d+) ([A-Z][a-z]+) (\d+)", text)
    return date(int(match[3]), MONTHS.index(match[2]) + 1, int(match[1])).isoformat() if match else text
