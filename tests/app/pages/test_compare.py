"""The Compare page's parts without a browser: the first step that differs, and the chart of scores over costs."""

from typing import Any
from uuid import uuid4

import pytest

from showhow.app.pages.compare.questions import find_first_different_step
from showhow.app.widgets.table import cost_chart_spec
from showhow.db.models import SPAN_SKILL, Step


def steps(*contents: dict[str, Any]) -> list[Step]:
    trace = uuid4()
    return [Step(trace_id=trace, position=place, **content) for place, content in enumerate(contents, 1)]


SEARCH = {"tool": "wikisearch", "arguments": {"query": "Ada"}, "observation": "Ada Lund"}


@pytest.mark.parametrize(
    ("first", "second", "place"),
    [
        ([SEARCH], [SEARCH], None),
        ([], [], None),
        ([SEARCH], [SEARCH | {"thought": "other words"}], None),
        ([{"thought": "a"}], [{"thought": "b"}], 0),
        ([SEARCH, SEARCH], [SEARCH, SEARCH | {"observation": "Bo"}], 1),
        ([SEARCH, SEARCH], [SEARCH, SEARCH | {"observation": None, "error": "late"}], 1),
        ([SEARCH], [SEARCH | {"arguments": {"query": "Bo"}}], 0),
        ([SEARCH], [SEARCH, SEARCH], 1),
        ([SEARCH], [], 0),
        # What a span ends with follows from its parts, so that the part which differs is shown.
        (
            [{"skill": SPAN_SKILL, "thought": "q", "observation": "Ada"}, SEARCH],
            [{"skill": SPAN_SKILL, "thought": "q", "observation": "Bo"}, SEARCH | {"observation": "Bo"}],
            1,
        ),
    ],
)
def test_the_first_step_that_differs_is_found(
    first: list[dict[str, Any]], second: list[dict[str, Any]], place: int | None
):
    assert find_first_different_step(steps(*first), steps(*second)) == place
    assert find_first_different_step(steps(*second), steps(*first)) == place


@pytest.mark.parametrize(
    ("costs", "scale"), [([0.01, 0.1], "log"), ([0.01, 0.05], None), ([0.0, 1.0], None), ([0.001, 3.0, 0.2], "log")]
)
def test_the_axis_of_costs_is_logarithmic_where_they_span_a_decade(costs: list[float], scale: str | None):
    points = [{"id": str(cost), "run": "r", "score": 0.5, "cost": cost} for cost in costs]
    spec = cost_chart_spec(points, points[:1], ["r"], "Cost", "F1")
    assert {layer["encoding"]["x"]["scale"].get("type") for layer in spec["layer"]} == {scale}
