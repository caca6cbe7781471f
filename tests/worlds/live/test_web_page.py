"""Pages of the web as text: what is content, character sets, tables, titles and dates."""

from contextlib import suppress
from datetime import UTC, datetime
from html import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from showhow.worlds.live.http.request import HttpResponse, InvalidResponse
from showhow.worlds.live.web_page import parse_date, read_web_page
from showhow.worlds.source import SourceTimeout, WebPage

pytestmark = pytest.mark.long

ADDRESS = "https://harbour.example/news/storm"


def read(body: str | bytes, kind: str = "text/html; charset=utf-8") -> WebPage:
    content = body.encode() if isinstance(body, str) else body
    return read_web_page(ADDRESS, HttpResponse(ADDRESS, 200, {"content-type": kind}, content, datetime.now(UTC)), "en")


def test_navigation_forms_scripts_and_hidden_elements_are_left_out():
    page = read(
        """<body><header><a>Home</a></header><nav>Menu</nav><script>x()</script><style>p {}</style>
        <form><h1>The storm</h1><p>It sank<br>two barges.</p><button>Share</button></form>
        <p hidden>Hidden.</p><p style="display: none">Also hidden.</p><p aria-hidden="true">Hidden as well.</p>
        <div role="navigation">More menu</div><aside>Advertisement</aside><noscript>No script.</noscript>
        <template>Later.</template><footer>Imprint</footer></body>"""
    )
    assert page.sentences == ("The storm", "It sank", "two barges.")


def test_the_marked_content_of_a_page_is_read_and_without_a_mark_all_of_it():
    assert read("<p>Before.</p><main><p>Content.</p></main><p>After.</p>").sentences == ("Content.",)
    assert read("<p>Before.</p><article><header>By Ada</header>News.</article>").sentences == ("By Ada", "News.")
    several = "<article>One.</article><article>Two.</article>"
    assert read(f"<p>Before.</p>{several}").sentences == ("Before.", "One.", "Two.")
    assert read("<p>Before.</p><main></main>").sentences == ("Before.",)


def test_the_end_of_a_line_in_the_source_ends_no_sentence_except_in_preformatted_text():
    page = read("<p>Ada Reed\n  flies\nkites. She\nwins.</p><pre>first line\nsecond line</pre>")
    assert page.sentences == ("Ada Reed flies kites.", "She wins.", "first line", "second line")


def test_a_table_of_data_becomes_rows_and_one_that_lays_out_the_page_its_blocks():
    data = "<table><tr><th>Year</th><th>Barges</th></tr><tr><td>2003</td><td>2</td></tr></table>"
    assert read(data).sentences == ("Year: 2003; Barges: 2",)
    assert read("<table><tr><td>2003</td><td>2</td></tr></table>").sentences == ("2003; 2",)
    layout = f"<table><tr><td><p>Left column.</p></td><td>{data}</td></tr></table>"
    assert read(layout).sentences == ("Left column.", "Year: 2003; Barges: 2")


def test_plain_text_is_read_line_by_line_with_its_address_as_title():
    page = read("A storm. It passed.\nAt noon", "text/plain")
    assert (page.title, page.sentences) == ("harbour.example/news/storm", ("A storm.", "It passed.", "At noon"))
    assert read("<p>as it is", "text/plain").sentences == ("<p>as it is",)


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ("<title>Storm &amp;\n sea</title>", "Storm & sea"),
        ("<meta property='og:title' content='Storm'><title>Storm | Harbour News</title>", "Storm"),
        ("<body><h1>Only a heading</h1>", "Only a heading"),
        ("<title> </title>", "harbour.example/news/storm"),
        (f"<title>{'x' * 400}</title>", "x" * 299 + "…"),
        ("<title>a\x00b</title>", "a\ufffdb"),
    ],
)
def test_the_title_is_that_of_the_article_the_page_its_heading_or_its_address(head: str, title: str):
    assert read(f"{head}<p>Text.</p>").title == title


@pytest.mark.parametrize(
    ("markup", "day"),
    [
        ('<meta property="article:published_time" content="2003-11-09T08:00:00+01:00">', "2003-11-09"),
        ('<meta name="date" content="2003-11-09">', "2003-11-09"),
        ('<meta name="DC.date" content="2003-11-09">', "2003-11-09"),
        ('<meta name="date" content="soon"><meta name="dcterms.created" content="2003-11-09">', "2003-11-09"),
        ('<p><time itemprop="datePublished" datetime="2003-11-09">yesterday</time></p>', "2003-11-09"),
        ('<script type="application/ld+json">{"datePublished": "2003-11-09T08:00"}</script>', "2003-11-09"),
        ('<p>On <time datetime="1990-01-01">that day</time></p>', None),
        ("", None),
    ],
)
def test_the_date_is_what_the_page_states_as_its_publication(markup: str, day: str | None):
    assert read(f"{markup}<p>Text.</p>").date == day


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2003-11-09", "2003-11-09"),
        ("2003-11-09 08:00", "2003-11-09"),
        (" 2003-11-09T23:59:59Z", "2003-11-09"),
        ("Sun, 09 Nov 2003 08:00:00 GMT", "2003-11-09"),
        ("2003-02-30", None),
        ("2003-11-091", None),
        ("3 days ago", None),
        ("", None),
    ],
)
def test_dates_are_iso_or_as_in_mails(text: str, day: str | None):
    assert parse_date(text) == day


