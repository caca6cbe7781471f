"""ATIF v1.7, one trajectory a line; fields that ATIF does not have are stored under `extra.showhow`.

Trajectories of other agents are imported as chats.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from showhow.db.models import Step
from showhow.db.serialization import InvalidRecord, to_json_fields
from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats.chat import (
    ChatTranscript,
    MessageToolCall,
    TraceMessage,
    chat_to_records,
    step_outcome_text,
)
from showhow.fewshot_library.formats.content_parts import expand_content, read_arguments
from showhow.fewshot_library.formats.format import ReadResult, TraceExport, TraceFormat, json_lines_writer
from showhow.fewshot_library.formats.json_documents import (
    ExtensibleModel,
    MalformedRecord,
    RecordOrigin,
    document_reader,
    extra_call_fields,
    read_utc_datetime,
    validate_shape,
)
from showhow.fewshot_library.formats.showhow import record_from_json, record_to_json


class AtifToolCall(ExtensibleModel):
    """A tool call."""

    tool_call_id: str | None = None
    function_name: str | None = None
    arguments: Any = None


class AtifToolResult(ExtensibleModel):
    """The result of a tool call; without `source_call_id` it belongs to no particular call."""

    source_call_id: str | None = None
    content: Any = None
    extra: dict[str, Any] | None = None


class AtifObservation(ExtensibleModel):
    """The observation of a step."""

    results: list[AtifToolResult] | None = None


class AtifStep(ExtensibleModel):
    """One step of a trajectory: a message of the system, the user or the agent."""

    step_id: Any = None
    source: str
    message: Any = None
    timestamp: Any = None
    reasoning_content: str | None = None
    tool_calls: list[AtifToolCall] | None = None
    observation: AtifObservation | None = None
    extra: dict[str, Any] | None = None


class AtifTrajectory(ExtensibleModel):
    """One trajectory; unknown fields are kept."""

    schema_version: str
    agent: dict[str, Any]
    steps: list[AtifStep]
    trajectory_id: str | None = None
    extra: dict[str, Any] | None = None


def trajectory_to_chat(trajectory: AtifTrajectory) -> ChatTranscript:
    """Convert a trajectory to a chat; fields that a chat does not have go to `extra`."""
    steps, remarks = _order_steps(trajectory.steps)
    messages = [message for step in steps for message in _step_messages(step)]
    if messages:
        messages[0].remarks[:0] = remarks
    agent = dict(trajectory.agent)
    tools = agent.pop("tool_definitions", None)
    rest = {"agent": agent, "trajectory_id": trajectory.trajectory_id, "extra": trajectory.extra}
    chat = ChatTranscript(messages, tools if isinstance(tools, list) else [])
    chat.extra = {name: value for name, value in rest.items() if value} | trajectory.extra_fields
    times = [message.at for message in messages if message.at is not None]
    if times:
        chat.started_at, chat.finished_at = min(times), max(times)
    return chat


def _order_steps(steps: list[AtifStep]) -> tuple[list[AtifStep], list[str]]:
    """The steps in the order of their numbers, or in that of the file, with a remark, where these do not give one."""
    numbers = [step.step_id for step in steps]
    if sorted(map(str, numbers)) == sorted(map(str, range(1, len(steps) + 1))):
        return sorted(steps, key=lambda step: int(step.step_id)), []
    return steps, ["its steps are not numbered 1, 2, 3 ..., and were taken in the order of the file"]


def _step_messages(step: AtifStep) -> Iterator[TraceMessage]:
    place = f"step {step.step_id}"
    remarks: list[str] = []
    at = read_utc_datetime(step.timestamp, place, remarks)
    rest = step.extra_fields | extra_call_fields(step.tool_calls or []) | ({"extra": step.extra} if step.extra else {})
    calls: list[MessageToolCall] = []
    for call in step.tool_calls or []:
        if call.function_name is None:
            remarks.append(f"a call of {place} names no function, and was left out")
        else:
            calls.append(MessageToolCall(call.tool_call_id or "", call.function_name, *read_arguments(call.arguments)))
    role = "assistant" if step.source == "agent" else step.source
    reasoning = step.reasoning_content or ""
    message = TraceMessage(role, reasoning=reasoning, calls=calls, at=at, rest=rest, remarks=remarks)
    yield from expand_content(message, step.message, place)
    for result in (step.observation.results if step.observation else None) or []:
        yield from _result_messages(result, place, calls, at)


def _result_messages(
    result: AtifToolResult, place: str, calls: list[MessageToolCall], at: datetime | None
) -> list[TraceMessage]:
    extra = dict(result.extra or {})
    rating = extra.get("rating")
    # A rating on another scale stays in `extra` and does not become the step's rating.
    is_star_rating = isinstance(rating, int) and not isinstance(rating, bool) and 1 <= rating <= 5
    rest = result.extra_fields | ({"extra": extra} if extra else {})
    is_of_call = result.source_call_id is not None or bool(calls)
    message = TraceMessage("tool" if is_of_call else "environment", call_id=result.source_call_id, at=at, rest=rest)
    message.rating = rating if is_star_rating and is_of_call else None
    if result.content is None and result.extra_fields:
        names = ", ".join(result.extra_fields)
        message.remarks.append(f"the observation of {place} has only {names}, which was kept but not read")
    return expand_content(message, result.content, f"{place}, its observation")


# The reader of the Agent Data Protocol accepts only this version.
SCHEMA_VERSION = "ATIF-v1.7"
EXTRA_KEY = "showhow"
# Fields that ATIF's own step fields or the order of the steps express.
NATIVE_STEP_FIELDS = ("trace_id", "position", "thought", "tool", "started_at")


def _encode_record(record: TraceRecord, export: TraceExport) -> tuple[dict[str, Any], tuple[str, ...]]:
    fields = record_to_json(record)
    del fields["steps"]
    trace, question = fields["trace"], fields["question"]
    steps: list[dict[str, Any]] = [{"source": "user", "message": question.pop("text")}]
    steps += [_encode_step(step, step.position <= (record.trace.parent_position or 0)) for step in record.steps]
    answer, thought = trace.pop("final_answer"), trace.pop("final_thought")
    if answer is not None or thought is not None:
        steps.append(_encode_final_step(answer, thought))
    model = record.spec.model
    trajectory = {
        "schema_version": SCHEMA_VERSION,
        "session_id": str(record.trace.run_id or record.trace.id),
        "trajectory_id": trace.pop("id"),
        "agent": {
            "name": record.trace.reasoner,
            "version": "1",
            **({"model_name": model} if model else {}),
            "tool_definitions": export.tool_definitions(record),
        },
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, start=1)],
        "final_metrics": {"total_steps": len(steps)},
        "extra": {EXTRA_KEY: fields},
    }
    return trajectory, ()


def _encode_step(step: Step, copied: bool) -> dict[str, Any]:  # noqa: FBT001 - the caller's expression names it
    own = {name: value for name, value in to_json_fields(step).items() if name not in NATIVE_STEP_FIELDS}
    encoded: dict[str, Any] = {"timestamp": step.started_at.isoformat(), "source": "agent", "message": ""}
    if step.thought:
        encoded["reasoning_content"] = step.thought
    result: dict[str, Any] = {"content": step_outcome_text(step)}
    if step.tool is not None:
        call_id = f"call_{step.position}"
        call = {"tool_call_id": call_id, "function_name": step.tool, "arguments": own.pop("arguments")}
        encoded["tool_calls"] = [call]
        result = {"source_call_id": call_id, **result}
    if step.error is None:
        del own["error"], own["observation"]
    if step.observation is not None or step.error is not None:
        encoded["observation"] = {"results": [result]}
    # Marked as copied, so that training on a fork and its parent does not use these steps twice.
    return encoded | ({"is_copied_context": True} if copied else {}) | {"extra": {EXTRA_KEY: own}}


def _encode_final_step(answer: str | None, thought: str | None) -> dict[str, Any]:
    reasoning = {} if thought is None else {"reasoning_content": thought}
    marks = {"final": True, "answered": answer is not None}
    return {"source": "agent", "message": answer or "", **reasoning, "extra": {EXTRA_KEY: marks}}


def _decode_trajectory(raw: Any, origin: RecordOrigin) -> Iterator[ReadResult]:
    trajectory = validate_shape(AtifTrajectory, raw)
    if not trajectory.schema_version.startswith("ATIF-v1."):
        raise MalformedRecord(f"schema_version is {trajectory.schema_version!r}, not one of ATIF-v1")
    own_fields = (trajectory.extra or {}).get(EXTRA_KEY)
    if isinstance(own_fields, dict):
        yield _decode_own_record(trajectory, own_fields)
    else:
        yield from chat_to_records(trajectory_to_chat(trajectory), origin)


def _decode_own_record(trajectory: AtifTrajectory, own_fields: dict[str, Any]) -> TraceRecord:
    """Decode a trace that Showhow wrote; ATIF's native fields take precedence over `own_fields`."""
    question, trace = own_fields.get("question"), own_fields.get("trace")
    if not isinstance(question, dict) or not isinstance(trace, dict):
        raise MalformedRecord(f"extra.{EXTRA_KEY} has no question and no trace")
    steps, remarks = _order_steps(trajectory.steps)
    if remarks:
        raise MalformedRecord("its steps are not numbered 1, 2, 3 ...")
    if not steps or steps[0].source != "user":
        raise MalformedRecord("its first step is not a question of the user")
    question = {**question, "text": _step_text(steps[0])}
    trace = {**trace, "id": trajectory.trajectory_id, "final_answer": None, "final_thought": None}
    middle = steps[1:]
    if middle and _own_fields(middle[-1]).get("final") is True:
        last = middle.pop()
        answered = _step_text(last) or _own_fields(last).get("answered") is not False
        trace |= {"final_answer": _step_text(last) if answered else None, "final_thought": last.reasoning_content}
    own_steps = [
        _decode_own_step(step, position, trajectory.trajectory_id) for position, step in enumerate(middle, start=1)
    ]
    try:
        return record_from_json({**own_fields, "question": question, "trace": trace, "steps": own_steps})
    except InvalidRecord as error:
        raise MalformedRecord(str(error)) from error


