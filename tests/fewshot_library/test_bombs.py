"""Small files that expand are refused in one sentence, before they reach the limits of the worker that reads them."""

import contextlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from showhow.fewshot_library.formats import FORMATS, read_traces
from showhow.fewshot_library.formats.format import FormatError, RefusedRecord
from showhow.fewshot_library.formats.survey_worker import survey_in_worker

pytestmark = pytest.mark.long

ANSWER = {"role": "assistant", "content": "Ada"}
CHAT = {"messages": [{"role": "user", "content": "Who?"}, ANSWER]}
SAMPLE = {"id": 1, "input": "Who?", **CHAT}
HEAD = {"version": 2, "eval": {"task": "t", "model": "m"}}
MEGABYTE = 1 << 20


def packed_log(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A log of Inspect with these samples."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        archive.writestr("header.json", json.dumps(HEAD))
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def overlapping_log() -> bytes:
    """Two names for the data of one sample."""
    stream = io.BytesIO(packed_log({"samples/1.json": json.dumps(SAMPLE).encode()}))
    with zipfile.ZipFile(stream, "a") as archive:
        first = archive.getinfo("samples/1.json")
        twin = zipfile.ZipInfo("samples/2.json")
        for name in ("header_offset", "CRC", "compress_size", "file_size", "compress_type"):
            setattr(twin, name, getattr(first, name))
        archive.filelist.append(twin)
        archive.NameToInfo[twin.filename] = twin
        archive._didModify = True  # type: ignore[attr-defined]
    return stream.getvalue()


def zstandard_log(size: int) -> bytes:
    """A log whose sample is said to be of that size, packed as Inspect does."""
    plain = packed_log({"samples/1.json": b"x" * 1000}, zipfile.ZIP_STORED)
    # The sizes and the compression in the central directory, which is what readers go by.
    start = plain.rindex(b"PK\x01\x02")
    entry = bytearray(plain[start:])
    entry[10:12] = (93).to_bytes(2, "little")
    entry[24:28] = size.to_bytes(4, "little")
    return plain[:start] + bytes(entry)


def table(rows: Any, **options: Any) -> bytes:
    """A Parquet file with these messages."""
    stream = io.BytesIO()
    pq.write_table(pa.table({"messages": rows}), stream, **options)
    return stream.getvalue()


def long_dictionary() -> bytes:
    return table(pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), pa.array(["a" * 4 * MEGABYTE])))


def attachments() -> bytes:
    message = {"role": "assistant", "content": "attachment://a"}
    sample = SAMPLE | {"messages": [*CHAT["messages"], *[message] * 5_000], "attachments": {"a": "x" * MEGABYTE}}
    return json.dumps(HEAD | {"samples": [sample]}).encode()


def span(key: str) -> bytes:
    return json.dumps(
        {"trace_id": "1", "span_id": "1", "name": "x", "attributes": {"openinference.span.kind": "LLM", key: 1}}
    ).encode()


BOMBS: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "nested lists": ("a.json", lambda: b"[" * 65_000, "not recognized"),
    "nested objects": ("a.jsonl", lambda: b'{"a":' * 30_000 + b"\n", "not recognized"),
    "a nested chat": (
        "a.json",
        lambda: b'{"messages": [{"role": "user", "content":' + b"[" * 65_000,
        "nested too deeply",
    ),
    "a nested line": ("a.jsonl", lambda: b'{"messages":[{"role":"user","x":' + b"[" * 65_000 + b"\n{}", "nested too"),
    "a nested library": ("a.json", lambda: b'[{"One_Shot": ' + b"[" * 65_000, "nested too deeply"),
    "a key of many parts": ("a.json", lambda: span("llm." * 100_000 + "x"), "parts between dots"),
    "very many values": (
        "a.json",
        lambda: b'{"messages": [' + b'{"role":"user"},' * 1_500_000 + b"{}]}",
        r"MB of memory, more than the bound of 256 MB",
    ),
    "an expanding log": (
        "a.eval",
        lambda: packed_log({f"samples/{n}.json": b" " * 60 * MEGABYTE for n in range(8)}),
        r"expands to more than 91? ?MB|expands to more than \d+ MB",
    ),
    "a long sample": (
        "a.eval",
        lambda: packed_log({"samples/1.json": b" " * 300 * MEGABYTE}),
        r"expands to more|records has",
    ),
    "a nested sample": ("a.eval", lambda: packed_log({"samples/1.json": b"[" * 65_000}), "nested too deeply"),
    "a sample of a false size": ("a.eval", lambda: zstandard_log(2**32 - 2), r"expands to more than 64 MB"),
    "overlapping samples": ("a.eval", overlapping_log, "overlaps another file"),
    "attachments that stand often": ("a.json", attachments, "one of its records has"),
    "a long value in every row": ("a.parquet", long_dictionary, "expands to more than 64 MB"),
    "very many rows": (
        "a.parquet",
        lambda: table(pa.array([CHAT["messages"]] * 300_000)),
        "expands to more than 64 MB",
    ),
    "one row of very many messages": (
        "a.parquet",
        lambda: table(pa.array([[ANSWER] * 1_500_000])),
        "expands to more than 64 MB",
    ),
    "one row of nothing": (
        "a.parquet",
        lambda: table(pa.array([[ANSWER, *[None] * 9_000_000]])),
        "expands to more than 64 MB",
    ),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_small_file_that_expands_is_refused_in_one_sentence(tmp_path: Path, bomb: str):
    name, build, reason = BOMBS[bomb]
    file = tmp_path / name
    file.write_bytes(build())
    assert file.stat().st_size < 25 * MEGABYTE
    try:
        survey = survey_in_worker(file)
    except FormatError as error:
        refusal = str(error)
    else:
        assert survey.ids == []
        refusal = survey.places[0].reason
    assert "was not read" not in refusal, "it was stopped at a limit of the worker"
    assert "Traceback" not in refusal
    assert "\n" not in refusal
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(refusal)


OPENINGS = st.sampled_from(
    [b'{"messages":', b'{"format":"showhow-trace","a":', b'{"question":"q","trajectory":', b'{"eval":{"task":', b"["]
)


@settings(max_examples=40)
@given(OPENINGS, st.integers(200, 40_000), st.sampled_from([b"[", b'{"a":', b'[{"b":', b"[0,"]), st.booleans())
def test_no_format_reads_what_is_nested_too_deeply(tmp_path_factory, opening, depth, bracket, closed):
    closings = bracket[:1].replace(b"[", b"]").replace(b"{", b"}") if len(bracket) < 3 or bracket == b'{"a":' else b""
    text = opening + bracket * depth + (b"0" + closings * depth if closed and closings else b"")
    file = tmp_path_factory.mktemp("deep") / "a.json"
    file.write_bytes(text)
    for name, trace_format in FORMATS.items():
        if trace_format.read is None:
            continue
        # Any other exception fails the test.
        with contextlib.suppress(FormatError):
            assert all(isinstance(result, RefusedRecord) for result in read_traces(file, name))
