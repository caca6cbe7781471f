"""Generated worlds: possible lives, the same bytes everywhere, and gold answers found again by another way."""

import hashlib
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from datetime import date, datetime
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, RdfFormat, Store, parse

from worlds.folder import WorldError
from worlds.generator import GeneratedWorld, build_generated, generate
from worlds.generator.articles import spoken
from worlds.generator.people import LAST_BIRTH, TODAY, Universe, words
from worlds.open import open_world

ROOT = Path(__file__).resolve().parents[2]
DATE = "http://www.w3.org/2001/XMLSchema#dateTime"
PREFIXES = """
PREFIX wdt: <http://www.wikidata.org/prop/direct/> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX wd: <http://www.wikidata.org/entity/> PREFIX schema: <http://schema.org/>
"""
NOUNS = {
    "father": "P22", "mother": "P25", "spouse": "P26", "child": "P40", "sibling": "P3373", "friend": "P3342",
    "occupation": "P106", "hobby": "P2650", "place of birth": "P19", "residence": "P551",
}  # fmt: skip
NUMBERS = {"children": "child", **{f"{noun}s": noun for noun in NOUNS}}

worlds_of_any_size = st.tuples(st.integers(10, 120), st.integers(0, 10**9))


@cache
def world(people: int = 300, seed: int = 1) -> GeneratedWorld:
    return generate(people, seed)


@cache
def graph(people: int = 300, seed: int = 1) -> Store:
    store = Store()
    store.extend(parse("\n".join(world(people, seed).triples).encode(), format=RdfFormat.N_TRIPLES))
    return store


def fingerprint(made: GeneratedWorld) -> str:
    return hashlib.sha256(repr((made.articles, made.triples, made.questions)).encode()).hexdigest()


# What a question says, read word by word into a query: the wording alone must lead to the gold answers.
# In a query {0}, {1} ... stand for the question's words: names as items or texts, chains of nouns as paths.
NOUN = "|".join(sorted([*NOUNS, *NUMBERS], key=len, reverse=True))
CHAIN = rf"((?:{NOUN})(?: of the (?:{NOUN}))*)"
READINGS = (
    (rf"(?:Who|What) (?:is|are) the {CHAIN} of (.+)\?", "SELECT DISTINCT ?x {{ {1} {0} ?x }}"),
    (rf"When was the {CHAIN} of (.+) born\?", "SELECT ?x {{ {1} {0}/wdt:P569 ?x }}"),
    (r"When was (.+) born\?", "SELECT ?x {{ {0} wdt:P569 ?x }}"),
    (r"When did (.+) die\?", "SELECT ?x {{ {0} wdt:P570 ?x }}"),
    (rf"How many {CHAIN} does the {CHAIN} of (.+) have\?", "SELECT (COUNT(DISTINCT ?o) AS ?x) {{ {2} {1}/{0} ?o }}"),
    (rf"How many {CHAIN} does (.+) have\?", "SELECT (COUNT(DISTINCT ?o) AS ?x) {{ {1} {0} ?o }}"),
    (rf"In which country was the {CHAIN} of (.+) born\?", "SELECT DISTINCT ?x {{ {1} {0}/wdt:P19/wdt:P17 ?x }}"),
    (
        rf"Who (?:is the person|are the people) whose {CHAIN} is (.+) and whose {CHAIN} is (.+)\?",
        "SELECT ?x {{ ?x {0}/rdfs:label {1} ; {2}/rdfs:label {3} }}",
    ),
    (
        r"Who was born earlier, (.+) or (.+)\?",
        "SELECT ?x {{ VALUES ?x {{ {0} {1} }} ?x wdt:P569 ?day }} ORDER BY ?day LIMIT 1",
    ),
    (
        r"Who was born later, (.+) or (.+)\?",
        "SELECT ?x {{ VALUES ?x {{ {0} {1} }} ?x wdt:P569 ?day }} ORDER BY DESC(?day) LIMIT 1",
    ),
    (rf"Do (.+) and (.+) have the same {CHAIN}\?", "ASK {{ {0} {2} ?x . {1} {2} ?x }}"),
)


