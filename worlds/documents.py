"""Documents as articles: plain text, Markdown, HTML, PDF and Word, and archives of them.

A bounded worker reads each of them, since a parser may take hours for a few megabytes. Every format becomes HTML first,
so that one reader finds the title, the headings, the paragraphs and the rows of tables.
"""

import html
import logging
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any
from xml.etree import ElementTree

from markdown_it import MarkdownIt

from showhow.guard.files import open_regular
from showhow.guard.input_bounds import MAX_DOCUMENT_BYTES, MEGABYTE, ExpansionBudget, InputBoundExceeded
from showhow.guard.worker import WorkFailed, WorkLimits, run_bounded
from showhow.worlds.folder import WorldError
from showhow.worlds.live.web_page import read_html
from showhow.worlds.source import Article
from showhow.worlds.text_normalization import replace_unstorable

_MAX_SECONDS, _MAX_MEGABYTES = 120.0, 1024
"""What reading a document may take; a small one gets less."""
MAX_ARCHIVE_FILES = 200_000
ARCHIVE_SUFFIX = ".zip"
_UNREADABLE = (
    *(ValueError, LookupError, TypeError, AttributeError, AssertionError, ArithmeticError, RuntimeError),
    *(OSError, EOFError, zlib.error, zipfile.BadZipFile, ElementTree.ParseError),
)
"""What the libraries raise for damaged files, beside errors of their own."""
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_TITLE_OF_FRONT_MATTER = re.compile(r"^title:[ \t]*(.+?)[ \t]*$", re.MULTILINE | re.IGNORECASE)
_DECLARED_CHARSET = re.compile(rb"charset\s*+=\s*+[\"']?\s*+([\w.:-]{1,40})", re.IGNORECASE)
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_DUBLIN_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_WIDEST_WRAPPED_LINE = 160
"""Where a line is longer, lines are whole paragraphs, not cut at a margin."""
_SHORT_LINE = 0.75
"""A line that takes less of the widest one ends a paragraph."""
_PAGES_WITH_RUNNING_LINES = 3


class UnreadableDocument(WorldError):
    """A document has no text that can be read; the message says why."""


def read_document(file: Path) -> Article:
    """The document as an article; UnreadableDocument if it has no text or is damaged."""
    try:
        fields = run_bounded(parse_document, str(file.absolute()), limits=_choose_limits(file))
    except WorkFailed as error:
        raise UnreadableDocument(f"{file.name} could not be read: {error}") from None
    if isinstance(fields, str):
        raise UnreadableDocument(f"{file.name}: {fields}")
    return Article(
        fields["title"],
        tuple(fields["sentences"]),
        sections=tuple((heading, index) for heading, index in fields["sections"]),
        paragraphs=tuple(fields["paragraphs"]),
    )


def _choose_limits(file: Path) -> WorkLimits:
    """What reading a file of this size may take, so that a small one delays an import by seconds only."""
    megabytes = file.stat().st_size / MEGABYTE if file.is_file() else 0.0
    return WorkLimits(
        seconds=min(_MAX_SECONDS, 15.0 + 15.0 * megabytes), megabytes=int(min(_MAX_MEGABYTES, 512 + 64 * megabytes))
    )


def is_document(name: str) -> bool:
    """Whether the name is that of a document."""
    return PurePosixPath(name).suffix.lower() in _READERS


def unpack_archive(file: Path, folder: Path) -> None:
    """Write the documents and article files of a zip archive into the folder; UnreadableDocument if it is damaged."""
    try:
        problem = run_bounded(unpack, str(file.absolute()), str(folder.absolute()), limits=_choose_limits(file))
    except WorkFailed as error:
        raise UnreadableDocument(f"{file.name} could not be unpacked: {error}") from None
    if problem:
        raise UnreadableDocument(f"{file.name}: {problem}")


def unpack(file: str, folder: str) -> str:
    """Unpack in a worker; returns why it cannot be done, or ""."""
    try:
        with open_regular(Path(file)) as stream, zipfile.ZipFile(stream) as archive:
            budget = ExpansionBudget(Path(file).stat().st_size)
            if len(archive.infolist()) > MAX_ARCHIVE_FILES:
                return f"it has {len(archive.infolist()):,} files, more than the bound of {MAX_ARCHIVE_FILES:,}"
            for number, entry in enumerate(archive.infolist()):
                if not entry.is_dir() and not _is_hidden(entry.filename):
                    _unpack_entry(archive, entry, Path(folder), number, budget)
    except InputBoundExceeded as error:
        return str(error)
    except RuntimeError:
        return "it is protected by a password; unpack it and pack it without one"
    except _UNREADABLE as error:
        return f"it cannot be read as a zip archive ({error})"
    return ""


