"""Triples compared with an independent derivation from the universe and its masks."""

from collections.abc import Iterator
from datetime import date
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, RdfFormat, parse

from showhow.fiction.generator.source_split import assign_sources, parse_split
from showhow.fiction.generator.world_files import generate_triples
from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.items import PROPERTY_LABELS
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.universe import GRAPH, FactSources, Universe
from tests.examples import examples

SPLITS = [
    ("everywhere", "both"),
    ("graph=100", "both"),
    ("text=100", "both"),
    ("text=50,graph=35,web=15", "both"),
    ("text=40,graph=60", "entity"),
    ("text=50,graph=35,web=15", "relation"),
]
WD, WDT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"
LABEL, ALIAS = "http://www.w3.org/2000/01/rdf-schema#label", "http://www.w3.org/2004/02/skos/core#altLabel"
DESCRIPTION, ABOUT = "http://schema.org/description", "http://schema.org/about"
DIRECT = {
    "father": "P22", "mother": "P25", "spouse": "P26", "birth": "P569", "death": "P570", "wedding": "P580",
    "birthplace": "P19", "residence": "P551", "job": "P106", "hobby": "P2650",
}  # fmt: skip
KINDS = {"father": 1, "mother": 1, "spouse": 1, "birthplace": 2, "residence": 2, "job": 5, "hobby": 6}
Triple = tuple[str, str, str]


def item(kind: int, number: int) -> str:
    """Id of a thing of this kind; kinds are people, towns, regions, countries, jobs, hobbies."""
    return f"{WD}Q{kind}{number:09d}"


def facts(universe: Universe, fact_sources: FactSources) -> Iterator[tuple[int, str, int]]:
    """Facts of people that are assigned to the graph."""
    for row in range(len(universe)):
        for fact in DIRECT:
            value = int(getattr(universe, fact)[row])
            if value >= 0 and int(fact_sources.masks[fact][row]) & GRAPH:
                yield row, fact, value


def claims(universe: Universe, fact_sources: FactSources) -> Iterator[Triple]:
    """All triples from people to items and days."""
    parents: dict[int, list[int]] = {row: [] for row in range(len(universe))}
    for row, fact, value in facts(universe, fact_sources):
        target = item(KINDS[fact], value) if fact in KINDS else f"{date.fromordinal(value)}T00:00:00Z"
        yield item(1, row), WDT + DIRECT[fact], target
        if fact in ("father", "mother"):
            parents[row].append(value)
            yield item(1, value), f"{WDT}P40", item(1, row)
    for one, of_one in parents.items():
        for other, of_other in parents.items():
            if one != other and set(of_one) & set(of_other):
                yield item(1, one), f"{WDT}P3373", item(1, other)
    for (one, other), mask in zip(universe.friends.pairs.tolist(), fact_sources.friends.tolist(), strict=True):
        if mask & GRAPH:
            yield item(1, one), f"{WDT}P3342", item(1, other)
            yield item(1, other), f"{WDT}P3342", item(1, one)
    for row in range(len(universe)):
        yield item(1, row), f"{WDT}P31", f"{WD}Q5"
        yield item(1, row), f"{WDT}P21", f"{WD}Q6581072" if universe.female[row] else f"{WD}Q6581097"


def names(universe: Universe, fact_sources: FactSources) -> Iterator[Triple]:
    """Labels, aliases and descriptions of people, from the facts of the graph."""
    known_facts = {(row, fact): value for row, fact, value in facts(universe, fact_sources)}
    for row, name in enumerate(universe.names):
        yield item(1, row), LABEL, name
        job = universe.jobs[known_facts[row, "job"]] if (row, "job") in known_facts else "person"
        town = (
            f" from {universe.places.towns[known_facts[row, 'birthplace']]}"
            if (row, "birthplace") in known_facts
            else ""
        )
        birth, death = (
            date.fromordinal(known_facts[row, fact]).year if (row, fact) in known_facts else None
            for fact in ("birth", "death")
        )
        life = f" ({birth}–{death})" if birth and death else f" (born {birth})" if birth else ""
        life = life or (f" (died {death})" if death else "")
        yield item(1, row), DESCRIPTION, f"{job}{town}{life}"
        given_name, surname = name.rsplit(" ", 1)
        yield item(1, row), ALIAS, f"{given_name[0]}. {surname}"
        if universe.female[row] and (row, "spouse") in known_facts:
            married = universe.names[known_facts[row, "spouse"]].rsplit(" ", 1)[1]
            if married != surname:
                yield item(1, row), ALIAS, f"{given_name} {married}"


