"""What each provider's package sends, and where, in an environment full of keys, addresses and proxies."""

import gc
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import anthropic
import pytest
from google.genai import Client as GoogleClient
from ollama import Client as OllamaClient
from openai import OpenAI

from showhow.guard.destinations import parse_origin
from showhow.llm.client import build_chat_client
from showhow.llm.connection_check import check_connection
from showhow.llm.errors import ChatError, ChatUnavailable
from showhow.llm.providers import PROVIDERS
from showhow.llm.types import Message, ModelProfile
from showhow.runs.services import Services
from showhow.settings import Settings
from tests.servers.faulty_server import FaultyServer, run_faulty_server, status

# Gemini's and Ollama's clients leave connections to the garbage collector after an error.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

ASKED = [Message("user", "Which city?")]
KEYS = {
    name: f"planted-{name.lower()}"
    for name in (
        *("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY"),
        *("GEMINI_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY", "OLLAMA_API_KEY", "STRIPE_API_KEY", "LANGSMITH_API_KEY"),
        *("LANGSMITH_GATEWAY_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ORGANIZATION"),
    )
}
NATIVE = ["anthropic:some", "google_genai:some", "ollama:some"]
MODELS = [*NATIVE, "openai:some", "groq:some", "mistralai:some", "some"]


@pytest.fixture(autouse=True, scope="module")
def closed_connections() -> Iterator[None]:
    """Collects the connections here, so that no later test is blamed for them."""
    yield
    gc.collect()


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with run_faulty_server() as server:
        server.respond_with(status(400))
        yield server


