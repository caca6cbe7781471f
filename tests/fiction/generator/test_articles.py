"""Articles: the facts that a parser reads are exactly the facts of the text source."""

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

from showhow.fiction.generator.articles import generate_articles, generate_people_articles, generate_place_articles
from showhow.fiction.generator.source_split import assign_sources, parse_split
from showhow.fiction.phantomwiki.articles import format_article, parse_sentence, parse_sentences
from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.items import ItemCatalog
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.relations import RELATIONS, find_related
from showhow.fiction.universe.universe import TEXT, FactSources, Universe
from showhow.worlds.source import Article
from tests.examples import examples
from tests.fiction.generator.sentence_reader import PLAIN, PROSE, Reading, clauses, read
from tests.fiction.generator.split_universes import SPLITS, friendships, numbers, split_universe, words
from tests.fiction.universe.random_options import options

ROOT = Path(__file__).resolve().parents[3]
KIN = {("sibling", True): "sister", ("sibling", False): "brother", ("child", True): "daughter", ("child", False): "son"}
PRONOUNS = {True: {"She", "she", "Her", "her"}, False: {"He", "he", "His", "his"}}
DIGEST = """
from tests.fiction.generator.test_articles import digest
print(digest(5, "text=34,graph=33,web=33", "both"))
"""


@cache
def articles_of(seed: int, split: str = "everywhere", by: str = "both", *, plain: bool = False) -> list[Article]:
    universe, fact_sources, options = split_universe(seed, split, by)
    text = universe.restrict_to_sources(fact_sources, TEXT)
    return list(generate_articles(text, ItemCatalog(text), replace(options, plain=plain)))


def digest(seed: int, split: str, by: str) -> str:
    return sha256(repr(articles_of(seed, split, by)).encode()).hexdigest()


def expected_facts(universe: Universe, fact_sources: FactSources) -> list[Counter[tuple[str, str]]]:
    """Expected facts of each article by kind of sentence, derived from the masks."""
    facts: list[Counter[tuple[str, str]]] = [Counter() for _ in range(len(universe))]
    households: dict[int, set[int]] = {}
    siblings = set()
    for row, fact, value in numbers(universe, fact_sources, "text"):
        stated_kind = ("wife" if universe.female[value] else "husband") if fact == "spouse" else fact
        facts[row][stated_kind, words(universe, fact, value)] += 1
        if fact in ("father", "mother"):
            facts[value][KIN["child", bool(universe.female[row])], universe.titles[row]] += 1
            households.setdefault(value, set()).add(row)
    for household in households.values():
        siblings.update(permutations(household, 2))
    for one, other in siblings:
        facts[one][KIN["sibling", bool(universe.female[other])], universe.titles[other]] += 1
    for one, other in friendships(universe, fact_sources, "text"):
        facts[one]["friend", universe.titles[other]] += 1
        facts[other]["friend", universe.titles[one]] += 1
    return facts


def readings(article: Article, *, plain: bool) -> list[Reading]:
    patterns = PLAIN if plain else PROSE
    return [read(clause, patterns) for sentence in article.sentences for clause in clauses(sentence)]


@pytest.mark.parametrize("plain", [False, True], ids=["prose", "plain"])
@pytest.mark.parametrize(("split", "by"), SPLITS)
@pytest.mark.parametrize("seed", [1, 2])
def test_articles_state_exactly_the_facts_of_the_text(seed: int, split: str, by: str, *, plain: bool):
    universe, fact_sources, _ = split_universe(seed, split, by)
    articles = articles_of(seed, split, by, plain=plain)[: len(universe)]
    for row, (article, facts) in enumerate(zip(articles, expected_facts(universe, fact_sources), strict=True)):
        female = bool(universe.female[row])
        facts["gender", ("female" if female else "male") if plain else ("woman" if female else "man")] += 1
        assert (
            Counter((reading.kind, value) for reading in readings(article, plain=plain) for value in reading.values)
            == facts
        )
        assert article.title == universe.titles[row]
        assert article.entity == f"Q{1_000_000_000 + row}"


