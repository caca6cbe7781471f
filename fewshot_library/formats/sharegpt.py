"""ShareGPT conversations with tools for LLaMA-Factory: strictly alternating turns, with thoughts in <think> tags.

LLaMA-Factory's dataset_info.json describes such a file with "formatting": "sharegpt" and the columns
{"messages": "conversations", "system": "system", "tools": "tools"}.
"""

from typing import Any

from db.trace_record import TraceRecord
from fewshot_library.formats.chat import CHAT_FIELDS, TraceMessage, list_ambiguities, to_json_text, trace_to_messages
from fewshot_library.formats.format import TraceExport, TraceFormat, UnsupportedTrace, json_lines_writer, lost_fields

_THOUGHT_START, _THOUGHT_END = "<think>\n", "\n</think>\n\n"


def _encode_record(record: TraceRecord, export: TraceExport) -> tuple[dict[str, Any], list[str]]:
    messages = trace_to_messages(record)
    if not record.trace.final_answer:
        raise UnsupportedTrace("it has no answer, and conversations in this format end with one")
    turns: list[dict[str, str]] = []
    pending_thoughts: list[str] = []
    lost = [*lost_fields(record, CHAT_FIELDS), *list_ambiguities(record)]
    for message, after in zip(messages, [*messages[1:], None], strict=True):
        if message.role != "assistant":
            turns.append({"from": "observation" if message.role == "tool" else "human", "value": message.content})
        elif message.calls or after is None or after.role == "user":
            turns.append(_assistant_turn(message, pending_thoughts))
            pending_thoughts = []
        else:
            # Turns must alternate, so a thought without a call is joined to the next turn.
            pending_thoughts.append(message.content)
            lost.append("the end of a thought without a call")
    tools = to_json_text([tool["function"] for tool in export.tool_definitions(record)])
    return {"conversations": turns, "system": "", "tools": tools}, lost


def _assistant_turn(message: TraceMessage, pending_thoughts: list[str]) -> dict[str, str]:
    if not message.calls:
        thought = "\n\n".join(part for part in (*pending_thoughts, message.reasoning) if part)
        return {"from": "gpt", "value": _tag_thought(thought) + message.content}
    thought = "\n\n".join(part for part in (*pending_thoughts, message.content) if part)
    (call,) = message.calls
    call_text = to_json_text({"name": call.name, "arguments": call.arguments})
    return {"from": "function_call", "value": _tag_thought(thought) + call_text}


def _tag_thought(thought: str) -> str:
    if _THOUGHT_END.strip() in thought:
        raise UnsupportedTrace(f"one of its thoughts contains {_THOUGHT_END.strip()!r}, which ends a thought")
    return f"{_THOUGHT_START}{thought}{_THOUGHT_END}" if thought else ""


SHAREGPT = TraceFormat(
    "sharegpt", "ShareGPT conversations with calls, for LLaMA-Factory", write=json_lines_writer(_encode_record)
)
