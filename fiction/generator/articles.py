"""Articles of a universe: phrasings of its facts, one or two to a sentence, and only facts that are not withheld."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from showhow.fiction.questions.names import format_english_date
from showhow.fiction.universe.items import PROPERTY_IDS, PROPERTY_RELATIONS, ItemCatalog
from showhow.fiction.universe.options import GENERATOR_VERSION, GenerationOptions
from showhow.fiction.universe.relations import find_sibling_pairs, get_relation
from showhow.fiction.universe.universe import NONE, IdArray, Universe
from showhow.worlds.lexicon.english import pluralize, takes_article_an
from showhow.worlds.lexicon.kinship import inverse_words
from showhow.worlds.source import Article

_PHRASINGS_FILE = Path(__file__).with_name("phrasings.toml")
FEMALE, DECEASED, VOWEL = 4, 2, 1
"""Bits of a sentence's shape: a female subject, past tense, and a value that takes "an"."""
SHAPE_COUNT = FEMALE + DECEASED + VOWEL + 1
_GENDER_WORDS = {"She": "He", "she": "he", "Her": "His", "her": "his", "woman": "man", "female": "male"}
_PAST_WORDS = {
    "is": "was",
    "are": "were",
    "has": "had",
    "lives": "lived",
    "resides": "resided",
    "works": "worked",
    "enjoys": "enjoyed",
    "counts": "counted",
}


@dataclass(frozen=True, slots=True)
class Phrasings:
    """Phrasings of one kind of fact, as format strings: {0} is the subject, {1} the value.

    Phrasing p in shape s is formats[p * SHAPE_COUNT + s]; the phrasings for a single value come first.
    """

    formats: tuple[str, ...]
    single_count: int
    """Number of phrasings for a single value."""
    several_count: int
    """Number of phrasings for several values in one sentence."""


@dataclass(frozen=True, slots=True)
class ProseStyle:
    """Style of articles: sections, phrasings and formats."""

    sections: tuple[tuple[str, tuple[str, ...]], ...]
    """Headings with the kinds of facts below them, in order; the introduction has an empty heading."""
    phrasings: Mapping[str, Phrasings]
    date_style: str
    """Date format: "words" or "digits"."""
    subject_style: str
    """Whether sentences call the subject by "name" or by "title"."""
    last_separator: str
    """Separator before the last of several values; commas separate the others."""
    keep_empty_sections: bool
    """Whether headings of empty sections are written."""

    def join_values(self, values: Sequence[str]) -> str:
        """Join values into one phrase: "A, B and C"."""
        return self.last_separator.join((", ".join(values[:-1]), values[-1])) if len(values) > 1 else values[0]


@cache
def load_prose_style(*, plain: bool, generator: int = GENERATOR_VERSION) -> ProseStyle:
    """The style of articles; `plain` is the single template of the PhantomWiki paper.

    A later version of the generator has the phrasings of the earlier ones, and more.
    """
    table = _read_table("plain" if plain else "prose")
    more = table.get("more", {}) if generator > 1 else {}
    return ProseStyle(
        sections=tuple((heading, tuple(kinds)) for heading, *kinds in table["sections"]),
        phrasings={
            kind: _expand_phrasings(
                kind,
                [*phrasings, *more.get("one", {}).get(kind, ())],
                [*table["many"].get(kind, ()), *more.get("many", {}).get(kind, ())],
            )
            for kind, phrasings in table["one"].items()
        },
        date_style=table["date"],
        subject_style=table["subject"],
        last_separator=table["last"],
        keep_empty_sections=table["empty"],
    )


@cache
def load_web_phrasings(*, past: bool) -> Mapping[str, Phrasings]:
    """Phrasings of web pages by kind of fact; `past` selects those of old pages."""
    table = _read_table("web")["then" if past else "now"]
    return {kind: _expand_phrasings(kind, phrasings, ()) for kind, phrasings in table.items()}


def _read_table(table: str) -> dict[str, Any]:
    tables: dict[str, Any] = tomllib.loads(_PHRASINGS_FILE.read_text(encoding="utf-8"))[table]
    return tables


