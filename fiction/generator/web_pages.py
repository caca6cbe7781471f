"""Web pages of a universe, with marks on false statements: outdated facts and facts about a namesake."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from showhow.fiction.generator.articles import FEMALE, SHAPE_COUNT, VOWEL, load_web_phrasings
from showhow.fiction.generator.sites import Rows, WebLines, WebSite, WebSiteGenerator
from showhow.fiction.generator.source_split import parse_split
from showhow.fiction.questions.evaluate import FACT_VALUE_KINDS
from showhow.fiction.questions.names import NameFormatter, format_english_date
from showhow.fiction.universe.items import ItemCatalog
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.universe import NONE, SOURCES, WEB, FactSources, Universe
from showhow.worlds.input_files import iter_json_objects
from showhow.worlds.lexicon.english import takes_article_an, title_for
from showhow.worlds.source import WebPage

MAX_FILE_BYTES = 64_000_000
"""Largest pages.jsonl that is read to show the marks of a page."""


def load_marks_by_address(file: Path) -> dict[str, list[dict[str, Any]]] | None:
    """Marks of every page that has any, by address; None if the file is larger than MAX_FILE_BYTES."""
    if file.stat().st_size > MAX_FILE_BYTES:
        return None
    return {row["address"]: row["marks"] for _, row in iter_json_objects(file) if row.get("marks")}


_STREAM = 103
_MAX_LINES = 24
"""Maximum lines per page."""
_NON_SLUG_PATTERN = re.compile("[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class FalseStatementMark:
    """A mark on a false statement: sentence number `sentence` of a page is not true of the person that it names."""

    sentence: int
    person: int
    fact: str
    stated: int
    true: int
    """The true value; NONE if there is none."""
    why: str
    """OUT_OF_DATE or NAMESAKE of fiction.generator.sites."""


@dataclass(frozen=True, slots=True)
class MarkedWebPage:
    """A web page with its date (ordinal) and a mark for every false sentence."""

    id: str
    page: WebPage
    date: int
    marks: tuple[FalseStatementMark, ...]

    def to_row(self, universe: Universe) -> dict[str, Any]:
        """The JSON object for pages.jsonl; values are {"text", "entity"}, as in answers."""
        items, names = ItemCatalog(universe), NameFormatter(universe)

        def value(fact: str, number: int) -> dict[str, str | None] | None:
            if number <= NONE:
                return None
            return {"text": names.answer_text(FACT_VALUE_KINDS[fact], number), "entity": items.value_id(fact, number)}

        marks = [
            {
                "sentence": self.page.sentences[mark.sentence],
                "person": {"text": names.person_title(mark.person), "entity": items.person(mark.person)},
                "fact": mark.fact,
                "stated": value(mark.fact, mark.stated),
                "true": value(mark.fact, mark.true),
                "why": mark.why,
            }
            for mark in self.marks
        ]
        day = date.fromordinal(self.date).isoformat()
        return {"id": self.id, "title": self.page.title, "address": self.page.address, "date": day, "marks": marks}


def generate_pages(
    universe: Universe, fact_sources: FactSources, options: GenerationOptions
) -> Iterator[MarkedWebPage]:
    """Generate pages that state every fact assigned to the web, one per sentence, and some marked false statements.

    "Ms" and "Mr" state the gender of each person, a gazetteer states where places lie, and the last sentence of a page
    states its date. There are no pages if the split assigns no share to the web.
    """
    shares = parse_split(options.split, options.split_by).shares
    if shares is not None and not shares[list(SOURCES).index("web")]:
        return
    yield from _generate_gazetteer(universe)
    writer = _WebPageWriter(universe, options)
    for number, site in enumerate(
        WebSiteGenerator(universe, universe.restrict_to_sources(fact_sources, WEB), options.seed).generate_sites()
    ):
        yield from writer.generate_site_pages(site, number)


def _generate_gazetteer(universe: Universe) -> Iterator[MarkedWebPage]:
    places = universe.places
    for region, name in enumerate(places.regions):
        region_sentence = f"{name} is a region of {places.countries[places.country[region]]}."
        towns = [
            f"{places.towns[town]} is a town in {name}." for town in np.flatnonzero(places.region == region).tolist()
        ]
        yield _build_page(("gazetteer", region), f"Gazetteer: {name}", [region_sentence, *towns], universe.today)


def _build_page(
    page_reference: tuple[str, int],
    title: str,
    sentences: list[str],
    day: int,
    marks: tuple[FalseStatementMark, ...] = (),
) -> MarkedWebPage:
    site, number = page_reference
    slug = _NON_SLUG_PATTERN.sub("-", title.lower()).strip("-")
    date_sentence = f"This page was written on {_cached_english_date(day)}."
    text = (*sentences, date_sentence)
    page = WebPage(f"https://{site}.example/{slug}/{number}", title, text, date.fromordinal(day).isoformat())
    return MarkedWebPage(f"{site}-{number}", page, day, marks)


class _WebPageWriter:
    """Writes the lines of sites as sentences."""

    def __init__(self, universe: Universe, options: GenerationOptions) -> None:
        self._universe, self._options = universe, options
        self._female = universe.female.tolist()
        self._vowels = np.array([takes_article_an(job) for job in universe.jobs], np.int64)
        places = universe.places
        self._called: dict[str, Callable[[int], str]] = {
            **dict.fromkeys(("father", "mother", "spouse", "friend"), self._format_person),
            **dict.fromkeys(("birth", "death", "wedding"), _cached_english_date),
            **dict.fromkeys(("birthplace", "residence"), places.towns.__getitem__),
            "job": universe.jobs.__getitem__,
            "hobby": universe.hobbies.__getitem__,
        }

    def generate_site_pages(self, site: WebSite, number: int) -> Iterator[MarkedWebPage]:
        """Pages of a site; the site's number selects the random stream of its phrasings."""
        kinds = [lines.kind for lines in site.lines]
        formats = [load_web_phrasings(past=lines.is_past)[lines.kind].formats for lines in site.lines]
        value_formatters = [self._called[kind] for kind in kinds]
        for count, (part, rows) in enumerate(_split_pages(self._merge_lines(site.lines, number))):
            _, first, group, _, _, _ = rows[0]
            title = site.title(group, first) + (f" ({part})" if part > 1 else "")
            sentences = [
                formats[index][sentence_form].format(self._format_person(person), value_formatters[index](value))
                for index, person, _, value, sentence_form, _ in rows
            ]
            yield _build_page(
                (site.name, count), title, sentences, max(row[-1] for row in rows), self._build_marks(site.lines, rows)
            )

    def _merge_lines(self, lines: tuple[WebLines, ...], number: int) -> Rows:
        """All lines in page order, as rows: index of the lines, person, group, value, sentence form, day."""
        stream = np.random.PCG64(np.random.SeedSequence(self._options.seed, spawn_key=(_STREAM, number)))
        tables = []
        for index, group in enumerate(lines):
            phrasings, people = load_web_phrasings(past=group.is_past)[group.kind], group.people
            random_numbers = (stream.random_raw(len(people)) >> np.uint64(32)).astype(np.int64)
            phrasing_indices = random_numbers * (not self._options.plain) % phrasings.single_count
            sentence_forms = phrasing_indices * SHAPE_COUNT + self._universe.female[people] * FEMALE
            if group.kind == "job":
                sentence_forms += self._vowels[group.values] * VOWEL
            tables.append(
                np.stack((np.full(len(people), index), people, group.groups, group.values, sentence_forms, group.days))
            )
        table = np.concatenate(tables, axis=1).astype(np.int64, copy=False)
        return table[:, np.lexsort((table[3], table[0], table[1], table[2]))].T

    def _build_marks(self, lines: tuple[WebLines, ...], rows: list[list[int]]) -> tuple[FalseStatementMark, ...]:
        marks = []
        for sentence, (index, person, _, value, _, _) in enumerate(rows):
            kind, why = lines[index].kind, lines[index].why
            if why:
                marks.append(
                    FalseStatementMark(sentence, person, kind, value, int(getattr(self._universe, kind)[person]), why)
                )
        return tuple(marks)

    def _format_person(self, row: int) -> str:
        return f"{title_for(female=bool(self._female[row]))} {self._universe.titles[row]}"


def _split_pages(table: Rows) -> Iterator[tuple[int, list[list[int]]]]:
    """Split the rows of each group into pages; yields (page number within the group, rows)."""
    ends = np.flatnonzero(np.diff(table[:, 2], append=-1)) + 1
    start = 0
    for end in ends.tolist():
        for part, first in enumerate(range(start, end, _MAX_LINES), 1):
            yield part, table[first : min(first + _MAX_LINES, end)].tolist()
        start = end


_cached_english_date = cache(format_english_date)
