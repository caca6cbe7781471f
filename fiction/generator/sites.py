"""Sites of a universe's web: lines (one fact of one person each), grouped into pages."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date

import numpy as np
import numpy.typing as npt

from showhow.fiction.universe.families import random_below
from showhow.fiction.universe.options import ABSENT_FACTS
from showhow.fiction.universe.universe import NONE, Universe

OUT_OF_DATE, NAMESAKE = "out of date", "namesake"
"""Reasons why a line is false: it was true in the past, or it is true of another person with that name."""

Rows = npt.NDArray[np.int64]

_STREAM = 102
_STALE_SHARE, _FAN_PAGE_SHARE, _OLD_FAN_PAGE_SHARE, _NAMESAKE_SHARE = 0.03, 0.06, 0.3, 0.02
"""Shares of people in an old edition, of people with a fan page, of fan pages that are old, of invented namesakes."""
_ADULT_DAYS, _YEAR_DAYS, _CENTURY_DAYS = 18 * 366, 366, 36525
_EPOCH = date(1970, 1, 1).toordinal()
_RECENT_DAYS = 600
"""Age in days of the oldest current page."""
_YEARS_PER_EDITION = 5
"""Years between two old editions of a directory."""
_YEAR_BASE = 10_000
"""Lines of one thing and year have the group thing * _YEAR_BASE + year; year 0 is the current edition."""
_PEOPLE_PER_ALBUM = 16
"""People (of neighbouring rows) per page of a family album or circle of friends."""
_CHANGING_FACTS = ("residence", "job", "hobby")
"""Facts that pages may state outdated."""


@dataclass(frozen=True, slots=True)
class WebLines:
    """Lines of one kind as parallel arrays; a group becomes one page, or several if it is long."""

    kind: str
    """A key of the web's phrasings."""
    people: Rows
    values: Rows
    groups: Rows
    days: Rows
    """Earliest possible date of the page."""
    is_past: bool = False
    """Whether an old page states it."""
    why: str = ""
    """Reason why the lines are false; empty if they are true."""


@dataclass(frozen=True, slots=True)
class WebSite:
    """A site; `title(group, row of the first person)` returns the title of a page."""

    name: str
    lines: tuple[WebLines, ...]
    title: Callable[[int, int], str]