def _unpack_entry(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, folder: Path, number: int, budget: ExpansionBudget
) -> None:
    # Numbered folders keep the order, and the name as it is, without the path that the archive asks for.
    name = PurePosixPath(entry.filename.replace("\\", "/")).name
    target = folder / f"{number:06}" / name
    target.parent.mkdir()
    with archive.open(entry) as source, target.open("wb") as written:
        while part := source.read(MEGABYTE):
            budget.spend(len(part))
            written.write(part)


def _is_hidden(name: str) -> bool:
    return any((part.startswith(".") and part.strip(".")) or part == "__MACOSX" for part in PurePosixPath(name).parts)


def parse_document(file: str) -> dict[str, Any] | str:
    """Read the document in a worker: the fields of its article, or why there are none."""
    path = Path(file)
    try:
        with open_regular(path) as stream:
            data = stream.read(MAX_DOCUMENT_BYTES + 1)
        if len(data) > MAX_DOCUMENT_BYTES:
            return f"it is longer than {MAX_DOCUMENT_BYTES // MEGABYTE} MB; split it"
        title, markup = _READERS[path.suffix.lower()](data, path)
        own_title, reader = read_html(replace_unstorable(markup), "en")
    except (InputBoundExceeded, UnreadableDocument) as error:
        return str(error)
    except _UNREADABLE as error:
        return f"it is damaged, or of another kind than its name says ({type(error).__name__}: {error})"
    if not reader.sentences:
        return "it has no text; scanned pages need text recognition (OCR) first"
    title = " ".join((title or own_title or path.stem).split())
    sections = [(heading, index) for heading, index in reader.nonempty_sections() if (heading, index) != (title, 0)]
    paragraphs = reader.paragraphs if len(reader.paragraphs) > 1 else []
    return {"title": title, "sentences": reader.sentences, "sections": sections, "paragraphs": paragraphs}


