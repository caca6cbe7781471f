"""Live web pages over real servers on loopback: search in two shapes, pages, faults, record and request limits."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.guard.destinations import SecretTable
from showhow.worlds.live.consent import list_sent_variables
from showhow.worlds.live.http.request import Access
from showhow.worlds.live.web_search import normalize_address
from showhow.worlds.live.world import add_live_world
from showhow.worlds.open import open_world
from showhow.worlds.source import NotFound, SourceError, SourceTimeout, SourceUnavailable, WebSource
from tests.servers.faulty_server import (
    Handler,
    Responder,
    hangs,
    resets,
    says,
    sends,
    status,
    streams_for_ever,
    trickles,
)
from tests.servers.web import HARBOUR_PAGES, OTHER_SHAPE, SEARCH_KEY, HarbourWeb, html, run_web

ROOT = Path(__file__).parents[3]
ONLINE, OFFLINE = Access("tests@showhow.example"), Access(offline=True)


@pytest.fixture
def web() -> Iterator[HarbourWeb]:
    with run_web() as started:
        yield started


@pytest.fixture
def open_web(tmp_path: Path, web: HarbourWeb) -> Callable[..., WebSource]:
    """Adds the world of a description, by default of the web in SearXNG's shape, and opens its web pages."""

    def add_and_open(toml: str = "", access: Access = ONLINE, **environ: str) -> WebSource:
        config = add_live_world(tmp_path, "w", toml or web.describe(), "w.toml", replace=True)
        secrets = SecretTable(environ, stated=list_sent_variables(config))
        source = open_world(tmp_path, "w", access, secrets).web
        assert source is not None
        return source

    return add_and_open


def test_a_search_returns_the_results_of_searxng_with_titles_dates_and_snippets(web, open_web):
    first, second, third = open_web().search("Ada Reed", 5)
    assert (first.title, first.snippet, first.date) == (
        "Storm over the harbour",
        "The storm sank two barges.",
        "2003-11-09",
    )
    assert first.address == web.address("/news/storm")
    assert (second.title, second.date) == ("Ada Reed & her kites", None)
    assert first.score > second.score > third.score
    # Fewer results than five: the next page is requested once and has none.
    assert [path.partition("pageno=")[2] for path in web.paths("/search")] == ["1", "2"]


def test_further_pages_of_results_are_requested_until_there_are_enough(web, open_web):
    source = open_web()
    hits = source.search("cranes", 8)
    assert [hit.title for hit in hits] == [f"Quay {n}" for n in range(1, 9)]
    assert [hit.score for hit in hits] == sorted({hit.score for hit in hits}, reverse=True)
    assert len(web.paths("/search")) == 2
    assert len(source.search("cranes", 3)) == 3
    assert len(web.paths("/search")) == 2


def test_no_results_are_an_empty_list_and_no_words_send_nothing(web, open_web):
    source = open_web()
    assert source.search("zeppelin", 5) == []
    sent = len(web.server.asked)
    assert (source.search("  ", 5), source.search("Ada", 0)) == ([], [])
    assert len(web.server.asked) == sent


def test_an_endpoint_of_another_shape_is_described_by_paths_and_gets_the_key_which_no_page_gets(web, open_web):
    source = open_web(web.describe(web.other_search), HARBOUR_SEARCH=SEARCH_KEY)
    hits = source.search("Ada Reed", 2)
    assert [(hit.title, hit.snippet, hit.date) for hit in hits] == [
        ("Storm over the harbour", "It passed at noon.", "2003-11-09"),
        ("Ada Reed & her kites", "She works as a glazier in Gullhaven.", None),
    ]
    assert [hit.address for hit in hits] == [web.address("/news/storm"), web.address("/people/ada")]
    source.fetch(hits[0].address)
    search, page = web.server.asked
    assert "words=Ada+Reed&limit=2&offset=0" in search.path
    assert search.headers["x-search-key"] == SEARCH_KEY
    assert SEARCH_KEY not in str(page.headers)
    assert "tests@showhow.example" in page.headers["user-agent"]


