"""Workbooks that others made to be large, slow or broken: each is read, or refused in one sentence."""

import io
import re
import zipfile
from contextlib import suppress
from pathlib import Path

import openpyxl
import pytest

from showhow.guard.input_bounds import InputBoundExceeded
from showhow.guard.workbook_input import UnreadableWorkbook, iterate_sheets

SHEET, BOOK, STRINGS = "xl/worksheets/sheet1.xml", "xl/workbook.xml", "xl/sharedStrings.xml"
STYLES = "xl/styles.xml"
TYPES = "[Content_Types].xml"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
STRINGS_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"


def write_workbook(folder: Path, *changes: tuple[str, str, str]) -> Path:
    """A workbook with one question and a long text that it does not use, in whose parts patterns are replaced."""
    book, stream, file = openpyxl.Workbook(), io.BytesIO(), folder / "made.xlsx"
    for row in (["question", "answer"], ["Who?", "Ada"]):
        book.active.append(row)
    book.save(stream)
    with zipfile.ZipFile(stream) as whole, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name in whole.namelist():
            text = whole.read(name).decode()
            for part, pattern, replacement in changes:
                assert part != name or re.search(pattern, text), (name, pattern)
                text = re.sub(pattern, lambda _, new=replacement: new, text, count=1) if part == name else text
            made.writestr(name, text)
        made.writestr(STRINGS, f"<sst xmlns='{MAIN}'><si><t>{'q' * 1_000_000}</t></si></sst>")
    return file


def read(file: Path) -> list[list[str]]:
    with file.open("rb") as stream:
        return [row for _, rows in iterate_sheets(stream) for row in rows]


def test_an_ordinary_workbook_is_read(tmp_path: Path):
    assert read(write_workbook(tmp_path)) == [["question", "answer"], ["Who?", "Ada"]]


LAST_ROW = r"</sheetData>"
GAP = '<row r="99999999999"><c r="A99999999999"><v>1</v></c></row></sheetData>'
FORMATS = f"<cellXfs>{'<xf/>' * 1_000_000}</cellXfs></styleSheet>"
SHARED = "".join(f'<row r="{number}"><c r="A{number}" t="s"><v>0</v></c></row>' for number in range(3, 100))
WIDE = "".join(f'<row r="{number}"><c r="ZZZ{number}"><v>1</v></c></row>' for number in range(3, 100))
SHEETS = "".join(f'<sheet name="S{number}" sheetId="{number}" r:id="rId1"/>' for number in range(2, 30_000))


@pytest.mark.parametrize(
    "changes",
    [
        [(SHEET, LAST_ROW, GAP)],
        [
            (SHEET, LAST_ROW, f"{SHARED}</sheetData>"),
            (TYPES, "</Types>", f'<Override PartName="/{STRINGS}" ContentType="{STRINGS_TYPE}"/></Types>'),
        ],
        [(SHEET, LAST_ROW, f"{WIDE}</sheetData>")],
        [(STYLES, "</styleSheet>", FORMATS)],
        [(BOOK, "</sheets>", f"{SHEETS}</sheets>")],
    ],
    ids=["rows between two numbers", "one text in many cells", "cells far to the right", "many formats", "many sheets"],
)
def test_a_small_workbook_that_expands_is_refused_with_its_bound(tmp_path: Path, changes: list[tuple[str, str, str]]):
    with pytest.raises(InputBoundExceeded, match="expands to more than 64 MB"):
        read(write_workbook(tmp_path, *changes))


@pytest.mark.parametrize(
    "cell",
    [
        f"<v>{'9' * 100_000}</v>",
        "<v>no number</v>",
        "<is><t>&nowhere;</t></is>",
    ],
)
@pytest.mark.parametrize("kind", ["n", "d", "s", "inlineStr"])
def test_a_cell_that_cannot_be_read_is_told_in_one_short_sentence(tmp_path: Path, cell: str, kind: str):
    file = write_workbook(tmp_path, (SHEET, LAST_ROW, f'<row r="3"><c r="A3" t="{kind}">{cell}</c></row></sheetData>'))
    with suppress(UnreadableWorkbook):
        read(file)
        return
    with pytest.raises(UnreadableWorkbook, match=r"^it cannot be read as an Excel workbook \(.{,250}\)$"):
        read(file)
