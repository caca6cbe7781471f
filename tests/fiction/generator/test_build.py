"""Generated worlds on disk: reproducible, complete or absent, and usable with every tool."""

import json
import os
import subprocess
import sys
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from showhow.fiction.generator.articles import generate_articles
from showhow.fiction.generator.build import generate_world
from showhow.fiction.generator.progress import StageProgress
from showhow.fiction.generator.source_split import assign_sources, parse_split
from showhow.fiction.generator.web_pages import generate_pages
from showhow.fiction.questions.question_file import read_question_rows
from showhow.fiction.questions.templates import sample_questions
from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.items import ItemCatalog
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.universe import GRAPH, TEXT, FactSources, Universe
from showhow.tools.registry import BUILT_IN_TOOLS
from showhow.tools.tool import Observation, ToolContext
from showhow.worlds.embedded.graph import EmbeddedGraph
from showhow.worlds.embedded.text import EmbeddedText, EmbeddedWeb
from showhow.worlds.folder import WorldError, WorldExists
from showhow.worlds.open import open_world, read_world_metadata
from showhow.worlds.source import World

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[3]
OPTIONS = GenerationOptions(people=90, seed=3, collisions=0.1, split="text=50,graph=35,web=15", depth=4, per_template=2)
STAGES = ("people", "articles", "pages", "questions", "graph", "names")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of worlds with the world `kin`."""
    worlds = tmp_path_factory.mktemp("home") / "worlds"
    generate_world(worlds, "kin", OPTIONS)
    return worlds


@pytest.fixture(scope="module")
def kin(made: Path) -> World:
    return open_world(made, "kin")


def left_behind(worlds: Path) -> list[str]:
    return sorted(path.name for path in worlds.iterdir()) if worlds.is_dir() else []


def kin_facts() -> tuple[Universe, FactSources]:
    universe = make_universe(OPTIONS)
    return universe, assign_sources(universe, parse_split(OPTIONS.split, OPTIONS.split_by), OPTIONS.seed)


def test_world_toml_has_options_sizes_and_hash(made: Path, kin: World):
    about = read_world_metadata(made, "kin")
    assert about.items() >= asdict(OPTIONS).items()
    assert tomllib.loads((made / "kin" / "world.toml").read_text(encoding="utf-8")) == about
    assert (about["name"], about["kind"], about["generator"], len(about["hash"])) == ("kin", "generated", 3, 64)
    assert about["needs"] == "certain"
    assert isinstance(kin.text, EmbeddedText)
    assert isinstance(kin.web, EmbeddedWeb)
    assert isinstance(kin.graph, EmbeddedGraph)
    (((triples,),), ((entities,),)) = (
        kin.graph.query(f"SELECT (COUNT({what}) AS ?n) {{ ?s ?p ?o {more} }}").rows
        for what, more in (("*", ""), ("DISTINCT ?s", "FILTER(STRSTARTS(STR(?s), STR(wd:Q)))"))
    )
    assert triples is not None
    assert entities is not None
    sizes = (len(kin.text), len(kin.web), int(triples.value), int(entities.value), len(kin.graph.vocabulary()))
    assert sizes == tuple(about[what] for what in ("articles", "pages", "triples", "entities", "relations"))


def test_universe_and_fact_sources_are_stored_with_the_world(made: Path):
    universe, fact_sources = kin_facts()
    stored, stored_sources = Universe.load(made / "kin" / "universe.npz"), FactSources.load(made / "kin" / "told.npz")
    assert stored.titles == tuple(universe.titles)
    assert all((stored_sources.masks[fact] == fact_sources.masks[fact]).all() for fact in fact_sources.masks)


def test_stored_articles_and_pages_equal_the_generated_ones(kin: World, made: Path):
    universe, fact_sources = kin_facts()
    assert isinstance(kin.text, EmbeddedText)
    assert isinstance(kin.web, EmbeddedWeb)
    for article in generate_articles(universe.restrict_to_sources(fact_sources, TEXT), ItemCatalog(universe), OPTIONS):
        assert kin.text.article(article.title) == article
    rows = [json.loads(line) for line in (made / "kin" / "pages.jsonl").read_text(encoding="utf-8").splitlines()]
    for marked, row in zip(generate_pages(universe, fact_sources, OPTIONS), rows, strict=True):
        assert kin.web.fetch(marked.page.address) == marked.page
        assert row == marked.to_row(universe)


def test_questions_are_stored_with_their_gold_parts(made: Path):
    universe, fact_sources = kin_facts()
    questions = [
        json.loads(json.dumps(question.to_row())) for question in sample_questions(universe, fact_sources, OPTIONS)
    ]
    assert read_question_rows(made / "kin") == questions
    assert read_world_metadata(made, "kin")["questions"] == len(questions) >= 4


def test_templates_with_too_few_questions_are_listed_as_shortfalls(tmp_path: Path):
    options = GenerationOptions(people=2, seed=1, depth=4, per_template=8)
    about = generate_world(tmp_path, "w", options)
    universe = make_universe(options)
    questions = sample_questions(universe, assign_sources(universe, parse_split("everywhere"), 1), options)
    assert about["questions"] == sum(1 for _ in questions)
    assert about["shortfalls"] == [str(shortfall) for shortfall in questions.shortfalls] != []
    assert read_world_metadata(tmp_path, "w") == about


def test_people_are_found_by_name_title_and_alias(kin: World):
    universe, fact_sources = kin_facts()
    items = ItemCatalog(universe.restrict_to_sources(fact_sources, GRAPH))
    graph = kin.graph
    assert graph is not None
    for row, (name, title) in enumerate(zip(universe.names, universe.titles, strict=True)):
        assert items.person(row) in [entity.id for entity in graph.find(name, 10)]
        assert graph.entity_of(title).id == items.person(row)
        assert graph.find(title, 1)[0].id == items.person(row)
        entity = graph.entities([items.person(row)])[0]
        assert (entity.label, entity.title, entity.description) == (name, title, items.description("person", row))
        assert set(entity.aliases) == set(items.aliases(row))
        for alias in entity.aliases:
            assert items.person(row) in [match.id for match in graph.find(alias, 10)]
    relations = {relation.label: relation for relation in graph.vocabulary()}
    assert (relations["spouse"].id, relations["spouse"].value) == ("P26", "entity")
    assert "wife" in relations["spouse"].aliases
    assert (relations["date of birth"].id, relations["date of birth"].value) == ("P569", "date")
    assert graph.find("physician", 1)[0].description == "occupation"


def observed(world: World, tool: str, **arguments: Any) -> Observation:
    def no_meaning(texts: Any) -> np.ndarray:
        return np.zeros((len(texts), 1), np.float32)

    outcome = BUILT_IN_TOOLS[tool].call(ToolContext(world, no_meaning), arguments)
    assert outcome.observation is not None, outcome.error
    return outcome.observation


def test_every_tool_works_on_a_generated_world(kin: World):
    universe, fact_sources = kin_facts()
    of_graph = universe.restrict_to_sources(fact_sources, GRAPH)
    row = int(np.flatnonzero((of_graph.job >= 0) & (of_graph.mother >= 0))[0])
    name, title, item = universe.names[row], universe.titles[row], ItemCatalog(universe).person(row)
    assert title in observed(kin, "wikisearch", query=name).text
    assert title in observed(kin, "read", title=title, question="When were they born?").text
    assert item in observed(kin, "getWikiDataID", title=title).text
    query = observed(kin, "generateQuery", question=f"Who is the mother of {name}?", entity_ids=[item]).text
    mother = ItemCatalog(universe).person(int(universe.mother[row]))
    assert mother in observed(kin, "runQuery", sparql=query).text
    assert universe.names[int(universe.mother[row])] in observed(kin, "getLabel", ids=[mother]).text
    assert "https://" in observed(kin, "websearch", query=universe.places.regions[0]).text


def test_a_world_with_one_source_has_no_other(tmp_path: Path):
    generate_world(tmp_path, "quiet", GenerationOptions(people=12, seed=1, split="text=100", depth=2, per_template=1))
    quiet = open_world(tmp_path, "quiet")
    assert quiet.web is None
    assert quiet.graph is not None
    facts = quiet.graph.query("SELECT DISTINCT ?p { ?s wdt:P31 wd:Q5 ; ?p ?o FILTER(STRSTARTS(STR(?p), STR(wdt:))) }")
    assert {row[0].value for row in facts.rows if row[0]} == {"P31", "P21"}


@pytest.mark.parametrize(
    ("options", "counts"),
    [(OPTIONS, (1, 2)), (GenerationOptions(people=9_000, seed=8, split="text=100", depth=2, per_template=1), (1, 3))],
    ids=["90 people", "9,000 people"],
)
def test_the_same_options_give_the_same_bytes_with_any_number_of_processes_and_any_hashing(
    tmp_path: Path, options: GenerationOptions, counts: tuple[int, ...]
):
    program = """
