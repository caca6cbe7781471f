"""Verification of generated worlds: each check reports the errors planted for it."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyoxigraph as ox
import pytest

from showhow.fiction.generator.build import PAGES_FILE, generate_world
from showhow.fiction.generator.world_files import FACT_SOURCES_FILE, UNIVERSE_FILE
from showhow.fiction.questions.question_file import QUESTIONS_FILE, read_question_rows
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.universe import GRAPH, SOURCES, FactSources, Universe
from showhow.fiction.verification import verify_world
from showhow.fiction.verification_checks import (
    VerificationCheck,
    check_answers,
    check_articles,
    check_constraints,
    check_gold,
    check_graph,
    check_hops,
    check_needs,
    check_pages,
    check_queries,
    check_split,
    read_options,
)
from showhow.worlds.embedded.text import EmbeddedWeb, WebWriter
from showhow.worlds.folder import WEB_FOLDER, WorldError
from showhow.worlds.open import read_world_metadata
from showhow.worlds.source import Article, SourceUnavailable
from tests.fiction.world_alterations import change_article, change_graph, change_rows, titles

OPTIONS = GenerationOptions(people=90, seed=3, collisions=0.1, split="text=50,graph=35,web=15", depth=5, per_template=1)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of worlds with one whose facts are split over all sources."""
    worlds = tmp_path_factory.mktemp("home") / "worlds"
    generate_world(worlds, "kin", OPTIONS)
    return worlds


@pytest.fixture
def kin(made: Path, tmp_path: Path) -> Path:
    """The folder of a copy of the world, to be altered."""
    return Path(shutil.copytree(made, tmp_path / "worlds")) / "kin"


def facts(folder: Path) -> tuple[Universe, FactSources]:
    return Universe.load(folder / UNIVERSE_FILE), FactSources.load(folder / FACT_SOURCES_FILE)


def first(check: VerificationCheck) -> str:
    return str(check.first[0])


@pytest.mark.parametrize("split", ["everywhere", "graph=100", "text=60,graph=40"])
def test_a_generated_world_verifies_without_differences(tmp_path: Path, split: str):
    options = replace(OPTIONS, people=60, split=split, split_by="entity", plain=True, each=True)
    about = generate_world(tmp_path, "kin", options)
    assert read_options(about) == options
    completed: list[VerificationCheck] = []
    report = verify_world(tmp_path, "kin", completed.append)
    assert report.first_differences == []
    checked = {check.name: check.checked for check in report.checks}
    assert (checked["answers"], checked["people"]) == (about["questions"], 60)
    assert checked["triples"] == about["triples"]
    assert (checked["answers of queries"] == about["questions"]) == (split != "text=60,graph=40")
    assert len(report.checks) == 10
    assert completed == list(report.checks)


def test_a_split_world_verifies_without_differences(made: Path):
    assert verify_world(made, "kin", print).different == 0


def test_a_world_of_the_first_version_verifies_by_its_own_rules(tmp_path: Path):
    options = replace(OPTIONS, generator=1)
    about = generate_world(tmp_path, "first", options)
    assert (about["generator"], read_options(about)) == (1, options)
    assert verify_world(tmp_path, "first", print).different == 0
    rows = read_question_rows(tmp_path / "first")
    assert not any("minimal" in row or row["text"].startswith("Who are") for row in rows)
    # The same world fails by the rules of the second version.
    universe, fact_sources = facts(tmp_path / "first")
    assert check_articles(tmp_path / "first", universe, fact_sources, OPTIONS).different
    assert check_gold(rows, universe, fact_sources, OPTIONS).different


def test_a_world_of_the_second_version_verifies_by_its_own_rules(tmp_path: Path):
    generate_world(tmp_path, "second", replace(OPTIONS, generator=2))
    assert verify_world(tmp_path, "second", print).different == 0
    universe, fact_sources = facts(tmp_path / "second")
    assert "never lived at the same time" in first(check_constraints(universe, OPTIONS))
    assert check_articles(tmp_path / "second", universe, fact_sources, OPTIONS).different
    assert check_gold(read_question_rows(tmp_path / "second"), universe, fact_sources, OPTIONS).different


@pytest.mark.parametrize(
    ("size", "change", "message"),
    [
        (1, lambda needs: [[*needs[0], next(name for name in SOURCES if name not in needs[0])]], "other sources of "),
        (2, lambda needs: [needs[0][:1]], "needs of "),
        (2, lambda needs: [*needs, needs[0][1:]], "needs of "),
        (1, lambda _: [["letters"]], "needs of "),
        (1, lambda _: None, ""),
    ],
)
def test_needs_that_are_not_needed_or_do_not_suffice_are_reported(
    kin: Path, size: int, change: Callable[[list[list[str]]], object], message: str
):
    rows, (universe, fact_sources) = read_question_rows(kin), facts(kin)
    assert not check_needs(rows, universe, fact_sources, OPTIONS).different
    row = next(row for row in rows if row.get("minimal") and len(row["needs"]) == 1 and len(row["needs"][0]) == size)
    row["needs"] = change(row["needs"])
    check = check_needs(rows, universe, fact_sources, OPTIONS)
    assert check.different
    assert first(check).startswith(message + row["text"])


