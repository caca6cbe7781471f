"""Articles of a PhantomWiki instance: one per person, one sentence per relation or attribute, with facts in Prolog.

The stated facts of an imported instance are stored in the world's folder for verification.
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
"""Relations and attributes of an article by heading, in order."""
FACT_NAMES = tuple(name for names in SECTIONS.values() for name in names)
_FACTS_SUFFIX = "_facts"


class StatedFact(NamedTuple):
    """A stated fact: `value` is the relation or attribute `name` of the person `whose`."""

    name: str
    whose: str
    value: str

    def __str__(self) -> str:
        return format_fact(*self)


@dataclass(frozen=True, slots=True)
class StatedFacts:
    """Stated facts of an instance: facts by article, counts of bare attributes, and relation tables if published."""

    articles: Mapping[str, list[StatedFact]]
    attributes: Mapping[str, int]
    relations: Mapping[str, Mapping[str, list[str]]]

    def save(self, file: Path) -> None:
        """Write a gzipped JSON file; the same facts give the same bytes."""
        document = {"articles": self.articles, "attributes": self.attributes, "relations": self.relations}
        text = json.dumps(document, ensure_ascii=False)
        file.write_bytes(gzip.compress(text.encode(), mtime=0))

    @classmethod
    def load(cls, file: Path) -> "StatedFacts":
        """Load the facts; WorldError if the file is missing or damaged."""
        try:
            document: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
            articles = {title: [StatedFact(*fact) for fact in facts] for title, facts in document["articles"].items()}
            return cls(articles, document["attributes"], document["relations"])
        except (*READ_ERRORS, ValueError, TypeError, KeyError, AttributeError) as error:
            raise WorldError(f"The facts {file} cannot be read ({error}); import the world again.") from error


@dataclass(frozen=True, slots=True)
class PublishedArticle:
    """An article as published, with its file and line for error messages."""

    title: str
    text: str
    facts: tuple[StatedFact, ...]
    file: Path
    line: int | None

    def malformed_error(self, reason: str) -> MalformedFile:
        """The error for a malformed article."""
        return MalformedFile(self.file, self.line, reason)


def read_articles(files: tuple[Path, ...]) -> Iterator[PublishedArticle]:
    """Read articles from record files, or from text files that each have a second file of facts."""
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
    reason = "it is not a fact with two strings"
    try:
        match parse_goal(text):
            case PrologTerm(name, (str(whose), str(value))):
                return StatedFact(name, whose, value)
    except PrologSyntaxError as error:
        reason = str(error)
    raise MalformedFile(file, line, f"the fact {text} cannot be read: {reason}")


def parse_sentences(text: str) -> tuple[tuple[str, ...], tuple[tuple[str, int], ...]]:
    """Split an article into sentences, and headings with the index of the first sentence below each."""
    sentences: list[str] = []
    sections = []
    for line in (line.strip() for line in text.splitlines()):
        if line.startswith("## "):
            sections.append((line.removeprefix("## "), len(sentences)))
        elif line and not line.startswith("# "):
            sentences.append(line)
    return tuple(sentences), tuple(sections)


def parse_sentence(title: str, sentence: str) -> list[StatedFact]:
    """Parse a sentence of an article; ValueError if it is not in the format of instances."""
    match = re.fullmatch(rf"The ([a-z ]+) of {re.escape(title)} (?:(is)|are) (.+)\.", sentence)
    name = _names_by_words().get((match[1], match[2] is None)) if match else None
    if match is None or name is None:
        raise ValueError(f"{sentence!r} states no relation or attribute of {title}")
    return [StatedFact(name, title, value) for value in ([match[3]] if match[2] else match[3].split(", "))]


@cache
def _names_by_words() -> dict[tuple[str, bool], str]:
    """Relation or attribute names by (words, whether plural)."""
    names = {}
    for name in FACT_NAMES:
        names[ATTRIBUTE_WORDS.get(name, name), False] = name
        if name in RELATIONS:
            names[RELATIONS[name].plural, True] = name
    return names


def derive_facts(values: ValueCodec, row: int, names: tuple[str, ...] = FACT_NAMES) -> Iterator[StatedFact]:
    """Derive the facts of a person's article from the universe, in article order; several people are sorted by name."""
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
    """Write the article that states the facts."""
    parts = [f"# {title}\n"]
    for heading, names in SECTIONS.items():
        sentences = (
            _format_sentence(title, name, [fact.value for fact in facts if fact.name == name]) for name in names
        )
        # A section without sentences is an empty line, as published.
        parts.append("\n".join([f"## {heading}", "\n".join(sentence for sentence in sentences if sentence), ""]))
    return "\n".join(parts)


def _format_sentence(title: str, name: str, texts: list[str]) -> str:
    if not texts:
        return ""
    if len(texts) == 1:
        return f"The {ATTRIBUTE_WORDS.get(name, name)} of {title} is {texts[0]}."
    return f"The {RELATIONS[name].plural} of {title} are {', '.join(texts)}."
