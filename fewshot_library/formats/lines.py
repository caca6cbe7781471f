"""Files of one JSON value a line, as they are written; what each line says is told by its format."""

import json
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO, TextIO

from db.trace_record import TraceRecord
from fewshot_library.formats.export import TraceExport
from fewshot_library.formats.format import ExportLosses, RefusedRecord, text_writer


class UnsupportedTrace(Exception):
    """The format cannot tell this trace; the message says why."""


RecordEncoder = Callable[[TraceRecord, TraceExport], tuple[Any, Iterable[str]]]
"""A trace's value and what of the trace it has no place for, once for each time."""


def json_lines_writer(tell: RecordEncoder) -> Callable[[TraceExport, BinaryIO], ExportLosses]:
    """A writer of one line a trace."""

    def write(export: TraceExport, stream: TextIO) -> ExportLosses:
        losses = ExportLosses()
        for record in export.records:
            try:
                value, lost = tell(record, export)
            except UnsupportedTrace as reason:
                losses.refused.append(RefusedRecord(f"trace {record.trace.id}", str(reason)))
                continue
            stream.write(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n")
            losses.lost.update(lost)
            losses.written += 1
        return losses

    return text_writer(write)
