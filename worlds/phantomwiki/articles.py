"""An instance's articles: one a person, a sentence a relation or attribute, and the same facts once more as Prolog."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from worlds.importers.files import MalformedFile, checked_text, lines, whole_text
from worlds.phantomwiki.prolog import NotProlog, Term, fact, read_goal
from worlds.phantomwiki.records import records
from worlds.phantomwiki.values import FACT_OF, WORDS, Values
from worlds.questions.evaluate import KIND_OF_FACT
from worlds.universe.relations import RELATIONS, related, relation
from worlds.universe.universe import NONE

SECTIONS = {
    "Family": ("sister", "brother", "mother", "father", "son", "daughter", "wife", "husband"),
    "Friends": ("friend",),
    "Attributes": ("dob", "job", "hobby", "gender"),
}
"""What an article tells of a person, under its headings and in this order."""
ALL = tuple(name for names in SECTIONS.values() for name in names)
_FACTS = "_facts"


class Stated(NamedTuple):
    """That somebody or something is the relation or attribute of a person."""

    name: str
    whose: str
    value: str

    def __str__(self) -> str:
        return fact(*self)


@dataclass(frozen=True, slots=True)
class PublishedArticle:
    """An article as it was published; `place` is its file and line."""

    title: str
    text: str
    facts: tuple[Stated, ...]
    file: Path
    line: int | None

    def wrong(self, reason: str) -> MalformedFile:
        """The error that the article is not what it should be."""
        return MalformedFile(self.file, self.line, reason)


def read_articles(files: tuple[Path, ...]) -> Iterator[PublishedArticle]:
    """The articles of a list of records, or of a folder of texts with a second file of facts each."""
    for file in files:
        if file.suffix != ".txt":
            for record in records(file):
                facts = tuple(_stated(text, file, record.line) for text in record.texts("facts"))
                yield PublishedArticle(record.text("title"), record.text("article"), facts, file, record.line)
        elif not (file.stem.endswith(_FACTS) and file.with_name(f"{file.stem.removesuffix(_FACTS)}.txt") in files):
            yield _of_texts(file)


def _of_texts(file: Path) -> PublishedArticle:
    told = file.with_name(f"{file.stem}{_FACTS}.txt")
    facts = tuple(_stated(text, told, line) for line, text in lines(told))
    return PublishedArticle(file.stem, checked_text(whole_text(file), file, None), facts, file, None)


def _stated(text: str, file: Path, line: int) -> Stated:
    reason = "it states nothing of two strings"
    try:
        match read_goal(text):
            case Term(name, (str(whose), str(value))):
                return Stated(name, whose, value)
    except NotProlog as wrong:
        reason = str(wrong)
    raise MalformedFile(file, line, f"the fact {text} cannot be read: {reason}")


def read_sentences(text: str) -> tuple[tuple[str, ...], tuple[tuple[str, int], ...]]:
    """The sentences of an article, and its headings below the title with the place of what follows each."""
    sentences: list[str] = []
    sections = []
    for line in (line.strip() for line in text.splitlines()):
        if line.startswith("## "):
            sections.append((line.removeprefix("## "), len(sentences)))
        elif line and not line.startswith("# "):
            sentences.append(line)
    return tuple(sentences), tuple(sections)


def read_sentence(title: str, sentence: str) -> list[Stated]:
    """The facts of a sentence of the article of that title; ValueError when it is none that instances write."""
    found = re.fullmatch(rf"The ([a-z ]+) of {re.escape(title)} (?:(is)|are) (.+)\.", sentence)
    name = _named().get((found[1], found[2] is None)) if found else None
    if found is None or name is None:
        raise ValueError(f"{sentence!r} tells no relation or attribute of {title}")
    return [Stated(name, title, value) for value in ([found[3]] if found[2] else found[3].split(", "))]


@cache
def _named() -> dict[tuple[str, bool], str]:
    """The relation or attribute by its words, and whether they name several."""
    known = {}
    for name in ALL:
        known[WORDS.get(name, name), False] = name
        if name in RELATIONS:
            known[RELATIONS[name].many, True] = name
    return known


def derived_facts(values: Values, row: int, names: tuple[str, ...] = ALL) -> Iterator[Stated]:
    """What the universe tells of a person that an article states, in its order; several people sorted by name."""
    title = values.text("person", row)
    for name in names:
        yield from (Stated(name, title, value) for value in _values(values, name, row))


def _values(values: Values, name: str, row: int) -> list[str]:
    universe = values.universe
    if name == "gender":
        return ["female" if universe.female[row] else "male"]
    if name in FACT_OF:
        number = int(getattr(universe, FACT_OF[name])[row])
        return [values.text(KIND_OF_FACT[FACT_OF[name]], number)] if number > NONE else []
    found = related(universe, relation(name), np.array([row], np.int32))
    return values.texts("person", (int(each) for each in found))


def article_text(title: str, facts: list[Stated]) -> str:
    """The article that states the facts."""
    told = [f"# {title}\n"]
    for heading, names in SECTIONS.items():
        sentences = (_sentence(title, name, [each.value for each in facts if each.name == name]) for name in names)
        # What has no sentences is an empty line, as published.
        told.append("\n".join([f"## {heading}", "\n".join(sentence for sentence in sentences if sentence), ""]))
    return "\n".join(told)


def _sentence(title: str, name: str, found: list[str]) -> str:
    if not found:
        return ""
    if len(found) == 1:
        return f"The {WORDS.get(name, name)} of {title} is {found[0]}."
    return f"The {RELATIONS[name].many} of {title} are {', '.join(found)}."
