"""Web pages: unmarked statements are exactly the facts of the web, and marked ones are false as stated."""

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

from showhow.fiction.generator import web_pages
from showhow.fiction.generator.build import PAGES_FILE, generate_world
from showhow.fiction.generator.source_split import assign_sources, parse_split
from showhow.fiction.generator.web_pages import MarkedWebPage, generate_pages, load_marks_by_address
from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.items import ItemCatalog
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.universe import FactSources, Universe
from showhow.worlds.embedded.text import EmbeddedWeb, WebWriter
from showhow.worlds.open import open_world
from tests.examples import examples
from tests.fiction.generator.sentence_reader import WEB, Reading, read
from tests.fiction.generator.split_universes import SPLITS, Fact, friendships, numbers, split_universe, words
from tests.fiction.universe.random_options import options

PRONOUN = {"Ms ": "her", "Mr ": "his"}
WITH_PAGES = [(split, by) for split, by in SPLITS if split == "everywhere" or "web" in split]


@cache
def pages_of(seed: int, split: str = "everywhere", by: str = "both") -> list[MarkedWebPage]:
    return list(generate_pages(*split_universe(seed, split, by)))


@cache
def large_universe_pages() -> tuple[Universe, FactSources, list[MarkedWebPage]]:
    """A universe large enough for rare events, with all facts on the web."""
    universe, fact_sources, options = split_universe(4, "web=100", people=1500)
    return universe, fact_sources, list(generate_pages(universe, fact_sources, options))


def title(universe: Universe, called: str) -> str:
    """Title of a person that a page calls Ms or Mr; asserts the gender."""
    name, _, pronoun = called.partition(" & ")
    row = universe.titles.index(name[3:])
    assert (name[:3], pronoun in ("", PRONOUN[name[:3]])) == ("Ms " if universe.female[row] else "Mr ", True)
    return name[3:]


def facts(universe: Universe, reading: Reading) -> Iterator[Fact]:
    """Facts of a sentence; for couples and friends, in both directions."""
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
def classify_statements(seed: int, split: str, by: str) -> tuple[set[Fact], list[tuple[MarkedWebPage, int, Fact]]]:
    """Facts of unmarked sentences, and facts of marked sentences."""
    universe, _, _ = split_universe(seed, split, by)
    true, marked_statements = set(), []
    for page in pages_of(seed, split, by):
        marks = {mark.sentence: number for number, mark in enumerate(page.marks)}
        for place, sentence in enumerate(page.page.sentences):
            stated = set(facts(universe, read(sentence, WEB)))
            if place in marks:
                marked_statements.append((page, marks[place], stated.pop()))
            elif place < len(page.page.sentences) - 1:
                true |= stated
    return true, marked_statements