def term(words: str, store: Store) -> str:
    """A chain of nouns as a path read from its end, a person's name as the item, any other name as a text."""
    nouns = [NUMBERS.get(noun, noun) for noun in words.split(" of the ")]
    if all(noun in NOUNS for noun in nouns):
        return "/".join(f"wdt:{NOUNS[noun]}" for noun in reversed(nouns))
    person = f'?x rdfs:label "{words}"@en ; wdt:P31/rdfs:label "human"@en'
    found = list(store.query(f"{PREFIXES} SELECT ?x {{ {person} }}"))
    assert len(found) <= 1
    return str(found[0][0]) if found else f'"{words}"@en'


def answers_of(question: str, store: Store) -> set[tuple[str, str | None]]:
    """The answers that the graph gives to the words."""
    found, query = next((found, query) for said, query in READINGS if (found := re.fullmatch(said, question)))
    result = store.query(f"{PREFIXES} {query.format(*(term(words, store) for words in found.groups()))}")
    if query.startswith("ASK"):
        return {("yes" if result else "no", None)}
    return {told(row[0], store) for row in result}


def told(value: NamedNode | Literal, store: Store) -> tuple[str, str | None]:
    """A value as a gold answer gives it."""
    if isinstance(value, NamedNode):
        return label_of(value.value, store), value.value.rpartition("/")[2]
    return value.value.removesuffix("T00:00:00Z"), None


def label_of(iri: str, store: Store) -> str:
    (row,) = store.query(f"{PREFIXES} SELECT ?l {{ <{iri}> rdfs:label ?l }}")
    return row[0].value


@pytest.mark.parametrize("people_and_seed", [(300, 1), (300, 2), (60, 77), (10, 4)], ids=str)
def test_what_a_question_says_leads_to_exactly_its_gold_answers(people_and_seed):
    store = graph(*people_and_seed)
    for question in world(*people_and_seed).questions:
        gold = [(answer["text"], answer["entity"]) for answer in question.gold_answers]
        assert len(gold) == len(set(gold)) > 0
        assert answers_of(question.text, store) == set(gold), question.text


def test_every_hop_is_a_triple_of_the_graph():
    for question in world().questions:
        assert question.decomposition
        for hop in question.decomposition:
            subject, pid = f"wd:{hop['subject_id']}", f"wdt:{hop['pid']}"
            target = f"wd:{hop['object_id']}" if hop["object_id"] else f'"{hop["object"]}T00:00:00Z"^^<{DATE}>'
            assert graph().query(f"{PREFIXES} ASK {{ {subject} {pid} {target} }}")
            assert label_of(f"http://www.wikidata.org/entity/{hop['pid']}", graph()) == hop["relation"]


def test_every_fact_of_a_person_stands_in_the_persons_article():
    texts = {article.entity: article.text for article in world().articles}
    facts = """SELECT ?s ?p ?o { ?s wdt:P31/rdfs:label "human"@en ; ?p ?o
        FILTER(STRSTARTS(STR(?p), STR(wdt:)) && ?p NOT IN (wdt:P31, wdt:P21)) }"""
    checked = 0
    for subject, _, target in graph().query(f"{PREFIXES} {facts}"):
        text = texts[subject.value.rpartition("/")[2]]
        if isinstance(target, Literal):
            assert spoken(datetime.fromisoformat(target.value).date()) in text
        else:
            assert label_of(target.value, graph()) in text
        checked += 1
    assert checked > 300 * 7


def test_every_article_is_the_page_of_its_entity():
    pages = graph().query(f"{PREFIXES} SELECT ?l ?x {{ ?page schema:about ?x . ?x rdfs:label ?l }}")
    found = {row[0].value: row[1].value.rpartition("/")[2] for row in pages}
    assert found == {article.title: article.entity for article in world().articles}


