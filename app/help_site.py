"""The documentation that the server shows: the pages of docs/ and the generated reference, with their list."""

from collections.abc import Mapping
from functools import cache

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from showhow.app.documentation import DOCS, HELP_PATH, HelpPage, read_help_page, render_help_page
from showhow.app.reference_pages import reference_pages
from showhow.app.widgets.page_layout import THEME_COOKIE, escape_html, read_asset

FIRST_PAGE = "tutorial.md"
SECTIONS = {"": "", "pages": "Pages", "how-to": "How to", "explanation": "Explanation", "reference": "Reference"}
"""The folders that are listed beside every page, with their headings; pages in others are reached by links."""


@cache
def help_pages() -> Mapping[str, HelpPage]:
    """All pages by their paths."""
    written = (path.relative_to(DOCS).as_posix() for path in sorted(DOCS.rglob("*.md")))
    pages = [read_help_page(path) for path in written]
    pages += [render_help_page(f"reference/{name}.md", text) for name, text in reference_pages().items()]
    return {page.path: page for page in pages}


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
