"""A choice, drawn: every candidate by what it does and how near its question is, and how like the best ones are."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fewshot_library.dpp import Floats
from fewshot_library.library import Chosen, OpenLibrary
from fewshot_library.map import SequenceMap

MOST_POINTS = 400
"""Candidates that are drawn as points, the most relevant."""
BEST = 24
"""Candidates of the heat map."""
PICKED, OTHER = "#b3261e", "#8a8f98"


def candidates(chosen: Chosen, count: int) -> list[int]:
    """The picks in their order and, up to `count` together, the most relevant others that may be chosen."""
    picks = [pick.item for pick in chosen.selection.picks]
    out = {*picks, *chosen.selection.wish.left_out}
    order = np.argsort(-chosen.selection.cosines, kind="stable")[: count + len(out)].tolist()
    return [*picks, *[item for item in order if item not in out]][: max(count, len(picks))]


def points(chosen: Chosen, library: OpenLibrary, drawn: SequenceMap) -> list[dict[str, Any]]:
    """What is drawn of each candidate; `pick` numbers the picks from 1 and is 0 for the others."""
    picks = len(chosen.selection.picks)
    groups = library.pool.actions.groups.of
    return [
        {
            "place": round(float(drawn.places[groups[item], 0]), 4),
            "relevance": round(float(chosen.selection.cosines[item]), 4),
            "question": library.demonstrations[item].question,
            "actions": " > ".join(library.demonstrations[item].tools),
            "pick": number if number <= picks else 0,
        }
        for number, item in enumerate(candidates(chosen, MOST_POINTS), start=1)
    ]


def scatter(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Relevance against the place on the map, the picks joined in their order."""
    picks = [row for row in rows if row["pick"]]
    position = {
        "x": {
            "field": "place",
            "type": "quantitative",
            "title": "place on the map of action sequences (near: the same actions)",
            "scale": {"zero": False, "padding": 24},
        },
        "y": {
            "field": "relevance",
            "type": "quantitative",
            "title": "relevance (cosine of the questions)",
            "scale": {"zero": False, "padding": 18},
        },
    }
    tooltip = [{"field": name} for name in ("question", "relevance", "actions")]
    others = [row for row in rows if not row["pick"]]
    return {
        "height": 380,
        "encoding": position,
        "layer": [
            {
                "data": {"values": others},
                "mark": {"type": "circle", "color": OTHER, "size": 70, "opacity": 0.6},
                "encoding": {"tooltip": tooltip},
            },
            {
                "data": {"values": picks},
                "mark": {"type": "line", "color": PICKED, "strokeWidth": 1.5, "strokeDash": [5, 3]},
                "encoding": {"order": {"field": "pick", "type": "quantitative"}},
            },
            {
                "data": {"values": picks},
                "mark": {"type": "circle", "color": PICKED, "size": 330, "opacity": 1},
                "encoding": {"tooltip": tooltip},
            },
            {
                "data": {"values": picks},
                "mark": {"type": "text", "color": "white", "fontWeight": 700, "fontSize": 12},
                "encoding": {"text": {"field": "pick", "type": "quantitative"}, "tooltip": tooltip},
            },
        ],
    }


def heat(values: Floats, names: Sequence[str], title: str, scale: str) -> dict[str, Any]:
    """The values as a heat map, the items in their order along both sides; `scale` is linear or sqrt."""
    numbers = list(range(1, len(names) + 1))
    rows = [
        {"row": one + 1, "column": other + 1, "value": round(float(values[one, other]), 4), "a": a, "b": b}
        for one, a in enumerate(names)
        for other, b in enumerate(names)
    ]

    def side(field: str) -> dict[str, Any]:
        axis = {"labelAngle": 0, "labelOverlap": True}
        return {"field": field, "type": "ordinal", "sort": numbers, "title": "candidate", "axis": axis}

    return {
        "data": {"values": rows},
        "mark": {"type": "rect"},
        "height": 380,
        "encoding": {
            "x": side("column"),
            "y": side("row"),
            "color": {
                "field": "value",
                "type": "quantitative",
                "title": title,
                "scale": {"type": scale, "scheme": "viridis", "domain": [0, 1]},
                "legend": {"orient": "right", "gradientLength": 300},
            },
            "tooltip": [{"field": "a", "title": "one"}, {"field": "b", "title": "other"}, {"field": "value"}],
        },
    }
