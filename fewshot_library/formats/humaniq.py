"""HumanIQ's library files: a list of demonstrations, each told as one text with its braces doubled for str.format."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO
from uuid import uuid5

from db.record import TraceRecord
from fewshot_library.formats.format import Format, FormatError, Losses, Refused, json_records
from fewshot_library.formats.humaniq_record import KEYS, Source, record_of, told_of
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
        named = [word.strip() for word in raw["Action_Sequence"].split("\t") if word.strip()]
        used = [turn.action for turn in told.turns if turn.action is not None]
        remembered: dict[str, Any] = {"action_sequence": named} if named != used else {}
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
        if parse(_single_braces(text)) != told:
            reason = "its text cannot be told in this format without being read otherwise"
            losses.refused.append(Refused(f"trace {record.trace.id}", reason))
            continue
        _count(record, told, losses)
        used = [turn.action for turn in told.turns if turn.action is not None]
        sequence = record.trace.configuration.get("humaniq", {}).get("action_sequence", used)
        written = {
            "Question": record.question.text,
            "Dataset": record.question.dataset or record.project.name,
            "Action_Sequence": "".join(f"\t{name}" for name in sequence),
            "One_Shot": text,
        }
        stream.write((",\n" if losses.written else "\n") + json.dumps(written, ensure_ascii=False, indent=1))
        losses.written += 1
    stream.write("\n]\n")
    return losses


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
