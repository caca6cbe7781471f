"""Spans of model calls, tool calls and runs, as a collector gets them over HTTP."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from showhow.db.run_spec import RunLimits
from showhow.guard.redaction import NOTHING_SECRET, redactor_of
from showhow.llm.errors import ChatBadRequest, ChatUnavailable
from showhow.llm.structured_output import to_strict_schema
from showhow.llm.telemetry import Telemetry, start_telemetry
from showhow.llm.types import Message, ModelToolCall
from showhow.llm.usage import TokenPrice
from showhow.reasoners.base import Task
from showhow.reasoners.humaniq.agent import HumanIQ
from showhow.runs.recorders import MemoryRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.tools.read import _AnswerReply
from showhow.tools.registry import BUILT_IN_TOOLS, available_tools
from tests.fixtures.town import Town
from tests.reasoners.agents import ALONE, ENDS
from tests.servers.model import Fails, ModelServer, Reply, Request, Says
from tests.servers.otlp import CollectedSpan, OtlpServer
from tests.servers.provider_models import AnthropicFormat, GeminiFormat, OllamaFormat, ProviderServer

KEY = "sk-planted-5f3a9c"
ASKED = [Message("system", "Be brief, Showhow."), Message("user", f"Which city has the key {KEY}?")]
CALLED = ModelToolCall("call_1", "read", {"title": "Zürich"})
HISTORY = [*ASKED, Message("assistant", "", (CALLED,)), Message("tool", "It is big.", answers="call_1")]
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@contextmanager
def exported(
    monkeypatch: pytest.MonkeyPatch, spans: list[CollectedSpan], *, with_content: bool = False
) -> Iterator[Telemetry]:
    """Spans that are sent to a collector; `spans` gets them at the end."""
    with OtlpServer() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        telemetry = start_telemetry(with_content=with_content, redactor=redactor_of((KEY,)))
        try:
            yield telemetry
        finally:
            telemetry.close()
        spans += collector.spans
        assert KEY.encode() not in b"".join(collector.bodies)


def test_a_model_call_is_a_span_with_usage_and_without_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    details = {
        "prompt_tokens_details": {"cached_tokens": 600},
        "completion_tokens_details": {"reasoning_tokens": 80},
    }
    spans: list[CollectedSpan] = []
    said = Says("The capital is Zürich.", usage=(1000, 100), details=details, extra={"reasoning_content": "Easy."})
    with ModelServer([said]) as server, exported(monkeypatch, spans) as telemetry:
        chat = server.chat(key=KEY, price=TokenPrice(2.0, 8.0, cached=0.5)).tracing(telemetry).with_purpose("step")
        chat.ask(HISTORY, tools=[BUILT_IN_TOOLS["read"]], on_text=str.strip, stop=["\nObservation:"])
        port = int(server.url.rpartition(":")[2].partition("/")[0])
    (span,) = spans
    assert (span.name, span.kind, span.service, span.is_error) == ("chat scripted", "client", "showhow", False)
    assert span.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "scripted",
        "gen_ai.request.stop_sequences": ["\nObservation:"],
        "gen_ai.request.stream": True,
        "gen_ai.output.type": "text",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 1000,
        "gen_ai.usage.output_tokens": 100,
        "gen_ai.usage.cache_read.input_tokens": 600,
        "gen_ai.usage.reasoning.output_tokens": 80,
        "gen_ai.usage.cost": pytest.approx(0.0019),
        "server.address": "127.0.0.1",
        "server.port": port,
        "showhow.purpose": "step",
        **({"gen_ai.request.temperature": 0.0} if "gen_ai.request.temperature" in span.attributes else {}),
    }


def test_a_span_has_the_temperature_of_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    spans: list[CollectedSpan] = []
    with ModelServer([Says("Bern")]) as server, exported(monkeypatch, spans) as telemetry:
        server.chat().tracing(telemetry).ask(HISTORY, temperature=0.7)
    assert spans[0].attributes["gen_ai.request.temperature"] == 0.7


def test_texts_are_sent_without_keys_if_the_settings_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    spans: list[CollectedSpan] = []
    said = Says("I look.", calls=[("read", {"title": "Bern"})], extra={"reasoning_content": "Easy."})
    with ModelServer([said]) as server, exported(monkeypatch, spans, with_content=True) as telemetry:
        server.chat(key=KEY).tracing(telemetry).ask(HISTORY, tools=[BUILT_IN_TOOLS["read"]])
    sent = {name: json.loads(text) for name, text in spans[0].attributes.items() if str(text).startswith("[{")}
    assert sent["gen_ai.system_instructions"] == [{"type": "text", "content": "Be brief, Showhow."}]
    assert sent["gen_ai.input.messages"] == [
        {"role": "user", "parts": [{"type": "text", "content": "Which city has the key [key removed]?"}]},
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "call_1", "name": "read", "arguments": {"title": "Zürich"}}],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "response": "It is big."}]},
    ]
    (output,) = sent["gen_ai.output.messages"]
    assert output["finish_reason"] == "tool_calls"
    assert output["parts"][:2] == [
        {"type": "reasoning", "content": "Easy."},
        {"type": "text", "content": "I look."},
    ]
    assert output["parts"][2].items() >= {"type": "tool_call", "name": "read", "arguments": {"title": "Bern"}}.items()
    assert sent["gen_ai.tool.definitions"][0]["parameters"] == BUILT_IN_TOOLS["read"].schema


@pytest.mark.parametrize("with_content", [False, True])
def test_a_failed_call_has_the_kind_of_its_error(monkeypatch: pytest.MonkeyPatch, with_content: bool) -> None:  # noqa: FBT001 - a case
    spans: list[CollectedSpan] = []
    refusal = Fails(400, f"not with {KEY}, which the prompt holds")
    with ModelServer([refusal]) as server, exported(monkeypatch, spans, with_content=with_content) as telemetry:
        chat = server.chat(key=KEY).tracing(telemetry)
        with pytest.raises(ChatBadRequest):
            chat.ask(ASKED, reply_schema=to_strict_schema(_AnswerReply))
    assert (spans[0].is_error, spans[0].attributes["error.type"]) == (True, "ChatBadRequest")
    assert spans[0].attributes["gen_ai.output.type"] == "json"
    assert ("which the prompt holds" in str(spans[0].attributes)) is with_content


@pytest.mark.parametrize(
    ("wire", "provider", "details"),
    [
        (AnthropicFormat(), "anthropic", {"cache_read_input_tokens": 600, "cache_creation_input_tokens": 100}),
        (GeminiFormat(), "gcp.gemini", {}),
        (OllamaFormat(), "ollama", {}),
    ],
    ids=["anthropic", "gemini", "ollama"],
)
def test_each_provider_has_its_name(
    monkeypatch: pytest.MonkeyPatch,
    wire: AnthropicFormat | GeminiFormat | OllamaFormat,
    provider: str,
    details: dict[str, int],
) -> None:
    spans: list[CollectedSpan] = []
    said = Says("Paris.", usage=(300, 10), details=details)
    with ProviderServer(wire, [said]) as server, exported(monkeypatch, spans) as telemetry:
        server.chat().tracing(telemetry).ask(ASKED)
    attributes = spans[0].attributes
    assert (attributes["gen_ai.provider.name"], attributes["gen_ai.request.model"]) == (provider, "scripted")
    assert attributes["gen_ai.usage.input_tokens"] == 300 + sum(details.values())
    assert attributes.get("gen_ai.usage.cache_read.input_tokens") == details.get("cache_read_input_tokens")
    assert attributes.get("gen_ai.usage.cache_creation.input_tokens") == details.get("cache_creation_input_tokens")


def test_the_spans_of_a_run_are_one_trace(monkeypatch: pytest.MonkeyPatch, town: Town) -> None:
    def script(request: Request) -> Reply:
        if "response_format" in request.body:
            return Says(json.dumps({"answer": None, "quotes": []}))
        title = town.gold[0].question.text.rpartition(" ")[2].rstrip("?")
        calls = [Says(calls=[("read", {"title": title, "question": "Who?"})]), Says(calls=[("wikisearch", {})])]
        asked = sum("response_format" not in one.body for one in server.requests) - 1
        return [*calls, ENDS][asked]

    spans: list[CollectedSpan] = []
    with ModelServer(script) as server, exported(monkeypatch, spans) as telemetry:
        chat = server.chat().tracing(telemetry)
        context = replace(town.context, chat=chat, telemetry=telemetry)
        recorder = MemoryRecorder()
        task = Task("Who is the mother of Ada?", context, available_tools(context.world))
        control = RunControl(RunLimits(steps=20), on_text=str.strip)
        assert run_reasoner(HumanIQ(ALONE, chat=chat), task, recorder, control).ending == "answered"
    by_name: dict[str, list[CollectedSpan]] = {}
    for span in spans:
        by_name.setdefault(span.name, []).append(span)
    (run,) = by_name["invoke_agent humaniq"]
    assert run.attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "humaniq",
        "gen_ai.conversation.id": str(recorder.trace_id),
        "showhow.ending": "answered",
    }
    assert run.parent == b""
    assert {span.trace for span in spans} == {run.trace}
    tools = [span for span in spans if span.name.startswith("execute_tool ")]
    assert [span.attributes["gen_ai.tool.name"] for span in tools] == [
        step.tool for step in recorder.steps if step.tool
    ]
    assert all((span.parent, span.kind) == (run.id, "internal") for span in tools)
    for step, span in zip([step for step in recorder.steps if step.tool], tools, strict=True):
        assert (span.is_error, span.attributes.get("error.type")) == (step.error is not None, step.error_kind)
    purposes = {span.attributes["showhow.purpose"]: span.parent for span in by_name["chat scripted"]}
    assert purposes["step"] == run.id
    assert len(by_name["chat scripted"]) == len(server.requests)


def test_nothing_is_imported_or_sent_while_it_is_off() -> None:
    program = """