class WebSiteGenerator:
    """Generates the sites that state the facts of `web` (the universe restricted to the web), with false lines."""

    def __init__(self, universe: Universe, web: Universe, seed: int) -> None:
        self._universe, self._web, self._seed = universe, web, seed
        # Current pages are recent, and later than the last event of the person.
        last_event = np.maximum(universe.death, universe.wedding).astype(np.int64) + 1
        recent_day = universe.today - (np.arange(len(universe)) // _PEOPLE_PER_ALBUM * 97) % _RECENT_DAYS
        self._now = np.minimum(np.maximum(last_event, recent_day), universe.today)

    def generate_sites(self) -> Iterator[WebSite]:
        """Directories, newspaper notices, family albums, circles of friends, fan pages and pages of namesakes."""
        universe = self._universe
        yield self._build_directory("residents", "residence", "Residents of {}", universe.places.towns)
        yield self._build_directory("trades", "job", "Register of trades: {}", universe.jobs)
        yield self._build_directory("clubs", "hobby", "Fans of {}", universe.hobbies)
        yield self._build_newspapers()
        yield self._build_albums()
        yield self._build_friend_circles()
        yield self._build_fan_pages()
        yield self._build_namesake_pages()

    def _build_directory(self, name: str, fact: str, title: str, value_names: tuple[str, ...]) -> WebSite:
        """All people whose fact is known, grouped by value, and old editions with former values."""
        generator = self._create_generator(_CHANGING_FACTS.index(fact))
        people = self._people_with_fact(fact)
        current_lines = self._current_lines(fact, people, self._fact_values(fact, people) * _YEAR_BASE)
        candidates = self._draw_share(_STALE_SHARE, generator)
        outdated_people, days = self._draw_past_days(
            candidates[getattr(self._universe, fact)[candidates] > NONE], generator
        )
        years = _year_of_day(days) // _YEARS_PER_EDITION * _YEARS_PER_EDITION
        is_adult = _first_day_of_year(years) >= self._universe.birth[outdated_people] + _ADULT_DAYS
        outdated_people, years = outdated_people[is_adult], years[is_adult]
        stated_values = self._draw_other_values(fact, outdated_people, generator)
        outdated_lines = WebLines(
            fact,
            outdated_people,
            stated_values,
            stated_values * _YEAR_BASE + years,
            _first_day_of_year(years),
            is_past=True,
            why=OUT_OF_DATE,
        )

        def titled(group: int, _: int) -> str:
            value_index, year = divmod(group, _YEAR_BASE)
            return (
                f"{title.format(value_names[value_index])}, {year}" if year else title.format(value_names[value_index])
            )

        return WebSite(name, (current_lines, outdated_lines), titled)

    def _build_newspapers(self) -> WebSite:
        """Births, weddings and deaths in the newspaper of the region if the web states it, else of a random region."""
        generator, lines, places = self._create_generator(3), [], self._universe.places
        for fact, place_fact in (("birth", "birthplace"), ("wedding", "residence"), ("death", "residence")):
            people = self._people_with_fact(fact)
            values, town = self._fact_values(fact, people), self._fact_values(place_fact, people)
            town = np.where(town > NONE, town, random_below(generator, len(places.towns), len(people)))
            region, days = places.region[town].astype(np.int64), np.minimum(values + 3, self._universe.today)
            lines.append(WebLines(fact, people, values, region * _YEAR_BASE + _year_of_day(values), days))

        def titled(group: int, _: int) -> str:
            return f"{places.regions[group // _YEAR_BASE]} Courier, notices of {group % _YEAR_BASE}"

        return WebSite("newspapers", tuple(lines), titled)

    def _build_albums(self) -> WebSite:
        """Birthplaces, parents and partners."""
        lines = []
        for fact in ("birthplace", "father", "mother", "spouse"):
            people = self._people_with_fact(fact)
            if fact == "spouse":
                # One line per couple.
                people = people[people < self._fact_values(fact, people)]
            lines.append(self._current_lines(fact, people, people // _PEOPLE_PER_ALBUM))
        names = self._universe.names
        return WebSite("albums", tuple(lines), lambda _, first: f"Family album: {names[first].rpartition(' ')[2]}")

    def _build_friend_circles(self) -> WebSite:
        """Friendships, by person."""
        people, friends = self._web.friends.pairs.T.astype(np.int64)
        lines = WebLines("friend", people, friends, people // _PEOPLE_PER_ALBUM, self._now[people])
        names = self._universe.names
        return WebSite("friends", (lines,), lambda _, first: f"Circle of friends: {names[first]} and others")

    def _build_fan_pages(self) -> WebSite:
        """All web facts of a person, or on old pages the facts of that time."""
        generator, universe = self._create_generator(4), self._universe
        people_with_page = self._draw_share(_FAN_PAGE_SHARE, generator)
        people_of_old_pages, days = self._draw_past_days(
            people_with_page[generator.random(len(people_with_page)) < _OLD_FAN_PAGE_SHARE], generator
        )
        people_of_current_pages, lines = np.setdiff1d(people_with_page, people_of_old_pages), []
        for fact in ("birth", "birthplace", "father", "mother", "spouse", "wedding", *_CHANGING_FACTS, "death"):
            people_with_fact = people_of_current_pages[self._fact_values(fact, people_of_current_pages) > NONE]
            lines.append(self._current_lines(fact, people_with_fact, people_with_fact))
            is_stated = self._fact_values(fact, people_of_old_pages) > NONE
            if fact in ("spouse", "wedding"):
                is_stated &= universe.wedding[people_of_old_pages] <= days
            elif fact in _CHANGING_FACTS:
                changed = (generator.random(len(people_of_old_pages)) < 0.5) & (
                    getattr(universe, fact)[people_of_old_pages] > NONE
                )
                people = people_of_old_pages[changed]
                stated_values = self._draw_other_values(fact, people, generator)
                lines.append(
                    WebLines(fact, people, stated_values, people, days[changed], is_past=True, why=OUT_OF_DATE)
                )
                is_stated &= ~changed
            if fact != "death":
                people = people_of_old_pages[is_stated]
                lines.append(
                    WebLines(fact, people, self._fact_values(fact, people), people, days[is_stated], is_past=True)
                )
        titles = universe.titles
        return WebSite("fans", tuple(lines), lambda _, first: f"All about {titles[first]}")

    def _build_namesake_pages(self) -> WebSite:
        """Invented historical people who share the name of a person whose name is unique, and who lacks no fact."""
        generator, universe = self._create_generator(5), self._universe
        people = np.array(
            [
                row
                for row in self._draw_share(_NAMESAKE_SHARE, generator).tolist()
                if universe.names[row] == universe.titles[row]
                and all(getattr(universe, fact)[row] > NONE for fact in ABSENT_FACTS)
            ],
            np.int64,
        )
        birth = (
            int(universe.birth.min(initial=universe.today))
            - _CENTURY_DAYS
            - random_below(generator, _CENTURY_DAYS, len(people))
        )
        death = birth + 25 * _YEAR_DAYS + random_below(generator, 60 * _YEAR_DAYS, len(people))
        days = np.full(len(people), universe.today - _RECENT_DAYS, np.int64)
        stated_values = {"birth": birth, "death": death}
        stated_values |= {fact: self._draw_other_values(fact, people, generator) for fact in ("job", "residence")}
        lines = [WebLines(fact, people, values, people, days, why=NAMESAKE) for fact, values in stated_values.items()]
        years = dict(
            zip(
                people.tolist(),
                zip(_year_of_day(birth).tolist(), _year_of_day(death).tolist(), strict=True),
                strict=True,
            )
        )

        def titled(_: int, first: int) -> str:
            born, died = years[first]
            return f"{universe.names[first]} ({born}–{died})"

        return WebSite("history", tuple(lines), titled)

    def _create_generator(self, number: int) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(self._seed, spawn_key=(_STREAM, number))))

    def _draw_share(self, share: float, generator: np.random.Generator) -> Rows:
        return np.flatnonzero(generator.random(len(self._universe)) < share)

    def _people_with_fact(self, fact: str) -> Rows:
        return np.flatnonzero(getattr(self._web, fact) > NONE)

    def _fact_values(self, fact: str, people: Rows) -> Rows:
        values: Rows = getattr(self._web, fact)[people].astype(np.int64)
        return values

    def _current_lines(self, fact: str, people: Rows, groups: Rows) -> WebLines:
        """Lines that state the web's facts on current pages."""
        return WebLines(fact, people, self._fact_values(fact, people), groups, self._now[people])

    def _draw_past_days(self, people: Rows, generator: np.random.Generator) -> tuple[Rows, Rows]:
        """Each person with a random day of their adult life before the oldest current page; others are left out."""
        universe = self._universe
        draws = generator.random(len(people))
        start = universe.birth[people].astype(np.int64) + _ADULT_DAYS
        death = universe.death[people]
        end = np.minimum(np.where(death > NONE, death, universe.today), universe.today - _RECENT_DAYS)
        has_adult_life = (universe.birth[people] > NONE) & (start < end)
        return people[has_adult_life], (start + (draws * (end - start)).astype(np.int64))[has_adult_life]

    def _draw_other_values(self, fact: str, people: Rows, generator: np.random.Generator) -> Rows:
        """For each person a random value other than the true one."""
        universe = self._universe
        options = {"residence": universe.places.towns, "job": universe.jobs, "hobby": universe.hobbies}[fact]
        values: Rows = (
            getattr(universe, fact)[people] + 1 + random_below(generator, len(options) - 1, len(people))
        ) % len(options)
        return values


def _year_of_day(days: Rows) -> Rows:
    years: Rows = (days - _EPOCH).astype("M8[D]").astype("M8[Y]").astype(np.int64) + 1970
    return years


def _first_day_of_year(years: Rows) -> Rows:
    days: Rows = (years - 1970).astype("M8[Y]").astype("M8[D]").astype(np.int64) + _EPOCH
    return days
