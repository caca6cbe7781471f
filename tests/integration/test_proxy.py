"""Models, live worlds, web pages and servers of tools through the proxy that the settings state, over real sockets."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from showhow.guard.environment import list_secrets
from showhow.guard.proxy import choose_proxy, parse_proxy
from showhow.llm.client import build_chat_client
from showhow.llm.errors import ChatError
from showhow.llm.types import Message, ModelProfile
from showhow.runs.services import Services
from showhow.settings import Settings, SettingsError
from showhow.worlds.live.http.client import RecordingHttpClient
from showhow.worlds.live.http.request import Access, HttpRequest, RequestPolicy
from showhow.worlds.live.http.response_cache import ResponseCache
from showhow.worlds.source import SourceError
from tests.servers.faulty_server import FaultyServer, run_faulty_server, says, status
from tests.servers.proxy import PASSWORD, ProxyServer, run_proxy, run_tls_server

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
MODELS = {
    "openai:some": "api.openai.com",
    "anthropic:some": "api.anthropic.com",
    "google_genai:some": "generativelanguage.googleapis.com",
    "groq:some": "api.groq.com",
    "ollama:some https://ollama.example": "ollama.example",
}
HOSTS = [*MODELS.values(), "pages.example", "tools.example", "spans.example"]
KEYS = {f"{name}_API_KEY": f"planted-{name}-key" for name in ("OPENAI", "ANTHROPIC", "GOOGLE", "GROQ")}


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with run_faulty_server() as server:
        server.respond_with(says({"page": 1}))
        yield server


@pytest.fixture
def proxy(server: FaultyServer) -> Iterator[ProxyServer]:
    """A proxy with one server behind it; what the environment says of other proxies counts nowhere."""
    with run_proxy({"pages.example:80": int(server.host.partition(":")[2])}) as proxy:
        yield proxy


def client_of(folder: Path, proxy_url: str, *, public_only: bool = False) -> RecordingHttpClient:
    policy = RequestPolicy(None, max_attempts=1, public_only=public_only, cache_lifetime=timedelta(0))
    access = Access("tests@showhow.example", proxy=parse_proxy(proxy_url))
    return RecordingHttpClient(policy, ResponseCache(folder / "responses.sqlite"), access)


def refusal(client: RecordingHttpClient, url: str) -> str:
    with pytest.raises(SourceError) as refused:
        client.send(HttpRequest(url))
    return str(refused.value)


def test_models_pages_and_servers_of_tools_elsewhere_are_reached_through_the_proxy(tmp_path: Path):
    (tmp_path / "tools.toml").write_text('[servers.theirs]\nurl = "https://tools.example/mcp"\n')
    with run_tls_server(tmp_path, *HOSTS) as (server, certificate):
        server.respond_with(status(400, b'{"error": {"message": "no such model"}}'))
        server.routes["/page"] = says({"page": 1})
        server.routes["/v1/traces"] = status(200)
        with run_proxy({f"{host}:443": int(server.host.partition(":")[2]) for host in HOSTS}) as proxy:
            environ = {**os.environ, **KEYS, "SHOWHOW_HOME": str(tmp_path), "SSL_CERT_FILE": str(certificate)}
            environ |= {"SHOWHOW_PROXY": proxy.url, "HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "*"}
            environ |= {"SHOWHOW_TELEMETRY": "spans", "OTEL_EXPORTER_OTLP_ENDPOINT": "https://spans.example"}
            environ |= {"OTEL_EXPORTER_OTLP_CERTIFICATE": str(certificate)}
            command = [sys.executable, "-c", "from tests.integration.test_proxy import main; main()"]
            done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert PASSWORD not in done.stdout + done.stderr
    outcomes = json.loads(done.stdout)
    assert [model for model in MODELS if "no such model" not in outcomes.pop(model)] == []
    assert outcomes == {"page": '{"page": 1}', "theirs": outcomes["theirs"]}
    assert {f"CONNECT {host}:443" for host in HOSTS} == set(proxy.asked)
    # What passes the tunnel is for the server alone.
    assert not [request for request in server.asked if "proxy-authorization" in request.headers]
    assert {request.headers["host"] for request in server.asked} == set(HOSTS)


def main() -> None:
    """Ask every host in a process that knows the server's certificate, and print what each said."""
    services = Services(Settings.from_env(os.environ), dict(os.environ))
    outcomes = {}
    for model in MODELS:
        name, _, address = model.partition(" ")
        profile = services.complete_profile(ModelProfile(name, address or None, seconds=10.0))
        try:
            outcomes[model] = build_chat_client(profile).ask([Message("user", "Which city?")]).text
        except ChatError as error:
            outcomes[model] = str(error)
    client = client_of(services.settings.home, services.settings.proxy.url, public_only=True)
    outcomes["page"] = client.send(HttpRequest("https://pages.example/page")).body.decode()
    statuses = services.tool_registry().provider_statuses()
    outcomes["theirs"] = next(entry.problem for entry in statuses if entry.name == "theirs")
    assert services.telemetry is not None
    with services.telemetry.tool_call("read", {}):
        pass
    services.close()
    print(json.dumps(outcomes))  # noqa: T201 - read by the test


