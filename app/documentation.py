"""The documentation inside the app: the pages of docs/ and the generated reference, as HTML without any other host."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from posixpath import join, normpath

from markdown_it import MarkdownIt
from markdown_it.token import Token
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from app.reference_pages import reference_pages
from app.widgets.page_layout import THEME_COOKIE, escape_html, read_asset

DOCS = Path(__file__).resolve().parents[1] / "docs"
HELP_PATH = "help"
"""Where the server has the documentation, relative to every page of the app."""
FIRST_PAGE = "tutorial.md"
SECTIONS = {"": "", "pages": "Pages", "how-to": "How to", "explanation": "Explanation", "reference": "Reference"}
"""The folders that are listed beside every page, with their headings; pages in others are reached by links."""


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
def help_pages() -> Mapping[str, HelpPage]:
    """All pages by their paths."""
    written = (path.relative_to(DOCS).as_posix() for path in sorted(DOCS.rglob("*.md")))
    pages = [read_help_page(path) for path in written]
    pages += [_render(f"reference/{name}.md", text) for name, text in reference_pages().items()]
    return {page.path: page for page in pages}


@cache
def read_help_page(path: str) -> HelpPage:
    """One of the pages that are written, not generated."""
    return _render(path, (DOCS / path).read_text(encoding="utf-8"))


def _render(path: str, text: str) -> HelpPage:
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


async def help_endpoint(request: Request) -> Response:
    """Respond with a page of the documentation, or with one of its pictures."""
    path = str(request.path_params.get("path", ""))
    if not path:
        return RedirectResponse(f"{request.scope.get('root_path', '')}/{HELP_PATH}/{FIRST_PAGE}")
    page = help_pages().get(path)
    if page is not None:
        return HTMLResponse(_document(page, request.cookies.get(THEME_COOKIE, "")))
    pictures = {picture.relative_to(DOCS).as_posix(): picture for picture in DOCS.rglob("*.png")}
    if path in pictures:
        return FileResponse(pictures[path])
    return HTMLResponse(_document(_MISSING, ""), status_code=404)


_MISSING = HelpPage("", "No such page", "<h1>No such page</h1><p>The list has all pages.</p>", frozenset(), ())


def _document(page: HelpPage, theme: str) -> str:
    scheme = f' data-scheme="{theme}"' if theme in ("light", "dark") else ""
    base = "../" * (page.path.count("/") + 1) or "./"
    # Links stay in this tab: it is the tab of the documentation.
    body = page.html.replace(' target="_blank"', "")
    return (
        f'<!DOCTYPE html><html lang="en"{scheme}><head><meta charset="utf-8"><base href="{base}">'
        f'<meta name="viewport" content="width=device-width"><title>{escape_html(page.title)} · Showhow</title>'
        f"<style>{read_asset('help.css')}</style></head>"
        f'<body><nav aria-label="Documentation">{_contents(page)}</nav><main>{body}</main></body></html>'
    )


def _contents(current: HelpPage) -> str:
    parts = []
    for folder, heading in SECTIONS.items():
        pages = [page for page in help_pages().values() if page.path.rpartition("/")[0] == folder]
        links = (
            f'<li><a href="{HELP_PATH}/{page.path}"{_marked(page, current)}>{escape_html(page.title)}</a></li>'
            for page in sorted(pages, key=lambda page: (page.path != FIRST_PAGE, page.title))
        )
        parts.append(f"{f'<h2>{heading}</h2>' if heading else ''}<ul>{''.join(links)}</ul>")
    return "".join(parts)


def _marked(page: HelpPage, current: HelpPage) -> str:
    return ' aria-current="page"' if page.path == current.path else ""