def test_a_page_is_read_as_sentences_with_title_and_date_and_without_navigation(web, open_web):
    source = open_web()
    hit = source.search("Ada Reed storm", 5)[0]
    page = source.fetch(f"{hit.address}#middle")
    storm = HARBOUR_PAGES[0]
    assert (page.address, page.title, page.sentences, page.date) == (
        hit.address,
        storm.title,
        storm.sentences,
        storm.date,
    )


def test_only_results_of_a_search_and_addresses_that_a_person_typed_are_read(web, open_web):
    source = open_web()
    address = web.address("/people/otto")
    with pytest.raises(NotFound, match="was not returned by a search"):
        source.fetch(address)
    assert web.server.asked == []
    page = source.fetch(address, typed=True)
    assert page.title == "Otto Reed"
    # From then on, also a model may read it: in another process, and offline.
    assert open_web().fetch(address) == page
    assert open_web(access=OFFLINE).fetch(address) == page
    assert web.paths() == ["/people/otto"]


def test_offline_everything_recorded_gives_equal_results_and_sends_nothing(web, open_web):
    web.server.routes["/people/otto"] = status(410)
    source = open_web()
    hits = source.search("Ada Reed", 8)
    results = [hits, source.search("zeppelin", 3)]
    results += [_outcome(lambda hit=hit: source.fetch(hit.address)) for hit in hits]
    assert isinstance(results[-1], str)
    assert "no page at" in results[-1]
    sent = len(web.server.asked)
    offline = open_web(access=OFFLINE)
    again = [offline.search("Ada Reed", 8), offline.search("zeppelin", 3)]
    again += [_outcome(lambda hit=hit: offline.fetch(hit.address)) for hit in hits]
    assert again == results
    with pytest.raises(SourceUnavailable, match="is recorded, and Showhow is offline"):
        offline.search("kites", 3)
    assert len(web.server.asked) == sent


def _outcome(call: Callable[[], object]) -> object:
    try:
        return call()
    except SourceError as error:
        return str(error)


RESULT = {"url": "http://127.0.0.1/x", "title": "X"}
SEARCH_FAULTS: dict[str, tuple[Responder, type[SourceError], str]] = {
    "429 with Retry-After": (status(429, Retry_After="600"), SourceUnavailable, "429 (Too Many Requests); try again"),
    "500": (status(500), SourceUnavailable, "answered 500"),
    "403": (status(403), SourceUnavailable, "answered 403 (Forbidden); it denies access: check the contact"),
    "a slow trickle": (trickles, SourceTimeout, "did not answer within"),
    "silence": (hangs, SourceTimeout, "did not answer within"),
    "a connection reset": (resets, SourceUnavailable, "could not be reached"),
    "invalid JSON": (sends(b'{"results": ['), SourceUnavailable, "JSON that is truncated or invalid"),
    "JSON nested without end": (sends(b'{"results":' + b"[" * 50_000), SourceUnavailable, "truncated or invalid"),
    "an HTML page": (html(b"<html>sign in</html>"), SourceUnavailable, "text/html instead of application/json"),
    "no list of results": (says({"found": []}), SourceUnavailable, "no list at results; correct results under [web]"),
    "results that are no list": (says({"results": {"a": 1}}), SourceUnavailable, "no list at results"),
    "a list instead of a document": (says([]), SourceUnavailable, "no list at results"),
    "results that are no objects": (says({"results": [1, "x"]}), SourceUnavailable, "no text at url of its results"),
    "results without addresses": (says({"results": [{"title": "X"}]}), SourceUnavailable, "correct address under"),
    "results without titles": (says({"results": [{"url": "http://x.example/"}]}), SourceUnavailable, "correct title"),
    "failed engines": (
        says({"results": [], "unresponsive_engines": [["brave", "timeout"]]}),
        SourceUnavailable,
        'reports failures: [["brave", "timeout"]]',
    ),
    "a huge reply": (
        sends(b'{"results": [], "x": "' + b"x" * 200_000 + b'"}'),
        SourceUnavailable,
        "more than 0.1 MB, the limit of a response; request less",
    ),
    "an endless stream": (streams_for_ever, SourceUnavailable, "more than 0.1 MB"),
    "a redirect to another host": (
        status(302, Location="http://other.example/search"),
        SourceUnavailable,
        "Requests to other.example are refused",
    ),
}


