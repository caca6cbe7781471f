"""Training files: preference pairs for TRL, and ShareGPT conversations with tools for LLaMA-Factory.

Also writes PhantomWiki's supervised pairs: the evidence with the question, and the list of answers. And DSPy examples
with a trajectory of dspy.ReAct: thought_0, tool_name_0, tool_args_0, observation_0 and so on, which DSPy loads with
dspy.Example(**json.loads(line)).with_inputs("question").
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from typing import Any

from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats.chat import (
    CHAT_FIELDS,
    ChatTranscript,
    MessageToolCall,
    TraceMessage,
    chat_to_records,
    list_error_losses,
    step_outcome_text,
    to_json_text,
)
from showhow.fewshot_library.formats.content_parts import expand_content, read_arguments
from showhow.fewshot_library.formats.conversations import chat_reader
from showhow.fewshot_library.formats.format import (
    ReadResult,
    RecordRemark,
    TraceExport,
    TraceFormat,
    UnsupportedTrace,
    json_lines_writer,
    json_rows_writer,
    lost_fields,
    no_exchanges,
)
from showhow.fewshot_library.formats.json_documents import (
    ExtensibleModel,
    RecordOrigin,
    document_reader,
    validate_shape,
)
from showhow.fewshot_library.formats.openai import encode_message
from showhow.fewshot_library.formats.training_conversations import Conversation, calls_skills, trace_to_conversations

# PhantomWiki's evaluation splits answers here.
SEPARATOR = ","
PAIR_FIELDS = {"step.observation", "question.gold_answers", "trace.final_answer"}


def _encode_completion(record: TraceRecord, _: TraceExport) -> tuple[dict[str, Any], list[str]]:
    answers = [str(gold["text"]) for gold in record.question.gold_answers if gold.get("text")]
    if not answers and record.trace.final_answer:
        answers = [record.trace.final_answer]
    if not answers:
        raise UnsupportedTrace("it has neither a gold answer nor a final answer")
    observations = [step.observation.strip() for step in record.steps if step.observation and step.observation.strip()]
    pair = {
        "prompt": _build_prompt("\n\n".join(dict.fromkeys(observations)), record.question.full_text),
        "completion": SEPARATOR.join(answers),
        "question": record.question.full_text,
        "answer": answers,
    }
    lost = ["a step's call" for step in record.steps if step.tool is not None]
    lost += ["a comma inside an answer" for answer in answers if SEPARATOR in answer]
    return pair, [*lost_fields(record, PAIR_FIELDS), *lost]


def _build_prompt(evidence: str, question: str) -> str:
    return (
        f"What was found:\n\n{evidence}\n\nAnswer the question from it alone. "
        f"Give every answer, separated by commas, and nothing else.\n\nQuestion: {question}\nAnswer:"
    )


SUPERVISED = TraceFormat(
    "phantomwiki",
    "evidence and question with the list of answers, for fine-tuning",
    write=json_lines_writer(_encode_completion),
)

CHOSEN_STATUSES = ("approved", "submitted")
REJECTED_STATUSES = ("failed", "rejected", "submitted")


def _encode_preference(record: TraceRecord, export: TraceExport) -> tuple[dict[str, Any], list[str]]:
    parent = _find_rejected_parent(record, export)
    # A person's steps, which a fixed trace ends with, were not sent as a prompt has them.
    export = replace(export, find_exchanges=no_exchanges)
    conversations, losses = trace_to_conversations(record, export)
    others, _ = trace_to_conversations(parent, export)
    pair = _first_difference(conversations, others) if calls_skills(record) else (conversations[0], others[0])
    if pair is None:
        raise UnsupportedTrace(
            f"no skill was asked for the same in its parent, trace {parent.trace.id}, and answered otherwise"
        )
    good, bad = (
        [encode_message(message, arguments_as_text=False) for message in conversation.messages] for conversation in pair
    )
    # The common beginning is the prompt. It does not end with a call, which stays together with its result.
    shared = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(good, bad, strict=False))))
    while shared > 1 and good[shared - 1].get("tool_calls"):
        shared -= 1
    if len(good) == shared or len(bad) == shared:
        raise UnsupportedTrace(f"it or its parent, trace {parent.trace.id}, has nothing after their common beginning")
    row = {
        "prompt": good[:shared],
        "chosen": good[shared:],
        "rejected": bad[shared:],
        "tools": pair[0].tools,
    }
    return row, [loss for loss in losses if loss != "a trace's parent_id"]


def _first_difference(
    conversations: list[Conversation], others: list[Conversation]
) -> tuple[Conversation, Conversation] | None:
    """The conversations about the first request to a skill with two replies."""
    pairs = zip(conversations, others, strict=False)
    return next((pair for pair in pairs if pair[0] != pair[1] and _prompts_equal(*pair)), None)


def _prompts_equal(one: Conversation, other: Conversation) -> bool:
    return one.messages[:-1] == other.messages[:-1]


def _find_rejected_parent(record: TraceRecord, export: TraceExport) -> TraceRecord:
    if record.trace.parent_id is None:
        raise UnsupportedTrace("it was not forked from another trace")
    if record.trace.status not in CHOSEN_STATUSES:
        raise UnsupportedTrace(f"it is {record.trace.status} itself")
    parent = export.find_trace(record.trace.parent_id)
    if parent is None:
        raise UnsupportedTrace(f"its parent, trace {record.trace.parent_id}, is not in the store")
    if parent.trace.status not in REJECTED_STATUSES or parent.trace.status == record.trace.status:
        raise UnsupportedTrace(f"its parent, trace {parent.trace.id}, is {parent.trace.status}, not failed")
    return parent


PREFERENCES = TraceFormat(
    "trl", "preference pairs for TRL: a fixed trace over its failed parent", write=json_lines_writer(_encode_preference)
)


_THOUGHT_START, _THOUGHT_END = "<think>\n", "\n</think>\n\n"


def _encode_conversations(record: TraceRecord, export: TraceExport) -> tuple[list[dict[str, Any]], list[str]]:
    if not record.trace.final_answer:
        raise UnsupportedTrace("it has no answer, and conversations in this format end with one")
    conversations, lost = trace_to_conversations(record, export)
    rows = []
    for conversation in conversations:
        messages = conversation.messages
        system = messages[0].content if messages[0].role == "system" else ""
        turns, lost_ends = _encode_turns(messages[1:] if system else messages)
        tools = to_json_text([tool["function"] for tool in conversation.tools])
        rows.append({"conversations": turns, "system": system, "tools": tools})
        lost += lost_ends
    return rows, lost


def _encode_turns(messages: list[TraceMessage]) -> tuple[list[dict[str, str]], list[str]]:
    turns: list[dict[str, str]] = []
    pending_thoughts: list[str] = []
    lost: list[str] = []
    for message, after in zip(messages, [*messages[1:], None], strict=True):
        if message.role == "tool" and turns and turns[-1]["from"] == "observation":
            # Turns alternate, so the results of calls of one message are one turn.
            turns[-1]["value"] += f"\n\n{message.content}"
        elif message.role != "assistant":
            turns.append({"from": "observation" if message.role == "tool" else "human", "value": message.content})
        elif message.calls or after is None or after.role == "user":
            turns.append(_assistant_turn(message, pending_thoughts))
            pending_thoughts = []
        else:
            # Turns must alternate, so a thought without a call is joined to the next turn.
            pending_thoughts.append(message.content)
            lost.append("the end of a thought without a call")
    return turns, lost


def _assistant_turn(message: TraceMessage, pending_thoughts: list[str]) -> dict[str, str]:
    if not message.calls:
        thought = "\n\n".join(part for part in (*pending_thoughts, message.reasoning) if part)
        return {"from": "gpt", "value": _tag_thought(thought) + message.content}
    thought = "\n\n".join(part for part in (*pending_thoughts, message.content) if part)
    calls = [{"name": call.name, "arguments": call.arguments} for call in message.calls]
    call_text = to_json_text(calls if len(calls) > 1 else calls[0])
    return {"from": "function_call", "value": _tag_thought(thought) + call_text}


def _tag_thought(thought: str) -> str:
    if _THOUGHT_END.strip() in thought:
        raise UnsupportedTrace(f"one of its thoughts contains {_THOUGHT_END.strip()!r}, which ends a thought")
    return f"{_THOUGHT_START}{thought}{_THOUGHT_END}" if thought else ""


SHAREGPT = TraceFormat(
    "sharegpt",
    "ShareGPT conversations with calls, for LLaMA-Factory",
    lambda head: head.has_keys("conversations[].from", "conversations[].value"),
    chat_reader("sharegpt"),
    json_rows_writer(_encode_conversations),
)


_TRAJECTORY_KEY = re.compile(r"(thought|tool_name|tool_args|observation)_(\d{1,9})")
FINISH_TOOL, FINISH_OBSERVATION = "finish", "Completed."


class _DspyExample(ExtensibleModel):
    question: str
    trajectory: dict[str, Any] | None = None
    answer: Any = None
    reasoning: str | None = None


def record_to_example(record: TraceRecord) -> dict[str, Any]:
    """The trace as the fields of a DSPy example."""
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
    return {"question": record.question.full_text, "trajectory": trajectory, "answer": trace.final_answer}


def _encode_example(record: TraceRecord, _: TraceExport) -> tuple[dict[str, Any], list[str]]:
    trace, losses = record.trace, list_error_losses(record)
    losses += [f"a last call of a tool named {FINISH_TOOL}" for step in record.steps[-1:] if step.tool == FINISH_TOOL]
    if trace.final_thought and trace.final_answer is None:
        losses.append("the final thought of a trace without an answer")
    return record_to_example(record), [*lost_fields(record, CHAT_FIELDS), *losses]


def _decode_example(raw: Any, origin: RecordOrigin) -> Iterator[ReadResult]:
    example = validate_shape(_DspyExample, raw)
    turns, rest = _parse_turns(example.trajectory or {})
    numbers = sorted(turns)
    if rest:
        remark = f"trajectory.{', trajectory.'.join(rest)} belong to no step, and were kept but not read"
        yield RecordRemark(origin.place, remark)
    if numbers != list(range(len(numbers))):
        # DSPy removes the first steps of a trajectory that is too long for the model.
        remark = f"its trajectory has only the steps {', '.join(map(str, numbers))}; the others are missing"
        yield RecordRemark(origin.place, remark)
    messages = [TraceMessage("user", example.question)]
    finish = turns[numbers.pop()] if numbers and turns[numbers[-1]].get("tool_name") == FINISH_TOOL else {}
    for number in numbers:
        messages += _turn_messages(turns[number], number)
    thoughts = [part for part in (_text(finish.get("thought")), example.reasoning) if part]
    rest |= example.extra_fields
    if finish.get("tool_args") or finish.get("observation") not in (None, FINISH_OBSERVATION):
        rest["finish"] = {name: finish.get(name) for name in ("tool_args", "observation")}
    if example.answer is not None:
        messages.append(TraceMessage("assistant", _answer_text(example.answer), "\n\n".join(thoughts)))
    elif thoughts:
        rest["reasoning"] = thoughts
    chat = ChatTranscript(messages, extra=rest, answered=example.answer is not None)
    yield from chat_to_records(chat, origin)


def _parse_turns(trajectory: dict[str, Any]) -> tuple[dict[int, dict[str, Any]], dict[str, Any]]:
    """The turns by their numbers, and the fields that belong to none."""
    turns: dict[int, dict[str, Any]] = {}
    rest: dict[str, Any] = {}
    for key, value in trajectory.items():
        if match := _TRAJECTORY_KEY.fullmatch(key):
            turns.setdefault(int(match[2]), {})[match[1]] = value
        else:
            rest[key] = value
    return turns, rest


def _turn_messages(turn: dict[str, Any], number: int) -> Iterator[TraceMessage]:
    message = TraceMessage("assistant", _text(turn.get("thought")))
    name = turn.get("tool_name")
    if isinstance(name, str):
        arguments, problem = read_arguments(turn.get("tool_args"))
        message.calls = [MessageToolCall(str(number), name, arguments, problem)]
    elif name is not None or turn.get("tool_args"):
        message.remarks.append(f"trajectory.tool_args_{number} has no tool, and was kept but not read")
        message.rest = {"tool_name": name, "tool_args": turn.get("tool_args")}
    yield message
    if "observation" in turn:
        result = TraceMessage("tool", call_id=str(number)) if message.calls else TraceMessage("environment")
        observation = turn["observation"]
        parts = observation if isinstance(observation, list) else [observation]
        if parts and all(isinstance(part, dict) and "type" in part for part in parts):
            yield from expand_content(result, observation, f"observation_{number}")
        else:
            result.content = _text(observation)
            yield result


def _text(value: Any) -> str:
    """The value as a text: a tool of DSPy may return another value than a text."""
    return value if isinstance(value, str) else "" if value is None else to_json_text(value)


def _answer_text(answer: Any) -> str:
    """The answer as a text; several answers in one, as elsewhere."""
    return ", ".join(map(_text, answer)) if isinstance(answer, list) else _text(answer)


DSPY = TraceFormat(
    "dspy",
    "DSPy examples with a ReAct trajectory",
    lambda head: head.has_keys("question", "trajectory"),
    document_reader("dspy", _decode_example),
    json_lines_writer(_encode_example),
)
