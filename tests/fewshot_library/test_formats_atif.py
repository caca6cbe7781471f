"""ATIF exports round-trip and conform to the published models; other agents' trajectories are imported."""

import json
from pathlib import Path

import pytest
from atif import Trajectory
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from showhow.db.storage.merge import is_same_trace
from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats import detect_format, read_traces
from showhow.fewshot_library.formats.atif import ATIF
from showhow.fewshot_library.formats.format import RefusedRecord
from tests.examples import examples
from tests.fewshot_library.traces import export, fork_of, plain_trace, records, told


def trajectories(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(records(), max_size=2))
def test_exports_round_trip(tmp_path_factory, given_records):
    path = tmp_path_factory.mktemp("any") / "x.jsonl"
    losses = export(ATIF, given_records, path)
    assert (losses.written, losses.summary_lines()) == (len(given_records), [])
    assert list(read_traces(path, "atif")) == given_records
    for trajectory in trajectories(path):
        assert Trajectory.model_validate(trajectory, strict=True).schema_version == "ATIF-v1.7"


@pytest.mark.parametrize("name", ["mintaka.json", "agent_traces/qald_late_fusion_wikidata.json"])
def test_recorded_traces_round_trip(shared_data, tmp_path, name):
    source = [result for result in read_traces(shared_data / "humaniq" / name) if isinstance(result, TraceRecord)]
    assert export(ATIF, source, tmp_path / "x.jsonl").summary_lines() == []
    assert detect_format(tmp_path / "x.jsonl") is ATIF
    back = list(read_traces(tmp_path / "x.jsonl"))
    assert back == source
    assert all(is_same_trace(here, there) for here, there in zip(back, source, strict=True))
    for trajectory in trajectories(tmp_path / "x.jsonl"):
        Trajectory.model_validate(trajectory, strict=True)


def test_edited_native_fields_take_precedence(tmp_path):
    record = plain_trace()
    path = tmp_path / "x.json"
    export(ATIF, [record], path)
    (trajectory,) = trajectories(path)
    asked, looked, answered = trajectory["steps"]
    assert (asked["source"], asked["message"]) == ("user", "who?")
    assert looked["reasoning_content"] == "look"
    assert looked["tool_calls"] == [{"tool_call_id": "call_1", "function_name": "read", "arguments": {"title": "x"}}]
    assert (answered["message"], trajectory["agent"]["name"]) == ("Ada", "human")
    asked["message"], looked["reasoning_content"], answered["message"] = "who was it?", "look there", "Eve"
    looked["observation"] = {"results": [{"source_call_id": "call_1", "content": "nothing"}]}
    path.write_text(json.dumps([trajectory], indent=1))
    (back,) = read_traces(path)
    assert told(back) == ("who was it?", [("look there", "read", {"title": "x"}, "nothing", None)], None, "Eve")


def test_steps_copied_by_a_fork_are_marked(tmp_path):
    parent = plain_trace()
    fork = fork_of(parent, 1)
    export(ATIF, [parent, fork], tmp_path / "x.jsonl")
    first, second = trajectories(tmp_path / "x.jsonl")
    assert [step.get("is_copied_context") for step in first["steps"]] == [None, None, None]
    assert [step.get("is_copied_context") for step in second["steps"]] == [None, True, None, None]
    assert list(read_traces(tmp_path / "x.jsonl")) == [parent, fork]


FOREIGN = {
    "schema_version": "ATIF-v1.5",
    "session_id": "s",
    "trajectory_id": "t",
    "agent": {"name": "other", "version": "2", "tool_definitions": [{"type": "function"}], "model_name": "m"},
    "steps": [
        {"step_id": 1, "source": "system", "message": "Be brief."},
        {"step_id": 2, "source": "user", "message": [{"type": "text", "text": "who?"}]},
        {
            "step_id": 3,
            "timestamp": "2026-01-02T03:04:05Z",
            "source": "agent",
            "message": "I look.",
            "reasoning_content": "hm",
            "tool_calls": [
                {"tool_call_id": "a", "function_name": "f", "arguments": {}},
                {"tool_call_id": "b", "function_name": "g", "arguments": {"x": 1}, "extra": {"retries": 2}},
            ],
            "observation": {
                "results": [
                    {"source_call_id": "b", "content": "two", "extra": {"rating": 4}},
                    {"source_call_id": "a", "content": None},
                ]
            },
            "metrics": {"prompt_tokens": 7},
        },
        {"step_id": 4, "source": "agent", "message": "wait", "observation": {"results": [{"content": "tick"}]}},
        {"step_id": 5, "source": "agent", "message": "Ada", "reasoning_content": "clear"},
    ],
    "final_metrics": {"total_steps": 5},
}


def test_unknown_fields_of_another_agents_trajectory_are_kept(tmp_path):
    Trajectory.model_validate(FOREIGN)
    (tmp_path / "x.json").write_text(json.dumps(FOREIGN, indent=1))
    (record,) = read_traces(tmp_path / "x.json")
    steps = [
        ("hm\n\nI look.", "f", {}, "", None),
        ("", "g", {"x": 1}, "two", None),
        ("wait", None, {}, "tick", None),
    ]
    assert told(record) == ("who?", steps, "clear", "Ada")
    assert [step.rating for step in record.steps] == [None, 4, None]
    assert f"{record.trace.started_at:%FT%TZ}" == "2026-01-02T03:04:05Z"
    kept = json.dumps(record.trace.result.to_json())
    for beside in ("Be brief.", '"model_name": "m"', '"prompt_tokens": 7', '"retries": 2', '"total_steps": 5', '"s"'):
        assert beside in kept
    assert list(record.find_inconsistencies()) == []


