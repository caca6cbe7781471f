"""DSPy examples with a trajectory of dspy.ReAct: thought_0, tool_name_0, tool_args_0, observation_0 and so on.

DSPy loads a line with dspy.Example(**json.loads(line)).with_inputs("question").
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from db.trace_record import TraceRecord
from fewshot_library.formats.chat import (
    CHAT_FIELDS,
    ChatTranscript,
    MessageToolCall,
    TraceMessage,
    chat_to_records,
    list_error_losses,
    step_outcome_text,
)
from fewshot_library.formats.format import ReadResult, TraceExport, TraceFormat, json_lines_writer, lost_fields
from fewshot_library.formats.json_documents import (
    ExtensibleModel,
    MalformedRecord,
    RecordOrigin,
    document_reader,
    validate_shape,
)

_TRAJECTORY_KEY = re.compile(r"(thought|tool_name|tool_args|observation)_(\d+)")
FINISH_TOOL, FINISH_OBSERVATION = "finish", "Completed."
KEY_TYPES: dict[str, Any] = {"thought": str | None, "tool_name": str | None, "tool_args": dict | None}


class _DspyExample(ExtensibleModel):
    question: str
    trajectory: dict[str, Any]
    answer: str | None = None
    reasoning: str | None = None


def _encode_record(record: TraceRecord, _: TraceExport) -> tuple[dict[str, Any], list[str]]:
    trajectory: dict[str, Any] = {}
    for number, step in enumerate(record.steps):
        trajectory[f"thought_{number}"] = step.thought
        if step.tool is not None:
            trajectory |= {f"tool_name_{number}": step.tool, f"tool_args_{number}": step.arguments}
        if step.observation is not None or step.error is not None:
            trajectory[f"observation_{number}"] = step_outcome_text(step)
    trace, last = record.trace, len(record.steps)
    if trace.final_answer is not None or trace.final_thought:
        trajectory |= {f"thought_{last}": trace.final_thought or "", f"tool_name_{last}": FINISH_TOOL}
        trajectory |= {f"tool_args_{last}": {}, f"observation_{last}": FINISH_OBSERVATION}
    losses = list_error_losses(record)
    losses += [f"a last call of a tool named {FINISH_TOOL}" for step in record.steps[-1:] if step.tool == FINISH_TOOL]
    if trace.final_thought and trace.final_answer is None:
        losses.append("the final thought of a trace without an answer")
    fields = {"question": record.question.text, "trajectory": trajectory, "answer": trace.final_answer}
    return fields, [*lost_fields(record, CHAT_FIELDS), *losses]


def _decode_example(raw: Any, origin: RecordOrigin) -> Iterator[ReadResult]:
    example = validate_shape(_DspyExample, raw)
    turns = _parse_turns(example.trajectory)
    messages = [TraceMessage("user", example.question)]
    finish = turns.pop() if turns and turns[-1].get("tool_name") == FINISH_TOOL else {}
    for number, turn in enumerate(turns):
        messages += _turn_messages(turn, number)
    thoughts = [part for part in (finish.get("thought"), example.reasoning) if part]
    rest = dict(example.extra_fields)
    if finish.get("tool_args") or finish.get("observation") not in (None, FINISH_OBSERVATION):
        rest["finish"] = {name: finish.get(name) for name in ("tool_args", "observation")}
    if example.answer is not None:
        messages.append(TraceMessage("assistant", example.answer, "\n\n".join(thoughts)))
    elif thoughts:
        rest["reasoning"] = thoughts
    return chat_to_records(ChatTranscript(messages, extra=rest, answered=example.answer is not None), origin)


def _parse_turns(trajectory: dict[str, Any]) -> list[dict[str, Any]]:
    turns: dict[int, dict[str, Any]] = {}
    for key, value in trajectory.items():
        match = _TRAJECTORY_KEY.fullmatch(key)
        if match is None:
            raise MalformedRecord(f"trajectory.{key} is not thought, tool_name, tool_args or observation with a number")
        if not isinstance(value, KEY_TYPES.get(match[1], object)):
            raise MalformedRecord(f"trajectory.{key} is of the kind {type(value).__name__}")
        turns.setdefault(int(match[2]), {})[match[1]] = value
    if sorted(turns) != list(range(len(turns))):
        raise MalformedRecord("its trajectory is not numbered 0, 1, 2 ...")
    return [turns[number] for number in range(len(turns))]


def _turn_messages(turn: dict[str, Any], number: int) -> Iterator[TraceMessage]:
    name, arguments = turn.get("tool_name"), turn.get("tool_args") or {}
    if name is None and arguments:
        raise MalformedRecord(f"trajectory.tool_args_{number} has no tool_name_{number}")
    calls = [MessageToolCall(str(number), name, arguments)] if name is not None else []
    yield TraceMessage("assistant", turn.get("thought") or "", calls=calls)
    if "observation" in turn:
        observation = turn["observation"]
        result = TraceMessage("environment") if name is None else TraceMessage("tool", call_id=str(number))
        # A tool of DSPy may return a value other than a text.
        result.content = observation if isinstance(observation, str) else json.dumps(observation, ensure_ascii=False)
        yield result


DSPY = TraceFormat(
    "dspy",
    "DSPy examples with a ReAct trajectory",
    lambda head: any(head.has_keys("trajectory." + key) for key in ("thought_0", "tool_name_0")),
    document_reader("dspy", _decode_example),
    json_lines_writer(_encode_record),
)
