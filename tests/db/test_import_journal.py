"""The journal of an import: what it added is removed in groups, except what others built on."""

import pytest
from sqlalchemy import select

from showhow.db.models import Attempt, Project, Question, Run, Score, Trace
from showhow.db.removal import removals
from showhow.db.removal.removal_kinds import Kind
from showhow.db.review import queue
from showhow.db.storage.import_journal import ImportJournal
from tests.fixtures.compared_runs import make_questions


@pytest.mark.long
@pytest.mark.parametrize("used", [(), (3,), (0, 249)])
def test_undoing_removes_many_rows_at_once_and_leaves_those_that_others_refer_to(scene, tmp_path, used):
    journal = ImportJournal(tmp_path / "added.jsonl")
    with scene.database.begin() as session:
        project = Project(name="Imported", world="")
        session.add(project)
        session.flush()
        texts = [f"Who built quay {number}?" for number in range(250)]
        added = [Question(project_id=project.id, text=text, position=place) for place, text in enumerate(texts)]
        session.add_all(added)
        session.flush()
        for row in (project, *added):
            journal.note(row)
        keys = [question.id for question in added]
        journal.save()
    assert journal.count() == 251
    for place in used:
        with scene.database.begin() as session:
            queue.begin_question(session, keys[place], scene.ada.id)
    counts: list[int] = []
    journal.undo(scene.database, counts.append)
    with scene.database.read() as session:
        stored = set(session.scalars(select(Question.id).where(Question.id.in_(keys))))
        assert stored == {keys[place] for place in used}
        assert bool(session.scalars(select(Project).where(Project.name == "Imported")).all()) == bool(used)
    assert counts == sorted(counts)
    assert counts[-1] == 251


def test_undoing_leaves_what_was_put_away_since_so_that_it_can_be_restored(database, tmp_path):
    made = make_questions(database, 4)
    outcomes = {(question.id, 1): {"ending": "answered", "score": 1.0} for question in made.questions}
    kept, undone = (made.add_run(made.questions[:3], outcomes) for _ in range(2))
    journal = ImportJournal(tmp_path / "added.jsonl")
    with database.begin() as session:
        for row in (made.project, *made.questions, kept, undone, *session.scalars(select(Trace))):
            journal.note(row)
        journal.save()
    with database.begin() as session:
        archived = removals.remove(session, Kind.RUN, kept.id, archives=True)
        deleted = removals.remove(session, Kind.QUESTION, made.questions[3].id)
    # The traces of the run that was put away stay.
    assert journal.undo(database) == 3
    with database.read() as session:
        assert session.scalars(select(Run)).all() == []
    with database.begin() as session:
        removals.restore(session, deleted.id)
        removals.restore(session, archived.id)
    with database.read() as session:
        assert len(session.scalars(select(Question)).all()) == 4
        attempts = session.scalars(select(Attempt)).all()
        assert {attempt.run_id for attempt in attempts} == {kept.id}
        assert (
            len(session.scalars(select(Score)).all()) == len(attempts) == len(session.scalars(select(Trace)).all()) == 3
        )
