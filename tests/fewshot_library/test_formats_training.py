"""Training formats: ShareGPT, preference pairs, DSPy examples, supervised pairs."""

import json
import re

import datasets
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

from showhow.db.models import SPAN_SKILL, Step
from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats import FORMATS, detect_format, read_traces
from showhow.fewshot_library.formats.format import ExportLosses, FormatError, RefusedRecord, TraceExport
from tests.examples import examples
from tests.fewshot_library.traces import export, fork_of, plain_trace, records, told

DSPY, SHAREGPT, TRL, PAIRS = (FORMATS[name] for name in ("dspy", "sharegpt", "trl", "phantomwiki"))


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def exported(chosen, given, tmp_path):
    losses = export(chosen, given, tmp_path / "x.jsonl")
    return lines(tmp_path / "x.jsonl"), losses


def loaded(path, tmp_path):
    """The rows as Hugging Face datasets reads them."""
    datasets.disable_progress_bars()
    return datasets.load_dataset("json", data_files=str(path), cache_dir=str(tmp_path / "cache"), split="train")


def without_nulls(value):
    if isinstance(value, list):
        return [without_nulls(element) for element in value]
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return value


@pytest.fixture
def published(shared_data) -> list[TraceRecord]:
    return [r for r in read_traces(shared_data / "humaniq" / "mintaka.json") if isinstance(r, TraceRecord)]


def replayed(conversation):
    """The steps and the answer of a conversation, parsed by LLaMA-Factory's rules."""
    sides = [("human", "observation"), ("gpt", "function_call")]
    assert all(turn["from"] in sides[place % 2] for place, turn in enumerate(conversation))
    assert len(conversation) % 2 == 0
    steps = []
    for turn in conversation[1:-1]:
        if turn["from"] == "function_call":
            thought = re.search("<think>\n(.*?)\n</think>\n\n", turn["value"], re.DOTALL)
            call = json.loads(turn["value"].replace(thought.group(0), "") if thought else turn["value"])
            steps.append([thought.group(1) if thought else "", call["name"], call["arguments"]])
        else:
            steps[-1].append(turn["value"])
    return steps, conversation[-1]["value"].rpartition("</think>\n\n")[2]


def test_sharegpt_turns_alternate_and_have_thoughts_and_calls(published, tmp_path):
    rows, losses = exported(SHAREGPT, published, tmp_path)
    assert losses.refused == []
    for row, record in zip(rows, published, strict=True):
        assert row["conversations"][0] == {"from": "human", "value": record.question.text}
        steps, answer = replayed(row["conversations"])
        assert steps == [[s.thought, s.tool, s.arguments, s.observation] for s in record.steps]
        assert answer == record.trace.final_answer
        assert {tool["name"] for tool in json.loads(row["tools"])} >= {step.tool for step in record.steps}


def test_a_thought_without_a_call_joins_the_next_turn_and_is_reported(tmp_path):
    record = plain_trace()
    record.steps.insert(0, Step(trace_id=record.trace.id, position=1, thought="first"))
    record.steps[1].position = 2
    (row,), losses = exported(SHAREGPT, [record], tmp_path)
    assert row["conversations"][1]["value"].startswith("<think>\nfirst\n\nlook\n</think>\n\n{")
    assert losses.lost["the end of a thought without a call"] == 1
    record.steps[0].observation = "a clock struck"
    (row,), losses = exported(SHAREGPT, [record], tmp_path)
    assert [turn["from"] for turn in row["conversations"]] == [
        "human",
        "gpt",
        "human",
        "function_call",
        "observation",
        "gpt",
    ]
    unfinished, odd = plain_trace("</think>"), plain_trace()
    odd.trace.final_answer = None
    rows, losses = exported(SHAREGPT, [unfinished, odd], tmp_path)
    assert rows == []
    assert [refusal.reason for refusal in losses.refused] == [
        "one of its thoughts contains '</think>', which ends a thought",
        "it has no answer, and conversations in this format end with one",
    ]


PLAN = {"question": "who?"}
SENT = [
    {"role": "system", "content": "Make a plan."},
    {"role": "user", "content": '{"question": "when?"}'},
    {"role": "assistant", "content": '{"tree": "born(x)"}'},
    {"role": "user", "content": '{"question": "who?"}'},
]


