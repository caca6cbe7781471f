"""Gold answers that are ids: named by the world's graph at their import, and still compared by id officially."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from showhow.db.database import StoreError
from showhow.db.models import Question
from showhow.db.questions import projects
from showhow.evaluation.datasets.gold_names import GoldNames, find_bare_id
from showhow.evaluation.metrics import METRICS, score_answer
from showhow.evaluation.scoring.predictions import score_run
from showhow.runs.services import Services
from showhow.settings import Settings
from showhow.tasks.imports import QuestionImportPlan, QuestionImportReport, import_questions
from showhow.worlds.build import WorldContents, build_world
from showhow.worlds.live.world import add_live_world
from tests.app.cli.in_process import run_in_process
from tests.fixtures.compared_runs import ComparedRuns
from tests.servers.live_world import description
from tests.servers.loopback import free_port
from tests.servers.model import ModelServer, Request, Says
from tests.servers.sparql import SparqlServer

ISLE = Path(__file__).parents[1] / "worlds" / "isle.ttl"
WD = "http://www.wikidata.org/entity/"
NORTHPOINT = "http://isle.example/Northpoint"


@pytest.fixture
def services(tmp_path: Path, oxigraph: SparqlServer) -> Iterator[Services]:
    """Services with the isle's graph as a world of its own and behind a server, and a world whose server is gone."""
    worlds = tmp_path / "worlds"
    build_world(worlds, "isle", WorldContents(graph=ISLE))
    build_world(worlds, "bare", WorldContents(graph=_write_graph(tmp_path / "bare.nt")))
    add_live_world(worlds, "live", description(None, oxigraph.url, oxigraph.graph("isle")), "live.toml")
    gone = description(None, f"http://127.0.0.1:{free_port()}/sparql", attempts=1)
    add_live_world(worlds, "gone", gone, "gone.toml")
    environ = {"SHOWHOW_HOME": str(tmp_path), "SHOWHOW_CONTACT": "tests@example.org"}
    with closing(Services(Settings.from_env(environ), environ)) as opened:
        yield opened


def _write_graph(file: Path) -> Path:
    file.write_text(f"<{WD}Q1> <{WD}../prop/direct/P22> <{WD}Q2> .\n")
    return file


def write_qald(folder: Path, *answers: list[dict[str, Any]]) -> Path:
    """A file of QALD with one question for each list of bindings."""
    rows = [
        {
            "id": str(number),
            "question": [{"language": "en", "string": f"Which is {number}?"}],
            "answers": [{"head": {"vars": ["uri"]}, "results": {"bindings": bindings}}],
        }
        for number, bindings in enumerate(answers)
    ]
    file = folder / "q.json"
    file.write_text(json.dumps({"questions": rows}))
    return file


def uris(*addresses: str) -> list[dict[str, Any]]:
    return [{"uri": {"type": "uri", "value": address}} for address in addresses]


def add(services: Services, file: Path, world: str) -> tuple[QuestionImportReport, list[Question]]:
    """The report of an import, and the questions that are stored."""
    report = import_questions(services, file, QuestionImportPlan("Isle", world))
    with services.database.read() as session:
        project = projects.get_project(session, "Isle")
        return report, projects.list_questions(session, project.id)


