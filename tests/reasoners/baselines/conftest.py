"""The fleet, which all tests of the baselines ask about."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.reasoners.fleet import articles, fleet
from tools.tool import ToolContext

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="session")
def ships(tmp_path_factory: pytest.TempPathFactory) -> ToolContext:
    """A world with articles only."""
    return fleet(tmp_path_factory.mktemp("home") / "worlds", "fleet", articles())


@pytest.fixture
def matches_golden() -> Callable[[str, str], None]:
    """Compares a text with a golden file."""

    def compare(name: str, text: str) -> None:
        assert text == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8").rstrip("\n")

    return compare
