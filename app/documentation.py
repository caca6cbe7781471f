"""The pages of the documentation as HTML without any other host."""

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from posixpath import join, normpath

from markdown_it import MarkdownIt
from markdown_it.token import Token

DOCS = Path(__file__).resolve().parents[1] / "docs"
HELP_PATH = "help"
"""Where the server has the documentation, relative to every page of the app."""


@dataclass(frozen=True, slots=True)
class HelpPage:
    """One page: its path below docs/, its title, its HTML, and the ids of its headings."""

    path: str
    title: str
    html: str
    anchors: frozenset[str]
    links: tuple[str, ...]
    """Its links to other pages and pictures, relative to docs/, with their anchors."""


def _slug(text: str) -> str:
    """The id of a heading, as MkDocs makes it."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower())


@cache
def read_help_page(path: str) -> HelpPage:
    """One of the pages that are written, not generated."""
    return render_help_page(path, (DOCS / path).read_text(encoding="utf-8"))


def render_help_page(path: str, text: str) -> HelpPage:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    # Comments are for the tests, which do what the page says; without HTML the parser would show them.
    shown, *others = text.split("<!--")
    tokens = parser.parse(shown + "".join(other.partition("-->")[2] for other in others))
    headings: list[str] = []
    links: list[str] = []
    for token, following in pairwise(tokens):
        if token.type == "heading_open":
            headings.append("".join(child.content for child in following.children or ()))
            token.attrSet("id", _slug(headings[-1]))
        for child in token.children or ():
            _resolve(child, path, links)
    html = str(parser.renderer.render(tokens, parser.options, {}))
    title = headings[0] if headings else path
    return HelpPage(path, title, html, frozenset(map(_slug, headings)), tuple(links))


def _resolve(token: Token, path: str, links: list[str]) -> None:
    """Make a link or a picture relative to the pages of the app; note those within the documentation."""
    name = {"link_open": "href", "image": "src"}.get(token.type)
    if name is None:
        return
    target = str(token.attrs[name])
    if re.match(r"\w+:", target):
        token.attrSet("target", "_blank")
        return
    place, _, anchor = target.partition("#")
    resolved = normpath(join(path, "..", place)) if place else path
    links.append(f"{resolved}#{anchor}" if anchor else resolved)
    token.attrSet(name, f"{HELP_PATH}/{links[-1]}")
    if token.type == "image":
        token.attrSet("loading", "lazy")
    elif not target.startswith("#"):
        token.attrSet("target", "_blank")
