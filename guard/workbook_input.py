"""Excel workbooks (.xlsx) that others made, row by row within bounds: a few bytes may say that a row is very wide."""

import os
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any, BinaryIO

from guard.input_bounds import ExpansionBudget

MAGIC = b"PK\x03\x04"
_BYTES_OF_CELL = 50

_DAMAGES = (
    *(LookupError, TypeError, AttributeError, SyntaxError, RuntimeError),
    *(OSError, EOFError, zlib.error, OverflowError),
)
"""What the library raises for parts that are missing, malformed or encrypted; its XML errors are SyntaxErrors."""


class UnreadableWorkbook(ValueError):
    """A file is no workbook, or a damaged one; the message says why."""


def iterate_sheets(stream: BinaryIO) -> Iterator[tuple[str, Iterator[list[str]]]]:
    """The sheets by name, each with its rows as texts; read a sheet's rows before the next sheet.

    A formula has the value that Excel stored. InputBoundExceeded beyond the bounds of expansion.
    """
    # Few files are workbooks, and the library takes 0.2 s to load.
    import openpyxl  # noqa: PLC0415
    from openpyxl.utils.exceptions import InvalidFileException  # noqa: PLC0415

    warnings.filterwarnings("ignore", module="openpyxl")
    budget = ExpansionBudget(os.fstat(stream.fileno()).st_size)
    try:
        with zipfile.ZipFile(stream) as archive:
            budget.spend(sum(entry.file_size for entry in archive.infolist()))
        book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
        for sheet in book.worksheets:
            # What the sheet says about its size would be believed, and rows be filled up to it.
            sheet.reset_dimensions()
            yield sheet.title, _iterate_rows(sheet.iter_rows(values_only=True), budget)
    except (zipfile.BadZipFile, InvalidFileException, *_DAMAGES) as error:
        raise UnreadableWorkbook(f"it cannot be read as an Excel workbook ({error})") from error


def _iterate_rows(rows: Iterator[Any], budget: ExpansionBudget) -> Iterator[list[str]]:
    for row in rows:
        budget.spend(_BYTES_OF_CELL * len(row))
        yield list(map(_format_cell, row))


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
