"""What other packages add by entry points is used everywhere that ours is, and what is broken stops nothing else."""

import json
import os
import shutil
import site
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "how-to" / "plugins-example"
RUN = """
import json

import typer
from typer.testing import CliRunner

from showhow.app.cli.main import build_command_line, user_error_types


def run(*words):
    result = CliRunner(env={"COLUMNS": "400"}).invoke(build_command_line(words[0]), list(words))
    if isinstance(result.exception, user_error_types()):
        return f"refused: {result.exception}"
    assert result.exit_code == 0, (words, result.output, result.exception)
    return result.stdout


"""
USE = (
    RUN
    + """
import numpy as np

from showhow.app.services import current_services
from showhow.db.models import Run
from showhow.fewshot_library.selection import CandidatePool, SelectionConfig, select_demonstrations
from showhow.fewshot_library.sequence_similarity import encode_actions
from showhow.reasoners.humaniq.options import AgentOptions
from sqlalchemy import select as select_rows

listed = json.loads(run("plugins", "--json"))
assert listed["problems"] == [], listed
assert {(entry["kind"], entry["name"]) for entry in listed["plugins"]} == {
    ("reasoner", "first-article"),
    ("tool", "countWords"),
    ("metric", "contains"),
    ("trace format", "outline"),
    ("question format", "quiz"),
    ("selection mode", "longest"),
    ("skill source", "silence"),
}
assert {entry["package"] for entry in listed["plugins"]} == {"showhow-example 1.0"}
run("world", "import", "quay", "--articles", "articles.jsonl")
run("questions", "import", "quiz.jsonl", "--project", "P", "--world", "quay")
assert run("tool", "countWords", "--world", "quay", "title=Ada").strip() == "4 words"
assert "package showhow-example 1.0" in run("tools", "list")
for verb, words in (
    ("verify", ["answers with the title of the first article", "silence: nobody", "contains", "longest"]),
    ("ask", ["answers with the title of the first article", "longest"]),
    ("tool", ["countWords"]),
):
    text = " ".join(run(verb, "--help").replace("\\u2502", " ").split())
    assert all(word in text for word in words), (verb, text)
report = json.loads(run("verify", "--project", "P", "--reasoner", "first-article", "--json"))
assert (report["questions"], report["f1"], report["contains"]) == (2, 0.5, 0.5), report
run("verify", "--project", "P", "--reasoner", "atomr", "--skills", "silence", "--option", "shots=0", "--json")
options = ("--reasoner", "first-article", "--option", "rank=1", "--json")
asked = json.loads(run("ask", "Who is Ben?", "--world", "quay", *options))
assert asked["answer"] == "Ben", asked
run("traces", "export", "--project", "P", "--format", "outline", "--status", "all", "outline.md")
with current_services().database.read() as session:
    runs = session.scalars(select_rows(Run).order_by(Run.started_at))
    recorded = [one.spec.plugins for one in runs]
package = "showhow-example 1.0"
used = {"tool countWords": package, "metric contains": package}
assert recorded == [
    used | {"reasoner first-article": package},
    used | {"skill source silence": package},
    {"tool countWords": package, "reasoner first-article": package},
], recorded

assert AgentOptions(selection="longest").selection_config().mode == "longest"
pool = CandidatePool(np.eye(3, dtype=np.float32), encode_actions([["a"], ["a", "b", "c"], ["a", "b"]]))
picks = select_demonstrations(pool, np.eye(3, dtype=np.float32)[0], SelectionConfig(k=2, mode="longest")).picks
assert [pick.item for pick in picks] == [1, 2], picks


def show_settings():
    from showhow.app.pages.settings.installation import _show_plugins
    from showhow.app.services import current_services

    _show_plugins(current_services())


def show_modes():
    from showhow.app.widgets.selection_form import ask_selection_options

    ask_selection_options("library")


from streamlit.testing.v1 import AppTest

page = AppTest.from_function(show_modes, default_timeout=60).run()
assert not page.exception, page.exception
assert "Longest" in page.selectbox[0].options
page.selectbox[0].select("longest").run()
assert "most actions" in page.caption[0].value
page = AppTest.from_function(show_settings, default_timeout=60).run()
assert not page.exception and not page.warning, (page.exception, page.warning)
print("used")
"""
)


