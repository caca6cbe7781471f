"""Inspect's evaluation logs, as JSON or packed: a log is a run, and each sample is a trace."""

import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, BinaryIO
from uuid import uuid5
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

import pyarrow as pa
from pydantic import Field

from showhow.db.models import Run
from showhow.db.run_spec import RunSpec
from showhow.db.types import UnstorableValue
from showhow.fewshot_library.formats.chat import (
    UNKNOWN_WORLD,
    ChatTranscript,
    MessageToolCall,
    TraceMessage,
    chat_to_records,
)
from showhow.fewshot_library.formats.content_parts import expand_content, read_arguments, result_text
from showhow.fewshot_library.formats.format import FormatError, ReadResult, RecordRemark, TraceFormat, open_bytes
from showhow.fewshot_library.formats.humaniq_record import DEFAULT_TIMESTAMP, UUID_NAMESPACE
from showhow.fewshot_library.formats.json_documents import (
    ExtensibleModel,
    MalformedRecord,
    RecordOrigin,
    decode_record,
    document_reader,
    extra_call_fields,
    prepare_to_store,
    read_utc_datetime,
    remark_numbers,
    validate_shape,
)
from showhow.fewshot_library.formats.packed_log import check_members, read_member
from showhow.guard.input_bounds import InputBoundExceeded, check_record_size
from showhow.guard.json_input import load_json

