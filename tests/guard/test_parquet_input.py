"""Parquet files of others: a value that Python does not have is refused in one sentence, and the others are read."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from showhow.fewshot_library.formats import read_traces
from showhow.fewshot_library.formats.format import FormatError
from showhow.guard.parquet_input import iterate_rows, open_parquet
from showhow.worlds.input_files import MalformedFile, iter_parquet_rows

ODD = {
    "a day after the year 9999": pa.array([2**31 - 1], pa.date32()),
    "a moment after the year 9999": pa.array([2**62], pa.timestamp("us")),
    "a moment in nanoseconds": pa.array([2**62 + 1], pa.timestamp("ns")),
    "an unknown time zone": pa.array([0], pa.timestamp("us", tz="Nowhere/None")),
    "no UTF-8": pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")]
    ),
    "a long duration": pa.array([2**62], pa.duration("s")),
    "a decimal": pa.array([10**70], pa.decimal256(76, 0)),
    "an extension": pa.array([b"x" * 16], pa.uuid()),
}


def write(file: Path, odd: Any) -> Path:
    message = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Ada"}]
    pq.write_table(pa.table({"question": ["Who?"], "messages": [message], "odd": odd}), file)
    return file


@pytest.mark.parametrize("kind", ODD)
def test_a_row_is_read_or_refused_in_one_sentence(tmp_path: Path, kind: str):
    file = write(tmp_path / "odd.parquet", ODD[kind])
    for read in (lambda: list(iter_parquet_rows(file)), lambda: list(read_traces(file))):
        try:
            assert read()
        except (MalformedFile, FormatError) as error:
            refusal = str(error)
        else:
            refusal = ""
        assert not refusal or "cannot be read as Parquet" in refusal
        assert "\n" not in refusal


def test_what_is_no_value_of_python_is_told(tmp_path: Path):
    file = write(tmp_path / "odd.parquet", ODD["no UTF-8"])
    with file.open("rb") as stream, pytest.raises(pa.ArrowInvalid, match="a value cannot be read"):
        list(iterate_rows(open_parquet(stream), stream))
