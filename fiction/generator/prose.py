"""Articles of a universe: one sentence per fact, and only facts that are not withheld."""

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

from fiction.generator.phrasings import DECEASED, FEMALE, SHAPE_COUNT, VOWEL, load_prose_style, takes_article_an
from fiction.questions.names import format_english_date
from fiction.universe.items import ItemCatalog
from fiction.universe.options import GenerationOptions
from fiction.universe.relations import find_sibling_pairs
from fiction.universe.universe import NONE, IdArray, Universe
from worlds.source import Article

SENTENCE_KINDS = (
    *("gender", "birth", "birthplace", "residence", "death", "father", "mother", "sister", "brother"),
    *("husband", "wife", "wedding", "daughter", "son", "job", "hobby", "friend"),
)
"""Kinds of sentences about people; the index of a kind selects the random stream of its phrasings."""
_STREAM = 101
_PEOPLE_PER_BLOCK = 1 << 12
"""People whose sentences are held in memory at once."""
_PARTNER_IS_FEMALE = {"husband": False, "wife": True}
_PLURAL_RELATIONS = {
    "sister": ("sibling", True),
    "brother": ("sibling", False),
    "daughter": ("child", True),
    "son": ("child", False),
    "friend": ("friend", None),
}

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
    is stated for both (see `Universe.restrict_to_sources`). People whose death is withheld are described as living.
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
        lies = f"{name} is a town in {places.regions[region]}.", f"{name} lies in {country}."
        yield Article(name, lies, items.town(town))
    for region, country in enumerate(places.country.tolist()):
        name = places.regions[region]
        yield Article(name, (f"{name} is a region of {places.countries[country]}.",), items.region(region))
    for country, name in enumerate(places.countries):
        yield Article(name, (f"{name} is a country.",), items.country(country))


class _ArticleBlock:
    """The articles of a block of people, written one kind of fact at a time."""

    def __init__(self, universe: Universe, options: GenerationOptions, rows: IdArray) -> None:
        self._universe, self._rows, self._seed = universe, rows, options.seed
        self._style = load_prose_style(plain=options.plain)
        titles, first, last = universe.titles, int(rows[0]), int(rows[-1]) + 1
        self._titles = titles[first:last]
        self._subjects = self._titles if self._style.subject_style == "title" else universe.names[first:last]
        self._shapes = universe.female[rows] * FEMALE + (universe.death[rows] > NONE) * DECEASED
        self._sentences: list[list[str]] = [[] for _ in rows]
        self._counts = np.zeros((len(self._style.sections), len(rows)), np.int64)

    def generate(self, items: ItemCatalog) -> Iterator[Article]:
        """Write all kinds of facts and yield the articles."""
        for section, (_, kinds) in enumerate(self._style.sections):
            for kind in kinds:
                self._counts[section] += self._write_kind(kind)
        ends = self._counts.cumsum(axis=0)
        starts = map(tuple, (ends - self._counts).T.tolist())
        for row, title, sentences, section_starts in zip(
            self._rows.tolist(), self._titles, self._sentences, starts, strict=True
        ):
            yield Article(
                title, tuple(sentences), items.person(row), self._section_builder(section_starts, len(sentences))
            )

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
        if kind in _PLURAL_RELATIONS:
            return self._write_plural_kind(kind)
        if kind == "gender":
            positions = np.arange(len(self._rows))
            return self._append_sentences(kind, positions, [""] * len(positions), self._shapes)
        values = (self._universe.spouse if kind in _PARTNER_IS_FEMALE else getattr(self._universe, kind))[self._rows]
        has_value = values > NONE
        if kind in _PARTNER_IS_FEMALE:
            has_value &= self._universe.female[values] == _PARTNER_IS_FEMALE[kind]
        places, values = np.flatnonzero(has_value), values[has_value]
        shapes = self._shapes[places]
        if kind == "job":
            shapes = shapes + _find_vowel_jobs(self._universe.jobs)[values] * VOWEL
        return self._append_sentences(kind, places, list(map(self._value_formatter(kind), values.tolist())), shapes)

    def _write_plural_kind(self, kind: str) -> Positions:
        relation, women = _PLURAL_RELATIONS[kind]
        whose, who = self._relation_pairs[relation]
        if women is not None:
            fits = self._universe.female[who] == women
            whose, who = whose[fits], who[fits]
        titles = list(map(self._universe.titles.__getitem__, who.tolist()))
        people, starts, sizes = np.unique(whose, return_index=True, return_counts=True)
        places, listed = people - int(self._rows[0]), self._style.join_values
        spans = zip(starts.tolist(), (starts + sizes).tolist(), strict=True)
        texts = [listed(titles[start:stop]) for start, stop in spans]
        return self._append_sentences(kind, places, texts, self._shapes[places], sizes > 1)

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
        places: Positions,
        texts: list[str],
        shapes: Positions,
        many: npt.NDArray[np.bool_] | None = None,
    ) -> Positions:
        phrasings = self._style.phrasings[kind]
        picks = self._draw_picks(kind)[places]
        ways = picks % phrasings.single_count
        if many is not None:
            ways = np.where(many, phrasings.single_count + picks % phrasings.several_count, ways)
        formats, subjects, sentences = phrasings.formats, self._subjects, self._sentences
        chosen = (ways * SHAPE_COUNT + shapes).tolist()
        for place, way, text in zip(places.tolist(), chosen, texts, strict=True):
            sentences[place].append(formats[way].format(subjects[place], text))
        return np.bincount(places, minlength=len(self._rows))

    def _draw_picks(self, kind: str) -> Positions:
        """A random number per person that depends on seed, kind and row, but not on the block."""
        stream = np.random.PCG64(np.random.SeedSequence(self._seed, spawn_key=(_STREAM, SENTENCE_KINDS.index(kind))))
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