def test_a_changed_statement_that_every_fact_is_needed_is_reported(kin: Path):
    change_rows(kin / QUESTIONS_FILE, change_first("what", lambda row: row.update(minimal=not row["minimal"])))
    rows, (universe, _) = read_question_rows(kin), facts(kin)
    check = check_hops(rows, universe, OPTIONS)
    assert check.different == 1
    assert first(check).startswith("whether What ")
    assert "questions tried without each of their facts (" in str(check)


def change_first(kind: str, change: Callable[[dict[str, Any]], object]) -> Callable[[list[dict[str, Any]]], None]:
    """A change applied to the first question of this kind."""

    def changed(rows: list[dict[str, Any]]) -> None:
        change(next(row for row in rows if row["kind"] == kind))

    return changed


WRONG = {"text": "Nobody Atall", "entity": "Q1000099999"}


@pytest.mark.parametrize(
    "change",
    [
        change_first("who", lambda row: row["answers"].append(WRONG)),
        change_first("no answer", lambda row: row["answers"].append(WRONG)),
        change_first("superlative", lambda row: row["answers"].pop()),
        change_first("what", lambda row: row["answers"][0].update(entity="Q5")),
        change_first(
            "implicit", lambda row: row["answers"][0].update(text={"yes": "no", "no": "yes"}[row["answers"][0]["text"]])
        ),
        change_first("comparison", lambda row: row.update(answers=None)),
        change_first("count", lambda row: row.pop("expression")),
    ],
)
def test_a_wrong_answer_is_reported(kin: Path, change: Callable[[list[dict[str, Any]]], None]):
    change_rows(kin / QUESTIONS_FILE, change)
    check = check_answers(read_question_rows(kin), Universe.load(kin / UNIVERSE_FILE))
    assert check.different == 1


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("who", "text", "Who is it?"),
        ("filter", "needs", [["web"]]),
        ("composition", "difficulty", 99),
        ("implicit", "hops", 0),
        ("comparison", "structure", "chain"),
        ("count", "tree", {}),
        ("conjunction", "triples", {}),
        ("comparative", "subquestions", []),
        ("no answer", "sparql", "ASK { }"),
        ("what", "id", "q-999999"),
        ("superlative", "template", "Who is the oldest?"),
    ],
)
def test_wrong_gold_parts_are_reported(kin: Path, kind: str, name: str, value: Any):
    change_rows(kin / QUESTIONS_FILE, change_first(kind, lambda row: row.update({name: value})))
    universe, fact_sources = facts(kin)
    check = check_gold(read_question_rows(kin), universe, fact_sources, OPTIONS)
    assert (check.different, first(check).split(" of ")[0]) == (1, name)


def test_a_query_with_other_results_is_reported(kin: Path):
    def change(rows: list[dict[str, Any]]) -> None:
        graph = [row for row in rows if row["answers"]]
        for row in graph[:5]:
            row["needs"] = [["graph"]]
        graph[0]["sparql"] = "SELECT ?x { VALUES ?x { wd:Q5 } }"
        graph[1]["sparql"] = "SELECT ?x {"
        graph[2]["sparql"] = "DELETE WHERE { ?s ?p ?o }"
        graph[3]["sparql"] = "SELECT ?x { ?x wdt:P31 wd:Q5 MINUS { ?x wdt:P31 wd:Q5 } }"
        graph[4]["answers"] = [WRONG]

    change_rows(kin / QUESTIONS_FILE, change)
    universe, fact_sources = facts(kin)
    check = check_queries(kin, read_question_rows(kin), universe.restrict_to_sources(fact_sources, GRAPH))
    assert (check.different, check.undecided) == (5, 0)


def test_a_changed_article_is_reported(kin: Path):
    universe, fact_sources = facts(kin)
    title = universe.titles[3]
    changes: list[tuple[Callable[[Article], Article | None], str]] = [
        (
            lambda article: replace(article, sentences=(*article.sentences, "He flew.")),
            "stated He flew., derived nothing",
        ),
        (lambda article: replace(article, sentences=article.sentences[:-2]), "stated nothing, derived "),
        (lambda article: replace(article, entity="Q5"), "entity='Q5'"),
        (lambda article: replace(article, sections=(("Deeds", 0),)), "'Deeds'"),
        (lambda _: None, "stated nothing, derived "),
    ]
    whole = titles(kin)
    assert title in whole
    for change, message in changes:
        shutil.rmtree(kin / "kept", ignore_errors=True)
        shutil.copytree(kin / "text", kin / "kept")
        change_article(kin, title, change)
        check = check_articles(kin, universe, fact_sources, OPTIONS)
        assert {difference.what for difference in check.first} <= {title, "number of articles"}
        assert message in first(check)
        shutil.rmtree(kin / "text")
        (kin / "kept").rename(kin / "text")
    assert check_articles(kin, universe, fact_sources, OPTIONS).different == 0


