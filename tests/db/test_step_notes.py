"""Notes on steps: who writes and removes them, where they are listed, and that exports keep them."""

import json
from typing import Any
from uuid import UUID

import pytest

from showhow.db.database import Conflict, Database, RowNotFound
from showhow.db.models import Step
from showhow.db.review import review
from showhow.db.review.review import STEP_NOTE_KINDS
from showhow.db.review.tool_report import NotedStep, ToolCallFilter, build_tool_report
from showhow.db.runs.runs import trace_version
from showhow.db.storage.merge import merge_trace
from showhow.db.storage.schema import upgrade
from showhow.db.traces import recording, traces
from showhow.db.traces.recording import NewStep, StepResult, TraceAnswers
from showhow.fewshot_library.formats.showhow import record_from_json, record_to_json


def record_step(scene: Any, tool: str | None = "read") -> Step:
    with scene.database.begin() as session:
        trace = recording.start_trace(session, scene.questions[0].id, scene.ada.id)
        step = recording.begin_step(
            session, trace.id, NewStep("Look", tool, {"title": "Quay"}), seen=trace.version, by=scene.ada.id
        )
        if tool is not None:
            recording.complete_step(session, step.id, StepResult("text", {}, None, 0.1), by=scene.ada.id)
        return step


def note(scene: Any, step: Step, kind: str, text: str = "", by: str = "ben") -> UUID:
    with scene.database.begin() as session:
        return review.add_step_note(session, step.id, kind, text, by=getattr(scene, by).id).id


def noted(scene: Any, **scope: Any) -> tuple[NotedStep, ...]:
    with scene.database.read() as session:
        return build_tool_report(session, ToolCallFilter(**scope)).notes


def test_notes_are_listed_by_tool_and_kind_and_comments_are_not(scene):
    step = record_step(scene)
    for kind in STEP_NOTE_KINDS:
        note(scene, step, kind, f"about {kind}")
    assert [(row.tool, row.kind, row.note, row.author, row.position) for row in noted(scene)] == [
        ("read", kind, f"about {kind}", "ben", 1) for kind in sorted(set(STEP_NOTE_KINDS) - {"comment"})
    ]
    assert noted(scene, tool="read") == noted(scene, project="harbours") == noted(scene)
    assert noted(scene, tool="websearch") == noted(scene, project="other") == ()
    later = max(row.written_at for row in noted(scene))
    assert [row.written_at for row in noted(scene, since=later)] == [later]
    assert later not in {row.written_at for row in noted(scene, until=later)}


def test_a_note_on_an_undone_step_is_kept_and_not_listed(scene):
    step = record_step(scene)
    note(scene, step, "missing tool")
    with scene.database.begin() as session:
        version = traces.load_trace(session, step.trace_id).trace.version
        recording.undo_step(session, step.trace_id, seen=version, by=scene.ada.id)
    assert noted(scene) == ()
    with scene.database.read() as session:
        (kept,) = traces.load_trace(session, step.trace_id).judgements
    assert (kept.step_id, kept.value) == (step.id, "missing tool")


@pytest.mark.parametrize(("kind", "text"), [("praise", "good"), ("comment", "  "), ("expected result", "")])
def test_a_note_of_an_unknown_kind_or_without_its_text_is_refused(scene, kind, text):
    step = record_step(scene)
    with pytest.raises(Conflict):
        note(scene, step, kind, text)
    assert noted(scene) == ()


def test_only_its_author_removes_a_note(scene):
    step = record_step(scene)
    key = note(scene, step, "wrong result")
    with pytest.raises(Conflict, match="only the person"), scene.database.begin() as session:
        review.remove_step_note(session, key, by=scene.ada.id)
    with scene.database.begin() as session:
        review.remove_step_note(session, key, by=scene.ben.id)
    with pytest.raises(RowNotFound), scene.database.begin() as session:
        review.remove_step_note(session, key, by=scene.ben.id)
    assert noted(scene) == ()


def test_a_decision_on_the_trace_is_no_note_and_a_note_no_decision(scene):
    step = record_step(scene)
    note(scene, step, "comment", "why this one?")
    with scene.database.begin() as session:
        version = traces.load_trace(session, step.trace_id).trace.version
        recording.submit_trace(session, step.trace_id, TraceAnswers("Ada Reed"), seen=version, by=scene.ada.id)
        review.reject_trace(
            session,
            step.trace_id,
            seen=trace_version(session, step.trace_id),
            by=scene.ben.id,
            comment="the wrong quay",
        )
        review.add_step_note(session, step.id, "wrong result", "", by=scene.ben.id)
    with scene.database.read() as session:
        returned = review.find_return(session, step.trace_id)
    assert returned is not None
    assert returned.comment == "the wrong quay"


def test_exported_notes_are_merged_elsewhere_and_stay_with_their_step(scene, tmp_path):
    step = record_step(scene)
    note(scene, step, "expected result", "the builder")
    with scene.database.read() as session:
        exported = json.dumps(record_to_json(traces.load_trace(session, step.trace_id)))
    other = Database(f"sqlite:///{tmp_path / 'other.db'}")
    upgrade(other)
    with other.begin() as session:
        merge_trace(session, record_from_json(json.loads(exported)))
    with other.read() as session:
        merged = traces.load_trace(session, step.trace_id)
    assert json.dumps(record_to_json(merged)) == exported
    assert [(judgement.step_id, judgement.comment) for judgement in merged.judgements] == [(step.id, "the builder")]
    other.close()
