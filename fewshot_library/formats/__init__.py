"""Formats of trace files; another one joins by its line in FORMATS."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from fewshot_library.formats.atif import ATIF
from fewshot_library.formats.dspy import DSPY
from fewshot_library.formats.export import TraceExport
from fewshot_library.formats.format import ExportLosses, FormatError, ReadResult, TraceFormat
from fewshot_library.formats.head import FileHead
from fewshot_library.formats.humaniq import HUMANIQ
from fewshot_library.formats.humaniq_runs import HUMANIQ_RUNS
from fewshot_library.formats.inspect_log import INSPECT
from fewshot_library.formats.langchain import LANGCHAIN
from fewshot_library.formats.openai import OPENAI
from fewshot_library.formats.openinference import OPENINFERENCE
from fewshot_library.formats.opentelemetry import OPENTELEMETRY
from fewshot_library.formats.parquet import PARQUET
from fewshot_library.formats.preferences import PREFERENCES
from fewshot_library.formats.react import REACT
from fewshot_library.formats.sharegpt import SHAREGPT
from fewshot_library.formats.showhow import SHOWHOW
from fewshot_library.formats.supervised import SUPERVISED

FORMATS = {
    known.name: known
    for known in (
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
        PREFERENCES,
        SUPERVISED,
    )
}
READABLE_FORMATS = tuple(name for name, known in FORMATS.items() if known.read)
WRITABLE_FORMATS = tuple(name for name, known in FORMATS.items() if known.write)
HEAD_BYTES = 65_536


def find_format(name: str) -> TraceFormat:
    """The format of that name."""
    if name not in FORMATS:
        raise FormatError(f"there is no format {name!r}; there are {', '.join(FORMATS)}")
    return FORMATS[name]


def detect_format(path: Path) -> TraceFormat:
    """The format that the file's beginning shows."""
    try:
        with path.open("rb") as stream:
            head = FileHead(stream.read(HEAD_BYTES))
        found = next((known for known in FORMATS.values() if known.sniff is not None and known.sniff(head)), None)
    except OSError as failed:
        raise FormatError(f"{path} cannot be opened: {failed.strerror}") from failed
    except UnicodeDecodeError as wrong:
        raise FormatError(f"{path} is no text in UTF-8 ({wrong.reason})") from wrong
    if found is None and not head.text.strip():
        raise FormatError(f"{path} is empty; there is nothing to import")
    if found is None:
        raise FormatError(
            f"{path} is in no format that is known here; name one with --format: {', '.join(READABLE_FORMATS)}"
        )
    return found


def read_traces(path: Path, format_name: str = "auto") -> Iterator[ReadResult]:
    """The traces of a file in order, with the records that were refused and remarks on those that are odd."""
    chosen = detect_format(path) if format_name == "auto" else find_format(format_name)
    if chosen.read is None:
        raise FormatError(f"{chosen.name} is only written here; read {', '.join(READABLE_FORMATS)}")
    return chosen.read(path)


def find_writer(name: str) -> Callable[[TraceExport, BinaryIO], ExportLosses]:
    """What writes the format of that name."""
    chosen = find_format(name)
    if chosen.write is None:
        raise FormatError(f"{chosen.name} is only read here; write {', '.join(WRITABLE_FORMATS)}")
    return chosen.write
