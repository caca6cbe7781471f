"""Demonstrations as a prompt that can be pasted into any chat: one text, or the messages of the OpenAI API.

The instruction comes first, then the demonstrations in their order, then the question to answer; "" leaves it out.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats.chat import TraceMessage, trace_to_messages
from showhow.fewshot_library.formats.openai import encode_message
from showhow.fewshot_library.formats.react import record_to_transcript
from showhow.fewshot_library.formats.react_text import ReactTranscript, format_transcript


def write_prompt_text(records: Sequence[TraceRecord], instruction: str, question: str) -> str:
    """The prompt as a text in the form Thought, Action, Action Input, Observation."""
    examples = (format_transcript(record_to_transcript(record).strip_values()) for record in records)
    asked = [f"{format_transcript(ReactTranscript(question=question))}Thought:"] if question else []
    return "\n".join([f"{instruction.strip()}\n", *examples, *asked])


def write_prompt_messages(records: Sequence[TraceRecord], instruction: str, question: str) -> list[dict[str, Any]]:
    """The prompt as messages; each call has an id of its own in all of the prompt."""
    messages = [TraceMessage("system", instruction.strip())]
    for number, record in enumerate(records, 1):
        messages += [_number_calls(message, number) for message in trace_to_messages(record)]
    asked = [TraceMessage("user", question)] if question else []
    return [encode_message(message) for message in [*messages, *asked]]


def _number_calls(message: TraceMessage, number: int) -> TraceMessage:
    calls = [replace(call, id=f"{number}_{call.id}") for call in message.calls]
    call_id = None if message.call_id is None else f"{number}_{message.call_id}"
    return replace(message, calls=calls, call_id=call_id)
