"""A rendered wiki page as plain text: sentences, rows of tables, sections; notes, boxes and hidden parts left out."""

import functools
import re
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser, LexborNode

from worlds.importers.jsonl import split
from worlds.live.wiki_tables import infobox_rows, table_rows

_LEFT_OUT = ", ".join(
    "style script noscript template link meta audio video figure sup.reference ol.references .reflist .gallery .thumb "
    ".mw-editsection .mw-references-wrap .mw-cite-backlink .mw-empty-elt .mw-jump-link .error .noprint .toc #toc "
    ".navbox .vertical-navbox .navbox-styles .sidebar .metadata .ambox .hatnote .portalbox .sistersitebox .catlinks "
    ".authority-control .portal-bar .side-box .shortdescription #coordinates .geo-nondefault "
    ".mw-indicators .visually-hidden .sr-only .mwe-math-fallback-image-inline .mwe-math-fallback-image-display "
    "[hidden] [aria-hidden=true] [role=navigation]".split()
)
_FORMULA = ".mwe-math-mathml-inline, .mwe-math-mathml-display, .mwe-math-mathml-a11y"
"""Hidden from those who see, who are shown a picture of it."""
_STYLED = re.compile(r"\{\\(?:displaystyle|textstyle)\s*(.*)\}", re.DOTALL)
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u2060\ufeff]")
"""Marks for typesetting, which nobody reads, types or quotes."""
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_HEADINGS = frozenset({"h2", "h3", "h4", "h5", "h6"})
_INLINE = frozenset(
    "a abbr b bdi bdo big cite code data del dfn em font i ins kbd mark math q ruby rb rp rt s samp semantics "
    "annotation small span strike strong sub sup time tt u var wbr".split()
)
_DEEPEST = 150
INFOBOX = "Infobox"


@dataclass(frozen=True, slots=True)
class Choice:
    """One line of a page that lists what a name may mean."""

    title: str
    description: str


@dataclass(frozen=True, slots=True)
class WikiPage:
    """What a reader sees of a page."""

    sentences: tuple[str, ...]
    sections: tuple[tuple[str, int], ...]
    choices: tuple[Choice, ...]
    """The first link of each point of a list, of use on a page that only lists what else is called so."""
    lists_names: bool
    """Whether the page itself says that this is all it does."""


@functools.lru_cache(maxsize=64)
def read_page(html: str, language: str) -> WikiPage:
    """The page that MediaWiki rendered; remembered, because a page is mostly read several times in a row."""
    tree = LexborHTMLParser(html)
    root = tree.css_first(".mw-parser-output") or tree.body
    if root is None:
        return WikiPage((), (), (), lists_names=False)
    skipped = {node.mem_id for node in root.css(_LEFT_OUT)}
    skipped |= {node.mem_id for node in root.css("[style]") if _HIDDEN.search(node.attributes.get("style") or "")}
    reader = _Reader(skipped - {node.mem_id for node in root.css(_FORMULA)}, language)
    reader.read(root)
    reader.end()
    lists_names = tree.css_first("#disambigbox, .dmbox, .disambigbox, #setindexbox") is not None
    return WikiPage(tuple(reader.sentences), reader.kept_sections(), tuple(reader.choices), lists_names=lists_names)


class _Reader:
    def __init__(self, skipped: set[int], language: str) -> None:
        self._skipped = skipped
        self._language = language
        self._text: list[str] = []
        self._boxes: list[str] = []
        self._sections: list[tuple[str, int]] = []
        self.sentences: list[str] = []
        self.choices: list[Choice] = []

    def read(self, node: LexborNode, depth: int = 0) -> None:
        """Read what is inside a node; blocks end sentences, tables become rows."""
        for child in node.iter(include_text=True):
            if child.mem_id in self._skipped:
                continue
            tag = child.tag or ""
            if child.is_text_node or tag == "math":
                self._text.append(_said(child))
            elif tag in _INLINE:
                self._text.append(self.inline(child, depth + 1))
            elif tag == "br":
                self._text.append("\n")
            else:
                self._block(child, tag, depth + 1)

    def _block(self, node: LexborNode, tag: str, depth: int) -> None:
        self._flush()
        if tag in _HEADINGS:
            self._heading(self.inline(node, depth))
        elif tag == "table":
            self._table(node)
        elif depth > _DEEPEST:
            self._text.append(node.text())
        else:
            if tag == "li":
                self._choice(node, depth)
            self.read(node, depth)
        self._flush()

    def inline(self, node: LexborNode, depth: int, gap: str = " ") -> str:
        """All text inside a node; blocks in it are set apart by `gap`."""
        if depth > _DEEPEST:
            return node.text()
        parts = []
        for child in node.iter(include_text=True):
            if child.mem_id in self._skipped:
                continue
            if child.is_text_node or child.tag == "math":
                parts.append(_said(child))
            elif child.tag == "br":
                parts.append(gap)
            elif child.tag in _INLINE:
                parts.append(self.inline(child, depth + 1, gap))
            else:
                parts.append(gap + self.inline(child, depth + 1, gap) + gap)
        return "".join(parts)

    def cell(self, node: LexborNode, gap: str) -> str:
        """The text of a table's cell in one line, its parts set apart."""
        parts = (" ".join(part.split()) for part in self.inline(node, 0, gap).split(gap))
        return gap.join(part for part in parts if part)

    def end(self) -> None:
        """Finish the last sentence."""
        self._flush()
        self._end_introduction()

    def kept_sections(self) -> tuple[tuple[str, int], ...]:
        """The headings that have something under them."""
        starts = [*(place for _, place in self._sections), len(self.sentences)]
        return tuple(section for section, end in zip(self._sections, starts[1:], strict=True) if section[1] < end)

    def _flush(self) -> None:
        text = "".join(self._text)
        self._text.clear()
        if text.strip():
            lines = "\n".join(" ".join(line.split()) for line in text.split("\n"))
            self.sentences += split(lines, self._language)

    def _heading(self, text: str) -> None:
        self._end_introduction()
        self._sections.append((" ".join(text.split()), len(self.sentences)))

    def _end_introduction(self) -> None:
        """What stands in the infobox comes after the introduction, as a section of its own."""
        if self._boxes:
            self._sections.append((INFOBOX, len(self.sentences)))
            self.sentences += self._boxes
            self._boxes.clear()

    def _table(self, node: LexborNode) -> None:
        names = node.attributes.get("class") or ""
        if "infobox" in names or "sinottico" in names:
            rows = infobox_rows(node, self.cell)
            if not self._sections:
                self._boxes += rows
                return
        else:
            rows = table_rows(node, self.cell)
        self.sentences += rows

    def _choice(self, node: LexborNode, depth: int) -> None:
        link = next((a for a in node.css("a[title]") if _leads_to_a_page(a)), None)
        if link is None or (outer := link.attributes.get("title")) is None:
            return
        shown = " ".join(self.inline(link, depth).split())
        line = " ".join(self.inline(node, depth, "\n").strip().split("\n")[0].split())
        told = line.removeprefix(shown).lstrip(" ,:;–—-").strip()
        self.choices.append(Choice(outer, told))


def _said(node: LexborNode) -> str:
    """The words of a text, or a formula as its author wrote it."""
    if node.is_text_node:
        return _INVISIBLE.sub("", node.text_content or "")
    written = node.attributes.get("alttext") or node.text()
    styled = _STYLED.fullmatch(written.strip())
    return styled[1].strip() if styled else written


def _leads_to_a_page(link: LexborNode) -> bool:
    names = (link.attributes.get("class") or "").split()
    return not {"new", "external", "extiw", "image"} & set(names)
