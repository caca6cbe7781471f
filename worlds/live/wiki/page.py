"""Parse a rendered wiki page to plain text: sentences, table rows and sections. Other pages of the web use its reader.

References, navigation boxes and hidden elements are dropped. Each row of a table or infobox becomes one line, with
each value after its header.
"""

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from selectolax.lexbor import LexborHTMLParser, LexborNode

from showhow.guard.worker import WorkLimits, run_bounded
from showhow.worlds.sentences import split_sentences

CellReader = Callable[[LexborNode, str], str]
"""Returns a cell's text in one line, its parts separated by the second argument."""
_SEPARATOR = "; "
PARSE_LIMITS = WorkLimits(seconds=10.0, megabytes=1024)
_MAX_COLUMNS = 100
_BULLETS = "•·–—-"


@dataclass(frozen=True, slots=True)
class _TableCell:
    cell_index: int
    """Number of the cell in the table, which identifies a cell that spans columns or rows."""
    text: str
    is_header: bool


def format_table_rows(table: LexborNode, read: CellReader) -> list[str]:
    """The caption, then each row as `Header: value; Header: value`; without headers the values alone."""
    caption = next((child for child in table.iter() if child.tag == "caption"), None)
    lines = [read(caption, " ")] if caption is not None else []
    rows = _build_grid(table, read)
    heads, rows = _split_headers(rows)
    lines += (_format_row(row, heads) for row in rows)
    return [line for line in lines if line]


def format_infobox_rows(table: LexborNode, read: CellReader) -> list[str]:
    """Each row of an infobox as `Label: value`, a row of a group as `Group, label: value`."""
    lines = []
    group = ""
    for row in _build_grid(table, read):
        texts = list({cell.cell_index: cell.text for cell in row if cell.text}.values())
        heads = [cell for cell in row if cell.is_header]
        if not texts:
            continue
        if len(texts) == 1 and heads:
            # A header over the whole width names the group of the rows below; the first one is the title.
            group = texts[0]
        elif len(texts) > 1:
            label, value = texts[0], _SEPARATOR.join(texts[1:])
            is_bulleted = label[0] in _BULLETS
            label = label.lstrip(_BULLETS).strip()
            lines.append(f"{group}, {label}: {value}" if is_bulleted and group else f"{label}: {value}")
            group = group if is_bulleted else texts[0]
        else:
            lines.append(texts[0])
    return lines


def _build_grid(table: LexborNode, read: CellReader) -> list[list[_TableCell]]:
    """The rows of the table, with every cell at each position that it spans."""
    grid: list[list[_TableCell]] = []
    spanning: dict[int, tuple[_TableCell, int]] = {}
    cell_index = 0
    for tr in _iter_own_rows(table):
        row: list[_TableCell] = []
        nodes = [cell for cell in tr.iter() if cell.tag in {"td", "th"}]
        last = max(spanning, default=-1)
        while nodes or len(row) <= last:
            column = len(row)
            if column in spanning:
                cell, remaining_rows = spanning.pop(column)
                row.append(cell)
                if remaining_rows > 1:
                    spanning[column] = (cell, remaining_rows - 1)
                continue
            if not nodes:
                row.append(_TableCell(-1, "", is_header=False))
                continue
            node = nodes.pop(0)
            is_header = node.tag == "th"
            cell = _TableCell(cell_index, read(node, " " if is_header else _SEPARATOR), is_header)
            cell_index += 1
            rowspan = _parse_span(node, "rowspan")
            for offset in range(min(_parse_span(node, "colspan"), _MAX_COLUMNS)):
                if rowspan > 1:
                    spanning[column + offset] = (cell, rowspan - 1)
                row.append(cell)
        grid.append(row)
    return grid


def _iter_own_rows(table: LexborNode) -> Iterator[LexborNode]:
    """The rows of the table itself, without those of nested tables."""
    for child in table.iter():
        if child.tag == "tr":
            yield child
        elif child.tag in {"thead", "tbody", "tfoot"}:
            yield from (row for row in child.iter() if row.tag == "tr")


def _parse_span(node: LexborNode, name: str) -> int:
    value = (node.attributes.get(name) or "").strip()
    return max(1, int(value)) if value.isdecimal() and len(value) < 5 else 1


def _split_headers(rows: list[list[_TableCell]]) -> tuple[list[str], list[list[_TableCell]]]:
    """The header of each column, from the leading rows that contain headers only, and the remaining rows."""
    count = 0
    while count < len(rows) and rows[count] and all(cell.is_header or not cell.text for cell in rows[count]):
        count += 1
    if count == len(rows):
        return [], rows
    width = max((len(row) for row in rows[:count]), default=0)
    heads = []
    for column in range(width):
        texts = {row[column].cell_index: row[column].text for row in rows[:count] if column < len(row)}
        heads.append(" ".join(text for text in texts.values() if text))
    return heads, rows[count:]


