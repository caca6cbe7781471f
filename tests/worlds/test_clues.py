"""Questions that need a sentence of an article and a fact of the graph, over worlds that nobody generated."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from showhow.evaluation.datasets import read_questions
from showhow.runs.services import Services
from showhow.settings import Settings
from showhow.tasks.blend import BlendQuestions, blend
from showhow.tasks.task import TaskError
from showhow.worlds.build import WorldContents, build_world
from showhow.worlds.clues import BLANK
from showhow.worlds.source import Article

ITEMS = {
    "Q1": "Hollow Mill",
    "Q2": "Tern Press",
    "Q3": "Ida Krane",
    "Q4": "Lindmoor",
    "Q5": "Orle",
    "Q6": "Jon Pell",
    "Q7": "Old Mill",
}
RELATIONS = {"P31": "instance of", "P50": "founder", "P51": "location", "P52": "opening date", "P53": "river"}
FACTS = [
    ("Q2", "P50", "wd:Q3"),
    ("Q2", "P51", "wd:Q4"),
    ("Q2", "P31", "wd:Q5"),
    ("Q1", "P52", '"1874-05-01T00:00:00Z"^^xsd:dateTime'),
    ("Q1", "P53", "wd:Q5"),
    ("Q7", "P53", "wd:Q5"),
]
ARTICLES = [
    Article("Tern Press", ("Tern Press prints almanacs for the fishing ports of the coast.",
                           "It sits in Lindmoor."), "Q2"),
    Article("Hollow Mill", ("Hollow Mill is a mill that has been without a wheel since the great flood.",
                            "The Orle runs past Hollow Mill, which was built in a hurry."), "Q1"),
    Article("Old Mill", ("Old Mill stands empty.", "Many birds nest under the roof of Old Mill every spring."), "Q7"),
    Article("Jon Pell", ("Jon Pell wrote about Hollow Mill, which opened in 1874.",), "Q6"),
    Article("Weather", ("It rains.",), None),
]  # fmt: skip


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    home = tmp_path_factory.mktemp("home")
    prefixes = {
        "wd": "http://www.wikidata.org/entity/",
        "wdt": "http://www.wikidata.org/prop/direct/",
        "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
        "xsd": "http://www.w3.org/2001/XMLSchema#",
    }
    lines = [f"@prefix {name}: <{iri}> ." for name, iri in prefixes.items()]
    lines += [f'wd:{id_} rdfs:label "{label}"@en .' for id_, label in (ITEMS | RELATIONS).items()]
    lines += [f"wd:{head} wdt:{relation} {tail} ." for head, relation, tail in FACTS]
    (home / "g.ttl").write_text("\n".join(lines), encoding="utf-8")
    build_world(home / "worlds", "mills", WorldContents(ARTICLES, home / "g.ttl"))
    build_world(home / "worlds", "texts", WorldContents(ARTICLES))
    services = Services(Settings(home=home, database_url=f"sqlite:///{home / 'store.db'}"))
    yield services
    services.close()


def write(services: Services, file: Path, **more: Any) -> list[dict[str, Any]]:
    blend(services, BlendQuestions(world="mills", to=file, force=True, **more))
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_only_what_one_article_tells_and_the_graph_alone_answers_is_asked(services: Services, tmp_path: Path):
    asked: dict[str, list[str]] = {}
    for seed in range(12):
        for row in write(services, tmp_path / "q.jsonl", kind=("kg-text",), seed=seed):
            asked[row["text"]] = [answer["text"] for answer in row["answers"]]
    press, old = (
        "What is the {} of what is left blank in “" + sentence + "”?"
        for sentence in (
            f"{BLANK} prints almanacs for the fishing ports of the coast.",
            f"Many birds nest under the roof of {BLANK} every spring.",
        )
    )
    # The town of the press and the year of the other mill are in articles; a mill's sentence has the word "mill".
    assert asked == {press.format("founder"): ["Ida Krane"], old.format("river"): ["Orle"]}
    for text in asked:
        clue = text.partition("“")[2].partition("”")[0]
        described = [article.title for article in ARTICLES if clue.replace(BLANK, article.title) in article.sentences]
        assert len(described) == 1


def test_they_are_read_as_questions_with_needs_and_hops(services: Services, tmp_path: Path):
    rows = write(services, tmp_path / "q.jsonl", seed=1)
    for record, row in zip(read_questions(tmp_path / "q.jsonl"), rows, strict=True):
        assert (record.kind, record.details["needs"]) == ("kg-text", [["graph", "text"]])
        (hop,) = record.decomposition
        assert (hop["subject"], hop["subject_id"]) == (row["bridge"]["text"], row["bridge"]["entity"])
        assert record.gold_answers == [{"text": hop["object"], "entity": hop["object_id"]}]
    assert rows == write(services, tmp_path / "q.jsonl", seed=1)


def test_a_world_of_one_source_has_none_and_says_what_to_do(services: Services, tmp_path: Path):
    for more, sentence in (
        ({"world": "texts"}, "the world texts has no question that needs two of its sources"),
        ({"world": "mills", "kind": ("text-web",)}, "the world mills has no question that needs two"),
        ({"world": "mills", "kind": ("web",)}, "there is no kind 'web'; there are kg-text, kg-web, text-web"),
    ):
        with pytest.raises(TaskError, match=sentence):
            blend(services, BlendQuestions(to=tmp_path / "none.jsonl", **more))  # type: ignore[arg-type]
    assert not (tmp_path / "none.jsonl").exists()
