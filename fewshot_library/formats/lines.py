"""Files of one JSON value a line, as they are written; what each line says is told by its format."""

import json
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO, TextIO

from db.record import TraceRecord
from fewshot_library.formats.export import Export
from fewshot_library.formats.format import Losses, Refused, in_text


class LeftOut(Exception):
    """The format cannot tell this trace; the message says why."""


Tell = Callable[[TraceRecord, Export], tuple[Any, Iterable[str]]]
"""A trace's value and what of the trace it has no place for, once for each time."""


def as_lines(tell: Tell) -> Callable[[Export, BinaryIO], Losses]:
    """A writer of one line a trace."""

    def write(export: Export, stream: TextIO) -> Losses:
        losses = Losses()
        for record in export.records:
            try:
                value, lost = tell(record, export)
            except LeftOut as reason:
                losses.refused.append(Refused(f"trace {record.trace.id}", str(reason)))
                continue
            stream.write(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n")
            losses.lost.update(lost)
            losses.written += 1
        return losses

    return in_text(write)