def _format_row(row: list[_TableCell], heads: list[str]) -> str:
    parts: list[str] = []
    seen: set[int] = set()
    for column, cell in enumerate(row):
        if not cell.text or cell.cell_index in seen:
            continue
        seen.add(cell.cell_index)
        head = heads[column] if column < len(heads) else ""
        parts.append(f"{head}: {cell.text}" if head and head != cell.text else cell.text)
    if not heads and len(parts) == 2 and row[0].is_header:
        return f"{parts[0]}: {parts[1]}"
    return _SEPARATOR.join(parts)


_IGNORED_SELECTOR = ", ".join(
    "style script noscript template link meta audio video figure sup.reference ol.references .reflist .gallery .thumb "
    ".mw-editsection .mw-references-wrap .mw-cite-backlink .mw-empty-elt .mw-jump-link .error .noprint .toc #toc "
    ".navbox .vertical-navbox .navbox-styles .sidebar .metadata .ambox .hatnote .portalbox .sistersitebox .catlinks "
    ".authority-control .portal-bar .side-box .shortdescription #coordinates .geo-nondefault "
    ".mw-indicators .visually-hidden .sr-only .mwe-math-fallback-image-inline .mwe-math-fallback-image-display "
    "[hidden] [aria-hidden=true] [role=navigation]".split()
)
_FORMULA_SELECTOR = ".mwe-math-mathml-inline, .mwe-math-mathml-display, .mwe-math-mathml-a11y"
"""MathML, which pages hide behind an image of the formula."""
_TEX_STYLE_PATTERN = re.compile(r"\{\\(?:displaystyle|textstyle)\s*+(.*)\}", re.DOTALL)
_INVISIBLE_CHARACTERS = re.compile("[\u00ad\u200b\u200e\u200f\u2060\ufeff]")
"""Invisible typesetting characters, which are removed."""
HIDDEN_STYLE_PATTERN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_HEADING_TAGS = frozenset({"h2", "h3", "h4", "h5", "h6"})
_INLINE_TAGS = frozenset(
    "a abbr b bdi bdo big cite code data del dfn em font i ins kbd mark math q ruby rb rp rt s samp semantics "
    "annotation small span strike strong sub sup time tt u var wbr".split()
)
_MAX_DEPTH = 150
INFOBOX_HEADING = "Infobox"


@dataclass(frozen=True, slots=True)
class DisambiguationChoice:
    """One entry of a disambiguation page."""

    title: str
    description: str


@dataclass(frozen=True, slots=True)
class WikiPage:
    """The visible content of a page."""

    sentences: tuple[str, ...]
    sections: tuple[tuple[str, int], ...]
    choices: tuple[DisambiguationChoice, ...]
    """The first link of each list item; the choices, if it is a disambiguation page."""
    is_disambiguation: bool
    """Whether the page has a disambiguation box."""


@functools.lru_cache(maxsize=64)
def read_page(html: str, language: str) -> WikiPage:
    """Parse a page in a bounded worker, since anybody may have written it: WorkFailed if it cannot be parsed in time.

    Cached, because a page is often read several times in a row.
    """
    page = run_bounded(parse_page_to_json, html, language, limits=PARSE_LIMITS)
    choices = tuple(DisambiguationChoice(**choice) for choice in page["choices"])
    return WikiPage(tuple(page["sentences"]), tuple(map(tuple, page["sections"])), choices, page["is_disambiguation"])


def parse_page_to_json(html: str, language: str) -> dict[str, Any]:
    """The page as JSON values; called in the worker."""
    return asdict(parse_page(html, language))


def parse_page(html: str, language: str) -> WikiPage:
    """Parse a page rendered by MediaWiki."""
    tree = LexborHTMLParser(html)
    root = tree.css_first(".mw-parser-output") or tree.body
    if root is None:
        return WikiPage((), (), (), is_disambiguation=False)
    skipped = {node.mem_id for node in root.css(_IGNORED_SELECTOR)}
    skipped |= {
        node.mem_id for node in root.css("[style]") if HIDDEN_STYLE_PATTERN.search(node.attributes.get("style") or "")
    }
    reader = PageTextReader(skipped - {node.mem_id for node in root.css(_FORMULA_SELECTOR)}, language)
    reader.read_node(root)
    reader.finish()
    is_disambiguation = tree.css_first("#disambigbox, .dmbox, .disambigbox, #setindexbox") is not None
    return WikiPage(tuple(reader.sentences), reader.nonempty_sections(), tuple(reader.choices), is_disambiguation)