def changed(path: str, value: object) -> dict:
    copy = json.loads(json.dumps(FOREIGN))
    place = copy
    *way, last = path.split("/")
    for part in way:
        place = place[int(part)] if isinstance(place, list) else place[part]
    place[int(last) if isinstance(place, list) else last] = value
    return copy


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("schema_version", "ATIF-v2.0", "schema_version is 'ATIF-v2.0'"),
        ("extra", {"showhow": {}}, "extra.showhow has no question"),
        ("extra", {"showhow": {"question": {}, "trace": {}}}, "its first step is not a question"),
    ],
)
def test_a_malformed_trajectory_is_refused_with_the_place(tmp_path, path, value, reason):
    (tmp_path / "x.json").write_text(json.dumps(changed(path, value)))
    (refused,) = read_traces(tmp_path / "x.json")
    assert isinstance(refused, RefusedRecord)
    assert reason in refused.reason


@pytest.mark.parametrize(
    ("path", "value", "remark"),
    [
        ("steps/1/step_id", 7, "its steps are not numbered 1, 2, 3 ..., and were taken in the order of the file"),
        ("steps/2/timestamp", "noon", "step 3: 'noon' is not a valid time"),
        ("steps/3/source", "robot", "message 6 of the role robot was imported as the observation of step 3"),
        ("steps/2/observation/results/0/source_call_id", "z", "message 4 of the role tool was imported"),
        ("steps/1/message", ["who?", {"type": "image", "source": {}}], "part 2 of step 2 is of the kind 'image'"),
        ("steps/2/tool_calls/0", {"arguments": {}}, "a call of step 3 names no function, and was left out"),
        (
            "steps/3/observation/results/0",
            {"subagent_trajectory_ref": ["s2"]},
            "step 4 has only subagent_trajectory_ref",
        ),
        ("agent/temperature", float("nan"), "agent.temperature: no number of JSON"),
    ],
)
def test_what_cannot_be_read_in_a_trajectory_is_a_remark_and_the_rest_is_read(tmp_path, path, value, remark):
    (tmp_path / "x.json").write_text(json.dumps(changed(path, value)))
    *remarks, record = read_traces(tmp_path / "x.json")
    assert any(remark in entry.text for entry in remarks)
    question, steps, *answer = told(record)
    assert (question.removesuffix(" [image]"), answer) == ("who?", ["clear", "Ada"])
    assert [result for _, tool, _, result, _ in steps if tool in ("g", None)].count("two") == 1


@pytest.mark.parametrize("ids", [(None, None), ("", ""), ("c", "c")])
def test_the_results_of_calls_without_ids_of_their_own_lie_on_their_calls(tmp_path, ids):
    calls = [
        {"tool_call_id": call_id, "function_name": "look", "arguments": json.dumps({"page": page})}
        for page, call_id in enumerate(ids)
    ]
    results = [{"source_call_id": call_id, "content": f"page {page}"} for page, call_id in enumerate(ids)]
    steps = [
        {"step_id": 3, "source": "agent", "message": "<think>so</think>Ada"},
        {"step_id": 2, "source": "agent", "message": None, "tool_calls": calls, "observation": {"results": results}},
        {"step_id": 1, "source": "user", "message": "who?"},
    ]
    trajectory = {"schema_version": "ATIF-v1.4", "agent": {"name": "a"}, "steps": steps}
    (tmp_path / "x.json").write_text(json.dumps(trajectory))
    *_, record = read_traces(tmp_path / "x.json")
    expected = [("", "look", {"page": page}, f"page {page}", None) for page in range(2)]
    assert told(record) == ("who?", expected, "so", "Ada")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda t: t["steps"][1].update(message="so"), "step 2 is not a thought of the agent without a message"),
        (lambda t: t["steps"][1]["tool_calls"].append(t["steps"][1]["tool_calls"][0]), "several calls"),
        (lambda t: t["steps"][1]["extra"]["showhow"].pop("id"), "the step has no 'id'"),
        (lambda t: t.update(trajectory_id="x"), "the trace's id is 'x'"),
        (lambda t: t["extra"]["showhow"].pop("people"), "'people' is missing"),
        (lambda t: t["steps"][0].update(message=["x"]), "the content of step 1 is not a text"),
    ],
)
def test_a_damaged_showhow_trajectory_is_refused_with_the_reason(tmp_path, change, reason):
    export(ATIF, [plain_trace()], tmp_path / "x.json")
    (trajectory,) = trajectories(tmp_path / "x.json")
    change(trajectory)
    (tmp_path / "x.json").write_text(json.dumps(trajectory))
    (refused,) = read_traces(tmp_path / "x.json")
    assert isinstance(refused, RefusedRecord)
    assert reason in refused.reason
