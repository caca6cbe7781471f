"""The same two traces in the forms in which other tools write them, and the exports of every format."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from showhow.db.models import Project, Question, Step, Trace
from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats import FORMATS
from tests.fewshot_library.traces import export

RECORDED = Path(__file__).with_name("recorded")


@dataclass(frozen=True)
class Task:
    """What each sample tells: a question, calls with results, and an answer."""

    question: str
    calls: list[tuple[str, str, dict[str, Any], str]]
    """Thought, tool, arguments and result."""
    thought: str
    answer: str


TASKS = [
    Task(
        "Which river is longer, the Ister or the Padus?",
        [
            ("The first one.", "read", {"title": "Ister"}, "The Ister is 2850 km long."),
            ("The second one.", "read", {"title": "Padus"}, "The Padus is 652 km long."),
        ],
        "2850 is more than 652.",
        "the Ister",
    ),
    Task(
        "Who mapped Ultima?",
        [("I search for it.", "search", {"query": "map of Ultima", "k": 2}, "Pytheas mapped Ultima.")],
        "It says so.",
        "Pytheas",
    ),
]


def to_record(task: Task) -> TraceRecord:
    """The task as a trace of ours."""
    project = Project(name="p", world="w")
    question = Question(project_id=project.id, position=1, text=task.question)
    trace = Trace(question_id=question.id, status="approved", final_answer=task.answer, final_thought=task.thought)
    steps = [
        Step(trace_id=trace.id, position=n, thought=thought, tool=tool, arguments=arguments, observation=result)
        for n, (thought, tool, arguments, result) in enumerate(task.calls, start=1)
    ]
    return TraceRecord(project, question, trace, steps)


def openai_chat(task: Task) -> Any:
    """As vLLM returns it: thoughts in a field of their own, arguments as text, ids of calls."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Use the tools."},
        {"role": "user", "content": [{"type": "text", "text": task.question}]},
    ]
    for number, (thought, tool, arguments, result) in enumerate(task.calls):
        function = {"name": tool, "arguments": json.dumps(arguments)}
        call = {"id": f"c{number}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": None, "reasoning": thought, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "name": tool, "content": result},
        ]
    return {"messages": [*messages, {"role": "assistant", "content": f"<think>{task.thought}</think>{task.answer}"}]}


def parallel_chat(task: Task) -> Any:
    """All calls in one message, as models with parallel calls make them."""
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
        for n, (_, tool, arguments, _) in enumerate(task.calls)
    ]
    results = [
        {"role": "tool", "tool_call_id": f"c{n}", "name": tool, "content": result}
        for n, (_, tool, _, result) in enumerate(task.calls)
    ]
    asked, answered = {"role": "user", "content": task.question}, {"role": "assistant", "content": task.answer}
    return {"messages": [asked, {"role": "assistant", "tool_calls": calls}, *results, answered]}


def langchain_chat(task: Task) -> Any:
    """As `messages_to_dict` writes messages of Anthropic, whose calls are also parts of the content."""
    messages: list[Any] = [{"type": "human", "data": {"type": "human", "content": task.question}}]
    for number, (thought, tool, arguments, result) in enumerate(task.calls):
        call_id = f"toolu_{number}"
        content = [
            {"type": "thinking", "thinking": thought, "signature": "Zz"},
            {"type": "tool_use", "id": call_id, "name": tool, "input": arguments},
        ]
        call = {"name": tool, "args": arguments, "id": call_id, "type": "tool_call"}
        messages += [
            {"type": "ai", "data": {"type": "ai", "content": content, "tool_calls": [call]}},
            {"type": "tool", "data": {"type": "tool", "content": result, "tool_call_id": call_id, "name": tool}},
        ]
    return [*messages, {"type": "ai", "data": {"type": "ai", "content": [{"type": "text", "text": task.answer}]}}]


def flat_langchain_chat(task: Task) -> Any:
    """The state of a graph: messages without `data`."""
    return {"messages": [message["data"] for message in langchain_chat(task)]}


def trajectory(task: Task) -> Any:
    """A trajectory of another agent in ATIF."""
    steps: list[dict[str, Any]] = [{"source": "user", "message": task.question}]
    for number, (thought, tool, arguments, result) in enumerate(task.calls):
        call = {"tool_call_id": f"c{number}", "function_name": tool, "arguments": arguments}
        results = [{"source_call_id": f"c{number}", "content": result}]
        steps.append({"source": "agent", "message": thought, "tool_calls": [call], "observation": {"results": results}})
    steps.append({"source": "agent", "message": task.answer, "reasoning_content": task.thought})
    numbered = [{"step_id": number, **step} for number, step in enumerate(steps, start=1)]
    return {"schema_version": "ATIF-v1.6", "agent": {"name": "other", "version": "1"}, "steps": numbered}


