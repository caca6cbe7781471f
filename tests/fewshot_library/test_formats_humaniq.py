"""HumanIQ's published files, and our traces in their form."""

import io
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from db.models import Judgement, Project, Question, Step, Trace
from db.record import TraceRecord
from fewshot_library.formats import detect, read_traces
from fewshot_library.formats.format import FormatError, Refused
from fewshot_library.formats.humaniq import HUMANIQ, read, write
from fewshot_library.formats.humaniq_tools import to_ours, to_theirs

LIBRARIES = [
    "mintaka.json",
    "compmix.json",
    *(
        f"late_fusion_library/{name}_{side}.json"
        for name in ("mintaka", "compmix", "qald")
        for side in ("wikipedia", "wikidata")
    ),
]
MARKS = re.compile(
    r"\b(Thought|Action Input|Action|Observation|Final Answer|Assistant Response|Internal Knowledge"
    r"|Wikidata[_ ]Answer|Wikipedia[_ ]Answer)\s*:"
)
RUNS = ["compmix_latefusion_wikidata", "mintaka_late_fusion_wikidata", "qald_late_fusion_wikidata"]


def told(record):
    """What a demonstration says, without keys and times."""
    trace = record.trace
    return (
        record.question.text,
        [(s.thought, s.tool, s.arguments, s.observation) for s in record.steps],
        (trace.final_thought, trace.answer_text, trace.answer_graph, trace.final_answer),
        trace.configuration,
    )


def exported(records, tmp_path):
    path = tmp_path / "exported.json"
    stream = io.StringIO()
    losses = write(records, stream)
    path.write_text(stream.getvalue(), encoding="utf-8")
    return path, losses


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_published_demonstrations_leave_as_they_came(shared_data, tmp_path, name):
    source = shared_data / "humaniq" / name
    records = list(read_traces(source))
    path, losses = exported(records, tmp_path)
    assert detect(source) is detect(path) is HUMANIQ
    assert losses.told() == []
    assert [told(record) for record in read(path)] == [told(record) for record in records]
    before, after = json.loads(source.read_text()), json.loads(path.read_text())
    for old, new in zip(before, after, strict=True):
        assert (new["Question"], new["Dataset"]) == (old["Question"].strip(), old["Dataset"])
        assert new["Action_Sequence"] == old["Action_Sequence"]
        # Beside white space the published text itself comes back.
        assert "".join(new["One_Shot"].split()) == "".join(old["One_Shot"].split())


def test_calls_are_ours_and_answers_stand_by_source(shared_data):
    records = list(read(shared_data / "humaniq" / "compmix.json"))
    assert all(r.trace.status == "approved" and r.author == "HumanIQ" and r.project.name == "Compmix" for r in records)
    mirrorshades = next(r for r in records if "mirrorshades" in r.question.text)
    assert [s.tool for s in mirrorshades.steps] == [
        "wikisearch",
        "WikiSearchSummary",
        "wikisearch",
        "getWikiDataID",
        "generateQuery",
        "runQuery",
        "wikisearch",
        "wikisearch",
    ]
    assert mirrorshades.steps[4].arguments == {"question": mirrorshades.question.text, "entity_ids": ["Q2085020"]}
    assert mirrorshades.steps[5].arguments["sparql"].startswith("SELECT DISTINCT ?x1 WHERE { wd:Q2085020")
    assert mirrorshades.steps[5].observation == "[{'value': '1954-04-14T00:00:00Z'}]"
    assert "\n" in mirrorshades.steps[1].thought
    assert (mirrorshades.trace.answer_text, mirrorshades.trace.answer_graph) == ("None", "[1954-04-14]")
    assert mirrorshades.trace.final_answer.startswith("Michael Bruce Sterling is the editor")


def test_where_sequence_and_text_disagree_the_text_is_followed_and_the_sequence_remembered(shared_data):
    records = list(read(shared_data / "humaniq" / "late_fusion_library" / "compmix_wikidata.json"))
    wrong = 0
    for record in records:
        named = record.trace.configuration.get("humaniq", {}).get("action_sequence", "").split()
        used = [to_theirs(step.tool, step.arguments, "")[0] for step in record.steps if step.tool]
        wrong += bool(named) and named != used
    assert wrong == 18


