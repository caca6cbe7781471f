"""Text from people and worlds, made safe for where Streamlit would read a mark-up in it."""

import html

MARKDOWN_CHARACTERS = frozenset(r"\`*_{}[]()#+-.!|<>:$~")


def escape_markdown(text: str) -> str:
    """The text on one line, as Markdown that shows it letter by letter."""
    return "".join(f"\\{c}" if c in MARKDOWN_CHARACTERS else c for c in " ".join(text.split()))


def escape_html(text: str) -> str:
    """The text as HTML that shows it letter by letter."""
    return html.escape(text)
