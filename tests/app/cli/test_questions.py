"""`showhow questions import | list | formats`."""

import json
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from showhow.db.questions import projects
from showhow.evaluation.datasets import QUESTION_FORMATS
from showhow.fiction.generator.build import generate_world
from showhow.fiction.universe.options import GenerationOptions
from showhow.runs.services import Services
from showhow.settings import Settings
from tests.app.cli.in_process import run_in_process

GOOD = {"question": "Who is the mother of Ada Reed?", "answers": ["Eva Reed"], "id": "1"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with the world `small`."""
    generate_world(tmp_path / "worlds", "small", GenerationOptions(people=10, seed=1, depth=2, per_template=1))
    return tmp_path


def showhow(home: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return run_in_process(home, "questions", *words)


def list_questions(home: Path, *words: str) -> list[dict[str, object]]:
    done = showhow(home, "list", "--project", "Kin", "--json", *words)
    assert done.returncode == 0, done.stderr
    questions: list[dict[str, object]] = json.loads(done.stdout)
    return questions


def write_questions(home: Path, *records: object) -> Path:
    file = home / "q.jsonl"
    file.write_text("\n".join(record if isinstance(record, str) else json.dumps(record) for record in records), "utf-8")
    return file


def error_of(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    return done.stderr


def test_questions_are_added_once_and_listed_in_order(home: Path) -> None:
    file = write_questions(home, GOOD, {"question": "When was Ada Reed born?", "answer": "1931-03-05", "kind": "date"})
    guidelines = home / "guide.md"
    guidelines.write_text("**Be brief.**", "utf-8")
    done = showhow(home, "import", file, "--project", "Kin", "--world", "small", "--guidelines", guidelines, "--json")
    counts = {"format": "jsonl", "questions": 2, "without_gold": 0, "several_gold": 0, "repeated_ids": 0}
    counts |= {"doubtful_gold": 0, "cannot_be_answered": 0, "unread": []}
    stored = {"added": 2, "already": 0, "differing": 0, "named_gold": 0, "unnamed_gold": 0}
    assert json.loads(done.stdout) == {"project": "Kin", **stored, **counts}
    again = showhow(home, "import", file, "--project", "Kin")
    assert again.stdout == "Kin: 0 questions added, 2 existed already\nformat jsonl: 2 questions read\n"
    questions = list_questions(home)
    assert [(question["position"], question["text"]) for question in questions] == [
        (1, GOOD["question"]),
        (2, "When was Ada Reed born?"),
    ]
    assert questions[0]["answers"] == [{"text": "Eva Reed", "entity": None}]
    assert [question["position"] for question in list_questions(home, "--limit", "1", "--after", "1")] == [2]


def test_records_that_cannot_be_read_are_counted_by_reason_and_the_others_are_imported(home: Path) -> None:
    broken = [{"question": " "}, {"question": "Who?", "answer": [None]}, {"question": ""}]
    several = {"question": "Which?", "answers": ["Ada", "Ben"]}
    file = write_questions(home, GOOD, *broken, {"question": "When?"}, several)
    done = showhow(home, "import", file, "--project", "Kin", "--world", "small")
    assert done.stdout.splitlines() == [
        "Kin: 3 questions added, 0 existed already",
        "format jsonl: 3 questions read",
        "1 question without gold answers",
        "1 question with several, all of which a correct answer names",
        "2 records not read: the field 'question' is blank (first in line 2)",
        "1 record not read: an answer is not a text, a number or an object with a 'text' or a 'value'"
        " (first in line 3)",
    ]
    assert [question["text"] for question in list_questions(home)] == [GOOD["question"], "When?", "Which?"]
    again = json.loads(showhow(home, "import", file, "--project", "Kin", "--json").stdout)
    assert again["unread"][0] == {"reason": "the field 'question' is blank", "count": 2, "first": "line 2"}


def test_an_id_with_another_question_or_other_gold_answers_is_told_at_its_first_place(home: Path) -> None:
    lines = [GOOD, {**GOOD, "id": 1}, {**GOOD, "question": "Who?"}, {**GOOD, "id": "1\u200b", "answers": ["Ada"]}]
    lines += [{"question": "When?", "answer": "1931"}, {"question": "When?", "answer": "1932"}]
    done = showhow(home, "import", write_questions(home, *lines), "--project", "Kin", "--world", "small")
    assert done.stdout.splitlines() == [
        "Kin: 3 questions added, 3 existed already, of which 2 keep other gold answers",
        "format jsonl: 6 questions read",
        "2 questions with an earlier id, and another text or other gold answers (first 1, line 3 and line 1)",
    ]


def test_gold_answers_that_are_ids_are_told_with_the_names_that_the_world_has(home: Path) -> None:
    lines = (home / "worlds" / "small" / "questions.jsonl").read_text("utf-8").splitlines()
    golds = [gold for line in lines for gold in json.loads(line)["answers"] if gold.get("entity")]
    name, person = golds[0]["text"], golds[0]["entity"]
    address = f"http://www.wikidata.org/entity/{person}"
    bindings = [{"x": {"type": "uri", "value": address}}, {"x": {"type": "uri", "value": f"{address}999999"}}]
    question = {"id": 7, "question": [{"language": "en", "string": "Who?"}]}
    record = {**question, "answers": [{"results": {"bindings": bindings}}]}
    done = showhow(home, "import", write_questions(home, record), "--project", "Kin", "--world", "small")
    assert done.stdout.splitlines() == [
        "Kin: 1 question added, 0 existed already",
        "1 gold answer was an id, and got its names from the world's graph",
        f"1 gold answer is an id to which the world's graph has no name (first {person}999999), so that only the id "
        "is right",
        "format qald: 1 question read",
        "1 question with several, all of which a correct answer names",
    ]
    (answers,) = (question["answers"] for question in list_questions(home))
    assert isinstance(answers, list)
    assert (answers[0]["text"], answers[0]["entity"]) == (name, person)


def test_a_file_of_which_no_record_can_be_read_is_refused_and_no_project_is_created(home: Path) -> None:
    file = write_questions(home, {"question": " ", "answer": "x"}, '{"question": ')
    message = error_of(showhow(home, "import", file, "--project", "Kin", "--world", "small"))
    assert "none of its 2 records can be read in the format jsonl" in message
    assert "the field 'question' is blank (first in line 1)" in message
    assert "there is no project 'Kin'" in error_of(showhow(home, "list", "--project", "Kin"))


def test_questions_without_gold_answers_are_announced_before_anything_is_stored(home: Path) -> None:
    file = write_questions(home, {"question": "Who?", "truth": "Ada"}, {"question": "When?"})
    words = ("import", file, "--project", "Kin", "--world", "small")
    message = error_of(showhow(home, *words))
    assert "none of its 2 questions has a gold answer (format jsonl; a record has 'question' (a text), " in message
    assert "--without-gold" in message
    assert "there is no project 'Kin'" in error_of(showhow(home, "list", "--project", "Kin"))
    assert json.loads(showhow(home, *words, "--without-gold", "--json").stdout)["without_gold"] == 2
    assert [question["answers"] for question in list_questions(home)] == [[], []]


def test_split_language_and_chosen_ids_apply_to_what_is_stored(home: Path, shared_data: Path) -> None:
    file = shared_data / "qald10" / "qald_10_250.json"
    chosen = ("--only", "3", "--split", "test", "--language", "de")
    done = showhow(home, "import", file, "--project", "Kin", "--world", "small", *chosen)
    assert done.stdout.startswith("Kin: 1 question added")
    settings = Settings.from_env({"SHOWHOW_HOME": str(home)})
    with closing(Services(settings, {})) as services, services.database.read() as session:
        project = projects.find_project(session, "Kin")
        assert project is not None
        (question,) = projects.list_questions(session, project.id)
    assert question.text == "Welcher der Gründer von Tencent ist Mitglied im Nationalen Volkskongress?"
    assert (question.source_id, question.split, question.dataset) == ("3", "test", "qald")
    assert "the file has no question x" in error_of(showhow(home, "import", file, "--project", "Kin", "--only", "x"))


def test_a_file_of_unknown_structure_is_refused_with_what_was_seen_and_the_formats(home: Path) -> None:
    file = write_questions(home, {"input": "Ada", "target": ["x"]})
    message = error_of(showhow(home, "import", file, "--project", "Kin", "--world", "small"))
    assert "a record has 'input' (a text), 'target' (a list)" in message
    listed = json.loads(showhow(home, "formats", "--json").stdout)
    assert [form["name"] for form in listed] == list(QUESTION_FORMATS)
    assert all(form["name"] in message and form["title"] for form in listed)
    assert "MuSiQue" in showhow(home, "formats").stdout


def test_a_missing_world_or_file_is_reported_and_no_project_is_created(home: Path) -> None:
    file = write_questions(home, GOOD)
    assert "--world" in error_of(showhow(home, "import", file, "--project", "Kin"))
    assert "small" in error_of(showhow(home, "import", file, "--project", "Kin", "--world", "nowhere"))
    unreadable = ("--world", "small", "--guidelines", home / "none.md")
    assert "none.md" in error_of(showhow(home, "import", file, "--project", "Kin", *unreadable))
    assert "hotpotqa" in error_of(showhow(home, "import", file, "--project", "Kin", "--format", "tables"))
    assert "there is no project 'Kin'" in error_of(showhow(home, "list", "--project", "Kin"))


def test_the_real_questions_are_imported(home: Path, shared_data: Path) -> None:
    file = shared_data / "world_2wiki" / "questions_300.json"
    done = showhow(home, "import", file, "--project", "Kin", "--world", "small", "--json")
    assert json.loads(done.stdout)["added"] == 300
    assert len(list_questions(home, "--limit", "1000")) == 300


def test_blended_questions_are_written_and_imported_with_what_they_need(home: Path):
    options = GenerationOptions(people=60, seed=3, depth=2, per_template=1, split="text=50,graph=50")
    generate_world(home / "worlds", "split", options)
    file = home / "blend.jsonl"
    done = showhow(home, "blend", "split", "--to", file, "--count", "4", "--json")
    assert done.returncode == 0, done.stderr
    written = json.loads(done.stdout)
    assert written["questions"] == {"kg-text": 4, "kg-web": 0, "text-web": 0}
    assert [sentence.partition(":")[0] for sentence in written["shortfalls"]] == ["kg-web", "text-web"]
    again = showhow(home, "blend", "split", "--to", file)
    assert (again.returncode, "exists already" in again.stderr) == (1, True)
    imported = showhow(home, "import", file, "--project", "Kin", "--world", "split")
    assert imported.returncode == 0, imported.stderr
    questions = list_questions(home)
    assert [question["kind"] for question in questions] == ["kg-text"] * 4
    assert all(question["answers"] for question in questions)
    refused = showhow(home, "blend", "small", "--to", home / "none.jsonl")
    assert (refused.returncode, "has no question that needs two of its sources" in refused.stderr) == (1, True)