class PageTextReader:
    """Reads the visible text of parsed HTML as sentences, table rows and sections; `skipped` are ids of nodes."""

    heading_tags: ClassVar[frozenset[str]] = frozenset(_HEADING_TAGS)

    def __init__(self, skipped: set[int], language: str) -> None:
        self._skipped = skipped
        self._language = language
        self._text: list[str] = []
        self._boxes: list[str] = []
        self._sections: list[tuple[str, int]] = []
        self.sentences: list[str] = []
        self.paragraphs: list[int] = []
        """For each paragraph and each row of a table, the index of its first sentence."""
        self.choices: list[DisambiguationChoice] = []

    def read_node(self, node: LexborNode, depth: int = 0) -> None:
        """Read a node's content; blocks end sentences, tables become rows."""
        for child in node.iter(include_text=True):
            if child.mem_id in self._skipped:
                continue
            tag = child.tag or ""
            if child.is_text_node or tag == "math":
                self._text.append(_node_text(child))
            elif tag in _INLINE_TAGS:
                self._text.append(self.inline_text(child, depth + 1))
            elif tag == "br":
                self._text.append("\n")
            else:
                self._read_block(child, tag, depth + 1)

    def _read_block(self, node: LexborNode, tag: str, depth: int) -> None:
        self._flush_text()
        if tag in self.heading_tags:
            self._add_heading(self.inline_text(node, depth))
        elif tag == "table":
            self.add_table(node, depth)
        elif tag == "pre" or depth > _MAX_DEPTH:
            self._text.append(node.text())
        else:
            if tag == "li":
                self._add_choice(node, depth)
            self.read_node(node, depth)
        self._flush_text()

    def inline_text(self, node: LexborNode, depth: int, gap: str = " ") -> str:
        """All text inside a node; blocks in it are separated by `gap`."""
        if depth > _MAX_DEPTH:
            return node.text()
        parts = []
        for child in node.iter(include_text=True):
            if child.mem_id in self._skipped:
                continue
            if child.is_text_node or child.tag == "math":
                parts.append(_node_text(child))
            elif child.tag == "br":
                parts.append(gap)
            elif child.tag in _INLINE_TAGS:
                parts.append(self.inline_text(child, depth + 1, gap))
            else:
                parts.append(gap + self.inline_text(child, depth + 1, gap) + gap)
        return "".join(parts)

    def cell_text(self, node: LexborNode, gap: str) -> str:
        """The text of a table cell in one line, its parts separated by `gap`."""
        parts = (" ".join(part.split()) for part in self.inline_text(node, 0, gap).split(gap))
        return gap.join(part for part in parts if part)

    def finish(self) -> None:
        """Add the remaining text and infobox."""
        self._flush_text()
        self._flush_infobox()

    def nonempty_sections(self) -> tuple[tuple[str, int], ...]:
        """The headings with at least one sentence, each with the index of its first one."""
        starts = [*(start for _, start in self._sections), len(self.sentences)]
        return tuple(section for section, end in zip(self._sections, starts[1:], strict=True) if section[1] < end)

    def _flush_text(self) -> None:
        text = "".join(self._text)
        self._text.clear()
        if text.strip():
            lines = "\n".join(" ".join(line.split()) for line in text.split("\n"))
            self.paragraphs.append(len(self.sentences))
            self.sentences += split_sentences(lines, self._language)

    def _add_heading(self, text: str) -> None:
        self._flush_infobox()
        self._sections.append((" ".join(text.split()), len(self.sentences)))

    def _flush_infobox(self) -> None:
        """Add the infobox as a section after the introduction."""
        if self._boxes:
            self._sections.append((INFOBOX_HEADING, len(self.sentences)))
            self.sentences += self._boxes
            self._boxes.clear()

    def add_table(self, node: LexborNode, depth: int) -> None:  # noqa: ARG002 - a reader that walks into tables needs it
        """Add the rows of a table or infobox."""
        names = node.attributes.get("class") or ""
        if "infobox" in names or "sinottico" in names:
            rows = format_infobox_rows(node, self.cell_text)
            if not self._sections:
                self._boxes += rows
                return
        else:
            rows = format_table_rows(node, self.cell_text)
        self.paragraphs += range(len(self.sentences), len(self.sentences) + len(rows))
        self.sentences += rows

    def _add_choice(self, node: LexborNode, depth: int) -> None:
        link = next((a for a in node.css("a[title]") if _is_page_link(a)), None)
        if link is None or (title := link.attributes.get("title")) is None:
            return
        link_text = " ".join(self.inline_text(link, depth).split())
        line = " ".join(self.inline_text(node, depth, "\n").strip().split("\n")[0].split())
        description = line.removeprefix(link_text).lstrip(" ,:;–—-").strip()
        self.choices.append(DisambiguationChoice(title, description))


def _node_text(node: LexborNode) -> str:
    """The characters of a text node, where the end of a line is a space, or the TeX source of a formula."""
    if node.is_text_node:
        return _INVISIBLE_CHARACTERS.sub("", node.text_content or "").replace("\n", " ")
    source = node.attributes.get("alttext") or node.text()
    styled = _TEX_STYLE_PATTERN.fullmatch(source.strip())
    return styled[1].strip() if styled else source


def _is_page_link(link: LexborNode) -> bool:
    names = (link.attributes.get("class") or "").split()
    return not {"new", "external", "extiw", "image"} & set(names)
