"""Choosing the format of a file."""

import json

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from db.record import TraceRecord
from fewshot_library.formats import SHOWHOW, detect, read_traces
from fewshot_library.formats.format import FormatError
from tests.fewshot_library.traces import export


def test_a_file_of_no_known_format_is_refused_with_those_that_are_known(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("hello")
    with pytest.raises(FormatError, match="showhow, humaniq, humaniq-runs"):
        read_traces(path)
    with pytest.raises(FormatError, match="there is no format 'x'"):
        read_traces(path, "x")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(FormatError, match="no text in UTF-8"):
        read_traces(path)
    with pytest.raises(FormatError, match="cannot be opened"):
        read_traces(tmp_path / "nothing")


def test_an_empty_file_is_told_as_one(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("\n")
    with pytest.raises(FormatError, match="is empty; there is nothing to import"):
        read_traces(path)


def test_a_mark_of_the_byte_order_before_the_text_is_passed_over(tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(b"\xef\xbb\xbf" + b'[{"question": "q", "error": "e", "intermediate_logs": null}]')
    assert detect(path).name == "humaniq-runs"
    (record,) = read_traces(path)
    assert record.question.text == "q"


PIECES = ["Question:", "Thought:", "Action:", "Action: GetLabel", "Action Input:", "Observation:", "Final Answer:"]
PIECES += [
    "Assistant Response:",
    "Wikidata_Answer:",
    ", Internal Knowledge:",
    "\n",
    "\n",
    " ",
    "{",
    "{{",
    "}",
    "\\",
    "x",
]
PIECES += ["\x00", "\ud83d", '{"a": NaN}', '{"a": "\\ud83d"}', '{"a": "\\u0000"}', "{" * 5_000, '{"a":' * 5_000, "Q1"]
TEXT = st.lists(st.sampled_from(PIECES), max_size=20).map("".join)
ODD = st.none() | st.integers() | st.lists(TEXT, max_size=1)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(["humaniq", "humaniq-runs"]), st.lists(TEXT | TEXT | TEXT | ODD, min_size=4, max_size=4))
def test_whatever_stands_in_a_file_is_refused_or_becomes_a_trace_that_can_be_kept(tmp_path_factory, name, values):
    fields = {
        "humaniq": ("Question", "Dataset", "Action_Sequence", "One_Shot"),
        "humaniq-runs": ("question", "wikidata_answer", "error", "intermediate_logs"),
    }
    folder = tmp_path_factory.mktemp("any")
    path, own = folder / "any.json", folder / "own.jsonl"
    path.write_text(json.dumps([dict(zip(fields[name], values, strict=True))]))
    try:
        records = [found for found in read_traces(path, name) if isinstance(found, TraceRecord)]
    except FormatError:
        event("the file is refused")
        return
    event(f"{len(records)} kept")
    export(SHOWHOW, records, own)
    # Showhow's own reader checks each value for what a database keeps.
    assert list(SHOWHOW.read(own)) == records
