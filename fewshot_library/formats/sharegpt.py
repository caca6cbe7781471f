"""ShareGPT with tools, as LLaMA-Factory takes it: sides take turns, a thought stands in the tags its templates know.

Its dataset_info.json names such a file with "formatting": "sharegpt" and the columns
{"messages": "conversations", "system": "system", "tools": "tools"}.
"""

from typing import Any

from db.record import TraceRecord
from fewshot_library.formats.chat import KEPT, Message, chat_of, in_json, unclear
from fewshot_library.formats.dropped import dropped
from fewshot_library.formats.export import Export
from fewshot_library.formats.format import Format
from fewshot_library.formats.lines import LeftOut, as_lines

_OPEN, _CLOSE = "<think>\n", "\n</think>\n\n"


def _tell(record: TraceRecord, export: Export) -> tuple[dict[str, Any], list[str]]:
    messages = chat_of(record)
    if not record.trace.final_answer:
        raise LeftOut("it has no answer, and a conversation of this format ends with one")
    turns: list[dict[str, str]] = []
    waiting: list[str] = []
    lost = [*dropped(record, KEPT), *unclear(record)]
    for message, after in zip(messages, [*messages[1:], None], strict=True):
        if message.role != "assistant":
            turns.append({"from": "observation" if message.role == "tool" else "human", "value": message.content})
        elif message.calls or after is None or after.role == "user":
            turns.append(_said(message, waiting))
            waiting = []
        else:
            # Two turns of one side are no conversation here, so a thought without a call joins the next one.
            waiting.append(message.content)
            lost.append("where a thought without a call ends")
    tools = in_json([tool["function"] for tool in export.definitions(record)])
    return {"conversations": turns, "system": "", "tools": tools}, lost


def _said(message: Message, waiting: list[str]) -> dict[str, str]:
    if not message.calls:
        thought = "\n\n".join(part for part in (*waiting, message.reasoning) if part)
        return {"from": "gpt", "value": _tagged(thought) + message.content}
    thought = "\n\n".join(part for part in (*waiting, message.content) if part)
    (call,) = message.calls
    said = in_json({"name": call.name, "arguments": call.arguments})
    return {"from": "function_call", "value": _tagged(thought) + said}


def _tagged(thought: str) -> str:
    if _CLOSE.strip() in thought:
        raise LeftOut(f"one of its thoughts holds {_CLOSE.strip()!r}, which would end it")
    return f"{_OPEN}{thought}{_CLOSE}" if thought else ""


SHAREGPT = Format("sharegpt", "conversations with calls, as LLaMA-Factory takes them", write=as_lines(_tell))