@pytest.mark.parametrize("fault", SEARCH_FAULTS)
def test_a_fault_of_the_search_is_one_sentence_and_never_an_empty_result(fault, web, open_web):
    responder, kind, message = SEARCH_FAULTS[fault]
    web.server.routes["/search"] = responder
    source = open_web(web.describe(seconds=2, attempts=2, bytes=100_000))
    _assert_one_sentence(lambda: source.search("Ada Reed", 5), kind, message, web)
    # Nothing was recorded.
    with pytest.raises(SourceUnavailable, match="Showhow is offline"):
        open_web(web.describe(), OFFLINE).search("Ada Reed", 5)


def test_results_that_cannot_be_read_are_left_out_and_the_others_are_returned(web, open_web):
    results = [
        {"url": "javascript:alert(1)", "title": "A script"},
        {"url": "ftp://files.example/x", "title": "A file"},
        {"url": "http://ann:secret@x.example/", "title": "A password"},
        {"url": None, "title": "Nothing"},
        {"url": "https://wörld.example/straße?q=é#part", "title": "<b>World</b> &amp;\n more", "content": None},
        {"url": "https://xn--wrld-5qa.example/stra%C3%9Fe?q=%C3%A9", "title": "Again"},
        {"url": "https://plain.example", "content": "a\x00b <i>c</i>", "publishedDate": 3},
    ]
    web.server.routes["/search"] = says({"results": results})
    hits = open_web().search("world", 8)
    assert [(hit.address, hit.title, hit.snippet, hit.date) for hit in hits] == [
        ("https://xn--wrld-5qa.example/stra%C3%9Fe?q=%C3%A9", "World & more", "", None),
        ("https://plain.example/", "plain.example/", "a\ufffdb c", None),
    ]


PAGE_FAULTS: dict[str, tuple[Responder, type[SourceError], str]] = {
    "404": (status(404), NotFound, "There is no page at"),
    "410": (status(410), NotFound, "any more (410); read another one"),
    "403": (status(403), SourceUnavailable, "answered 403 (Forbidden); read another page"),
    "429 with Retry-After": (status(429, Retry_After="600"), SourceUnavailable, "429 (Too Many Requests); try again"),
    "500": (status(500), SourceUnavailable, "answered 500 (Internal Server Error), 2 times in a row; try again"),
    "a slow trickle": (trickles, SourceTimeout, "did not answer within"),
    "a PDF": (html(b"%PDF-1.7", "application/pdf"), SourceUnavailable, "application/pdf instead of text/html; read"),
    "a picture": (html(b"\x89PNG", "image/png"), SourceUnavailable, "image/png instead of text/html"),
    "a page without text": (html(b"<div id=app></div>"), SourceUnavailable, "without text, which may need a browser"),
    "a huge page": (html(b"<p>" + b"x " * 100_000), SourceUnavailable, "the limit of a response; read another page"),
    "an endless stream": (streams_for_ever, SourceUnavailable, "more than 0.1 MB"),
    "another character set": (
        html("<p>Größe für Übermut</p>".encode("latin-1")),
        SourceUnavailable,
        "declares the character set utf-8 of the page, but its text is in another one",
    ),
    "an unknown character set": (
        html(b"<p>text", "text/html; charset=klingon"),
        SourceUnavailable,
        "declares the character set 'klingon' of the page, which is unknown",
    ),
    "a codec that is no character set": (html(b"<p>text", "text/html; charset=rot13"), SourceUnavailable, "is unknown"),
    "a redirect loop": (status(302, Location="/news/storm"), SourceUnavailable, "redirects more than 5 times; read"),
    "a redirect to a file": (status(302, Location="file:///etc/passwd"), SourceUnavailable, "are refused: only http"),
    "a redirect to an FTP server": (status(302, Location="ftp://x.example/"), SourceUnavailable, "are refused: only"),
    "a redirect with a password": (
        status(302, Location="http://ann:secret@127.0.0.1/"),
        SourceUnavailable,
        "are refused: only http:// and https:// addresses without a user name",
    ),
    "a redirect to an invalid port": (status(302, Location="http://x:99999/"), SourceUnavailable, "invalid address"),
}