ATTACHMENT_PREFIX = "attachment://"
ZIP_SIGNATURE = b"PK\x03\x04"
HEADER_MEMBERS = ("header.json", "_journal/start.json")
"""The head of a packed log; an unfinished one has only the second."""
SAMPLE_FOLDER = "samples/"
LETTER_SCORES = {"c": 1.0, "p": 0.5, "i": 0.0, "n": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Inspect's words for scores: correct, partial, incorrect, no answer."""
MAX_EPOCHS = 1_000
"""The most repetitions of a question; each is an attempt of every question of the run."""
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
# Fields that repeat other fields, or have details that no trace has; left out with a remark.
IGNORED_FIELDS = ("events", "store", "timelines", "events_data")


class _InspectToolCall(ExtensibleModel):
    id: str | None = None
    function: str | None = None
    arguments: Any = None
    parse_error: str | None = None
    type: str | None = None


class _InspectMessage(ExtensibleModel):
    role: str
    content: Any = None
    tool_calls: list[_InspectToolCall] | None = None
    tool_call_id: str | None = None
    function: str | None = None
    error: Any = None


class _InspectSample(ExtensibleModel):
    id: int | str | None = None
    input: Any = None
    messages: list[_InspectMessage]
    epoch: Annotated[int, Field(ge=1, le=MAX_EPOCHS)] = 1
    target: Any = ""
    error: Any = None
    started_at: Any = None
    completed_at: Any = None


class _InspectEvaluation(ExtensibleModel):
    task: str
    model: str | None = None
    created: Any = None
    run_id: str | None = None


class _InspectLog(ExtensibleModel):
    eval: _InspectEvaluation
    samples: list[Any] | None = None


# What Showhow writes into the metadata of a run, a sample and a score.
class _OwnRun(ExtensibleModel):
    reasoner: str | None = None
    world: str | None = None
    world_hash: str | None = None
    code_version: str | None = None
    library: str | None = None
    skills: str | None = None
    options: dict[str, Any] | None = None
    title: str | None = None
    note: str | None = None


class _OwnGoldAnswer(ExtensibleModel):
    text: str
    entity: str | None = None
    aliases: list[str] | None = None


class _OwnQuestion(ExtensibleModel):
    source_id: str | None = None
    dataset: str | None = None
    split: str | None = None
    kind: str | None = None
    gold_answers: list[_OwnGoldAnswer] = Field(default_factory=list)
    decomposition: list[dict[str, Any]] = Field(default_factory=list)
    details: dict[str, Any] = Field(default_factory=dict)


class _OwnUsage(ExtensibleModel):
    calls: Count = 0
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    unreported_calls: Count = 0
    token_bound: Count | None = None
    cost: Amount | None = None
    cost_bound: Amount | None = None


class _OwnSources(ExtensibleModel, extra="forbid", strict=True):
    answer_text: str | None = None
    answer_graph: str | None = None
    answer_model: str | None = None


class _OwnSample(ExtensibleModel):
    question: _OwnQuestion | None = None
    ending: str | None = None
    failure: str | None = None
    usage: _OwnUsage | None = None
    sources: _OwnSources | None = None


class _OwnScore(ExtensibleModel):
    version: Annotated[Count, Field(ge=1)] | None = None


class _RunMetadata(ExtensibleModel):
    showhow: _OwnRun | None = None


class _SampleMetadata(ExtensibleModel):
    showhow: _OwnSample | None = None


class _ScoreMetadata(ExtensibleModel):
    showhow: _OwnScore | None = None


class _RunConfiguration(ExtensibleModel):
    epochs: Annotated[int, Field(ge=1, le=MAX_EPOCHS)] | None = None


class _RunFields(ExtensibleModel):
    """The fields of a log's head, besides those of the traces, that a run has."""

    metadata: _RunMetadata | None = None
    config: _RunConfiguration | None = None


class _SampleScore(ExtensibleModel):
    value: Any
    metadata: _ScoreMetadata | None = None


class _ModelUsage(ExtensibleModel):
    input_tokens: Count = 0
    output_tokens: Count = 0
    total_cost: Amount | None = None


class _SampleFields(ExtensibleModel):
    """The fields of a sample, besides those of its trace, that an attempt has."""

    metadata: _SampleMetadata | None = None
    scores: dict[str, _SampleScore] = Field(default_factory=dict)
    model_usage: dict[str, _ModelUsage] = Field(default_factory=dict)
    total_time: Amount | None = None
    turn_count: Count | None = None


def _decode_log(raw: Any, origin: RecordOrigin) -> Iterator[ReadResult]:
    log = validate_shape(_InspectLog, raw)
    if not log.samples:
        raise MalformedRecord("it has no samples, and so no traces")
    yield from _decode_samples(log, log.samples, origin)


def _decode_samples(log: _InspectLog, samples: Iterable[Any], origin: RecordOrigin) -> Iterator[ReadResult]:
    remarks: list[str] = []
    run = _decode_run(log, remarks)
    yield from (RecordRemark(origin.place, remark) for remark in remarks)
    for number, sample in enumerate(samples, start=1):
        sample_origin = RecordOrigin(origin.format, origin.file, f"sample {number}")
        yield from decode_record(sample, lambda value, at: _decode_sample(value, log, run, at), sample_origin)


def _decode_run(log: _InspectLog, remarks: list[str]) -> Run:
    evaluation = log.eval
    validate_shape(_RunFields, evaluation.extra_fields)
    started = read_utc_datetime(evaluation.created, "eval.created", remarks) or DEFAULT_TIMESTAMP
    return Run(
        id=uuid5(UUID_NAMESPACE, f"{evaluation.run_id} {evaluation.task} {evaluation.model} {evaluation.created}"),
        name=f"{evaluation.task} {evaluation.model or ''}".strip(),
        reasoner="inspect",
        world=UNKNOWN_WORLD,
        spec=RunSpec(details={"eval": evaluation.model_dump(), **log.extra_fields}),
        started_at=started,
        finished_at=started,
    )


def _decode_sample(raw: Any, log: _InspectLog, run: Run, origin: RecordOrigin) -> Iterator[ReadResult]:
    attachments = raw.get("attachments") if isinstance(raw, dict) else None
    sample = validate_shape(
        _InspectSample, _resolve_attachments(raw, attachments if isinstance(attachments, dict) else {})
    )
    validate_shape(_SampleFields, sample.extra_fields)
    remarks: list[str] = []
    started = read_utc_datetime(sample.started_at, "started_at", remarks) or run.started_at
    ignored = [name for name in IGNORED_FIELDS if sample.extra_fields.get(name)]
    targets = sample.target if isinstance(sample.target, list) else [sample.target]
    chat = ChatTranscript(
        [part for number, raw in enumerate(sample.messages, start=1) for part in _decode_message(raw, number)],
        extra={
            name: value for name, value in sample.extra_fields.items() if name not in {"attachments", *IGNORED_FIELDS}
        },
        source_id=None if sample.id is None else str(sample.id),
        gold_answers=[text for target in targets if (text := result_text(target))],
        answer=_sample_completion(sample),
        error=_error_text(sample.error) or None,
        run=run,
        started_at=started,
        finished_at=read_utc_datetime(sample.completed_at, "completed_at", remarks) or started,
        project=f"{log.eval.task} (inspect)",
    )
    chat.extra |= {"epoch": sample.epoch} | ({} if isinstance(sample.input, str) else {"input": sample.input})
    if sample.error:
        chat.extra["failure"] = sample.error
    if ignored:
        remarks.append(f"its {', '.join(ignored)} were left out; only its messages are imported")
    yield from (RecordRemark(origin.place, remark) for remark in remarks)
    yield from chat_to_records(chat, origin)


def _decode_message(raw: _InspectMessage, number: int) -> list[TraceMessage]:
    message = TraceMessage(raw.role, call_id=raw.tool_call_id, name=raw.function)
    for call in raw.tool_calls or []:
        if call.function is None:
            message.remarks.append(f"a call of message {number} names no function, and was left out")
        else:
            arguments, problem = read_arguments(call.arguments)
            message.calls.append(
                MessageToolCall(call.id or "", call.function, arguments, problem or call.parse_error or "")
            )
    message.rest = raw.extra_fields | extra_call_fields(raw.tool_calls or [])
    if raw.error is not None:
        message.failed, message.rest["error"] = True, raw.error
    messages = expand_content(message, raw.content, f"message {number}")
    message.content = message.content or _error_text(raw.error)
    return messages


def _error_text(error: Any) -> str:
    return str(error.get("message", error)) if isinstance(error, dict) and error else result_text(error or None)


def _sample_completion(sample: _InspectSample) -> str | None:
    output = sample.extra_fields.get("output")
    completion = output.get("completion") if isinstance(output, dict) else None
    return completion if isinstance(completion, str) and completion else None


def _resolve_attachments(sample: Any, attachments: dict[str, Any]) -> Any:
    """Replace references to attachments, the long texts of a log, by their texts, of which each may stand often."""
    expanded = 0

    def resolve(value: Any) -> Any:
        nonlocal expanded
        match value:
            case str() if value.startswith(ATTACHMENT_PREFIX):
                text = attachments.get(value.removeprefix(ATTACHMENT_PREFIX), value)
                expanded += len(text) if isinstance(text, str) else 0
                check_record_size(expanded)
                return text
            case list():
                return [resolve(element) for element in value]
            case dict():
                return {name: resolve(field) for name, field in value.items()}
        return value

    return resolve(sample)


_read_json = document_reader("inspect", _decode_log)


def _read_log(path: Path) -> Iterator[ReadResult]:
    with open_bytes(path) as stream:
        is_packed = stream.read(len(ZIP_SIGNATURE)) == ZIP_SIGNATURE
    return _read_packed(path) if is_packed else _read_json(path)


def _read_packed(path: Path) -> Iterator[ReadResult]:
    """Read a zip with the head of a log and a file for each sample; one sample is in memory at a time."""
    try:
        with open_bytes(path) as stream, ZipFile(stream) as archive:
            members = check_members(archive.infolist(), path.stat().st_size)
            head = next((members[name] for name in HEADER_MEMBERS if name in members), None)
            samples = [member for name, member in members.items() if name.startswith(SAMPLE_FOLDER)]
            if head is None or not samples:
                raise FormatError(f"{path} has no {'samples' if head else 'header.json'}, so it is no log of Inspect")
            origin = RecordOrigin("inspect", path.stem, "header.json")
            raw = load_json(read_member(archive, stream, head), constants=True)
            yield from remark_numbers(list(prepare_to_store(raw)), origin)
            values = (_load_sample(read_member(archive, stream, member)) for member in samples)
            yield from _decode_samples(validate_shape(_InspectLog, raw), values, origin)
    except (MalformedRecord, UnstorableValue) as error:
        raise FormatError(f"{path}, header.json: {error}") from error
    except InputBoundExceeded as error:
        raise FormatError(f"{path}: {error}") from error
    # RuntimeError: a member with a password; ArrowException: damaged data.
    except (BadZipFile, EOFError, OSError, RuntimeError, ValueError, struct.error, pa.ArrowException) as error:
        raise FormatError(f"{path} is damaged ({error}); export it again") from error


def _load_sample(text: bytes) -> Any:
    """A sample, or why it cannot be read."""
    try:
        return load_json(text, constants=True)
    except ValueError as error:
        return MalformedRecord(f"invalid JSON ({error})")


def encode_message(message: TraceMessage) -> dict[str, Any]:
    """Convert a message to that of a log."""
    encoded: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.reasoning:
        text = [{"type": "text", "text": message.content}] if message.content else []
        encoded["content"] = [{"type": "reasoning", "reasoning": message.reasoning}, *text]
    if message.role == "assistant":
        encoded["source"] = "generate"
    if message.calls:
        encoded["tool_calls"] = [
            {"id": call.id, "function": call.name, "arguments": call.arguments, "type": "function"}
            for call in message.calls
        ]
    if message.call_id is not None:
        encoded |= {"tool_call_id": message.call_id, "function": message.name}
    if message.failed:
        encoded["error"] = {"type": "unknown", "message": message.content}
    return encoded


def write_log(head: Mapping[str, Any], samples: Iterator[dict[str, Any]], stream: BinaryIO, *, packed: bool) -> None:
    """Write a log of this head, as JSON or packed; one sample is in memory at a time."""
    (_write_packed if packed else _write_json)(head, samples, stream)


def _write_json(head: Mapping[str, Any], samples: Iterator[dict[str, Any]], stream: BinaryIO) -> None:
    stream.write(_dump(head)[:-1] + b', "samples": [')
    stream.writelines((b",\n" if number else b"\n") + _dump(sample) for number, sample in enumerate(samples))
    stream.write(b"\n]}\n")


def _write_packed(head: Mapping[str, Any], samples: Iterator[dict[str, Any]], stream: BinaryIO) -> None:
    summaries = []
    with ZipFile(stream, "w", ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", _dump({name: head[name] for name in ("version", "eval", "plan")}))
        for sample in samples:
            archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", _dump(sample))
            summary = {name: sample[name] for name in ("id", "epoch", "input", "target", "scores", "model_usage")}
            summaries.append(summary | {"completed": True})
        archive.writestr("summaries.json", _dump(summaries))
        archive.writestr("header.json", _dump(head))


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


def read_score(name: str, value: Any) -> Iterator[tuple[str, float | None]]:
    """The numbers of a score, which may have several by name or in order; None for a value that is no number."""
    match value:
        case dict():
            yield from ((f"{name}.{key}", _to_number(part)) for key, part in value.items())
        case list():
            yield from ((f"{name}.{place}", _to_number(part)) for place, part in enumerate(value, start=1))
        case _:
            yield name, _to_number(value)


def _to_number(value: Any) -> float | None:
    if isinstance(value, str) and value.lower() in LETTER_SCORES:
        return LETTER_SCORES[value.lower()]
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    # What was not scored is written as NaN.
    return number if isfinite(number) else None


INSPECT = TraceFormat(
    "inspect",
    "Inspect's evaluation logs (.json, .eval)",
    lambda head: head.has_keys("eval.task", "version") or head.start.startswith(ZIP_SIGNATURE),
    _read_log,
)
