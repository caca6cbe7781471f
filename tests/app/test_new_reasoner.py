"""A new entry of the reasoner registry is offered by the Ask form and by every verb that lists reasoners."""

import os
import subprocess
import sys
from pathlib import Path

# The verbs read the registry when they are imported, so the script runs in a process of its own.
FORM = """
import streamlit as st

from showhow.app.pages.ask.form import seed_ask_form, show_ask_form
from showhow.app.services import current_services


seed_ask_form(None, None, has_model=False)
request = show_ask_form(current_services(), {})
if request is not None:
    st.session_state["request"] = request
"""
SCRIPT = """
import sys
from dataclasses import dataclass

from showhow.reasoners.registry import REASONERS, ReasonerEntry
from tests.reasoners.scripted import Scripted


@dataclass(frozen=True)
class TesterOptions:
    depth: int = 4


REASONERS["tester"] = ReasonerEntry(
    name="tester",
    label="Tester: a new method",
    description="answers by a new method",
    build=lambda _options: Scripted([]),
    options=TesterOptions,
    needs_model=False,
    default_step_limit=77,
)

from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from showhow.app.cli.main import build_command_line
from showhow.app.services import current_services
from showhow.tasks.method import Method, build_spec

for verb in ("ask", "verify", "evaluate"):
    output = CliRunner(env={"COLUMNS": "400"}).invoke(build_command_line(verb), [verb, "--help"]).output
    # The help is wrapped within a box.
    words = " ".join(output.replace("\u2502", " ").split())
    assert "answers by a new method" in words, output
    assert "77 with tester" in words, output
spec = build_spec(current_services(), Method(reasoner="tester", options=("depth=9",)), None)
assert spec.options == {"depth": 9}
assert spec.limits.steps == 77

page = AppTest.from_string(sys.argv[1], default_timeout=60).run()
assert not page.exception, page.exception
(reasoner,) = [box for box in page.selectbox if box.label == "Reasoner"]
assert "Tester: a new method" in reasoner.options, reasoner.options
reasoner.select("tester")
page.text_area(key="ask_question").input("Who built the quay?")
page.run()
page.button(key="ask").click().run()
request = page.session_state["request"]
assert (request.spec.reasoner, request.spec.limits.steps) == ("tester", 77), request
print("offered")
"""


def test_a_new_reasoner_is_offered_by_the_ask_form_and_by_verbs(tmp_path: Path):
    home = {"SHOWHOW_HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SHOWHOW_")} | home
    articles = tmp_path / "articles.jsonl"
    articles.write_text('{"title": "Ada", "text": "Ada built the quay."}\n')
    showhow = Path(sys.executable).with_name("showhow")
    subprocess.run([showhow, "world", "import", "quay", "--articles", articles], env=environ, check=True)
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT, FORM], env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert process.stdout.strip().endswith("offered"), process.stderr[-3000:]
