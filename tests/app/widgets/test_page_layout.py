"""What a session keeps of pages that it shows no more, and how times are written."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from showhow.app.widgets.page_layout import format_sentence, format_when
from showhow.db.database import Database
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.traces import recording
from tests.browser.server import copy_prepared_home

ROOT = Path(__file__).parents[3]
OPEN_TRACES = """
import gc, sys
from streamlit.testing.v1 import AppTest
import showhow.app.services
from showhow.db.traces.trace_record import TraceRecord

page = AppTest.from_file("app/pages/main.py", default_timeout=60)
for trace in sys.argv[1:]:
    page.query_params["you"] = "ada"
    page.query_params["trace"] = trace
    page.run()
    assert not page.exception, page.exception
    assert page.button, "the page is drawn"
    gc.collect()
    print(sum(isinstance(value, TraceRecord) for value in gc.get_objects()))
"""


@pytest.mark.parametrize(
    ("message", "markdown"),
    [
        ("run `showhow users add ada_l`, then `?you=ada_l`", r"Run `showhow users add ada_l`, then `?you=ada_l`\."),
        ("[x](http://a) `showhow x", r"\[x\]\(http\://a\) \`showhow x\."),
        ("`rm *` and `showhow *a*`*b*", r"\`rm \*\` and `showhow *a*`\*b\*\."),
    ],
)
def test_a_verb_in_a_sentence_is_code_and_everything_else_is_escaped(message: str, markdown: str):
    assert format_sentence(message) == markdown


def test_a_session_that_opens_many_traces_holds_the_records_of_few(tmp_path: Path):
    copy_prepared_home(tmp_path)
    database = Database(f"sqlite:///{tmp_path / 'showhow.db'}")
    with database.begin() as session:
        ada = users.register_user(session, "ada")
        (project,) = projects.list_projects(session)
        questions = projects.list_questions(session, project.id, limit=12)
        traces = [str(recording.start_trace(session, question.id, ada.id).id) for question in questions]
    database.close()
    done = subprocess.run(
        [sys.executable, "-c", OPEN_TRACES, *traces],
        cwd=ROOT,
        env={**os.environ, "SHOWHOW_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counts = [int(line) for line in done.stdout.splitlines()]
    assert len(counts) == 12
    assert counts[-1] <= counts[2], counts


@pytest.mark.parametrize(
    ("seconds", "words"), [(1, "just now"), (90, "1 min ago"), (3_700, "1 h ago"), (86_000, "23 h ago")]
)
def test_a_recent_time_is_relative(seconds: int, words: str):
    assert format_when(datetime.now(UTC) - timedelta(seconds=seconds)) == words


def test_an_older_time_has_its_date():
    assert format_when(datetime(2020, 3, 1, 12, 30, tzinfo=UTC)) == "01 Mar 2020 12:30"