@settings(max_examples=examples(40))
@given(options(most=60), st.sampled_from(SPLITS), st.booleans())
def test_articles_of_any_world_read_back(options: GenerationOptions, split: tuple[str, str], plain: bool):  # noqa: FBT001 - drawn
    universe = make_universe(options)
    fact_sources = assign_sources(universe, parse_split(*split), options.seed)
    text = universe.restrict_to_sources(fact_sources, TEXT)
    articles = generate_people_articles(text, ItemCatalog(text), replace(options, plain=plain), range(len(universe)))
    for article, facts in zip(articles, expected_facts(universe, fact_sources), strict=True):
        stated = (reading for reading in readings(article, plain=plain) if reading.kind != "gender")
        assert Counter((reading.kind, value) for reading in stated for value in reading.values) == facts


@pytest.mark.parametrize(("split", "by"), SPLITS)
def test_relatives_in_articles_equal_those_evaluated_on_the_text(split: str, by: str):
    universe, fact_sources, _ = split_universe(3, split, by)
    text = universe.restrict_to_sources(fact_sources, TEXT)
    for row, article in enumerate(articles_of(3, split, by)[: len(universe)]):
        stated = {(reading.kind, value) for reading in readings(article, plain=False) for value in reading.values}
        for name in ("father", "mother", "sister", "brother", "husband", "wife", "daughter", "son", "friend"):
            related = find_related(text, RELATIONS[name], np.array([row], np.int32))
            assert {value for kind, value in stated if kind == name} == {universe.titles[who] for who in related}


@pytest.mark.parametrize(("split", "by"), SPLITS)
def test_articles_use_the_right_pronoun_and_tense(split: str, by: str):
    universe, fact_sources, _ = split_universe(1, split, by)
    dead = {row for row, fact, _ in numbers(universe, fact_sources, "text") if fact == "death"}
    # Nobody is older than 105 years, whatever the text states.
    dead |= set(np.flatnonzero(universe.today - universe.birth > 105 * 366).tolist())
    assert all(universe.death[row] >= 0 for row in dead)
    for row, article in enumerate(articles_of(1, split, by)[: len(universe)]):
        called = {universe.names[row], f"{universe.names[row]}'s", *PRONOUNS[bool(universe.female[row])]}
        for reading in readings(article, plain=False):
            assert set(reading.who.split(" & ")) <= called
            assert reading.past in (None, row in dead)


def test_some_sentences_state_two_facts_and_those_of_the_first_version_one():
    sentences = [sentence for article in articles_of(1) for sentence in article.sentences]
    share = sum(len(clauses(sentence)) == 2 for sentence in sentences) / len(sentences)
    assert 0.05 < share < 0.5
    universe, _, options = split_universe(1)
    first = replace(options, generator=1)
    for article in generate_people_articles(universe, ItemCatalog(universe), first, range(150)):
        assert all(len(clauses(sentence)) == 1 for sentence in article.sentences)


def test_every_phrasing_is_used():
    stated = {
        (reading.kind, reading.pattern)
        for a in articles_of(1)[:150] + articles_of(2)[:150]
        for reading in readings(a, plain=False)
    }
    assert stated == {(kind, pattern.pattern) for kind, pattern in PROSE}


def test_plain_articles_have_the_published_format():
    universe, _, _ = split_universe(1)
    for article in articles_of(1, plain=True)[: len(universe)]:
        stated = []
        for sentence, reading in zip(article.sentences, readings(article, plain=True), strict=True):
            if reading.kind in ("death", "birthplace", "residence", "wedding"):
                # PhantomWiki does not have these facts.
                continue
            facts = parse_sentence(article.title, sentence)
            assert [fact.value for fact in facts] == list(reading.values)
            stated += facts
        sentences = [
            s
            for s in article.sentences
            if not s.startswith(("The date of death", "The place", "The res", "The date of w"))
        ]
        published, sections = parse_sentences(format_article(article.title, stated))
        assert (list(published), [name for name, _ in sections]) == (sentences, [name for name, _ in article.sections])


