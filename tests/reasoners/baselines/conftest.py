"""The golden files of the baselines."""

from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def matches_golden() -> Callable[[str, str], None]:
    """Compares a text with a golden file."""

    def compare(name: str, text: str) -> None:
        assert text == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8").rstrip("\n")

    return compare
