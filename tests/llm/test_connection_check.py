"""A check of the connection says what a server can do, from one request with a tool."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from showhow.llm.connection_check import CHECK_SECONDS, ConnectionReport, check_connection
from showhow.llm.types import ModelProfile
from showhow.llm.usage import TokenPrice
from tests.servers.model import Fails, ModelServer, Reply, Request, Says, Sends
from tests.servers.provider_models import AnthropicFormat, GeminiFormat, OllamaFormat, ProviderServer, WireFormat

# Anthropic's and Ollama's clients leave connections to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

KEY = "sk-planted-in-a-check-31"
OSLO = {"city": "Oslo", "year": 2020, "unit": "people"}
LIMA = {"city": "Lima", "year": 2020, "unit": "thousands"}
BOTH = Says("I look up both cities.", calls=[("population", OSLO), ("population", LIMA)])


@pytest.fixture(autouse=True, scope="module")
def closed_connections() -> Iterator[None]:
    """Collects the connections here, so that no later test is blamed for them."""
    yield
    gc.collect()


def check(reply: Reply, **fields: Any) -> tuple[ConnectionReport, list[Request]]:
    with ModelServer(lambda _: reply) as server:
        report = check_connection(ModelProfile("scripted", server.url, KEY, name="local", **fields))
    return report, server.requests


def test_one_streamed_request_with_a_tool_shows_every_capability():
    report, requests = check(BOTH, price=TokenPrice(1.0, 10.0), reply_limit=500, temperature=0.5)
    assert {name: value for name, value, _ in report.findings()} == {
        "Tools": True,
        "Parallel calls": True,
        "Argument schema": True,
        "Streaming": True,
        "Usage": True,
    }
    assert (report.profile, report.error, report.calls_in_text) == ("local", None, False)
    assert (report.input_tokens, report.output_tokens, report.cost) == (100, 10, pytest.approx(0.0002))
    assert 0 < report.seconds < CHECK_SECONDS
    (request,) = requests
    assert request.tools == ["population"]
    assert (request.body["stream"], request.body["max_tokens"], request.body["temperature"]) == (True, 500, 0.5)
    assert report.to_json()["tools"] is True


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Says("", calls=[("population", OSLO)]), {"tools": True, "parallel_calls": False, "schema": True}),
        (Says("", calls=[("population", {"city": "Oslo", "year": "2020"})]), {"tools": True, "schema": False}),
        (Says("", calls=[("population", '{"city": "Os')]), {"tools": True, "schema": False}),
        (Says("Oslo has 700,000 inhabitants."), {"tools": False, "parallel_calls": None, "schema": None}),
        (Says("Hi", usage=None), {"usage": False, "input_tokens": None, "cost": None}),
        (
            Says('<tool_call>{"name": "population", "arguments": {"city": "Oslo", "year": 2020, "unit": "people"}}'
                 "</tool_call>"),
            {"tools": True, "calls_in_text": True, "schema": True},
        ),
    ],
    ids=["one call", "wrong arguments", "no JSON", "no call", "no usage", "calls as text"],
)  # fmt: skip
def test_what_is_missing_is_reported(reply: Reply, expected: dict[str, Any]):
    report, _ = check(reply)
    assert {name: getattr(report, name) for name in expected} == expected
    assert report.error is None


def test_a_server_that_refuses_tools_is_asked_once_more_without():
    def reply(request: Request) -> Reply:
        return Fails(400, "tools are not supported by this model") if request.tools else Says("Hello")

    with ModelServer(reply) as server:
        report = check_connection(ModelProfile("scripted", server.url))
    assert [request.tools for request in server.requests] == [["population"], []]
    assert (report.error, report.tools, report.streaming) == (None, False, True)
    assert "tools are not supported" in (report.tools_error or "")
    assert "Prompts as plain text are used instead." in {name: text for name, _, text in report.findings()}["Tools"]


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Fails(401, f"Incorrect API key provided: {KEY}"), "refuses the key (401)"),
        (Fails(404, "no such model"), "has no model scripted"),
        (Fails(429, "slow down"), "429"),
        (Fails(500, "out of memory"), "500"),
        (Sends(b"<html>a proxy</html>"), "instead of a reply"),
    ],
)
def test_a_failure_is_one_sentence_without_the_key(reply: Reply, message: str):
    report, requests = check(reply)
    assert report.error is not None
    assert message in report.error
    assert KEY not in str(report)
    assert len(requests) == 1


def test_a_server_that_does_not_run_and_a_missing_key_are_named():
    assert "127.0.0.1:9 does not answer" in (check_connection(ModelProfile("a", "http://127.0.0.1:9/v1")).error or "")
    missing = check_connection(ModelProfile("openai:gpt-5-mini", key_variable="NOWHERE_API_KEY"))
    assert "set NOWHERE_API_KEY in the environment" in (missing.error or "")


@pytest.mark.parametrize("wire_format", [AnthropicFormat(), GeminiFormat(), OllamaFormat()], ids=lambda f: f.model)
def test_the_servers_of_other_providers_are_checked_too(wire_format: WireFormat):
    with ProviderServer(wire_format, [BOTH]) as server:
        profile = ModelProfile(wire_format.model, server.url, "planted-key-7f31", reply_limit=400, context_window=9_000)
        report = check_connection(profile)
    assert (report.error, report.tools, report.parallel_calls, report.usage) == (None, True, True, True)
