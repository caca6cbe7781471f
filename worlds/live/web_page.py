"""Read a page of the web, HTML or plain text, as sentences: without navigation, forms, scripts and hidden elements.

A page is parsed by a bounded worker, since a parser may take hours for a few megabytes: each element is compared
with all those around it that are not closed.
"""

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, lookup
from dataclasses import asdict
from datetime import date
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from showhow.guard.worker import WorkFailed, run_bounded
from showhow.worlds.live.http.request import HttpResponse, InvalidResponse, get_host
from showhow.worlds.live.wiki.page import HIDDEN_STYLE_PATTERN, PARSE_LIMITS, PageTextReader
from showhow.worlds.sentences import split_sentences
from showhow.worlds.source import SourceTimeout, WebPage
from showhow.worlds.text_normalization import replace_unstorable, truncate_text

HTML_TYPE, TEXT_TYPE = "text/html", "text/plain"
MAX_TITLE_LENGTH = 300
MAX_UNDECODED_SHARE = 0.001
"""The share of a page's characters that may be invalid in its character set; they become U+FFFD."""
_META_BYTES = 4096
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*+=\s*+[\"']?\s*+([\w.:-]{1,40})", re.IGNORECASE)
_BYTE_ORDER_MARKS = {BOM_UTF8: "utf-8-sig", BOM_UTF16_LE: "utf-16", BOM_UTF16_BE: "utf-16"}
_CHARSET_ALIASES = {"x-sjis": "cp932", "windows-31j": "cp932", "iso-8859-8-i": "iso8859-8", "x-gbk": "gb18030"}
"""Names on the web that Python does not know."""
_EXTENSIONS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
"""The larger character sets with which browsers read the declared ones."""
_TEXT_CODECS = re.compile(
    r"utf-(?:8|16|32).*|cp\d+|(?:iso8859|koi8|mac)-.*|gb.*|big5.*|(?:euc|shift|iso2022)_.*|ascii|tis-620"
)
"""Python's names of character sets; it has other codecs, such as unicode_escape, that are none."""
_IGNORED_SELECTOR = ", ".join(
    "script style noscript template svg canvas iframe object audio video dialog nav footer aside button select option "
    "textarea datalist [hidden] [aria-hidden=true] [role=navigation] [role=banner] [role=contentinfo] "
    "[role=search] [role=dialog] [role=menu] [role=complementary]".split()
)
_LAYOUT_SELECTOR = "p, div, ul, ol, dl, section, article, h1, h2, h3, h4"
_DATE_SELECTORS = (
    ("meta[property='article:published_time']", "content"),
    (
        "meta[name='date'], meta[name='pubdate'], meta[name='publishdate'], meta[name='citation_publication_date']",
        "content",
    ),
    (
        "meta[name='dc.date'], meta[name='DC.date'], meta[name='dcterms.created'], meta[name='dc.date.issued']",
        "content",
    ),
    ("[itemprop='datePublished'][content]", "content"),
    ("[itemprop='datePublished'][datetime], time[pubdate][datetime]", "datetime"),
)
"""Where pages state the date of writing, with the attribute that holds it."""
_JSON_DATE = re.compile(r'"datePublished"\s*:\s*"([^"]{8,40})"')
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?![A-Za-z])")


def read_web_page(address: str, response: HttpResponse, language: str) -> WebPage:
    """The page at this address; `language` is used where the page names none.

    InvalidResponse if its character set is unknown or wrong, or if it has no text; SourceTimeout at the limits.
    """
    host, text = get_host(response.url), _decode(response)
    try:
        parse = _parse_html if response.content_type == HTML_TYPE else _parse_text
        page = run_bounded(parse, address, text, language, limits=PARSE_LIMITS)
    except WorkFailed as error:
        raise SourceTimeout(f"The page of {host} could not be parsed: {error}; read another page.") from None
    if not page["sentences"]:
        raise InvalidResponse(f"{host} answered with a page without text, which may need a browser; read another page.")
    return WebPage(**page | {"sentences": tuple(page["sentences"])})


def _parse_text(address: str, text: str, language: str) -> dict[str, Any]:
    return asdict(WebPage(address, _title_from_address(address), split_sentences(text, language)))


def parse_date(text: str) -> str | None:
    """The day of an ISO 8601 or an e-mail date, as 2024-10-20; None for anything else, such as "3 days ago"."""
    text = text.strip()
    try:
        if match := _ISO_DATE.match(text):
            return date.fromisoformat(match[0]).isoformat()
        return parsedate_to_datetime(text).date().isoformat()
    except (ValueError, OverflowError):
        return None


