"""ShareGPT with tools, as LLaMA-Factory takes it: sides take turns, a thought stands in the tags its templates know.

Its dataset_info.json names such a file with "formatting": "sharegpt" and the columns
{"messages": "conversations", "system": "system", "tools": "tools"}.
"""

from typing import Any

from db.trace_record import TraceRecord
from fewshot_library.formats.chat import CHAT_FIELDS, TraceMessage, list_ambiguities, to_json_text, trace_to_messages
from fewshot_library.formats.dropped import lost_fields
from fewshot_library.formats.export import TraceExport
from fewshot_library.formats.format import TraceFormat
from fewshot_library.formats.lines import UnsupportedTrace, json_lines_writer

_THOUGHT_START, _THOUGHT_END = "<think>\n", "\n</think>\n\n"


def _encode_record(record: TraceRecord, export: TraceExport) -> tuple[dict[str, Any], list[str]]:
    messages = trace_to_messages(record)
    if not record.trace.final_answer:
        raise UnsupportedTrace("it has no answer, and a conversation of this format ends with one")
    turns: list[dict[str, str]] = []
    waiting: list[str] = []
    lost = [*lost_fields(record, CHAT_FIELDS), *list_ambiguities(record)]
    for message, after in zip(messages, [*messages[1:], None], strict=True):
        if message.role != "assistant":
            turns.append({"from": "observation" if message.role == "tool" else "human", "value": message.content})
        elif message.calls or after is None or after.role == "user":
            turns.append(_assistant_turn(message, waiting))
            waiting = []
        else:
            # Two turns of one side are no conversation here, so a thought without a call joins the next one.
            waiting.append(message.content)
            lost.append("where a thought without a call ends")
    tools = to_json_text([tool["function"] for tool in export.tool_definitions(record)])
    return {"conversations": turns, "system": "", "tools": tools}, lost


def _assistant_turn(message: TraceMessage, waiting: list[str]) -> dict[str, str]:
    if not message.calls:
        thought = "\n\n".join(part for part in (*waiting, message.reasoning) if part)
        return {"from": "gpt", "value": _tag_thought(thought) + message.content}
    thought = "\n\n".join(part for part in (*waiting, message.content) if part)
    (call,) = message.calls
    call_text = to_json_text({"name": call.name, "arguments": call.arguments})
    return {"from": "function_call", "value": _tag_thought(thought) + call_text}


def _tag_thought(thought: str) -> str:
    if _THOUGHT_END.strip() in thought:
        raise UnsupportedTrace(f"one of its thoughts holds {_THOUGHT_END.strip()!r}, which would end it")
    return f"{_THOUGHT_START}{thought}{_THOUGHT_END}" if thought else ""


SHAREGPT = TraceFormat(
    "sharegpt", "conversations with calls, as LLaMA-Factory takes them", write=json_lines_writer(_encode_record)
)
