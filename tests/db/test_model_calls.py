"""Requests to models: stored before they are sent, answered once, lost with their process; prompts are stored once."""

from typing import Any

import pytest
from sqlalchemy import func, select

from showhow.db.database import Conflict, Database, RowNotFound, StoreError
from showhow.db.models import ModelCall, Run, Trace
from showhow.db.review import queue
from showhow.db.runs import runs
from showhow.db.traces import recording
from showhow.db.traces.model_calls import (
    PIECE_CHARACTERS,
    ModelReply,
    ModelRequest,
    PromptMessage,
    begin_model_call,
    complete_model_call,
    fail_model_call,
    list_model_calls,
    load_prompt,
    mark_lost_model_calls,
    withdraw_model_call,
)
from showhow.db.traces.recording import NewStep
from showhow.guard.redaction import REMOVED, redactor_of

SYSTEM = {"role": "system", "content": "You answer questions. " * 1000}
ASKED = {"role": "user", "content": "Who built the quay? 👩‍👩‍👧 \n\x00 «é»"}
REPLY = ModelReply({"text": "Ada", "calls": []}, {"input_tokens": 9, "output_tokens": 1}, 0.002, 1.5)


@pytest.fixture
def trace(scene: Any) -> Trace:
    with scene.database.begin() as session:
        run = runs.start_run(session, Run(name="ask", reasoner="humaniq", world="harbour"))
        return runs.start_run_trace(session, run, scene.questions[0].id, "")


def begin(scene: Any, trace: Trace | None, *messages: Any, **more: Any) -> ModelCall:
    request = ModelRequest("step", "gpt-4.1", messages or [SYSTEM, ASKED])
    with scene.database.begin() as session:
        return begin_model_call(session, request, trace_id=trace.id if trace else None, **more)


def complete(scene: Any, call: ModelCall) -> ModelCall:
    with scene.database.begin() as session:
        complete_model_call(session, call.id, REPLY)
        return session.get_one(ModelCall, call.id)


def stored_pieces(scene: Any) -> int:
    with scene.database.read() as session:
        return session.scalar(select(func.count()).select_from(PromptMessage)) or 0


def prompt(scene: Any, call: ModelCall) -> list[dict[str, Any]]:
    with scene.database.read() as session:
        return load_prompt(session, call.id)


def test_a_call_is_stored_before_its_reply_and_completed_after(scene, trace):
    call = begin(scene, trace)
    with scene.database.read() as session:
        (stored,) = list_model_calls(session, trace.id)
    assert (stored.state, stored.reply, stored.answered_at) == ("open", None, None)
    complete(scene, call)
    with scene.database.read() as session:
        (stored,) = list_model_calls(session, trace.id)
    assert (stored.state, stored.reply, stored.usage, stored.price, stored.seconds) == (
        "answered", REPLY.reply, REPLY.usage, REPLY.price, REPLY.seconds
    )  # fmt: skip
    assert (stored.purpose, stored.model, stored.error) == ("step", "gpt-4.1", None)
    assert stored.answered_at >= stored.created_at


def test_messages_are_loaded_exactly(scene, trace):
    assert prompt(scene, begin(scene, trace)) == [SYSTEM, ASKED]
    assert prompt(scene, begin(scene, None, {"role": "user", "content": ""})) == [{"role": "user", "content": ""}]


def test_a_prefix_that_prompts_repeat_is_stored_once(scene, trace):
    begin(scene, trace)
    before = stored_pieces(scene)
    calls = [begin(scene, trace, SYSTEM, ASKED, {"role": "assistant", "content": f"step {n}"}) for n in range(20)]
    assert stored_pieces(scene) == before + 20
    assert prompt(scene, calls[7])[-1] == {"role": "assistant", "content": "step 7"}


