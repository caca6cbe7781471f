"""Inspect's evaluation logs as JSON: each sample is a trace of the run that the log tells of."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid5

from db.models import Run
from fewshot_library.formats.chat import Call, Message
from fewshot_library.formats.chat_record import WORLD, Chat, record_from
from fewshot_library.formats.contents import Open, beside_calls, said
from fewshot_library.formats.documents import Malformed, Origin, documents_reader, moment, shaped, taken
from fewshot_library.formats.format import Format, FormatError, Found, Remark
from fewshot_library.formats.humaniq_record import KEYS, MOMENT

ATTACHMENT = "attachment://"
# Inspect's other form of a log, .eval, is a zip archive, compressed in a way that Python does not know yet.
PACKED = b"PK\x03\x04"
# What a sample says once more elsewhere, or in a detail that no trace has: told as a remark, not remembered.
PASSED_OVER = ("events", "store", "timelines", "events_data")


class _Call(Open):
    id: str
    function: str
    arguments: dict[str, Any]
    type: str | None = None


class _Message(Open):
    role: str
    content: Any = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None
    function: str | None = None
    error: dict[str, Any] | None = None


class _Sample(Open):
    id: int | str
    input: Any
    messages: list[_Message]
    epoch: int = 1
    target: str | list[str] = ""
    error: dict[str, Any] | None = None
    started_at: str | None = None
    completed_at: str | None = None


class _Eval(Open):
    task: str
    model: str | None = None
    created: str | None = None
    run_id: str | None = None


class _Log(Open):
    eval: _Eval
    samples: list[Any] | None = None


def _take(raw: Any, origin: Origin) -> Iterator[Found]:
    log = shaped(_Log, raw)
    if not log.samples:
        raise Malformed("it has no samples; a log written without them holds no trace")
    run = _run(log)
    for number, sample in enumerate(log.samples, start=1):
        where = Origin(origin.format, origin.file, f"sample {number}")
        yield from taken(sample, lambda value, at: _sample(value, log, run, at), where)


def _run(log: _Log) -> Run:
    told = log.eval
    started = moment(told.created, "eval.created") if told.created else MOMENT
    return Run(
        id=uuid5(KEYS, f"{told.run_id} {told.task} {told.model} {told.created}"),
        name=f"{told.task} {told.model or ''}".strip(),
        reasoner="inspect",
        world=WORLD,
        configuration={"eval": told.model_dump(), **log.rest},
        started_at=started,
        finished_at=started,
    )


def _sample(raw: Any, log: _Log, run: Run, origin: Origin) -> Iterator[Found]:
    attachments = raw.get("attachments") if isinstance(raw, dict) else None
    sample = shaped(_Sample, _attached(raw, attachments if isinstance(attachments, dict) else {}))
    started = moment(sample.started_at, "started_at") if sample.started_at else run.started_at
    passed = [name for name in PASSED_OVER if sample.rest.get(name)]
    chat = Chat(
        [_message(each, number) for number, each in enumerate(sample.messages, start=1)],
        rest={name: value for name, value in sample.rest.items() if name not in {"attachments", *PASSED_OVER}},
        source_id=str(sample.id),
        gold=[target for target in ([sample.target] if isinstance(sample.target, str) else sample.target) if target],
        answer=_completion(sample),
        error=str(sample.error.get("message", sample.error)) if sample.error else None,
        run=run,
        started_at=started,
        finished_at=moment(sample.completed_at, "completed_at") if sample.completed_at else started,
        project=f"{log.eval.task} (inspect)",
    )
    chat.rest |= {"epoch": sample.epoch} | ({} if isinstance(sample.input, str) else {"input": sample.input})
    if sample.error:
        chat.rest["failure"] = sample.error
    if passed:
        yield Remark(origin.place, f"its {', '.join(passed)} were left out; the messages tell the trace")
    yield from record_from(chat, origin)


def _message(raw: _Message, number: int) -> Message:
    if raw.role not in ("system", "user", "assistant", "tool"):
        raise Malformed(f"message {number} has the role {raw.role!r}, which is none of system, user, assistant, tool")
    content = said(raw.content, f"message {number}")
    message = Message(raw.role, content.text, content.reasoning, call_id=raw.tool_call_id, name=raw.function)
    message.calls = [Call(call.id, call.function, call.arguments) for call in raw.tool_calls or []]
    message.rest = raw.rest | content.rest | beside_calls(raw.tool_calls or [])
    if raw.error is not None:
        message.failed, message.rest["error"] = True, raw.error
        message.content = content.text or str(raw.error.get("message", ""))
    return message


def _completion(sample: _Sample) -> str | None:
    output = sample.rest.get("output")
    completion = output.get("completion") if isinstance(output, dict) else None
    return completion if isinstance(completion, str) and completion else None


def _attached(value: Any, attachments: dict[str, Any]) -> Any:
    """The value with the long texts that the log keeps apart put back in their places."""
    match value:
        case str() if value.startswith(ATTACHMENT):
            return attachments.get(value.removeprefix(ATTACHMENT), value)
        case list():
            return [_attached(each, attachments) for each in value]
        case dict():
            return {name: _attached(each, attachments) for name, each in value.items()}
    return value


_read_json = documents_reader("inspect", _take)


def _read(path: Path) -> Iterator[Found]:
    with path.open("rb") as stream:
        if stream.read(len(PACKED)) == PACKED:
            raise FormatError(f"{path} is a packed log; make it JSON with `inspect log convert --to json`")
    return _read_json(path)


INSPECT = Format(
    "inspect",
    "Inspect's evaluation logs (.json)",
    lambda head: head.has("eval.task", "version") or head.start.startswith(PACKED),
    _read,
)
