"""A recording process is killed two hundred times; every acknowledged step is stored, once."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

from showhow.db.database import Database
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.storage.schema import check_database, upgrade
from showhow.db.traces import recording, traces

DEATHS = 200


def test_every_acknowledged_step_survives_being_killed_at_any_moment(tmp_path, sample_question):
    url = f"sqlite:///{tmp_path / 'showhow.db'}"
    store = Database(url)
    upgrade(store)
    with store.begin() as session:
        project = projects.create_project(session, "p", "w")
        projects.add_questions(session, project.id, [sample_question("who?")])
        (question,) = projects.list_questions(session, project.id)
        ada = users.register_user(session, "ada")
        trace = recording.start_trace(session, question.id, ada.id)
    acknowledged = tmp_path / "acknowledged"
    recorder = [sys.executable, Path(__file__).with_name("recorder.py"), url, trace.id.hex, acknowledged, str(DEATHS)]
    # It ends by itself, in half a minute of computing; only one that hangs takes as long.
    subprocess.run(recorder, check=True, timeout=600)

    started, completed = set(), set()
    for line in acknowledged.read_text().splitlines():
        what, step_id, _ = line.split()
        (started if what == "begun" else completed).add(step_id)
    with store.read() as session:
        steps = traces.load_trace(session, trace.id).steps
    stored = Counter(str(step.id) for step in steps)
    # Three in five were killed after they had begun a step, one of them two.
    assert len(started) >= DEATHS * 3 / 5
    assert started <= stored.keys()
    assert max(stored.values()) == 1
    assert completed <= {str(step.id) for step in steps if step.finished_at is not None}
    assert all(step.observation == "found " * 500 for step in steps if step.finished_at is not None)
    assert all(step.observation is None for step in steps if step.finished_at is None)
    # Only the step in progress may be on disk without an acknowledgement, one for each death.
    assert len(stored.keys() - started) <= DEATHS
    assert [step.position for step in steps] == list(range(1, len(steps) + 1))
    assert check_database(store) == []
    store.close()