def inspect_log(tasks: list[Task]) -> Any:
    """A log of Inspect with one sample a task."""
    samples = []
    for number, task in enumerate(tasks, start=1):
        messages: list[dict[str, Any]] = [{"role": "user", "content": task.question}]
        for n, (thought, tool, arguments, result) in enumerate(task.calls):
            call = {"id": f"c{n}", "function": tool, "arguments": arguments, "type": "function"}
            messages += [
                {"role": "assistant", "content": [{"type": "reasoning", "reasoning": thought}], "tool_calls": [call]},
                {"role": "tool", "content": result, "tool_call_id": f"c{n}", "function": tool},
            ]
        messages.append({"role": "assistant", "content": task.answer})
        samples.append(
            {
                **{"id": number, "epoch": 1, "input": task.question, "target": task.answer, "messages": messages},
                **{"output": {"completion": task.answer}, "scores": {"match": {"value": 1.0}}, "total_time": 2.5},
            }
        )
    evaluation = {"task": "rivers", "model": "m", "run_id": "r", "created": "2026-01-01T00:00:00Z"}
    return {"version": 2, "eval": evaluation, "results": {"scores": [{"value": 0.5}]}, "samples": samples}


def _span(trace: str, name: str, at: int, attributes: dict[str, Any]) -> Any:
    return {
        "name": name,
        "context": {"trace_id": trace, "span_id": f"{trace}-{at}"},
        "parent_id": f"{trace}-0" if at else None,
        "start_time": f"2026-01-01T00:00:{at:02}Z",
        "end_time": f"2026-01-01T00:00:{at + 1:02}Z",
        "status": {"status_code": "OK"},
        "attributes": attributes,
    }


def openinference_spans(tasks: list[Task]) -> Any:
    """Spans of an agent with its model, its tools and a judge, as Phoenix records them."""
    spans = []
    for task in tasks:
        trace = f"t{len(spans)}"
        root = {"openinference.span.kind": "AGENT", "input.value": task.question, "output.value": task.answer}
        spans.append(_span(trace, "agent", 0, root))
        sent: list[dict[str, Any]] = [{"message.role": "user", "message.content": task.question}]
        for n, (thought, tool, arguments, result) in enumerate(task.calls):
            call = {
                "message.role": "assistant",
                "message.content": thought,
                "message.tool_calls.0.tool_call.id": f"c{n}",
                "message.tool_calls.0.tool_call.function.name": tool,
                "message.tool_calls.0.tool_call.function.arguments": json.dumps(arguments),
            }
            spans.append(_span(trace, "model", 3 * n + 1, _messages(sent, call)))
            run = {"tool.name": tool, "input.value": json.dumps(arguments), "output.value": result}
            spans.append(_span(trace, tool, 3 * n + 2, {"openinference.span.kind": "TOOL", **run}))
            sent += [
                call,
                {"message.role": "tool", "message.tool_call_id": f"c{n}", "message.content": result},
            ]
        final = {"message.role": "assistant", "message.content": task.answer}
        spans.append(_span(trace, "model", 20, _messages(sent, final)))
        graded = [{"message.role": "user", "message.content": f"Grade: {task.question} {task.answer}"}] * 9
        grade = {"message.role": "assistant", "message.content": "good"}
        spans.append(_span(trace, "judge", 21, _messages(graded, grade)))
    return spans


def _messages(sent: list[dict[str, Any]], output: dict[str, Any]) -> dict[str, Any]:
    attributes = {"openinference.span.kind": "LLM"}
    for side, messages in (("input", sent), ("output", [output])):
        for number, message in enumerate(messages):
            attributes |= {f"llm.{side}_messages.{number}.{key}": value for key, value in message.items()}
    return attributes