def test_a_newcomers_first_questions_are_easy_and_later_ones_mixed():
    kinds = [question.kind for question in world().questions]
    assert set(kinds[:9]) == {"one hop", "date", "count"}
    assert Counter(kinds) == dict.fromkeys(Counter(kinds), 10)
    assert len(Counter(kinds)) == 8
    assert all(len(set(kinds[start : start + 8])) >= 5 for start in range(9, 72, 8))


@given(worlds_of_any_size)
@settings(max_examples=25, deadline=None)
def test_lives_are_possible(size_and_seed):
    people = Universe(*size_and_seed).people
    assert len(people) == size_and_seed[0] == len({person.name for person in people})
    for person in people:
        assert person.born <= LAST_BIRTH
        assert person.died is None or person.born < person.died < TODAY
        assert (person.father is None) == (person.mother is None)
        for parent in (person.father, person.mother):
            if parent is not None:
                assert 16 <= (person.born - parent.born).days / 365.25 <= 60
                assert parent.died is None or person.born < parent.died
                assert person in parent.children
        if person.father is not None:
            assert not person.father.female
            assert person.mother.female
            assert person.father.spouse is person.mother
        if person.spouse is not None:
            assert person.spouse.spouse is person
            assert person.spouse not in [person, *person.siblings, *person.children]
        assert all(person in friend.friends and friend is not person for friend in person.friends)
        births = sorted(child.born for child in person.children)
        assert all((later - earlier).days > 300 for earlier, later in pairwise(births))
        assert len(set(person.friends)) == len(person.friends)
        assert not set(person.friends) & set(person.family)


@given(worlds_of_any_size)
@settings(max_examples=15, deadline=None)
def test_a_world_of_any_size_has_questions_with_answers_and_no_text_twice(size_and_seed):
    found = generate(*size_and_seed).questions
    assert 40 <= len(found) <= 80
    assert len({question.text for question in found}) == len(found)
    assert len({question.source_id for question in found}) == len(found)
    assert all(question.gold_answers and question.decomposition for question in found)


def test_the_same_seed_gives_the_same_bytes_whatever_the_machine_hashes_or_speaks():
    program = """
import hashlib, sys
from worlds.generator import generate
made = generate(60, 7)
sys.stdout.write(hashlib.sha256(repr((made.articles, made.triples, made.questions)).encode()).hexdigest())
"""
    found = set()
    for seed in ("0", "1", "12345"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": "C.UTF-8"}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
        )
        found.add(done.stdout)
    assert found == {fingerprint(generate(60, 7))}


def test_another_seed_gives_another_world():
    assert fingerprint(generate(30, 1)) != fingerprint(generate(30, 2))


@pytest.mark.parametrize("people", [0, 9, 10_001])
def test_too_small_or_too_large_a_world_is_refused_with_the_limits(people):
    with pytest.raises(WorldError, match="from 10 to 10,000 people"):
        generate(people, 1)


@pytest.mark.parametrize("name", ["jobs", "hobbies"])
def test_lists_of_words_are_plain_lower_case_and_sorted(name):
    found = words(name)
    assert len(found) >= 80
    assert list(found) == sorted(set(found))
    assert all(re.fullmatch(r"[a-z]+( [a-z]+)*", word) for word in found)


def test_no_two_things_that_a_question_may_name_have_the_same_name():
    names = Counter(article.title for article in world().articles)
    assert max(names.values()) == 1
    assert not set(words("jobs")) & set(words("hobbies"))


def test_dates_are_written_in_english_words():
    assert spoken(date(1931, 3, 5)) == "5 March 1931"


def test_a_built_world_tells_its_seed_and_answers_by_text_and_graph(tmp_path):
    made = generate(20, 3)
    build_generated(tmp_path, "small", made, {"people": 20, "seed": 3}, replace=False)
    about = tomllib.loads((tmp_path / "small" / "world.toml").read_text(encoding="utf-8"))
    assert (about["kind"], about["people"], about["seed"]) == ("generated", 20, 3)
    opened = open_world(tmp_path, "small")
    assert opened.text is not None
    assert opened.graph is not None
    person = made.articles[0]
    assert opened.text.article(person.title) == person
    assert opened.graph.entity_of(person.title).id == person.entity
