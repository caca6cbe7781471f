"""DSPy's examples with the trajectory of its ReAct: thought_0, tool_name_0, tool_args_0, observation_0, to finish.

DSPy loads a line of them with dspy.Example(**json.loads(line)).with_inputs("question").
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from db.record import TraceRecord
from fewshot_library.formats.chat import KEPT, Call, Message, outcome, unclear
from fewshot_library.formats.chat_record import Chat, record_from
from fewshot_library.formats.contents import Open
from fewshot_library.formats.documents import Malformed, Origin, documents_reader, shaped
from fewshot_library.formats.dropped import dropped
from fewshot_library.formats.export import Export
from fewshot_library.formats.format import Format, Found
from fewshot_library.formats.lines import as_lines

_KEY = re.compile(r"(thought|tool_name|tool_args|observation)_(\d+)")
FINISH, DONE = "finish", "Completed."
KINDS: dict[str, Any] = {"thought": str | None, "tool_name": str | None, "tool_args": dict | None}


class _Example(Open):
    question: str
    trajectory: dict[str, Any]
    answer: str | None = None
    reasoning: str | None = None


def _tell(record: TraceRecord, _: Export) -> tuple[dict[str, Any], list[str]]:
    trajectory: dict[str, Any] = {}
    for number, step in enumerate(record.steps):
        trajectory[f"thought_{number}"] = step.thought
        if step.tool is not None:
            trajectory |= {f"tool_name_{number}": step.tool, f"tool_args_{number}": step.arguments}
        if step.observation is not None or step.error is not None:
            trajectory[f"observation_{number}"] = outcome(step)
    trace, last = record.trace, len(record.steps)
    if trace.final_answer is not None or trace.final_thought:
        trajectory |= {f"thought_{last}": trace.final_thought or "", f"tool_name_{last}": FINISH}
        trajectory |= {f"tool_args_{last}": {}, f"observation_{last}": DONE}
    blurred = [what for what in unclear(record) if "error" in what]
    blurred += [f"that a step called its own {FINISH}" for step in record.steps[-1:] if step.tool == FINISH]
    if trace.final_thought and trace.final_answer is None:
        blurred.append("the final thought of a trace without an answer")
    told = {"question": record.question.text, "trajectory": trajectory, "answer": trace.final_answer}
    return told, [*dropped(record, KEPT), *blurred]


def _take(raw: Any, origin: Origin) -> Iterator[Found]:
    example = shaped(_Example, raw)
    turns = _turns(example.trajectory)
    messages = [Message("user", example.question)]
    finish = turns.pop() if turns and turns[-1].get("tool_name") == FINISH else {}
    for number, turn in enumerate(turns):
        messages += _messages(turn, number)
    thoughts = [part for part in (finish.get("thought"), example.reasoning) if part]
    rest = dict(example.rest)
    if finish.get("tool_args") or finish.get("observation") not in (None, DONE):
        rest["finish"] = {name: finish.get(name) for name in ("tool_args", "observation")}
    if example.answer is not None:
        messages.append(Message("assistant", example.answer, "\n\n".join(thoughts)))
    elif thoughts:
        rest["reasoning"] = thoughts
    return record_from(Chat(messages, rest=rest, answered=example.answer is not None), origin)


def _turns(trajectory: dict[str, Any]) -> list[dict[str, Any]]:
    turns: dict[int, dict[str, Any]] = {}
    for key, value in trajectory.items():
        known = _KEY.fullmatch(key)
        if known is None:
            raise Malformed(f"trajectory.{key} is none of thought, tool_name, tool_args, observation with a number")
        if not isinstance(value, KINDS.get(known[1], object)):
            raise Malformed(f"trajectory.{key} is of the kind {type(value).__name__}")
        turns.setdefault(int(known[2]), {})[known[1]] = value
    if sorted(turns) != list(range(len(turns))):
        raise Malformed("its trajectory is not numbered 0, 1, 2 ...")
    return [turns[number] for number in range(len(turns))]


def _messages(turn: dict[str, Any], number: int) -> Iterator[Message]:
    name, arguments = turn.get("tool_name"), turn.get("tool_args") or {}
    if name is None and arguments:
        raise Malformed(f"trajectory.tool_args_{number} stands without a tool_name_{number}")
    calls = [Call(str(number), name, arguments)] if name is not None else []
    yield Message("assistant", turn.get("thought") or "", calls=calls)
    if "observation" in turn:
        seen = turn["observation"]
        back = Message("environment") if name is None else Message("tool", call_id=str(number))
        # What a tool of theirs gave back need not be a text.
        back.content = seen if isinstance(seen, str) else json.dumps(seen, ensure_ascii=False)
        yield back


DSPY = Format(
    "dspy",
    "DSPy examples with a ReAct trajectory",
    lambda head: any(head.has("trajectory." + key) for key in ("thought_0", "tool_name_0")),
    documents_reader("dspy", _take),
    as_lines(_tell),
)