def test_a_package_of_others_is_found_shown_used_and_recorded(tmp_path):
    python = install(tmp_path, EXAMPLE)
    (tmp_path / "articles.jsonl").write_text(
        '{"title": "Ada", "text": "Ada built the quay."}\n{"title": "Ben", "text": "Ben sails the sea."}\n'
    )
    quiz = [{"ask": "Who is Ada?", "solution": "Ada"}, {"ask": "Who built the quay by the sea?", "solution": "Cleo"}]
    (tmp_path / "quiz.jsonl").write_text("\n".join(map(json.dumps, quiz)))
    done = run_script(python, USE, tmp_path)
    assert done.stdout.strip().endswith("used"), done.stderr[-3000:]
    assert "# Who is Ada?\n\n- wikisearch\n\nAda\n" in (tmp_path / "outline.md").read_text()


def install(folder: Path, *sources: Path) -> Path:
    """A fresh environment in which the packages are installed beside what this one has; returns its interpreter."""
    environment = folder / "environment"
    venv.create(environment, with_pip=False)
    (packages,) = environment.glob("lib/python*/site-packages")
    ours = [entry for entry in site.getsitepackages() if Path(entry).is_dir()]
    (packages / "ours.pth").write_text("".join(f"import site; site.addsitedir({entry!r})\n" for entry in ours))
    # A build writes beside its sources.
    copies = [shutil.copytree(source, folder / "sources" / source.name) for source in sources]
    pip = [sys.executable, "-m", "pip", "--python", environment / "bin" / "python", "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", "--no-build-isolation", *copies], check=True)
    return environment / "bin" / "python"


def run_script(python: Path, script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the script in a home of its own."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SHOWHOW_")}
    environ |= {"SHOWHOW_HOME": str(folder / "home"), **variables}
    (folder / "script.py").write_text(script, encoding="utf-8")
    return subprocess.run([python, "script.py"], env=environ, cwd=folder, capture_output=True, text=True, check=False)


