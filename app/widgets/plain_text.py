"""Escapes text from people and worlds wherever Streamlit would read markup in it."""

import html

MARKDOWN_CHARACTERS = frozenset(r"\`*_{}[]()#+-.!|<>:$~")


def escape_markdown(text: str) -> str:
    """The text on one line, escaped for Markdown."""
    return "".join(f"\\{c}" if c in MARKDOWN_CHARACTERS else c for c in " ".join(text.split()))


def escape_html(text: str) -> str:
    """The text escaped for HTML."""
    return html.escape(text)
