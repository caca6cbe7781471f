"""Plain ReAct text with any number of questions; the numbered labels of ReAct's own prompts are read as well."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from db.models import Step
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
from fewshot_library.formats.format import (
    ExportLosses,
    FileHead,
    FormatError,
    ReadResult,
    RecordRemark,
    RefusedRecord,
    TraceExport,
    TraceFormat,
    lost_fields,
    open_text,
    read_document,
    text_writer,
)
from fewshot_library.formats.humaniq_record import format_input_line, parse_input_line
from fewshot_library.formats.json_documents import MalformedRecord, RecordOrigin, decode_record
from fewshot_library.formats.react_text import (
    ReactTranscript,
    ReactTurn,
    find_outer_whitespace,
    format_transcript,
    parse_transcript,
)
from guard.input_bounds import InputBoundExceeded

FORMAT_NAME = "react"
_QUESTION_START = re.compile(r"^(?=Question:)", re.MULTILINE)
_PLAIN_MARKER = re.compile(r"^(?:Thought|Action):", re.MULTILINE)
_NUMBERED_MARKER = re.compile(r"^(Thought|Action|Observation) \d+:", re.MULTILINE)
_ACTION_CALL = re.compile(r"([^\[\s]+)\[(.*)\]", re.DOTALL)


def _write_transcripts(export: TraceExport, stream: TextIO) -> ExportLosses:
    losses = ExportLosses()
    for record in export.records:
        transcript = _record_to_transcript(record)
        text = format_transcript(transcript.strip_values())
        parsed = list(_parse_records(text, FORMAT_NAME))
        if [_comparable_content(result) for result in parsed if isinstance(result, TraceRecord)] != [
            _comparable_content(record)
        ] or len(parsed) != 1:
            reason = "in this format its parts would be parsed differently"
            losses.refused.append(RefusedRecord(f"trace {record.trace.id}", reason))
            continue
        stream.write(("\n" if losses.written else "") + text)
        losses.lost.update(
            [*lost_fields(record, CHAT_FIELDS), *list_error_losses(record), *find_outer_whitespace(transcript)]
        )
        losses.written += 1
    return losses


def _record_to_transcript(record: TraceRecord) -> ReactTranscript:
    transcript = ReactTranscript(question=record.question.full_text, final_answer=record.trace.final_answer or None)
    transcript.turns += [step_to_turn(step, record.question.full_text) for step in record.steps]
    # Otherwise a last step that is only a thought would be parsed as the final thought.
    ends_with_thought = bool(transcript.turns) and transcript.turns[-1] == ReactTurn(transcript.turns[-1].thought)
    transcript.final_thought = record.trace.final_thought or (
        "" if ends_with_thought and transcript.final_answer is not None else None
    )
    return transcript


def step_to_turn(step: Step, question: str) -> ReactTurn:
    """Convert a step to a turn of the text."""
    turn = ReactTurn(step.thought, step.tool, observation=_observation_text(step))
    if step.tool is not None:
        turn.action_input = format_input_line(step.tool, step.arguments, question)
    return turn


def _observation_text(step: Step) -> str | None:
    return None if step.observation is None and step.error is None else step_outcome_text(step)


def _comparable_content(record: TraceRecord) -> Any:
    """The content of a trace that a text can represent."""

    def strip(value: str | None) -> str | None:
        return value.strip() if value is not None else None

    steps = [
        (strip(step.thought), step.tool, step.tool and step.arguments, strip(_observation_text(step)))
        for step in record.steps
    ]
    trace = record.trace
    return (
        strip(record.question.full_text),
        steps,
        strip(trace.final_thought) or None,
        strip(trace.final_answer) or None,
    )


def _read_transcripts(path: Path) -> Iterator[ReadResult]:
    try:
        with open_text(path) as stream:
            text = read_document(stream)
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is not a text in UTF-8 ({error.reason})") from error
    except InputBoundExceeded as error:
        raise FormatError(f"{path}: {error}") from error
    return _parse_records(text, path.stem)


def _parse_records(text: str, file: str) -> Iterator[ReadResult]:
    before, *blocks = _QUESTION_START.split(text)
    if not blocks:
        raise FormatError(f'{file}: no line begins with "Question:"')
    if before.strip():
        yield RecordRemark("question 1", "the text before the first question was left out")
    for number, block in enumerate(blocks, start=1):
        yield from decode_record(block, _decode_block, RecordOrigin(FORMAT_NAME, file, f"question {number}"))


def _decode_block(block: Any, origin: RecordOrigin) -> Iterator[ReadResult]:
    transcript = _parse_block(block)
    question = transcript.question or ""
    messages = [TraceMessage("user", question)]
    for number, turn in enumerate(transcript.turns, start=1):
        messages += _turn_messages(turn, number, question)
    chat = ChatTranscript(messages, answered=transcript.final_answer is not None, answer=transcript.response)
    if transcript.final_answer is not None:
        messages.append(TraceMessage("assistant", transcript.final_answer, transcript.final_thought or ""))
    if len(messages) == 1:
        raise MalformedRecord("it has neither a thought nor an answer")
    chat.extra = {"repeated": transcript.repeated} if transcript.repeated else {}
    return chat_to_records(chat, origin)


def _parse_block(block: str) -> ReactTranscript:
    if _PLAIN_MARKER.search(block) or not _NUMBERED_MARKER.search(block):
        return parse_transcript(block)
    transcript = parse_transcript(_NUMBERED_MARKER.sub(r"\1:", block))
    for turn in transcript.turns:
        if turn.action is not None and (call := _ACTION_CALL.fullmatch(turn.action)):
            turn.action, turn.action_input = call[1], call[2]
    if transcript.turns and transcript.turns[-1].action == "Finish" and transcript.final_answer is None:
        last = transcript.turns.pop()
        transcript.final_thought, transcript.final_answer = last.thought, last.action_input
    return transcript


def _turn_messages(turn: ReactTurn, number: int, question: str) -> Iterator[TraceMessage]:
    message = TraceMessage("assistant", turn.thought or "")
    yield message
    if turn.action is not None:
        message.calls.append(
            MessageToolCall(str(number), turn.action, parse_input_line(turn.action, turn.action_input, question))
        )
    elif turn.action_input is not None:
        raise MalformedRecord(f"thought {number} has an Action Input and no Action")
    if turn.observation is not None:
        result = TraceMessage("environment") if turn.action is None else TraceMessage("tool", call_id=str(number))
        result.content = turn.observation
        yield result


def _sniff(head: FileHead) -> bool:
    text = head.text.lstrip()
    patterns = (
        _QUESTION_START,
        re.compile(f"{_PLAIN_MARKER.pattern}|{_NUMBERED_MARKER.pattern}|^Final Answer:", re.MULTILINE),
    )
    return text[:1] not in ("{", "[") and all(pattern.search(text) for pattern in patterns)


REACT = TraceFormat(
    FORMAT_NAME, "plain ReAct text, as in prompts", _sniff, _read_transcripts, text_writer(_write_transcripts)
)