@pytest.mark.parametrize("fault", PAGE_FAULTS)
def test_a_fault_of_a_page_is_one_sentence(fault, web, open_web):
    responder, kind, message = PAGE_FAULTS[fault]
    web.server.routes["/news/storm"] = responder
    source = open_web(web.describe(seconds=2, attempts=2, bytes=100_000))
    source.search("storm", 1)
    _assert_one_sentence(lambda: source.fetch(web.address("/news/storm")), kind, message, web)


def _assert_one_sentence(call: Callable[[], object], kind: type[SourceError], message: str, web: HarbourWeb) -> None:
    with pytest.raises(kind) as failed:
        call()
    sentence = str(failed.value)
    assert message in sentence
    assert web.server.host in sentence or "are refused" in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert "secret" not in sentence


def test_five_redirects_are_followed_and_a_sixth_is_not(web, open_web):
    for n in range(1, 7):
        web.server.routes[f"/step/{n}"] = status(302, Location=f"/step/{n - 1}")
    web.server.routes["/step/0"] = html(b"<p>The end.")
    source = open_web()
    assert source.fetch(web.address("/step/5"), typed=True).sentences == ("The end.",)
    with pytest.raises(SourceUnavailable, match="redirects more than 5 times"):
        source.fetch(web.address("/step/6"), typed=True)


def test_a_redirect_to_another_host_is_followed_and_the_page_keeps_its_address(web, open_web):
    with run_web() as other:
        web.server.routes["/news/storm"] = status(301, Location=other.address("/people/ada"))
        source = open_web()
        hit = source.search("storm", 1)[0]
        page = source.fetch(hit.address)
    assert (page.address, page.title) == (hit.address, "Ada Reed & her kites")


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "LocalHost",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "１２７.0.0.1",
    ],
)
def test_a_page_at_a_private_address_is_not_read_however_the_address_is_written(host, web, open_web):
    port = web.server.host.partition(":")[2]
    address = f"http://{host}:{port}/news/storm"
    source = open_web(web.describe(private=False, attempts=1))
    with pytest.raises(
        SourceUnavailable, match=r"is not on the public internet, .*allow_private_pages = true"
    ) as failed:
        source.fetch(address, typed=True)
    assert "\n" not in str(failed.value)
    # A result of a search is no exception, although the search itself may be on this machine.
    assert [hit.address for hit in source.search("storm", 1)] == [web.address("/news/storm")]
    with pytest.raises(SourceUnavailable, match="is not on the public internet"):
        source.fetch(web.address("/news/storm"))
    assert web.paths("/news") == []


@pytest.mark.parametrize(
    "address",
    [
        "",
        "news/storm",
        "//127.0.0.1/",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "http://",
        "http:///path",
        "http://ann@x.example/",
        "http://ann:secret@x.example/",
        "http://x.example\\@127.0.0.1/",
        "http://x.example:0/",
        "http://x.example:99999/",
        "http://[fe80::1%25eth0]/",
        "http://[::1",
        "http://a..b/",
        "http://x y/",
        "http://x%2fy/",
        f"http://{'a' * 64}.example/",
        f"http://{'.'.join(['a' * 60] * 4)}/",
        f"http://x.example/{'a' * 2000}",
        "http://x.example/\ud800",
    ],
)
def test_what_is_no_address_of_a_page_is_refused_before_any_request(address, web, open_web):
    assert normalize_address(address) is None
    with pytest.raises(NotFound, match="is not the address of a page"):
        open_web().fetch(address, typed=True)
    assert web.server.asked == []