def _expand_phrasings(kind: str, single: Sequence[str], several: Sequence[str]) -> Phrasings:
    words = _relation_words(kind)
    formats = tuple(
        phrasing.format_map({**words, **_substitutions(female=female, deceased=deceased, vowel=vowel)})
        for phrasing in (*single, *several)
        for female, deceased, vowel in product((False, True), repeat=3)
    )
    return Phrasings(formats, len(single), len(several))


def _relation_words(kind: str) -> dict[str, str]:
    label = PROPERTY_RELATIONS[PROPERTY_IDS[kind]] if kind in PROPERTY_IDS else get_relation(kind).singular
    return {"label": label, "labels": pluralize(label), "inverse": next(iter(inverse_words(label)), "")}


def _substitutions(*, female: bool, deceased: bool, vowel: bool) -> dict[str, str]:
    genders = {word: word if female else other for word, other in _GENDER_WORDS.items()}
    verbs = {word: past if deceased else word for word, past in _PAST_WORDS.items()}
    return {**genders, **verbs, "a": "an" if vowel else "a", "name": "{0}", "value": "{1}"}


SENTENCE_KINDS = (
    *("gender", "birth", "birthplace", "residence", "death", "father", "mother", "sister", "brother"),
    *("husband", "wife", "wedding", "daughter", "son", "job", "hobby", "friend"),
)
"""Kinds of sentences about people; the index of a kind selects the random stream of its phrasings."""
_STREAM = 101
_PEOPLE_PER_BLOCK = 1 << 12
"""People whose sentences are held in memory at once."""
CLAUSE_SEPARATOR = "; "
"""Separator of two facts in one sentence."""
_PRONOUNS = frozenset(("She", "He", "Her", "His"))
_PARTNER_KINDS = ("husband", "wife")
_PLURAL_KINDS = ("sister", "brother", "daughter", "son", "friend")
"""Kinds whose values one sentence lists."""

Positions = npt.NDArray[np.int64]
"""Positions of people within a block."""
RowPairs = tuple[npt.NDArray[np.signedinteger], npt.NDArray[np.signedinteger]]
"""(person, relative) as two arrays of rows, ascending."""


def generate_articles(universe: Universe, items: ItemCatalog, options: GenerationOptions) -> Iterator[Article]:
    """Generate an article for each person and each place."""
    yield from generate_people_articles(universe, items, options, range(len(universe)))
    yield from generate_place_articles(universe, items)


def generate_people_articles(
    universe: Universe, items: ItemCatalog, options: GenerationOptions, rows: range
) -> Iterator[Article]:
    """Generate the articles of the people in these rows; an article does not depend on which rows are requested.

    A child appears in a parent's article if the child's article states the parent; siblings appear if a common parent
    is stated for both (see `Universe.restrict_to_sources`). People whose death is withheld are described as living,
    except those who were born too long ago.
    Memory use does not grow with the number of rows.
    """
    for start in range(rows.start, rows.stop, _PEOPLE_PER_BLOCK):
        stop = min(start + _PEOPLE_PER_BLOCK, rows.stop)
        yield from _ArticleBlock(universe, options, np.arange(start, stop, dtype=np.int32)).generate(items)


def generate_place_articles(universe: Universe, items: ItemCatalog) -> Iterator[Article]:
    """Generate the articles of towns, regions and countries."""
    places = universe.places
    for town, region in enumerate(places.region.tolist()):
        name, country = places.towns[town], places.countries[places.country[region]]
        sentences = f"{name} is a town in {places.regions[region]}.", f"{name} lies in {country}."
        yield Article(name, sentences, items.town(town))
    for region, country in enumerate(places.country.tolist()):
        name = places.regions[region]
        yield Article(name, (f"{name} is a region of {places.countries[country]}.",), items.region(region))
    for country, name in enumerate(places.countries):
        yield Article(name, (f"{name} is a country.",), items.country(country))


