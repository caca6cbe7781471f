"""Question files that spreadsheets write: separators, encodings, line ends, blank columns, workbooks."""

import gzip
import io
import zipfile
from contextlib import suppress
from datetime import date, datetime
from itertools import product
from pathlib import Path

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.db.questions.question_record import QuestionRecord
from showhow.evaluation.datasets import open_question_file
from showhow.evaluation.scoring.prediction_files import read_gold
from showhow.worlds.folder import WorldError
from showhow.worlds.input_files import MalformedFile

ROWS = [
    ["id", "question", "answer"],
    ["1", "Who founded it, and when; or |?", "Ida"],
    ["2", "Où est le café ?", "1790"],
]
READ = [("1", "Who founded it, and when; or |?", "Ida"), ("2", "Où est le café ?", "1790")]


def read(file: Path) -> list[tuple[str | None, str, str | None]]:
    """The questions of a file, all of which can be read."""
    records = list(open_question_file(file))
    assert all(isinstance(record, QuestionRecord) for record in records)
    return [
        (record.source_id, record.text, record.gold_answers[0]["text"] if record.gold_answers else None)
        for record in records
        if isinstance(record, QuestionRecord)
    ]


def lay_out(rows: list[list[str]], delimiter: str, end: str = "\r\n") -> str:
    """The rows as a spreadsheet writes them, with quotes where a cell needs them."""

    def quote(cell: str) -> str:
        return '"' + cell.replace('"', '""') + '"' if delimiter in cell or '"' in cell else cell

    return "".join(delimiter.join(map(quote, row)) + end for row in rows)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
def test_a_table_is_read_whatever_separates_its_cells_and_lines(tmp_path, encoding):
    names = ("q.csv", "q.tsv", "Unicode text.txt", "q.csv.gz")
    for delimiter, end, name in product(",;\t|", ("\r\n", "\n", "\r"), names):
        content = ("\ufeff" * (encoding == "utf-16-be") + lay_out(ROWS, delimiter, end)).encode(encoding)
        file = tmp_path / name
        file.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        assert read(file) == READ, (delimiter, end, name)


def test_a_line_that_states_the_separator_is_no_row_and_its_separator_holds(tmp_path):
    file = tmp_path / "q.csv"
    for delimiter in ";^~":
        file.write_text(f"sep={delimiter}\r\n" + lay_out(ROWS, delimiter), "utf-8-sig")
        assert read(file) == READ
    file.write_text("SEP=;\nid;question;answer\n1;Who?;Ada\n2;x\n", "utf-8")
    assert [record.place for record in open_question_file(file) if not isinstance(record, QuestionRecord)] == ["line 4"]


def test_blank_rows_and_columns_are_none_and_what_stands_in_a_column_without_a_name_is_kept(tmp_path):
    file = tmp_path / "q.csv"
    file.write_text(
        ",\u200bQuestion\xa0,Answer ,ID,,\n0,Who?,Ada,1,,\n,,,,,\n\n1,When?,1790,2,,later\n2,Why?,no,3,,,,\n",
        "utf-8-sig",
    )
    assert read(file) == [("1", "Who?", "Ada"), ("2", "When?", "1790"), ("3", "Why?", "no")]
    details = [record.details for record in open_question_file(file).iter_records()]
    assert details == [{"column 1": "0"}, {"column 1": "1", "column 6": "later"}, {"column 1": "2"}]


def test_a_row_in_another_encoding_is_told_at_its_place_and_the_others_are_read(tmp_path):
    file = tmp_path / "q.csv"
    file.write_bytes("question,answer\nWho?,Ada\nOù?,là\nWhen?,1790\n".encode("cp1252"))
    survey = open_question_file(file).survey()
    assert (survey.questions, [(unread.first.place, unread.count) for unread in survey.unread.values()]) == (
        2,
        [("line 3", 1)],
    )
    assert "it is not UTF-8; save the table as CSV in UTF-8" in survey.unread
    file.write_bytes("question,réponse\nWho?,Ada\n".encode("cp1252"))
    with pytest.raises(MalformedFile, match="line 1: it is not UTF-8"):
        open_question_file(file).survey()


