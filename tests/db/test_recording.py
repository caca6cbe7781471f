"""Recording a trace, one acknowledged change after another."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select

from showhow.db.database import Conflict, RowNotFound, StoreError
from showhow.db.models import Step, Trace
from showhow.db.review import queue, review, review_queue
from showhow.db.runs.runs import trace_version
from showhow.db.traces import recording, traces
from showhow.db.traces.recording import NewStep, PageCounter, StepResult, TraceAnswers
from showhow.db.types import MAX_JSON_CHARACTERS, MAX_TEXT_CHARACTERS

FOUND = StepResult("three hits", {"hits": [{"title": "Quay"}]}, None, 0.02)
ANSWERS = TraceAnswers("Ada Quay", answer_text="Ada", answer_graph="Q1", final_thought="both agree")


def start(scene: Any) -> Trace:
    with scene.database.begin() as session:
        return recording.start_trace(session, scene.questions[0].id, scene.ada.id)


def version(scene: Any, trace: Trace) -> int:
    with scene.database.read() as session:
        return session.get_one(Trace, trace.id).version


def add(scene: Any, trace: Trace, thought: str = "look", tool: str | None = "wikisearch") -> Step:
    seen = version(scene, trace)
    with scene.database.begin() as session:
        new = NewStep(thought, tool, {"query": "quay"}, {"query": {"from": "typed"}}, 12.0, 8.0)
        step = recording.begin_step(session, trace.id, new, seen=seen, by=scene.ada.id)
    if tool is not None:
        with scene.database.begin() as session:
            step = recording.complete_step(session, step.id, FOUND, by=scene.ada.id)
    return step


def submit(scene: Any, trace: Trace, answers: TraceAnswers = ANSWERS) -> Trace:
    seen = version(scene, trace)
    with scene.database.begin() as session:
        return recording.submit_trace(session, trace.id, answers, seen=seen, by=scene.ada.id)


def opened(scene: Any, trace: Trace) -> Any:
    with scene.database.read() as session:
        return traces.load_trace(session, trace.id)


def test_a_trace_is_recorded_from_the_first_step_to_the_answer(scene):
    trace = start(scene)
    first, second = add(scene, trace), add(scene, trace, "read it")
    done = submit(scene, trace)
    record = opened(scene, trace)
    assert [step.id for step in record.steps] == [first.id, second.id]
    assert [step.position for step in record.steps] == [1, 2]
    assert record.steps[0].data == FOUND.data
    assert record.steps[0].origins == {"query": {"from": "typed"}}
    assert (record.trace.status, record.trace.final_answer, record.trace.answer_graph) == (
        "submitted",
        "Ada Quay",
        "Q1",
    )
    assert record.trace.active_seconds == 16.0
    assert done.wall_seconds is not None
    assert record.author == "ada"


def test_starting_twice_gives_the_same_draft(scene):
    assert start(scene).id == start(scene).id


def test_a_step_is_stored_before_its_tool_has_run(scene):
    trace = start(scene)
    with scene.database.begin() as session:
        recording.begin_step(session, trace.id, NewStep("try", "read", {}), seen=trace.version, by=trace.author_id)
    (step,) = opened(scene, trace).steps
    assert step.finished_at is None
    with pytest.raises(Conflict, match="step 1 was never finished"):
        submit(scene, trace)


def test_every_change_adds_one_to_the_version_and_a_stale_change_is_refused_with_the_last_change(scene):
    trace = start(scene)
    ada = scene.ada.id
    step = add(scene, trace)
    changes: dict[str, Any] = {
        "rate": lambda s, seen: recording.rate_step(s, step.id, 4, seen=seen, by=ada),
        "thought": lambda s, seen: recording.edit_thought(s, step.id, "look again", seen=seen, by=ada),
        "again": lambda s, seen: recording.restart_step(s, step.id, seen=seen, by=ada),
        "undo": lambda s, seen: recording.undo_step(s, trace.id, seen=seen, by=ada),
        "redo": lambda s, seen: recording.redo_step(s, trace.id, seen=seen, by=ada),
        "step": lambda s, seen: recording.begin_step(s, trace.id, NewStep("no tool"), seen=seen, by=ada),
    }
    for name, change in changes.items():
        seen = version(scene, trace)
        before = opened(scene, trace)
        with (
            pytest.raises(Conflict, match=r"in another tab \(.* at \d\d:\d\d:\d\d UTC\)"),
            scene.database.begin() as session,
        ):
            change(session, seen - 1)
        assert opened(scene, trace) == before, name
        with scene.database.begin() as session:
            change(session, seen)
        assert version(scene, trace) == seen + 1, name
    seen = version(scene, trace)
    with scene.database.begin() as session:
        recording.complete_step(session, step.id, FOUND, by=scene.ada.id)
    assert version(scene, trace) == seen + 1
    submit(scene, trace)
    assert version(scene, trace) == seen + 2


def test_two_tabs_on_one_trace_cannot_overwrite_each_other(scene):
    trace = start(scene)
    add(scene, trace)
    seen = version(scene, trace)
    with scene.database.begin() as session:
        recording.begin_step(session, trace.id, NewStep("from the first tab"), seen=seen, by=trace.author_id)
    reason = r"step 2 was (written|completed) at .* what you typed is still here"
    with pytest.raises(Conflict, match=reason), scene.database.begin() as session:
        recording.begin_step(session, trace.id, NewStep("from the second tab"), seen=seen, by=trace.author_id)
    assert [step.thought for step in opened(scene, trace).steps] == ["look", "from the first tab"]


def test_an_edit_stores_the_replaced_values_the_editor_and_the_time(scene):
    trace = start(scene)
    step = add(scene, trace)
    ada = scene.ada.id
    for rating in (2, 5):
        seen = version(scene, trace)
        with scene.database.begin() as session:
            recording.rate_step(session, step.id, rating, seen=seen, by=ada)
    seen = version(scene, trace)
    with scene.database.begin() as session:
        recording.edit_thought(session, step.id, "better", seen=seen, by=ada)
    seen = version(scene, trace)
    with scene.database.begin() as session:
        recording.restart_step(session, step.id, seen=seen, by=ada)
    record = opened(scene, trace)
    assert [(edit.action, edit.editor_id) for edit in record.edits] == [
        ("rating", ada),
        ("thought", ada),
        ("run again", ada),
    ]
    assert record.edits[0].before == {"rating": 2}
    assert record.edits[1].before == {"thought": "look"}
    assert record.edits[2].before["observation"] == "three hits"
    assert record.edits[2].before["rating"] == 5
    assert (record.steps[0].observation, record.steps[0].rating, record.steps[0].finished_at) == (None, None, None)


def test_an_unchanged_thought_is_no_edit(scene):
    trace = start(scene)
    step = add(scene, trace)
    seen = version(scene, trace)
    with scene.database.begin() as session:
        recording.edit_thought(session, step.id, "look", seen=seen, by=scene.ada.id)
    assert version(scene, trace) == seen
    assert opened(scene, trace).edits == []


def test_a_step_is_completed_once(scene):
    trace = start(scene)
    step = add(scene, trace)
    with pytest.raises(Conflict, match="already finished or removed"), scene.database.begin() as session:
        recording.complete_step(session, step.id, FOUND, by=scene.ada.id)


def test_an_observation_after_the_submission_is_refused(scene):
    trace = start(scene)
    step = add(scene, trace)
    submit(scene, trace)
    with pytest.raises(Conflict, match="came too late"), scene.database.begin() as session:
        recording.complete_step(session, step.id, FOUND, by=scene.ada.id)


def test_only_the_last_step_can_be_run_again(scene):
    trace = start(scene)
    first = add(scene, trace)
    add(scene, trace)
    seen = version(scene, trace)
    with pytest.raises(Conflict, match="later steps that depend on it"), scene.database.begin() as session:
        recording.restart_step(session, first.id, seen=seen, by=scene.ada.id)


def test_an_undone_step_can_be_restored_until_another_one_is_recorded(scene):
    trace = start(scene)
    first = add(scene, trace)

    def change(act: Any) -> Any:
        seen = version(scene, trace)
        with scene.database.begin() as session:
            return act(session, trace.id, seen=seen, by=scene.ada.id)

    change(recording.undo_step)
    assert opened(scene, trace).steps == []
    assert [step.id for step in opened(scene, trace).removed] == [first.id]
    assert change(recording.redo_step).id == first.id
    change(recording.undo_step)
    add(scene, trace, "another way")
    with pytest.raises(RowNotFound, match="no undone step"):
        change(recording.redo_step)


def test_undo_without_a_step_is_refused(scene):
    trace = start(scene)
    with pytest.raises(RowNotFound, match="no step to undo"), scene.database.begin() as session:
        recording.undo_step(session, trace.id, seen=trace.version, by=scene.ada.id)


def test_only_the_author_changes_a_draft_and_a_submitted_trace_is_final(scene):
    trace = start(scene)
    step = add(scene, trace)
    seen = version(scene, trace)
    with pytest.raises(Conflict, match="this trace is ada's; fork it"), scene.database.begin() as session:
        recording.rate_step(session, step.id, 3, seen=seen, by=scene.ben.id)
    submit(scene, trace)
    with pytest.raises(Conflict, match="this trace is submitted since"), scene.database.begin() as session:
        recording.rate_step(session, step.id, 3, seen=seen + 1, by=scene.ada.id)


@pytest.mark.parametrize("rating", [0, 6, -1])
def test_a_rating_is_from_one_to_five(scene, rating):
    trace = start(scene)
    step = add(scene, trace)
    seen = version(scene, trace)
    with pytest.raises(Conflict, match="from 1 to 5"), scene.database.begin() as session:
        recording.rate_step(session, step.id, rating, seen=seen, by=scene.ada.id)


def test_an_empty_final_answer_is_refused(scene):
    trace = start(scene)
    with pytest.raises(Conflict, match="Enter a final answer, or say why the question cannot be answered"):
        submit(scene, trace, TraceAnswers("  \n"))


def test_a_trace_without_a_step_is_refused(scene):
    trace = start(scene)
    with pytest.raises(Conflict, match="Run at least one step before you submit"):
        submit(scene, trace)
    add(scene, trace)
    assert submit(scene, trace).status == "submitted"


def test_a_trace_without_any_thought_is_refused(scene):
    trace = start(scene)
    add(scene, trace, " ")
    with pytest.raises(Conflict, match="Write a thought to at least one step"):
        submit(scene, trace, TraceAnswers("Ada Quay"))
    assert submit(scene, trace, TraceAnswers("Ada Quay", final_thought="the article says so")).status == "submitted"


def test_a_recorded_step_deletes_the_draft_it_came_from(scene):
    trace = start(scene)
    with scene.database.begin() as session:
        recording.save_draft(session, trace.id, {"thought": "half a thou"}, by=trace.author_id)
    with scene.database.read() as session:
        assert recording.find_draft(session, trace.id).content == {"thought": "half a thou"}
    add(scene, trace)
    with scene.database.read() as session:
        assert recording.find_draft(session, trace.id) is None


def test_a_draft_of_an_older_tab_does_not_replace_that_of_a_newer_one(scene):
    trace = start(scene)
    numbers = recording.PageNumbers()
    with scene.database.begin() as session:
        older, newer = numbers.next(session), numbers.next(session)
        recording.save_draft(session, trace.id, {"thought": "new"}, page_number=newer, by=trace.author_id)
    with pytest.raises(Conflict, match="newer tab"), scene.database.begin() as session:
        recording.save_draft(session, trace.id, {"thought": "old"}, page_number=older, by=trace.author_id)
    # The next process knows only what is stored.
    for numbering in (numbers, recording.PageNumbers()):
        with scene.database.begin() as session:
            assert recording.find_draft(session, trace.id).content != {"thought": "old"}
            number = numbering.next(session)
            assert number > newer
            recording.save_draft(session, trace.id, {"thought": "newest"}, page_number=number, by=trace.author_id)


def test_the_number_of_a_page_is_stored_with_its_first_draft(scene):
    trace = start(scene)

    def stored_number():
        with scene.database.read() as session:
            return session.scalar(select(PageCounter.value))

    with scene.database.begin() as session:
        number = [recording.PageNumbers().next(session) for _ in range(3)][-1]
    assert stored_number() == 0
    with scene.database.begin() as session:
        recording.save_draft(session, trace.id, {"thought": "new"}, page_number=number, by=trace.author_id)
    assert stored_number() == number


def test_a_fork_copies_the_steps_and_stores_its_parent(scene):
    trace = start(scene)
    for thought in ("one", "two", "three"):
        add(scene, trace, thought)
    submit(scene, trace)
    with scene.database.begin() as session:
        child = traces.fork_trace(session, trace.id, 2, scene.ben.id)
    record, parent = opened(scene, child), opened(scene, trace)
    assert (record.trace.parent_id, record.trace.parent_position, record.trace.status) == (trace.id, 2, "draft")
    assert [step.thought for step in record.steps] == ["one", "two"]
    assert [step.data for step in record.steps] == [step.data for step in parent.steps[:2]]
    assert {step.id for step in record.steps}.isdisjoint(step.id for step in parent.steps)
    assert len(parent.steps) == 3
    with pytest.raises(RowNotFound, match="no step 4"), scene.database.begin() as session:
        traces.fork_trace(session, trace.id, 4, scene.ben.id)


def test_a_trace_is_approved_or_returned_with_a_comment_for_its_author(scene):
    trace = start(scene)
    add(scene, trace)
    submit(scene, trace)
    with pytest.raises(Conflict, match="say what is wrong"), scene.database.begin() as session:
        review.reject_trace(session, trace.id, seen=trace_version(session, trace.id), by=scene.ben.id, comment=" ")
    with scene.database.begin() as session:
        review.reject_trace(
            session, trace.id, seen=trace_version(session, trace.id), by=scene.ben.id, comment="the wrong quay"
        )
    with scene.database.read() as session:
        (back,) = queue.list_returned_traces(session, scene.project.id, scene.ada.id)
        assert (back.trace.id, back.comment) == (trace.id, "the wrong quay")
        assert review_queue.count_by_status(session, scene.project.id) == {"rejected": 1}
        returned = review.find_return(session, trace.id)
        assert (returned.trace.final_answer, returned.comment, returned.reviewer) == (
            "Ada Quay",
            "the wrong quay",
            "ben",
        )
    with scene.database.begin() as session:
        review.approve_trace(session, trace.id, seen=trace_version(session, trace.id), by=scene.ben.id)
        assert review.find_return(session, trace.id) is None
    with pytest.raises(Conflict, match="already approved"), scene.database.begin() as session:
        review.approve_trace(session, trace.id, seen=trace_version(session, trace.id), by=scene.ben.id)
    record = opened(scene, trace)
    assert [(judgement.aspect, judgement.value) for judgement in record.judgements] == [
        ("approval", "rejected"),
        ("approval", "approved"),
    ]
    assert [edit.before for edit in record.edits] == [
        {"status": "draft"},
        {"status": "submitted"},
        {"status": "rejected"},
    ]


def test_a_draft_is_not_reviewed(scene):
    trace = start(scene)
    with pytest.raises(Conflict, match="only a submitted trace can be"), scene.database.begin() as session:
        review.approve_trace(session, trace.id, seen=trace_version(session, trace.id), by=scene.ben.id)


def test_the_error_names_a_missing_trace_question_or_step(scene):
    with pytest.raises(RowNotFound, match=f"no trace {scene.ada.id}"), scene.database.read() as session:
        traces.load_trace(session, scene.ada.id)
    with pytest.raises(RowNotFound), scene.database.begin() as session:
        recording.start_trace(session, scene.ada.id, scene.ada.id)
    with pytest.raises(RowNotFound), scene.database.begin() as session:
        recording.complete_step(session, scene.ada.id, FOUND, by=scene.ada.id)


HOSTILE = (
    "'); DROP TABLE step; --",
    '"quoted" \\ back\\slash \u2028 line',
    "👩‍👩‍👧‍👦 émoji ligature ﬁ",
    "שלום \u202eright to left\u202c",
    "\t\r\n  outer white space \n",
    "<script>alert(1)</script> {{jinja}} %s {0}",
    "x" * 1_000_000,
)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_text_is_stored_exactly(scene, text):
    trace = start(scene)
    with scene.database.begin() as session:
        step = recording.begin_step(
            session, trace.id, NewStep(text, "read", {"title": text}), seen=trace.version, by=trace.author_id
        )
    with scene.database.begin() as session:
        recording.complete_step(
            session, step.id, StepResult(text, {"deep": [{text[:100]: [text]}]}, text, 0.0), by=scene.ada.id
        )
    (stored,) = opened(scene, trace).steps
    assert (stored.thought, stored.arguments, stored.observation, stored.error) == (text, {"title": text}, text, text)
    assert stored.data == {"deep": [{text[:100]: [text]}]}


REFUSED = (
    {"a": "nul \x00"},
    {"a": ["\ud83d"]},
    {"\x00": 1},
    {"a": float("nan")},
    {"a": {1: 2}},
    {"a": {"b": object()}},
)


@pytest.mark.parametrize("data", REFUSED, ids=range(len(REFUSED)))
def test_data_that_no_database_stores_exactly_is_refused_and_nothing_is_written(scene, data):
    trace = start(scene)
    with pytest.raises(StoreError, match=r"the (text|data) has"), scene.database.begin() as session:
        recording.begin_step(session, trace.id, NewStep("ok", "read", data), seen=trace.version, by=trace.author_id)
    assert opened(scene, trace).steps == []


def test_data_nested_too_deeply_is_refused(scene):
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"in": deep}
    trace = start(scene)
    with pytest.raises(StoreError, match="nested too deeply"), scene.database.begin() as session:
        recording.begin_step(session, trace.id, NewStep("ok", "read", deep), seen=trace.version, by=trace.author_id)


@pytest.mark.parametrize("text", ["nul \x00", "half \ud83d"])
def test_text_that_no_database_stores_exactly_is_refused_with_the_position(scene, text):
    trace = start(scene)
    with pytest.raises(StoreError, match=r"U\+\w{4} at position \d"), scene.database.begin() as session:
        recording.begin_step(session, trace.id, NewStep(text), seen=trace.version, by=trace.author_id)
    assert opened(scene, trace).steps == []


TOO_LONG = "x" * (MAX_TEXT_CHARACTERS + 1)
TOO_MANY = ["x" * 1_000_000] * (MAX_JSON_CHARACTERS // 1_000_000 + 1)
OVERSIZED: dict[str, Callable[[Any, Any, Any, int], object]] = {
    "thought": lambda s, trace, _, seen: recording.begin_step(
        s, trace.id, NewStep(TOO_LONG), seen=seen, by=author(trace)
    ),
    "argument": lambda s, trace, _, seen: recording.begin_step(
        s, trace.id, NewStep("a", "read", {"title": TOO_LONG}), seen=seen, by=author(trace)
    ),
    "arguments": lambda s, trace, _, seen: recording.begin_step(
        s, trace.id, NewStep("a", "read", {"titles": TOO_MANY}), seen=seen, by=author(trace)
    ),
    "key": lambda s, trace, _, seen: recording.begin_step(
        s, trace.id, NewStep("a", "read", {TOO_LONG: 1}), seen=seen, by=author(trace)
    ),
    "edited thought": lambda s, trace, step, seen: recording.edit_thought(
        s, step.id, TOO_LONG, seen=seen, by=author(trace)
    ),
    "answer": lambda s, trace, _, seen: recording.submit_trace(
        s, trace.id, TraceAnswers(TOO_LONG), seen=seen, by=author(trace)
    ),
    "draft": lambda s, trace, *_: recording.save_draft(s, trace.id, {"thought": TOO_LONG}, by=author(trace)),
}


def author(trace: Trace) -> UUID:
    assert trace.author_id
    return trace.author_id


@pytest.mark.parametrize("kind", OVERSIZED)
def test_what_is_too_long_is_refused_in_one_sentence_and_nothing_is_written(scene, kind):
    trace = start(scene)
    step = add(scene, trace)
    seen = version(scene, trace)
    refusal = r"^the (text|data) has [\d,]+ characters, and at most [\d,]+ can be stored; shorten it$"
    with pytest.raises(StoreError, match=refusal), scene.database.begin() as session:
        OVERSIZED[kind](session, trace, step, seen)
    assert version(scene, trace) == seen
    assert [step.thought for step in opened(scene, trace).steps] == ["look"]
    with scene.database.read() as session:
        assert recording.find_draft(session, trace.id) is None


def test_the_longest_text_is_stored(scene):
    trace = start(scene)
    assert add(scene, trace, TOO_LONG[1:]).thought == TOO_LONG[1:]
