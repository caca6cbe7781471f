"""Exports to train with: what a model was sent and replied, by the record of a real server."""

import json
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq
import pytest
from langchain_core.messages import messages_from_dict

from showhow.fewshot_library.formats import read_traces
from showhow.runs.services import Services
from showhow.settings import Settings
from showhow.tasks.trace_export import ExportPlan, write_traces
from showhow.worlds.article_files import read_articles
from showhow.worlds.build import WorldContents, build_world
from tests.app.cli.in_process import run_in_process
from tests.servers.model import ModelServer, Request, Says

HARBOUR = Path(__file__).parents[1] / "tools"
QUESTION = "Where was Ada Reed born?"
FOUND = {"thought": "Her article says so.", "answers": ["Gullhaven"], "found": True, "steps": [1, 2]}


def look_twice_and_finish(request: Request) -> Any:
    last = request.body["messages"][-1]
    if last["role"] != "tool":
        names = ("Ada Reed", "Gullhaven")
        return Says(calls=[("wikisearch", {"thought": f"I look for {name}.", "query": name}) for name in names])
    return Says(calls=[("finish", FOUND)])


@pytest.fixture
def asked(tmp_path: Path, shared_data: Path) -> tuple[Path, list[Request]]:
    """A home in which HumanIQ has answered a question, with demonstrations of people, and what the server was sent."""
    sources = WorldContents(read_articles(HARBOUR / "harbour.jsonl"), HARBOUR / "harbour.ttl")
    build_world(tmp_path / "worlds", "harbour", sources)
    run_in_process(tmp_path, "traces", "import", shared_data / "humaniq" / "mintaka.json")
    run_in_process(tmp_path, "library", "freeze", "people")
    with ModelServer(look_twice_and_finish) as server:
        model = {"SHOWHOW_MODEL": "openai:scripted", "SHOWHOW_MODEL_BASE_URL": server.url}
        options = ("--library", "people", "-k", "2", "--option", "response=none", "--option", "own_answer=False")
        done = run_in_process(tmp_path, "ask", QUESTION, "--world", "harbour", *options, **model)
        assert done.returncode == 0, done.stderr
    return tmp_path, server.requests


def export(home: Path, format_name: str) -> Path:
    file = home / f"x.{format_name}"
    environ = {"SHOWHOW_HOME": str(home)}
    services = Services(Settings.from_env(environ), environ)
    with file.open("wb") as stream:
        assert write_traces(services, ExportPlan(format_name, statuses=("submitted",)), stream).written == 1
    services.close()
    return file


def test_a_training_row_of_humaniq_is_what_the_model_saw_and_replied(asked: tuple[Path, list[Request]]):
    home, requests = asked
    (line,) = export(home, "openai").read_text().splitlines()
    row = json.loads(line)
    *prompt, reply = row["messages"]
    sent = requests[-1].body
    assert [message["role"] for message in prompt] == [message["role"] for message in sent["messages"]]
    assert [message["content"] for message in prompt] == [message.get("content") or "" for message in sent["messages"]]
    assert [call["function"] for message in prompt for call in message.get("tool_calls", ())] == [
        call["function"] for message in sent["messages"] for call in message.get("tool_calls", ())
    ]
    assert row["tools"] == sent["tools"]
    (call,) = reply["tool_calls"]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("finish", FOUND)
    # Demonstrations are shown, not trained on; a row has the question once, and two calls in one message.
    own = [message for message in row["messages"] if message["role"] == "assistant" and "weight" not in message]
    assert [len(message["tool_calls"]) for message in own] == [2, 1]
    assert sum(message.get("weight") == 0 for message in prompt) > 2
    assert prompt[0]["role"] == "system"
    assert line.count(QUESTION) == 1


def test_langchain_files_are_lines_of_objects_that_standard_tools_read(asked: tuple[Path, list[Request]]):
    file = export(asked[0], "langchain")
    datasets.disable_progress_bars()
    loaded = datasets.load_dataset("json", data_files=str(file), cache_dir=str(file.parent / "cache"), split="train")
    assert loaded.column_names == ["messages"]
    messages = messages_from_dict(json.loads(file.read_text())["messages"])
    assert [messages[0].type, messages[-1].type] == ["system", "ai"]
    assert messages[-1].tool_calls[0]["args"] == FOUND


def test_parquet_and_sharegpt_hold_the_same_conversation(asked: tuple[Path, list[Request]]):
    home, requests = asked
    (row,) = pq.read_table(export(home, "parquet")).to_pylist()
    assert [message["content"] for message in row["messages"]][:-1] == [
        message.get("content") or "" for message in requests[-1].body["messages"]
    ]
    (record,) = read_traces(home / "x.parquet")
    assert (record.question.text, record.trace.final_answer, len(record.steps)) == (QUESTION, "Gullhaven", 2)
    turns = json.loads(export(home, "sharegpt").read_text())["conversations"]
    assert len(turns) % 2 == 0
    assert [call["name"] for call in json.loads(turns[-3]["value"])] == ["wikisearch", "wikisearch"]
    assert json.loads(turns[-1]["value"])["arguments"] == FOUND