def save_workbook(file: Path, **sheets: list[list[object]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(file)
    return file


def test_every_sheet_of_a_workbook_with_questions_is_read_with_its_values_as_texts(tmp_path):
    header = ["Question", "Answer", None, "ID"]
    file = save_workbook(
        tmp_path / "q.xlsx",
        about=[["This file", "is ours"]],
        train=[
            [],
            header,
            ["When?", datetime.fromisoformat("1990-05-01"), None, 1],
            [None, None],
            ["How many?", 7.0, None, 2.0],
        ],
        test=[header, ["Is it?", True, None, "x"], ["Which day?", date(1900, 2, 1)], ["How much?", 0.5]],
    )
    expected = [("1", "When?", "1990-05-01"), ("2", "How many?", "7"), ("x", "Is it?", "yes")]
    expected += [(None, "Which day?", "1900-02-01"), (None, "How much?", "0.5")]
    assert read(file) == expected
    assert open_question_file(file).form.name == "csv"
    assert next((row.fields["id"], row.fields["gold"][0]["text"]) for row in read_gold(file)) == ("1", "1990-05-01")
    with pytest.raises(MalformedFile, match="no column is called question or text; there are 'frage', 'antwort'"):
        open_question_file(save_workbook(tmp_path / "other.xlsx", a=[["Frage", "Antwort"]])).survey()


def test_a_workbook_that_expands_or_claims_too_much_or_is_damaged_is_refused(tmp_path):
    whole = save_workbook(tmp_path / "q.xlsx", q=[["question", "answer"], ["Who?", "Ada"]]).read_bytes()

    def rewrite(name: str, content: str) -> Path:
        file, made = tmp_path / "made.xlsx", io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(whole)) as source, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as target:
            for entry in source.infolist():
                target.writestr(entry.filename, content if entry.filename == name else source.read(entry))
        file.write_bytes(made.getvalue())
        return file

    sheet = "xl/worksheets/sheet1.xml"
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    cell = '<c r="{0}" t="inlineStr"><is><t>{1}</t></is></c>'
    header = f'<row r="1">{cell.format("A1", "question")}</row>'
    rows = "".join(f'<row r="{n}">{cell.format(f"XFD{n}", "x")}</row>' for n in range(2, 500))
    wide = f"<worksheet {space}><sheetData>{header}{rows}</sheetData></worksheet>"
    long = f"<worksheet {space}><sheetData>{header}</sheetData>{' ' * (80 << 20)}</worksheet>"
    for content in (wide, long):
        with pytest.raises(MalformedFile, match="it expands to more than"):
            open_question_file(rewrite(sheet, content)).survey()
    claimed = f'<worksheet {space}><dimension ref="A1:XFD1048576"/><sheetData>{header}<row r="2">'
    file = rewrite(sheet, f"{claimed}{cell.format('A2', 'Who?')}</row></sheetData></worksheet>")
    assert read(file) == [(None, "Who?", None)]
    for damaged in (whole[:44], whole[: len(whole) // 2], b"PK\x03\x04" + bytes(40)):
        file.write_bytes(damaged)
        with pytest.raises(MalformedFile, match="it cannot be read as an Excel workbook"):
            open_question_file(file).survey()
    file.write_bytes(rewrite(sheet, "<worksheet").read_bytes())
    with pytest.raises(MalformedFile, match="it cannot be read as an Excel workbook"):
        open_question_file(file).survey()
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500))
    with pytest.raises(MalformedFile, match="an older Excel; save it as"):
        open_question_file(tmp_path / "old.xls")


@given(st.binary(max_size=60), st.sampled_from(["q.xlsx", "q.parquet", "q.tsv", "q.txt"]), st.sampled_from(range(6)))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content, name, start):
    beginnings = (b"", b"PK\x03\x04", b"PAR1", b"\xff\xfe", b"sep=;\n", b"question\tanswer\n")
    file = tmp_path_factory.mktemp("any") / name
    file.write_bytes(beginnings[start] + content)
    with suppress(WorldError):
        open_question_file(file).survey()
