"""The layouts of question files: JSON Lines, a JSON document, a table of text, an Excel workbook, or Parquet.

A layout is recognized by the content, and by the name only where the content is no table. All but a JSON object are
read record by record, as often as they are iterated, and never held in memory.
"""

import csv
import io
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from showhow.evaluation.datasets.question_documents import (
    find_list_name,
    has_records_by_id,
    iter_records_by_id,
    list_questions,
    list_rows,
    name_classes,
    read_class_labels,
)
from showhow.evaluation.datasets.record import (
    ALTERNATIVES_NAMES,
    ANSWER_NAMES,
    TEXT_NAMES,
    describe_type,
    parse_cells,
    standardize_name,
)
from showhow.guard.files import open_regular
from showhow.guard.input_bounds import MAX_LINE_BYTES, InputBoundExceeded
from showhow.guard.workbook_input import MAGIC, UnreadableWorkbook, iterate_sheets
from showhow.worlds.input_files import (
    PARQUET_MAGIC,
    MalformedFile,
    decode_line,
    iter_json_list,
    iter_parquet_rows,
    iter_raw_lines,
    open_bytes,
    parse_json,
    read_parquet_info,
    read_text_file,
    reading,
)
from showhow.worlds.terms import strip_marks

SAMPLE_SIZE = 20
"""The records that a format is detected from."""
MAX_TITLE_ROWS = 20
"""The rows above a header, such as a title, that are passed over."""
MAX_SHOWN_FIELDS = 12
MAX_CELL_CHARACTERS = 16 * 1024 * 1024
_PEEK_BYTES = 4096
_DELIMITERS = ",;\t|"
_STATED_DELIMITER = re.compile(r"sep=(.)\s*", re.IGNORECASE)
"""The first line by which Excel is told what separates the cells."""
_KEPT_BYTE = re.compile("[\udc80-\udcff]")
_OTHER_ENCODING = "it is not UTF-8; save the table as CSV in UTF-8"
_TABLE_SUFFIXES = (".csv", ".tsv", ".tab")


ColumnNames = Mapping[str, str]
"""What columns of a file mean, such as {"Frage": "question"}: those whose names say it need no entry."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One record of a file as it was parsed, or the reason why it is none."""

    position: int
    value: Any = None
    problem: str | None = None


class Layout(ABC):
    """The records of a file, whatever their format."""

    is_line_based = True
    is_table = False
    """Whether a record has cells, which are texts."""

    def __init__(self, file: Path, columns: ColumnNames | None = None) -> None:
        self.file = file
        self.columns = columns or {}

    @abstractmethod
    def iter_entries(self) -> Iterator[Entry]:
        """Read the file from its beginning."""

    def sample(self, size: int | None = SAMPLE_SIZE) -> list[dict[str, Any]]:
        """The first records that are JSON objects, or all of them."""
        objects = (entry.value for entry in self.iter_entries() if isinstance(entry.value, dict))
        return list(islice(objects, size))


class _JsonLines(Layout):
    def iter_entries(self) -> Iterator[Entry]:
        for number, raw in iter_raw_lines(self.file):
            if raw.strip():
                yield self._parse_line(number, raw)

    def _parse_line(self, number: int, raw: bytes) -> Entry:
        try:
            return Entry(number, parse_json(decode_line(raw, self.file, number), self.file, number))
        except MalformedFile as error:
            return Entry(number, problem=error.reason)


class _JsonList(Layout):
    """A list, which is read element by element."""

    is_line_based = False

    def iter_entries(self) -> Iterator[Entry]:
        return (Entry(number, value) for number, (_, value) in enumerate(iter_json_list(self.file), 1))


class _JsonObject(Layout):
    """An object with a list of questions, or of articles with questions; it is parsed once and held in memory."""

    is_line_based = False

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        document = parse_json(read_text_file(file), file, None)
        labels = read_class_labels(document)
        while (name := find_list_name(document)) is not None:
            document = document[name]
        if (rows := list_rows(document)) is not None:
            document = rows
        elif has_records_by_id(document):
            document = list(iter_records_by_id(document))
        if not isinstance(document, list):
            seen = f"an object with {describe_fields([document])}" if isinstance(document, dict) else "no list"
            raise MalformedFile(file, None, f"a list of questions is required, or an object with one; it is {seen}")
        self._records: list[Any] = [name_classes(record, labels) for record in document]

    def iter_entries(self) -> Iterator[Entry]:
        records = (question for record in self._records for question in list_questions(record))
        return (Entry(number, value) for number, value in enumerate(records, 1))


