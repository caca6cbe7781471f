"""`showhow world add | check`, and live worlds in the other verbs, with real servers."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.app.cli.in_process import run_in_process
from tests.servers.loopback import free_port
from tests.servers.mediawiki import MediaWiki
from tests.servers.sparql import SparqlServer

pytestmark = pytest.mark.long


def showhow(home: Path, *words: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a verb in that home, with a contact unless `environ` overrides it."""
    return run_in_process(home, *words, **{"SHOWHOW_CONTACT": "tests@showhow.example", **environ})


def stdout_of(home: Path, *words: str | Path, **environ: str) -> str:
    done = showhow(home, *words, **environ)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def error_of(home: Path, *words: str | Path, **environ: str) -> str:
    done = showhow(home, *words, **environ)
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stderr
    (message,) = done.stderr.splitlines()
    return message


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, mediawiki: MediaWiki, virtuoso: SparqlServer) -> Path:
    """A home with a live world of two real servers: a wiki, and the graph of the same articles."""
    home = tmp_path_factory.mktemp("home")
    (home / "ours.toml").write_text(
        f"""kind = "live"
title = "Ours"
[text]
kind = "mediawiki"
api = "{mediawiki.api}"
[graph]
kind = "sparql"
endpoint = "{virtuoso.url}"
default_graph = "{virtuoso.graph("real")}"
[limits]
per_minute = 100000
seconds = 60
"""
    )
    assert "`showhow world check ours` checks its sources" in stdout_of(
        home, "world", "add", "ours", "--file", home / "ours.toml"
    )
    return home


@pytest.fixture(scope="module")
def title(mediawiki: MediaWiki, virtuoso: SparqlServer, home: Path) -> str:
    """The title of an article that is also the label of its entity in the graph."""
    items = {page.item: page.title for page in mediawiki.pages if page.item and "(" not in page.title}
    for start in range(0, len(items), 20):
        entities = list(items)[start : start + 20]
        nodes = " ".join(f"wd:{one}" for one in entities)
        nodes = " ".join(f"wd:{one}" for one in entities)
        query = f"SELECT ?s ?name {{ VALUES ?s {{ {nodes} }} ?s rdfs:label ?name ; wdt:P57|wdt:P22 ?o }}"
        table = json.loads(stdout_of(home, "world", "query", "ours", query, "--json"))
        for one, name in table["rows"]:
            if items[one["value"]] == name["value"]:
                return str(name["value"])
    raise AssertionError("the wiki and the graph have no article in common")


@pytest.fixture(scope="module")
def checked(home: Path, title: str) -> list[str]:
    """The output lines of the check of the world."""
    return stdout_of(home, "world", "check", "ours", "--name", title).splitlines()


def test_check_calls_every_function_of_every_source(checked):
    calls = [
        "text search",
        "text article",
        "graph query",
        "graph entity_of",
        "graph find",
        "graph labels",
        "graph relations",
    ]
    assert [line.split("  ")[:2] for line in checked[:-1]] == [["works", call] for call in calls]
    assert checked[-1] == "7 of 7 calls work"


def test_check_without_a_name_chooses_a_name_that_the_sources_have(home, mediawiki):
    assert stdout_of(home, "world", "check", "ours").splitlines()[-1] == "7 of 7 calls work"
    # Some editors write a byte order mark.
    text = f'kind = "live"\n[text]\nkind = "mediawiki"\napi = "{mediawiki.api}"\n'
    (home / "articles.toml").write_text(text, encoding="utf-8-sig")
    stdout_of(home, "world", "add", "articles", "--file", home / "articles.toml")
    assert stdout_of(home, "world", "check", "articles").splitlines()[-1] == "2 of 2 calls work"


def test_check_of_a_world_without_articles_calls_only_the_graph(home, virtuoso):
    (home / "isle.toml").write_text(
        f'kind = "live"\n[graph]\nkind = "sparql"\nendpoint = "{virtuoso.url}"\n'
        f'default_graph = "{virtuoso.graph("isle")}"\n'
    )
    stdout_of(home, "world", "add", "isle", "--file", home / "isle.toml")
    assert stdout_of(home, "world", "check", "isle").splitlines()[-1] == "4 of 4 calls work"


def test_recorded_calls_answer_offline_and_others_fail(home, title, checked):
    checks = json.loads(stdout_of(home, "world", "check", "ours", "--name", title, "--offline", "--json"))
    assert [check["works"] for check in checks] == [True] * 7
    assert [check["told"] for check in checks] == [line.split(" s  ", 1)[1] for line in checked[:-1]]
    assert "offline" in error_of(home, "world", "query", "ours", "ASK { wd:Q1 ?p ?o }", SHOWHOW_OFFLINE="1")
    assert "was recorded by 2020-01-01" in error_of(home, "world", "query", "ours", "ASK {}", "--as-of", "2020-01-01")


def test_tools_work_in_a_live_world_and_offline_from_recorded_answers(home, title):
    command = ("tool", "getWikiDataID", "--world", "ours", f"title={title}", "--json")
    online = json.loads(stdout_of(home, *command))
    assert online["data"]["entities"][0]["label"] == title
    assert json.loads(stdout_of(home, *command, "--offline")) == online


def test_a_live_world_is_listed_and_described(home, mediawiki, virtuoso):
    hosts = [address.split("/")[2] for address in (mediawiki.api, virtuoso.url)]
    assert f"ours: asks {', '.join(hosts)} (live)" in stdout_of(home, "world", "list").splitlines()
    about = json.loads(stdout_of(home, "world", "info", "ours", "--json"))
    assert (about["kind"], about["hosts"], len(about["hash"])) == ("live", hosts, 64)


def test_no_request_is_sent_without_a_contact_and_the_message_says_how_to_set_it(home):
    process = showhow(home, "world", "check", "ours", "--name", "Tom Quill", SHOWHOW_CONTACT="")
    assert process.returncode == 1
    assert process.stdout.count("SHOWHOW_CONTACT") >= 1
    added = showhow(home, "world", "add", "wiki", "--preset", "wikipedia", SHOWHOW_CONTACT="")
    assert (added.returncode, "set SHOWHOW_CONTACT" in added.stdout) == (0, True)


def test_check_reports_every_failed_call_of_an_unreachable_world(home):
    (home / "gone.toml").write_text(
        f'kind = "live"\n[graph]\nkind = "sparql"\nendpoint = "http://127.0.0.1:{free_port()}/sparql"\n'
        "[limits]\nseconds = 1\n"
    )
    stdout_of(home, "world", "add", "gone", "--file", home / "gone.toml")
    done = showhow(home, "world", "check", "gone", "--name", "x")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "0 of 4 calls work"
    assert all(line.startswith("FAILS  graph ") for line in done.stdout.splitlines()[:-1])
    assert done.stderr == (
        "showhow: some calls to the world gone failed: graph query, graph find, graph labels, graph relations\n"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("w",), "--file FILE, or a built-in one with --preset"),
        (("w", "--preset", "nothing"), "there are example, searxng, wikipedia, wikipedia-qlever, wikipedia-scholarly"),
        (("w", "--file", "wrong.toml"), "wrong.toml: kind is missing"),
        (("ours", "--preset", "wikipedia"), "--replace"),
    ],
)
def test_an_invalid_description_fails_with_one_line(home, words, message):
    (home / "wrong.toml").write_text("title = 'x'")
    assert message in error_of(home, "world", "add", *words)
    assert not (home / "worlds" / "w").exists()
