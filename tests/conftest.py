"""What the tests of every room may ask for."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real questions, texts and graphs that lies beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip(f"no real test data at {SHARED}")
    return SHARED