def test_the_beginning_of_one_message_that_grows_from_call_to_call_is_stored_once(scene, trace):
    text = "".join(f"Observation {n}. " for n in range(5000))
    lengths = range(len(text) // 2, len(text), PIECE_CHARACTERS)
    calls = [begin(scene, trace, {"role": "user", "content": text[:length]}) for length in lengths]
    assert stored_pieces(scene) <= len(text) // PIECE_CHARACTERS + len(calls) + 1
    assert [prompt(scene, call)[0]["content"] for call in calls] == [text[:length] for length in lengths]


def test_a_key_is_removed_from_a_prompt_also_where_two_pieces_meet(scene, trace):
    key = 'sk-"quoted"\\1234'
    store = Database(scene.database.url, lambda: redactor_of((key,)))
    text = "x" * (PIECE_CHARACTERS - 40) + f"{key}, again {key}"
    with store.begin() as session:
        asked = ModelRequest("step", "gpt-4.1", [{"role": "user", "content": text}])
        call = begin_model_call(session, asked, trace_id=trace.id)
        assert call.request_hash == asked.redacted(store.redactor).hash
    store.close()
    assert prompt(scene, call) == [{"role": "user", "content": text.replace(key, REMOVED)}]


def test_equal_requests_have_equal_hashes_and_another_model_or_parameter_another_one():
    request = ModelRequest("step", "gpt-4.1", [SYSTEM, ASKED], {"temperature": 0, "stop": ["x"]})
    assert request.hash == ModelRequest("answer", "gpt-4.1", [SYSTEM, ASKED], {"stop": ["x"], "temperature": 0}).hash
    others = (
        ModelRequest("step", "gpt-4.1-mini", [SYSTEM, ASKED], request.parameters),
        ModelRequest("step", "gpt-4.1", [ASKED], request.parameters),
        ModelRequest("step", "gpt-4.1", [SYSTEM, ASKED]),
    )
    assert len({request.hash, *(other.hash for other in others)}) == 4


def test_a_call_is_answered_once_and_a_failed_one_never(scene, trace):
    answered, failed = complete(scene, begin(scene, trace)), begin(scene, trace)
    with scene.database.begin() as session:
        fail_model_call(session, failed.id, "the model does not answer", ModelReply(None, {"calls": 1}, None, 9.0))
    for call in (answered, failed):
        with pytest.raises(Conflict, match="came too late"):
            complete(scene, call)
    with scene.database.read() as session:
        stored = session.get_one(ModelCall, failed.id)
    assert (stored.state, stored.error, stored.usage, stored.seconds) == (
        "failed",
        "the model does not answer",
        {"calls": 1},
        9.0,
    )


def test_resuming_a_run_marks_open_calls_of_its_dead_process_as_lost(scene, trace):
    answered, left = complete(scene, begin(scene, trace)), begin(scene, trace)
    with scene.database.begin() as session:
        runs.reopen_run_trace(session, trace.id)
    with scene.database.read() as session:
        states = {call.id: call.state for call in list_model_calls(session, trace.id)}
    assert states == {answered.id: "answered", left.id: "lost"}
    with pytest.raises(Conflict, match="already lost; its reply came too late and is not used"):
        complete(scene, left)
    with scene.database.begin() as session:
        assert mark_lost_model_calls(session, trace.id) == 0


def test_a_step_is_linked_to_the_calls_that_decided_it_and_not_to_those_of_its_tool(scene, trace):
    retried, decided = complete(scene, begin(scene, trace)), complete(scene, begin(scene, trace))
    with scene.database.begin() as session:
        seen = runs.trace_version(session, trace.id)
        step = recording.begin_step(session, trace.id, NewStep("look", "query"), seen=seen, by=trace.author_id)
    own = complete(scene, begin(scene, trace, {"role": "user", "content": "SPARQL"}, step_id=step.id))
    after = complete(scene, begin(scene, trace))
    with scene.database.read() as session:
        steps = {call.id: call.step_id for call in list_model_calls(session, trace.id)}
    assert steps == {retried.id: step.id, decided.id: step.id, own.id: step.id, after.id: None}


def test_a_message_that_no_database_stores_exactly_is_refused(scene, trace):
    with pytest.raises(StoreError, match="cannot be stored"):
        begin(scene, trace, {"role": "user", "content": "\ud83d"})
    with scene.database.read() as session:
        assert list_model_calls(session, trace.id) == []


def test_the_error_names_a_missing_call(scene):
    with pytest.raises(RowNotFound, match=f"no model call {scene.ada.id}"), scene.database.read() as session:
        load_prompt(session, scene.ada.id)


def test_a_call_stays_when_the_empty_draft_it_was_made_for_is_skipped(scene):
    with scene.database.begin() as session:
        draft = recording.start_trace(session, scene.questions[0].id, scene.ada.id)
    call = complete(scene, begin(scene, draft))
    with scene.database.begin() as session:
        queue.skip_question(session, scene.questions[0].id, scene.ada.id, "unclear")
    with scene.database.read() as session:
        assert session.get(Trace, draft.id) is None
        stored = session.get_one(ModelCall, call.id)
    assert (stored.trace_id, stored.state) == (None, "answered")


def test_a_call_that_was_never_sent_is_withdrawn(scene, trace):
    sent, unsent = begin(scene, trace), begin(scene, trace)
    complete(scene, sent)
    with scene.database.begin() as session:
        withdraw_model_call(session, unsent.id)
    with scene.database.read() as session:
        assert [call.id for call in list_model_calls(session, trace.id)] == [sent.id]
    with pytest.raises(Conflict, match="already answered"), scene.database.begin() as session:
        withdraw_model_call(session, sent.id)
