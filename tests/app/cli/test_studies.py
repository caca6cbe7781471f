"""`showhow studies`: the how-to as written, the study of HumanIQ's paper, and what is refused."""

import csv
import json
import shlex
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from showhow.db.database import Database
from showhow.db.models import Question
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.review import studies
from showhow.db.storage.schema import upgrade
from tests.app.cli.in_process import run_in_process

HOW_TO = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "blind-study.md"
BEST = {"truthful": "true", "informative": "informative", "quality": "high", "preference": "right"}
PROGRAM = "    .venv/bin/showhow "


def run(home: Path, *words: str) -> str:
    done = run_in_process(home, *words)
    assert done.returncode == 0, f"showhow {' '.join(words)}: {done.stderr}"
    return done.stdout


def refuse(home: Path, *words: str) -> str:
    done = run_in_process(home, *words)
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stderr
    return done.stderr


def judge_all(home: Path, name: str, *people: str) -> None:
    """Have these people judge what is there: true and informative, and the right one is better."""
    database = Database(f"sqlite:///{home / 'showhow.db'}")
    with database.begin() as session:
        study_id = studies.find_study(session, name).id
        for person in people * 2:
            by = users.register_user(session, person).id
            while (item := studies.take_item(session, study_id, by=by)) is not None:
                while item.open_field is not None:
                    value = BEST[item.open_field.split()[0]]
                    item = studies.record_click(session, item.id, item.open_field, value, by=by)
    database.close()


def fill_project(home: Path, questions: int = 12) -> list[str]:
    """A project with questions of three data sets, and five files of answers; returns the choices of systems."""
    database = Database(f"sqlite:///{home / 'showhow.db'}")
    upgrade(database)
    with database.begin() as session:
        project = projects.create_project(session, "Quays", "harbour")
        rows = [
            Question(project_id=project.id, position=place, text=f"Who built quay {place}?", dataset=f"set {place % 3}")
            for place in range(1, questions + 1)
        ]
        session.add_all(rows)
        texts = [row.text for row in rows]
    database.close()
    choices = []
    for system in ("hqa-4", "hqa-3.5", "gpt-4", "gpt-3.5", "mpt"):
        file = home / f"{system}.jsonl"
        file.write_text("\n".join(json.dumps({"question": text, "answer": "Ada"}) for text in texts), encoding="utf-8")
        choices += ["--system", f"{system}={file}"]
    return choices


def test_a_study_goes_from_files_of_answers_to_its_table_and_figure(tmp_path: Path):
    home = tmp_path
    choices = fill_project(home)
    make = ["studies", "make", "Better", "--project", "Quays", *choices[:6], "--search-minutes", "0"]
    made = json.loads(run(home, *make, "--json"))["design"]
    assert (made["planned"], made["repeated"]) == (28, {"same": 2, "other": 2})
    assert made["pairs"] == [["hqa-4", "hqa-3.5"], ["hqa-4", "gpt-4"]]
    assert "28 comparisons" in run(home, *make)
    assert "open and frozen" in run(home, "studies", "open", "Better")
    assert "stays as it is" in refuse(home, *make)
    report = json.loads(run(home, "studies", "report", "Better", "--json"))
    assert (report["state"], report["results"]) == ("open", None)
    assert "nobody stops" in refuse(home, "studies", "report", "Better", "--table", "ratings.csv")
    judge_all(home, "Better", "ada", "ben")
    run(home, "studies", "close", "Better")
    assert "closed; only an open one" in refuse(home, "studies", "close", "Better")
    (row,) = json.loads(run(home, "studies", "list", "--json"))
    assert (row["state"], row["judged"], row["planned"]) == ("closed", 28, 28)
    text = run(home, "studies", "report", "Better", "--table", "ratings.csv", "--figure", "bars.svg")
    assert "left preferred: 0.00" in text
    rows = list(csv.DictReader((home / "ratings.csv").read_text(encoding="utf-8").splitlines()))
    shares = Counter()
    for line in rows:
        shares[line["scale"], line["system"]] += float(line["share"])
    assert set(shares.values()) == {1.0}
    picture = ElementTree.parse(home / "bars.svg").getroot()  # noqa: S314 - our own picture
    assert "against gpt-4" in "".join(picture.itertext())


def test_the_preset_is_the_study_of_humaniqs_paper_and_says_what_it_lacks(tmp_path: Path):
    home = tmp_path
    choices = fill_project(home, questions=153)
    make = ["studies", "make", "Paper", "--project", "Quays", "--preset", "humaniq"]
    design = json.loads(run(home, *make, *choices, "--json"))["design"]
    assert (design["planned"], design["questions"], len(design["pairs"])) == (720, 150, 4)
    assert design["repeated"] == {"same": 60, "other": 60}
    assert design["power"]["detectable_win_share"] == pytest.approx(0.65, abs=0.02)
    assert "these are 4 systems" in refuse(home, *make, *choices[:8])


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--system", "a=nowhere", "--system", "b=people"], "is no run and no file"),
        (["--system", "only"], "no label or no source"),
        (["--system", "a=people", "--system", "b=people"], "no question was answered"),
        (["--mode", "guesses"], "is none of"),
        (["--within", "2"], "2"),
        (["--metric", "beauty"], "no answer is scored"),
        (["--questions", "0"], "0"),
    ],
)
def test_a_study_that_cannot_be_made_is_refused_in_a_sentence(tmp_path: Path, words: list[str], reason: str):
    home = tmp_path
    choices = fill_project(home)
    own = words if words[0] == "--system" else [*choices[:4], *words]
    done = run_in_process(home, "studies", "make", "Better", "--project", "Quays", *own)
    assert done.returncode != 0
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


def test_the_name_of_a_study_names_no_system(tmp_path: Path):
    home = tmp_path
    choices = fill_project(home)
    message = refuse(home, "studies", "make", "MPT or not", "--project", "Quays", *choices)
    assert "judges read the study's name" in message


@pytest.mark.long
def test_the_how_to_runs_as_written(tmp_path: Path):
    home = tmp_path
    commands = [line for line in HOW_TO.read_text(encoding="utf-8").splitlines() if line.startswith(PROGRAM)]
    assert len(commands) > 10
    text = ""
    for command in commands:
        words, _, target = command.removeprefix(PROGRAM).partition(" > ")
        if "RUN" in words:
            rows = json.loads(run(home, "runs", "list", "--project", "Harbour", "--json"))
            words = words.replace("RUN", rows[0]["id"]).replace("OTHER", rows[1]["id"])
        text = run(home, *shlex.split(words))
        if target:
            (home / target).write_text(text, encoding="utf-8")
    assert (home / "ratings.csv").exists()
