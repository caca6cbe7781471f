"""`showhow world add | check` and live worlds in the other verbs, started as users start them, with real servers."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.app.cli.in_process import run_in_process
from tests.servers.mediawiki import MediaWiki
from tests.servers.sparql import SparqlServer, free_port

pytestmark = pytest.mark.xdist_group("live")


def showhow(home: Path, *words: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """A verb of showhow in that home, with a contact unless told otherwise."""
    return run_in_process(home, *words, **{"SHOWHOW_CONTACT": "tests@showhow.example", **environ})


def told(home: Path, *words: str | Path, **environ: str) -> str:
    done = showhow(home, *words, **environ)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def refused(home: Path, *words: str | Path, **environ: str) -> str:
    done = showhow(home, *words, **environ)
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stderr
    (said,) = done.stderr.splitlines()
    return said


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, mediawiki: MediaWiki, virtuoso: SparqlServer) -> Path:
    """A home with a wiki and the graph of the same articles, of real servers."""
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
    assert "`showhow world check ours` tries it" in told(home, "world", "add", "ours", "--file", home / "ours.toml")
    return home


@pytest.fixture(scope="module")
def title(mediawiki: MediaWiki, virtuoso: SparqlServer, home: Path) -> str:
    """An article of the wiki whose item the graph knows by the same name."""
    items = {page.item: page.title for page in mediawiki.pages if page.item and "(" not in page.title}
    for place in range(0, len(items), 20):
        some = list(items)[place : place + 20]
        nodes = " ".join(f"wd:{one}" for one in some)
        nodes = " ".join(f"wd:{one}" for one in some)
        asked = f"SELECT ?s ?name {{ VALUES ?s {{ {nodes} }} ?s rdfs:label ?name ; wdt:P57|wdt:P22 ?o }}"
        table = json.loads(told(home, "world", "query", "ours", asked, "--json"))
        for one, name in table["rows"]:
            if items[one["value"]] == name["value"]:
                return str(name["value"])
    raise AssertionError("the wiki and the graph have no article in common")


@pytest.fixture(scope="module")
def checked(home: Path, title: str) -> list[str]:
    """What the check of the whole world says."""
    return told(home, "world", "check", "ours", "--name", title).splitlines()


def test_every_source_of_a_whole_world_is_tried_and_works(checked):
    tried = [
        "text search",
        "text article",
        "graph query",
        "graph entity_of",
        "graph find",
        "graph labels",
        "graph relations",
    ]
    assert [line.split("  ")[:2] for line in checked[:-1]] == [["works", call] for call in tried]
    assert checked[-1] == "7 of 7 calls work"


def test_without_a_name_something_is_looked_for_that_the_sources_have(home, mediawiki):
    assert told(home, "world", "check", "ours").splitlines()[-1] == "7 of 7 calls work"
    # As an editor writes it that begins files with a mark of their encoding.
    written = f'kind = "live"\n[text]\nkind = "mediawiki"\napi = "{mediawiki.api}"\n'
    (home / "articles.toml").write_text(written, encoding="utf-8-sig")
    told(home, "world", "add", "articles", "--file", home / "articles.toml")
    assert told(home, "world", "check", "articles").splitlines()[-1] == "2 of 2 calls work"


def test_a_world_of_a_graph_alone_is_tried_with_what_it_has(home, virtuoso):
    (home / "isle.toml").write_text(
        f'kind = "live"\n[graph]\nkind = "sparql"\nendpoint = "{virtuoso.url}"\n'
        f'default_graph = "{virtuoso.graph("isle")}"\n'
    )
    told(home, "world", "add", "isle", "--file", home / "isle.toml")
    assert told(home, "world", "check", "isle").splitlines()[-1] == "4 of 4 calls work"


def test_what_was_checked_answers_offline_and_what_was_not_is_told(home, title, checked):
    found = json.loads(told(home, "world", "check", "ours", "--name", title, "--offline", "--json"))
    assert [one["works"] for one in found] == [True] * 7
    assert [one["told"] for one in found] == [line.split(" s  ", 1)[1] for line in checked[:-1]]
    assert "offline" in refused(home, "world", "query", "ours", "ASK { wd:Q1 ?p ?o }", SHOWHOW_OFFLINE="1")
    assert "had not been asked" in refused(home, "world", "query", "ours", "ASK {}", "--as-of", "2020-01-01")


def test_tools_work_in_a_live_world_and_offline_from_its_record(home, title):
    asked = ("tool", "getWikiDataID", "--world", "ours", f"title={title}", "--json")
    online = json.loads(told(home, *asked))
    assert online["data"]["entities"][0]["label"] == title
    assert json.loads(told(home, *asked, "--offline")) == online


def test_a_live_world_is_listed_and_described(home, mediawiki, virtuoso):
    hosts = [address.split("/")[2] for address in (mediawiki.api, virtuoso.url)]
    assert f"ours: asks {', '.join(hosts)} (live)" in told(home, "world", "list").splitlines()
    about = json.loads(told(home, "world", "info", "ours", "--json"))
    assert (about["kind"], about["hosts"], len(about["hash"])) == ("live", hosts, 64)


def test_no_host_is_asked_without_a_contact_and_it_is_told_how_to_give_one(home):
    said = showhow(home, "world", "check", "ours", "--name", "Tom Quill", SHOWHOW_CONTACT="")
    assert said.returncode == 1
    assert said.stdout.count("SHOWHOW_CONTACT") >= 1
    added = showhow(home, "world", "add", "wiki", "--preset", "wikipedia", SHOWHOW_CONTACT="")
    assert (added.returncode, "set SHOWHOW_CONTACT" in added.stdout) == (0, True)


def test_a_world_that_does_not_answer_fails_its_check_call_by_call(home):
    (home / "gone.toml").write_text(
        f'kind = "live"\n[graph]\nkind = "sparql"\nendpoint = "http://127.0.0.1:{free_port()}/sparql"\n'
        "[limits]\nseconds = 1\n"
    )
    told(home, "world", "add", "gone", "--file", home / "gone.toml")
    done = showhow(home, "world", "check", "gone", "--name", "x")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "0 of 4 calls work"
    assert all(line.startswith("FAILS  graph ") for line in done.stdout.splitlines()[:-1])
    assert done.stderr == (
        "showhow: some calls to the world gone failed: graph query, graph find, graph labels, graph relations\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("w",), "--file FILE, or a built-in one with --preset"),
        (("w", "--preset", "nothing"), "there are example, wikipedia, wikipedia-qlever"),
        (("w", "--file", "wrong.toml"), "wrong.toml: kind is missing"),
        (("ours", "--preset", "wikipedia"), "--replace"),
    ],
)
def test_what_cannot_be_added_is_told_in_one_line(home, words, said):
    (home / "wrong.toml").write_text("title = 'x'")
    assert said in refused(home, "world", "add", *words)
    assert not (home / "worlds" / "w").exists()
