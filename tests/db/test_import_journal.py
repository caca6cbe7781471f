"""The journal of an import: what it added is removed in groups, except what others built on."""

import pytest
from sqlalchemy import select

from db import queue
from db.import_journal import ImportJournal
from db.models import Project, Question


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