def _decode(response: HttpResponse) -> str:
    """The text of the body: by its byte order mark, else by the header, else by its meta element, else UTF-8."""
    body, host = response.body, get_host(response.url)
    marked = next((charset for mark, charset in _BYTE_ORDER_MARKS.items() if body.startswith(mark)), None)
    charset = marked or _declared_charset(response)
    if charset is None:
        try:
            return replace_unstorable(body.decode("utf-8"))
        except UnicodeDecodeError:
            charset = "windows-1252"
    codec = _find_codec(charset)
    if codec is None:
        raise InvalidResponse(
            f"{host} declares the character set {truncate_text(charset, 40)!r} of the page, which is unknown; "
            "read another page."
        )
    text = body.decode(codec, "replace")
    if text.count("\ufffd") - body.count("\ufffd".encode()) > MAX_UNDECODED_SHARE * len(text):
        raise InvalidResponse(
            f"{host} declares the character set {charset} of the page, but its text is in another one; "
            "read another page."
        )
    return replace_unstorable(text)


def _find_codec(charset: str) -> str | None:
    """Python's name of a character set; None if it has none."""
    try:
        name = lookup(_CHARSET_ALIASES.get(charset.lower(), charset)).name
    except (LookupError, ValueError):
        return None
    return _EXTENSIONS.get(name, name) if _TEXT_CODECS.fullmatch(name) else None


def _declared_charset(response: HttpResponse) -> str | None:
    header = Message()
    header["content-type"] = response.headers.get("content-type", "")
    if charset := header.get_content_charset():
        return charset
    match = _META_CHARSET.search(response.body[:_META_BYTES]) if response.content_type == HTML_TYPE else None
    # A page that could be read as ASCII up to here is not in UTF-16, whatever it says.
    declared = match[1].decode("ascii", "replace").lower() if match else None
    return "utf-8" if declared and declared.startswith("utf-16") else declared


class _WebPageReader(PageTextReader):
    """Reads tables that only lay out a page as its blocks."""

    def add_table(self, node: LexborNode, depth: int) -> None:
        """Add the rows of a table of data, or the blocks inside the cells of another."""
        is_nested = any(inner.mem_id != node.mem_id for inner in node.css("table"))
        if is_nested or (node.css_first("th") is None and node.css_first(_LAYOUT_SELECTOR) is not None):
            self.read_node(node, depth)
        else:
            super().add_table(node, depth)


class _DocumentReader(_WebPageReader):
    """Reads the first heading as one; that of a web page is a part of its text."""

    heading_tags = _WebPageReader.heading_tags | {"h1"}


def _parse_html(address: str, html: str, language: str) -> dict[str, Any]:
    tree = LexborHTMLParser(html)
    reader = _read_tree(tree, language)
    title = _read_title(tree) or _title_from_address(address)
    return asdict(WebPage(address, title, tuple(reader.sentences), _read_date(tree, html)))


def read_html(html: str, language: str) -> tuple[str, PageTextReader]:
    """The title, "" if there is none, and what is read of HTML; to be called by a bounded worker."""
    tree = LexborHTMLParser(html)
    return _read_title(tree), _read_tree(tree, language, _DocumentReader)


def _read_tree(
    tree: LexborHTMLParser, language: str, reader_type: type[PageTextReader] = _WebPageReader
) -> PageTextReader:
    root = tree.css_first("html")
    declared = _LANGUAGE.match((root.attributes.get("lang") or "") if root else "")
    language = declared[0].lower() if declared else language
    reader = reader_type(set(), language)
    for content in (_main_content(tree), tree.body):
        if content is not None and not reader.sentences:
            reader = _read_content(content, language, reader_type)
    return reader


def _main_content(tree: LexborHTMLParser) -> LexborNode | None:
    """The element that the page marks as its content; None if it marks none or several."""
    for selector in ("main, [role=main]", "article"):
        if len(marked := tree.css(selector)) == 1:
            return marked[0]
    return None


def _read_content(content: LexborNode, language: str, reader_type: type[PageTextReader]) -> PageTextReader:
    skipped = {node.mem_id for node in content.css(_IGNORED_SELECTOR)}
    styled = content.css("[style]")
    skipped |= {node.mem_id for node in styled if HIDDEN_STYLE_PATTERN.search(node.attributes.get("style") or "")}
    # The header of the whole page has its navigation; that of an article has its title and author.
    skipped |= {node.mem_id for node in content.iter() if node.tag == "header" and content.tag == "body"}
    reader = reader_type(skipped, language)
    reader.read_node(content)
    reader.finish()
    return reader


def _read_title(tree: LexborHTMLParser) -> str:
    title = tree.css_first("meta[property='og:title']")
    texts = [(title.attributes.get("content") or "") if title else ""]
    texts += [node.text() for selector in ("head > title", "h1") if (node := tree.css_first(selector))]
    return truncate_text(next((" ".join(text.split()) for text in texts if text.strip()), ""), MAX_TITLE_LENGTH)


def _title_from_address(address: str) -> str:
    return truncate_text(address.partition("://")[2], MAX_TITLE_LENGTH)


def _read_date(tree: LexborHTMLParser, html: str) -> str | None:
    for selector, attribute in _DATE_SELECTORS:
        for node in tree.css(selector):
            if day := parse_date(node.attributes.get(attribute) or ""):
                return day
    match = _JSON_DATE.search(html)
    return parse_date(match[1]) if match else None