@pytest.fixture
def other() -> Iterator[FaultyServer]:
    """A server to which nothing may be sent."""
    with run_faulty_server() as other:
        other.respond_with(status(400))
        yield other


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch, other: FaultyServer, tmp_path: Path) -> None:
    """An environment with keys, and with addresses, headers and proxies that lead elsewhere."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    for name in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{name}_CUSTOM_HEADERS", "X-Custom: planted-header\nAuthorization: planted-header")
    for name in (
        *("OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_URL", "GOOGLE_GEMINI_BASE_URL"),
        *("OLLAMA_HOST", "GROQ_API_BASE", "MISTRAL_BASE_URL", "LANGSMITH_ENDPOINT"),
        *("OPENAI_PROXY", "ANTHROPIC_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"),
    ):
        monkeypatch.setenv(name, other.url)
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    (tmp_path / ".netrc").write_text("default login planted-netrc password planted-netrc\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("HOME", str(tmp_path))


def ask(profile: ModelProfile) -> ChatError:
    with pytest.raises(ChatError) as failed:
        build_chat_client(replace(profile, seconds=10.0)).ask(ASKED)
    return failed.value


@pytest.mark.parametrize("model", MODELS)
def test_a_server_gets_no_key_of_the_environment(model: str, server: FaultyServer, other: FaultyServer):
    ask(ModelProfile(model, server.url))
    assert server.asked
    assert "planted" not in json.dumps([request.headers for request in server.asked])
    assert "planted" not in json.dumps([request.path for request in server.asked])
    assert other.asked == []


@pytest.mark.parametrize("model", MODELS)
def test_a_server_gets_the_key_of_its_profile_and_no_other(model: str, server: FaultyServer, other: FaultyServer):
    ask(ModelProfile(model, server.url, "key-of-the-profile"))
    header = {"anthropic:some": "x-api-key", "google_genai:some": "x-goog-api-key"}.get(model, "authorization")
    for request in server.asked:
        assert request.headers[header].removeprefix("Bearer ") == "key-of-the-profile"
        assert "planted" not in json.dumps([request.headers, request.path])
    assert other.asked == []


@pytest.mark.long
@pytest.mark.parametrize("model", [*NATIVE, "openai:some"])
@pytest.mark.parametrize("code", [302, 308])
def test_no_redirect_takes_a_key_elsewhere(model: str, code: int, server: FaultyServer, other: FaultyServer):
    server.respond_with(status(code, Location=f"{other.url.replace('127.0.0.1', 'localhost')}/v1/chat/completions"))
    ask(ModelProfile(model, server.url, "key-of-the-profile"))
    assert server.asked
    assert other.asked == []


@pytest.mark.parametrize("model", MODELS)
def test_no_prompt_goes_over_http_beyond_this_machine(model: str):
    error = ask(ModelProfile(model, "http://models.example:8000/v1", "key-of-the-profile"))
    assert isinstance(error, ChatUnavailable)
    assert "http://models.example:8000/v1" in str(error)
    assert "https://" in str(error)


@pytest.mark.parametrize("model", [model for model in MODELS if model not in ("some", "ollama:some")])
def test_without_a_key_a_provider_is_not_asked_and_its_variable_is_named(model: str):
    assert f"set {PROVIDERS[model.partition(':')[0]].key_variables[0]} in the environment" in str(
        ask(ModelProfile(model))
    )


@pytest.mark.parametrize("model", ["bedrock:some", "google_vertexai:some", "azure_openai:some", "nosuch:some", "some"])
def test_a_provider_without_a_known_address_needs_a_base_url(model: str):
    assert "with the base URL of an OpenAI-compatible server" in str(ask(ModelProfile(model)))


def test_the_addresses_of_providers_are_those_of_their_packages(monkeypatch: pytest.MonkeyPatch):
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "OLLAMA_HOST"):
        monkeypatch.delenv(name)
    defaults = {
        "openai": OpenAI(api_key="none").base_url,
        "anthropic": anthropic.Anthropic(api_key="none").base_url,
        "google_genai": GoogleClient(vertexai=False, api_key="none")._api_client._http_options.base_url,
        "ollama": OllamaClient()._client.base_url,
    }
    for name, default in defaults.items():
        assert PROVIDERS[name].address.rstrip("/") == str(default).rstrip("/")


@pytest.mark.parametrize("model", [*NATIVE, "openai:some"])
@pytest.mark.parametrize("variable", [None, "OPENAI_API_KEY", "STRIPE_API_KEY"])
def test_a_connection_is_not_tested_with_a_key_that_its_server_may_not_have(
    model: str, variable: str | None, server: FaultyServer, tmp_path: Path
):
    services = Services(Settings.from_env({"SHOWHOW_HOME": str(tmp_path)}), KEYS)
    profile = ModelProfile(model, server.url, key_variable=variable, name="theirs")
    report = check_connection(services.complete_profile(profile))
    assert "planted" not in json.dumps([request.headers for request in server.asked])
    if variable is not None:
        assert server.asked == []
        assert f"{variable} is not sent to {parse_origin(server.url)}, which is not allowed yet" in (report.error or "")
        assert "`showhow models allow theirs`" in (report.error or "")
        # An administrator allows it once.
        services.secret_table.allow([services.find_grant(profile)])
        check_connection(services.complete_profile(profile))
        assert KEYS[variable] in json.dumps([request.headers for request in server.asked])


@pytest.mark.parametrize("base_url", ["http://127.0.0.1:9/v1", "http://models.example/v1"])
def test_the_settings_of_the_operator_are_consent_but_not_to_http(base_url: str, tmp_path: Path):
    environ = {
        "SHOWHOW_HOME": str(tmp_path),
        "SHOWHOW_MODEL": "openai:some",
        "SHOWHOW_MODEL_BASE_URL": base_url,
        "SHOWHOW_MODEL_KEY_VARIABLE": "STRIPE_API_KEY",
        **KEYS,
    }
    profile = Services(Settings.from_env(environ), environ).model_profile()
    is_used = base_url.startswith("http://127")
    assert profile.api_key == (KEYS["STRIPE_API_KEY"] if is_used else None)
    assert (profile.key_refusal is None) == is_used
