"""Steps for the tests of pages and widgets."""

from typing import Any
from uuid import uuid4

from showhow.db.models import Step
from showhow.db.types import utc_now


def step_with(data: dict[str, Any] | None, observation: str = "") -> Step:
    """A completed step with this data and observation."""
    return Step(trace_id=uuid4(), position=1, tool="any", data=data, observation=observation, finished_at=utc_now())