def split_clauses(sentence: str) -> list[str]:
    """The facts of a sentence as sentences of their own."""
    clauses = sentence.removesuffix(".").split(CLAUSE_SEPARATOR)
    return [f"{clause[:1].upper()}{clause[1:]}." for clause in clauses]


class _ArticleBlock:
    """The articles of a block of people, written one kind of fact at a time."""

    def __init__(self, universe: Universe, options: GenerationOptions, rows: IdArray) -> None:
        self._universe, self._rows, self._seed = universe, rows, options.seed
        self._style = load_prose_style(plain=options.plain, generator=options.generator)
        self._joins_sentences = options.generator > 1 and not options.plain
        titles, first, last = universe.titles, int(rows[0]), int(rows[-1]) + 1
        self._titles = titles[first:last]
        self._subjects = self._titles if self._style.subject_style == "title" else universe.names[first:last]
        is_deceased = universe.death[rows] > NONE
        if options.generator > 2:
            is_deceased |= universe.find_born_long_ago()[rows]
        self._shapes = universe.female[rows] * FEMALE + is_deceased * DECEASED
        self._sentences: list[list[str]] = [[] for _ in rows]
        self._counts = np.zeros((len(self._style.sections), len(rows)), np.int64)

    def generate(self, items: ItemCatalog) -> Iterator[Article]:
        """Write all kinds of facts and yield the articles."""
        for section, (_, kinds) in enumerate(self._style.sections):
            for kind in kinds:
                self._counts[section] += self._write_kind(kind)
        if self._joins_sentences:
            for position, random_bits in enumerate(self._draw_stream(len(SENTENCE_KINDS)).tolist()):
                self._join_sentences(position, random_bits)
        ends = self._counts.cumsum(axis=0)
        starts = map(tuple, (ends - self._counts).T.tolist())
        for row, title, sentences, section_starts in zip(
            self._rows.tolist(), self._titles, self._sentences, starts, strict=True
        ):
            yield Article(
                title, tuple(sentences), items.person(row), self._section_builder(section_starts, len(sentences))
            )

    def _join_sentences(self, position: int, random_bits: int) -> None:
        """Join some neighbouring sentences of a section, so that one sentence states two facts."""
        sentences, joined = self._sentences[position], list[str]()
        start = 0
        for section, count in enumerate(self._counts[:, position].tolist()):
            first = len(joined)
            for sentence in sentences[start : start + count]:
                random_bits, is_joined = random_bits >> 1, random_bits & 1
                is_second = len(joined) > first and sentence.partition(" ")[0] in _PRONOUNS
                if is_joined and is_second and CLAUSE_SEPARATOR not in joined[-1]:
                    joined[-1] = f"{joined[-1][:-1]}{CLAUSE_SEPARATOR}{sentence[0].lower()}{sentence[1:]}"
                else:
                    joined.append(sentence)
            start += count
            self._counts[section, position] = len(joined) - first
        self._sentences[position] = joined

    @cached_property
    def _section_builder(self) -> Callable[[tuple[int, ...], int], tuple[tuple[str, int], ...]]:
        # There are only a few hundred different section layouts.
        headings, empty = [heading for heading, _ in self._style.sections], self._style.keep_empty_sections

        @cache
        def sections(starts: tuple[int, ...], end: int) -> tuple[tuple[str, int], ...]:
            ends = (*starts[1:], end)
            spans = zip(headings, starts, ends, strict=True)
            return tuple((heading, start) for heading, start, stop in spans if heading and (empty or start < stop))

        return sections

    def _write_kind(self, kind: str) -> Positions:
        """Write all facts of a kind; returns the number of sentences added per person."""
        if kind in _PLURAL_KINDS:
            return self._write_plural_kind(kind)
        if kind == "gender":
            positions = np.arange(len(self._rows))
            return self._append_sentences(kind, positions, [""] * len(positions), self._shapes)
        values = (self._universe.spouse if kind in _PARTNER_KINDS else getattr(self._universe, kind))[self._rows]
        has_value = values > NONE
        if kind in _PARTNER_KINDS:
            has_value &= self._universe.female[values] == get_relation(kind).women
        positions_with_value, values = np.flatnonzero(has_value), values[has_value]
        shapes = self._shapes[positions_with_value]
        if kind == "job":
            shapes = shapes + _find_vowel_jobs(self._universe.jobs)[values] * VOWEL
        return self._append_sentences(
            kind, positions_with_value, list(map(self._value_formatter(kind), values.tolist())), shapes
        )

    def _write_plural_kind(self, kind: str) -> Positions:
        relation = get_relation(kind)
        people_rows, relative_rows = self._relation_pairs[relation.steps[0]]
        if relation.women is not None:
            has_gender = self._universe.female[relative_rows] == relation.women
            people_rows, relative_rows = people_rows[has_gender], relative_rows[has_gender]
        titles = list(map(self._universe.titles.__getitem__, relative_rows.tolist()))
        people, starts, sizes = np.unique(people_rows, return_index=True, return_counts=True)
        positions, join_values = people - int(self._rows[0]), self._style.join_values
        spans = zip(starts.tolist(), (starts + sizes).tolist(), strict=True)
        texts = [join_values(titles[start:stop]) for start, stop in spans]
        return self._append_sentences(kind, positions, texts, self._shapes[positions], sizes > 1)

    @cached_property
    def _relation_pairs(self) -> dict[str, RowPairs]:
        universe, rows = self._universe, self._rows
        pairs: dict[str, RowPairs] = {"sibling": find_sibling_pairs(universe, rows)}
        for relation, lists in (("child", universe.children), ("friend", universe.friends_of)):
            pairs[relation] = np.repeat(rows, lists.starts[rows + 1] - lists.starts[rows]), lists.get_many(rows)
        return pairs

    def _append_sentences(
        self,
        kind: str,
        positions: Positions,
        texts: list[str],
        shapes: Positions,
        is_plural: npt.NDArray[np.bool_] | None = None,
    ) -> Positions:
        phrasings = self._style.phrasings[kind]
        random_numbers = self._draw_picks(kind)[positions]
        phrasing_indices = random_numbers % phrasings.single_count
        if is_plural is not None:
            phrasing_indices = np.where(
                is_plural, phrasings.single_count + random_numbers % phrasings.several_count, phrasing_indices
            )
        formats, subjects, sentences = phrasings.formats, self._subjects, self._sentences
        format_indices = (phrasing_indices * SHAPE_COUNT + shapes).tolist()
        for position, format_index, text in zip(positions.tolist(), format_indices, texts, strict=True):
            sentences[position].append(formats[format_index].format(subjects[position], text))
        return np.bincount(positions, minlength=len(self._rows))

    def _draw_picks(self, kind: str) -> Positions:
        """A random number per person that depends on seed, kind and row, but not on the block."""
        return self._draw_stream(SENTENCE_KINDS.index(kind))

    def _draw_stream(self, number: int) -> Positions:
        stream = np.random.PCG64(np.random.SeedSequence(self._seed, spawn_key=(_STREAM, number)))
        stream.advance(int(self._rows[0]))
        return (stream.random_raw(len(self._rows)) >> np.uint64(32)).astype(np.int64)

    def _value_formatter(self, kind: str) -> Callable[[int], str]:
        """The function that formats a value of a kind."""
        if kind in ("birth", "death", "wedding"):
            return _DATE_FORMATTERS[self._style.date_style]
        universe = self._universe
        texts: dict[str, Sequence[str]] = {
            "birthplace": universe.places.towns,
            "residence": universe.places.towns,
            "job": universe.jobs,
            "hobby": universe.hobbies,
        }
        return texts.get(kind, universe.titles).__getitem__


@cache
def _find_vowel_jobs(jobs: tuple[str, ...]) -> npt.NDArray[np.int64]:
    return np.array([takes_article_an(job) for job in jobs], np.int64)


# A world has far fewer days than people.
_DATE_FORMATTERS = {"words": cache(format_english_date), "digits": cache(lambda day: date.fromordinal(day).isoformat())}
