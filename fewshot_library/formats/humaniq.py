"""HumanIQ's library files: a list of demonstrations, each told as one text with its braces doubled for str.format."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO
from uuid import uuid5

from db.record import TraceRecord
from fewshot_library.formats.format import Format, FormatError, Losses, Refused, json_records
from fewshot_library.formats.humaniq_record import KEYS, Source, answers_of, answers_told, record_of, told_of
from fewshot_library.formats.humaniq_tools import to_ours
from fewshot_library.formats.react_text import Told, Turn, compose, parse

AUTHOR = "HumanIQ"
FIELDS = ("Question", "Dataset", "Action_Sequence", "One_Shot")
# What a text has no place for: of a trace, and of a step.
TRACE_LOSSES = ("answer_model", "wall_seconds", "active_seconds", "parent_id", "cost")
STEP_LOSSES = ("origins", "data", "error", "rating", "latency", "wall_seconds", "active_seconds", "parent_id")


def read(path: Path) -> Iterator[TraceRecord]:
    """The demonstrations as approved traces of a person named HumanIQ; a record that is wrong stops the reading."""
    author = uuid5(KEYS, AUTHOR)
    for number, raw in enumerate(json_records(path), start=1):
        if not isinstance(raw, dict) or not all(isinstance(raw.get(name), str) for name in FIELDS):
            raise FormatError(f"{path}, record {number}: a demonstration has {', '.join(FIELDS)}, each a text")
        told = parse(_single_braces(raw["One_Shot"]))
        if told.final_answer is None:
            raise FormatError(f'{path}, record {number}: the text has no "Final Answer:"')
        sequence = raw["Action_Sequence"]
        # Some published sequences are not those of their texts: the text is followed, the sequence remembered.
        remembered: dict[str, Any] = {} if sequence == _sequence(told) else {"action_sequence": sequence}
        source = Source(raw["Dataset"], raw["Question"].strip(), raw["One_Shot"], remembered)
        record = record_of(told, source, {"author_id": author, "status": "approved"})
        record.people = {author: AUTHOR}
        yield record


def _single_braces(text: str) -> str:
    """The text as str.format would give it; one whose braces are not doubled is taken as it is."""
    rest = text.replace("{{", "").replace("}}", "")
    if "{" in rest or "}" in rest:
        return text
    return text.replace("{{", "{").replace("}}", "}")


def write(records: Iterable[TraceRecord], stream: TextIO) -> Losses:
    """Write the records as a library file; what does not come back as it was is left out with the reason."""
    losses = Losses()
    stream.write("[")
    for record in records:
        told = _stripped(told_of(record))
        text = compose(told).replace("{", "{{").replace("}", "}}")
        if not _comes_back(record, told, text):
            reason = "told in this format it would be read as something else"
            losses.refused.append(Refused(f"trace {record.trace.id}", reason))
            continue
        _count(record, told, losses)
        sequence = record.trace.configuration.get("humaniq", {}).get("action_sequence", _sequence(told))
        written = {
            "Question": record.question.text,
            "Dataset": record.question.dataset or record.project.name,
            "Action_Sequence": sequence,
            "One_Shot": text,
        }
        stream.write((",\n" if losses.written else "\n") + json.dumps(written, ensure_ascii=False, indent=1))
        losses.written += 1
    stream.write("\n]\n")
    return losses


def _sequence(told: Told) -> str:
    return "".join(f"\t{turn.action}" for turn in told.turns if turn.action is not None)


def _comes_back(record: TraceRecord, told: Told, text: str) -> bool:
    """Whether reading the text gives the parts, the answers and the calls that it was written from."""
    if parse(_single_braces(text)) != told:
        return False
    answers, wanted = answers_of(told, {}), answers_told(record.trace)
    if wanted["final_answer"] is None:
        answers["final_answer"] = None
    if _without_space(answers) != _without_space(wanted):
        return False
    for turn, step in zip(told.turns, record.steps, strict=True):
        arguments = {} if turn.action_input is None else {"input": turn.action_input}
        call = to_ours(turn.action, turn.action_input, record.question.text) if turn.action is not None else None
        found = (call.tool, call.arguments) if call else (None, arguments)
        if (found[0], _without_space(found[1])) != (step.tool, _without_space(step.arguments)):
            return False
    return True


def _without_space(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value.strip() if isinstance(value, str) else value for name, value in values.items()}


def _stripped(told: Told) -> Told:
    """The parts as they come back: the white space round a value is layout there."""

    def strip(value: str | None) -> str | None:
        return None if value is None else value.strip()

    turns = [
        Turn((turn.thought or "").strip(), strip(turn.action), strip(turn.action_input), strip(turn.observation))
        for turn in told.turns
    ]
    return replace(
        told,
        question=strip(told.question),
        turns=turns,
        final_thought=strip(told.final_thought),
        final_answer=strip(told.final_answer),
        response=strip(told.response),
    )


def _count(record: TraceRecord, told: Told, losses: Losses) -> None:
    for name in TRACE_LOSSES:
        losses.lost[f"a trace's {name}"] += bool(getattr(record.trace, name))
    for step in record.steps:
        for name in STEP_LOSSES:
            losses.lost[f"a step's {name}"] += getattr(step, name) not in (None, {})
    losses.lost["undone steps"] += len(record.removed)
    losses.lost["edits"] += len(record.edits)
    losses.lost["judgements"] += len(record.judgements)
    losses.lost["white space round a value"] += told != told_of(record)
    losses.lost["who recorded it"] += record.author != AUTHOR
    for what in [what for what, count in losses.lost.items() if not count]:
        del losses.lost[what]


HUMANIQ = Format(
    "humaniq",
    "HumanIQ's demonstrations as marked text",
    lambda head: head.lstrip().startswith("[") and '"One_Shot"' in head,
    read,
    write,
)