@pytest.mark.parametrize("plain", [False, True], ids=["prose", "plain"])
def test_headings_are_above_their_sentences(*, plain: bool):
    over = {
        "Family": {"father", "mother", "sister", "brother", "husband", "wife", "wedding", "daughter", "son"},
        "Friends": {"friend"},
        "Attributes": {"birth", "death", "birthplace", "residence", "job", "hobby", "gender"},
        "Life": {"birth", "birthplace", "residence", "death"},
        "Work and leisure": {"job", "hobby"},
    }
    for article in articles_of(1, "text=34,graph=33,web=33", plain=plain)[:150]:
        kinds = [
            {read(clause, PLAIN if plain else PROSE).kind for clause in clauses(sentence)}
            for sentence in article.sentences
        ]
        starts = [start for _, start in article.sections]
        # Of some people the text states their gender alone.
        stops = [*starts[1:], len(kinds)][: len(starts)]
        for (heading, start), stop in zip(article.sections, stops, strict=True):
            assert plain or start < stop
            assert set().union(*kinds[start:stop]) <= over[heading]
        assert plain or kinds[: starts[0] if starts else None] == [{"gender"}]
        assert not plain or [heading for heading, _ in article.sections] == ["Family", "Friends", "Attributes"]


def test_articles_of_places_state_their_location():
    universe, _, _ = split_universe(1)
    places, items = universe.places, ItemCatalog(universe)
    articles = {article.entity: article for article in generate_place_articles(universe, items)}
    for town, name in enumerate(places.towns):
        region = places.region[town]
        article = articles.pop(items.town(town))
        lies = (
            f"{name} is a town in {places.regions[region]}.",
            f"{name} lies in {places.countries[places.country[region]]}.",
        )
        assert (article.title, article.sentences) == (name, lies)
    for region, name in enumerate(places.regions):
        article = articles.pop(items.region(region))
        lies = (f"{name} is a region of {places.countries[places.country[region]]}.",)
        assert (article.title, article.sentences) == (name, lies)
    assert sorted(article.sentences for article in articles.values()) == sorted(
        (f"{c} is a country.",) for c in places.countries
    )


@settings(max_examples=examples(25))
@given(st.lists(st.integers(0, 150), max_size=6), st.booleans())
def test_blocks_do_not_change_the_articles(cuts: list[int], plain: bool):  # noqa: FBT001 - drawn
    universe, fact_sources, options = split_universe(2, "text=34,graph=33,web=33")
    text, options = universe.restrict_to_sources(fact_sources, TEXT), replace(options, plain=plain)
    ends = [0, *sorted(cuts), len(universe)]
    ranges = [range(start, stop) for start, stop in pairwise(ends)]
    articles = [
        article for rows in ranges for article in generate_people_articles(text, ItemCatalog(text), options, rows)
    ]
    assert articles == articles_of(2, "text=34,graph=33,web=33", plain=plain)[: len(universe)]


def test_the_phrasing_of_a_fact_does_not_depend_on_other_facts():
    universe, fact_sources, _ = split_universe(1, "text=34,graph=33,web=33")
    dead = {row for row, fact, _ in numbers(universe, fact_sources, "text") if fact == "death"}
    # Nobody is older than 105 years, whatever the text states.
    dead |= set(np.flatnonzero(universe.today - universe.birth > 105 * 366).tolist())
    assert all(universe.death[row] >= 0 for row in dead)
    alone, whole = articles_of(1, "text=34,graph=33,web=33"), articles_of(1)
    compared = 0
    for row in range(len(universe)):
        if row in dead or universe.death[row] < 0:
            stated = {(reading.kind, reading.values): reading.pattern for reading in readings(whole[row], plain=False)}
            for reading in readings(alone[row], plain=False):
                if len(reading.values) == 1 and (reading.kind, reading.values) in stated:
                    assert reading.pattern == stated[reading.kind, reading.values]
                    compared += 1
    assert compared > 100


def test_other_seeds_give_other_phrasings():
    universe, _, options = split_universe(1)
    one, other = (
        list(generate_people_articles(universe, ItemCatalog(universe), replace(options, seed=seed), range(150)))
        for seed in (1, 2)
    )
    assert one != other


def test_another_process_writes_the_same_articles():
    environment = {**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": str(ROOT)}
    process = subprocess.run(
        [sys.executable, "-c", DIGEST], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert process.stdout.strip() == digest(5, "text=34,graph=33,web=33", "both")
