"""The guidelines of a project: Markdown with its own pictures; those of other hosts are links, and nothing loads them."""

from collections.abc import Mapping
from urllib.parse import unquote

import streamlit as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from app.widgets.page_layout import escape_html
from db.database import Database
from db.guideline_pictures import load_pictures, normalize_picture_name
from db.models import Project


def show_guidelines(database: Database, project: Project, text: str | None = None) -> None:
    """Draw the guidelines of the project, or a text that may become them."""
    with database.read() as session:
        pictures = load_pictures(session, project.id)
    written = project.guidelines if text is None else text
    with st.container(key="guidelines"):
        st.html(render_guidelines(written, pictures) or "This project has no guidelines.")


def render_guidelines(text: str, pictures: Mapping[str, str]) -> str:
    """The text as HTML; a picture is one of `pictures`, by the path of its link, and any other one is a link."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(text)
    for token in tokens:
        token.children = None if token.children is None else [_resolve(child, pictures) for child in token.children]
    return str(parser.renderer.render(tokens, parser.options, {})).strip()


def _resolve(token: Token, pictures: Mapping[str, str]) -> Token:
    if token.type == "link_open":
        token.attrSet("target", "_blank")
        token.attrSet("rel", "noopener noreferrer")
    if token.type != "image":
        return token
    target = str(token.attrs["src"])
    own = pictures.get(normalize_picture_name(unquote(target)))
    if own is not None:
        token.attrSet("src", own)
        return token
    name = escape_html(token.content or target)
    if ":" not in target and not target.startswith("//"):
        return _as_html(f"<em>(the picture {name} is missing: {escape_html(unquote(target))})</em>")
    return _as_html(f'<a href="{escape_html(target)}" target="_blank" rel="noopener noreferrer">{name}</a>')


def _as_html(content: str) -> Token:
    return Token("html_inline", "", 0, content=content)
