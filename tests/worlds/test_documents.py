"""Documents as articles: titles, headings, paragraphs and tables of every format, archives, and what has no text."""

import contextlib
import io
import stat
import zipfile
import zlib
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from showhow.guard.input_bounds import FREE_EXPANSION_BYTES
from showhow.worlds.article_files import read_articles
from showhow.worlds.build import WorldContents, build_world
from showhow.worlds.documents import MAX_ARCHIVE_FILES, UnreadableDocument, read_document
from showhow.worlds.input_files import MalformedFile
from showhow.worlds.open import open_world
from showhow.worlds.source import Article

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
STYLES = f"""<w:styles {W}>
<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>
<w:style w:styleId="Titel"><w:name w:val="Title"/></w:style></w:styles>"""
MARKDOWN = """---
title: "The harbour"
author: somebody
---
The **harbour** was built in [1871](http://127.0.0.1/x). It froze
twice.

Its master is *Lena Brandt*.

## Ships

- The Gull carries salt.
- The Tern carries `rope`.

| Ship | Captain |
|---|---|
| Gull | Otis Marlow |
"""
WRAPPED = """The harbour of Gullhaven was built in 1871, when the old mole had been washed a-
way by the great flood. It is the oldest one of the coast, and it froze over twice.
Its first master was Lena Brandt.

Ships come in spring. They bring salt, rope and oranges to the merchants of the town,
who wait for them at the quay.
"""


def paragraphs_of(article: Article) -> list[str]:
    """The texts of the paragraphs."""
    starts = article.paragraphs or (0,)
    ends = [*starts[1:], len(article.sentences)]
    return [" ".join(article.sentences[start:end]) for start, end in zip(starts, ends, strict=True)]


