"""ATIF v1.7, one trajectory a line: what it has no field for stands under `extra.showhow`, so that nothing is lost."""

from collections.abc import Iterator
from typing import Any

from db.models import Step
from db.plain import BrokenNoun, to_plain
from db.record import TraceRecord
from fewshot_library.formats.atif_foreign import Trajectory, TrajectoryStep, chat_of_trajectory
from fewshot_library.formats.chat import outcome
from fewshot_library.formats.chat_record import record_from
from fewshot_library.formats.documents import Malformed, Origin, documents_reader, shaped
from fewshot_library.formats.export import Export
from fewshot_library.formats.format import Format, Found
from fewshot_library.formats.lines import as_lines
from fewshot_library.formats.showhow import record_told, told_of

# The reader of the Agent Data Protocol takes this version and no other.
VERSION = "ATIF-v1.7"
OWN = "showhow"
# What a step's native fields tell, or its place among the steps.
NATIVE = ("trace_id", "position", "thought", "tool", "started_at")


def _tell(record: TraceRecord, export: Export) -> tuple[dict[str, Any], tuple[str, ...]]:
    whole = told_of(record)
    del whole["steps"]
    trace, question = whole["trace"], whole["question"]
    steps: list[dict[str, Any]] = [{"source": "user", "message": question.pop("text")}]
    steps += [_step(step, step.position <= (record.trace.parent_position or 0)) for step in record.steps]
    answer, thought = trace.pop("final_answer"), trace.pop("final_thought")
    if answer is not None or thought is not None:
        steps.append(_final(answer, thought))
    trajectory = {
        "schema_version": VERSION,
        "session_id": str(record.trace.run_id or record.trace.id),
        "trajectory_id": trace.pop("id"),
        "agent": {"name": record.trace.reasoner, "version": "1", "tool_definitions": export.definitions(record)},
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, start=1)],
        "final_metrics": {"total_steps": len(steps)},
        "extra": {OWN: whole},
    }
    return trajectory, ()


def _step(step: Step, copied: bool) -> dict[str, Any]:  # noqa: FBT001 - both arguments are told by their names
    own = {name: value for name, value in to_plain(step).items() if name not in NATIVE}
    told: dict[str, Any] = {"timestamp": step.started_at.isoformat(), "source": "agent", "message": ""}
    if step.thought:
        told["reasoning_content"] = step.thought
    result: dict[str, Any] = {"content": outcome(step)}
    if step.tool is not None:
        call_id = f"call_{step.position}"
        call = {"tool_call_id": call_id, "function_name": step.tool, "arguments": own.pop("arguments")}
        told["tool_calls"] = [call]
        result = {"source_call_id": call_id, **result}
    if step.error is None:
        del own["error"], own["observation"]
    if step.observation is not None or step.error is not None:
        told["observation"] = {"results": [result]}
    # Whoever trains on a fork must not train on its parent's steps twice.
    return told | ({"is_copied_context": True} if copied else {}) | {"extra": {OWN: own}}


def _final(answer: str | None, thought: str | None) -> dict[str, Any]:
    reasoning = {} if thought is None else {"reasoning_content": thought}
    marks = {"final": True, "answered": answer is not None}
    return {"source": "agent", "message": answer or "", **reasoning, "extra": {OWN: marks}}


def _take(raw: Any, origin: Origin) -> Iterator[Found]:
    trajectory = shaped(Trajectory, raw)
    if not trajectory.schema_version.startswith("ATIF-v1."):
        raise Malformed(f"schema_version is {trajectory.schema_version!r}, not one of ATIF-v1")
    if [step.step_id for step in trajectory.steps] != list(range(1, len(trajectory.steps) + 1)):
        raise Malformed("its steps are not numbered 1, 2, 3 ...")
    whole = (trajectory.extra or {}).get(OWN)
    if isinstance(whole, dict):
        yield _own_record(trajectory, whole)
    else:
        yield from record_from(chat_of_trajectory(trajectory), origin)


def _own_record(trajectory: Trajectory, whole: dict[str, Any]) -> TraceRecord:
    """The trace that was written by Showhow; its native fields are followed."""
    question, trace = whole.get("question"), whole.get("trace")
    if not isinstance(question, dict) or not isinstance(trace, dict):
        raise Malformed(f"extra.{OWN} has no question and no trace")
    if not trajectory.steps or trajectory.steps[0].source != "user":
        raise Malformed("its first step is no question of the user's")
    question = {**question, "text": _text(trajectory.steps[0])}
    trace = {**trace, "id": trajectory.trajectory_id, "final_answer": None, "final_thought": None}
    middle = trajectory.steps[1:]
    if middle and _own(middle[-1]).get("final") is True:
        last = middle.pop()
        answered = _text(last) or _own(last).get("answered") is not False
        trace |= {"final_answer": _text(last) if answered else None, "final_thought": last.reasoning_content}
    steps = [_own_step(step, position, trajectory.trajectory_id) for position, step in enumerate(middle, start=1)]
    try:
        return record_told({**whole, "question": question, "trace": trace, "steps": steps})
    except BrokenNoun as wrong:
        raise Malformed(str(wrong)) from wrong


def _own_step(step: TrajectoryStep, position: int, trace_id: str | None) -> dict[str, Any]:
    place = f"step {step.step_id}"
    calls, results = step.tool_calls or [], step.observation.results if step.observation else []
    if step.source != "agent" or _text(step):
        raise Malformed(f"{place} is no thought of the agent's alone, as all of Showhow's are")
    if len(calls) > 1 or len(results) > 1:
        raise Malformed(f"{place} has several calls or results; in Showhow's each is a step")
    own = _own(step)
    told: dict[str, Any] = {"observation": _result(results[0].content, place)} if results else {"observation": None}
    if calls:
        told["arguments"] = calls[0].arguments
    return {
        # What the step saw is told beside its error where it had one.
        **({**told, **own} if own.get("error") is not None else {**own, **told}),
        "trace_id": trace_id,
        "position": position,
        "thought": step.reasoning_content or "",
        "tool": calls[0].function_name if calls else None,
        "started_at": step.timestamp,
    }


def _own(step: TrajectoryStep) -> dict[str, Any]:
    own = (step.extra or {}).get(OWN)
    return own if isinstance(own, dict) else {}


def _text(step: TrajectoryStep) -> str:
    return _result(step.message, f"step {step.step_id}")


def _result(content: Any, place: str) -> str:
    if not isinstance(content, str):
        raise Malformed(f"{place} says something that is no text")
    return content


ATIF = Format(
    "atif",
    "trajectories in ATIF v1.7, nothing lost",
    lambda head: any(head.keys.get(at + "schema_version", "").startswith("ATIF-") for at in ("", "[].")),
    documents_reader("atif", _take),
    as_lines(_tell),
)
