"""Demonstrations as a prompt: the instruction first, then each demonstration, then the question."""

import pytest

from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats import read_traces
from showhow.fewshot_library.formats.few_shot_prompt import write_prompt_messages, write_prompt_text

INSTRUCTION, QUESTION = "Answer with a name.\n", "Who lives on the hill?"


@pytest.fixture(scope="module")
def demonstrations(shared_data) -> list[TraceRecord]:
    results = read_traces(shared_data / "humaniq" / "mintaka.json")
    return [result for result in results if isinstance(result, TraceRecord)][:3]


def test_the_text_has_instruction_demonstrations_and_question_in_order(demonstrations):
    text = write_prompt_text(demonstrations, INSTRUCTION, QUESTION)
    assert text.startswith("Answer with a name.\n")
    places = [text.index(f"Question: {record.question.text}") for record in demonstrations]
    assert places == sorted(places)
    assert text.endswith(f"Question: {QUESTION}\nThought:")
    assert text.count("Final Answer:") == len(demonstrations)


def test_the_messages_have_an_id_of_its_own_for_each_call(demonstrations):
    messages = write_prompt_messages(demonstrations, INSTRUCTION, QUESTION)
    assert messages[0] == {"role": "system", "content": "Answer with a name."}
    assert messages[-1] == {"role": "user", "content": QUESTION}
    calls = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    assert len(set(calls)) == len(calls) > len(demonstrations)
    assert [message["tool_call_id"] for message in messages if message["role"] == "tool"] == calls
    assert sum(message["role"] == "user" for message in messages) == len(demonstrations) + 1