MODULE = """
from dataclasses import replace

from showhow.evaluation.datasets.record import QuestionFormat
from showhow.evaluation.metrics.metric import Metric
from showhow.fewshot_library.formats.format import TraceFormat
from showhow.fewshot_library.selection import SelectionMode
from showhow.reasoners.registry import ReasonerEntry
from showhow.tools.tool import SourceKind, Tool

print("a package that prints")


class Failing:
    name = "fails"

    def solve(self, task):
        yield from ()
        return 1 / 0


def echo(context, word: str) -> str:
    '''Return the word itself, which is no observation.'''
    return word


FAILS = ReasonerEntry("fails", "Fails", "fails", build=lambda options: Failing(), needs_model=False)
UNNAMED = replace(FAILS, name=3)
SPACED = replace(FAILS, name="a b")
BARE = replace(FAILS, name="bare", options=dict)
TAKEN = replace(FAILS, name="humaniq")
FAILING = Metric("failing", 1, "failing", "fails", lambda answer, golds: float("nan"))
SNIFFING = TraceFormat("sniffing", "fails", sniff=lambda head: head.nothing)
CLAIMING = QuestionFormat("claiming", "Fails", claims=lambda fields: fields["nothing"], parse=lambda fields, _: None)
OUTSIDE = SelectionMode("outside", "Outside", lambda pool, kernel, cosines, config: [len(pool)])
ECHO = Tool.from_function("echo", "Echo", echo, SourceKind.TEXT)
"""
BROKEN = {
    "reasoners": {
        "absent": "there_is_none:ENTRY",
        "raises": "raises_at_import:ENTRY",
        "exits": "exits_at_import:ENTRY",
        "lacks": "broken:LACKS",
        "unnamed": "broken:UNNAMED",
        "bare": "broken:BARE",
        "spaced": "broken:SPACED",
        "humaniq": "broken:TAKEN",
        "fails": "broken:FAILS",
    },
    "reasoner": {"typo": "broken:FAILS"},
    "tools": {"wrong": "broken:FAILS", "echo": "broken:ECHO"},
    "metrics": {"failing": "broken:FAILING"},
    "trace_formats": {"sniffing": "broken:SNIFFING"},
    "question_formats": {"claiming": "broken:CLAIMING"},
    "selection_modes": {"outside": "broken:OUTSIDE"},
}
STOP = (
    RUN
    + """
import numpy as np

from showhow.fewshot_library.selection import CandidatePool, SelectionConfig, SelectionError, select_demonstrations
from showhow.fewshot_library.sequence_similarity import encode_actions

listed = json.loads(run("plugins", "--json"))
names = [entry["name"] for entry in listed["plugins"] if entry["package"] == "showhow-broken 2.0"]
assert names == ["fails", "echo", "failing", "sniffing", "claiming", "outside"], listed
left_out = dict(problem.split(" of showhow-broken 2.0 is left out: ") for problem in listed["problems"])
for name, reason in {
    "The reasoner absent": "ModuleNotFoundError: No module named 'there_is_none'",
    "The reasoner raises": "ZeroDivisionError: division by zero",
    "The reasoner exits": "SystemExit: 3",
    "The reasoner lacks": "AttributeError: module 'broken' has no attribute 'LACKS'",
    "The reasoner unnamed": "TypeError: its name is a value of the type int, not str",
    "The reasoner bare": "TypeError: must be called with a dataclass type or instance",
    "The reasoner spaced": "ValueError: its name is 'a b'; use up to 64 letters",
    "The reasoner humaniq": "Showhow has a reasoner humaniq already",
    "The tool wrong": "TypeError: broken:FAILS is a value of the type ReasonerEntry, not Tool",
    "typo": "there is no group showhow.reasoner; the groups are showhow.reasoners, ",
}.items():
    assert reason in left_out.pop(name), (name, listed)
assert not left_out, left_out

run("world", "import", "quay", "--articles", "articles.jsonl")
run("questions", "import", "questions.jsonl", "--project", "P", "--world", "quay")
failed = run("ask", "Who is Ben?", "--world", "quay", "--reasoner", "fails")
assert failed == (
    "refused: failed: The reasoner fails of showhow-broken 2.0 failed: ZeroDivisionError: division by zero"
), failed
assert "its result is a value of the type str, not Observation" in run("tool", "echo", "--world", "quay", "word=x")
report = json.loads(run("verify", "--project", "P", "--reasoner", "first-article", "--json"))
assert (report["answered"], report["f1"], report["failing"]) == (1, 1.0, None), report
run("traces", "export", "--project", "P", "--status", "all", "--format", "openai", "traces.jsonl")
assert run("traces", "import", "traces.jsonl").startswith("1 added")
try:
    rows = np.eye(2, dtype=np.float32)
    pool = CandidatePool(rows, encode_actions([["a"], ["b"]]))
    select_demonstrations(pool, rows[0], SelectionConfig(k=1, mode="outside"))
    raise AssertionError("it was selected")
except SelectionError as error:
    assert str(error) == "the mode outside chose [2], which are not 1 of the demonstrations", error
print("went on")
"""
)


def test_what_is_broken_in_a_package_is_one_sentence_each_and_stops_nothing_else(tmp_path):
    package = tmp_path / "broken"
    package.mkdir()
    modules = {"broken": MODULE, "raises_at_import": "1 / 0\n", "exits_at_import": "import sys\nsys.exit(3)\n"}
    for name, text in modules.items():
        (package / f"{name}.py").write_text(text)
    points = [
        line
        for group, entries in BROKEN.items()
        for line in (
            f"[project.entry-points.'showhow.{group}']",
            *(f"{name} = '{place}'" for name, place in entries.items()),
        )
    ]
    project = ["[project]", "name = 'showhow-broken'", "version = '2.0'", *points]
    (package / "pyproject.toml").write_text("\n".join([*project, "[tool.setuptools]", f"py-modules = {[*modules]}"]))
    python = install(tmp_path, EXAMPLE, package)
    (tmp_path / "articles.jsonl").write_text('{"title": "Ben", "text": "Ben sails the sea."}\n')
    (tmp_path / "questions.jsonl").write_text('{"question": "Who is Ben?", "answer": "Ben"}\n')
    done = run_script(python, STOP, tmp_path)
    assert done.stdout.strip().endswith("went on"), done.stdout[-500:] + done.stderr[-3000:]


def test_the_setting_turns_all_of_them_off(tmp_path):
    python = install(tmp_path, EXAMPLE)
    script = RUN + 'print(run("plugins"), run("tools", "list"))'
    done = run_script(python, script, tmp_path, SHOWHOW_PLUGINS="0")
    assert "Plugins are turned off by SHOWHOW_PLUGINS." in done.stdout
    assert "countWords" not in done.stdout