def skill_trace(reply: str = "read(x)") -> TraceRecord:
    """A trace of a method whose model planned, and answered from what a tool returned."""
    record = plain_trace()
    record.trace.final_thought = "So the answer is: Ada. [step 2]"
    calls = [("plan/1", PLAN, {"tree": reply}), ("answer/2", {"passages": ["Ada was there."]}, {"answers": ["Ada"]})]
    plan, answer = (
        Step(
            trace_id=record.trace.id,
            position=position,
            thought="I think.",
            skill=skill,
            arguments=request,
            data={"reply": replied, "calls": 1},
            observation="read(x)",
        )
        for position, (skill, request, replied) in zip((1, 4), calls, strict=True)
    )
    record.steps[0].position = 3
    span = Step(trace_id=record.trace.id, position=2, thought="I work on it.", skill=SPAN_SKILL, observation="Ada")
    record.steps = [plan, span, record.steps[0], answer]
    return record


def test_a_trace_of_skills_is_the_prompts_that_were_sent_and_the_replies_as_the_models(tmp_path):
    record = skill_trace()
    sent = {record.steps[0].id: SENT}
    (planned, answered), losses = exported(FORMATS["openai"], TraceExport([record], find_prompt=sent.get), tmp_path)
    shown = [SENT[0], SENT[1], SENT[2] | {"weight": 0}, SENT[3]]
    assert planned == {"messages": [*shown, {"role": "assistant", "content": '{"tree": "read(x)"}'}]}
    # No model was asked: gold reasoning replied, or the trace was imported.
    assert answered["messages"] == [
        {"role": "user", "content": '{"passages": ["Ada was there."]}'},
        {"role": "assistant", "content": '{"answers": ["Ada"]}'},
    ]
    assert (losses.written, losses.refused) == (1, [])
    (first, second), _ = exported(SHAREGPT, TraceExport([record], find_prompt=sent.get), tmp_path)
    assert (first["system"], first["tools"]) == ("Make a plan.", "[]")
    assert [turn["from"] for turn in first["conversations"]] == ["human", "gpt", "human", "gpt"]
    for row in (planned, answered, first, second):
        assert json.dumps(row).count("Ada") <= 2
        assert "So the answer is" not in json.dumps(row)
    parquet = tmp_path / "x.parquet"
    assert export(FORMATS["parquet"], TraceExport([record], find_prompt=sent.get), parquet).summary_lines() == []
    one, two = pq.read_table(parquet).to_pylist()
    assert [message["content"] for message in one["messages"]] == [
        message["content"] for message in planned["messages"]
    ]
    assert (two["messages"][-1]["content"], two["question"]["text"], two["steps"]) == (
        '{"answers": ["Ada"]}',
        "who?",
        [],
    )
    assert list(read_traces(parquet)) == [record]
    (chat, _), _ = exported(FORMATS["langchain"], [record], tmp_path)
    assert [message["type"] for message in chat["messages"]] == ["human", "ai"]


def test_a_corrected_reply_to_a_skill_is_preferred_to_the_first_one(tmp_path):
    parent, fork = failed(skill_trace("born(x)")), skill_trace()
    fork.trace.parent_id = parent.trace.id
    (pair,), losses = exported(TRL, TraceExport([fork], find_trace={parent.trace.id: parent}.get), tmp_path)
    assert pair == {
        "prompt": [{"role": "user", "content": '{"question": "who?"}'}],
        "chosen": [{"role": "assistant", "content": '{"tree": "read(x)"}'}],
        "rejected": [{"role": "assistant", "content": '{"tree": "born(x)"}'}],
        "tools": [],
    }
    same = skill_trace("born(x)")
    same.trace.parent_id = parent.trace.id
    _, losses = exported(TRL, TraceExport([same], find_trace={parent.trace.id: parent}.get), tmp_path)
    assert "answered otherwise" in losses.refused[0].reason


def failed(record):
    record.trace.status = "failed"
    return record


