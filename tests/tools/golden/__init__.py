"""Prompts as they are sent, kept so that a change of them is seen; SHOWHOW_GOLDEN=write writes them anew."""

import os
from pathlib import Path

HERE = Path(__file__).parent


def same_as_golden(name: str, text: str) -> None:
    """The text is the kept one."""
    kept = HERE / f"{name}.txt"
    if os.environ.get("SHOWHOW_GOLDEN") == "write":
        kept.write_text(text + "\n", encoding="utf-8")
    assert text + "\n" == kept.read_text(encoding="utf-8")