def test_a_changed_page_or_mark_is_reported(kin: Path):
    universe, fact_sources = facts(kin)
    change_rows(kin / PAGES_FILE, lambda rows: next(row for row in rows if row["marks"])["marks"].pop())
    assert check_pages(kin, universe, fact_sources, OPTIONS).different == 2
    rows = [json.loads(line) for line in (kin / PAGES_FILE).read_text(encoding="utf-8").splitlines()]
    web = EmbeddedWeb(kin / WEB_FOLDER)
    pages = [web.fetch(row["address"]) for row in rows]
    texts = []
    for written in (
        [*pages[1:-1], replace(pages[-1], sentences=("Nothing happened.",))],
        [*pages, replace(pages[0], address="https://other.example/")],
    ):
        shutil.rmtree(kin / WEB_FOLDER)
        writer = WebWriter(kin / WEB_FOLDER)
        for page in written:
            writer.add(page)
        writer.close()
        texts.append("\n".join(map(str, check_pages(kin, universe, fact_sources, OPTIONS).first)))
    assert f"{pages[0].address}: stated nothing, derived " in texts[0]
    assert "stated Nothing happened., derived nothing" in texts[0]
    assert f"number of pages: stated {len(pages) + 1}, derived {len(pages)}" in texts[1]


def test_a_changed_triple_is_reported(kin: Path):
    universe, fact_sources = facts(kin)
    graph_universe = universe.restrict_to_sources(fact_sources, GRAPH)

    def change(store: ox.Store) -> None:
        store.remove(next(store.quads_for_pattern(None, ox.NamedNode("http://www.wikidata.org/prop/direct/P21"), None)))

    change_graph(kin, change)
    check = check_graph(kin, graph_universe)
    assert (check.different, "derived <http://www.wikidata.org/entity/Q1" in first(check)) == (1, True)


def test_a_changed_universe_is_reported(kin: Path):
    universe, fact_sources = facts(kin)
    birth = universe.birth.copy()
    child = int(np.flatnonzero(universe.mother >= 0)[0])
    birth[child] = birth[universe.mother[child]] + 1
    broken = replace(universe, birth=birth)
    assert check_constraints(broken, OPTIONS).different
    assert check_constraints(universe, OPTIONS).different == 0
    # A universe that satisfies all constraints, but differs from the sources.
    other = replace(universe, hobby=np.roll(universe.hobby, 1))
    assert check_constraints(other, OPTIONS).different == 0
    assert check_articles(kin, other, fact_sources, OPTIONS).different
    assert check_graph(kin, other.restrict_to_sources(fact_sources, GRAPH)).different


def test_a_changed_split_is_reported(kin: Path):
    universe, fact_sources = facts(kin)
    masks = {**fact_sources.masks, "job": fact_sources.masks["job"].copy()}
    masks["job"][5] ^= 7
    assert first(check_split(universe, replace(fact_sources, masks=masks), OPTIONS)).startswith(
        "sources of job 5: stated "
    )
    with pytest.raises(WorldError, match="The split of friend belongs to another universe"):
        check_split(universe, replace(fact_sources, friends=fact_sources.friends[1:]), OPTIONS)


@pytest.mark.parametrize("name", [UNIVERSE_FILE, FACT_SOURCES_FILE, QUESTIONS_FILE])
def test_a_damaged_file_raises_a_clear_error(kin: Path, name: str):
    whole = (kin / name).read_bytes()
    (kin / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(WorldError, match=name):
        verify_world(kin.parent, "kin", print)
    (kin / name).unlink()
    with pytest.raises(WorldError, match="universe" if name == UNIVERSE_FILE else name):
        verify_world(kin.parent, "kin", print)


def test_missing_options_are_named(made: Path):
    about = read_world_metadata(made, "kin")
    del about["branching"]
    with pytest.raises(WorldError, match="has no branching"):
        read_options(about)


@pytest.mark.parametrize(
    "part", ["text", "web", "graph", "names", "relations.json", "pages.jsonl", "graph/CURRENT", "text/meta.json"]
)
def test_a_missing_part_raises_a_clear_error(kin: Path, part: str):
    path = kin / part
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    with pytest.raises((WorldError, SourceUnavailable), match=part.partition("/")[0]):
        verify_world(kin.parent, "kin", print)