@given(text=st.text(max_size=60), scheme=st.sampled_from(["http://", "https://", "http://x.example/", ""]))
def test_a_normalized_address_is_ascii_without_fragment_and_normalizing_it_again_changes_nothing(text, scheme):
    address = normalize_address(scheme + text)
    if address is not None:
        assert address.isascii()
        assert address.isprintable()
        assert " " not in address
        assert "#" not in address
        assert normalize_address(address) == address


SEARCHER = """
import json, sys
from pathlib import Path
from showhow.worlds.live.http.request import Access
from showhow.worlds.open import open_world
from showhow.worlds.source import SourceError
source = open_world(Path(sys.argv[1]), sys.argv[2], Access("tests@showhow.example")).web
outcomes = []
for path in sys.argv[3:]:
    try:
        outcomes.append(source.fetch(path, typed=True).title)
    except SourceError as error:
        outcomes.append(str(error))
print(json.dumps(outcomes))
"""


def test_the_requests_per_minute_to_the_host_of_pages_are_counted_over_two_processes(web, tmp_path):
    outcomes = []
    for name, numbers in (("first", range(1, 4)), ("second", range(4, 7))):
        add_live_world(tmp_path, name, web.describe(per_minute=4, seconds=2), name)
        addresses = [web.address(f"/quay/{n}") for n in numbers]
        command = [sys.executable, "-c", SEARCHER, str(tmp_path), name, *addresses]
        outcomes += json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    assert outcomes[:4] == ["Quay 1", "Quay 2", "Quay 3", "Quay 4"]
    assert all(f"limit of 4 requests per minute to {web.server.host} is reached" in text for text in outcomes[4:])
    assert len(web.paths("/quay")) == 4


def test_at_most_three_requests_at_once_go_to_a_host_of_pages_whatever_the_description_allows(web, open_web):
    paths = [f"/quay/{n}" for n in range(1, 10)]
    for path in paths:
        web.server.routes[path] = _after_a_moment(web.server.routes[path])
    source = open_web(web.describe(at_once=9))
    with ThreadPoolExecutor(len(paths)) as threads:
        pages = list(threads.map(lambda path: source.fetch(web.address(path), typed=True), paths))
    assert [page.title for page in pages] == [f"Quay {n}" for n in range(1, 10)]
    assert web.server.max_concurrent_requests == 3


def _after_a_moment(responder: Responder) -> Responder:
    def respond(handler: Handler) -> None:
        time.sleep(0.2)
        responder(handler)

    return respond


def test_a_description_of_a_search_is_checked_field_by_field(web, tmp_path):
    described = web.describe()
    for old, new, message in (
        ("parameters = {", "parameters = { api_key = 'x',", r"\[web\] parameters must not contain api_key: keys go"),
        ("parameters = {", "parameters = { a = 1,", r"\[web\] parameters must give a text for each parameter"),
        ("parameters = {", "parameters = { 'a b' = 'c',", r"\[web\] parameters must give a text .* 'a b' does not"),
        ('page = "pageno"', 'page = "a=b&c"', r"\[web\] page must be the name of a parameter, or \"\" for none"),
        ("[limits]", 'title = "a..b"\n[limits]', r"\[web\] title must be names joined by dots"),
        ("[limits]", 'title = ""\n[limits]', r"\[web\] title must be names joined by dots"),
        ("[limits]", "page_step = 0\n[limits]", r"\[web\] page_step must be a whole number from 1 to 1,000"),
        ("= true", '= "true"', r"\[web\] allow_private_pages must be true or false"),
        ("/search", "/search?key=secret", r"\[web\] search must be an address without"),
        ("search =", "serach =", r"\[web\] serach is not a known field; did you mean search\?"),
        ('"json"', '"xml"', r"\[web\] kind must be one of json"),
    ):
        assert old in described
        with pytest.raises(Exception, match=message) as wrong:
            add_live_world(tmp_path, "w", described.replace(old, new, 1), "w")
        assert "secret" not in str(wrong.value)
    assert OTHER_SHAPE in web.describe(web.other_search)
