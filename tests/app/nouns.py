"""Nouns for the tests of the pages."""

from typing import Any
from uuid import uuid4

from db.models import Step, utc_now


def step_with(data: dict[str, Any] | None, observation: str = "") -> Step:
    """A completed step that observed this."""
    return Step(trace_id=uuid4(), position=1, tool="any", data=data, observation=observation, finished_at=utc_now())
