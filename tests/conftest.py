"""What the tests of every room may ask for."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

# Continuous integration draws the same examples each time; on a developer's machine new ones are looked for.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "explore")

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real questions, texts and graphs that lies beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip(f"no real test data at {SHARED}")
    return SHARED
