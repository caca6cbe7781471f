"""Descriptions of live worlds: parsing, errors, and worlds opened from them."""

import tomllib
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from showhow.guard.destinations import SecretTable
from showhow.worlds.folder import WorldError, WorldExists
from showhow.worlds.live import list_presets, read_preset
from showhow.worlds.live.consent import list_sent_variables
from showhow.worlds.live.description import (
    TABLES,
    InvalidLiveConfig,
    LiveWorldFile,
    SparqlEndpoint,
    parse_live_config,
)
from showhow.worlds.live.http.request import Access, RequestPolicy
from showhow.worlds.live.world import add_live_world
from showhow.worlds.open import list_worlds, open_world, read_world_metadata
from showhow.worlds.source import SourceUnavailable

SMALL = """kind = "live"
[graph]
kind = "sparql"
endpoint = "http://127.0.0.1:7878/query"
"""
WIKI = """[text]
kind = "mediawiki"
api = "http://127.0.0.1:8080/api.php"
"""


def test_fields_left_out_have_their_defaults():
    config = parse_live_config(SMALL)
    assert config.text is None
    assert config.graph == SparqlEndpoint("http://127.0.0.1:7878/query")
    assert (config.limits.max_concurrent, config.limits.cache_lifetime) == (3, timedelta(days=7))
    assert config.metadata["hosts"] == ["127.0.0.1:7878"]


def test_the_example_has_every_field_and_all_of_them_are_read():
    table = tomllib.loads(read_preset("example"))
    config = parse_live_config(read_preset("example"))
    assert config.graph is not None
    for name, value in table["graph"].items():
        renamed = {"endpoint": config.graph.url, "kind": "sparql"}
        assert renamed.get(name, getattr(config.graph, name, None)) == value
    assert config.graph.headers == {"X-Api-Key": "OUR_GRAPH_KEY"}
    assert config.web is not None
    assert config.web.model_dump() == table["web"]
    limits = table["limits"]
    assert replace(config.limits, hosts=frozenset()) == RequestPolicy(
        frozenset(),
        max_concurrent=limits["at_once"],
        max_per_minute=limits["per_minute"],
        timeout_seconds=limits["seconds"],
        max_attempts=limits["attempts"],
        max_bytes=limits["bytes"],
        cache_lifetime=timedelta(days=limits["cache_days"]),
    )
    assert {name: set(table[name]) for name in TABLES} == {
        name: set(model.model_fields) for name, model in TABLES.items()
    }
    assert set(table) == set(LiveWorldFile.model_fields)


@pytest.mark.parametrize("name", list_presets())
def test_every_preset_can_be_added_and_opened(name, tmp_path):
    config = add_live_world(tmp_path, "w", read_preset(name), name)
    keys = {"OUR_WIKI_TOKEN": "a", "OUR_GRAPH_KEY": "b", "OUR_SEARCH_KEY": "c"}
    secrets = SecretTable(keys, stated=list_sent_variables(config))
    world = open_world(tmp_path, "w", Access(contact="tests@showhow.example"), secrets)
    assert world.text is not None
    assert world.graph is not None
    assert (world.web is not None) == (config.web is not None)
    assert read_world_metadata(tmp_path, "w")["hash"] == config.metadata["hash"] == world.metadata["hash"]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("kind = \n", "is not valid TOML.*line 1"),
        ("", "kind is missing"),
        ('kind = "imported"', "kind must be one of live, not 'imported'"),
        ('kind = "live"', "no articles, no graph and no web pages; add a table"),
        ('kind = "live"\ngraph = 3', r"graph must be a table, written \[graph\]"),
        (SMALL + 'methods = "GET"', r"\[graph\] methods is not a known field; did you mean method\?"),
        (SMALL + "xyzzy = 1", r"\[graph\] xyzzy is not a known field; the fields are kind, endpoint"),
        (SMALL + 'method = "PUT"', r"\[graph\] method must be one of GET, POST form, POST direct, not 'PUT'"),
        (SMALL + "rows = true", r"\[graph\] rows must be a whole number from 1 to 10,000, not True"),
        (SMALL + "rows = 100000", r"\[graph\] rows must be"),
        (SMALL + "prefixes = 3", r"\[graph\] prefixes must be a table"),
        (
            SMALL + 'prefixes = { "a b" = "http://x/" }',
            r"\[graph\] prefixes contains 'a b', which is not a valid prefix",
        ),
        (SMALL + 'prefixes = { a = "x> . " }', r"\[graph\] prefixes must be an IRI"),
        (SMALL + 'default_graph = "no iri"', r"\[graph\] default_graph must be an IRI"),
        (SMALL + 'articles = "\\"}"', r"\[graph\] articles must be an IRI"),
        (SMALL + 'language = "English"', r"\[graph\] language must be the code of a language"),
        (SMALL + 'labels = "api"', r"\[graph\] labels = \"api\" needs the field api"),
        (SMALL + 'search = "api"', r"\[graph\] search = \"api\" needs the field api"),
        (SMALL + "label_service = 1", r"\[graph\] label_service must be true or false"),
        (SMALL.replace("http://", "ftp://"), r"\[graph\] endpoint must be an address"),
        (SMALL.replace("7878", "78789"), r"\[graph\] endpoint must be an address"),
        (SMALL.replace("http://", "http://me:secret@"), r"\[graph\] endpoint must be an address without"),
        (SMALL.replace("/query", "/query?key=secret"), r"\[graph\] endpoint must be an address without"),
        (
            SMALL + 'headers = { Authorization = "Bearer secret" }',
            r"\[graph\] headers must name an environment variable for Authorization",
        ),
        (
            SMALL + 'headers = { user-agent = "A" }',
            r"\[graph\] headers must not contain user-agent, which Showhow sets",
        ),
        (SMALL.replace("127.0.0.1", "wörld.example"), r"\[graph\] endpoint must be an address in plain characters"),
        (SMALL.replace("/query", "/quéry"), r"\[graph\] endpoint must be an address in plain characters"),
        (SMALL + 'headers = { "X Y" = "A" }', r"\[graph\] headers contains 'X Y', which is not a valid header"),
        (SMALL.replace('endpoint = "http://127.0.0.1:7878/query"', ""), r"\[graph\] endpoint is missing; write for"),
        (SMALL + "[limits]\nseconds = 0", r"\[limits\] seconds must be a number from 1 to 300, not 0"),
        (SMALL + "[limits]\nseconds = nan", r"\[limits\] seconds must be a number from 1 to 300, not nan"),
        (SMALL + "[limits]\nattempts = true", r"\[limits\] attempts must be a whole number from 1 to 10, not True"),
        (SMALL + "[limits]\nseconds = true", r"\[limits\] seconds must be a number from 1 to 300, not True"),
        (SMALL + "language = 'en\nx'", r"is not valid TOML"),
        (SMALL + 'language = "en\\n"', r"\[graph\] language must be the code of a language such as en, not 'en"),
        ('title = " "\n' + SMALL, r": title must be some text, not ' '"),
        (SMALL + "headers = 'secret'", r"\[graph\] headers must be a table such as"),
        (SMALL + "[limits]\ncache_days = -1", r"\[limits\] cache_days must be a number"),
        (SMALL + "[limits]\nat_once = 100", r"\[limits\] at_once must be a whole number from 1 to 64"),
        (
            read_preset("wikipedia").replace("at_once = 3", "at_once = 4"),
            r"at_once must be at most 3 for en\.wikipedia\.org",
        ),
        (SMALL + WIKI.replace("mediawiki", "wiki"), r"\[text\] kind must be one of mediawiki"),
        (SMALL + WIKI.replace("api =", "apis ="), r"\[text\] apis is not a known field; did you mean api\?"),
    ],
)
def test_an_invalid_description_is_reported_in_one_sentence_with_table_and_field_and_leaves_no_files(
    written, message, tmp_path
):
    with pytest.raises(InvalidLiveConfig, match=message) as wrong:
        add_live_world(tmp_path, "w", written, "world.toml")
    assert "\n" not in str(wrong.value)
    assert "secret" not in str(wrong.value)
    assert list(tmp_path.iterdir()) == []


