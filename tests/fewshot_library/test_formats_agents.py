"""Import of the runs of agents as their frameworks record them."""

import json
from pathlib import Path
from typing import Any

import pytest

from showhow.db.database import Database
from showhow.db.storage.merge import MergePreview, TraceMerger
from showhow.db.storage.schema import upgrade
from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats import read_traces
from showhow.fewshot_library.formats.format import FormatError, RecordRemark, RefusedRecord
from tests.fewshot_library.agent_runs import (
    agent_executor,
    codex_session,
    openhands_events,
    smolagents_step,
    template_text,
)
from tests.fewshot_library.foreign_samples import TASKS, jaeger_trace
from tests.fewshot_library.traces import told

TASK = TASKS[0]
STEPS = [(thought, tool, arguments, result, None) for thought, tool, arguments, result in TASK.calls]


def read(path: Path, content: Any) -> tuple[list[TraceRecord], list[str], list[str]]:
    """The traces of a file, what is remarked, and what is refused."""
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    results = list(read_traces(path))
    return (
        [result for result in results if isinstance(result, TraceRecord)],
        [result.text for result in results if isinstance(result, RecordRemark)],
        [result.reason for result in results if isinstance(result, RefusedRecord)],
    )


def lines(values: list[Any]) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def test_a_session_of_codex_is_one_trace_whose_question_is_what_its_user_typed(tmp_path):
    (record,), _, refused = read(tmp_path / "rollout.jsonl", lines(codex_session(TASK)))
    assert told(record)[:2] == (TASK.question, STEPS)
    assert (record.trace.final_answer, refused) == (TASK.answer, [])
    assert "environment_context" in json.dumps(record.trace.result.to_json())


def test_a_session_of_an_older_codex_has_its_items_without_a_wrapper(tmp_path):
    items = [line["payload"] for line in codex_session(TASK) if line["type"] == "response_item"]
    (record,), _, _ = read(tmp_path / "old.jsonl", lines([{"id": "0", "instructions": None}, items[1], *items[2:]]))
    assert told(record)[:2] == (TASK.question, STEPS)


def test_code_that_an_agent_runs_is_an_argument_and_its_last_step_has_the_answer_behind_it(tmp_path):
    code = "print(read('Ister'))\nfinal_answer('2850 km')"
    call = {"id": "call_1", "type": "function", "function": {"name": "python_interpreter", "arguments": code}}
    step = smolagents_step(1, f"Thought: I run it.\n{code}", call, "Execution logs:\n2850", "2850 km")
    failed = smolagents_step(2, "No code.", None, None) | {"error": {"type": "ParsingError", "message": "no code blob"}}
    memory = [{"system_prompt": "Be brief."}, {"task": "How long?", "task_images": None}, failed]
    memory.append(step | {"code_action": code})
    (record,), remarks, _ = read(tmp_path / "memory.json", memory)
    question, (first, second), _, answer = told(record)
    assert (question, answer) == ("How long?", "2850 km")
    assert (first[0], first[3]) == ("No code.", "no code blob")
    assert second[1:] == ("python_interpreter", {"code": code}, "Execution logs:\n2850", None)
    assert all("kind" not in remark for remark in remarks)


def test_an_answer_after_too_many_steps_is_the_answer_and_not_a_step(tmp_path):
    end = smolagents_step(3, "", None, None, 42) | {"is_final_answer": False}
    end |= {"error": {"type": "AgentMaxStepsError", "message": "Reached max steps."}, "model_output": None}
    end["model_output_message"] = None
    (record,), _, _ = read(tmp_path / "m.json", {"steps": [{"task": "How many?", "task_images": None}, end]})
    assert (record.trace.final_answer, record.trace.final_thought, record.steps) == ("42", "Reached max steps.", [])


def test_events_of_an_agents_state_are_no_steps_and_remarked(tmp_path):
    for number, content in enumerate(
        (openhands_events(TASK), {"history": openhands_events(TASK), "metrics": {}}, lines(openhands_events(TASK)))
    ):
        (record,), remarks, _ = read(tmp_path / f"t{number}.jsonl", content)
        assert told(record)[:2] == (TASK.question, STEPS)
        assert (record.trace.final_answer, record.trace.final_thought) == (TASK.answer, TASK.thought)
        left_out = "4 events are no message, call or result of the agent, and left out: recall, agent_state_changed"
        assert remarks[0] == left_out


