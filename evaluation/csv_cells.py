"""Text in cells of CSV files: a spreadsheet program runs a cell that begins like a formula."""

import re
from typing import Any

# Full-width signs are read like the plain ones, and marks without width are passed over.
_BEGINNING = r"[\ufeff\u200b\u200e\u200f\u2060]*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
_FORMULA = re.compile(rf"'*{_BEGINNING}")
_NEUTRALIZED = re.compile(rf"'+{_BEGINNING}")


def neutralize_cell(value: Any) -> Any:
    """Put an apostrophe before text that begins like a formula; other values are returned unchanged."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def restore_cell(text: str) -> str:
    """Return the text as it was before `neutralize_cell`."""
    return text[1:] if _NEUTRALIZED.match(text) else text
