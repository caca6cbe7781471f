"""Import of published and handmade instances, and of invalid folders."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from showhow.fiction.phantomwiki.articles import StatedFacts
from showhow.fiction.phantomwiki.instance import import_instance
from showhow.fiction.questions.question_file import read_question_rows
from showhow.fiction.verification import verify_world
from showhow.worlds.folder import WorldError, list_world_names
from showhow.worlds.input_files import MalformedFile
from showhow.worlds.open import open_world, read_world_metadata
from tests.fiction.phantomwiki import small_instance

LAYOUTS: list[Callable[[Path], Path]] = [
    small_instance.write,
    small_instance.write_as_texts,
    small_instance.write_packed,
    lambda folder: small_instance.write_for_the_hub(folder, "depth_20_size_5_seed_1"),
    lambda folder: small_instance.write(folder / "depth_20_size_5_seed_1").parent,
]


def import_small(worlds: Path, folder: Path, **metadata: str) -> dict[str, Any]:
    return import_instance(worlds, "small", folder, metadata)


@pytest.mark.parametrize("write", LAYOUTS)
def test_every_layout_gives_the_same_world(tmp_path: Path, write: Callable[[Path], Path]):
    about = import_small(tmp_path / "worlds", write(tmp_path / "folder"))
    counts = ("kind", "format", "people", "articles", "questions")
    assert [about[name] for name in counts] == ["imported", "phantomwiki", 5, 5, 3]
    plain = import_instance(tmp_path / "worlds", "plain", small_instance.write(tmp_path / "plain"), {})
    assert about["hash"] == plain["hash"]
    rows = [read_question_rows(tmp_path / "worlds" / name) for name in ("small", "plain")]
    assert sorted(rows[0], key=lambda row: row["id"]) == rows[1]
    assert verify_world(tmp_path / "worlds", "small", print).different == 0


def test_the_world_has_articles_a_graph_and_questions_with_entities(tmp_path: Path):
    import_small(tmp_path, small_instance.write(tmp_path / "folder"), licence="MIT")
    assert read_world_metadata(tmp_path, "small")["licence"] == "MIT"
    world = open_world(tmp_path, "small")
    assert world.text is not None
    assert world.graph is not None
    article = world.text.article("Di Lee")
    assert article.sections == (("Family", 0), ("Friends", 3), ("Attributes", 4))
    assert article.sentences[3] == "The friend of Di Lee is Ed Oak."
    entity = world.graph.entity_of("Di Lee")
    assert (entity.id, entity.label, entity.title) == (article.entity, "Di Lee", "Di Lee")
    table = world.graph.query(f"SELECT ?mother {{ wd:{entity.id} wdt:P25 ?mother }}")
    assert [row[0].value for row in table.rows if row[0]] == [world.text.article("Ann Lee").entity]
    who, what, many = read_question_rows(tmp_path / "small")
    assert who["answers"] == [{"text": "Di Lee", "entity": entity.id}]
    assert (what["kind"], what["difficulty"], what["hops"]) == ("what", 2, 2)
    assert what["needs"] == [["text"], ["graph"]]
    assert [answer["entity"] is None for answer in (*what["answers"], *many["answers"])] == [False, False, True, True]


def test_one_of_several_splits_must_be_named(tmp_path: Path):
    folder = small_instance.write_for_the_hub(tmp_path / "hub", "size_5", "size_6")
    with pytest.raises(MalformedFile, match="several instances; name one with --where split=NAME: size_5, size_6"):
        import_small(tmp_path, folder)
    with pytest.raises(MalformedFile, match="there is no split size_7"):
        import_small(tmp_path, folder, split="size_7")
    assert import_small(tmp_path, folder, split="size_6")["split"] == "size_6"


QUESTION = json.dumps(small_instance.questions()[0]["prolog"]["query"][1])


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("questions.json", QUESTION, '"hobby(Y_4, \\"rowin\\")"', "line 2: question q0: the goal hobby(Y_4,"),
        ("questions.json", QUESTION, '"hobby(Y_5, \\"rowing\\")"', "no goal after it binds its subject"),
        (
            "questions.json",
            '"answer": "Y_2"',
            '"answer": "Y_3"',
            "line 2: question q0: the goal sister(Y_4, Y_2)",
        ),
        ("questions.json", '"id": "q2"', '"id": "q1"', "there are two questions with the id q1"),
        ("questions.json", '"type": 47', '"type": "47"', "the field 'type' is not a whole number"),
        ("questions.json", '"Di Lee"', "3", "line 2: the field 'answer' is not a list of texts"),
        ("questions.json", '"question": "Who', '"questions": "Who', "line 2: the field 'question' is missing"),
        (
            "questions.json",
            '"prolog"',
            '"prologue"',
            "the field 'prolog' is not an object with a 'query' and an 'answer'",
        ),
        ("questions.json", "\n]", ",\n3]", "the list contains something other than objects"),
        ("questions.json", "\n]", "\n", "invalid JSON"),
        (
            "articles.json",
            '"title": "Di Lee"',
            '"title": "Di Leo"',
            "the article is not about a person of the facts: there is no person",
        ),
        ("articles.json", '"title": "Di Lee"', '"title": "Cy Lee"', "there are two articles about 'Cy Lee'"),
        ("articles.json", '"mother(', '"(', "a name, string or number is expected"),
        ("articles.json", '\\"Ann Lee\\").', "3).", "it is not a fact with two strings"),
        ("facts.pl", "person", "pet", "facts.pl, line 9: 'Ann Lee' is a pet"),
    ],
)
def test_malformed_files_are_reported_with_their_line_and_nothing_is_imported(
    tmp_path: Path, file: str, old: str, new: str, message: str
):
    path = small_instance.write(tmp_path / "folder") / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(MalformedFile) as refused:
        import_small(tmp_path / "worlds", path.parent)
    assert str(refused.value).startswith(str(path))
    assert message in str(refused.value)
    assert list_world_names(tmp_path / "worlds") == []


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        (["facts.pl"], "neither the folder nor a folder in it has a facts.pl"),
        (["articles.json"], "the folder has no articles.json or articles/"),
        (["questions.json"], "the folder has no questions.json or questions/"),
    ],
)
def test_a_folder_without_a_required_file_is_not_an_instance(tmp_path: Path, missing: list[str], message: str):
    folder = small_instance.write(tmp_path / "folder")
    for name in missing:
        (folder / name).unlink()
    with pytest.raises(MalformedFile, match=message):
        import_small(tmp_path / "worlds", folder)


def test_a_missing_folder_is_reported(tmp_path: Path):
    with pytest.raises(MalformedFile, match="there is no such folder"):
        import_small(tmp_path, tmp_path / "nowhere")


@pytest.mark.parametrize("relations", [[], {"sister": []}, {"sister": {"Ann Lee": "Di Lee"}}, {"sister": {"A": [3]}}])
def test_relation_cells_must_be_lists_of_people(tmp_path: Path, relations: Any):
    folder = small_instance.write(tmp_path / "folder")
    (folder / "relations.json.gz").write_bytes(gzip.compress(json.dumps(relations).encode()))
    with pytest.raises(MalformedFile, match="it is not an object of relations"):
        import_small(tmp_path / "worlds", folder)


# `make bench ONLY=phantomwiki` verifies all seven.
PUBLISHED = ("25_seed_1", "50_seed_3", "500_seed_1_easy")


@pytest.mark.long
@pytest.mark.parametrize("instance", PUBLISHED)
def test_published_instances_verify_without_differences(tmp_path: Path, shared_data: Path, instance: str):
    name = f"depth_20_size_{instance}"
    about = import_instance(tmp_path, name, shared_data / "phantomwiki" / name, {})
    report = verify_world(tmp_path, name, print)
    assert report.first_differences == []
    checked = {check.name: check.checked for check in report.checks}
    assert (checked["answers"], checked["answers of queries"]) == (500, 500)
    assert checked["relation cells"] == 46 * about["people"]
    assert checked["triples"] == about["triples"]


@pytest.mark.timeout(60)
def test_stated_facts_that_expand_without_end_or_are_no_file_are_refused_in_one_sentence(tmp_path: Path):
    file = tmp_path / "stated.json.gz"
    file.write_bytes(gzip.compress(b" " * (65 << 20)))
    with pytest.raises(WorldError, match=r"stated\.json\.gz cannot be read \(it expands to more than 64 MB"):
        StatedFacts.load(file)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(WorldError, match="it is a named pipe"):
        StatedFacts.load(file)