@given(text=st.text())
def test_no_text_of_a_date_raises(text: str):
    day = parse_date(text)
    assert day is None or len(day) == 10


TEXTS = {
    "utf-8": "Größe – 100 €",
    "iso-8859-1": "Größe “so”",
    "windows-1252": "Größe “so” €",
    "iso-8859-15": "Größe 5 €",
    "windows-1251": "Буря в порту",
    "koi8-r": "Буря в порту",
    "shift_jis": "港の嵐①",
    "euc-jp": "港の嵐",
    "gb2312": "港口的風暴",
    "big5": "港口的風暴",
    "euc-kr": "항구의 폭풍",
    "utf-16": "Größe – 港",
    "x-sjis": "港の嵐",
}
CODECS = {"iso-8859-1": "cp1252", "shift_jis": "cp932", "x-sjis": "cp932", "gb2312": "gb18030"}


@pytest.mark.parametrize("charset", TEXTS)
def test_the_character_set_of_the_header_is_honoured(charset: str):
    text = TEXTS[charset]
    body = f"<title>t</title><p>{text}</p>".encode(CODECS.get(charset, charset))
    assert read(body, f'text/html; charset="{charset.upper()}"').sentences == (text,)


@pytest.mark.parametrize("charset", [charset for charset in TEXTS if charset != "utf-16"])
@pytest.mark.parametrize("meta", ["<meta charset='{}'>", "<META http-equiv=x content='text/html; charset={}'>"])
def test_the_character_set_of_the_page_is_honoured_where_the_header_has_none(charset: str, meta: str):
    text = TEXTS[charset]
    body = f"<html><head>{meta.format(charset)}</head><p>{text}</p>".encode(CODECS.get(charset, charset))
    assert read(body, "text/html").sentences == (text,)


def test_a_byte_order_mark_overrules_a_declaration_and_without_any_it_is_utf8_or_windows_1252():
    assert read("<p>Größe".encode("utf-8-sig"), "text/html; charset=iso-8859-1").sentences == ("Größe",)
    assert read("<p>Größe".encode("utf-16"), "text/html").sentences == ("Größe",)
    assert read("<p>Größe".encode(), "text/html").sentences == ("Größe",)
    assert read("<p>Größe “so”".encode("cp1252"), "text/html").sentences == ("Größe “so”",)
    assert read('<meta charset="utf-16"><p>Größe'.encode(), "text/html").sentences == ("Größe",)


def test_few_damaged_characters_are_replaced_and_many_are_another_character_set():
    assert read(b"<p>" + b"word " * 400 + b"\xff end").sentences[0].endswith("\ufffd end")
    assert read("<p>an \ufffd here").sentences == ("an \ufffd here",)
    with pytest.raises(InvalidResponse, match="its text is in another one; read another page"):
        read("<p>Größe".encode("cp1252"))


@pytest.mark.parametrize("charset", ["klingon", "rot13", "unicode_escape", "idna", "hex", "../x", "x" * 5000])
def test_an_unknown_character_set_is_an_error(charset: str):
    with pytest.raises(InvalidResponse, match="which is unknown; read another page"):
        read("<p>Text.", f"text/html; charset={charset}")


@settings(max_examples=15)
@given(texts=st.lists(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20), min_size=1))
def test_every_text_of_a_page_is_in_its_sentences_once(texts: list[str]):
    page = read("".join(f"<p>{escape(text)}</p>" for text in texts))
    assert "".join("".join(sentence.split()) for sentence in page.sentences) == "".join(texts)


@pytest.mark.parametrize("tag", ["div", "span", "table><tr><td", "ul><li"])
def test_a_page_nested_deeply_is_read(tag: str):
    assert "deep" in " ".join(read(f"<{tag}>" * 5_000 + "deep").sentences)


def test_elements_that_are_opened_again_in_every_block_are_read():
    body = "".join(f"<b n={n}>" for n in range(2_000)) + "<p>x" * 2_000
    assert "".join(read(body).sentences) == "x" * 2_000


def test_a_page_that_takes_a_parser_hours_is_stopped_at_the_limit():
    with pytest.raises(
        SourceTimeout, match=r"harbour\.example could not be parsed: it was stopped at its limit of 10 s; read an"
    ):
        read("<div>" * 1_000_000)


@settings(max_examples=15)
@given(body=st.binary(max_size=300))
def test_no_page_raises_anything_but_an_invalid_response(body: bytes):
    for kind in ("text/html", "text/plain; charset=shift_jis", "text/html; charset=utf-16"):
        with suppress(InvalidResponse):
            assert read(body, kind).sentences
