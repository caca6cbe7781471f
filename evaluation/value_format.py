"""Formats values as text: seconds, tokens and money for display; and tables as CSV, Excel, JSON, Parquet and LaTeX.

An unknown value is shown as "unknown", and is an empty cell of a table. A spreadsheet program runs a cell that begins
like a formula.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, BinaryIO

# Full-width signs are read like the plain ones, and marks without width are passed over.
_BEGINNING = r"[\ufeff\u200b\u200e\u200f\u2060]*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
_FORMULA = re.compile(rf"'*{_BEGINNING}")
_NEUTRALIZED = re.compile(rf"'+{_BEGINNING}")


def format_seconds(seconds: float) -> str:
    """Format seconds; below 0.01 s as milliseconds."""
    if 0 < seconds < 0.01:
        return f"{seconds * 1000:.1f} ms"
    return f"{seconds:.2f} s" if seconds < 100 else f"{seconds:,.0f} s"


def format_tokens(input_count: int | None, output_count: int | None) -> str:
    """Format the sum of input and output tokens."""
    return (
        "unknown tokens"
        if input_count is None or output_count is None
        else format_count(input_count + output_count, "token")
    )


def format_money(cost: float | None) -> str:
    """Format US dollars with a suitable number of digits."""
    if cost is None:
        return "cost unknown"
    if 0 < cost < 0.0001:
        return "under $0.0001"
    return f"${cost:,.4f}" if cost < 1 else f"${cost:,.2f}"


def format_cost(cost: float | None, bound: float | None) -> str:
    """Format US dollars as reported, and the most that they can be where that is more or nothing else is known."""
    if bound is None or bound == cost:
        return format_money(cost)
    reported = "cost unknown" if cost is None else f"{format_money(cost)} reported"
    return f"{reported}, at most {format_money(bound)}"


def format_p_value(p_value: float) -> str:
    """Format a p value with three decimals; below 0.001 only that."""
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def format_count(count: int, noun: str) -> str:
    """Format a count with its noun: 1 token, 2,000 tokens."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def neutralize_cell(value: Any) -> Any:
    """Put an apostrophe before text that begins like a formula; other values are returned unchanged."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def restore_cell(text: str) -> str:
    """Return the text as it was before `neutralize_cell`."""
    return text[1:] if _NEUTRALIZED.match(text) else text


ColumnTypes = Mapping[str, type]
"""The columns of a table in order, each with the type of its values: str, int, float or bool; any value may be None."""
TableRow = Mapping[str, Any]
PARQUET_BATCH_SIZE = 10_000


def write_csv(columns: ColumnTypes, rows: Iterable[TableRow], stream: BinaryIO) -> None:
    """Write a table as CSV in UTF-8; an unknown value is an empty cell."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    try:
        writer = csv.writer(text)
        writer.writerow(columns)
        writer.writerows([neutralize_cell(row[name]) for name in columns] for row in rows)
    finally:
        # Otherwise the wrapper would close the caller's file.
        text.detach()


def write_json(columns: ColumnTypes, rows: Iterable[TableRow], stream: BinaryIO) -> None:
    """Write a table as a JSON list with an object for each row."""
    separator = b"[\n"
    for row in rows:
        value = {name: row[name] for name in columns}
        stream.write(separator + json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
        separator = b",\n"
    stream.write(b"[]\n" if separator == b"[\n" else b"\n]\n")


def write_parquet(columns: ColumnTypes, rows: Iterable[TableRow], stream: BinaryIO) -> None:
    """Write a table as Parquet, with typed columns also where all values are unknown."""
    # Loads in a third of a second, and most users of this module format a number.
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    schema = pa.schema([(name, types[kind]) for name, kind in columns.items()])
    with pq.ParquetWriter(stream, schema) as writer:
        remaining = iter(rows)
        while batch := list(islice(remaining, PARQUET_BATCH_SIZE)):
            writer.write_table(pa.Table.from_pylist([dict(row) for row in batch], schema=schema))


MAX_EXCEL_CHARACTERS = 32_767
"""The characters of a cell of Excel; a longer text is cut there."""


def write_excel(columns: ColumnTypes, rows: Iterable[TableRow], stream: BinaryIO) -> None:
    """Write a table as a workbook of Excel; no text is a formula, and signs that Excel does not take are left out."""
    # As above: most users of this module format a number.
    from openpyxl import Workbook  # noqa: PLC0415
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE  # noqa: PLC0415

    book = Workbook(write_only=True)
    sheet = book.create_sheet()
    sheet.append(list(columns))
    for row in rows:
        values = (neutralize_cell(row[name]) for name in columns)
        sheet.append(
            [
                ILLEGAL_CHARACTERS_RE.sub("", value)[:MAX_EXCEL_CHARACTERS] if isinstance(value, str) else value
                for value in values
            ]
        )
    book.save(stream)


TABLE_WRITERS: dict[str, Callable[[ColumnTypes, Iterable[TableRow], BinaryIO], None]] = {
    "csv": write_csv,
    "xlsx": write_excel,
    "json": write_json,
    "parquet": write_parquet,
}
"""The formats of exported tables by name."""

_LATEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
}


def escape_latex(text: str) -> str:
    """Escape a text for LaTeX, on one line; LaTeX would join several hyphens to a dash."""
    line = " ".join(text.split())
    return re.sub("-(?=-)", "-{}", "".join(_LATEX.get(sign, sign) for sign in line))


def format_latex_table(columns: Mapping[str, str], rows: Sequence[Sequence[str]], caption: str, note: str = "") -> str:
    """Format a table for LaTeX with the package booktabs.

    `columns` are headings, each with its alignment: l, c or r. Headings, cells and texts are LaTeX already.
    """
    lines = [
        r"% \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{caption}}}",
        r"\footnotesize\setlength{\tabcolsep}{3pt}",
        rf"\begin{{tabular}}{{{''.join(columns.values())}}}",
        r"\toprule",
        " & ".join(columns) + r" \\",
        r"\midrule",
        *(" & ".join(row) + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        *([rf"\par\smallskip {note}\par"] if note else []),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"