import sys
from pathlib import Path
from showhow.fiction.generator.build import generate_world
from showhow.fiction.universe.options import GenerationOptions
if __name__ == "__main__":
    print(generate_world(Path(sys.argv[1]), "w", eval(sys.argv[2]), processes=int(sys.argv[3]))["hash"])
"""
    (tmp_path / "make.py").write_text(program)
    hashes, files = set(), set()
    for processes in counts:
        done = subprocess.run(
            [sys.executable, tmp_path / "make.py", tmp_path / str(processes), repr(options), str(processes)],
            env={**os.environ, "PYTHONHASHSEED": str(processes), "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            check=True,
        )
        hashes.add(done.stdout)
        made = tmp_path / str(processes) / "w"
        files.add(tuple((made / name).read_bytes() for name in ("universe.npz", "told.npz", "pages.jsonl")))
    assert (len(hashes), len(files)) == (1, 1)


def test_other_options_give_another_hash(tmp_path: Path, made: Path):
    changes: list[dict[str, Any]] = [{"seed": 4}, {"plain": True}, {"split": "text=51,graph=34,web=15"}]
    hashes = [
        generate_world(tmp_path, f"w{n}", GenerationOptions(**{**asdict(OPTIONS), **c}))["hash"]
        for n, c in enumerate(changes)
    ]
    assert len({*hashes, read_world_metadata(made, "kin")["hash"]}) == 4


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("when", ["begins", "ends"])
def test_an_exception_of_the_progress_callback_removes_the_world(tmp_path: Path, stage: str, when: str):
    seen = []

    def watch(progress: StageProgress) -> None:
        seen.append(progress.stage)
        if progress.stage == stage and progress.finished == (when == "ends"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate_world(tmp_path / "worlds", "w", OPTIONS, progress=watch)
    assert seen[-1] == stage
    assert left_behind(tmp_path / "worlds") == []


def test_progress_reports_every_stage_from_start_to_end(tmp_path: Path):
    reports: list[StageProgress] = []
    about = generate_world(tmp_path, "w", OPTIONS, progress=reports.append)
    assert list(dict.fromkeys(progress.stage for progress in reports)) == list(STAGES)
    ends = {progress.stage: progress for progress in reports if progress.finished}
    assert ends["people"].done == ends["graph"].done == ends["names"].done == 90
    assert all(ends[stage].done == about[stage] for stage in ("articles", "pages", "questions"))
    assert all(progress.done <= progress.total for progress in reports if progress.total)
    assert StageProgress("articles", 50, 200, 2.0).remaining_seconds == 6.0


def test_invalid_options_are_rejected_before_anything_is_written(tmp_path: Path):
    generate_world(tmp_path, "w", GenerationOptions(people=5, seed=1, depth=2, per_template=1))
    for options, reason in (
        (GenerationOptions(people=0, seed=1), "people must be from 1"),
        (GenerationOptions(people=9, seed=1, split="text=9"), "add up to 9"),
        (GenerationOptions(people=9, seed=1, split_by="colour"), "by entity, by relation or by both"),
    ):
        with pytest.raises(WorldError, match=reason):
            generate_world(tmp_path, "x", options)
    with pytest.raises(WorldExists, match="'w' already"):
        generate_world(tmp_path, "w", OPTIONS)
    assert left_behind(tmp_path) == ["w"]
    assert generate_world(tmp_path, "w", OPTIONS, replace=True)["people"] == 90
    assert left_behind(tmp_path) == ["w"]
