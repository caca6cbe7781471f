"""`showhow compare` and `showhow runs`: the how-to for a paper's table as written, and what goes wrong."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from sqlalchemy import select

from showhow.db.database import Database
from showhow.db.models import Attempt, Run, Trace
from showhow.db.runs.attempts import MetricScore, save_scores
from showhow.db.storage.schema import upgrade
from tests.app.cli.in_process import run_in_process
from tests.fixtures.compared_runs import ComparedRuns, make_questions

JUDGED = "quality by ollama:judge:8b"
HOW_TO = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "table-for-a-paper.md"
PROGRAM = ".venv/bin/showhow "


def walk_commands() -> list[str]:
    """The commands that make the table; those behind its picture are in the walk of the page (tests/browser/walks)."""
    made, _, _ = HOW_TO.read_text(encoding="utf-8").partition("![")
    return [line.strip() for line in made.splitlines() if line.startswith(f"    {PROGRAM}")]


@pytest.mark.long
def test_the_how_to_for_a_table_runs_as_written(tmp_path: Path):
    commands = walk_commands()
    assert len(commands) == 10
    outputs: dict[str, str] = {}
    for command in commands:
        words, _, target = command.removeprefix(PROGRAM).partition(" > ")
        done = run_in_process(tmp_path, *shlex.split(words))
        assert done.returncode == 0, f"{command}: {done.stderr}"
        outputs[words] = done.stdout
        if target:
            (tmp_path / target).write_text(done.stdout, encoding="utf-8")
    text = outputs["compare --project Walk"]
    assert "atomr, oracle\n  F1 (version 2) 1.000 [1.000, 1.000] over 12 questions" in text
    assert text.count("from atomr, oracle, ") == 2
    runs = pd.read_csv(tmp_path / "runs.csv")
    assert list(runs["run"]) == ["atomr, oracle", "atomr, faulty:0.2:7:wrong", "pdrr, reader"]
    answers = pd.read_parquet(tmp_path / "answers.parquet")
    # The table follows from the answers.
    answers["score"] = answers["score"].where(answers["ending"] == "answered", 0.0)
    assert list(runs["score"]) == pytest.approx([answers[answers["run"] == run]["score"].mean() for run in runs["run"]])
    assert runs["difference"][1] == pytest.approx(runs["score"][1] - runs["score"][0])
    assert (tmp_path / "table.tex").read_text().count(r" \\") == 4
    if (program := shutil.which("pdflatex")) is not None:
        document = r"\documentclass{article}\usepackage{booktabs}\begin{document}\input{table}\end{document}"
        (tmp_path / "paper.tex").write_text(document)
        latex = [program, "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
        assert subprocess.run(latex, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    exchange(tmp_path, run_in_process(tmp_path, "runs", "list", "--project", "Walk").stdout.split()[0])


def exchange(home: Path, run: str) -> None:
    """Export a run and import it into another project; it has the same figures there."""
    for words in (
        ("runs", "export", run, "log.eval"),
        ("questions", "import", "walk.json", "--project", "Other", "--world", "walk"),
    ):
        assert run_in_process(home, *words).returncode == 0
    report = json.loads(run_in_process(home, "runs", "import", "log.eval", "--project", "Other", "--json").stdout)
    assert (report["answers"], report["new_questions"], report["refused"]) == (12, 0, [])
    rows = json.loads(run_in_process(home, "compare", run, report["run"], "--format", "json").stdout)
    names = ("score", "answered", "refused", "failed", "seconds")
    assert [rows[0][name] for name in names] == pytest.approx([rows[1][name] for name in names])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ComparedRuns]:
    folder = tmp_path_factory.mktemp("runs")
    store = Database(f"sqlite:///{folder / 'showhow.db'}")
    upgrade(store)
    made = make_questions(store, 6)
    for score in (1.0, 0.0):
        outcomes = {(question.id, 1): {"ending": "answered", "score": score} for question in made.questions}
        run = made.add_run(made.questions, outcomes, options={"k": int(score)})
    with store.begin() as session:
        for attempt_id in session.scalars(select(Attempt.id).where(Attempt.run_id == run.id)):
            save_scores(session, attempt_id, 0, [MetricScore(JUDGED, 1, 0.5)])
    for seed in (1, 2):
        alone = make_questions(store, 2, seed=seed)
        if seed == 2:
            alone.add_run(alone.questions, {})
    store.close()
    return folder, made


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["compare"], "name the ids of at least two runs"),
        (["compare", "--project", "None"], "there is no project 'None'"),
        (["compare", "{0}", "nothing"], "'nothing' is not the id of a run; `showhow runs list` lists them"),
        (["compare", "0", "{0}"], "begins the ids of several runs"),
        (["compare", "--project", "Made 1"], "project 'Made 1' has no runs yet; `showhow verify`"),
        (["compare", "--project", "Made 2"], "is the only one over its questions; make another with `showhow verify`"),
        (["compare", "{0}"], "choose 2 to 8 different runs"),
        (["compare", "{0}", "{1}", "--format", "xls"], "there is no format 'xls'"),
        (["compare", "{0}", "{1}", "--rows"], "answers are written as csv, xlsx, json, parquet"),
        (
            ["compare", "{0}", "{1}", "--by", "date", "--cutoff", "soon"],
            "the cutoff 'soon' is no date; write it as 2021",
        ),
        (["compare", "{0}", "{1}", "--cutoff", "2021"], "a cutoff divides questions by date"),
        (["compare", "{0}", "{1}", "--metric", "f1:9"], "no answer of these runs is scored by 'f1:9'; they have f1:2"),
        (["compare", "{0}", "{1}", "--out", "there.txt"], "exists already"),
        (["runs", "export", "{0}", "x.json", "--format", "csv"], "there is no format 'csv' of runs; use inspect"),
        (["runs", "import", "there.txt", "--project", "Made 0"], "nothing was imported"),
        (["runs", "import", "none.eval", "--project", "Made 0"], "none.eval cannot be opened"),
        (["verify", "--project", "Made 0", "--skills", "magic"], "there are no skills 'magic'"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(home: tuple[Path, ComparedRuns], words: list[str], message: str):
    folder, made = home
    (folder / "there.txt").write_text("[1]")
    ids = [str(run.id) for run in made.runs]
    done = run_in_process(folder, *(word.format(*ids) for word in words))
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (1, 1), done.stderr
    assert message in done.stderr


def test_a_metric_is_named_with_its_version_and_a_run_by_the_beginning_of_its_id(home: tuple[Path, ComparedRuns]):
    folder, made = home
    first, second = (run.id.hex for run in made.runs)
    with made.database.read() as session:
        known = [run_id.hex for run_id in session.scalars(select(Run.id))]
    assert {first, second} <= set(known)
    length = next(n for n in range(1, 33) if len({run_id[:n] for run_id in known}) == len(known))
    words = ("compare", first[:length], second[:length], "--metric", "f1:2", "--baseline", second[:length])
    done = run_in_process(folder, *words, "--format", "json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [(row["run"], row["difference"]) for row in rows] == [("replay, k=1", 1.0), ("replay, k=0", None)]
    assert re.search(
        r"\+1\.000 \[.*\] from replay, k=0, .* 6 gains, 0 losses, 0 ties", run_in_process(folder, *words).stdout
    )


@pytest.mark.parametrize("metric", [JUDGED, f"{JUDGED}:1"])
def test_a_metric_whose_name_has_colons_is_named_with_or_without_its_version(
    home: tuple[Path, ComparedRuns], metric: str
):
    folder, made = home
    words = [*(str(run.id) for run in made.runs), "--metric", metric, "--format", "json"]
    done = run_in_process(folder, "compare", *words)
    assert done.returncode == 0, done.stderr
    assert [(row["metric"], row["score"]) for row in json.loads(done.stdout)] == [
        (JUDGED, None),
        (JUDGED, 0.5),
    ]


def test_failures_are_categorized_counted_and_exported(home: tuple[Path, ComparedRuns]):
    folder, made = home
    run, other = str(made.runs[1].id), str(made.runs[0].id)
    with made.database.read() as session:
        rows = session.execute(select(Trace.id, Trace.run_id)).all()
    failed = [str(trace) for trace, run_id in rows if run_id == made.runs[1].id]
    right = next(str(trace) for trace, run_id in rows if run_id == made.runs[0].id)
    for category, names in (("wrong document", failed[:3]), ("the map was old", failed[3:4]), ("", failed[:1])):
        done = run_in_process(folder, "runs", "categorize", run, category, *names, "--as", "ada", "--json")
        assert done.returncode == 0, done.stderr
    counts = {"wrong document": 2, "the map was old": 1, "no category": 3}
    assert json.loads(done.stdout) == counts
    assert run_in_process(folder, "runs", "categorize", run).stdout.split("\n")[0] == "     2  wrong document"
    for words, message in (
        ([run, "query"], "name traces of failures of this run; `showhow repair list"),
        ([run, "query", failed[0], right], "name traces of failures of this run"),
        ([other, "query", right], "name traces of failures of this run"),
    ):
        refused = run_in_process(folder, "runs", "categorize", *words)
        assert (refused.returncode, message in refused.stderr) == (1, True), refused.stderr
    table = json.loads(run_in_process(folder, "compare", other, run, "--by", "error", "--format", "json").stdout)
    assert {row["group"]: row["questions"] for row in table} == counts
    answers = json.loads(run_in_process(folder, "compare", other, run, "--rows", "--format", "json").stdout)
    assert sum(row["error_category"] == "wrong document" for row in answers) == 2
    # Nobody thinks in these runs, which is said without a chart.
    text = run_in_process(folder, "compare", other, run, "--by", "thoughts").stdout
    assert text.count("6 traces with 0 thoughts") == 2
    listed = json.loads(run_in_process(folder, "repair", "list", run, "--json").stdout)
    assert sum(row["category"] is not None for row in listed) == 3
    dated = run_in_process(folder, "compare", other, run, "--by", "date", "--cutoff", "2021")
    assert "unknown   0.000 [0.000, 0.390]" in dated.stdout
