"""An instance's articles: one a person, a sentence a relation or attribute, and the same facts once more as Prolog.

What an instance states beside its questions, kept in the world's folder to be compared with what is derived.
"""

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fiction.phantomwiki.prolog import PrologSyntaxError, PrologTerm, format_fact, parse_goal
from fiction.phantomwiki.records import ATTRIBUTE_FACTS, ATTRIBUTE_WORDS, ValueCodec, iter_records
from fiction.questions.evaluate import FACT_VALUE_KINDS
from fiction.universe.relations import RELATIONS, find_related, get_relation
from fiction.universe.universe import NONE
from worlds.folder import WorldError
from worlds.importers.files import (
    READ_ERRORS,
    MalformedFile,
    iter_nonblank_lines,
    read_text_file,
    require_storable_text,
)

STATED_FACTS_FILE = "stated.json.gz"


SECTIONS = {
    "Family": ("sister", "brother", "mother", "father", "son", "daughter", "wife", "husband"),
    "Friends": ("friend",),
    "Attributes": ("dob", "job", "hobby", "gender"),
}
"""What an article tells of a person, under its headings and in this order."""
FACT_NAMES = tuple(name for names in SECTIONS.values() for name in names)
_FACTS_SUFFIX = "_facts"


class StatedFact(NamedTuple):
    """That somebody or something is the relation or attribute of a person."""

    name: str
    whose: str
    value: str

    def __str__(self) -> str:
        return format_fact(*self)


@dataclass(frozen=True, slots=True)
class StatedFacts:
    """The facts under each article; the bare attributes with how often; the cells of relations where they are given."""

    articles: Mapping[str, list[StatedFact]]
    attributes: Mapping[str, int]
    relations: Mapping[str, Mapping[str, list[str]]]

    def save(self, file: Path) -> None:
        """Write everything to one file; the same facts give the same bytes."""
        document = {"articles": self.articles, "attributes": self.attributes, "relations": self.relations}
        text = json.dumps(document, ensure_ascii=False)
        file.write_bytes(gzip.compress(text.encode(), mtime=0))

    @classmethod
    def load(cls, file: Path) -> "StatedFacts":
        """The facts of a file; WorldError when there is none or it is damaged."""
        try:
            document: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
            articles = {title: [StatedFact(*fact) for fact in facts] for title, facts in document["articles"].items()}
            return cls(articles, document["attributes"], document["relations"])
        except (*READ_ERRORS, ValueError, TypeError, KeyError, AttributeError) as broken:
            raise WorldError(f"The facts {file} cannot be read ({broken}); import the world again.") from broken


@dataclass(frozen=True, slots=True)
class PublishedArticle:
    """An article as it was published; `place` is its file and line."""

    title: str
    text: str
    facts: tuple[StatedFact, ...]
    file: Path
    line: int | None

    def malformed_error(self, reason: str) -> MalformedFile:
        """The error that the article is not what it should be."""
        return MalformedFile(self.file, self.line, reason)


def read_articles(files: tuple[Path, ...]) -> Iterator[PublishedArticle]:
    """The articles of a list of records, or of a folder of texts with a second file of facts each."""
    for file in files:
        if file.suffix != ".txt":
            for record in iter_records(file):
                facts = tuple(_parse_stated_fact(text, file, record.line) for text in record.require_texts("facts"))
                yield PublishedArticle(
                    record.require_text("title"), record.require_text("article"), facts, file, record.line
                )
        elif not (
            file.stem.endswith(_FACTS_SUFFIX)
            and file.with_name(f"{file.stem.removesuffix(_FACTS_SUFFIX)}.txt") in files
        ):
            yield _read_text_article(file)


def _read_text_article(file: Path) -> PublishedArticle:
    facts_file = file.with_name(f"{file.stem}{_FACTS_SUFFIX}.txt")
    facts = tuple(_parse_stated_fact(text, facts_file, line) for line, text in iter_nonblank_lines(facts_file))
    return PublishedArticle(file.stem, require_storable_text(read_text_file(file), file, None), facts, file, None)


def _parse_stated_fact(text: str, file: Path, line: int) -> StatedFact:
    reason = "it states nothing of two strings"
    try:
        match parse_goal(text):
            case PrologTerm(name, (str(whose), str(value))):
                return StatedFact(name, whose, value)
    except PrologSyntaxError as wrong:
        reason = str(wrong)
    raise MalformedFile(file, line, f"the fact {text} cannot be read: {reason}")


def parse_sentences(text: str) -> tuple[tuple[str, ...], tuple[tuple[str, int], ...]]:
    """The sentences of an article, and its headings below the title with the place of what follows each."""
    sentences: list[str] = []
    sections = []
    for line in (line.strip() for line in text.splitlines()):
        if line.startswith("## "):
            sections.append((line.removeprefix("## "), len(sentences)))
        elif line and not line.startswith("# "):
            sentences.append(line)
    return tuple(sentences), tuple(sections)


def parse_sentence(title: str, sentence: str) -> list[StatedFact]:
    """The facts of a sentence of the article of that title; ValueError when it is none that instances write."""
    match = re.fullmatch(rf"The ([a-z ]+) of {re.escape(title)} (?:(is)|are) (.+)\.", sentence)
    name = _names_by_words().get((match[1], match[2] is None)) if match else None
    if match is None or name is None:
        raise ValueError(f"{sentence!r} tells no relation or attribute of {title}")
    return [StatedFact(name, title, value) for value in ([match[3]] if match[2] else match[3].split(", "))]


@cache
def _names_by_words() -> dict[tuple[str, bool], str]:
    """The relation or attribute by its words, and whether they name several."""
    names = {}
    for name in FACT_NAMES:
        names[ATTRIBUTE_WORDS.get(name, name), False] = name
        if name in RELATIONS:
            names[RELATIONS[name].plural, True] = name
    return names


def derive_facts(values: ValueCodec, row: int, names: tuple[str, ...] = FACT_NAMES) -> Iterator[StatedFact]:
    """What the universe tells of a person that an article states, in its order; several people sorted by name."""
    title = values.format_value("person", row)
    for name in names:
        yield from (StatedFact(name, title, value) for value in _derive_values(values, name, row))


def _derive_values(values: ValueCodec, name: str, row: int) -> list[str]:
    universe = values.universe
    if name == "gender":
        return ["female" if universe.female[row] else "male"]
    if name in ATTRIBUTE_FACTS:
        number = int(getattr(universe, ATTRIBUTE_FACTS[name])[row])
        return [values.format_value(FACT_VALUE_KINDS[ATTRIBUTE_FACTS[name]], number)] if number > NONE else []
    related = find_related(universe, get_relation(name), np.array([row], np.int32))
    return values.format_values("person", (int(number) for number in related))


def format_article(title: str, facts: list[StatedFact]) -> str:
    """The article that states the facts."""
    parts = [f"# {title}\n"]
    for heading, names in SECTIONS.items():
        sentences = (
            _format_sentence(title, name, [fact.value for fact in facts if fact.name == name]) for name in names
        )
        # What has no sentences is an empty line, as published.
        parts.append("\n".join([f"## {heading}", "\n".join(sentence for sentence in sentences if sentence), ""]))
    return "\n".join(parts)


def _format_sentence(title: str, name: str, texts: list[str]) -> str:
    if not texts:
        return ""
    if len(texts) == 1:
        return f"The {ATTRIBUTE_WORDS.get(name, name)} of {title} is {texts[0]}."
    return f"The {RELATIONS[name].plural} of {title} are {', '.join(texts)}."
