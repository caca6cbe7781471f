"""Inspect's logs, one of them recorded from a real run of its basic agent with a scripted model."""

import json
from pathlib import Path
from zipfile import ZipFile

import pytest

from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats import detect_format, read_traces
from showhow.fewshot_library.formats.format import FormatError, RecordRemark, RefusedRecord
from tests.fewshot_library.traces import told

RECORDED = Path(__file__).with_name("recorded") / "inspect_log.json"


def changed(tmp_path, change):
    log = json.loads(RECORDED.read_text())
    change(log)
    (tmp_path / "x.json").write_text(json.dumps(log))
    return list(read_traces(tmp_path / "x.json"))


def test_each_sample_of_a_log_is_a_trace_of_its_run():
    assert detect_format(RECORDED).name == "inspect"
    results = list(read_traces(RECORDED))
    second, first = [result for result in results if isinstance(result, TraceRecord)]
    question, steps, _, answer = told(first)
    assert (question, answer) == ("Who wrote the first program?", "Ada")
    assert [(tool, arguments) for _, tool, arguments, _, _ in steps] == [
        ("lookup", {"query": "bad"}),
        ("lookup", {"query": "who"}),
        ("submit", {"answer": "Ada"}),
    ]
    assert (first.steps[0].thought, first.steps[0].error) == ("I look it up.", "no such thing")
    assert first.steps[1].observation.startswith("Ada Lovelace wrote it.")
    assert (first.question.source_id, first.question.gold_answers) == ("q1", [{"text": "Ada", "entity": None}])
    assert [gold["text"] for gold in second.question.gold_answers] == ["Eve", "Ada"]
    assert (first.run.name, first.trace.reasoner) == ("who mockllm/model", "inspect")
    assert first.run.id == second.run.id
    assert first.run.spec.details["eval"]["model"] == "mockllm/model"
    remembered = first.trace.result.details["inspect"]
    assert (remembered["scores"]["includes"]["value"], remembered["system"]) == ("C", ["Be brief."])
    assert f"{first.trace.started_at:%F}" == "2026-11-21"
    assert list(first.find_inconsistencies()) == list(second.find_inconsistencies()) == []
    remarks = [result for result in results if isinstance(result, RecordRemark)]
    assert remarks[:2] == [
        RecordRemark("sample 1", "its events were left out; only its messages are imported"),
        RecordRemark("sample 1", "message 6 of the role user was imported as the observation of step 2"),
    ]


def test_attachments_are_resolved(tmp_path):
    def apart(log):
        log["samples"][0]["messages"][1]["content"] = "attachment://a1"
        log["samples"][0]["attachments"] = {"a1": "Who wrote it?"}

    assert "Who wrote it?" in [
        record.question.text for record in changed(tmp_path, apart) if isinstance(record, TraceRecord)
    ]


def test_a_failed_sample_is_a_failed_trace_with_the_reason(tmp_path):
    results = changed(tmp_path, lambda log: log["samples"][1].update(error={"message": "out of time", "traceback": ""}))
    record = [result for result in results if isinstance(result, TraceRecord)][1]
    assert (record.trace.status, record.trace.result.details["inspect"]["error"]) == ("failed", "out of time")


@pytest.mark.parametrize(
    ("change", "place", "reason"),
    [
        (lambda log: log.update(samples=[]), "record 1", "it has no samples"),
        (lambda log: log["samples"][1].pop("messages"), "sample 2", "messages: field required"),
        (lambda log: log["samples"].append(3), "sample 3", "it: input should be"),
    ],
)
def test_a_malformed_sample_is_refused_with_its_place(tmp_path, change, place, reason):
    refused = [result for result in changed(tmp_path, change) if isinstance(result, RefusedRecord)]
    assert [refusal.place for refusal in refused] == [place]
    assert reason in refused[0].reason


def odd_numbers(log):
    log["results"]["scores"][0]["metrics"]["stderr"]["value"] = float("nan")
    log["samples"][0]["scores"]["includes"]["value"] = [float("inf"), 1]
    log["samples"][1]["model_usage"]["mockllm/model"]["input_tokens"] = None


def odd_calls(log):
    for sample in log["samples"]:
        for message in sample["messages"]:
            for call in message.get("tool_calls") or []:
                call["id"] = None
            if message["role"] == "tool":
                message["tool_call_id"] = ""


def odd_fields(log):
    log["eval"]["created"] = "noon"
    log["samples"][0] |= {"started_at": "noon", "id": None, "error": None}
    log["samples"][1]["messages"][2]["tool_calls"].append({})
    log["samples"][1]["messages"][2]["content"] = [{"type": "reasoning", "summary": "I look it up.", "reasoning": ""}]
    log["samples"][1]["messages"][1]["content"] = [{"type": "text", "text": "Who wrote the first program?"}, {}]


@pytest.mark.parametrize("change", [dict, odd_numbers, odd_calls, odd_fields])
def test_a_packed_log_has_the_same_traces_and_odd_fields_do_not_change_them(tmp_path, change):
    log = json.loads(RECORDED.read_text())
    change(log)
    (tmp_path / "x.json").write_text(json.dumps(log))
    with ZipFile(tmp_path / "x.eval", "w") as archive:
        archive.writestr("header.json", json.dumps({name: log[name] for name in log if name != "samples"}))
        for number, sample in enumerate(log["samples"]):
            archive.writestr(f"samples/{number}_epoch_1.json", json.dumps(sample))
    packed, unpacked = ([*read_traces(tmp_path / f"x{suffix}")] for suffix in (".eval", ".json"))
    traces = [[told(one) for one in results if isinstance(one, TraceRecord)] for results in (packed, unpacked)]
    assert traces[0] == traces[1]
    usual = [told(one) for one in read_traces(RECORDED.with_suffix(".eval")) if isinstance(one, TraceRecord)]
    assert [(question.removesuffix(" [unknown]"), *rest) for question, *rest in traces[0]] == usual
    assert len(packed) == len(unpacked) + (change is odd_numbers)


def test_a_packed_log_that_is_cut_off_is_damaged(tmp_path):
    (tmp_path / "x.eval").write_bytes(b"PK\x03\x04" + b"\x00" * 50)
    with pytest.raises(FormatError, match="is damaged"):
        list(read_traces(tmp_path / "x.eval"))
