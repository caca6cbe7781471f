"""Choosing the format of a file."""

import pytest

from fewshot_library.formats import detect, read_traces
from fewshot_library.formats.format import FormatError


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
