"""Parquet files that others made, row by row within bounds: a dictionary's value may stand in any number of rows."""

import os
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from showhow.guard.input_bounds import (
    HINT,
    MEGABYTE,
    ExpansionBudget,
    InputBoundExceeded,
    check_record_size,
    is_unbounded,
)

MAX_COLUMNS = 10_000
_BATCH_ROWS = 100
_MAX_BATCH_BYTES = 8 * MEGABYTE
_MAX_COLUMN_MEGABYTES = 256
"""What the values of one column of a row group may take, which are unpacked page by page."""
_BYTES_OF_VALUE = 50
_BYTES_OF_NULL = 8
"""A place in a list; the file itself takes nothing for millions of them."""
_BYTES_OF_OBJECT = 200


def open_parquet(stream: BinaryIO) -> pq.ParquetFile:
    """Open a file whose texts stay in their dictionaries; InputBoundExceeded for one that is too wide.

    Arrow itself refuses columns that are nested more than 100 levels deep.
    """
    # Its other pools reserve more address space than a bounded process has.
    pa.set_memory_pool(pa.system_memory_pool())
    metadata = pq.ParquetFile(stream).metadata
    columns = [metadata.schema.column(place) for place in range(len(metadata.schema))]
    if len(columns) > MAX_COLUMNS:
        raise InputBoundExceeded(f"it has {len(columns):,} columns, more than the bound of {MAX_COLUMNS:,}")
    for group in range(metadata.num_row_groups):
        for place in range(len(columns)):
            size = metadata.row_group(group).column(place).total_uncompressed_size
            if size > _MAX_COLUMN_MEGABYTES * MEGABYTE and not is_unbounded():
                raise InputBoundExceeded(
                    f"its column {columns[place].path!r} has {size / MEGABYTE:,.0f} MB in one row group, more than the "
                    f"bound of {_MAX_COLUMN_MEGABYTES} MB; write it with smaller row groups, or {HINT}"
                )
    texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
    return pq.ParquetFile(stream, metadata=metadata, read_dictionary=texts, pre_buffer=False)


def iterate_rows(file: pq.ParquetFile, stream: BinaryIO) -> Iterator[dict[str, Any]]:
    """Yield the rows in order; InputBoundExceeded once they or one of them expand beyond the bound.

    ArrowInvalid for a row that cannot be read.
    """
    budget = ExpansionBudget(os.fstat(stream.fileno()).st_size)
    for batch in file.iter_batches(batch_size=_BATCH_ROWS, use_threads=False):
        size = _expanded_bytes(batch)
        budget.spend(size)
        if size <= _MAX_BATCH_BYTES:
            yield from _to_rows(batch)
            continue
        for number in range(batch.num_rows):
            row = batch.slice(number, 1)
            check_record_size(_expanded_bytes(row))
            yield from _to_rows(row)


def _to_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows; ArrowInvalid for values that Python does not have: days after 9999, texts in another code."""
    try:
        rows: list[dict[str, Any]] = batch.to_pylist()
    except (ValueError, ArithmeticError, LookupError) as error:
        raise pa.ArrowInvalid(f"a value cannot be read ({error})") from error
    return rows


def _expanded_bytes(data: Any) -> Any:
    """The memory that the values take as Python objects, about."""
    if isinstance(data, pa.RecordBatch):
        return sum(map(_expanded_bytes, data.columns)) + _BYTES_OF_OBJECT * data.num_rows
    return _BYTES_OF_NULL * data.null_count + _filled_bytes(data, len(data) - data.null_count)


def _filled_bytes(data: Any, filled: int) -> Any:
    # Compiled functions for every type, which take long to load and are needed only once a file is read.
    import pyarrow.compute as pc  # noqa: PLC0415

    if pa.types.is_dictionary(data.type):
        lengths = pc.binary_length(data.dictionary)
        return _BYTES_OF_VALUE * filled + (pc.sum(pc.cast(lengths.take(data.indices), pa.int64())).as_py() or 0)
    if pa.types.is_struct(data.type):
        return _BYTES_OF_OBJECT * filled + sum(map(_expanded_bytes, data.flatten()))
    if pa.types.is_nested(data.type):
        return _BYTES_OF_VALUE * filled + _expanded_bytes(data.flatten())
    if pa.types.is_string(data.type) or pa.types.is_binary(data.type) or pa.types.is_large_string(data.type):
        return _BYTES_OF_VALUE * filled + (pc.sum(pc.cast(pc.binary_length(data), pa.int64())).as_py() or 0)
    return _BYTES_OF_VALUE * filled
