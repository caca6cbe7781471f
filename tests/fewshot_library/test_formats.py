"""Detection of the format of a file."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from showhow.db.traces.trace_record import TraceRecord
from showhow.db.unanswerable import UnanswerableReason, read_unanswerable, write_unanswerable
from showhow.fewshot_library.formats import (
    FORMATS,
    HEAD_BYTES,
    SHOWHOW,
    detect_format,
    find_writer,
    read_traces,
    readable_formats,
    writable_formats,
)
from showhow.fewshot_library.formats.format import ExportLosses, FileHead, FormatError, RefusedRecord, TraceFormat
from tests.cli_help import option_help
from tests.examples import examples
from tests.fewshot_library.traces import export, fork_of, plain_trace

RECORDED = Path(__file__).with_name("recorded")


def test_the_error_of_an_unknown_format_lists_the_known_ones(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("hello")
    with pytest.raises(FormatError, match="showhow, humaniq, humaniq-runs"):
        read_traces(path)
    with pytest.raises(FormatError, match="there is no format 'x'"):
        read_traces(path, "x")
    path.write_bytes(b"\xff\xff")
    with pytest.raises(FormatError, match="not a text in UTF-8"):
        read_traces(path)
    with pytest.raises(FormatError, match="cannot be opened"):
        read_traces(tmp_path / "nothing")


@pytest.fixture(scope="module")
def samples(shared_data, tmp_path_factory) -> dict[str, Path]:
    """A file in each format that can be imported."""
    folder = tmp_path_factory.mktemp("samples")
    parent = plain_trace()
    records = [fork_of(parent, 1), parent]
    recognized = {}
    for known in FORMATS.values():
        if known.read and known.write:
            recognized[known.name] = folder / f"{known.name}.any"
            export(known, records, recognized[known.name])
    return recognized | {
        "humaniq-runs": shared_data / "humaniq" / "agent_traces" / "qald_late_fusion_wikidata.json",
        "inspect": RECORDED / "inspect_log.json",
        "openinference": RECORDED / "openinference_langchain.json",
        "opentelemetry": written_spans(folder),
        "chats": written_contents(folder),
    }


def written_spans(folder):
    attributes = {"gen_ai.output.messages": [{"role": "assistant", "parts": []}]}
    (folder / "spans.json").write_text(json.dumps([{"name": "chat", "attributes": attributes}]))
    return folder / "spans.json"


def written_contents(folder):
    contents = [{"role": "user", "parts": [{"text": "who?"}]}, {"role": "model", "parts": [{"text": "Ada"}]}]
    (folder / "contents.json").write_text(json.dumps({"contents": contents}))
    return folder / "contents.json"


def test_each_format_recognizes_only_its_own_files(samples):
    assert set(samples) == set(readable_formats())
    for name, path in samples.items():
        head = FileHead(path.read_bytes()[:HEAD_BYTES])
        recognized = [known.name for known in FORMATS.values() if known.sniff and _knows(known, head)]
        # The last one also knows the messages of the formats before it.
        assert recognized in ([name], [name, "chats"])
        assert detect_format(path).name == name


def _knows(known, head):
    try:
        return known.sniff(head)
    except UnicodeDecodeError:
        return False


def test_formats_are_recognized_by_a_truncated_beginning_with_any_texts(tmp_path):
    record = plain_trace('"messages": [{"role": "user", "content": "gen_ai. \\" openinference"}] ' * 2_000)
    record.steps[0].arguments = {
        "messages": [{"role": "x", "data": {"content": 1}, "type": "human"}],
        "eval": {"task": 1},
    }
    record.question.text = "\nQuestion: {}\nThought: "
    for name in ("showhow", "atif", "openai", "langchain", "dspy"):
        export(FORMATS[name], [record] * 3, tmp_path / name)
        assert detect_format(tmp_path / name).name == name


@settings(max_examples=examples(120), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_damaged_files_are_refused_or_give_storable_traces(samples, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("damaged")
    name = data.draw(
        st.sampled_from(sorted(set(readable_formats()) - {"showhow", "humaniq", "humaniq-runs", "parquet", "react"}))
    )
    source = samples[name].read_text()
    content = [json.loads(line) for line in source.splitlines()] if FORMATS[name].write else json.loads(source)
    path = folder / "damaged.json"
    path.write_text(json.dumps(damaged(data.draw, content)))
    results = list(read_traces(path, name))
    for record in results:
        if isinstance(record, TraceRecord):
            assert list(record.find_inconsistencies()) == []
            own = folder / "own.jsonl"
            export(SHOWHOW, [record], own)
            # Showhow's own reader checks each value for what a database keeps.
            assert list(SHOWHOW.read(own)) == [record]
    event("refused" if any(isinstance(result, RefusedRecord) for result in results) else "kept")


JUNK = [None, -1, 10**40, 1.5, True, "", "\x00", "\ud83d", [], {}, [[]], {"a": {}}, "0001-01-01T00:00:00+14:00"]


def damaged(draw, value):
    """A copy of the value with one change."""
    if isinstance(value, dict) and value and draw(st.integers(0, 9)):
        key = draw(st.sampled_from(sorted(value)))
        if not draw(st.integers(0, 9)):
            return {other: inner for other, inner in value.items() if other != key}
        return {**value, key: damaged(draw, value[key])}
    if isinstance(value, list) and value and draw(st.integers(0, 9)):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], damaged(draw, value[place]), *value[place + 1 :]]
    return draw(st.sampled_from(JUNK))


def test_an_empty_file_is_refused(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("\n")
    with pytest.raises(FormatError, match="is empty; there is nothing to import"):
        read_traces(path)


def test_a_byte_order_mark_is_skipped(tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(b"\xef\xbb\xbf" + b'[{"question": "q", "error": "e", "intermediate_logs": null}]')
    assert detect_format(path).name == "humaniq-runs"
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


@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(["humaniq", "humaniq-runs"]), st.lists(TEXT | TEXT | TEXT | ODD, min_size=4, max_size=4))
def test_any_file_is_refused_or_gives_storable_traces(tmp_path_factory, name, values):
    fields = {
        "humaniq": ("Question", "Dataset", "Action_Sequence", "One_Shot"),
        "humaniq-runs": ("question", "wikidata_answer", "error", "intermediate_logs"),
    }
    folder = tmp_path_factory.mktemp("any")
    path, own = folder / "any.json", folder / "own.jsonl"
    path.write_text(json.dumps([dict(zip(fields[name], values, strict=True))]))
    try:
        records = [result for result in read_traces(path, name) if isinstance(result, TraceRecord)]
    except FormatError:
        event("the file is refused")
        return
    event(f"{len(records)} kept")
    export(SHOWHOW, records, own)
    # Showhow's own reader checks each value for what a database keeps.
    assert list(SHOWHOW.read(own)) == records


def test_a_new_trace_format_is_detected_read_and_offered_by_every_verb_and_list(tmp_path, monkeypatch):
    refused = RefusedRecord("line 1", "an example")
    example = TraceFormat(
        "example",
        "an example",
        sniff=lambda head: head.text.startswith("#example"),
        read=lambda _: iter([refused]),
        write=lambda _export, _stream: ExportLosses(),
    )
    monkeypatch.setitem(FORMATS, "example", example)
    file = tmp_path / "traces"
    file.write_text("#example", encoding="utf-8")
    assert detect_format(file) is example
    assert list(read_traces(file)) == [refused]
    assert find_writer("example") is example.write
    assert readable_formats()[-1] == writable_formats()[-1] == "example"
    assert option_help("showhow.app.cli.traces", "import", "--format").endswith(", example")
    assert option_help("showhow.app.cli.traces", "export", "--format").endswith(", example")
    assert option_help("showhow.app.cli.library", "export", "--format").endswith(", example")


def test_that_a_question_cannot_be_answered_is_written_by_every_format_and_read_again(tmp_path):
    record = plain_trace()
    answer = write_unanswerable(UnanswerableReason.FALSE_PREMISE)
    record.trace.final_answer, record.trace.final_thought = answer, "Nobody is."
    record.question.gold_answers = [{"text": answer, "entity": None}]
    (step,) = record.steps
    step.observation = "Nobody."
    for known in (known for known in FORMATS.values() if known.write):
        path = tmp_path / known.name
        losses = export(known, [record], path)
        if not known.read:
            assert losses.written == 0 or answer in path.read_text(encoding="utf-8"), known.name
            continue
        (back,) = (result for result in read_traces(path, known.name) if isinstance(result, TraceRecord))
        assert read_unanswerable(back.trace.final_answer) == UnanswerableReason.FALSE_PREMISE, known.name
