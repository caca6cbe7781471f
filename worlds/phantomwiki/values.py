"""How an instance writes what a universe numbers: people by title, days as 0929-10-28, attributes under their names."""

import re
from collections.abc import Iterable, Iterator
from datetime import date
from functools import cached_property

from worlds.questions.evaluate import Answer
from worlds.questions.names import Names
from worlds.universe.universe import NONE, Universe

FACT_OF = {"dob": "birth", "job": "job", "hobby": "hobby"}
"""The universe's fact of an attribute, by the attribute's name in queries."""
ATTRIBUTE_OF = {fact: attribute for attribute, fact in FACT_OF.items()}
WORDS = {"dob": "date of birth", "job": "occupation", "hobby": "hobby"}
"""What questions call an attribute."""
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def read_day(text: str) -> int:
    """The ordinal of a day; ValueError for what is none."""
    try:
        # Python reads other forms of ISO dates as well.
        day = date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:
        day = None
    if day is None:
        raise ValueError(f"{text!r} is no day; days are written like 0929-10-28")
    return day.toordinal()


class Values:
    """Reads and writes the people and values of one universe."""

    def __init__(self, universe: Universe) -> None:
        self.universe = universe
        self._names = Names(universe, plain=True)

    @cached_property
    def _numbers(self) -> dict[str, dict[str, int]]:
        universe = self.universe
        listed = {"person": universe.titles, "job": universe.jobs, "hobby": universe.hobbies}
        return {kind: {text: number for number, text in enumerate(texts)} for kind, texts in listed.items()}

    def number(self, kind: str, text: str) -> int:
        """The number of a person, job or hobby, or the ordinal of a day; ValueError where there is none."""
        if kind == "day":
            return read_day(text)
        found = self._numbers[kind].get(text)
        if found is None:
            raise ValueError(f"there is no {kind} {text!r}")
        return found

    def text(self, kind: str, number: int) -> str:
        """How an instance writes it."""
        return self._names.answer(kind, number)

    def answers(self, answer: Answer) -> list[str]:
        """The answers as an instance lists them: each once, sorted as texts."""
        return self.texts(answer.kind, answer.values)

    def texts(self, kind: str, numbers: Iterable[int]) -> list[str]:
        """How an instance writes several, sorted as texts."""
        return sorted(self.text(kind, int(number)) for number in numbers)

    def attributes(self) -> Iterator[str]:
        """The job and the hobby of everybody, which an instance states once more without saying whose they are."""
        for kind, numbers in (("job", self.universe.job), ("hobby", self.universe.hobby)):
            yield from (self.text(kind, number) for number in numbers.tolist() if number > NONE)