import sys
from showhow.llm.client import build_chat_client
from showhow.llm.types import Message, ModelProfile
import showhow.app.cli.main, showhow.runs.services, showhow.tools.registry
from showhow.settings import Settings
assert showhow.runs.services.Services(Settings.from_env({})).telemetry is None
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
build_chat_client(ModelProfile("scripted", sys.argv[1])).ask([Message("user", "Which city?")])
# LangSmith, which LangChain loads, looks for OpenTelemetry itself.
assert not [name for name in sys.modules if name.startswith(("opentelemetry.exporter", "showhow.llm.telemetry"))]
"""
    with ModelServer([Says("Paris.")]) as server:
        done = subprocess.run([sys.executable, "-c", program, server.url], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert len(server.requests) == 1


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ChatUnavailable, match=r"install showhow\[telemetry\], or set it to off"):
        start_telemetry(with_content=False, redactor=NOTHING_SECRET)


@pytest.mark.parametrize(
    ("variables", "service"),
    [
        ({"OTEL_SERVICE_NAME": "lab"}, "lab"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=lab2"}, "lab2"),
        ({}, "showhow"),
    ],
)
def test_the_service_is_named_by_opentelemetrys_variables(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], service: str
) -> None:
    spans: list[CollectedSpan] = []
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with exported(monkeypatch, spans) as telemetry, telemetry.tool_call("read", {}):
        pass
    assert [(span.name, span.service) for span in spans] == [("execute_tool read", service)]
