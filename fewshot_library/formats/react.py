"""Plain ReAct text with any number of questions; the forms in which models and frameworks write it are read as well."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from showhow.db.models import Step
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
from showhow.fewshot_library.formats.format import (
    ExportLosses,
    FileHead,
    FormatError,
    ReadResult,
    RecordRemark,
    RefusedRecord,
    TraceExport,
    TraceFormat,
    lost_fields,
    read_text_document,
    text_writer,
)
from showhow.fewshot_library.formats.humaniq_record import (
    format_input_line,
    parse_input_line,
    parse_keyword_call,
    strip_code_fence,
)
from showhow.fewshot_library.formats.json_documents import MalformedRecord, RecordOrigin, decode_record
from showhow.fewshot_library.formats.react_text import (
    ReactTranscript,
    ReactTurn,
    find_outer_whitespace,
    format_transcript,
    normalize_markers,
    parse_transcript,
)
from showhow.llm.text_tool_calls import parse_json_call

FORMAT_NAME = "react"
# A line of dashes or the like may separate questions.
_QUESTION_START = re.compile(r"^(?:(?:-{3,}+|={3,}+|\*{3,}+)[ \t\r]*+\n\s*+)?+(?=Question:)", re.MULTILINE)
_STEP_OR_ANSWER = re.compile(r"^(?:Thought|Action|Final Answer):", re.MULTILINE)
_ACTION_CALL = re.compile(r"([^\[({\s]++)\s*+(\[.*\]|\(.*\))", re.DOTALL)
_SHORT_ANSWER_LABEL = re.compile(r"^[*_]*+Answer[*_]*+[:\uff1a][*_]*+", re.MULTILINE)
# What a log of LangChain has around the text: colours, and the beginning and end of a chain.
_TURN_START = re.compile(r"\s*+[*_#\s]*+(?:Thought|Action)\b")
_OBSERVATION = "Observation:"
_TERMINAL_LINES = re.compile(r"^(?:\x1b\[[\d;]*+m)*+> (?:Entering|Finished) [^\n]*+$|\x1b\[[\d;]*+m", re.MULTILINE)
_FINISHING_TOOLS = ("finish", "final answer")
_WORDS_FOR_NOTHING = ("", "none", "null", "n/a")
_PHRASE = re.compile(r"\w++(?: [\w']++){1,9}")


def _write_transcripts(export: TraceExport, stream: TextIO) -> ExportLosses:
    losses = ExportLosses()
    for record in export.records:
        transcript = record_to_transcript(record)
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


def record_to_transcript(record: TraceRecord) -> ReactTranscript:
    """Convert a trace to the parts of the text."""
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
    return _parse_records(read_text_document(path), path.stem)


def _parse_records(text: str, file: str) -> Iterator[ReadResult]:
    before, *blocks = _QUESTION_START.split(_usual_text(text))
    if not blocks:
        raise FormatError(f'{file}: no line begins with "Question:"')
    if before.strip():
        yield RecordRemark("question 1", "the text before the first question was left out")
    for number, block in enumerate(blocks, start=1):
        yield from decode_record(block, _decode_block, RecordOrigin(FORMAT_NAME, file, f"question {number}"))


def _usual_text(text: str) -> str:
    # A prompt of LangChain describes the labels before the question.
    description = text.find("the following format")
    if 0 <= description < text.find("Question:") and (begin := text.find("\nBegin!", description)) > 0:
        text = text[:description] + text[begin:]
    return normalize_markers(_TERMINAL_LINES.sub("", text) if "> Entering new " in text else text)


def _decode_block(block: Any, origin: RecordOrigin) -> Iterator[ReadResult]:
    transcript = parse_transcript(block)
    question = transcript.question or ""
    messages = [TraceMessage("user", question)]
    _read_ending(transcript)
    for number, turn in enumerate(transcript.turns, start=1):
        if turn.action is None and turn.action_input is not None:
            remark = f"thought {number} has the Action Input {turn.action_input[:60]!r} and no Action; it was left out"
            yield RecordRemark(origin.place, remark)
        messages += _turn_messages(turn, number, question)
    chat = ChatTranscript(messages, answered=transcript.final_answer is not None, answer=transcript.response)
    if transcript.final_answer is not None:
        messages.append(TraceMessage("assistant", transcript.final_answer, transcript.final_thought or ""))
    if len(messages) == 1:
        raise MalformedRecord("it has neither a thought nor an answer")
    if transcript.repeated:
        chat.extra = {"repeated": transcript.repeated}
        yield RecordRemark(origin.place, "it has several answers or responses, of which the first was imported")
    yield from chat_to_records(chat, origin)


def _read_ending(transcript: ReactTranscript) -> None:
    """Find the answer and the last thought where they are written in another way than the usual one."""
    for turn in transcript.turns:
        if turn.observation is None and _names_no_tool(turn):
            turn.action = turn.action_input = None
    last = transcript.turns[-1] if transcript.turns else ReactTurn()
    if transcript.final_answer is None and last.action is not None:
        name, arguments = _decode_call(last, "")
        if name.casefold().replace("_", " ") in _FINISHING_TOOLS:
            values = list(arguments.values())
            text = values[0] if len(values) == 1 else arguments.get("final_answer", last.action_input or "")
            transcript.final_answer = text if isinstance(text, str) else to_json_text(text)
            last.action = last.action_input = last.observation = None
    elif transcript.final_answer is None and (label := _SHORT_ANSWER_LABEL.search(last.thought or "")):
        transcript.final_answer = label.string[label.end() :].strip()
        last.thought = label.string[: label.start()].strip()
    if transcript.final_answer is not None and transcript.final_answer.startswith("```"):
        transcript.final_answer = strip_code_fence(transcript.final_answer)
    is_thought = last.action is last.action_input is last.observation is None
    if transcript.final_answer is not None and transcript.final_thought is None and transcript.turns and is_thought:
        transcript.final_thought = transcript.turns.pop().thought


def read_text_turns(messages: list[TraceMessage]) -> None:
    """Read the calls, observations and answers that stand as ReAct text in the messages of a chat."""
    last_call: MessageToolCall | None = None
    has_calls = False
    for message in messages:
        if message.role == "assistant" and not message.calls and _TURN_START.match(message.content):
            transcript = parse_transcript(normalize_markers(message.content))
            has_calls = has_calls or any(turn.action is not None for turn in transcript.turns)
            _read_ending(transcript)
            turn = transcript.turns[-1] if transcript.turns else ReactTurn()
            if len(transcript.turns) == 1 and turn.action is not None and turn.observation is None:
                last_call = MessageToolCall("", *_decode_call(turn, ""))
                message.content, message.calls = turn.thought or "", [last_call]
            elif not transcript.turns and transcript.final_answer and has_calls:
                message.reasoning, message.content = transcript.final_thought or "", transcript.final_answer
        elif last_call is not None and message.role == "user" and message.content.startswith(_OBSERVATION):
            message.role, message.content = "tool", message.content.removeprefix(_OBSERVATION).strip()
            last_call = None


def _names_no_tool(turn: ReactTurn) -> bool:
    """Whether an action without a result is only a word for nothing, in JSON or Python, or a phrase."""
    action = (turn.action or "").strip(" .*`\"'").casefold()
    words = (action, (turn.action_input or "none").casefold())
    return turn.action is not None and (
        all(word in _WORDS_FOR_NOTHING for word in words)
        or (turn.action_input is None and _PHRASE.fullmatch(action) is not None)
    )


def _turn_messages(turn: ReactTurn, number: int, question: str) -> Iterator[TraceMessage]:
    message = TraceMessage("assistant", turn.thought or "")
    yield message
    if turn.action is not None:
        message.calls.append(MessageToolCall(str(number), *_decode_call(turn, question)))
    if turn.observation is not None:
        result = TraceMessage("environment") if turn.action is None else TraceMessage("tool", call_id=str(number))
        result.content = turn.observation
        yield result


def _decode_call(turn: ReactTurn, question: str) -> tuple[str, dict[str, Any]]:
    """The tool of an action and its arguments, which may stand in the action itself, as a call or as JSON."""
    name, line = strip_code_fence(turn.action or "").strip("*`\"'"), turn.action_input
    if not line and (written := parse_json_call(name)) is not None:
        if isinstance(written.arguments, dict):
            return written.name, written.arguments
        name, line = written.name, written.arguments
    elif not line and (call := _ACTION_CALL.fullmatch(name)):
        arguments = parse_keyword_call(name)
        name, line = call[1], call[2][1:-1].strip() or None
        if arguments is not None:
            return name, arguments
        if line and len(line) > 1 and line[0] == line[-1] and line[0] in "\"'":
            line = line[1:-1]
    return name, parse_input_line(name, line, question)


def _sniff(head: FileHead) -> bool:
    text = head.text.lstrip()
    if text[:1] in ("{", "["):
        return False
    usual = _usual_text(text)
    return all(pattern.search(usual) for pattern in (_QUESTION_START, _STEP_OR_ANSWER))


REACT = TraceFormat(
    FORMAT_NAME, "plain ReAct text, as in prompts", _sniff, _read_transcripts, text_writer(_write_transcripts)
)