def test_an_action_of_a_model_without_calls_is_a_call_with_the_fields_of_the_action(tmp_path):
    events = [
        {"id": 0, "source": "user", "action": "message", "args": {"content": "List it."}, "message": "List it."},
        {"id": 1, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "I look."}, "message": ""},
        {"id": 2, "source": "agent", "observation": "run", "content": "a.txt", "extras": {"exit_code": 0}, "cause": 1},
        {"id": 3, "source": "agent", "action": "message", "args": {"content": "a.txt", "thought": ""}, "message": ""},
    ]
    (record,), remarks, _ = read(tmp_path / "t.json", events)
    assert told(record)[:2] == ("List it.", [("I look.", "run", {"command": "ls"}, "a.txt", None)])
    assert (record.trace.final_answer, remarks) == ("a.txt", [])


LOGS = {
    "a log of a model with calls": "\nInvoking: `read` with `{'title': 'Ister'}`\nresponded: The first one.\n\n",
    "a log in bold": "**Thought:** The first one.\n**Action:** read\n**Action Input:** Ister",
    "a log of a chat agent": 'The first one.\nAction:\n```\n{"action": "read", "action_input": "Ister"}\n```',
}


@pytest.mark.parametrize("form", LOGS)
def test_intermediate_steps_have_the_thought_of_their_log(tmp_path, form):
    action = {"tool": "read", "tool_input": "Ister", "log": LOGS[form]}
    constructed = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "agent", "AgentAction"]}
    for written in (action, constructed | {"kwargs": action}):
        run = {"input": "How long?", "output": "2850 km", "intermediate_steps": [[written, "2850"], "log='x'"]}
        (record,), remarks, _ = read(tmp_path / "run.json", [run, run][:1])
        question, (first, _), _, answer = told(record)
        assert (question, answer) == ("How long?", "2850 km")
        assert first == ("The first one.", "read", {"input": "Ister"}, "2850", None)
        assert remarks == ["part 1 of message 3 is of the kind 'intermediate step', and was kept but not read"]


def test_the_history_of_a_chat_is_not_the_question_of_an_agents_run(tmp_path):
    (record,), remarks, _ = read(tmp_path / "run.json", agent_executor(TASK))
    assert (record.question.text, remarks) == (TASK.question, ["another list with 18 of its messages was left out"])
    langsmith = {"run_type": "chain", "inputs": {"input": "How long?"}, "outputs": agent_executor(TASK)}
    (record,), _, _ = read(tmp_path / "langsmith.json", langsmith)
    assert record.trace.final_answer == TASK.answer


def test_a_text_in_a_chat_template_is_a_conversation_for_each_system_message(tmp_path):
    records, remarks, refused = read(tmp_path / "chats.txt", "\n".join(map(template_text, TASKS)))
    assert [record.question.text for record in records] == [task.question for task in TASKS]
    assert told(records[0])[1] == STEPS
    assert (remarks, refused) == ([], [])


def test_the_template_of_llama_is_read_and_a_prompt_without_a_reply_has_no_answer(tmp_path):
    def turn(role: str, text: str) -> str:
        return f"<|start_header_id|>{role}<|end_header_id|>\n\n{text}<|eot_id|>"

    text = f"<|begin_of_text|>{turn('system', 'Be brief.')}{turn('user', 'How long?')}"
    (record,), _, _ = read(tmp_path / "l.jsonl", lines([{"text": text + turn("assistant", "2850 km")}]))
    assert (record.question.text, record.trace.final_answer) == ("How long?", "2850 km")
    prompt = text + "<|start_header_id|>assistant<|end_header_id|>"
    (record,), _, _ = read(tmp_path / "p.jsonl", lines([{"text": prompt}]))
    assert (record.trace.status, record.trace.final_answer, record.steps) == ("failed", None, [])


def test_an_instruction_with_its_input_is_the_question_and_the_output_its_answer(tmp_path):
    rows = [
        {"instruction": "Name the river.", "input": "It flows to the Euxine.", "output": "Ister"},
        {"instruction": "Name it.", "input": "", "output": "Padus", "system": "Be brief."},
        {"instruction": "Which one?", "context": "Two.", "response": "Both", "category": "qa"},
    ]
    for name, content in (("a.json", json.dumps(rows)), ("a.jsonl", lines(rows))):
        records, remarks, refused = read(tmp_path / name, content)
        assert [(record.question.text, record.trace.final_answer) for record in records] == [
            ("Name the river.\n\nIt flows to the Euxine.", "Ister"),
            ("Name it.", "Padus"),
            ("Which one?\n\nTwo.", "Both"),
        ]
        assert (remarks, refused) == ([], [])