class _Table(Layout):
    """Rows of cells below a header with a column for questions."""

    is_table = True

    def _parse_header(self, row: list[str], line: int | None) -> list[str]:
        names = list_columns(row, self.columns)
        if not _has_questions(names):
            shown = f"there are {', '.join(map(repr, names[:MAX_SHOWN_FIELDS]))}" if names else "there is no cell"
            raise MalformedFile(self.file, line, f"no column is called {' or '.join(TEXT_NAMES[:2])}; {shown}")
        if len(set(names)) != len(names):
            raise MalformedFile(self.file, line, "two columns have the same name")
        return names


class _Renamed(Layout):
    """Records whose fields have other names in the file."""

    def __init__(self, layout: Layout, columns: ColumnNames) -> None:
        super().__init__(layout.file, columns)
        self._layout = layout
        self.is_line_based = layout.is_line_based

    def iter_entries(self) -> Iterator[Entry]:
        for entry in self._layout.iter_entries():
            value = entry.value
            if isinstance(value, dict):
                value = {_rename(name, self.columns): field for name, field in value.items()}
            yield replace(entry, value=value)


_FIELDS = {"answer": ANSWER_NAMES[0], "alternatives": ALTERNATIVES_NAMES[0]}
"""The field of a meaning that has several, the one that is read first."""


def _rename(name: str, columns: ColumnNames) -> str:
    """The meaning of a column; one that has the name of a chosen one is put aside."""
    given = {standardize_name(column): _FIELDS.get(meaning, meaning) for column, meaning in columns.items()}
    if meaning := given.get(standardize_name(name)):
        return meaning
    return f"{name} (in the file)" if name in given.values() else name


def list_columns(cells: Sequence[str], columns: ColumnNames | None = None) -> list[str]:
    """The names of a header's columns in lower case, or what they mean; one without a name has its number."""
    names = (standardize_name(strip_marks(cell)) or f"column {number}" for number, cell in enumerate(cells, 1))
    return [_rename(name, columns or {}) for name in names]


def list_file_columns(file: Path) -> list[str]:
    """The names of the columns of a table, or of the fields of the first records, whatever they mean."""
    start = _peek(file)
    if start.startswith(MAGIC):
        with open_regular(file) as stream:
            for _, rows in iterate_sheets(stream):
                first = list(map(_strip_end, islice((row for row in rows if any(map(str.strip, row))), MAX_TITLE_ROWS)))
                if first:
                    return list_columns(first[find_header(first, {})])
        return []
    if start.startswith(b"PAR1"):
        records = _Parquet(file).sample()
    elif start[:1] in (b"[", b"{"):
        records = _open_json(file).sample()
    else:
        delimiter, skipped = _choose_delimiter(file, {})
        header_line = next((line for line in islice(_iter_text(file), skipped, None) if line.strip()), "")
        return list_columns(next(csv.reader([header_line], delimiter=delimiter), []))
    return list(dict.fromkeys(name for record in records for name in record))


def find_header(rows: Sequence[Sequence[str]], columns: ColumnNames) -> int:
    """The place of the first row with a column for questions; 0 if there is none."""
    return next((place for place, row in enumerate(rows) if _has_questions(list_columns(row, columns))), 0)


def _has_questions(names: Sequence[str]) -> bool:
    return any(name in names for name in TEXT_NAMES)


def _parse_row(header: list[str], row: list[str], position: int) -> Entry:
    # Spreadsheets write blank cells up to the widest row.
    if not any(cell.strip() for cell in row[len(header) :]):
        row = row[: len(header)]
    if len(row) != len(header):
        return Entry(position, problem=f"{len(row)} cells under {len(header)} columns")
    return Entry(position, parse_cells(header, row))