def test_this_machine_is_reached_without_the_proxy(tmp_path: Path, server: FaultyServer, proxy: ProxyServer):
    client = client_of(tmp_path, proxy.url)
    for host in ("127.0.0.1", "localhost", "LocalHost", "127.1"):
        assert client.send(HttpRequest(f"http://{host}:{server.host.partition(':')[2]}/{host}")).is_success
    with pytest.raises(ChatError):
        build_chat_client(ModelProfile("some", f"{server.url}/v1", proxy=parse_proxy(proxy.url))).ask(
            [Message("user", "Which city?")]
        )
    assert {request.path for request in server.asked} >= {"/127.0.0.1", "/localhost", "/127.1", "/v1/chat/completions"}
    assert proxy.asked == []


def test_unencrypted_pages_go_through_the_proxy_without_its_password(
    tmp_path: Path, server: FaultyServer, proxy: ProxyServer
):
    client = client_of(tmp_path, proxy.url, public_only=True)
    assert json.loads(client.send(HttpRequest("http://pages.example/page")).body) == {"page": 1}
    assert proxy.asked == ["GET http://pages.example/page"]
    assert "proxy-authorization" not in server.asked[0].headers


@pytest.mark.parametrize(
    "private",
    [
        *("http://10.1.2.3/", "http://127.0.0.1:9/", "http://2130706433/", "http://0xa.1.2.3/", "http://[fd00::1]/"),
        *("http://[::ffff:10.1.2.3]/", "https://169.254.169.254/latest", "http://localhost/"),
    ],
)
def test_a_private_address_is_not_asked_of_the_proxy_where_only_public_ones_are_read(
    private: str, tmp_path: Path, server: FaultyServer, proxy: ProxyServer
):
    server.routes["/to-private"] = status(302, Location=private)
    client = client_of(tmp_path, proxy.url, public_only=True)
    assert "is not on the public internet" in refusal(client, private)
    assert "is not on the public internet" in refusal(client, "http://pages.example/to-private")
    assert proxy.asked == ["GET http://pages.example/to-private"]


def test_what_a_proxy_refuses_is_told_with_its_address_and_without_its_password(tmp_path: Path, proxy: ProxyServer):
    for url, state in ((proxy.url, 502), (proxy.address, 407)):
        host = "https://nowhere.example/" if state == 502 else "https://pages.example:80/"
        told = refusal(client_of(tmp_path, url), host)
        assert f"{state} " in told
        assert f"SHOWHOW_PROXY is {proxy.address}" in told
        assert PASSWORD not in told
    profile = ModelProfile("some", "https://nowhere.example/v1", proxy=parse_proxy(proxy.url))
    with pytest.raises(
        ChatError, match=re.escape(f"through the proxy {proxy.address}; check SHOWHOW_PROXY")
    ) as refused:
        build_chat_client(profile).ask([Message("user", "Which city?")])
    assert PASSWORD not in str(refused.value)


def test_the_password_of_the_proxy_is_a_secret_and_no_part_of_what_is_shown(tmp_path: Path):
    environ = {"SHOWHOW_HOME": str(tmp_path), "SHOWHOW_PROXY": "http://ada:planted%40password@Proxy.Example.:3128/"}
    settings = Settings.from_env(environ)
    assert str(settings.proxy) == "http://proxy.example:3128"
    assert settings.proxy.credentials == ("ada", "planted@password")
    profile = Services(settings, environ).complete_profile(ModelProfile("openai:some"))
    assert "planted" not in f"{settings} {settings.proxy!r} {profile}"
    assert {"planted@password", "planted%40password"} <= set(list_secrets(environ))
    assert choose_proxy(settings.proxy, "https://models.example") is settings.proxy


@pytest.mark.parametrize(
    "written",
    [
        *("proxy.example:3128", "socks5://proxy.example", "http://ada@proxy.example", "http://ada:p@ss@proxy.example"),
        *("http://proxy.example/path", "http://ada:planted/word@proxy.example", "http://ada:a:b@proxy.example"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_refused_without_quoting_it(written: str):
    with pytest.raises(SettingsError, match=r"SHOWHOW_PROXY .*write one such as http://proxy\.example:3128") as refused:
        Settings.from_env({"SHOWHOW_PROXY": written})
    assert "planted" not in str(refused.value)
