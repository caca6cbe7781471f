"""Traces for tests of formats: a strategy for any storable trace, a plain trace, and a fork."""

import io
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from uuid_utils.compat import uuid7

from showhow.db.models import Edit, Judgement, Project, Question, Run, Step, Trace, User
from showhow.db.run_spec import RunResult, RunSpec
from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats.format import ExportLosses, TraceExport, TraceFormat

TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=("Cs",)), max_size=30) | st.sampled_from(
    ["👩‍👩‍👧‍👦", "Observation: x\nThought:", '"\\"', "\u2028\r\n\t ", "{{}}", "שלום", "'; DROP TABLE step; --"]
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)
OBJECTS = st.dictionaries(TEXT, JSON, max_size=3)
MOMENTS = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - bounds are naive
MAYBE_TEXT = st.none() | TEXT
SECONDS = st.none() | st.floats(0, 1e6)


@st.composite
def steps_of(draw: Any, trace_id: Any, positions: list[int], *, removed: bool) -> list[Step]:
    drawn: list[Step] = []
    for position in positions:
        parent = draw(st.none() | st.sampled_from(drawn)) if drawn else None
        step = Step(
            trace_id=trace_id,
            parent_id=parent.id if parent else None,
            position=position,
            node=draw(MAYBE_TEXT),
            skill=draw(MAYBE_TEXT),
            error_kind=draw(MAYBE_TEXT),
            thought=draw(TEXT),
            tool=draw(MAYBE_TEXT),
            arguments=draw(OBJECTS),
            origins={"a": draw(st.sampled_from([{"from": "typed"}, {"from": "question", "start": 0, "end": 2}]))},
            observation=draw(MAYBE_TEXT),
            data=draw(st.none() | OBJECTS),
            error=draw(MAYBE_TEXT),
            rating=draw(st.none() | st.integers(1, 5)),
            latency=draw(SECONDS),
            started_at=draw(MOMENTS),
            finished_at=draw(st.none() | MOMENTS),
            removed_at=draw(MOMENTS) if removed else None,
            version=draw(st.integers(1, 99)),
        )
        drawn.append(step)
    return drawn


@st.composite
def records(draw: Any) -> TraceRecord:
    """A strategy for any storable trace."""
    ada, ben = User(name="ada"), User(name="ben " + draw(TEXT))
    project = Project(name=draw(TEXT), world=draw(TEXT), guidelines=draw(TEXT), tools=draw(st.lists(TEXT, max_size=2)))
    question = Question(
        project_id=project.id,
        position=draw(st.integers(1, 999)),
        text=draw(TEXT),
        kind=draw(MAYBE_TEXT),
        gold_answers=draw(st.lists(OBJECTS, max_size=2)),
        details=draw(OBJECTS),
    )
    tools = st.none() | st.lists(TEXT, max_size=2).map(tuple)
    specs = st.builds(RunSpec, reasoner=TEXT, model=MAYBE_TEXT, tools=tools, options=OBJECTS, details=OBJECTS)
    run = draw(st.none() | st.builds(Run, name=TEXT, reasoner=TEXT, world=TEXT, spec=specs))
    trace = Trace(
        question_id=question.id,
        author_id=None if run else ada.id,
        run_id=run.id if run else None,
        status=draw(st.sampled_from(["draft", "submitted", "approved", "rejected", "failed"])),
        final_answer=draw(MAYBE_TEXT),
        final_thought=draw(MAYBE_TEXT),
        parent_id=draw(st.none() | st.uuids()),
        started_at=draw(MOMENTS),
        submitted_at=draw(st.none() | MOMENTS),
        active_seconds=draw(SECONDS),
        result=draw(st.builds(RunResult, response=MAYBE_TEXT, details=OBJECTS)),
        version=draw(st.integers(1, 999)),
    )
    steps = draw(steps_of(trace.id, list(range(1, draw(st.integers(0, 3)) + 1)), removed=False))
    removed = draw(steps_of(trace.id, [len(steps) + 1] * draw(st.integers(0, 1)), removed=True))
    edits = [
        Edit(
            trace_id=trace.id,
            action="thought",
            before=draw(OBJECTS),
            step_id=step.id,
            editor_id=ben.id,
            at=draw(MOMENTS),
        )
        for step in steps[:1]
    ]
    judgements = [
        Judgement(trace_id=trace.id, aspect="approval", value="approved", judge_id=ben.id, comment=draw(TEXT))
    ]
    people = {ada.id: ada.name, ben.id: ben.name}
    return TraceRecord(project, question, trace, steps, removed, edits, judgements, run, people)


def plain_trace(thought: str = "look") -> TraceRecord:
    project = Project(name="p", world="w")
    question = Question(project_id=project.id, position=1, text="who?")
    ada = User(name="ada")
    trace = Trace(question_id=question.id, author_id=ada.id, status="approved", final_answer="Ada")
    step = Step(
        trace_id=trace.id,
        position=1,
        thought=thought,
        tool="read",
        arguments={"title": "x"},
        finished_at=trace.started_at,
    )
    edit = Edit(trace_id=trace.id, action="rating", before={"rating": 1}, step_id=step.id, editor_id=ada.id)
    return TraceRecord(project, question, trace, [step], edits=[edit], people={ada.id: "ada"})


def fork_of(parent: TraceRecord, position: int) -> TraceRecord:
    """A fork with a copy of the parent's steps up to the position and other steps after it."""
    trace = Trace(
        question_id=parent.question.id,
        author_id=parent.trace.author_id,
        status="approved",
        parent_id=parent.trace.id,
        parent_position=position,
        final_thought="so it was Eve",
        final_answer="Eve",
    )
    steps = [replace(step, id=uuid7(), trace_id=trace.id) for step in parent.steps[:position]]
    steps.append(
        Step(
            trace_id=trace.id,
            position=position + 1,
            thought="look elsewhere",
            tool="wikisearch",
            arguments={"query": "Eve"},
            observation="Eve was there.",
            finished_at=trace.started_at,
        )
    )
    return TraceRecord(parent.project, parent.question, trace, steps, people=parent.people)


def export(written_as: TraceFormat, traces: Iterable[TraceRecord] | TraceExport, path: Path) -> ExportLosses:
    """Write the traces to the file."""
    stream = io.BytesIO()
    assert written_as.write is not None
    losses = written_as.write(traces if isinstance(traces, TraceExport) else TraceExport(traces), stream)
    path.write_bytes(stream.getvalue())
    return losses


def told(record: TraceRecord) -> Any:
    """The content of a trace, without ids, times and fields that only some formats store."""
    steps = [(s.thought, s.tool, s.arguments, s.observation, s.error) for s in record.steps]
    return record.question.text, steps, record.trace.final_thought or None, record.trace.final_answer or None
