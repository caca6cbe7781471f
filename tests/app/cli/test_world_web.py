"""Worlds with a web search in the verbs: add, check, and the tools websearch and read, online and offline."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from showhow.runs.services import Services
from showhow.settings import Settings
from showhow.tools.registry import get_tool
from tests.app.cli.in_process import run_in_process
from tests.servers.web import SEARCH_KEY, HarbourWeb, run_web

ENVIRON = {"SHOWHOW_CONTACT": "tests@showhow.example", "HARBOUR_SEARCH": SEARCH_KEY}


@pytest.fixture
def web() -> Iterator[HarbourWeb]:
    with run_web() as started:
        yield started


def showhow(home: Path, *words: str | Path) -> "subprocess.CompletedProcess[str]":
    return run_in_process(home, *words, **ENVIRON)


def add(home: Path, toml: str, *options: str) -> "subprocess.CompletedProcess[str]":
    (home / "harbour.toml").write_text(toml)
    return showhow(home, "world", "add", "harbour", "--file", home / "harbour.toml", *options)


def call(home: Path, *words: str) -> dict[str, object]:
    done = showhow(home, "tool", *words, "--world", "harbour", "--json")
    result: dict[str, object] = json.loads(done.stdout)
    return result


def test_a_web_search_is_added_checked_and_listed(tmp_path: Path, web: HarbourWeb):
    added = add(tmp_path, web.describe())
    assert (added.returncode, added.stderr) == (0, "")
    assert f"harbour: queries {web.server.host}; `showhow world check harbour`" in added.stdout
    checked = showhow(tmp_path, "world", "check", "harbour", "--question", "storm")
    *lines, summary = checked.stdout.splitlines()
    assert [line.split("  ")[:2] for line in lines] == [["works", "web search"], ["works", "web page"]]
    assert "Storm over the harbour: The storm sank two barges." in lines[1]
    assert (summary, checked.returncode) == ("2 of 2 calls work", 0)
    about = json.loads(showhow(tmp_path, "world", "info", "harbour", "--json").stdout)
    assert (about["web search of"], about["web pages of"]) == (web.server.host, "public and private addresses")
    offline = showhow(tmp_path, "world", "check", "harbour", "--question", "storm", "--offline")
    assert offline.stdout.splitlines()[-1] == "2 of 2 calls work"


def test_a_check_without_results_or_readable_pages_fails_and_says_why(tmp_path: Path, web: HarbourWeb):
    add(tmp_path, web.describe(private=False))
    unknown = showhow(tmp_path, "world", "check", "harbour", "--question", "zeppelin")
    assert unknown.returncode == 1
    assert "FAILS  web page" in unknown.stdout
    assert "Not checked, because no page was found." in unknown.stdout
    refused = showhow(tmp_path, "world", "check", "harbour", "--question", "storm")
    assert refused.returncode == 1
    assert "is not on the public internet" in refused.stdout
    assert "calls to the world harbour failed: web page" in refused.stderr


def test_the_tools_search_and_read_and_offline_they_give_equal_results(tmp_path: Path, web: HarbourWeb):
    add(tmp_path, web.describe())
    search = ("websearch", "query=storm")
    read = ("read", f"title={web.address('/people/otto')}", "question=What did he sell?")
    results = [call(tmp_path, *search), call(tmp_path, *read)]
    pages = results[0]["data"]["pages"]  # type: ignore[index]
    assert [(page["title"], page["date"]) for page in pages] == [("Storm over the harbour", "2003-11-09")]
    # The verb's arguments are typed by a person, so that no search must have returned the page.
    assert "Otto Reed sold his boat in 2001." in str(results[1]["text"])
    sent = len(web.server.asked)
    assert [call(tmp_path, *search, "--offline"), call(tmp_path, *read, "--offline")] == results
    assert len(web.server.asked) == sent
    early = showhow(tmp_path, "tool", *search, "--world", "harbour", "--as-of", "2020-01-01")
    assert (early.returncode, "was recorded by 2020-01-01" in early.stderr) == (1, True)


def test_the_key_of_a_search_needs_consent_and_is_sent_to_no_page(tmp_path: Path, web: HarbourWeb):
    refused = add(tmp_path, web.describe(web.other_search))
    assert f"would send the environment variable HARBOUR_SEARCH to {web.server.url}" in refused.stderr
    assert not (tmp_path / "worlds" / "harbour").exists()
    added = add(tmp_path, web.describe(web.other_search), "--yes")
    assert f"sends the environment variable HARBOUR_SEARCH to {web.server.url}" in added.stdout
    assert showhow(tmp_path, "world", "check", "harbour", "--question", "Ada").returncode == 0
    sent_keys = {request.path.partition("?")[0]: request.headers.get("x-search-key") for request in web.server.asked}
    assert sent_keys.pop("/v2/find") == SEARCH_KEY
    assert set(sent_keys.values()) == {None}
    stored = b"".join(path.read_bytes() for path in (tmp_path / "worlds").rglob("*") if path.is_file())
    assert SEARCH_KEY.encode() not in stored


def test_a_reasoner_reads_no_page_that_no_search_returned(tmp_path: Path, web: HarbourWeb):
    add(tmp_path, web.describe())
    services = Services(Settings.from_env({**ENVIRON, "SHOWHOW_HOME": str(tmp_path)}), ENVIRON)
    context = services.tool_context("harbour")
    outcome = get_tool("read").call(context, {"title": web.address("/people/otto?secret=1"), "question": "Who?"})
    assert outcome.error is not None
    assert "was not returned by a search" in outcome.error
    assert outcome.error_kind == "not found"
    assert web.server.asked == []
    services.close()
