"""Web pages: what is not marked is exactly what the web is told, and what is marked is wrong as the mark says."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fiction.generator.items import ItemCatalog
from fiction.generator.pages import MarkedWebPage, generate_pages
from fiction.generator.split import assign_sources, parse_split
from fiction.universe.build import make_universe
from fiction.universe.options import GenerationOptions
from fiction.universe.universe import FactSources, Universe
from tests.examples import examples
from tests.fiction.generator.reader import WEB, Reading, read
from tests.fiction.generator.told import SPLITS, Fact, friendships, made, numbers, words
from tests.fiction.universe.drawn import options
from worlds.embedded.web import EmbeddedWeb, WebWriter

PRONOUN = {"Ms ": "her", "Mr ": "his"}
WITH_PAGES = [(split, by) for split, by in SPLITS if split == "everywhere" or "web" in split]


@cache
def written(seed: int, split: str = "everywhere", by: str = "both") -> list[MarkedWebPage]:
    return list(generate_pages(*made(seed, split, by)))


@cache
def crowd() -> tuple[Universe, FactSources, list[MarkedWebPage]]:
    """A universe large enough for what is rare, all of it on the web."""
    universe, told, asked = made(4, "web=100", people=1500)
    return universe, told, list(generate_pages(universe, told, asked))


def title(universe: Universe, called: str) -> str:
    """The title of whom a page calls Ms or Mr, and rightly so."""
    name, _, pronoun = called.partition(" & ")
    row = universe.titles.index(name[3:])
    assert (name[:3], pronoun in ("", PRONOUN[name[:3]])) == ("Ms " if universe.female[row] else "Mr ", True)
    return name[3:]


def facts(universe: Universe, reading: Reading) -> Iterator[Fact]:
    """What a sentence tells; of a couple or of friends it tells both."""
    [value] = reading.values
    if reading.kind in ("region", "country", "written"):
        yield reading.who, reading.kind, value
        return
    who = title(universe, reading.who)
    if reading.kind in ("father", "mother", "spouse", "friend"):
        value = title(universe, value)
    yield who, reading.kind, value
    if reading.kind in ("spouse", "friend"):
        yield value, reading.kind, who


@cache
def sorted_out(seed: int, split: str, by: str) -> tuple[set[Fact], list[tuple[MarkedWebPage, int, Fact]]]:
    """All that pages tell of people and places where nothing is marked, and what the marked sentences say."""
    universe, _, _ = made(seed, split, by)
    true, wrong = set(), []
    for page in written(seed, split, by):
        marks = {mark.sentence: number for number, mark in enumerate(page.marks)}
        for place, sentence in enumerate(page.page.sentences):
            found = set(facts(universe, read(sentence, WEB)))
            if place in marks:
                wrong.append((page, marks[place], found.pop()))
            elif place < len(page.page.sentences) - 1:
                true |= found
    return true, wrong


@pytest.mark.parametrize(("split", "by"), WITH_PAGES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_is_not_marked_is_exactly_what_the_web_is_told(seed: int, split: str, by: str):
    universe, told, _ = made(seed, split, by)
    expected: set[Fact] = set()
    for row, fact, value in numbers(universe, told, "web"):
        expected.add((universe.titles[row], fact, words(universe, fact, value)))
    for one, other in friendships(universe, told, "web"):
        expected |= {(universe.titles[a], "friend", universe.titles[b]) for a, b in ((one, other), (other, one))}
    places = universe.places
    expected |= {(town, "region", places.regions[places.region[n]]) for n, town in enumerate(places.towns)}
    expected |= {(region, "country", places.countries[places.country[n]]) for n, region in enumerate(places.regions)}
    assert sorted_out(seed, split, by)[0] == expected


@settings(max_examples=examples(40))
@given(options(most=60), st.sampled_from(WITH_PAGES))
def test_pages_of_any_world_are_read(drawn: GenerationOptions, split: tuple[str, str]):
    universe = make_universe(drawn)
    told = assign_sources(universe, parse_split(*split), drawn.seed)
    true = 0
    for page in generate_pages(universe, told, replace(drawn, split=split[0], split_by=split[1])):
        said = [read(sentence, WEB) for sentence in page.page.sentences]
        assert len({mark.sentence for mark in page.marks}) == len(page.marks) < len(said)
        if not page.id.startswith(("gazetteer", "fans")):
            true += sum(1 + (each.kind == "spouse") for each in said[:-1]) - len(page.marks)
    assert true == len(list(numbers(universe, told, "web"))) + len(list(friendships(universe, told, "web")))


@pytest.mark.parametrize(("split", "by"), WITH_PAGES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_mark_says_what_is_wrong_and_what_would_be_right(seed: int, split: str, by: str):
    universe, _, _ = made(seed, split, by)
    whys = Counter()
    for page, number, (who, fact, value) in sorted_out(seed, split, by)[1]:
        mark, told = page.marks[number], page.to_row(universe)["marks"][number]
        true = int(getattr(universe, fact)[mark.person])
        assert (universe.titles[mark.person], mark.fact, words(universe, fact, mark.stated)) == (who, fact, value)
        assert (mark.true, mark.stated != true) == (true, True)
        assert told["sentence"] == page.page.sentences[mark.sentence]
        assert (told["person"]["text"], told["stated"]["text"], told["why"]) == (who, value, mark.why)
        assert told["person"]["entity"] == ItemCatalog(universe).person(mark.person)
        assert told["stated"]["entity"] == ItemCatalog(universe).value_id(fact, mark.stated)
        assert told["true"] is None if true < 0 else told["true"]["text"] == words(universe, fact, true)
        whys[mark.why] += 1
    assert set(whys) == {"out of date", "namesake"}


def test_pages_were_written_after_what_they_tell_and_speak_of_the_living_alone_as_living():
    universe, _, found = crowd()
    rows = {name: row for row, name in enumerate(universe.titles)}
    living = 0
    for page in found:
        *said, last = (read(sentence, WEB) for sentence in page.page.sentences)
        assert (last.kind, last.values) == ("written", (date.fromordinal(page.date).isoformat(),))
        assert page.date <= universe.today
        assert page.to_row(universe)["date"] == last.values[0]
        for each in said:
            if each.kind in ("birth", "death", "wedding"):
                assert each.values < last.values
            if each.kind == "spouse":
                assert universe.wedding[rows[title(universe, each.who)]] < page.date
            if each.past is not None:
                death = int(universe.death[rows[title(universe, each.who)]])
                assert (each.past, death < 0 or page.date < death) == (False, True)
                living += 1
    assert living


def test_who_is_out_of_date_was_grown_up_then_and_alive_and_the_page_older_than_those_of_now():
    universe, told, asked = made(6, "web=10,text=90", people=20_000)
    # No page of now is older.
    now = universe.today - 600
    found = 0
    for page in generate_pages(universe, told, asked):
        for mark in page.marks:
            if mark.why == "out of date":
                death = int(universe.death[mark.person])
                assert universe.birth[mark.person] + 18 * 365 < page.date < (now if death < 0 else min(death, now))
                found += page.date > now - 366
    assert found


def test_what_is_out_of_date_is_set_right_on_a_later_page():
    universe, _, found = crowd()
    right: dict[Fact, int] = {}
    stale = []
    for page in found:
        marks = {mark.sentence: mark for mark in page.marks}
        for place, sentence in enumerate(page.page.sentences[:-1]):
            for told in facts(universe, read(sentence, WEB)):
                if place not in marks:
                    right[told] = max(right.get(told, 0), page.date)
                elif marks[place].why == "out of date":
                    true = words(universe, told[1], marks[place].true)
                    stale.append((page.date, (*told[:2], true)))
    assert stale
    assert all(day < right[true] for day, true in stale)


def test_invented_namesakes_lived_before_everybody_and_their_titles_say_so():
    universe, _, written_pages = crowd()
    found = 0
    for page in written_pages:
        who = {mark.person for mark in page.marks if mark.why == "namesake"}
        if who:
            [row] = who
            days = {mark.fact: date.fromordinal(mark.stated) for mark in page.marks if mark.fact in ("birth", "death")}
            assert page.page.title == f"{universe.names[row]} ({days['birth'].year}–{days['death'].year})"
            assert days["birth"] < days["death"] < date.fromordinal(int(universe.birth.min()))
            assert universe.names[row] == universe.titles[row]
            found += 1
    assert found


def test_addresses_are_addresses_and_no_two_pages_share_one():
    universe, _, _ = made(1)
    rows = [json.loads(json.dumps(page.to_row(universe))) for page in written(1)]
    for each in ("address", "id"):
        found = [row[each] for row in rows]
        assert len(set(found)) == len(found)
        assert each == "id" or all(re.fullmatch(r"https://[a-z]+\.example/[a-z0-9-]+/\d+", one) for one in found)


def test_every_phrasing_is_used():
    _, _, found = crowd()
    said = {(each.kind, each.way) for page in found for each in (read(s, WEB) for s in page.page.sentences)}
    assert said == {(kind, pattern.pattern) for kind, pattern in WEB}


def test_plain_pages_tell_the_same_in_one_way():
    universe, told, asked = made(1)
    plain = list(generate_pages(universe, told, replace(asked, plain=True)))
    ways = set()
    for one, other in zip(plain, written(1), strict=True):
        assert (one.id, one.page.title, one.date, one.marks) == (other.id, other.page.title, other.date, other.marks)
        for sentences in zip(one.page.sentences, other.page.sentences, strict=True):
            told_alike = [read(sentence, WEB) for sentence in sentences]
            assert told_alike[0].values == told_alike[1].values or told_alike[0].kind in ("spouse", "friend")
            ways.add((told_alike[0].kind, told_alike[0].past, told_alike[0].way))
    assert len(ways) == len({(kind, past) for kind, past, _ in ways})


@pytest.mark.parametrize(("split", "by"), [("text=100", "both"), ("text=50,graph=50", "entity")])
def test_a_web_that_is_told_nothing_has_no_pages(split: str, by: str):
    assert list(generate_pages(*made(1, split, by))) == []


def test_pages_are_found_by_whom_and_what_they_tell(tmp_path: Path):
    universe, told, _ = made(1)
    writer = WebWriter(tmp_path / "web")
    for page in written(1):
        writer.add(page.page)
    writer.close()
    web = EmbeddedWeb(tmp_path / "web")
    assert len(web) == len(written(1))
    for row, fact, value in numbers(universe, told, "web"):
        if fact in ("hobby", "residence"):
            sought = f"{universe.titles[row]} {words(universe, fact, value)}"
            snippets = [hit.snippet for hit in web.search(sought, 5)]
            assert any(
                (title(universe, each.who), each.kind, each.values)
                == (universe.titles[row], fact, (words(universe, fact, value),))
                for each in (read(snippet, WEB) for snippet in snippets)
                if each.kind == fact
            )
    page = written(1)[-1].page
    assert web.fetch(page.address) == page
