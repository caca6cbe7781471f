"""HumanIQ's published files, and our traces in their form."""

import json
from collections import Counter

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from showhow.db.models import Judgement, Project, Question, Step, Trace
from showhow.db.run_spec import RunResult
from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats import detect_format, read_traces
from showhow.fewshot_library.formats.format import FormatError, RecordRemark, RefusedRecord
from showhow.fewshot_library.formats.humaniq import HUMANIQ, read_demonstrations
from showhow.fewshot_library.formats.humaniq_record import from_humaniq_call, to_humaniq_call
from tests.examples import examples
from tests.fewshot_library.traces import export

LIBRARIES = [
    "mintaka.json",
    "compmix.json",
    *(
        f"late_fusion_library/{name}_{side}.json"
        for name in ("mintaka", "compmix", "qald")
        for side in ("wikipedia", "wikidata")
    ),
]


def told(record):
    """The content of a demonstration, without ids and times."""
    trace = record.trace
    return (
        record.question.text,
        [(s.thought, s.tool, s.arguments, s.observation) for s in record.steps],
        (trace.final_thought, trace.answer_text, trace.answer_graph, trace.final_answer),
        trace.result,
    )


def traces(path):
    return [result for result in read_demonstrations(path) if isinstance(result, TraceRecord)]


def exported(records, tmp_path):
    path = tmp_path / "exported.json"
    return path, export(HUMANIQ, records, path)


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_published_demonstrations_round_trip(shared_data, tmp_path, name):
    source = shared_data / "humaniq" / name
    records = [result for result in read_traces(source) if isinstance(result, TraceRecord)]
    path, losses = exported(records, tmp_path)
    assert detect_format(source) is detect_format(path) is HUMANIQ
    assert losses.summary_lines() == []
    assert [told(record) for record in traces(path)] == [told(record) for record in records]
    before, after = json.loads(source.read_text()), json.loads(path.read_text())
    for old, new in zip(before, after, strict=True):
        assert (new["Question"], new["Dataset"]) == (old["Question"].strip(), old["Dataset"])
        assert new["Action_Sequence"] == old["Action_Sequence"]
        # Beside white space the published text itself comes back.
        assert "".join(new["One_Shot"].split()) == "".join(old["One_Shot"].split())


