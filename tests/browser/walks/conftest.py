"""Fixtures of the walks."""

import os
from pathlib import Path

import pytest

from tests.browser.walks.page import DOCS

DRAW = "SHOWHOW_DRAW_PICTURES"
"""The environment variable with which the walks write their pictures into docs/ (`make screenshots`)."""


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the pictures."""
    return DOCS if os.environ.get(DRAW) else tmp_path_factory.mktemp("pictures")
