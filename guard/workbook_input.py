"""Excel workbooks (.xlsx) that others made, row by row within bounds: a few bytes may say that a row is very wide."""

import os
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from typing import Any, BinaryIO

from showhow.guard.input_bounds import MEGABYTE, ExpansionBudget, InputBoundExceeded

MAGIC = b"PK\x03\x04"
_BYTES_OF_CELL = 50
_BYTES_OF_ELEMENT = 100
_BYTES_OF_SHEET = 64 << 10
"""What opening a sheet costs, since any number of sheets may be the same part."""
_MAX_REASON = 200


class UnreadableWorkbook(ValueError):
    """A file is no workbook, or a damaged one; the message says why."""


def iterate_sheets(stream: BinaryIO) -> Iterator[tuple[str, Iterator[list[str]]]]:
    """The sheets that are not hidden, by name, with their rows as texts; read a sheet's rows before the next sheet.

    A formula has the value that Excel stored. InputBoundExceeded beyond the bounds of expansion.
    """
    # Few files are workbooks, and the library takes 0.2 s to load.
    import openpyxl  # noqa: PLC0415

    warnings.filterwarnings("ignore", module="openpyxl")
    budget = ExpansionBudget(os.fstat(stream.fileno()).st_size)
    with _describing_damage():
        _check_parts(stream)
        book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
        budget.spend(_BYTES_OF_SHEET * len(book.worksheets))
        for sheet in book.worksheets:
            if sheet.sheet_state != "visible":
                continue
            # What the sheet says about its size would be believed, and rows be filled up to it.
            sheet.reset_dimensions()
            yield sheet.title, _iterate_rows(sheet.iter_rows(values_only=True), budget)


def _check_parts(stream: BinaryIO) -> None:
    """InputBoundExceeded for parts that expand too far, or have more elements than the library may build objects of."""
    budget = ExpansionBudget(os.fstat(stream.fileno()).st_size)
    with zipfile.ZipFile(stream) as archive:
        budget.spend(sum(entry.file_size for entry in archive.infolist()))
        for entry in archive.infolist():
            with archive.open(entry) as part:
                while block := part.read(MEGABYTE):
                    budget.spend(_BYTES_OF_ELEMENT * block.count(b"<"))


def _iterate_rows(rows: Iterator[Any], budget: ExpansionBudget) -> Iterator[list[str]]:
    with _describing_damage():
        for row in rows:
            cells = list(map(_format_cell, row))
            # The rows between two numbers are made up, and many cells may share one long text.
            budget.spend(_BYTES_OF_CELL * (1 + len(cells)) + sum(map(len, cells)))
            yield cells


@contextmanager
def _describing_damage() -> Iterator[None]:
    """UnreadableWorkbook for what the library raises for parts that are missing, malformed or encrypted: anything."""
    try:
        yield
    except (InputBoundExceeded, MemoryError):
        raise
    except Exception as error:
        text = str(error)
        reason = text if len(text) <= _MAX_REASON else f"{text[:_MAX_REASON]}…"
        raise UnreadableWorkbook(f"it cannot be read as an Excel workbook ({reason})") from error


def _format_cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case float() if value.is_integer():
            return str(int(value))
        case datetime() if value.time() == time():
            return value.date().isoformat()
        case datetime() | date() | time():
            return value.isoformat()
    return str(value)