class _TextTable(_Table):
    """CSV and its relatives: separated by commas, semicolons, tabs or bars, in UTF-8 or UTF-16."""

    def iter_entries(self) -> Iterator[Entry]:
        csv.field_size_limit(MAX_CELL_CHARACTERS)
        delimiter, skipped = _choose_delimiter(self.file, self.columns)
        reader = csv.reader(islice(_iter_text(self.file), skipped, None), delimiter=delimiter, strict=True)
        header: list[str] | None = None
        while True:
            try:
                row = next(reader, None)
            except csv.Error as error:
                yield Entry(skipped + reader.line_num, problem=f"invalid CSV: {error}")
                continue
            position = skipped + reader.line_num
            if row is None:
                return
            if not any(cell.strip() for cell in row):
                continue
            is_utf8 = _is_utf8("".join(row))
            if header is None:
                if not is_utf8:
                    raise MalformedFile(self.file, position, _OTHER_ENCODING)
                header = self._parse_header(row, position)
            else:
                yield _parse_row(header, row, position) if is_utf8 else Entry(position, problem=_OTHER_ENCODING)


def _is_utf8(text: str) -> bool:
    """Whether no byte was kept in place of a character."""
    return text.isascii() or not _KEPT_BYTE.search(text)


def _choose_delimiter(file: Path, names: ColumnNames) -> tuple[str, int]:
    """What separates the cells, and the number of lines before the header: a title, or one that says the separator.

    The header is the first line that a separator gives a column for questions, and as many columns as possible.
    """
    lines = list(islice(_iter_text(file), MAX_TITLE_ROWS))
    if lines and (match := _STATED_DELIMITER.fullmatch(lines[0])):
        return match[1], 1

    def parse(line: str, sign: str) -> list[str]:
        return list_columns(next(csv.reader([line], delimiter=sign), []), names)

    filled = [number for number, line in enumerate(lines) if line.strip()]
    headers = (n for n in filled if any(_has_questions(parse(lines[n], sign)) for sign in _DELIMITERS))
    skipped = next(headers, filled[0] if filled else 0)
    columns = {sign: parse(lines[skipped] if lines else "", sign) for sign in _DELIMITERS}
    return max(columns, key=lambda sign: (_has_questions(columns[sign]), len(columns[sign]))), skipped


def _iter_text(file: Path) -> Iterator[str]:
    """The lines of a table, each with one line end, whatever those of the file are.

    A byte that is not UTF-8 is kept as half of a surrogate pair, so that the rest is read.
    """
    with open_bytes(file) as stream, reading(file):
        is_wide = stream.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff")
        encoding, errors = ("utf-16", "strict") if is_wide else ("utf-8-sig", "surrogateescape")
        text = io.TextIOWrapper(stream, encoding, errors, newline=None)
        number = 0
        while True:
            number += 1
            with reading(file, number):
                try:
                    line = text.readline(MAX_LINE_BYTES + 1)
                except UnicodeDecodeError as error:
                    raise MalformedFile(file, number, "it is not UTF-16") from error
            if len(line) > MAX_LINE_BYTES:
                raise MalformedFile(file, number, f"the line is longer than {MAX_LINE_BYTES // 2**20} MB")
            if not line:
                return
            yield line if line.endswith("\n") else f"{line}\n"


class _Workbook(_Table):
    """The sheets of an Excel workbook that have a column for questions."""

    is_line_based = False

    def iter_entries(self) -> Iterator[Entry]:
        position, names = 0, list[str]()
        try:
            with open_regular(self.file) as stream:
                for _, rows in iterate_sheets(stream):
                    filled = (row for row in rows if any(cell.strip() for cell in row))
                    # A title may stand above the header.
                    first = list(map(_strip_end, islice(filled, MAX_TITLE_ROWS)))
                    place = find_header(first, self.columns)
                    cells = first[place] if first else []
                    header = list_columns(cells, self.columns)
                    names += header
                    if not _has_questions(header):
                        continue
                    self._parse_header(cells, None)
                    for row in chain(first[place + 1 :], filled):
                        position += 1
                        yield _parse_row(header, row + [""] * (len(header) - len(row)), position)
        except (OSError, UnreadableWorkbook, InputBoundExceeded) as error:
            raise MalformedFile(self.file, None, str(error)) from error
        if not _has_questions(names):
            self._parse_header(names, None)