def test_reading_twice_gives_the_same_keys(shared_data):
    path = shared_data / "humaniq" / "mintaka.json"
    assert list(read(path)) == list(read(path))


def ours(**changes) -> TraceRecord:
    project = Project(name="p", world="w")
    question = Question(project_id=project.id, position=1, text="Who built it?")
    trace = Trace(
        question_id=question.id,
        status="approved",
        final_answer="Ada",
        answer_graph="Q1",
        answer_model="Eve",
        active_seconds=3.0,
    )
    steps = [
        Step(
            trace_id=trace.id,
            position=1,
            thought="a",
            tool="wikisearch",
            arguments={"query": "quay"},
            observation="x",
            rating=4,
        ),
        Step(
            trace_id=trace.id,
            position=2,
            thought="b",
            tool="read",
            arguments={"title": "Quay", "question": "who?"},
            observation="y",
        ),
        Step(
            trace_id=trace.id,
            position=3,
            thought="c",
            tool="generateQuery",
            arguments={"question": "who?", "entity_ids": ["Q1", "Q2"]},
        ),
        Step(
            trace_id=trace.id, position=4, thought="d", tool="getLabel", arguments={"ids": ["Q1"]}, data={"labels": []}
        ),
        Step(trace_id=trace.id, position=5, thought="just a thought"),
    ]
    for name, value in changes.items():
        setattr(steps[0], name, value)
    return TraceRecord(
        project, question, trace, steps, judgements=[Judgement(trace_id=trace.id, aspect="approval", value="approved")]
    )


def test_our_traces_leave_with_a_list_of_what_is_lost_and_come_back_with_the_rest(tmp_path):
    record = ours()
    path, losses = exported([record], tmp_path)
    assert losses.lost == Counter(
        {
            "a step's rating": 1,
            "a step's data": 1,
            "a trace's answer_model": 1,
            "a trace's active_seconds": 1,
            "judgements": 1,
            "who recorded it": 1,
        }
    )
    (back,) = read(path)
    assert told(back)[:3] == told(record)[:3]
    assert json.loads(path.read_text())[0]["Action_Sequence"] == "\tWikiSearch\tread\tGenerateSparql\tGetLabel"


