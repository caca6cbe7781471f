"""Golden files of prompts as they are sent; SHOWHOW_GOLDEN=write rewrites them."""

import os
from pathlib import Path

HERE = Path(__file__).parent


def same_as_golden(name: str, text: str) -> None:
    """Assert that the text equals the golden file."""
    golden_file = HERE / f"{name}.txt"
    if os.environ.get("SHOWHOW_GOLDEN") == "write":
        golden_file.write_text(text + "\n", encoding="utf-8")
    assert text + "\n" == golden_file.read_text(encoding="utf-8")
