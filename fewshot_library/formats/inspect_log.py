"""Inspect's evaluation logs as JSON: a log is a run, and each sample is a trace."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid5

from db.models import Run
from fewshot_library.formats.chat import UNKNOWN_WORLD, ChatTranscript, MessageToolCall, TraceMessage, chat_to_records
from fewshot_library.formats.format import FormatError, ReadResult, RecordRemark, TraceFormat, open_bytes
from fewshot_library.formats.humaniq_record import DEFAULT_TIMESTAMP, UUID_NAMESPACE
from fewshot_library.formats.json_documents import (
    ExtensibleModel,
    MalformedRecord,
    RecordOrigin,
    decode_record,
    document_reader,
    extra_call_fields,
    parse_content,
    parse_utc_datetime,
    validate_shape,
)

ATTACHMENT_PREFIX = "attachment://"
# Inspect's other log format, .eval, is a zip archive with a compression that Python does not support yet.
ZIP_SIGNATURE = b"PK\x03\x04"
# Fields that repeat other fields, or have details that no trace has; left out with a remark.
IGNORED_FIELDS = ("events", "store", "timelines", "events_data")


class _InspectToolCall(ExtensibleModel):
    id: str
    function: str
    arguments: dict[str, Any]
    type: str | None = None


class _InspectMessage(ExtensibleModel):
    role: str
    content: Any = None
    tool_calls: list[_InspectToolCall] | None = None
    tool_call_id: str | None = None
    function: str | None = None
    error: dict[str, Any] | None = None


class _InspectSample(ExtensibleModel):
    id: int | str
    input: Any
    messages: list[_InspectMessage]
    epoch: int = 1
    target: str | list[str] = ""
    error: dict[str, Any] | None = None
    started_at: str | None = None
    completed_at: str | None = None


class _InspectEvaluation(ExtensibleModel):
    task: str
    model: str | None = None
    created: str | None = None
    run_id: str | None = None


class _InspectLog(ExtensibleModel):
    eval: _InspectEvaluation
    samples: list[Any] | None = None


def _decode_log(raw: Any, origin: RecordOrigin) -> Iterator[ReadResult]:
    log = validate_shape(_InspectLog, raw)
    if not log.samples:
        raise MalformedRecord("it has no samples, and so no traces")
    run = _decode_run(log)
    for number, sample in enumerate(log.samples, start=1):
        sample_origin = RecordOrigin(origin.format, origin.file, f"sample {number}")
        yield from decode_record(sample, lambda value, at: _decode_sample(value, log, run, at), sample_origin)


def _decode_run(log: _InspectLog) -> Run:
    evaluation = log.eval
    started = parse_utc_datetime(evaluation.created, "eval.created") if evaluation.created else DEFAULT_TIMESTAMP
    return Run(
        id=uuid5(UUID_NAMESPACE, f"{evaluation.run_id} {evaluation.task} {evaluation.model} {evaluation.created}"),
        name=f"{evaluation.task} {evaluation.model or ''}".strip(),
        reasoner="inspect",
        world=UNKNOWN_WORLD,
        configuration={"eval": evaluation.model_dump(), **log.extra_fields},
        started_at=started,
        finished_at=started,
    )


def _decode_sample(raw: Any, log: _InspectLog, run: Run, origin: RecordOrigin) -> Iterator[ReadResult]:
    attachments = raw.get("attachments") if isinstance(raw, dict) else None
    sample = validate_shape(
        _InspectSample, _resolve_attachments(raw, attachments if isinstance(attachments, dict) else {})
    )
    started = parse_utc_datetime(sample.started_at, "started_at") if sample.started_at else run.started_at
    ignored = [name for name in IGNORED_FIELDS if sample.extra_fields.get(name)]
    chat = ChatTranscript(
        [_decode_message(message, number) for number, message in enumerate(sample.messages, start=1)],
        extra={
            name: value for name, value in sample.extra_fields.items() if name not in {"attachments", *IGNORED_FIELDS}
        },
        source_id=str(sample.id),
        gold_answers=[
            target for target in ([sample.target] if isinstance(sample.target, str) else sample.target) if target
        ],
        answer=_sample_completion(sample),
        error=str(sample.error.get("message", sample.error)) if sample.error else None,
        run=run,
        started_at=started,
        finished_at=parse_utc_datetime(sample.completed_at, "completed_at") if sample.completed_at else started,
        project=f"{log.eval.task} (inspect)",
    )
    chat.extra |= {"epoch": sample.epoch} | ({} if isinstance(sample.input, str) else {"input": sample.input})
    if sample.error:
        chat.extra["failure"] = sample.error
    if ignored:
        yield RecordRemark(origin.place, f"its {', '.join(ignored)} were left out; only its messages are imported")
    yield from chat_to_records(chat, origin)


def _decode_message(raw: _InspectMessage, number: int) -> TraceMessage:
    if raw.role not in ("system", "user", "assistant", "tool"):
        raise MalformedRecord(f"message {number} has the role {raw.role!r}, not one of system, user, assistant, tool")
    content = parse_content(raw.content, f"message {number}")
    message = TraceMessage(raw.role, content.text, content.reasoning, call_id=raw.tool_call_id, name=raw.function)
    message.calls = [MessageToolCall(call.id, call.function, call.arguments) for call in raw.tool_calls or []]
    message.rest = raw.extra_fields | content.extra | extra_call_fields(raw.tool_calls or [])
    if raw.error is not None:
        message.failed, message.rest["error"] = True, raw.error
        message.content = content.text or str(raw.error.get("message", ""))
    return message


def _sample_completion(sample: _InspectSample) -> str | None:
    output = sample.extra_fields.get("output")
    completion = output.get("completion") if isinstance(output, dict) else None
    return completion if isinstance(completion, str) and completion else None


def _resolve_attachments(value: Any, attachments: dict[str, Any]) -> Any:
    """Replace references to attachments, the long texts of a log, by their texts."""
    match value:
        case str() if value.startswith(ATTACHMENT_PREFIX):
            return attachments.get(value.removeprefix(ATTACHMENT_PREFIX), value)
        case list():
            return [_resolve_attachments(element, attachments) for element in value]
        case dict():
            return {name: _resolve_attachments(field, attachments) for name, field in value.items()}
    return value


_read_json = document_reader("inspect", _decode_log)


def _read_log(path: Path) -> Iterator[ReadResult]:
    with open_bytes(path) as stream:
        if stream.read(len(ZIP_SIGNATURE)) == ZIP_SIGNATURE:
            raise FormatError(f"{path} is a packed log; make it JSON with `inspect log convert --to json`")
    return _read_json(path)


INSPECT = TraceFormat(
    "inspect",
    "Inspect's evaluation logs (.json)",
    lambda head: head.has_keys("eval.task", "version") or head.start.startswith(ZIP_SIGNATURE),
    _read_log,
)
