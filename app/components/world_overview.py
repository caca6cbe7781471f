"""What a world is: its sizes, how it was made, how its facts are spread, what its questions are like."""

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import streamlit as st

from app.components.chart import STEP, show_bars
from app.components.live_world import show_live
from app.components.places import go_to_view
from app.components.plain import plain
from app.components.selected_world import SelectedWorld
from app.components.table import Entry, show_table
from app.components.world_list import in_bytes
from worlds.generator.blocks import TOLD, UNIVERSE
from worlds.questions.question_file import Head
from worlds.universe.spread import spread

SIZES = ("people", "articles", "pages", "triples", "entities", "relations", "questions")
COLOURS = {
    "text": "#1f5fbf",
    "graph": "#b26a00",
    "web": "#2e7d4f",
    "text + graph": "#7a4fa3",
    "text + web": "#1b8a9e",
    "graph + web": "#8a7d1b",
    "text + graph + web": "#6b6f76",
}
MANY = (5, 10, 20, 50, 100, 500, 1000)
"""Where the bars of large numbers end."""
MOST_BARS = 12
MOST_SHORTFALLS = 100


def show_overview(world: SelectedWorld) -> None:
    """Draw all of it, or say in one sentence what this world does not have."""
    if world.live:
        show_live(world)
        return
    sizes = {name: count for name in SIZES if isinstance(count := world.about.get(name), int) and count}
    with st.container(horizontal=True, key="sizes"):
        for name, count in sizes.items():
            st.metric(name, f"{count:,}", width="content")
        st.metric("on disk", in_bytes(world.bytes()), width="content")
    _show_origin(world, sizes)
    _show_split(world)
    _show_charts(world)


def _show_origin(world: SelectedWorld, sizes: dict[str, int]) -> None:
    told = [(key, _said(value)) for key, value in world.about.items() if key not in (*sizes, "name", "shortfalls")]
    with st.expander("How it was made"):
        rows = [[Entry(key.replace("_", " ")), Entry(value)] for key, value in told]
        show_table(("what", "value"), rows, key="origin", label="How the world was made")
        st.caption("The same seed, options and version make the same world again, with the same hash.")


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (", ".join(map(str, value)) or "none") if isinstance(value, list) else str(value)


@lru_cache(maxsize=8)
def _spread(folder: Path, _stamp: str) -> dict[str, dict[str, int]]:
    return spread(folder / UNIVERSE, folder / TOLD)


def _show_split(world: SelectedWorld) -> None:
    st.subheader("Which source tells what", anchor=False)
    if not (world.folder / UNIVERSE).is_file() or not (world.folder / TOLD).is_file():
        st.caption(
            "Only of a generated world is it known which source tells which fact; this world has no such record."
        )
        return
    found = _spread(world.folder, world.stamp)
    columns = [sources for sources in COLOURS if any(sources in counts for counts in found.values())]
    with st.container(horizontal=True, gap="medium"):
        st.vega_lite_chart(_split_chart(found, columns), width=460)
        rows = [
            [Entry(fact), *(Entry(f"{counts.get(sources, 0):,}", number=True) for sources in columns)]
            for fact, counts in found.items()
        ]
        with st.container(width=440):
            show_table(("fact", *columns), rows, key="split", label="Facts by the sources that tell them")
    st.caption("Facts of each kind, by the sources that tell them. Names and genders are told everywhere.")


def _split_chart(found: dict[str, dict[str, int]], columns: list[str]) -> dict[str, Any]:
    rows = [
        {"fact": fact, "told by": sources, "facts": counts[sources], "order": columns.index(sources)}
        for fact, counts in found.items()
        for sources in columns
        if sources in counts
    ]
    return {
        "data": {"values": rows},
        "mark": "bar",
        "height": {"step": STEP},
        "encoding": {
            "y": {
                "field": "fact",
                "type": "nominal",
                "sort": list(found),
                "title": None,
                "axis": {"labelOverlap": False},
            },
            "x": {"field": "facts", "type": "quantitative", "title": "facts"},
            "color": {
                "field": "told by",
                "type": "nominal",
                "scale": {"domain": columns, "range": [COLOURS[sources] for sources in columns]},
                "legend": {"orient": "bottom", "columns": 4},
            },
            "order": {"field": "order", "type": "quantitative"},
            "tooltip": [{"field": name} for name in ("fact", "told by", "facts")],
        },
    }


def _show_charts(world: SelectedWorld) -> None:
    st.subheader("Its questions", anchor=False)
    with st.spinner("Reading the questions …"):
        questions = world.questions()
    if questions is None or not questions.heads:
        st.caption(
            "This world has no questions of its own: a generated one has. `showhow questions import` brings those of "
            "a file into a project."
        )
        return
    heads = questions.heads
    st.button(f"See the {len(heads):,} questions", key="see_questions", on_click=go_to_view, args=("questions",))
    with st.container(horizontal=True, gap="medium"):
        show_bars("Difficulty", "difficulty", counted(_numbers(h.difficulty for h in heads)), key="difficulty")
        show_bars("Answers per question", "answers", counted(h.answers for h in heads), key="answers")
        show_bars("Hops", "hops", counted(_numbers(h.hops for h in heads)), key="hops")
        show_bars("Sources that a question needs", "needs", _needs(heads), key="needs", wide=True)
    kinds = Counter(head.kind for head in heads)
    st.caption("Kinds: " + plain(", ".join(f"{kind} ({count:,})" for kind, count in kinds.most_common())))
    _show_shortfalls(world.about.get("shortfalls") or [])


def _show_shortfalls(shortfalls: list[str]) -> None:
    if not shortfalls:
        return
    with st.expander(f"{len(shortfalls):,} templates gave fewer questions than were asked for"):
        rows = [[Entry(told)] for told in shortfalls[:MOST_SHORTFALLS]]
        show_table(("what was found",), rows, key="shortfalls", label="What could not be asked")
        if len(shortfalls) > MOST_SHORTFALLS:
            st.caption("And others, which world.toml names.")


def _numbers(values: Iterable[int | None]) -> Iterable[int]:
    return (value for value in values if value is not None)


def _needs(heads: tuple[Head, ...]) -> dict[str, int]:
    counts = Counter(head.needs or "not known" for head in heads)
    kept = dict(counts.most_common(MOST_BARS))
    rest = sum(counts.values()) - sum(kept.values())
    return kept | ({"others": rest} if rest else {})


def counted(values: Iterable[int]) -> dict[str, int]:
    """How often each number comes, as a person reads it; many different ones are put together to ranges."""
    counts = Counter(values)
    if len(counts) <= MOST_BARS:
        return {str(value): counts[value] for value in sorted(counts)}
    found = {str(value): counts[value] for value in sorted(counts) if value <= MANY[0]}
    for low, high in zip(MANY, (*MANY[1:], None), strict=True):
        inside = sum(count for value, count in counts.items() if value > low and (high is None or value <= high))
        if inside:
            found[f"{low + 1:,}–{high:,}" if high else f"over {low:,}"] = inside
    return found