def test_calls_are_converted_and_answers_are_stored_by_source(shared_data):
    records = list(read_demonstrations(shared_data / "humaniq" / "compmix.json"))
    assert {(r.trace.status, r.trace.reasoner, r.author) for r in records} == {("approved", "human", "HumanIQ authors")}
    assert {(r.project.name, r.project.world) for r in records} == {("HumanIQ Compmix", "wikipedia-wikidata")}
    mirrorshades = next(r for r in records if "mirrorshades" in r.question.text)
    assert [s.tool for s in mirrorshades.steps] == [
        "wikisearch",
        "wikisearch",
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
    assert mirrorshades.steps[1].arguments == {"query": "Mirrorshades"}
    assert mirrorshades.trace.result.details["humaniq"]["written"]["2"]["tool"] == "WikiSearchSummary"
    assert "\n" in mirrorshades.steps[1].thought
    assert (mirrorshades.trace.answer_text, mirrorshades.trace.answer_graph) == ("None", "[1954-04-14]")
    assert mirrorshades.trace.final_answer.startswith("Michael Bruce Sterling is the editor")


@pytest.mark.parametrize(("name", "wrong"), [("mintaka", 4), ("qald", 13), ("compmix", 18)])
def test_the_text_is_used_where_it_differs_from_the_sequence_with_a_remark(shared_data, name, wrong):
    source = shared_data / "humaniq" / "late_fusion_library" / f"{name}_wikidata.json"
    remarks = [result for result in read_demonstrations(source) if isinstance(result, RecordRemark)]
    assert len(remarks) == wrong
    first = json.loads(source.read_text())[int(remarks[0].place.removeprefix("record ")) - 1]
    in_text = [line.partition(":")[2].strip() for line in first["One_Shot"].split("\n") if line.startswith("Action:")]
    assert f"its text {', '.join(in_text)}; the text was used" in remarks[0].text


def test_repeated_reads_give_the_same_ids(shared_data):
    path = shared_data / "humaniq" / "mintaka.json"
    assert list(read_demonstrations(path)) == list(read_demonstrations(path))


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


def test_exported_traces_round_trip_except_for_the_reported_losses(tmp_path):
    record = ours()
    path, losses = exported([record], tmp_path)
    assert losses.lost == Counter(
        {
            "a step's rating": 1,
            "a step's data": 1,
            "a trace's answer_model": 1,
            "a trace's active_seconds": 1,
            "a judgement": 1,
            "a trace's author": 1,
            "the project's name": 1,
            "the project's world": 1,
            "a trace's times": 1,
            "a step's times": 5,
        }
    )
    (back,) = read_demonstrations(path)
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
def test_markers_inside_values_round_trip(tmp_path, text, field):
    record = ours(**{field: {"query": text} if field == "arguments" else text})
    path, losses = exported([record], tmp_path)
    assert losses.refused == []
    (back,) = read_demonstrations(path)
    assert told(back)[:3] == told(record)[:3]


MARKERS = [
    "Observation:",
    "Thought: ",
    "Action:",
    "Action Input: x",
    "Final Answer:",
    "Assistant Response: ",
    "Question:",
]
OTHERS = [
    "\\",
    "\n",
    " ",
    "{",
    "}}",
    "{{",
    "Wikidata_Answer: ",
    ", Wikipedia_Answer:",
    "[Q1] # [Q2]",
    '{"query": "a"}',
    "\r",
]
LINES = st.sampled_from([*MARKERS, *OTHERS, "x"])
WORDS = st.lists(LINES, max_size=5).map("".join) | st.text(st.characters(exclude_categories=("Cs",)), max_size=9)
MAYBE = st.none() | WORDS
IDS = st.lists(st.sampled_from(["Q1", "P22", "x", "", " Q3", "[Q4]"]), max_size=3)
VALUES = WORDS | IDS | st.integers() | st.none()
CALLS = st.one_of(
    st.tuples(st.none(), st.just({}) | st.builds(dict, input=VALUES)),
    st.tuples(st.sampled_from(["wikisearch", "WikiSearch", "calculator"]) | WORDS, st.dictionaries(WORDS, VALUES)),
    st.tuples(st.just("wikisearch"), st.builds(dict, query=VALUES)),
    st.tuples(st.just("read"), st.builds(dict, title=WORDS, question=WORDS)),
    st.tuples(st.just("generateQuery"), st.builds(dict, question=WORDS, entity_ids=IDS)),
    st.tuples(st.just("getLabel"), st.builds(dict, ids=IDS)),
)


@st.composite
def any_trace(draw) -> TraceRecord:
    project = Project(name="p" + draw(WORDS), world="w")
    question = Question(project_id=project.id, position=1, text="q" + draw(WORDS))
    trace = Trace(
        question_id=question.id,
        status="approved",
        final_thought=draw(MAYBE),
        answer_text=draw(MAYBE),
        answer_graph=draw(MAYBE),
        final_answer=draw(MAYBE | WORDS.map("f".__add__)),
        result=RunResult(
            details=draw(
                st.just({})
                | st.builds(dict, humaniq=VALUES | st.builds(dict, final_line=VALUES, question=VALUES, written=VALUES))
                | st.just({"humaniq": {"written": {"1": {"tool": "WikiSearch", "input": 3}, "2": 4}}})
            )
        ),
    )
    steps = []
    for position in range(1, draw(st.integers(0, 3)) + 1):
        tool, arguments = draw(CALLS)
        step = Step(trace_id=trace.id, position=position, thought=draw(WORDS), tool=tool, arguments=arguments)
        step.observation = draw(MAYBE)
        steps.append(step)
    return TraceRecord(project, question, trace, steps)


@settings(max_examples=examples(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(any_trace())
def test_any_trace_round_trips_or_is_left_out_with_the_reason(tmp_path_factory, record):
    path, losses = exported([record], tmp_path_factory.mktemp("any"))
    back = traces(path)
    event(losses.refused[0].reason if losses.refused else "comes back")
    assert (len(back), len(losses.refused)) in {(1, 0), (0, 1)}
    for imported in back:
        trimmed = any(what.startswith("white space") for what in losses.lost)
        assert said(imported, trimmed=trimmed) == said(record, trimmed=trimmed)


def said(record, *, trimmed):
    """The content of a trace that the text represents, without white space that is reported as lost."""

    def cut(value):
        return value.strip() if trimmed and value is not None else value

    trace = record.trace
    answers = (trace.answer_text, trace.answer_graph, trace.final_answer)
    return (
        cut(record.question.text),
        [(cut(s.thought), s.tool, s.arguments, cut(s.observation)) for s in record.steps],
        cut(trace.final_thought or "") or None,
        [cut(answer) for answer in answers],
    )


def test_lost_white_space_is_counted(tmp_path):
    _, losses = exported([ours(observation="  x\n")], tmp_path)
    assert losses.lost["white space around a step's observation"] == 1


def test_an_ambiguous_answer_is_left_out_with_the_reason(tmp_path):
    record = ours()
    record.trace.answer_graph = "Q1, Wikipedia_Answer: Q2"
    path, losses = exported([record, ours()], tmp_path)
    (refused,) = losses.refused
    assert (refused.place, refused.reason) == (
        f"trace {record.trace.id}",
        "in this format its answers would be parsed differently",
    )
    assert len(list(read_demonstrations(path))) == 1


def test_a_call_of_an_unknown_tool_round_trips(tmp_path):
    record = ours(tool="calculator", arguments={"input": '{"a": 1}', "b": 2})
    path, _ = exported([record], tmp_path)
    assert next(read_demonstrations(path)).steps[0].arguments == {"input": '{"a": 1}', "b": 2}


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
        ("Other", '{"a": 1}', "Other", {"a": 1}),
        ("Other", '{"a": NaN}', "Other", {"input": '{"a": NaN}'}),
        ("Other", '{"a": "\\ud83d"}', "Other", {"input": '{"a": "\\ud83d"}'}),
        ("WikiSearch", '{"a": "\\u0000"}', "wikisearch", {"query": '{"a": "\\u0000"}'}),
    ],
)
def test_humaniq_calls_are_converted(name, text, tool, arguments):
    call = from_humaniq_call(name, text, "Q?")
    assert (call.tool, call.arguments) == (tool, arguments)
    again = from_humaniq_call(*to_humaniq_call(call.tool, call.arguments, "Q?"), "Q?")
    assert again == call


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[{", "line 1: invalid JSON"),
        ('{"One_Shot": 1}', "a list is required"),
    ],
)
def test_a_malformed_library_is_refused_with_the_place(tmp_path, content, reason):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(FormatError, match=r"x\.json") as refused:
        list(read_demonstrations(path))
    assert reason in str(refused.value)


def test_a_malformed_demonstration_is_refused_with_its_place_and_the_others_are_read(tmp_path):
    good = {"Question": "q", "Dataset": "d", "Action_Sequence": "", "One_Shot": "Thought: x\nFinal Answer: y"}
    broken = [{"One_Shot": "x"}, good | {"One_Shot": "Thought: x"}, 3]
    (tmp_path / "x.json").write_text(json.dumps([*broken, good]))
    *refused, record = read_demonstrations(tmp_path / "x.json")
    needed = "a demonstration needs Question, Dataset, Action_Sequence, One_Shot, each a text"
    assert refused == [
        RefusedRecord("record 1", needed),
        RefusedRecord("record 2", 'the text has no "Final Answer:"'),
        RefusedRecord("record 3", needed),
    ]
    assert record.trace.final_answer == "y"