@pytest.mark.parametrize("world", ["isle", "live"])
def test_ids_of_the_worlds_graph_are_answered_by_labels_aliases_and_ids_by_all_metrics(
    services: Services, tmp_path: Path, world: str
):
    answers = (uris(f"{WD}Q1"), uris(f"{WD}Q1", f"{WD}Q2"), uris(NORTHPOINT), uris(f"{WD}Q6"))
    report, questions = add(services, write_qald(tmp_path, *answers), world)
    assert (report.counts.added, report.named, report.unnamed) == (4, 5, 0)
    golds = [question.gold_answers for question in questions]
    assert (golds[0][0]["text"], golds[0][0]["entity"]) == ("Mara Quill", "Q1")
    assert {"the Keeper", "M. Quill", "Q1"} <= {*golds[0][0]["aliases"]}
    right = (
        ("Mara Quill", "Tom Quill, Mara Quill", "Northpoint", "Fährmann"),
        ("the Keeper", "M. Quill and Tom Quill", "northpoint", "fährmann"),
        ("Q1", "Q1, Q2", NORTHPOINT, "Q6"),
    )
    made = ComparedRuns(services.database, _project(services), questions)
    for texts in (*right, ("Tom Quill", "Ole", "South Bay", "Q7")):
        outcomes = {
            (question.id, 1): {"ending": "answered", "answer": text}
            for question, text in zip(questions, texts, strict=True)
        }
        made.add_run(questions, outcomes)
    values = [score_run(services.database, run.id, "qald_macro_f1")["value"] for run in made.runs]
    assert values == [1.0, 1.0, 1.0, 0.0]
    for texts in right:
        assert [score_answer(text, gold, METRICS["f1"]) for text, gold in zip(texts, golds, strict=True)] == [1.0] * 4
    # The same file adds nothing and differs in nothing.
    again, _ = add(services, tmp_path / "q.json", world)
    assert (again.counts.added, again.counts.differing) == (0, 0)


def _project(services: Services) -> Any:
    with services.database.read() as session:
        return projects.get_project(session, "Isle")


@pytest.mark.parametrize(
    ("world", "unnamed"),
    [("bare", 3), ("isle", 1), ("", 3)],
)
def test_ids_without_a_name_stay_and_are_told(services: Services, tmp_path: Path, world: str, unnamed: int):
    if not world:
        with services.database.begin() as session:
            projects.create_project(session, "Isle", "removed since")
    file = write_qald(tmp_path, uris(f"{WD}Q1"), uris(f"{WD}Q2", f"{WD}Q999"), uris("https://www.forbes.com"))
    report, questions = add(services, file, world or "removed since")
    assert (report.counts.added, report.unnamed) == (3, unnamed)
    lines = list(report.lines())
    assert lines[-1].startswith(f"{unnamed} gold answer")
    assert f"to which the world's graph has no name (first {'Q1' if unnamed == 3 else 'Q999'})" in lines[-1]
    assert questions[1].gold_answers[1] == {"text": "Q999", "entity": "Q999"}
    assert questions[2].gold_answers == [{"text": "https://www.forbes.com", "entity": None}]


def add_without_names(services: Services, file: Path) -> list[Question]:
    """The questions of a project over the isle that an import without names has stored."""
    _, questions = add(services, file, "bare")
    with services.database.begin() as session:
        projects.get_project(session, "Isle").world = "isle"
    return questions


def test_ids_that_were_stored_without_names_have_them_when_answers_are_scored(services: Services, tmp_path: Path):
    questions = add_without_names(services, write_qald(tmp_path, uris(f"{WD}Q2"), uris(f"{WD}Q6")))
    assert [question.gold_answers[0]["text"] for question in questions] == ["Q2", "Q6"]
    made = ComparedRuns(services.database, _project(services), questions)
    texts = ("Tom Quill", "Fährmann")
    outcomes = {
        (question.id, 1): {"ending": "answered", "answer": text}
        for question, text in zip(questions, texts, strict=True)
    }
    run = made.add_run(questions, outcomes)
    for metric in ("qald_macro_f1", "f1"):
        assert score_run(services.database, run.id, metric)["value"] == 0.0
        report = score_run(services.database, run.id, metric, names=GoldNames.of_world(services, "isle"))
        assert report["value"] == 1.0
    # The questions stay those that were asked.
    with services.database.read() as session:
        assert projects.list_questions(session, _project(services).id)[0].gold_answers == questions[0].gold_answers


@pytest.mark.parametrize("keep", [(), ("--keep",)])
def test_a_run_over_ids_that_were_stored_without_names_takes_labels_for_right(
    services: Services, tmp_path: Path, keep: tuple[str, ...]
):
    add_without_names(services, write_qald(tmp_path, uris(f"{WD}Q1"), uris(NORTHPOINT)))

    def answer(request: Request) -> Says:
        return Says(f"Final Answer: {'the Keeper' if 'Which is 0?' in request.prompt else 'Northpoint'}")

    with ModelServer(answer) as server:
        environ = {"SHOWHOW_MODEL": "openai:scripted", "SHOWHOW_MODEL_BASE_URL": server.url, "OPENAI_API_KEY": "none"}
        options = ("--project", "Isle", "--reasoner", "humaniq", "--option", "response=none", "--json", *keep)
        done = run_in_process(tmp_path, "evaluate", *options, **environ)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["right"], summary["f1"]) == (2, 1.0)
    if keep:
        scored = run_in_process(tmp_path, "runs", "score", summary["run"], "--metric", "qald_macro_f1", "--json")
        assert json.loads(scored.stdout)["value"] == 1.0
        assert "2 gold answers that are ids have names" in scored.stderr