def opentelemetry_spans(tasks: list[Task]) -> Any:
    """Spans by the conventions of OpenTelemetry; the messages are lists, as in events."""
    spans = []
    for task in tasks:
        trace = f"t{len(spans)}"
        asked = {"role": "user", "parts": [{"type": "text", "content": task.question}]}
        answered = {"role": "assistant", "parts": [{"type": "text", "content": task.answer}]}
        root = {"gen_ai.operation.name": "invoke_agent"}
        root |= {"gen_ai.input.messages": [asked], "gen_ai.output.messages": [answered]}
        spans.append(_span(trace, "agent", 0, root))
        sent: list[Any] = [asked]
        for n, (thought, tool, arguments, result) in enumerate(task.calls):
            call = {"type": "tool_call", "id": f"c{n}", "name": tool, "arguments": arguments}
            message = {"role": "assistant", "parts": [{"type": "reasoning", "content": thought}, call]}
            chat = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": list(sent)}
            spans.append(_span(trace, "chat", 3 * n + 1, chat | {"gen_ai.output.messages": [message]}))
            run = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, "gen_ai.tool.call.id": f"c{n}"}
            run |= {"gen_ai.tool.call.arguments": arguments, "gen_ai.tool.call.result": result}
            spans.append(_span(trace, tool, 3 * n + 2, run))
            response = {"type": "tool_call_response", "id": f"c{n}", "response": result}
            sent += [message, {"role": "tool", "parts": [response]}]
        final = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": sent, "gen_ai.output.messages": [answered]}
        spans.append(_span(trace, "chat", 20, final))
    return spans


def jaeger_trace(tasks: list[Task]) -> Any:
    """The same spans as Jaeger exports them: lists are JSON texts, and times microseconds."""
    spans = []
    for number, span in enumerate(opentelemetry_spans(tasks)):
        tags = [
            {"key": name, "type": "string", "value": value if isinstance(value, str) else json.dumps(value)}
            for name, value in span["attributes"].items()
        ]
        above = {"refType": "CHILD_OF", "traceID": span["context"]["trace_id"], "spanID": span["parent_id"]}
        spans.append(
            {
                **{"traceID": span["context"]["trace_id"], "spanID": span["context"]["span_id"]},
                **{"operationName": span["name"], "references": [above] if span["parent_id"] else []},
                **{"startTime": 1_767_225_600_000_000 + 1000 * number, "duration": 900, "tags": tags, "logs": []},
            }
        )
    traces = dict.fromkeys(span["traceID"] for span in spans)
    return {"data": [{"traceID": key, "spans": [s for s in spans if s["traceID"] == key]} for key in traces]}


def write_lines(records: list[Any], path: Path) -> None:
    """Write one JSON value a line; numbers may be NaN."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def write_document(value: Any, path: Path) -> None:
    """Write one JSON value; numbers may be NaN."""
    path.write_text(json.dumps(value), encoding="utf-8")


def write_columns(records: list[Any], path: Path) -> None:
    """Write chats as a table of Parquet, whose columns have JSON texts where their values have no common shape."""
    names = list(dict.fromkeys(name for record in records for name in record))
    columns = {name: [json.dumps(record.get(name)) for record in records] for name in names}
    pyarrow.parquet.write_table(pa.table(columns), path)


@dataclass(frozen=True)
class Sample:
    """A file in memory, of one format: the value that is changed, and how it is written."""

    format: str
    value: Any
    write: Callable[[Any, Path], None]
    suffix: str = ".jsonl"


def _exported(name: str, folder: Path) -> Sample:
    path = folder / f"{name}.jsonl"
    export(FORMATS[name], [to_record(task) for task in TASKS], path)
    return Sample(name, [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()], write_lines)


EXPORTED = ("showhow", "openai", "langchain", "atif", "dspy")
FOREIGN = {
    "chats of OpenAI": Sample("openai", [openai_chat(task) for task in TASKS], write_lines),
    "chats with parallel calls": Sample("openai", [parallel_chat(task) for task in TASKS], write_lines),
    "chats of LangChain": Sample("langchain", [langchain_chat(task) for task in TASKS], write_lines),
    "states of LangGraph": Sample("langchain", [flat_langchain_chat(task) for task in TASKS], write_lines),
    "trajectories": Sample("atif", [trajectory(task) for task in TASKS], write_lines),
    "a log of Inspect": Sample("inspect", inspect_log(TASKS), write_document, ".json"),
    "spans of OpenInference": Sample("openinference", openinference_spans(TASKS), write_document, ".json"),
    "spans of OpenTelemetry": Sample("opentelemetry", opentelemetry_spans(TASKS), write_document, ".json"),
    "a trace of Jaeger": Sample("opentelemetry", jaeger_trace(TASKS)["data"], write_document, ".json"),
    "a table of chats": Sample("parquet", [openai_chat(task) for task in TASKS], write_columns, ".parquet"),
}


def make_sample(name: str, folder: Path) -> Sample:
    """The sample of this name; the exports are written into the folder first."""
    return FOREIGN[name] if name in FOREIGN else _exported(name, folder)
