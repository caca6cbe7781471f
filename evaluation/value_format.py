"""Formats values as text: seconds, tokens and money for display, and cells of CSV files.

An unknown value is shown as "unknown". A spreadsheet program runs a cell that begins like a formula.
"""

import re
from typing import Any

# Full-width signs are read like the plain ones, and marks without width are passed over.
_BEGINNING = r"[\ufeff\u200b\u200e\u200f\u2060]*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
_FORMULA = re.compile(rf"'*{_BEGINNING}")
_NEUTRALIZED = re.compile(rf"'+{_BEGINNING}")


def format_seconds(seconds: float) -> str:
    """Format seconds; below 0.01 s as milliseconds."""
    if 0 < seconds < 0.01:
        return f"{seconds * 1000:.1f} ms"
    return f"{seconds:.2f} s" if seconds < 100 else f"{seconds:,.0f} s"


def format_tokens(input_count: int | None, output_count: int | None) -> str:
    """Format the sum of input and output tokens."""
    return (
        "unknown tokens"
        if input_count is None or output_count is None
        else format_count(input_count + output_count, "token")
    )


def format_money(cost: float | None) -> str:
    """Format US dollars with a suitable number of digits."""
    if cost is None:
        return "cost unknown"
    if 0 < cost < 0.0001:
        return "under $0.0001"
    return f"${cost:,.4f}" if cost < 1 else f"${cost:,.2f}"


def format_count(count: int, noun: str) -> str:
    """Format a count with its noun: 1 token, 2,000 tokens."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def neutralize_cell(value: Any) -> Any:
    """Put an apostrophe before text that begins like a formula; other values are returned unchanged."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def restore_cell(text: str) -> str:
    """Return the text as it was before `neutralize_cell`."""
    return text[1:] if _NEUTRALIZED.match(text) else text
