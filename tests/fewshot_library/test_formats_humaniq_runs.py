"""The published logs of HumanIQ's agent are read completely."""

import json
import re
from collections import Counter

import pytest

from showhow.fewshot_library.formats import read_traces
from showhow.fewshot_library.formats.format import RefusedRecord
from showhow.fewshot_library.formats.humaniq_record import to_humaniq_call

RUNS = ["compmix_latefusion_wikidata", "mintaka_late_fusion_wikidata", "qald_late_fusion_wikidata"]
MARKERS = re.compile(
    r"^(Thought:\s*Action|Thought|Action Input|Action|Observation|Final Answer|Assistant Response|Question):",
    re.MULTILINE,
)


def test_all_six_hundred_published_runs_are_read(shared_data):
    runs = [r for name in RUNS for r in read_traces(shared_data / "humaniq" / "agent_traces" / f"{name}.json")]
    assert not [r for r in runs if isinstance(r, RefusedRecord)]
    assert Counter(r.trace.status for r in runs) == {"submitted": 588, "failed": 12}
    assert len({r.trace.id for r in runs}) == 600
    assert len({r.run.id for r in runs}) == 3
    assert {(r.author, r.trace.reasoner, r.run.reasoner) for r in runs} == {(None, "humaniq", "humaniq")}
    assert all(r.trace.final_answer and r.trace.answer_model for r in runs if r.trace.status == "submitted")
    assert all(r.trace.result.details["humaniq"]["error"] for r in runs if r.trace.status == "failed")
    assert all(next(r.find_inconsistencies(), None) is None for r in runs)


@pytest.mark.parametrize("name", RUNS)
def test_a_published_run_keeps_its_complete_text_in_order(shared_data, name):
    path = shared_data / "humaniq" / "agent_traces" / f"{name}.json"
    for raw, record in zip(json.loads(path.read_text()), read_traces(path), strict=True):
        log = raw["intermediate_logs"] or ""
        assert without_layout("\n".join(kept(record, log))) == without_layout(log)
        assert record.trace.result.details.get("humaniq", {}).get("error") == raw["error"]
        answer = raw.get("wikidata_answer") or raw.get("final_answer") or ""
        assert "".join(answer.split()) in "".join(log.split())


def without_layout(text):
    return "".join(MARKERS.sub("", text).split())


def kept(record, log):
    """The parts of a log as stored in the record, in the order of the log."""
    trace, question = record.trace, record.question.text
    remembered = trace.result.details.get("humaniq", {})
    if log:
        yield remembered.get("preamble", question)
    for step in record.steps:
        written = remembered.get("written", {}).get(str(step.position))
        call = (step.arguments.get("input"),)
        if step.tool:
            call = to_humaniq_call(step.tool, step.arguments, question)
        if written:
            call = (written["tool"], written["input"])
        yield from filter(None, (step.thought, *call, step.observation))
    yield trace.final_thought or ""
    labelled = f"Wikidata_Answer: {trace.answer_graph}" if trace.answer_graph is not None else ""
    yield remembered.get("final_line", labelled)
    if "\nAssistant Response:" in log:
        yield trace.final_answer
    if trace.answer_model is not None:
        yield f", Internal Knowledge: {trace.answer_model}"


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ("3", "not a JSON object"),
        ('{"question": " ", "error": "x"}', "no question"),
        ('{"question": "q"}', "neither a log nor an error"),
        ('{"question": "q", "error": 3}', "'error' is not a text"),
        ('{"question": "q", "mood": "x"}', "unknown field 'mood'"),
        ('{"question": "q \\ud83d", "error": "x"}', "'question': the text has the character U+D83D"),
    ],
)
def test_an_invalid_record_is_refused_and_the_others_are_read(tmp_path, record, reason):
    path = tmp_path / "set_x.json"
    good = '{"question": "q?", "error": null, "intermediate_logs": "Thought: a\\nFinal Answer: b"}'
    path.write_text(f"[{good}, {record}]")
    kept_one, refused = read_traces(path)
    fields = (kept_one.trace.final_answer, kept_one.trace.final_thought, kept_one.project.name)
    assert fields == ("b", "a", "HumanIQ Set")
    assert refused.place == "record 2"
    assert reason in refused.reason


MESSY = """some words first
Thought: a
Action Input: without its action
Observation: what was seen
Remark: no marker that is known
Action: WikiSearch
Thought: Action: GetLabel
Action Input: [Q1, Q2
Final Answer: Wikidata_Answer: [x]
Final Answer: again
Assistant Response: all, Internal Knowledge: y"""


def test_every_part_of_an_irregular_log_is_stored(tmp_path):
    path = tmp_path / "set_x.json"
    path.write_text(json.dumps([{"question": "q?", "error": None, "intermediate_logs": MESSY}]))
    (record,) = read_traces(path)
    assert [(s.thought, s.tool, s.arguments, s.observation) for s in record.steps] == [
        ("a", None, {"input": "without its action"}, "what was seen\nRemark: no marker that is known"),
        ("", "wikisearch", {}, None),
        ("", "getLabel", {"ids": ["Q1", "Q2"]}, None),
    ]
    trace = record.trace
    assert trace.result.details["humaniq"]["written"]["3"] == {"tool": "GetLabel", "input": "[Q1, Q2"}
    assert (trace.answer_graph, trace.final_answer, trace.answer_model) == ("[x]", "all", "y")
    assert trace.result.details["humaniq"]["preamble"] == "some words first"
    assert trace.result.details["humaniq"]["repeated"] == ["Final Answer:again"]
    assert trace.status == "submitted"