@pytest.mark.parametrize(
    "predicted",
    [["Mara Quill", "Tom Quill; the Keeper", "Northpoint"], [["Q1"], ["Tom Quill", "M. Quill"], ["Northpoint"]]],
    ids=["texts", "lists"],
)
def test_predictions_in_words_are_scored_by_ids_with_the_names_of_a_world(
    services: Services, tmp_path: Path, predicted: list[Any]
):
    gold = write_qald(tmp_path, uris(f"{WD}Q1"), uris(f"{WD}Q1", f"{WD}Q2"), uris(NORTHPOINT))
    file = tmp_path / "p.jsonl"
    file.write_text("".join(f"{json.dumps({'id': str(n), 'predicted': p})}\n" for n, p in enumerate(predicted)))
    command = ("score", file, "--gold", gold, "--metric", "qald_macro_f1", "--json")
    scored = run_in_process(tmp_path, *command, "--world", "isle")
    assert json.loads(scored.stdout)["value"] == 1.0
    assert "4 gold answers that are ids have names from the world's graph" in scored.stderr
    without = run_in_process(tmp_path, *command)
    assert json.loads(without.stdout)["value"] == 0.0
    assert "name the world whose graph has their names with --world" in without.stderr
    assert run_in_process(tmp_path, *command, "--world", "nowhere").returncode == 1


def test_a_graph_that_gives_no_answer_ends_the_import_and_nothing_stays(services: Services, tmp_path: Path):
    file = write_qald(tmp_path, uris(f"{WD}Q1"))
    with pytest.raises(StoreError, match="the gold answers are ids, and the graph of the world could not be asked"):
        add(services, file, "gone")
    with services.database.read() as session:
        assert projects.find_project(session, "Isle") is None


def test_ids_in_the_answers_of_any_format_count_and_names_and_values_do_not():
    for text, entity, bare in (
        ("Q7", "Q7", "Q7"),
        ("Q7", None, "Q7"),
        ("wd:Q7", None, "Q7"),
        (f"{WD}Q7", None, "Q7"),
        (f"<{WD}Q7>", None, "Q7"),
        ("https://www.wikidata.org/wiki/Q7", None, "Q7"),
        ("https://www.wikidata.org/wiki/Property:P22", None, "P22"),
        ("http://www.wikidata.org/prop/direct/P22", None, "P22"),
        ("wdt:P22", None, "P22"),
        ("P22", None, "P22"),
        ("L12", None, "L12"),
        (f"{WD}Q7", "Q7", "Q7"),
        ("wd:Q7", "Q7", "Q7"),
        ("m.02x", "m.02x", "m.02x"),
        (NORTHPOINT, None, NORTHPOINT),
        ("Ada", "Q7", None),
        ("1931", None, None),
        ("Q", None, None),
        ("ratio 3:4", None, None),
        ("Quake 3: Arena", None, None),
    ):
        assert find_bare_id({"text": text, "entity": entity}) == bare


def test_the_labels_that_a_file_of_results_has_name_its_ids(services: Services, tmp_path: Path):
    def text(value: str) -> dict[str, str]:
        return {"type": "literal", "value": value}

    bindings = [
        {
            "x": {"type": "uri", "value": f"{WD}Q1"},
            "xLabel": text("Mara"),
            "xAltLabel": text("M."),
            "xDescription": text("keeper"),
            "n": text("12"),
        }
    ]
    report, (question,) = add(services, write_qald(tmp_path, bindings), "isle")
    assert report.named == 0
    assert question.gold_answers == [
        {"text": "Mara", "entity": "Q1", "aliases": ["M."]},
        {"text": "12", "entity": None},
    ]
