"""The facts of an instance (facts.pl) as a universe; rules and what Prolog writes of itself are passed over."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from worlds.importers.files import MalformedFile, checked_text
from worlds.phantomwiki.prolog import NotProlog, Term, Value, read_value
from worlds.phantomwiki.values import read_day
from worlds.universe.universe import NONE, Friends, Ids, Places, Universe

_ARGUMENTS = {
    "type": 2,
    "gender": 2,
    "parent": 2,
    "married_": 2,
    "dob": 2,
    "friend_": 2,
    "job": 2,
    "hobby": 2,
    "attribute": 1,
}
"""What is read. Published instances marry exactly those who have a child; married_ is ours, for couples without."""
_START = re.compile(rf"^(?:{'|'.join(_ARGUMENTS)})\(", re.MULTILINE)
_END = re.compile(r"\s*\.(?=\s|\Z)")


@dataclass(frozen=True, slots=True)
class Facts:
    """A universe and what else its file states: the jobs and hobbies once more as bare attributes, with repetitions."""

    universe: Universe
    attributes: Counter[str]


@dataclass(frozen=True, slots=True)
class _Fact:
    line: int
    args: tuple[str, ...]


def read_facts(file: Path, text: str) -> Facts:
    """The universe of the text of a facts.pl; MalformedFile where it states what no universe can hold."""
    found: dict[str, list[_Fact]] = {name: [] for name in _ARGUMENTS}
    for name, fact in _facts(file, text):
        found[name].append(fact)
    if not found["type"]:
        raise MalformedFile(file, None, 'it declares nobody with a fact like type("Ann Lee", person)')
    return Facts(_Reader(file, found["type"]).universe(found), Counter(fact.args[0] for fact in found["attribute"]))


def _facts(file: Path, text: str) -> Iterator[tuple[str, _Fact]]:
    line, seen = 1, 0
    for start in _START.finditer(text):
        line, seen = line + text.count("\n", seen, start.start()), start.start()
        try:
            value, end = read_value(text, start.start())
            yield start[0][:-1], _Fact(line, _strings(value, text, end))
        except NotProlog as wrong:
            raise MalformedFile(file, line, f"no fact: {wrong}") from wrong


def _strings(value: Value, text: str, end: int) -> tuple[str, ...]:
    if not isinstance(value, Term) or not _END.match(text, end):
        raise NotProlog("a fact is needed here, with a full stop behind it")
    args = tuple(arg.name if isinstance(arg, Term) and not arg.args else arg for arg in value.args)
    strings = tuple(arg for arg in args if isinstance(arg, str))
    if len(strings) != len(args) or len(args) != _ARGUMENTS[value.name]:
        raise NotProlog(f"{value.name} is stated of {_ARGUMENTS[value.name]} strings")
    return strings


class _Reader:
    """Turns the facts about people into arrays; `file` is named where they contradict each other."""

    def __init__(self, file: Path, people: list[_Fact]) -> None:
        self._file = file
        self._rows: dict[str, int] = {}
        for fact in people:
            name, kind = fact.args
            if kind != "person":
                raise MalformedFile(file, fact.line, f"{name!r} is a {kind}; only people are known")
            if name in self._rows:
                raise MalformedFile(file, fact.line, f"two people are called {name!r}, who cannot be told apart")
            self._rows[self._text(name, fact)] = len(self._rows)

    def universe(self, found: Mapping[str, list[_Fact]]) -> Universe:
        """The universe of the facts, by name."""
        female = self._female(found["gender"])
        father, mother = self._parents(found["parent"], female)
        jobs, job = self._values(found["job"], "job")
        hobbies, hobby = self._values(found["hobby"], "hobby")
        birth, nothing = self._births(found["dob"]), self._nothing()
        names = tuple(self._rows)
        return Universe(
            names=names,
            titles=names,
            female=female,
            father=father,
            mother=mother,
            spouse=self._spouses(self._couples(father, mother, found["married_"])),
            birth=birth,
            death=nothing,
            wedding=nothing,
            birthplace=nothing,
            residence=nothing,
            job=job,
            hobby=hobby,
            friends=self._friends(found["friend_"]),
            places=Places(),
            jobs=jobs,
            hobbies=hobbies,
            today=int(birth.max()),
        )

    def _nothing(self) -> Ids:
        return np.full(len(self._rows), NONE, np.int32)

    def _text(self, text: str, fact: _Fact) -> str:
        if not text.strip() or "\n" in text:
            raise MalformedFile(self._file, fact.line, "a name or value is blank or has a line break in it")
        return checked_text(text, self._file, fact.line)

    def _row(self, name: str, fact: _Fact) -> int:
        if name not in self._rows:
            raise MalformedFile(self._file, fact.line, f"{name!r} is nobody: no type({name!r}, person) is stated")
        return self._rows[name]

    def _one_each(self, facts: list[_Fact], what: str) -> list[_Fact]:
        """The facts in the order of the people, everybody having exactly one."""
        stated: dict[int, _Fact] = {}
        for fact in facts:
            if stated.setdefault(self._row(fact.args[0], fact), fact) is not fact:
                raise MalformedFile(self._file, fact.line, f"{fact.args[0]!r} has a second {what}")
        for name, row in self._rows.items():
            if row not in stated:
                raise MalformedFile(self._file, None, f"no {what} of {name!r} is stated")
        return [stated[row] for row in range(len(stated))]

    def _female(self, facts: list[_Fact]) -> npt.NDArray[np.bool_]:
        for fact in facts:
            if fact.args[1] not in ("female", "male"):
                raise MalformedFile(self._file, fact.line, f"the gender {fact.args[1]!r} is neither female nor male")
        return np.array([fact.args[1] == "female" for fact in self._one_each(facts, "gender")], np.bool_)

    def _births(self, facts: list[_Fact]) -> Ids:
        return np.array([self._day(fact) for fact in self._one_each(facts, "date of birth")], np.int32)

    def _day(self, fact: _Fact) -> int:
        try:
            return read_day(fact.args[1])
        except ValueError as wrong:
            raise MalformedFile(self._file, fact.line, str(wrong)) from wrong

    def _values(self, facts: list[_Fact], what: str) -> tuple[tuple[str, ...], Ids]:
        values = [self._text(fact.args[1], fact) for fact in self._one_each(facts, what)]
        listed = tuple(sorted(set(values)))
        numbers = {value: number for number, value in enumerate(listed)}
        return listed, np.array([numbers[value] for value in values], np.int32)

    def _parents(self, facts: list[_Fact], female: npt.NDArray[np.bool_]) -> tuple[Ids, Ids]:
        father, mother = self._nothing(), self._nothing()
        for fact in facts:
            child, parent = (self._row(name, fact) for name in fact.args)
            side, word = (mother, "mother") if female[parent] else (father, "father")
            if child == parent or side[child] not in (NONE, parent):
                who = repr(fact.args[0])
                said = f"{who} would be their own parent" if child == parent else f"a second {word} of {who} is stated"
                raise MalformedFile(self._file, fact.line, said)
            side[child] = parent
        return father, mother

    def _couples(self, father: Ids, mother: Ids, married: list[_Fact]) -> Iterator[tuple[int, int, int | None]]:
        """The rows of partners, each couple as often as something tells of it, and the line that does."""
        for child in np.flatnonzero((father >= 0) & (mother >= 0)):
            yield int(father[child]), int(mother[child]), None
        for fact in married:
            one, other = (self._row(name, fact) for name in fact.args)
            yield one, other, fact.line

    def _spouses(self, couples: Iterable[tuple[int, int, int | None]]) -> Ids:
        spouse = self._nothing()
        for left, right, line in couples:
            for one, other in ((left, right), (right, left)):
                if one == other or spouse[one] not in (NONE, other):
                    who = list(self._rows)[one]
                    reason = f"{who!r} has children with, or is married to, two people or themselves"
                    raise MalformedFile(self._file, line, f"{reason}; here everybody has one partner at most")
                spouse[one] = other
        return spouse

    def _friends(self, facts: list[_Fact]) -> Friends:
        pairs = set()
        for fact in facts:
            one, other = sorted(self._row(name, fact) for name in fact.args)
            if one == other:
                raise MalformedFile(self._file, fact.line, f"{fact.args[0]!r} is said to be their own friend")
            pairs.add((one, other))
        return Friends(np.array(sorted(pairs), np.int32).reshape(-1, 2))
