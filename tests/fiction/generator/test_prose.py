"""Articles: what a reader takes from them is what their source is told, fact for fact."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from hashlib import sha256
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fiction.generator.items import ItemCatalog
from fiction.generator.prose import generate_articles, generate_people_articles, generate_place_articles
from fiction.generator.split import assign_sources, parse_split
from fiction.phantomwiki.articles import format_article, parse_sentence, parse_sentences
from fiction.universe.build import make_universe
from fiction.universe.options import GenerationOptions
from fiction.universe.relations import RELATIONS, find_related
from fiction.universe.universe import TEXT, FactSources, Universe
from tests.examples import examples
from tests.fiction.generator.reader import PLAIN, PROSE, Reading, read
from tests.fiction.generator.told import SPLITS, friendships, made, numbers, words
from tests.fiction.universe.drawn import options
from worlds.source import Article

ROOT = Path(__file__).resolve().parents[3]
KIN = {("sibling", True): "sister", ("sibling", False): "brother", ("child", True): "daughter", ("child", False): "son"}
PRONOUNS = {True: {"She", "she", "Her", "her"}, False: {"He", "he", "His", "his"}}
DIGEST = """
from tests.fiction.generator.test_prose import digest
print(digest(5, "text=34,graph=33,web=33", "both"))
"""


@cache
def written(seed: int, split: str = "everywhere", by: str = "both", *, plain: bool = False) -> list[Article]:
    universe, told, asked = made(seed, split, by)
    text = universe.restrict_to_sources(told, TEXT)
    return list(generate_articles(text, ItemCatalog(text), replace(asked, plain=plain)))


def digest(seed: int, split: str, by: str) -> str:
    return sha256(repr(written(seed, split, by)).encode()).hexdigest()


def expected(universe: Universe, told: FactSources) -> list[Counter[tuple[str, str]]]:
    """What each article tells, as the kinds of its sentences, from the masks alone."""
    facts: list[Counter[tuple[str, str]]] = [Counter() for _ in range(len(universe))]
    households: dict[int, set[int]] = {}
    siblings = set()
    for row, fact, value in numbers(universe, told, "text"):
        said = ("wife" if universe.female[value] else "husband") if fact == "spouse" else fact
        facts[row][said, words(universe, fact, value)] += 1
        if fact in ("father", "mother"):
            facts[value][KIN["child", bool(universe.female[row])], universe.titles[row]] += 1
            households.setdefault(value, set()).add(row)
    for household in households.values():
        siblings.update(permutations(household, 2))
    for one, other in siblings:
        facts[one][KIN["sibling", bool(universe.female[other])], universe.titles[other]] += 1
    for one, other in friendships(universe, told, "text"):
        facts[one]["friend", universe.titles[other]] += 1
        facts[other]["friend", universe.titles[one]] += 1
    return facts


def readings(article: Article, *, plain: bool) -> list[Reading]:
    return [read(sentence, PLAIN if plain else PROSE) for sentence in article.sentences]


@pytest.mark.parametrize("plain", [False, True], ids=["prose", "plain"])
@pytest.mark.parametrize(("split", "by"), SPLITS)
@pytest.mark.parametrize("seed", [1, 2])
def test_articles_read_back_give_exactly_what_the_text_is_told(seed: int, split: str, by: str, *, plain: bool):
    universe, told, _ = made(seed, split, by)
    found = written(seed, split, by, plain=plain)[: len(universe)]
    for row, (article, facts) in enumerate(zip(found, expected(universe, told), strict=True)):
        female = bool(universe.female[row])
        facts["gender", ("female" if female else "male") if plain else ("woman" if female else "man")] += 1
        assert Counter((each.kind, value) for each in readings(article, plain=plain) for value in each.values) == facts
        assert article.title == universe.titles[row]
        assert article.entity == f"Q{1_000_000_000 + row}"


@settings(max_examples=examples(40))
@given(options(most=60), st.sampled_from(SPLITS), st.booleans())
def test_articles_of_any_world_read_back(drawn: GenerationOptions, split: tuple[str, str], plain: bool):  # noqa: FBT001 - drawn
    universe = make_universe(drawn)
    told = assign_sources(universe, parse_split(*split), drawn.seed)
    text = universe.restrict_to_sources(told, TEXT)
    found = generate_people_articles(text, ItemCatalog(text), replace(drawn, plain=plain), range(len(universe)))
    for article, facts in zip(found, expected(universe, told), strict=True):
        said = (each for each in readings(article, plain=plain) if each.kind != "gender")
        assert Counter((each.kind, value) for each in said for value in each.values) == facts


@pytest.mark.parametrize(("split", "by"), SPLITS)
def test_articles_say_of_relatives_what_an_evaluation_over_the_text_alone_finds(split: str, by: str):
    universe, told, _ = made(3, split, by)
    text = universe.restrict_to_sources(told, TEXT)
    for row, article in enumerate(written(3, split, by)[: len(universe)]):
        said = {(each.kind, value) for each in readings(article, plain=False) for value in each.values}
        for name in ("father", "mother", "sister", "brother", "husband", "wife", "daughter", "son", "friend"):
            found = find_related(text, RELATIONS[name], np.array([row], np.int32))
            assert {value for kind, value in said if kind == name} == {universe.titles[who] for who in found}


@pytest.mark.parametrize(("split", "by"), SPLITS)
def test_whom_an_article_is_about_is_named_or_meant_by_the_right_pronoun_and_tense(split: str, by: str):
    universe, told, _ = made(1, split, by)
    dead = {row for row, fact, _ in numbers(universe, told, "text") if fact == "death"}
    for row, article in enumerate(written(1, split, by)[: len(universe)]):
        called = {universe.names[row], f"{universe.names[row]}'s", *PRONOUNS[bool(universe.female[row])]}
        for reading in readings(article, plain=False):
            assert set(reading.who.split(" & ")) <= called
            assert reading.past in (None, row in dead)


def test_every_phrasing_is_used():
    said = {(each.kind, each.way) for a in written(1)[:150] + written(2)[:150] for each in readings(a, plain=False)}
    assert said == {(kind, pattern.pattern) for kind, pattern in PROSE}


def test_plain_articles_are_read_by_whoever_reads_the_published_ones():
    universe, _, _ = made(1)
    for article in written(1, plain=True)[: len(universe)]:
        stated = []
        for sentence, reading in zip(article.sentences, readings(article, plain=True), strict=True):
            if reading.kind in ("death", "birthplace", "residence", "wedding"):
                # PhantomWiki knows nothing of these.
                continue
            facts = parse_sentence(article.title, sentence)
            assert [fact.value for fact in facts] == list(reading.values)
            stated += facts
        kept = [
            s
            for s in article.sentences
            if not s.startswith(("The date of death", "The place", "The res", "The date of w"))
        ]
        published, sections = parse_sentences(format_article(article.title, stated))
        assert (list(published), [name for name, _ in sections]) == (kept, [name for name, _ in article.sections])


@pytest.mark.parametrize("plain", [False, True], ids=["prose", "plain"])
def test_headings_stand_over_their_sentences(*, plain: bool):
    over = {
        "Family": {"father", "mother", "sister", "brother", "husband", "wife", "wedding", "daughter", "son"},
        "Friends": {"friend"},
        "Attributes": {"birth", "death", "birthplace", "residence", "job", "hobby", "gender"},
        "Life": {"birth", "birthplace", "residence", "death"},
        "Work and leisure": {"job", "hobby"},
    }
    for article in written(1, "text=34,graph=33,web=33", plain=plain)[:150]:
        kinds = [reading.kind for reading in readings(article, plain=plain)]
        starts = [start for _, start in article.sections]
        for (heading, start), stop in zip(article.sections, [*starts[1:], len(kinds)], strict=True):
            assert plain or start < stop
            assert set(kinds[start:stop]) <= over[heading]
        assert plain or set(kinds[: starts[0] if starts else None]) == {"gender"}
        assert not plain or [heading for heading, _ in article.sections] == ["Family", "Friends", "Attributes"]


def test_places_say_where_they_lie():
    universe, _, _ = made(1)
    places, items = universe.places, ItemCatalog(universe)
    found = {article.entity: article for article in generate_place_articles(universe, items)}
    for town, name in enumerate(places.towns):
        region = places.region[town]
        article = found.pop(items.town(town))
        lies = (
            f"{name} is a town in {places.regions[region]}.",
            f"{name} lies in {places.countries[places.country[region]]}.",
        )
        assert (article.title, article.sentences) == (name, lies)
    for region, name in enumerate(places.regions):
        article = found.pop(items.region(region))
        lies = (f"{name} is a region of {places.countries[places.country[region]]}.",)
        assert (article.title, article.sentences) == (name, lies)
    assert sorted(article.sentences for article in found.values()) == sorted(
        (f"{c} is a country.",) for c in places.countries
    )


@settings(max_examples=examples(25))
@given(st.lists(st.integers(0, 150), max_size=6), st.booleans())
def test_where_the_work_is_cut_changes_nothing(cuts: list[int], plain: bool):  # noqa: FBT001 - drawn
    universe, told, asked = made(2, "text=34,graph=33,web=33")
    text, asked = universe.restrict_to_sources(told, TEXT), replace(asked, plain=plain)
    ends = [0, *sorted(cuts), len(universe)]
    ranges = [range(start, stop) for start, stop in pairwise(ends)]
    found = [article for rows in ranges for article in generate_people_articles(text, ItemCatalog(text), asked, rows)]
    assert found == written(2, "text=34,graph=33,web=33", plain=plain)[: len(universe)]


def test_a_fact_is_said_alike_whatever_else_is_told():
    universe, told, _ = made(1, "text=34,graph=33,web=33")
    dead = {row for row, fact, _ in numbers(universe, told, "text") if fact == "death"}
    alone, whole = written(1, "text=34,graph=33,web=33"), written(1)
    compared = 0
    for row in range(len(universe)):
        if row in dead or universe.death[row] < 0:
            said = {(each.kind, each.values): each.way for each in readings(whole[row], plain=False)}
            for each in readings(alone[row], plain=False):
                if len(each.values) == 1 and (each.kind, each.values) in said:
                    assert each.way == said[each.kind, each.values]
                    compared += 1
    assert compared > 100


def test_other_seeds_say_it_otherwise():
    universe, _, asked = made(1)
    one, other = (
        list(generate_people_articles(universe, ItemCatalog(universe), replace(asked, seed=seed), range(150)))
        for seed in (1, 2)
    )
    assert one != other


def test_another_process_writes_the_same_articles():
    environment = {**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": str(ROOT)}
    found = subprocess.run(
        [sys.executable, "-c", DIGEST], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == digest(5, "text=34,graph=33,web=33", "both")
