"""Import of conversations as other interfaces and tools write them."""

import json

import pytest

from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats import read_traces
from showhow.fewshot_library.formats.format import RecordRemark, RefusedRecord
from tests.fewshot_library.conversations import FORMS, gemini, plain_messages, pydantic_ai
from tests.fewshot_library.foreign_samples import TASKS
from tests.fewshot_library.traces import told


def read(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    results = list(read_traces(path))
    return [result for result in results if isinstance(result, TraceRecord)], results


def call_names(form, task):
    return [f"{tool}{n}" if form == "ollama" else tool for n, (_, tool, _, _) in enumerate(task.calls)]


@pytest.mark.parametrize("form", FORMS)
def test_the_conversations_of_other_interfaces_have_their_question_thoughts_calls_results_and_answer(tmp_path, form):
    lines = "".join(json.dumps(record) + "\n" for record in FORMS[form])
    records, _ = read(tmp_path / "x.jsonl", lines)
    for record, task in zip(records, TASKS, strict=True):
        question, steps, _, answer = told(record)
        assert (question, answer) == (task.question, task.answer)
        thoughts = [thought for thought, *_ in task.calls]
        # One message has one thought before its calls.
        thoughts = [*thoughts[:1], *([""] * (len(thoughts) - 1))] if form == "ollama" else thoughts
        called = zip(thoughts, call_names(form, task), task.calls, strict=True)
        assert steps == [(thought, name, args, result, None) for thought, name, (_, _, args, result) in called]


LINES = [json.dumps({"messages": plain_messages(task)}) for task in TASKS]
LAYOUTS = {
    "UTF-16": "\n".join(LINES).encode("utf-16"),
    "commas": ",\n".join(LINES) + ",\n",
    "comments": "# written by a tool\n// twice\n" + "\n".join(LINES) + "\n# end\n",
    "a code fence": "```json\n[" + ",\n".join(LINES) + "]\n```\n",
    "a comma behind the last": "[" + ",\n".join(LINES) + ",\n]",
    "record separators": "".join(f"\x1e{line}\n" for line in LINES),
    "an object with the list": '{"version": 1, "data": [' + ",".join(LINES) + "]}",
    "an object with splits": f'{{"train": [{LINES[0]}], "test": [{LINES[1]}]}}',
    "lists of messages": json.dumps([plain_messages(task) for task in TASKS]),
    "a list a line": "".join(json.dumps(plain_messages(task)) + "\n" for task in TASKS),
    "a message a line": "".join(
        json.dumps({"session_id": task.answer, "type": "turn", "message": message}) + "\n"
        for task in TASKS
        for message in plain_messages(task)
    ),
    "the requests of a log": "".join(
        json.dumps({"request": {"messages": messages[:end]}, "response": {"choices": [{"message": messages[end]}]}})
        + "\n"
        for messages in map(plain_messages, TASKS)
        for end in range(1, len(messages), 2)
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_conversations_are_read_in_whatever_way_a_file_holds_them(tmp_path, layout):
    records, results = read(tmp_path / "x.json", LAYOUTS[layout])
    steps = [[(*call, None) for call in task.calls] for task in TASKS]
    assert [told(record) for record in records] == [
        (task.question, step, None, task.answer) for task, step in zip(TASKS, steps, strict=True)
    ]
    assert not any(isinstance(result, RefusedRecord) for result in results)


USER, REPLY = {"role": "user", "content": "who?"}, {"role": "assistant", "content": "Ada"}
CALL = {"id": "c", "type": "function", "function": {"name": "a", "arguments": "{}"}}
REFUSED = {
    "a reply alone": {"response": {"choices": [{"message": REPLY}]}},
    "a question alone": {"contents": [{"role": "user", "parts": [{"text": "who?"}]}]},
    "pieces of a stream": {"object": "chat.completion.chunk", "choices": [{"delta": REPLY}]},
    "roles exchanged": {"turns": [REPLY, {"role": "assistant", "content": "", "tool_calls": [CALL]}, USER]},
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_conversation_is_refused_in_one_sentence(tmp_path, name):
    _, (refused,) = read(tmp_path / "x.json", json.dumps(REFUSED[name]))
    assert isinstance(refused, RefusedRecord)
    assert len(refused.reason.splitlines()) == 1


def test_a_failed_result_is_an_error_in_the_forms_of_the_interfaces(tmp_path):
    failed = [
        {"toolResult": {"toolUseId": "c", "content": [{"text": "no such page"}], "status": "error"}},
        {"functionResponse": {"id": "c", "name": "a", "response": {"error": "no such page"}}},
        {"type": "tool-result", "toolCallId": "c", "output": {"type": "error-text", "value": "no such page"}},
        {"type": "tool_result", "tool_use_id": "c", "is_error": True, "content": "no such page"},
    ]
    for part in failed:
        called = {"role": "assistant", "content": None, "tool_calls": [CALL]}
        (record,), _ = read(
            tmp_path / "x.json", json.dumps({"messages": [USER, called, {"role": "user", "content": [part]}, REPLY]})
        )
        assert told(record) == ("who?", [("", "a", {}, None, "no such page")], None, "Ada")


def test_a_result_of_an_unknown_form_is_kept_as_it_stands(tmp_path):
    ran = {"type": "shell_result", "stdout": "a.txt", "content": []}
    parts = [
        {"type": "server_tool_use", "id": "s", "name": "shell", "input": {"command": "ls"}},
        {"type": "shell_tool_result", "tool_use_id": "s", "content": ran},
        {"type": "text", "text": "one file"},
    ]
    (record,), _ = read(tmp_path / "x.json", json.dumps({"messages": [USER, {"role": "assistant", "content": parts}]}))
    assert json.loads(record.steps[0].observation) == ran
    assert record.trace.final_answer == "one file"


def test_other_replies_and_conversations_of_a_record_are_remarked(tmp_path):
    replies = [{"message": REPLY}, {"message": {"role": "assistant", "content": "Ben"}}]
    (record,), results = read(
        tmp_path / "x.json", json.dumps({"request": {"messages": [USER]}, "response": {"choices": replies}})
    )
    assert record.trace.final_answer == "Ada"
    assert [result.text for result in results if isinstance(result, RecordRemark)] == [
        "another list with 1 of its messages was left out"
    ]


def test_instructions_within_the_first_request_are_no_part_of_the_question(tmp_path):
    request, *others = pydantic_ai(TASKS[1])
    request["parts"] = [{"part_kind": "system-prompt", "content": "Be brief."}, *request["parts"]]
    (record,), _ = read(tmp_path / "x.json", json.dumps([request, *others]))
    assert record.question.text == TASKS[1].question
    assert record.trace.result.details["chats"]["system"] == ["Be brief."]


def test_the_definitions_of_gemini_are_those_of_its_functions(tmp_path):
    (record,), _ = read(tmp_path / "x.json", json.dumps(gemini(TASKS[0])))
    assert [tool["function"]["name"] for tool in record.trace.result.tools] == ["read", "search"]