def make_docx(blocks: list[tuple[str, str]], title: str = "") -> bytes:
    """A Word document of paragraphs with these styles; a text with bars is a row of a table."""
    parts = []
    for style, text in blocks:
        if "|" in text:
            cells = "".join(f"<w:tc><w:p><w:r><w:t>{escape(cell)}</w:t></w:r></w:p></w:tc>" for cell in text.split("|"))
            parts.append(f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>")
        else:
            half = len(text) // 2
            runs = "".join(f"<w:r><w:t>{escape(run)}</w:t></w:r>" for run in (text[:half], text[half:]))
            parts.append(f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr>{runs}</w:p>')
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("word/document.xml", f"<w:document {W}><w:body>{''.join(parts)}</w:body></w:document>")
        archive.writestr("word/styles.xml", STYLES)
        if title:
            core = f'<c xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title></c>'
            archive.writestr("docProps/core.xml", core)
    return stream.getvalue()


def make_pdf(pages: list[list[str]]) -> bytes:
    """A PDF with these lines on its pages."""
    count = len(pages)
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(count))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, lines in enumerate(pages):
        drawn = "".join(f"({line}) Tj 0 -14 Td " for line in lines)
        stream = f"BT /F1 11 Tf 50 780 Td {drawn}ET"
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> "
            f"/Contents {5 + 2 * number} 0 R >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    body, offsets = "%PDF-1.4\n", []
    for number, text in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    trailer = f"trailer << /Size {size} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF"
    return f"{body}xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode()


def change_pdf(*changes: tuple[bytes, bytes]) -> bytes:
    """A PDF of one page with these changes, whose table of places is then wrong."""
    data = make_pdf([["The harbour was built long ago."]])
    for old, new in changes:
        assert old in data, old
        data = data.replace(old, new, 1)
    return data


def expanding_stream(packed: bytes, filters: str = "/FlateDecode") -> bytes:
    start = b"<< /Length "
    data = make_pdf([["x"]])
    place = data.index(start)
    end = data.index(b"endstream", place)
    head = f"<< /Length {len(packed)} /Filter [{filters}] >>\nstream\n".encode()
    return data[:place] + head + packed + b"\n" + data[end:]


def nested_tables(depth: int) -> bytes:
    inner = "<w:p><w:r><w:t>The innermost cell.</w:t></w:r></w:p>"
    for _ in range(depth):
        inner = f"<w:tbl><w:tr><w:tc>{inner}</w:tc><w:tc><w:p/></w:tc></w:tr></w:tbl>"
    return word_document(f"<w:document {W}><w:body>{inner}</w:body></w:document>")


def word_document(content: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", content)
    return stream.getvalue()


ENTITIES = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(12))
TWICE = zlib.compress(zlib.compress(bytes(400_000_000)))
BOMBS = {
    "pages within themselves.pdf": change_pdf((b"/Kids [4 0 R]", b"/Kids [2 0 R]")),
    "pages within each other.pdf": change_pdf((b"/Kids [4 0 R]", b"/Kids [2 0 R 2 0 R 4 0 R]")),
    "very many pages.pdf": change_pdf((b"/Count 1", b"/Count 999999999")),
    "a long count.pdf": change_pdf((b"/Count 1", b"/Count " + b"9" * 5_000)),
    "tables in a circle.pdf": change_pdf((b"trailer << ", b"trailer << /Prev 9 /XRefStm 9 ")),
    "a page that is its own font.pdf": change_pdf((b"/F1 3 0 R", b"/F1 4 0 R")),
    "contents that contain themselves.pdf": change_pdf((b"/Contents 5 0 R", b"/Contents [5 0 R 4 0 R [5 0 R]]")),
    "a drawing within itself.pdf": change_pdf(
        (b"/Font << /F1 3 0 R >>", b"/XObject << /X 5 0 R >>"),
        (b"<< /Length ", b"<< /Type /XObject /Subtype /Form /Resources << /XObject << /X 5 0 R >> >> /Length "),
        (b"BT ", b"/X Do BT "),
    ),
    "deep arrays.pdf": change_pdf((b"BT ", b"[" * 100_000)),
    "zeros.pdf": expanding_stream(zlib.compress(bytes(400_000_000))),
    "zeros twice.pdf": expanding_stream(TWICE, "/FlateDecode /FlateDecode"),
    "many filters.pdf": expanding_stream(b"x" * 100, "/ASCIIHexDecode " * 10_000),
    "tables in tables.docx": nested_tables(60),
    "entities.docx": word_document(f'<!DOCTYPE d [<!ENTITY e0 "x">{ENTITIES}]><d>&e12;</d>'),
    "an entity of a file.docx": word_document('<!DOCTYPE d [<!ENTITY e SYSTEM "file:///etc/passwd">]><d>&e;</d>'),
    "deep.docx": word_document("<a>" * 500_000),
    "zeros.docx": word_document(" " * 100_000_000),
    "deep.html": b"<div>" * 50_000,
    "deep.md": b"> " * 20_000 + b"x",
    "brackets.md": b"[" * 50_000,
    "half a character.txt": "\ud800 \0 x".encode("utf-16", "surrogatepass"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", BOMBS)
def test_a_small_hostile_document_is_read_or_refused_in_one_sentence(tmp_path: Path, name: str):
    file = tmp_path / name
    file.write_bytes(BOMBS[name])
    assert file.stat().st_size < 2_500_000
    text, refusal = "", ""
    try:
        text = read_document(file).text
    except UnreadableDocument as error:
        refusal = str(error)
    assert "\n" not in refusal
    assert max(len(refusal), len(text)) < 100_000
    assert "root:" not in text


def test_tables_in_cells_are_read_once(tmp_path: Path):
    (tmp_path / "a.docx").write_bytes(nested_tables(3))
    assert read_document(tmp_path / "a.docx").text.count("The innermost cell.") == 1


def test_markdown_is_read_as_it_is_rendered(tmp_path: Path):
    file = tmp_path / "harbour.md"
    file.write_text(MARKDOWN, encoding="utf-8")
    article = read_document(file)
    assert article.title == "The harbour"
    assert article.sentences[:3] == ("The harbour was built in 1871.", "It froze twice.", "Its master is Lena Brandt.")
    assert article.sections == (("Ships", 3),)
    assert paragraphs_of(article)[:3] == [
        "The harbour was built in 1871. It froze twice.",
        "Its master is Lena Brandt.",
        "The Gull carries salt.",
    ]
    assert "The Tern carries rope." in article.sentences
    assert "Otis Marlow" in article.sentences[-1]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_wrapped_lines_are_joined_and_paragraphs_stay(tmp_path: Path, encoding: str):
    file = tmp_path / "Gullhaven.TXT"
    file.write_bytes(WRAPPED.replace("oranges", "änd oranges").replace("\n", "\r\n").encode(encoding))
    article = read_document(file)
    assert article.title == "Gullhaven"
    assert len(paragraphs_of(article)) == 2
    assert "had been washed away by the great flood." in article.sentences[0]
    assert paragraphs_of(article)[1].endswith("who wait for them at the quay.")
    assert "änd" in article.text


def test_lines_that_are_whole_paragraphs_stay_apart(tmp_path: Path):
    file = tmp_path / "long.txt"
    file.write_text(f"{'One sentence of the first. ' * 12}\nThe second.\n{'A third one here. ' * 12}", encoding="utf-8")
    assert [text[:11] for text in paragraphs_of(read_document(file))] == ["One sentenc", "The second.", "A third one"]


def test_html_loses_its_navigation_and_keeps_its_paragraphs(tmp_path: Path):
    file = tmp_path / "page.htm"
    file.write_text(
        "<title>Gull</title><nav>Home</nav><h1>Gull</h1><p>It flies.<p>It swims.<script>evil()</script>",
        encoding="utf-8",
    )
    article = read_document(file)
    assert (article.title, paragraphs_of(article), article.sections) == ("Gull", ["It flies.", "It swims."], ())


def test_word_headings_are_those_of_its_styles_in_any_language(tmp_path: Path):
    file = tmp_path / "a.docx"
    blocks = [("Titel", "Gullhaven"), ("", "A town. It has a quay."), ("berschrift1", "Trade"), ("", "Salt & rope.")]
    file.write_bytes(make_docx([*blocks, ("", "Ship|Captain"), ("", "Gull|Otis")]))
    article = read_document(file)
    assert article.title == "Gullhaven"
    assert article.sections == (("Trade", 2),)
    assert article.sentences[:3] == ("A town.", "It has a quay.", "Salt & rope.")
    assert article.paragraphs[:2] == (0, 2)
    assert "Otis" in article.text
    file.write_bytes(make_docx(blocks[1:], title="The town"))
    assert read_document(file).title == "The town"


def test_a_pdf_loses_its_running_heads_and_keeps_its_paragraphs(tmp_path: Path):
    file = tmp_path / "report.pdf"
    lines = ["The harbour of Gullhaven was built long ago, when the mole had been wash-", "ed away. It froze twice."]
    pages = [
        [
            "Annual report",
            *lines,
            f"Ship number {number} came. It was the only one of that summer, they say.",
            f"{number}",
        ]
        for number in (1, 2, 3)
    ]
    file.write_bytes(make_pdf(pages))
    article = read_document(file)
    assert article.title == "report"
    assert "Annual report" not in article.text
    assert article.text.count("had been washed away.") == 3
    assert article.paragraphs[:2] == (0, 2)


def test_a_folder_or_an_archive_of_documents_becomes_a_world(tmp_path: Path):
    folder = tmp_path / "mine"
    (folder / "deep").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "config.txt").write_text("no article", encoding="utf-8")
    (folder / "a.txt").write_text(WRAPPED, encoding="utf-8")
    (folder / "deep" / "b.md").write_text(MARKDOWN, encoding="utf-8")
    (folder / "deep" / "scan.pdf").write_bytes(make_pdf([[]]))
    (folder / "broken.docx").write_bytes(b"no archive")
    archive = tmp_path / "mine.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(folder.rglob("*")):
            packed.write(path, f"../../{path.relative_to(tmp_path)}")
        packed.writestr("__MACOSX/a.txt", "no article")
    for source in (folder, archive):
        left_out: list[str] = []
        contents = WorldContents(read_articles(source, left_out=left_out), metadata={"left_out": left_out})
        metadata = build_world(tmp_path / "worlds", "mine", contents, replace=True)
        assert metadata["articles"] == 2
        assert [sentence.partition(":")[0] for sentence in left_out] == ["broken.docx", "scan.pdf"]
        assert "text recognition" in left_out[1]
        text = open_world(tmp_path / "worlds", "mine").text
        assert text is not None
        assert len(paragraphs_of(text.article("a"))) == 2
        assert text.article("The harbour").sections == (("Ships", 3),)


def test_links_and_names_of_an_archive_lead_nowhere(tmp_path: Path):
    archive, secret = tmp_path / "x.zip", tmp_path / "secret.txt"
    secret.write_text("The secret sentence.", encoding="utf-8")
    with zipfile.ZipFile(archive, "w") as packed:
        for name in (
            "link.txt",
            "/etc/link.txt",
            "../../link.txt",
            "C:\\link.txt",
            "a\\..\\link.txt",
            "link.txt/link.txt",
        ):
            entry = zipfile.ZipInfo(name)
            entry.create_system, entry.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
            packed.writestr(entry, str(secret))
        packed.writestr("fine.txt", "A fine sentence.")
    articles = list(read_articles(archive))
    assert len(articles) == 7
    assert not [article for article in articles if "secret sentence" in article.text]
    assert {path.name for path in tmp_path.iterdir()} == {"x.zip", "secret.txt"}
    for name in ("..", "a/..", ".", "x" * 300 + ".txt", "a\nb.txt", "a\0b.txt"):
        with zipfile.ZipFile(archive, "w") as packed:
            packed.writestr(zipfile.ZipInfo(name), "A sentence.")
        with contextlib.suppress(UnreadableDocument, MalformedFile):
            assert [article.text for article in read_articles(archive)] == ["A sentence."]


@pytest.mark.long
def test_archives_that_cannot_be_read_are_refused_in_a_sentence(tmp_path: Path):
    archive = tmp_path / "x.zip"
    archive.write_bytes(b"PK nothing")
    with pytest.raises(UnreadableDocument, match="cannot be read as a zip archive"):
        list(read_articles(archive))
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("picture.png", b"x")
    with pytest.raises(MalformedFile, match=r"the archive has no file that ends in .*\.docx"):
        list(read_articles(archive))
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("bomb.txt", b"a" * (FREE_EXPANSION_BYTES + 1))
    with pytest.raises(UnreadableDocument, match="expands to more than 64 MB"):
        list(read_articles(archive))
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("a.txt", "x")
    data = archive.read_bytes()
    start, end = data.index(b"PK\x01\x02"), bytearray(data[-22:])
    entries = data[start:-22] * (MAX_ARCHIVE_FILES + 1)
    end[12:16] = len(entries).to_bytes(4, "little")
    archive.write_bytes(data[:start] + entries + end)
    with pytest.raises(UnreadableDocument, match="it has 200,001 files, more than the bound of 200,000"):
        list(read_articles(archive))
    scan = tmp_path / "scan.pdf"
    scan.write_bytes(make_pdf([[], []]))
    with pytest.raises(UnreadableDocument, match=r"No document could be read: scan\.pdf: it has no text"):
        list(read_articles(scan))