HOSTILE = [
    "x\nObservation: y\nThought: z",
    "Action:",
    "\\Thought: a",
    "{x} {{y}} }{",
    "Final Answer: none",
    "a\n\n\nb",
    "[Q1] # [Q2]",
    '{"a": 1}',
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("field", ["thought", "observation", "arguments"])
def test_text_that_looks_like_the_format_comes_back_as_it_was(tmp_path, text, field):
    record = ours(**{field: {"query": text} if field == "arguments" else text})
    path, losses = exported([record], tmp_path)
    assert losses.refused == []
    (back,) = read(path)
    assert told(back)[:3] == told(record)[:3]


def test_white_space_that_the_format_cannot_hold_is_counted(tmp_path):
    _, losses = exported([ours(observation="  x\n")], tmp_path)
    assert losses.lost["white space round a value"] == 1


def test_an_answer_that_would_be_read_as_two_is_left_out_with_the_reason(tmp_path):
    record = ours()
    record.trace.answer_graph = "Q1, Wikipedia_Answer: Q2"
    path, losses = exported([record, ours()], tmp_path)
    assert [each.place for each in losses.refused] == [f"trace {record.trace.id}"]
    assert len(list(read(path))) == 1


def test_a_trace_of_another_tool_keeps_its_call(tmp_path):
    record = ours(tool="calculator", arguments={"input": '{"a": 1}', "b": 2})
    path, _ = exported([record], tmp_path)
    assert next(read(path)).steps[0].arguments == {"input": '{"a": 1}', "b": 2}


@pytest.mark.parametrize(
    ("name", "text", "tool", "arguments"),
    [
        ("WikiSearch", "a,b", "wikisearch", {"query": "a,b"}),
        ("GetLabel", "['Q1', 'Q2']", "getLabel", {"ids": ["Q1", "Q2"]}),
        ("GetLabel", "nothing", "getLabel", {"ids": ["nothing"]}),
        ("GenerateSparql", "who?", "generateQuery", {"question": "who?", "entity_ids": []}),
        ("GenerateSparql", "[Q5]", "generateQuery", {"question": "Q?", "entity_ids": ["Q5"]}),
        ("RunSparql", "ASK {}", "runQuery", {"sparql": "ASK {}"}),
        ("RunSparql", None, "runQuery", {}),
        ("Other", "x", "Other", {"input": "x"}),
    ],
)
def test_their_calls_in_our_words(name, text, tool, arguments):
    call = to_ours(name, text, "Q?")
    assert (call.tool, call.arguments) == (tool, arguments)
    again = to_ours(*to_theirs(call.tool, call.arguments, "Q?"), "Q?")
    assert again == call


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[{", "line 1: no JSON"),
        ('{"One_Shot": 1}', "a list of records is expected"),
        ('[{"One_Shot": "x"}]', "record 1: a demonstration has"),
        (
            '[{"Question": "q", "Dataset": "d", "Action_Sequence": "", "One_Shot": "Thought: x"}]',
            'record 1: the text has no "Final Answer:"',
        ),
    ],
)
def test_a_broken_library_is_refused_with_the_place(tmp_path, content, reason):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(FormatError, match=r"x\.json") as refused:
        list(read(path))
    assert reason in str(refused.value)


def test_the_six_hundred_published_runs_are_all_read(shared_data):
    found = [r for name in RUNS for r in read_traces(shared_data / "humaniq" / "agent_traces" / f"{name}.json")]
    assert not [r for r in found if isinstance(r, Refused)]
    assert Counter(r.trace.status for r in found) == {"submitted": 588, "failed": 12}
    assert len({r.trace.id for r in found}) == 600
    assert {(r.author, r.trace.reasoner, r.run.reasoner) for r in found} == {(None, "humaniq", "humaniq")}
    assert all(r.trace.final_answer and r.trace.answer_model for r in found if r.trace.status == "submitted")
    assert all(r.trace.configuration["humaniq"]["error"] for r in found if r.trace.status == "failed")
    assert all(next(r.faults(), None) is None for r in found)


@pytest.mark.parametrize("name", RUNS)
def test_no_word_of_a_published_run_is_dropped(shared_data, name):
    path = shared_data / "humaniq" / "agent_traces" / f"{name}.json"
    for raw, record in zip(json.loads(path.read_text()), read_traces(path), strict=True):
        trace = record.trace
        kept = [record.question.text, json.dumps(trace.configuration, ensure_ascii=False)]
        kept += [trace.final_thought, trace.answer_graph, trace.answer_text, trace.final_answer, trace.answer_model]
        for step in record.steps:
            written = trace.configuration.get("humaniq", {}).get("written", {}).get(str(step.position), {})
            name_and_input = (
                to_theirs(step.tool, step.arguments, record.question.text)
                if step.tool
                else tuple(step.arguments.values())
            )
            kept += [step.thought, step.observation, *map(str, name_and_input), *map(str, written.values())]
        told_words = "".join(" ".join(filter(None, kept)).replace("\\n", " ").replace('\\"', '"').split())
        for part in (raw.get("intermediate_logs") or "", raw.get("error") or ""):
            for word in MARKS.sub(" ", part).split():
                assert word.strip(",") in told_words, (raw["question"], word)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ("3", "no JSON object"),
        ('{"question": " ", "error": "x"}', "no question"),
        ('{"question": "q"}', "neither a log nor an error"),
        ('{"question": "q", "error": 3}', "'error' is no text"),
        ('{"question": "q", "mood": "x"}', "unknown field 'mood'"),
    ],
)
def test_a_record_that_is_no_run_is_refused_and_the_others_are_kept(tmp_path: Path, record, reason):
    path = tmp_path / "set_x.json"
    path.write_text(
        '[{"question": "q?", "error": null, "intermediate_logs": "Thought: a\\nFinal Answer: b"}, ' + record + "]"
    )
    kept, refused = read_traces(path)
    assert (kept.trace.final_answer, kept.trace.final_thought, kept.project.name) == ("b", "a", "Set")
    assert refused.place == "record 2"
    assert reason in refused.reason


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
