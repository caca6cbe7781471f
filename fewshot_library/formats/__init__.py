"""Formats of trace files, read and written; a new one has a module here and a line in FORMATS."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from showhow.fewshot_library.formats.atif import ATIF
from showhow.fewshot_library.formats.conversations import CHATS
from showhow.fewshot_library.formats.format import (
    ExportLosses,
    FileHead,
    FormatError,
    ReadResult,
    TraceExport,
    TraceFormat,
    UnsupportedTrace,
    open_bytes,
    refuse_encoding,
)
from showhow.fewshot_library.formats.humaniq import HUMANIQ, HUMANIQ_RUNS
from showhow.fewshot_library.formats.inspect_log import INSPECT
from showhow.fewshot_library.formats.langchain import LANGCHAIN
from showhow.fewshot_library.formats.openai import OPENAI
from showhow.fewshot_library.formats.opentelemetry import OPENINFERENCE, OPENTELEMETRY
from showhow.fewshot_library.formats.parquet import PARQUET
from showhow.fewshot_library.formats.react import REACT
from showhow.fewshot_library.formats.showhow import SHOWHOW
from showhow.fewshot_library.formats.training_files import DSPY, PREFERENCES, SHAREGPT, SUPERVISED
from showhow.guard.plugins import Registry

FORMATS = Registry(
    "trace_formats",
    TraceFormat,
    (
        SHOWHOW,
        HUMANIQ,
        HUMANIQ_RUNS,
        OPENAI,
        LANGCHAIN,
        ATIF,
        PARQUET,
        DSPY,
        INSPECT,
        OPENINFERENCE,
        OPENTELEMETRY,
        REACT,
        SHAREGPT,
        CHATS,
        PREFERENCES,
        SUPERVISED,
    ),
    raises=(FormatError, UnsupportedTrace),
)
"""By name; a file is detected by the first that recognizes it."""
HEAD_BYTES = 65_536
"""Bytes of a file's beginning by which its format is detected."""


def readable_formats() -> tuple[str, ...]:
    """The names of the formats that can be imported."""
    return tuple(name for name, trace_format in FORMATS.items() if trace_format.read)


def writable_formats() -> tuple[str, ...]:
    """The names of the formats that can be exported."""
    return tuple(name for name, trace_format in FORMATS.items() if trace_format.write)


def find_format(name: str) -> TraceFormat:
    """The format of that name."""
    if name not in FORMATS:
        raise FormatError(f"there is no format {name!r}; the formats are {', '.join(FORMATS)}")
    return FORMATS[name]


def detect_format(path: Path) -> TraceFormat:
    """The format of a file, by its beginning."""
    try:
        with open_bytes(path) as stream:
            head = FileHead(stream.read(HEAD_BYTES))
        detected = next(
            (
                trace_format
                for trace_format in FORMATS.values()
                if trace_format.sniff is not None and trace_format.sniff(head)
            ),
            None,
        )
    except OSError as error:
        raise FormatError(f"{path} cannot be opened: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise refuse_encoding(path, error) from error
    if detected is None and not head.text.strip():
        raise FormatError(f"{path} is empty; there is nothing to import")
    if detected is None:
        raise FormatError(
            f"the format of {path} is not recognized; name one with --format: {', '.join(readable_formats())}"
        )
    return detected


def read_traces(path: Path, format_name: str = "auto") -> Iterator[ReadResult]:
    """Read the traces of a file in order, with refused records and remarks on unusual ones between them."""
    trace_format = detect_format(path) if format_name == "auto" else find_format(format_name)
    if trace_format.read is None:
        raise FormatError(f"{trace_format.name} cannot be imported; these can: {', '.join(readable_formats())}")
    return trace_format.read(path)


def find_writer(name: str) -> Callable[[TraceExport, BinaryIO], ExportLosses]:
    """The function that writes the format of that name."""
    trace_format = find_format(name)
    if trace_format.write is None:
        raise FormatError(f"{trace_format.name} cannot be exported; these can: {', '.join(writable_formats())}")
    return trace_format.write
