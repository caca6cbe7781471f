"""Prompts as they are sent, kept so that a change of them is seen; SHOWHOW_GOLDEN=write writes them anew."""

import os
from pathlib import Path

HERE = Path(__file__).parent


def same_as_golden(name: str, text: str) -> None:
    """The text is the kept one."""
    golden_file = HERE / f"{name}.txt"
    if os.environ.get("SHOWHOW_GOLDEN") == "write":
        golden_file.write_text(text + "\n", encoding="utf-8")
    assert text + "\n" == golden_file.read_text(encoding="utf-8")