def _strip_end(row: list[str]) -> list[str]:
    filled = [number for number, cell in enumerate(row, 1) if cell.strip()]
    return row[: max(filled, default=0)]


class _Parquet(Layout):
    is_line_based = False

    def iter_entries(self) -> Iterator[Entry]:
        labels = read_class_labels(read_parquet_info(self.file))
        rows = (name_classes(row, labels) for row in iter_parquet_rows(self.file))
        return (Entry(number, row) for number, row in enumerate(rows, 1))


def describe_fields(sample: Sequence[Any]) -> str:
    """The fields of the first record with their types, for messages."""
    if not sample:
        return "no fields"
    names = [f"{name!r} ({describe_type(value)})" for name, value in islice(sample[0].items(), MAX_SHOWN_FIELDS)]
    return ", ".join(names) + (" and more" if len(sample[0]) > MAX_SHOWN_FIELDS else "")


def open_layout(file: Path, *, is_text_table: bool = False, columns: ColumnNames | None = None) -> Layout:
    """The layout of a file, by its content; `is_text_table` says that a text is a table whatever it begins with."""
    layout = open_table(file, is_text_table=is_text_table, columns=columns)
    if layout is not None and layout.is_table:
        return layout
    layout = layout or _open_json(file)
    return _Renamed(layout, columns) if columns else layout


def open_table(file: Path, *, is_text_table: bool = False, columns: ColumnNames | None = None) -> Layout | None:
    """The layout of a file of rows and columns, Parquet included; None for JSON.

    A text is a table if its name says so, as that of q.csv does, or if its first line has a column for questions.
    """
    start = _peek(file)
    if start.startswith(PARQUET_MAGIC):
        return _Parquet(file)
    if start.startswith(MAGIC):
        return _Workbook(file, columns)
    if start.startswith(b"\xd0\xcf\x11\xe0"):
        raise MalformedFile(file, None, "it is a workbook of an older Excel; save it as .xlsx or as CSV in UTF-8")
    is_named_so = file.name.removesuffix(".gz").lower().endswith(_TABLE_SUFFIXES)
    is_table = (
        is_text_table or is_named_so or (start[:1] not in (b"[", b"{") and _begins_with_header(file, columns or {}))
    )
    return _TextTable(file, columns) if is_table else None


def _begins_with_header(file: Path, names: ColumnNames) -> bool:
    delimiter, skipped = _choose_delimiter(file, names)
    *before, header = [*islice(_iter_text(file), skipped + 1), ""][: skipped + 1]
    if any(line.strip() and not _STATED_DELIMITER.fullmatch(line) for line in before):
        return False
    return len(header) > 1 and _has_questions(list_columns(next(csv.reader([header], delimiter=delimiter)), names))


def _open_json(file: Path) -> Layout:
    """JSON Lines, unless the file begins with a list, or with an object that holds one or takes several lines."""
    if _peek(file).startswith(b"["):
        return _JsonList(file)
    lines = _JsonLines(file)
    first, *others = list(islice(lines.iter_entries(), SAMPLE_SIZE)) or [Entry(1)]
    if isinstance(first.value, dict):
        holds_list = find_list_name(first.value) is not None and not others
        is_table = not others and list_rows(first.value) is not None
        is_question = any(name in first.value for name in TEXT_NAMES)
        holds_records = not others and has_records_by_id(first.value)
        return _JsonObject(file) if is_table or ((holds_list or holds_records) and not is_question) else lines
    # Objects follow a broken first line. In a document at most the last record is a line without a comma.
    objects = sum(isinstance(entry.value, dict) for entry in others)
    return lines if first.problem is None or objects > 1 or (others and objects == len(others)) else _JsonObject(file)


def _peek(file: Path) -> bytes:
    with open_bytes(file) as stream, reading(file):
        return stream.read(_PEEK_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()