def test_a_fixed_trace_is_chosen_over_its_failed_parent(tmp_path):
    parent = failed(plain_trace())
    fork = fork_of(parent, 1)
    (pair,), losses = exported(TRL, TraceExport([fork], find_trace={parent.trace.id: parent}.get), tmp_path)
    asked, looked, seen = pair["prompt"]
    assert (asked, seen["role"]) == ({"role": "user", "content": "who?"}, "tool")
    assert looked["tool_calls"][0]["function"] == {"name": "read", "arguments": {"title": "x"}}
    assert [message["content"] for message in pair["rejected"]] == ["Ada"]
    assert [message["content"] for message in pair["chosen"]] == [
        "look elsewhere",
        "Eve was there.",
        "so it was Eve\n\nFinal Answer: Eve",
    ]
    assert [tool["function"]["name"] for tool in pair["tools"]] == ["read", "wikisearch"]
    assert losses.written == 1
    other = fork_of(parent, 0)
    export(TRL, TraceExport([fork, other], find_trace={parent.trace.id: parent}.get), tmp_path / "x.jsonl")
    # Arguments of several tools stay apart when they become a column.
    assert [without_nulls(row) for row in loaded(tmp_path / "x.jsonl", tmp_path)] == lines(tmp_path / "x.jsonl")


def test_a_step_with_another_result_is_not_part_of_the_prompt(tmp_path):
    parent = failed(plain_trace())
    fork = fork_of(parent, 1)
    fork.steps[0].observation = "another article"
    (pair,), _ = exported(TRL, TraceExport([fork], find_trace={parent.trace.id: parent}.get), tmp_path)
    assert [message["role"] for message in pair["prompt"]] == ["user"]
    assert [message["role"] for message in pair["chosen"][:2]] == ["assistant", "tool"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda fork, _: setattr(fork.trace, "parent_id", None), "it was not forked from another trace"),
        (lambda fork, _: setattr(fork.trace, "status", "rejected"), "it is rejected itself"),
        (lambda _, parent: setattr(parent.trace, "status", "approved"), "is approved, not failed"),
        (lambda fork, _: setattr(fork.trace, "parent_id", fork.trace.id), "is not in the store"),
        (lambda fork, _: (fork.steps.pop(), setattr(fork.trace, "final_thought", None)), None),
    ],
)
def test_a_trace_without_a_preference_pair_is_left_out_with_the_reason(tmp_path, change, reason):
    parent = failed(plain_trace())
    fork = fork_of(parent, 1)
    change(fork, parent)
    if reason is None:
        fork.trace.final_answer, reason = parent.trace.final_answer, "has nothing after their common beginning"
    rows, losses = exported(TRL, TraceExport([fork], find_trace={parent.trace.id: parent}.get), tmp_path)
    assert rows == []
    assert reason in losses.refused[0].reason


def test_records_left_out_for_one_reason_are_reported_together():
    losses = ExportLosses(refused=[RefusedRecord(f"trace {number}", "it is short") for number in range(5)])
    assert losses.summary_lines() == ["left out: trace 0, trace 1, trace 2 and 2 more: it is short"]


def test_dspy_examples_round_trip(published, tmp_path):
    rows, losses = exported(DSPY, published, tmp_path)
    assert losses.refused == []
    assert detect_format(tmp_path / "x.jsonl") is DSPY
    assert [told(record) for record in read_traces(tmp_path / "x.jsonl")] == [told(record) for record in published]
    steps = len(published[0].steps)
    assert rows[0]["trajectory"][f"tool_name_{steps}"] == "finish"
    assert rows[0]["trajectory"]["tool_args_0"] == published[0].steps[0].arguments


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(records())
def test_any_trace_round_trips_through_dspy_except_for_the_reported_losses(tmp_path_factory, record):
    path = tmp_path_factory.mktemp("any") / "x.jsonl"
    losses = export(DSPY, [record], path)
    (back,) = read_traces(path, "dspy")
    blurs = ("error", "finish", "final thought", "arguments")
    if not any(word in what for what in losses.lost for word in blurs):
        assert told(back) == told(record)


def test_a_trajectory_written_by_dspy_is_read(tmp_path):
    example = {
        "question": "who?",
        "reasoning": "clear",
        "trajectory": {
            "thought_0": "look",
            "tool_name_0": "search",
            "tool_args_0": {"query": "x"},
            "observation_0": ["a", 1],
            "thought_1": "enough",
            "tool_name_1": "finish",
            "tool_args_1": {},
            "observation_1": "Completed.",
        },
        "answer": "Ada",
        "score": 0.5,
    }
    (tmp_path / "x.json").write_text(json.dumps([example, {**example, "answer": None}], indent=1))
    first, second = read_traces(tmp_path / "x.json")
    assert told(first) == ("who?", [("look", "search", {"query": "x"}, '["a", 1]', None)], "enough\n\nclear", "Ada")
    assert first.trace.result.details["dspy"] == {"score": 0.5}
    assert (second.trace.status, second.trace.final_answer) == ("failed", None)
    assert second.trace.result.details["dspy"]["reasoning"] == ["enough", "clear"]


