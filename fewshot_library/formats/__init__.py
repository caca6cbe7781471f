"""Formats of trace files; another one joins by its line in FORMATS."""

from collections.abc import Iterator
from pathlib import Path

from fewshot_library.formats.format import Format, FormatError, Found, opened_text
from fewshot_library.formats.humaniq import HUMANIQ
from fewshot_library.formats.humaniq_runs import HUMANIQ_RUNS
from fewshot_library.formats.showhow import SHOWHOW

FORMATS = {found.name: found for found in (SHOWHOW, HUMANIQ, HUMANIQ_RUNS)}
HEAD = 65_536


def format_named(name: str) -> Format:
    """The format of that name."""
    if name not in FORMATS:
        raise FormatError(f"there is no format {name!r}; there are {', '.join(FORMATS)}")
    return FORMATS[name]


def detect(path: Path) -> Format:
    """The format that the file's beginning shows."""
    try:
        with opened_text(path) as stream:
            head = stream.read(HEAD)
    except UnicodeDecodeError as wrong:
        raise FormatError(f"{path} is no text in UTF-8 ({wrong.reason})") from wrong
    if not head.strip():
        raise FormatError(f"{path} is empty; there is nothing to import")
    for known in FORMATS.values():
        if known.sniff(head):
            return known
    raise FormatError(f"{path} is in no format that is known here; name one with --format: {', '.join(FORMATS)}")


def read_traces(path: Path, format_name: str = "auto") -> Iterator[Found]:
    """The traces of a file in order, with the records that were refused and remarks on those that are odd."""
    return (detect(path) if format_name == "auto" else format_named(format_name)).read(path)
