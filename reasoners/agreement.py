"""How far the answers of the sources agree: the signal of trust that the paper found.

The rule: two answers are the same when the sets of their parts are, after ids, remarks in brackets, articles, case,
accents and punctuation are left away and dates and numbers are written in one way. Parts stand between commas,
semicolons, lines and "and".
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NAMES = {"text": "the articles", "graph": "the graph", "model": "the model's memory"}
ALL, TWO, CONFLICT, ONE, NONE = "all agree", "two agree", "conflict", "one only", "none"
_MONTHS = "january february march april may june july august september october november december".split()
_MONTH = "|".join(_MONTHS)
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)? (?:of )?({_MONTH}),? (\d{{3,4}})\b")
_MONTH_FIRST = re.compile(rf"\b({_MONTH}) (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{3,4}})\b")
_REMARK = re.compile(r"\([^()]*\)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_BETWEEN = re.compile(r"[,;\n]|\band\b")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_ID = re.compile(r"\b[qp]\d+\b")
_NO_WORD = re.compile(r"[^\w.-]+|(?<!\d)\.|[.-](?!\d)|(?<=[^\W\d])-")


@dataclass(frozen=True, slots=True)
class Agreement:
    """What each source that was asked says, and which of them say the same."""

    answers: Mapping[str, str | None]
    """By source; None where it has no answer."""
    agreeing: tuple[str, ...]
    """The most sources that say the same, where more than one does."""

    @property
    def state(self) -> str:
        """all agree, two agree, conflict, one only, or none."""
        answering = [answer for answer in self.answers.values() if answer is not None]
        if len(self.agreeing) == len(self.answers):
            return ALL
        if self.agreeing:
            return TWO
        return CONFLICT if len(answering) > 1 else ONE if answering else NONE

    @property
    def hedge(self) -> str:
        """The sentence that says how sure the answer is, before a response; empty where nothing need be said."""
        said = [f"{NAMES[name]} {_verb(name)} {answer}" for name, answer in self.answers.items() if answer is not None]
        if self.state == CONFLICT:
            return f"The sources disagree: {', '.join(said[:-1])} and {said[-1]}."
        if self.state == ONE:
            (name,) = (name for name, answer in self.answers.items() if answer is not None)
            if name == "model":
                return "I could not verify this; I answer from memory alone."
            return f"Only {NAMES[name]} {'answer' if name == 'text' else 'answers'} this; no other source confirms it."
        return ""

    @property
    def words(self) -> str:
        """The state in a sentence."""
        if self.state == ALL:
            return f"All {'three' if len(self.answers) == 3 else 'the'} sources agree."
        if self.state == TWO:
            first, second = (NAMES[name] for name in self.agreeing)
            others = [name for name in self.answers if name not in self.agreeing]
            silent = all(self.answers[name] is None for name in others)
            rest = ", ".join(NAMES[name] for name in others)
            tail = f"{rest} {_verb(others[0])} nothing" if silent else f"{rest} {_verb(others[0])} otherwise"
            told = f"{first} and {second} agree; {tail}."
            return told[0].upper() + told[1:]
        return self.hedge or "No source has an answer."

    def to_json(self) -> dict[str, Any]:
        """As a trace's configuration keeps it."""
        return {
            "state": self.state,
            "words": self.words,
            "answers": dict(self.answers),
            "agreeing": list(self.agreeing),
        }


def agreement(answers: Mapping[str, str | None]) -> Agreement:
    """The agreement of these answers by source."""
    alike: dict[frozenset[str], list[str]] = {}
    for name, answer in answers.items():
        if answer is not None:
            alike.setdefault(parts(answer), []).append(name)
    most = max(alike.values(), key=len, default=[])
    return Agreement(dict(answers), tuple(most) if len(most) > 1 else ())


def parts(answer: str) -> frozenset[str]:
    """The parts of an answer in the one way of writing that they are compared in."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", answer) if not unicodedata.combining(c)).casefold()
    plain = _DAY_FIRST.sub(lambda m: _date(m[3], m[2], m[1]), plain)
    plain = _MONTH_FIRST.sub(lambda m: _date(m[3], m[1], m[2]), plain)
    plain = _THOUSANDS.sub("", _without(_REMARK, plain))
    found = {
        " ".join(_NO_WORD.sub(" ", _without(_ARTICLE, _without(_ID, part))).split()) for part in _BETWEEN.split(plain)
    }
    return frozenset(found - {""}) or frozenset({plain.strip()})


def _without(pattern: re.Pattern[str], text: str) -> str:
    """The text without what matches, unless that is all of it."""
    rest = pattern.sub(" ", text)
    return rest if rest.strip(" ,;\n") else text


def _date(year: str, month: str, day: str) -> str:
    return f"{int(year):04}-{_MONTHS.index(month) + 1:02}-{int(day):02}"


def _verb(name: str) -> str:
    return "say" if name == "text" else "says"