DONE = {"thought_9": "enough", "tool_name_9": "finish", "tool_args_9": {}, "observation_9": "Completed."}


@pytest.mark.parametrize(
    ("trajectory", "steps", "remark"),
    [
        ({"thought_0": "x", "mood_0": "y"}, [("x", None, {}, None, None)], "trajectory.mood_0 belong to no step"),
        ({"thought_1": "x", "thought_3": "y"}, [(t, None, {}, None, None) for t in "xy"], "has only the steps 1, 3"),
        ({"thought_0": 3}, [("3", None, {}, None, None)], ""),
        (
            {"observation_0": "z", "tool_args_0": "b", "tool_name_0": "a", "thought_0": None},
            [("", "a", {"input": "b"}, "z", "its arguments are not JSON")],
            "the call of step 1: its arguments are not JSON",
        ),
        ({"thought_0": "x", "tool_args_0": {"a": 1}}, [("x", None, {}, None, None)], "tool_args_0 has no tool"),
        ({}, [], ""),
        (None, [], ""),
    ],
)
@pytest.mark.parametrize("ending", [{}, DONE])
def test_a_trajectory_that_is_truncated_or_in_part_unreadable_is_read(tmp_path, trajectory, steps, remark, ending):
    example = {"question": "q", "trajectory": trajectory and trajectory | ending, "answer": "Ada"}
    (tmp_path / "x.json").write_text(json.dumps(example))
    *remarks, record = read_traces(tmp_path / "x.json")
    question, read, thought, answer = told(record)
    assert (question, thought, answer) == ("q", "enough" if trajectory and ending else None, "Ada")
    assert [step[:4] for step in read] == [step[:4] for step in steps]
    assert [bool(step[4]) for step in read] == [bool(step[4]) for step in steps]
    assert not remark or any(remark in entry.text for entry in remarks)


@pytest.mark.parametrize(
    ("answer", "text"),
    [(True, "true"), (["Ada", "Eve"], "Ada, Eve"), (1815, "1815"), ([], None), ({"a": 1}, '{"a": 1}')],
)
def test_an_answer_of_a_dspy_example_may_be_any_value(tmp_path, answer, text):
    (tmp_path / "x.json").write_text(json.dumps({"question": "q", "trajectory": {}, "answer": answer}))
    (record,) = read_traces(tmp_path / "x.json")
    assert told(record) == ("q", [], None, text)


def test_supervised_pairs_have_evidence_question_and_all_answers(published, tmp_path):
    published[0].question.gold_answers = [{"text": "Ada", "entity": "Q1"}, {"text": "Eve, of Rome", "entity": None}]
    rows, losses = exported(PAIRS, published, tmp_path)
    assert (rows[0]["completion"], rows[0]["answer"]) == ("Ada,Eve, of Rome", ["Ada", "Eve, of Rome"])
    assert losses.lost["a comma inside an answer"] >= 1
    for row, record in zip(rows, published, strict=True):
        assert row["prompt"].endswith(f"Question: {record.question.text}\nAnswer:")
        assert all(step.observation.strip() in row["prompt"] for step in record.steps if step.observation)
        assert not any(step.thought and step.thought in row["prompt"] for step in record.steps)
    assert losses.lost["a step's call"] == sum(step.tool is not None for record in published for step in record.steps)
    assert loaded(tmp_path / "x.jsonl", tmp_path).features["answer"] == datasets.List(datasets.Value("string"))
    nothing = plain_trace()
    nothing.trace.final_answer = None
    _, losses = exported(PAIRS, [nothing], tmp_path)
    assert losses.refused[0].reason == "it has neither a gold answer nor a final answer"


def test_export_only_formats_cannot_be_read(tmp_path):
    export(PAIRS, [plain_trace()], tmp_path / "x.jsonl")
    with pytest.raises(FormatError, match="phantomwiki cannot be imported; these can: showhow"):
        read_traces(tmp_path / "x.jsonl", "phantomwiki")
    with pytest.raises(FormatError, match="is not recognized"):
        read_traces(tmp_path / "x.jsonl")
