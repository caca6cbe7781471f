"""Text from people and worlds, made safe for where Streamlit would read a mark-up in it."""

import html

MARKS = frozenset(r"\`*_{}[]()#+-.!|<>:$~")


def plain(text: str) -> str:
    """The text on one line, as Markdown that shows it letter by letter."""
    return "".join(f"\\{c}" if c in MARKS else c for c in " ".join(text.split()))


def plain_html(text: str) -> str:
    """The text as HTML that shows it letter by letter."""
    return html.escape(text)