def places(universe: Universe) -> Iterator[Triple]:
    """Triples of places."""
    lies = universe.places
    for town, region in enumerate(lies.region.tolist()):
        yield item(2, town), f"{WDT}P131", item(3, region)
        yield item(2, town), f"{WDT}P17", item(4, int(lies.country[region]))
    for region, country in enumerate(lies.country.tolist()):
        yield item(3, region), f"{WDT}P17", item(4, country)
    classes = ((2, lies.towns, "Q3957"), (3, lies.regions, "Q82794"), (4, lies.countries, "Q6256"))
    others = ((5, universe.jobs, "Q12737077"), (6, universe.hobbies, "Q47728"))
    for kind, labels, of_class in (*classes, *others):
        for number, label in enumerate(labels):
            yield item(kind, number), f"{WDT}P31", WD + of_class
            yield item(kind, number), LABEL, label


def triples_of(universe: Universe, fact_sources: FactSources) -> list[Triple]:
    """The generated triples, parsed as N-Triples."""
    triples = []
    for triple in parse(
        b"".join(generate_triples(universe.restrict_to_sources(fact_sources, GRAPH))), format=RdfFormat.N_TRIPLES
    ):
        assert isinstance(triple.subject, NamedNode)
        assert isinstance(triple.object, NamedNode | Literal)
        triples.append((triple.subject.value, triple.predicate.value, triple.object.value))
    return triples


@cache
def universe_of(people: int, seed: int, collisions: float = 0.0) -> Universe:
    return make_universe(GenerationOptions(people=people, seed=seed, collisions=collisions, family_size=12))


@pytest.mark.parametrize(("split", "by"), SPLITS)
def test_the_graph_has_exactly_the_facts_of_its_split(split: str, by: str):
    universe = universe_of(120, 5, 0.2)
    fact_sources = assign_sources(universe, parse_split(split, by), 5)
    triples = triples_of(universe, fact_sources)
    assert len(triples) == len(set(triples))
    derived = [*claims(universe, fact_sources), *names(universe, fact_sources), *places(universe)]
    assert len(derived) == len(set(derived))
    of_people = {triple for triple in triples if triple[0].startswith(f"{WD}Q1000")}
    assert of_people == {triple for triple in derived if triple[0].startswith(f"{WD}Q1000")}
    assert set(derived) <= set(triples)
    extra = {predicate for _, predicate, _ in set(triples) - set(derived)}
    assert extra == {LABEL, ALIAS, DESCRIPTION, ABOUT}


@given(people=st.integers(1, 60), seed=st.integers(0, 2**63 - 1), choice=st.sampled_from(SPLITS))
@settings(max_examples=examples(25))
def test_the_triples_of_people_follow_the_split_in_any_world(people: int, seed: int, choice: tuple[str, str]):
    universe = universe_of(people, seed)
    fact_sources = assign_sources(universe, parse_split(*choice), seed)
    direct = [triple for triple in triples_of(universe, fact_sources) if triple[1].startswith(WDT)]
    assert sorted(t for t in direct if t[0].startswith(f"{WD}Q1000")) == sorted(claims(universe, fact_sources))


def test_every_person_and_place_has_a_sitelink():
    universe = universe_of(120, 5, 0.2)
    fact_sources = assign_sources(universe, parse_split("everywhere"), 5)
    pages = {page: thing for page, predicate, thing in triples_of(universe, fact_sources) if predicate == ABOUT}
    titles = [*universe.titles, *universe.places.towns, *universe.places.regions, *universe.places.countries]
    assert len(pages) == len(titles)
    assert sum("%" in page or "(" in page for page in pages) >= 20
    for row in range(len(universe)):
        page = f"https://en.wikipedia.org/wiki/{universe.titles[row].replace(' ', '_')}"
        assert pages[page] == item(1, row)


def test_days_are_typed_and_names_are_english():
    universe = universe_of(30, 1)
    fact_sources = assign_sources(universe, parse_split("everywhere"), 1)
    for triple in parse(
        b"".join(generate_triples(universe.restrict_to_sources(fact_sources, GRAPH))), format=RdfFormat.N_TRIPLES
    ):
        if isinstance(triple.object, Literal):
            day = triple.predicate.value in (f"{WDT}P569", f"{WDT}P570", f"{WDT}P580")
            assert triple.object.language == (None if day else "en")
            assert triple.object.datatype.value.endswith("#dateTime" if day else "#langString")


def test_properties_have_the_labels_and_aliases_of_the_published_worlds():
    assert PROPERTY_LABELS == {
        "P31": ("instance of", "is a"),
        "P21": ("sex or gender", "gender"),
        "P22": ("father", "dad"),
        "P25": ("mother", "mum"),
        "P26": ("spouse", "husband", "wife", "partner"),
        "P40": ("child", "son", "daughter"),
        "P3373": ("sibling", "brother", "sister"),
        "P3342": ("friend", "significant person"),
        "P106": ("occupation", "job", "profession"),
        "P2650": ("hobby", "pastime", "interested in"),
        "P569": ("date of birth", "born on", "birth date"),
        "P570": ("date of death", "died on", "death date"),
        "P580": ("date of marriage", "wedding date", "married on"),
        "P19": ("place of birth", "birthplace", "born in"),
        "P551": ("residence", "home town", "lives in"),
        "P131": ("located in", "region"),
        "P17": ("country", "state"),
    }