def test_replacing_the_description_keeps_recorded_responses(tmp_path):
    add_live_world(tmp_path, "w", SMALL, "small")
    (tmp_path / "w" / "answers.sqlite").write_bytes(b"")
    before = read_world_metadata(tmp_path, "w")
    with pytest.raises(WorldExists, match="--replace"):
        add_live_world(tmp_path, "w", SMALL + WIKI, "both")
    assert read_world_metadata(tmp_path, "w") == before
    add_live_world(tmp_path, "w", SMALL + WIKI, "both", replace=True)
    assert read_world_metadata(tmp_path, "w")["hash"] != before["hash"]
    assert (tmp_path / "w" / "answers.sqlite").is_file()


def test_a_world_of_files_is_never_replaced_by_a_live_one(tmp_path):
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "world.toml").write_text('name = "w"\nkind = "imported"\n')
    with pytest.raises(WorldExists, match="choose another name"):
        add_live_world(tmp_path, "w", SMALL, "small", replace=True)
    assert read_world_metadata(tmp_path, "w")["kind"] == "imported"


def test_comments_and_order_do_not_change_the_hash_and_a_value_does():
    same = "# mine\n" + SMALL.replace('kind = "sparql"\n', "") + 'kind = "sparql"\n'
    assert parse_live_config(same).metadata["hash"] == parse_live_config(SMALL).metadata["hash"]
    assert parse_live_config(SMALL + "rows = 5").metadata["hash"] != parse_live_config(SMALL).metadata["hash"]


def test_an_error_in_a_stored_description_names_its_file(tmp_path):
    add_live_world(tmp_path, "w", SMALL, "small")
    (tmp_path / "w" / "world.toml").write_text(SMALL + "rows = 0", encoding="utf-8")
    with pytest.raises(WorldError, match=r"w/world\.toml: \[graph\] rows must be"):
        list_worlds(tmp_path)


def test_a_header_value_comes_from_the_environment_and_is_never_stored_or_logged(tmp_path, caplog):
    with_key = SMALL + 'headers = { Authorization = "GRAPH_KEY" }'
    sent = list_sent_variables(add_live_world(tmp_path, "w", with_key, "w"))
    live = Access(contact="tests@showhow.example")
    for environ in ({}, {"GRAPH_KEY": ""}, {"GRAPH_KEY": "planted\nkey"}):
        with pytest.raises(SourceUnavailable, match="GRAPH_KEY") as missing:
            open_world(tmp_path, "w", live, SecretTable(environ, stated=sent))
        assert "planted" not in str(missing.value)
    # Offline, recorded responses need no key.
    assert open_world(tmp_path, "w", Access(offline=True)).graph is not None
    world = open_world(tmp_path, "w", live, SecretTable({"GRAPH_KEY": "planted-key-271"}, stated=sent))
    with pytest.raises(SourceUnavailable):
        world.graph.query("ASK {}")
    texts = [repr(world), repr(vars(world.graph)), str(read_world_metadata(tmp_path, "w")), caplog.text]
    files = b"".join(path.read_bytes() for path in Path(tmp_path).rglob("*") if path.is_file())
    assert b"planted-key-271" not in files
    assert not any("planted-key-271" in text for text in texts)