@pytest.mark.parametrize(("split", "by"), WITH_PAGES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_unmarked_statements_are_exactly_the_facts_of_the_web(seed: int, split: str, by: str):
    universe, fact_sources, _ = split_universe(seed, split, by)
    expected: set[Fact] = set()
    for row, fact, value in numbers(universe, fact_sources, "web"):
        expected.add((universe.titles[row], fact, words(universe, fact, value)))
    for one, other in friendships(universe, fact_sources, "web"):
        expected |= {(universe.titles[a], "friend", universe.titles[b]) for a, b in ((one, other), (other, one))}
    places = universe.places
    expected |= {(town, "region", places.regions[places.region[n]]) for n, town in enumerate(places.towns)}
    expected |= {(region, "country", places.countries[places.country[n]]) for n, region in enumerate(places.regions)}
    assert classify_statements(seed, split, by)[0] == expected


@settings(max_examples=examples(40))
@given(options(most=60), st.sampled_from(WITH_PAGES))
def test_pages_of_any_world_read_back(options: GenerationOptions, split: tuple[str, str]):
    universe = make_universe(options)
    fact_sources = assign_sources(universe, parse_split(*split), options.seed)
    true = 0
    for page in generate_pages(universe, fact_sources, replace(options, split=split[0], split_by=split[1])):
        stated = [read(sentence, WEB) for sentence in page.page.sentences]
        assert len({mark.sentence for mark in page.marks}) == len(page.marks) < len(stated)
        if not page.id.startswith(("gazetteer", "fans")):
            true += sum(1 + (reading.kind == "spouse") for reading in stated[:-1]) - len(page.marks)
    assert true == len(list(numbers(universe, fact_sources, "web"))) + len(
        list(friendships(universe, fact_sources, "web"))
    )


@pytest.mark.parametrize(("split", "by"), WITH_PAGES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_mark_has_the_false_and_the_true_value(seed: int, split: str, by: str):
    universe, _, _ = split_universe(seed, split, by)
    whys = Counter()
    for page, number, (who, fact, value) in classify_statements(seed, split, by)[1]:
        mark, row = page.marks[number], page.to_row(universe)["marks"][number]
        true = int(getattr(universe, fact)[mark.person])
        assert (universe.titles[mark.person], mark.fact, words(universe, fact, mark.stated)) == (who, fact, value)
        assert (mark.true, mark.stated != true) == (true, True)
        assert row["sentence"] == page.page.sentences[mark.sentence]
        assert (row["person"]["text"], row["stated"]["text"], row["why"]) == (who, value, mark.why)
        assert row["person"]["entity"] == ItemCatalog(universe).person(mark.person)
        assert row["stated"]["entity"] == ItemCatalog(universe).value_id(fact, mark.stated)
        assert row["true"] is None if true < 0 else row["true"]["text"] == words(universe, fact, true)
        whys[mark.why] += 1
    assert set(whys) == {"out of date", "namesake"}


def test_pages_are_later_than_their_facts_and_use_the_right_tense():
    universe, _, pages = large_universe_pages()
    rows = {name: row for row, name in enumerate(universe.titles)}
    living = 0
    for page in pages:
        *stated, last = (read(sentence, WEB) for sentence in page.page.sentences)
        assert (last.kind, last.values) == ("written", (date.fromordinal(page.date).isoformat(),))
        assert page.date <= universe.today
        assert page.to_row(universe)["date"] == last.values[0]
        for reading in stated:
            if reading.kind in ("birth", "death", "wedding"):
                assert reading.values < last.values
            if reading.kind == "spouse":
                assert universe.wedding[rows[title(universe, reading.who)]] < page.date
            if reading.past is not None:
                death = int(universe.death[rows[title(universe, reading.who)]])
                assert (reading.past, death < 0 or page.date < death) == (False, True)
                living += 1
    assert living


def test_outdated_pages_are_old_and_about_living_adults():
    universe, fact_sources, options = split_universe(6, "web=10,text=90", people=20_000)
    # The oldest current page.
    now = universe.today - 600
    recent = 0
    for page in generate_pages(universe, fact_sources, options):
        for mark in page.marks:
            if mark.why == "out of date":
                death = int(universe.death[mark.person])
                assert universe.birth[mark.person] + 18 * 365 < page.date < (now if death < 0 else min(death, now))
                recent += page.date > now - 366
    assert recent


def test_an_outdated_statement_is_corrected_on_a_later_page():
    universe, _, pages = large_universe_pages()
    right: dict[Fact, int] = {}
    stale = []
    for page in pages:
        marks = {mark.sentence: mark for mark in page.marks}
        for place, sentence in enumerate(page.page.sentences[:-1]):
            for fact in facts(universe, read(sentence, WEB)):
                if place not in marks:
                    right[fact] = max(right.get(fact, 0), page.date)
                elif marks[place].why == "out of date":
                    true = words(universe, fact[1], marks[place].true)
                    stale.append((page.date, (*fact[:2], true)))
    assert stale
    assert all(day < right[true] for day, true in stale)


def test_invented_namesakes_lived_earlier_and_their_titles_have_dates():
    universe, _, pages = large_universe_pages()
    count = 0
    for page in pages:
        who = {mark.person for mark in page.marks if mark.why == "namesake"}
        if who:
            [row] = who
            days = {mark.fact: date.fromordinal(mark.stated) for mark in page.marks if mark.fact in ("birth", "death")}
            assert page.page.title == f"{universe.names[row]} ({days['birth'].year}–{days['death'].year})"
            assert days["birth"] < days["death"] < date.fromordinal(int(universe.birth.min()))
            assert universe.names[row] == universe.titles[row]
            count += 1
    assert count


def test_addresses_are_valid_and_unique():
    universe, _, _ = split_universe(1)
    rows = [json.loads(json.dumps(page.to_row(universe))) for page in pages_of(1)]
    for key in ("address", "id"):
        values = [row[key] for row in rows]
        assert len(set(values)) == len(values)
        assert key == "id" or all(re.fullmatch(r"https://[a-z]+\.example/[a-z0-9-]+/\d+", one) for one in values)


def test_every_phrasing_is_used():
    _, _, pages = large_universe_pages()
    stated = {
        (reading.kind, reading.pattern) for page in pages for reading in (read(s, WEB) for s in page.page.sentences)
    }
    assert stated == {(kind, pattern.pattern) for kind, pattern in WEB}


def test_plain_pages_use_one_phrasing():
    universe, fact_sources, options = split_universe(1)
    plain = list(generate_pages(universe, fact_sources, replace(options, plain=True)))
    patterns = set()
    for one, other in zip(plain, pages_of(1), strict=True):
        assert (one.id, one.page.title, one.date, one.marks) == (other.id, other.page.title, other.date, other.marks)
        for sentences in zip(one.page.sentences, other.page.sentences, strict=True):
            readings = [read(sentence, WEB) for sentence in sentences]
            assert readings[0].values == readings[1].values or readings[0].kind in ("spouse", "friend")
            patterns.add((readings[0].kind, readings[0].past, readings[0].pattern))
    assert len(patterns) == len({(kind, past) for kind, past, _ in patterns})


@pytest.mark.parametrize(("split", "by"), [("text=100", "both"), ("text=50,graph=50", "entity")])
def test_a_web_without_facts_has_no_pages(split: str, by: str):
    assert list(generate_pages(*split_universe(1, split, by))) == []


def test_pages_are_found_by_person_and_fact(tmp_path: Path):
    universe, fact_sources, _ = split_universe(1)
    writer = WebWriter(tmp_path / "web")
    for page in pages_of(1):
        writer.add(page.page)
    writer.close()
    web = EmbeddedWeb(tmp_path / "web")
    assert len(web) == len(pages_of(1))
    for row, fact, value in numbers(universe, fact_sources, "web"):
        if fact in ("hobby", "residence"):
            sought = f"{universe.titles[row]} {words(universe, fact, value)}"
            snippets = [hit.snippet for hit in web.search(sought, 5)]
            assert any(
                (title(universe, reading.who), reading.kind, reading.values)
                == (universe.titles[row], fact, (words(universe, fact, value),))
                for reading in (read(snippet, WEB) for snippet in snippets)
                if reading.kind == fact
            )
    page = pages_of(1)[-1].page
    assert web.fetch(page.address) == page


def test_marks_are_loaded_by_address(tmp_path, monkeypatch):
    generate_world(
        tmp_path, "w", GenerationOptions(people=300, seed=2, split="text=40,graph=20,web=40", per_template=0)
    )
    file = tmp_path / "w" / PAGES_FILE
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    marked_statements = {row["address"]: row["marks"] for row in rows if row["marks"]}
    assert 0 < len(marked_statements) < len(rows)
    marks = load_marks_by_address(file)
    assert marks == marked_statements
    web = open_world(tmp_path, "w").web
    for address, planted in marks.items():
        sentences = web.fetch(address).sentences
        assert all(mark["sentence"] in sentences for mark in planted)
    monkeypatch.setattr(web_pages, "MAX_FILE_BYTES", 10)
    assert load_marks_by_address(file) is None
