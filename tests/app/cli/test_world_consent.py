"""A live world sends an environment variable only to the server that the operator allowed."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.cli.in_process import run_in_process
from tests.servers.faulty_server import FaultyServer, run_faulty_server, says

TOKEN = "token-of-the-graph-4711"  # noqa: S105 - of a server on loopback
ROWS = {"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "literal", "value": "a quay"}}]}}
ENVIRON = {"SHOWHOW_CONTACT": "tests@showhow.example", "GRAPH_TOKEN": TOKEN, "OTHER_TOKEN": "another-0815"}


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with run_faulty_server() as server:
        server.respond_with(says(ROWS))
        yield server


def describe(home: Path, server: FaultyServer, variable: str = "GRAPH_TOKEN") -> Path:
    file = home / "w.toml"
    file.write_text(
        f'kind = "live"\n[graph]\nkind = "sparql"\nendpoint = "{server.url}/sparql"\n'
        f'headers = {{ X-Api-Key = "{variable}" }}\n[limits]\nattempts = 1\n'
    )
    return file


def showhow(home: Path, *words: str | Path) -> "subprocess.CompletedProcess[str]":
    return run_in_process(home, *words, **ENVIRON)


def query(home: Path, text: str) -> "subprocess.CompletedProcess[str]":
    return showhow(home, "world", "query", "w", f'SELECT ?x {{ BIND("{text}" AS ?x) }}')


def test_a_world_that_sends_a_variable_is_refused_without_a_terminal_and_without_yes(
    tmp_path: Path, server: FaultyServer
):
    refused = showhow(tmp_path, "world", "add", "w", "--file", describe(tmp_path, server))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"would send the environment variable GRAPH_TOKEN to {server.url}" in refused.stderr
    assert "--yes" in refused.stderr
    assert not (tmp_path / "worlds" / "w").exists()


def test_with_yes_the_variable_is_named_and_sent(tmp_path: Path, server: FaultyServer):
    added = showhow(tmp_path, "world", "add", "w", "--file", describe(tmp_path, server), "--yes")
    assert f"sends the environment variable GRAPH_TOKEN to {server.url}" in added.stdout
    assert query(tmp_path, "a").stdout == "x\na quay\n"
    assert [request.headers["x-api-key"] for request in server.asked] == [TOKEN]
    # The same description needs no second consent.
    assert showhow(tmp_path, "world", "add", "w", "--replace", "--file", tmp_path / "w.toml").returncode == 0


@pytest.mark.parametrize("edit", ["another variable", "another server", "another scheme"])
def test_an_edited_description_sends_nothing_until_it_is_allowed_again(tmp_path: Path, server: FaultyServer, edit: str):
    showhow(tmp_path, "world", "add", "w", "--file", describe(tmp_path, server), "--yes")
    file = tmp_path / "worlds" / "w" / "world.toml"
    port = server.url.rpartition(":")[2]
    changes = {
        "another variable": ("GRAPH_TOKEN", "OTHER_TOKEN"),
        "another server": (f"127.0.0.1:{port}", f"localhost:{port}"),
        "another scheme": ("http://", "https://"),
    }
    file.write_text(file.read_text().replace(*changes[edit]))
    refused = query(tmp_path, "b")
    assert refused.returncode == 1
    assert "is not allowed yet" in refused.stderr
    assert server.asked == []
    command = refused.stderr.partition("`showhow ")[2].partition("`")[0].split()
    assert "--yes" in showhow(tmp_path, *command).stderr
    assert showhow(tmp_path, *command, "--yes").returncode == 0
    if edit != "another scheme":
        assert query(tmp_path, "b").stdout == "x\na quay\n"


@pytest.mark.parametrize(
    "variable", ["OPENAI_API_KEY", "openai_api_key", "SHOWHOW_DATABASE_URL", "HF_TOKEN", "CO_API_KEY"]
)
def test_keys_of_language_models_are_refused_even_with_yes(tmp_path: Path, server: FaultyServer, variable: str):
    refused = showhow(tmp_path, "world", "add", "w", "--file", describe(tmp_path, server, variable), "--yes")
    assert refused.returncode == 1
    assert f"must not send {variable}" in refused.stderr
    folder = tmp_path / "worlds" / "w"
    folder.mkdir(parents=True)
    (folder / "world.toml").write_text((tmp_path / "w.toml").read_text())
    assert f"must not send {variable}" in query(tmp_path, "c").stderr
    assert server.asked == []


@pytest.mark.parametrize(("reply", "status"), [("y", 0), ("n", 1)])
def test_on_a_terminal_it_asks_once(tmp_path: Path, server: FaultyServer, reply: str, status: int):
    ours, theirs = pty.openpty()
    command = [
        str(Path(sys.executable).with_name("showhow")),
        "world",
        "add",
        "w",
        "--file",
        str(describe(tmp_path, server)),
    ]
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **ENVIRON, "SHOWHOW_HOME": str(tmp_path)},
    )
    os.write(ours, f"{reply}\n".encode())
    stdout, stderr = process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == status, stderr
    assert f"GRAPH_TOKEN to {server.url} with every request. Allow this?" in stderr
    assert ("sends the environment variable" in stdout) == (status == 0)
    assert (tmp_path / "worlds" / "w").exists() == (status == 0)


def test_the_consent_of_a_former_version_counts(tmp_path: Path, server: FaultyServer):
    folder = tmp_path / "worlds" / "w"
    folder.mkdir(parents=True)
    (folder / "world.toml").write_text(describe(tmp_path, server).read_text())
    (folder / "consent.json").write_text(json.dumps([{"variable": "GRAPH_TOKEN", "server": server.url}]))
    assert query(tmp_path, "a").stdout == "x\na quay\n"
    assert [request.headers["x-api-key"] for request in server.asked] == [TOKEN]
    assert showhow(tmp_path, "world", "add", "w", "--replace", "--file", tmp_path / "w.toml").returncode == 0


def test_nobody_can_allow_a_variable_to_go_over_http_beyond_this_machine(tmp_path: Path, server: FaultyServer):
    file = describe(tmp_path, server)
    file.write_text(file.read_text().replace(server.url, "http://graph.example"))
    refused = showhow(tmp_path, "world", "add", "w", "--file", file, "--yes")
    assert refused.returncode == 1
    assert "GRAPH_TOKEN is not sent to http://graph.example, since http:// beyond this machine" in refused.stderr
    assert not (tmp_path / "worlds" / "w").exists()
