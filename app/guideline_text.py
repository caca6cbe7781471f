"""The text of guidelines: Markdown with pictures of its own. Those of other hosts become links; nothing loads them."""

from collections.abc import Iterator, Mapping
from html import escape
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

from showhow.db.questions.guideline_pictures import normalize_picture_name


def list_picture_names(text: str) -> list[str]:
    """The names of the pictures that the text has by relative links, in order."""
    targets = (str(token.attrs["src"]) for token in _iterate_images(_PARSER.parse(text)))
    return list(dict.fromkeys(normalize_picture_name(unquote(target)) for target in targets if _is_relative(target)))


def render_guidelines(text: str, pictures: Mapping[str, str]) -> str:
    """The text as HTML; a picture is one of `pictures`, by the path of its link, and any other one is a link."""
    tokens = _PARSER.parse(text)
    for token in tokens:
        token.children = None if token.children is None else [_resolve(child, pictures) for child in token.children]
    return str(_PARSER.renderer.render(tokens, _PARSER.options, {})).strip()


_PARSER = MarkdownIt("commonmark", {"html": False}).enable("table")


def _iterate_images(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield from (child for child in token.children or () if child.type == "image")


def _is_relative(target: str) -> bool:
    return bool(target) and ":" not in target and not target.startswith("/")


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
    name = escape(token.content or unquote(target))
    if _is_relative(target):
        return _as_html(f"<em>(the picture {name} is missing: {escape(unquote(target))})</em>")
    return _as_html(f'<a href="{escape(target)}" target="_blank" rel="noopener noreferrer">{name}</a>')


def _as_html(content: str) -> Token:
    return Token("html_inline", "", 0, content=content)
