"""Plain text on pages: escaped where Streamlit would interpret markup, and messages as sentences."""

import html

MARKDOWN_CHARACTERS = frozenset(r"\`*_{}[]()#+-.!|<>:$~")


def escape_markdown(text: str) -> str:
    """Escape the text for Markdown, on one line."""
    return "".join(f"\\{c}" if c in MARKDOWN_CHARACTERS else c for c in " ".join(text.split()))


def disarm_images(markdown: str) -> str:
    """Turn images of a Markdown text into links, since a browser would load them from the hosts that they name."""
    return markdown.replace("![", "[")


def format_sentence(message: str) -> str:
    """Format an error message as a sentence for Markdown: escaped, with a capital letter and a full stop."""
    text = message.strip()
    if not text:
        return ""
    return escape_markdown(f"{text[0].upper()}{text[1:]}{'' if text[-1] in '.!?' else '.'}")


def escape_html(text: str) -> str:
    """Escape the text for HTML."""
    return html.escape(text)