def _decode_own_step(step: AtifStep, position: int, trace_id: str | None) -> dict[str, Any]:
    place = f"step {step.step_id}"
    calls, results = step.tool_calls or [], (step.observation.results if step.observation else None) or []
    if step.source != "agent" or _step_text(step):
        raise MalformedRecord(f"{place} is not a thought of the agent without a message, as in files of Showhow")
    if len(calls) > 1 or len(results) > 1:
        raise MalformedRecord(f"{place} has several calls or results; files of Showhow have one in a step")
    own = _own_fields(step)
    encoded: dict[str, Any] = (
        {"observation": _require_text(results[0].content, place)} if results else {"observation": None}
    )
    if calls:
        encoded["arguments"] = calls[0].arguments
    return {
        # With an error, the observation is among Showhow's own fields.
        **({**encoded, **own} if own.get("error") is not None else {**own, **encoded}),
        "trace_id": trace_id,
        "position": position,
        "thought": step.reasoning_content or "",
        "tool": calls[0].function_name if calls else None,
        "started_at": step.timestamp,
    }


def _own_fields(step: AtifStep) -> dict[str, Any]:
    own = (step.extra or {}).get(EXTRA_KEY)
    return own if isinstance(own, dict) else {}


def _step_text(step: AtifStep) -> str:
    return _require_text(step.message, f"step {step.step_id}")


def _require_text(content: Any, place: str) -> str:
    if not isinstance(content, str):
        raise MalformedRecord(f"the content of {place} is not a text")
    return content


ATIF = TraceFormat(
    "atif",
    "trajectories in ATIF v1.7, without losses",
    lambda head: any(head.keys.get(at + "schema_version", "").startswith("ATIF-") for at in ("", "[].")),
    document_reader("atif", _decode_trajectory),
    json_lines_writer(_encode_record),
    keeps_split=True,
)
