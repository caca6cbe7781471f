"""Plain ReAct text, a question after the other; the numbered form of ReAct's own prompts is read too."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from db.models import Step
from db.record import TraceRecord
from fewshot_library.formats.chat import KEPT, Call, Message, outcome, unclear
from fewshot_library.formats.chat_record import Chat, record_from
from fewshot_library.formats.documents import Malformed, Origin, taken
from fewshot_library.formats.dropped import dropped
from fewshot_library.formats.export import Export
from fewshot_library.formats.format import Format, FormatError, Found, Losses, Refused, Remark, in_text, opened_text
from fewshot_library.formats.head import Head
from fewshot_library.formats.humaniq_tools import arguments_of, input_line
from fewshot_library.formats.react_text import Told, Turn, compose, parse, white_space

NAME = "react"
_QUESTION = re.compile(r"^(?=Question:)", re.MULTILINE)
_PLAIN = re.compile(r"^(?:Thought|Action):", re.MULTILINE)
_NUMBERED = re.compile(r"^(Thought|Action|Observation) \d+:", re.MULTILINE)
_CALL = re.compile(r"([^\[\s]+)\[(.*)\]", re.DOTALL)


def _write(export: Export, stream: TextIO) -> Losses:
    losses = Losses()
    for record in export.records:
        told = _told(record)
        text = compose(told.stripped())
        back = list(_records(text, NAME))
        if [_says(each) for each in back if isinstance(each, TraceRecord)] != [_says(record)] or len(back) != 1:
            reason = "in this format its parts would be read as other parts"
            losses.refused.append(Refused(f"trace {record.trace.id}", reason))
            continue
        stream.write(("\n" if losses.written else "") + text)
        blurred = [what for what in unclear(record) if "error" in what]
        losses.lost.update([*dropped(record, KEPT), *blurred, *white_space(told)])
        losses.written += 1
    return losses


def _told(record: TraceRecord) -> Told:
    told = Told(question=record.question.text, final_answer=record.trace.final_answer or None)
    told.turns += [turn_of(step, record.question.text) for step in record.steps]
    # A last step that is a thought alone would else be read as the final thought.
    alone = bool(told.turns) and told.turns[-1] == Turn(told.turns[-1].thought)
    told.final_thought = record.trace.final_thought or ("" if alone and told.final_answer is not None else None)
    return told


def turn_of(step: Step, question: str) -> Turn:
    """The step as the text tells it."""
    turn = Turn(step.thought, step.tool, observation=_seen(step))
    if step.tool is not None:
        turn.action_input = input_line(step.tool, step.arguments, question)
    return turn


def _seen(step: Step) -> str | None:
    return None if step.observation is None and step.error is None else outcome(step)


def _says(record: TraceRecord) -> Any:
    """What a text can tell of a trace."""

    def cut(value: str | None) -> str | None:
        return value.strip() if value is not None else None

    steps = [(cut(step.thought), step.tool, step.tool and step.arguments, cut(_seen(step))) for step in record.steps]
    trace = record.trace
    return cut(record.question.text), steps, cut(trace.final_thought) or None, cut(trace.final_answer) or None


def _read(path: Path) -> Iterator[Found]:
    try:
        with opened_text(path) as stream:
            text = stream.read()
    except UnicodeDecodeError as wrong:
        raise FormatError(f"{path} is no text in UTF-8 ({wrong.reason})") from wrong
    return _records(text, path.stem)


def _records(text: str, file: str) -> Iterator[Found]:
    before, *blocks = _QUESTION.split(text)
    if not blocks:
        raise FormatError(f'{file}: no line begins with "Question:"')
    if before.strip():
        yield Remark("question 1", "the text before the first question was left out")
    for number, block in enumerate(blocks, start=1):
        yield from taken(block, _take, Origin(NAME, file, f"question {number}"))


def _take(block: Any, origin: Origin) -> Iterator[Found]:
    told = _parsed(block)
    question = told.question or ""
    messages = [Message("user", question)]
    for number, turn in enumerate(told.turns, start=1):
        messages += _messages(turn, number, question)
    chat = Chat(messages, answered=told.final_answer is not None, answer=told.response)
    if told.final_answer is not None:
        messages.append(Message("assistant", told.final_answer, told.final_thought or ""))
    if len(messages) == 1:
        raise Malformed("it has neither a thought nor an answer")
    chat.rest = {"repeated": told.repeated} if told.repeated else {}
    return record_from(chat, origin)


def _parsed(block: str) -> Told:
    if _PLAIN.search(block) or not _NUMBERED.search(block):
        return parse(block)
    told = parse(_NUMBERED.sub(r"\1:", block))
    for turn in told.turns:
        if turn.action is not None and (call := _CALL.fullmatch(turn.action)):
            turn.action, turn.action_input = call[1], call[2]
    if told.turns and told.turns[-1].action == "Finish" and told.final_answer is None:
        last = told.turns.pop()
        told.final_thought, told.final_answer = last.thought, last.action_input
    return told


def _messages(turn: Turn, number: int, question: str) -> Iterator[Message]:
    said = Message("assistant", turn.thought or "")
    yield said
    if turn.action is not None:
        said.calls.append(Call(str(number), turn.action, arguments_of(turn.action, turn.action_input, question)))
    elif turn.action_input is not None:
        raise Malformed(f"thought {number} has an Action Input and no Action")
    if turn.observation is not None:
        by = Message("environment") if turn.action is None else Message("tool", call_id=str(number))
        by.content = turn.observation
        yield by


def _sniff(head: Head) -> bool:
    text = head.text.lstrip()
    marks = (_QUESTION, re.compile(f"{_PLAIN.pattern}|{_NUMBERED.pattern}|^Final Answer:", re.MULTILINE))
    return text[:1] not in ("{", "[") and all(mark.search(text) for mark in marks)


REACT = Format(NAME, "plain ReAct text, as prompts show it", _sniff, _read, in_text(_write))
