"""Parquet exports round-trip, and Hugging Face datasets loads them with typed features."""

import json

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats import detect_format, read_traces
from showhow.fewshot_library.formats.format import FormatError, RefusedRecord, TraceExport
from showhow.fewshot_library.formats.parquet import PARQUET
from tests.examples import examples
from tests.fewshot_library.traces import export, fork_of, plain_trace, records, told


@settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(records(), max_size=2))
def test_exports_round_trip(tmp_path_factory, given_records):
    path = tmp_path_factory.mktemp("any") / "x.parquet"
    losses = export(PARQUET, given_records, path)
    assert (losses.written, losses.summary_lines()) == (len(given_records), [])
    assert detect_format(path) is PARQUET
    assert list(read_traces(path)) == given_records


def test_recorded_traces_round_trip_in_several_batches(shared_data, tmp_path):
    source = shared_data / "humaniq" / "agent_traces" / "mintaka_late_fusion_wikidata.json"
    real = [result for result in read_traces(source) if isinstance(result, TraceRecord)]
    export(PARQUET, real, tmp_path / "x.parquet")
    assert pq.ParquetFile(tmp_path / "x.parquet").num_row_groups > 1
    assert list(read_traces(tmp_path / "x.parquet")) == real


def test_hugging_face_datasets_loads_the_export_with_typed_features(tmp_path):
    parent = plain_trace()
    export(PARQUET, TraceExport([parent, fork_of(parent, 1)]), tmp_path / "x.parquet")
    datasets.disable_progress_bars()
    loaded = datasets.load_dataset(
        "parquet", data_files=str(tmp_path / "x.parquet"), cache_dir=str(tmp_path / "cache"), split="train"
    )
    features = loaded.features
    assert features["trace"]["started_at"] == datasets.Value("timestamp[us, tz=UTC]")
    assert features["steps"].feature["rating"] == datasets.Value("int32")
    assert features["messages"].feature["tool_calls"].feature["function"]["arguments"] == datasets.Value("string")
    assert [row["question"]["text"] for row in loaded] == ["who?", "who?"]
    assert [row["trace"]["final_answer"] for row in loaded] == ["Ada", "Eve"]
    assert [message["role"] for message in loaded[0]["messages"]] == ["user", "assistant", "tool", "assistant"]
    # What datasets writes again is still ours.
    loaded.to_parquet(str(tmp_path / "again.parquet"))
    assert [told(record) for record in read_traces(tmp_path / "again.parquet")] == [
        told(parent),
        told(fork_of(parent, 1)),
    ]


def test_chats_in_other_parquet_files_are_read(tmp_path):
    chats = [
        {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}], "source": "web"},
        {"messages": [{"role": "assistant", "content": "a"}], "source": None},
    ]
    pq.write_table(pa.Table.from_pylist(chats), tmp_path / "x.parquet")
    record, refused = read_traces(tmp_path / "x.parquet")
    assert told(record) == ("q", [], None, "a")
    assert record.trace.result.details["parquet"] == {"source": "web"}
    assert refused == RefusedRecord("row 2", "it has no user message")


def test_nulls_that_a_table_fills_in_are_absent(tmp_path):
    def asked(name, arguments):
        return {"role": "assistant", "tool_calls": [{"id": name, "function": {"name": name, "arguments": arguments}}]}

    chat = [{"role": "user", "content": "q"}, asked("a", {"x": {"y": 1}}), asked("b", {"x": {"z": [2]}, "w": False})]
    chat += [{"role": "tool", "tool_call_id": "b", "content": "two"}, {"role": "assistant", "content": "a"}]
    pq.write_table(pa.Table.from_pylist([{"messages": chat, "tools": None}]), tmp_path / "x.parquet")
    (record,) = read_traces(tmp_path / "x.parquet")
    steps = [("", "a", {"x": {"y": 1}}, None, None), ("", "b", {"x": {"z": [2]}, "w": False}, "two", None)]
    assert told(record) == ("q", steps, None, "a")
    # The JSON Lines of the same table have the nulls too.
    row = pq.read_table(tmp_path / "x.parquet").to_pylist()[0]
    (tmp_path / "x.jsonl").write_text(json.dumps(row))
    assert [told(record) for record in read_traces(tmp_path / "x.jsonl")] == [("q", steps, None, "a")]


def test_the_columns_for_training_alone_have_the_chat_and_its_tools(tmp_path):
    whole = [plain_trace(), fork_of(plain_trace(), 1)]
    export(PARQUET, whole, tmp_path / "x.parquet")
    pq.write_table(pq.read_table(tmp_path / "x.parquet", columns=["messages", "tools"]), tmp_path / "y.parquet")
    records = list(read_traces(tmp_path / "y.parquet"))
    assert [record.steps[-1].arguments for record in records] == [record.steps[-1].arguments for record in whole]
    assert [told(record)[2:] for record in records] == [told(record)[2:] for record in whole]
    names = [[tool["function"]["name"] for tool in record.trace.result.tools] for record in records]
    assert names == [["read"], ["read", "wikisearch"]]


def rows(tmp_path):
    export(PARQUET, [plain_trace()], tmp_path / "x.parquet")
    return pq.read_table(tmp_path / "x.parquet").to_pylist()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda row: row["messages"][0].update(content="else"), "its messages and its steps differ"),
        (lambda row: row.update(trace=None), "its trace is missing"),
        (lambda row: row["trace"].update(id="x"), "the trace's id is 'x'"),
        (lambda row: row["steps"][0].update(arguments="{"), "Expecting property name"),
        (lambda row: row["steps"][0].update(position=4), "not numbered"),
        (lambda row: row.update(people=[]), "a person has no name"),
    ],
)
def test_a_damaged_row_is_refused_with_its_number(tmp_path, change, reason):
    first, second = *rows(tmp_path), *rows(tmp_path)
    change(second)
    schema = pq.read_schema(tmp_path / "x.parquet")
    pq.write_table(pa.Table.from_pylist([first, second], schema), tmp_path / "y.parquet")
    record, refused = read_traces(tmp_path / "y.parquet")
    assert isinstance(record, TraceRecord)
    assert refused.place == "row 2"
    assert reason in refused.reason


def test_a_file_that_is_not_parquet_is_refused(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"PAR1 nothing of the kind")
    with pytest.raises(FormatError, match="cannot be read as Parquet"):
        list(read_traces(tmp_path / "x.parquet"))
    pq.write_table(pa.table({"a": [1]}), tmp_path / "y.parquet")
    with pytest.raises(FormatError, match="neither the columns"):
        list(read_traces(tmp_path / "y.parquet"))
