"""HumanIQ's library files: a list of demonstrations, each told as one text with its braces doubled for str.format."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO
from uuid import uuid5

from db.record import TraceRecord
from fewshot_library.formats.export import Export
from fewshot_library.formats.format import (
    Format,
    FormatError,
    Losses,
    Refused,
    Remark,
    in_text,
    json_records,
    unstorable,
)
from fewshot_library.formats.humaniq_losses import AUTHOR, misread, not_kept
from fewshot_library.formats.humaniq_record import KEYS, Remembered, Source, record_of, told_of
from fewshot_library.formats.react_text import Told, compose_as_humaniq, parse

FIELDS = ("Question", "Dataset", "Action_Sequence", "One_Shot")


def read(path: Path) -> Iterator[TraceRecord | Remark]:
    """The demonstrations as approved traces of the HumanIQ authors; a record that is wrong stops the reading."""
    author = uuid5(KEYS, AUTHOR)
    for number, raw in enumerate(json_records(path), start=1):
        if reason := _fault(raw):
            raise FormatError(f"{path}, record {number}: {reason}")
        told = parse(_single_braces(raw["One_Shot"]))
        if told.final_answer is None:
            raise FormatError(f'{path}, record {number}: the text has no "Final Answer:"')
        sequence = raw["Action_Sequence"]
        # Some published sequences are not those of their texts: the text is followed, the sequence remembered.
        remembered: dict[str, Any] = {} if sequence == _sequence(told) else {"action_sequence": sequence}
        if _names(sequence) != _names(_sequence(told)):
            said = f"its Action_Sequence names {_listed(sequence)}, its text {_listed(_sequence(told))}"
            yield Remark(f"record {number}", f"{said}; the text was followed")
        source = Source(raw["Dataset"], raw["Question"].strip(), raw["One_Shot"], remembered)
        record = record_of(told, source, {"author_id": author, "status": "approved"})
        record.people = {author: AUTHOR}
        yield record


def _fault(raw: Any) -> str | None:
    if not isinstance(raw, dict) or not all(isinstance(raw.get(name), str) for name in FIELDS):
        return f"a demonstration has {', '.join(FIELDS)}, each a text"
    if unknown := sorted(raw.keys() - set(FIELDS)):
        return f"it has an unknown field {unknown[0]!r}"
    if empty := [name for name in ("Question", "Dataset") if not raw[name].strip()]:
        return f"its {empty[0]!r} is empty"
    return unstorable(raw)


def _single_braces(text: str) -> str:
    """The text as str.format would give it; one whose braces are not doubled is taken as it is."""
    rest = text.replace("{{", "").replace("}}", "")
    if "{" in rest or "}" in rest:
        return text
    return text.replace("{{", "{").replace("}}", "}")


def _sequence(told: Told) -> str:
    return "".join(f"\t{turn.action}" for turn in told.turns if turn.action is not None)


def _names(sequence: str) -> list[str]:
    return [name.strip() for name in sequence.split("\t") if name.strip()]


def _listed(sequence: str) -> str:
    return ", ".join(_names(sequence)) or "no tool"


def _write(export: Export, stream: TextIO) -> Losses:
    """Write the records as a library file; what does not come back as it was is left out with the reason."""
    losses = Losses()
    stream.write("[")
    for record in export.records:
        whole = told_of(record)
        told = whole.stripped()
        text = compose_as_humaniq(told).replace("{", "{{").replace("}", "}}")
        sequence = Remembered.of(record.trace).action_sequence
        written = {
            "Question": record.question.text,
            "Dataset": record.question.dataset or record.project.name,
            "Action_Sequence": _sequence(told) if sequence is None else sequence,
            "One_Shot": text,
        }
        if reason := misread(record, told, parse(_single_braces(text))) or _fault(written):
            losses.refused.append(Refused(f"trace {record.trace.id}", f"in this format {reason}"))
            continue
        losses.lost += not_kept(record, whole)
        stream.write((",\n" if losses.written else "\n") + json.dumps(written, ensure_ascii=False, indent=1))
        losses.written += 1
    stream.write("\n]\n")
    return losses


HUMANIQ = Format(
    "humaniq",
    "HumanIQ's demonstrations as marked text",
    lambda head: "[].One_Shot" in head.keys,
    read,
    in_text(_write),
)