def _decode(data: bytes) -> str:
    """The text by its byte order mark, as UTF-8, as it says itself, or as Windows wrote it."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    declared = _DECLARED_CHARSET.search(data[:4096])
    for charset in ("utf-8-sig", declared[1].decode() if declared else "", "cp1252"):
        try:
            return data.decode(charset)
        except (UnicodeDecodeError, LookupError):
            continue
    return data.decode("latin-1")


def _read_text(data: bytes, _path: Path) -> tuple[str, str]:
    return "", _paragraphs_to_html(_join_lines(_decode(data).splitlines()))


def _read_markdown(data: bytes, _path: Path) -> tuple[str, str]:
    text = _decode(data).replace("\r\n", "\n")
    title = ""
    if front := _FRONT_MATTER.match(text):
        stated = _TITLE_OF_FRONT_MATTER.search(front[1])
        title, text = (stated[1].strip("\"'") if stated else ""), text[front.end() :]
    return title, str(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text))


def _read_html_file(data: bytes, _path: Path) -> tuple[str, str]:
    return "", _decode(data)


def _read_pdf(data: bytes, _path: Path) -> tuple[str, str]:
    # Few files are PDF, and the library takes 0.3 s to load.
    import io  # noqa: PLC0415

    from pypdf import PdfReader  # noqa: PLC0415
    from pypdf.errors import PyPdfError  # noqa: PLC0415

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableDocument("it is protected by a password; save it without one")
        pages = [page.extract_text().splitlines() for page in reader.pages]
    except PyPdfError as error:
        raise UnreadableDocument(f"it cannot be read as PDF ({error})") from error
    return "", _paragraphs_to_html(_join_lines(chain.from_iterable(_without_running_lines(pages))))


def _without_running_lines(pages: Sequence[list[str]]) -> Iterator[list[str]]:
    """The lines of pages without what most pages begin or end with, numbers aside: running heads and page numbers."""
    outer = Counter(key for lines in pages for key in {_running_key(line) for line in (lines[:1] + lines[-1:])})
    running = {key for key, count in outer.items() if count >= max(_PAGES_WITH_RUNNING_LINES, len(pages) / 2)}
    for lines in pages:
        first, last = 0, len(lines)
        if lines and _running_key(lines[0]) in running:
            first = 1
        if last > first and _running_key(lines[-1]) in running:
            last -= 1
        yield lines[first:last]


def _running_key(line: str) -> str:
    return re.sub(r"\d+", "#", " ".join(line.split()))


def _join_lines(lines: Iterable[str]) -> Iterator[str]:
    """The paragraphs of lines that were cut at a margin; lines that were not are paragraphs."""
    texts = [" ".join(line.split()) for line in lines]
    widest = max(map(len, texts), default=0)
    is_wrapped = widest <= _WIDEST_WRAPPED_LINE
    paragraph = ""
    for text in texts:
        if paragraph.endswith("-") and text[:1].islower():
            paragraph = paragraph[:-1] + text
        else:
            paragraph = f"{paragraph} {text}".strip()
        if not text or not is_wrapped or len(text) < _SHORT_LINE * widest:
            if paragraph:
                yield paragraph
            paragraph = ""
    if paragraph:
        yield paragraph


def _paragraphs_to_html(paragraphs: Iterable[str]) -> str:
    return "".join(f"<p>{html.escape(paragraph)}</p>" for paragraph in paragraphs)


def _read_docx(data: bytes, path: Path) -> tuple[str, str]:
    import io  # noqa: PLC0415

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        budget = ExpansionBudget(len(data))
        budget.spend(sum(entry.file_size for entry in archive.infolist()))
        names = archive.namelist()
        body = ElementTree.fromstring(archive.read("word/document.xml")).find(f"{_W}body")  # noqa: S314 - a worker's
        styles = _heading_styles(archive.read("word/styles.xml")) if "word/styles.xml" in names else {}
        core = ElementTree.fromstring(archive.read("docProps/core.xml")) if "docProps/core.xml" in names else None  # noqa: S314
    stated = core.find(_DUBLIN_TITLE) if core is not None else None
    if body is None:
        raise UnreadableDocument(f"{path.name} has no text")
    return (stated.text or "").strip() if stated is not None else "", "".join(_docx_blocks(body, styles))


def _heading_styles(data: bytes) -> dict[str, int]:
    """The level of each style that is a heading; its id differs by language, its name does not."""
    levels = {}
    for style in ElementTree.fromstring(data).iter(f"{_W}style"):  # noqa: S314 - a worker's
        name = style.find(f"{_W}name")
        text = (name.get(f"{_W}val") or "").lower() if name is not None else ""
        if match := re.fullmatch(r"title|heading ([1-6])", text):
            levels[style.get(f"{_W}styleId") or ""] = int(match[1] or 1)
    return levels


def _docx_blocks(parent: ElementTree.Element, styles: dict[str, int]) -> Iterator[str]:
    for child in parent:
        if child.tag == f"{_W}p":
            style = child.find(f"{_W}pPr/{_W}pStyle")
            level = styles.get((style.get(f"{_W}val") or "") if style is not None else "", 0)
            tag = f"h{level}" if level else "p"
            yield f"<{tag}>{html.escape(_docx_text(child))}</{tag}>"
        elif child.tag == f"{_W}tbl":
            rows = (
                "".join(f"<td>{''.join(_docx_blocks(cell, {}))}</td>" for cell in _iterate_outermost(row, f"{_W}tc"))
                for row in _iterate_outermost(child, f"{_W}tr")
            )
            yield f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"
        elif child.tag in (f"{_W}sdt", f"{_W}sdtContent"):
            yield from _docx_blocks(child, styles)


def _iterate_outermost(parent: ElementTree.Element, tag: str) -> Iterator[ElementTree.Element]:
    """The elements with this tag below the parent, without those within them: tables may stand in cells."""
    for child in parent:
        if child.tag == tag:
            yield child
        else:
            yield from _iterate_outermost(child, tag)


def _docx_text(paragraph: ElementTree.Element) -> str:
    parts = {f"{_W}tab": " ", f"{_W}br": " ", f"{_W}cr": " "}
    return "".join(node.text or "" if node.tag == f"{_W}t" else parts.get(node.tag, "") for node in paragraph.iter())


_READERS: dict[str, Callable[[bytes, Path], tuple[str, str]]] = {
    ".txt": _read_text,
    ".text": _read_text,
    ".md": _read_markdown,
    ".markdown": _read_markdown,
    ".html": _read_html_file,
    ".htm": _read_html_file,
    ".xhtml": _read_html_file,
    ".pdf": _read_pdf,
    ".docx": _read_docx,
}
"""The reader of each ending: the title, "" if the document states none, and the document as HTML."""
DOCUMENT_SUFFIXES = tuple(_READERS)