def test_a_failed_span_of_jaeger_has_its_message_and_its_times_are_microseconds(tmp_path):
    document = jaeger_trace(TASKS[:1])
    tool = document["data"][0]["spans"][2]
    tool["tags"] = [tag for tag in tool["tags"] if "result" not in tag["key"]]
    tool["tags"] += [
        {"key": "error", "type": "bool", "value": True},
        {"key": "otel.status_description", "type": "string", "value": "no such page"},
    ]
    for span in document["data"][0]["spans"]:
        for tag in span["tags"]:
            tag["value"] = str(tag["value"]).replace(TASK.calls[0][3], "")
    (record,), _, _ = read(tmp_path / "jaeger.json", document)
    assert (record.steps[0].error, record.trace.final_answer) == ("no such page", TASK.answer)
    assert record.trace.started_at.isoformat() == "2026-01-01T00:00:00+00:00"


@pytest.mark.parametrize("number", ["1" * 5000, "²", "", "0x1F"])
def test_a_number_of_a_span_that_is_none_is_left_out_with_a_remark(tmp_path, number):
    attributes = [
        {"key": "gen_ai.usage.input_tokens", "value": {"intValue": number}},
        {
            "key": "llm.tokens",
            "value": {
                "arrayValue": {"values": [{"kvlistValue": {"values": [{"key": "n", "value": {"intValue": number}}]}}]}
            },
        },
        {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
        {"key": "gen_ai.input.messages", "value": {"stringValue": json.dumps([{"role": "user", "content": "Who?"}])}},
        {
            "key": "gen_ai.output.messages",
            "value": {"stringValue": json.dumps([{"role": "assistant", "content": "I"}])},
        },
    ]
    span = {"traceId": "1", "spanId": "2", "name": "chat", "startTimeUnixNano": number, "attributes": attributes}
    (record,), remarks, _ = read(tmp_path / "spans.json", {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
    assert (record.question.text, record.trace.final_answer) == ("Who?", "I")
    assert sum("was left out" in remark for remark in remarks) == 2 + bool(number)


def test_a_text_in_another_encoding_is_refused_with_what_to_do(tmp_path):
    content = "Question: Où est-il ?\nThought: Ici.\nFinal Answer: là\n".encode("cp1252")
    for name, written in (("r.txt", content), ("c.jsonl", b'{"messages": [{"role": "user", "content": "\xe9"}]}')):
        (tmp_path / name).write_bytes(written)
        with pytest.raises(FormatError, match="save it in UTF-8, and import it again"):
            list(read_traces(tmp_path / name))


def test_a_trace_that_is_read_with_its_thoughts_now_differs_from_the_one_without_and_is_not_added(tmp_path):
    store = Database(f"sqlite:///{tmp_path / 'store.db'}")
    upgrade(store)

    def merge(session: Any, path: Path) -> list[str]:
        merger = TraceMerger()
        outcomes = [merger.merge(session, record) for record in read_traces(path) if isinstance(record, TraceRecord)]
        merger.end_batch(session)
        return outcomes

    def messages(thought: dict[str, Any], answer: str = "2850 km") -> list[Any]:
        call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": '{"title": "Ister"}'}}
        return [
            {"role": "user", "content": "How long?"},
            {"role": "assistant", "content": None, "tool_calls": [call], **thought},
            {"role": "tool", "tool_call_id": "c", "content": "2850"},
            {"role": "assistant", "content": answer},
        ]

    path = tmp_path / "chats.jsonl"
    path.write_text(lines([{"messages": messages({})}]))
    with store.begin() as session:
        assert merge(session, path) == ["added"]
    read_now, another = {"messages": messages({"reasoning": "I read it."})}, {"messages": messages({}, "2860 km")}
    path.write_text(lines([read_now, another]))
    records = [record for record in read_traces(path) if isinstance(record, TraceRecord)]
    assert [MergePreview(store).merge(record) for record in records] == ["differs", "added"]
    with store.begin() as session:
        assert merge(session, path) == ["differs", "added"]
    store.close()
