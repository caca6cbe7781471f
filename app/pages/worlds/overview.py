"""What a world is: its sizes, how it was made, how its facts are spread, what its questions are like.

What a live world is: whom it asks, as what, and what it has kept of the answers.
"""

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import streamlit as st

from app.pages.worlds.selected import SelectedWorld
from app.pages.worlds.world_list import format_build_time, format_bytes
from app.services import services
from app.widgets.chart import BAR_STEP, show_bar_chart
from app.widgets.plain_text import escape_markdown
from app.widgets.table import TableCell, show_table
from app.widgets.url_state import go_to_view
from fiction.generator.world_files import FACT_SOURCES_FILE, UNIVERSE_FILE
from fiction.questions.question_file import QuestionSummary
from fiction.universe.universe import count_by_sources
from worlds.live.http.response_cache import RESPONSE_CACHE_FILE

FIELD_LABELS = {
    "title": "title",
    "articles of": "articles of",
    "language": "language",
    "graph of": "graph of",
    "hosts": "asks",
    "licence": "licence",
    "hash": "hash of its description",
}


def show_live_world(world: SelectedWorld) -> None:
    """Its hosts, the state of what a call needs, and how to try it."""
    record = world.folder / RESPONSE_CACHE_FILE
    with st.container(horizontal=True, key="sizes"):
        st.metric("hosts", len(world.about.get("hosts", [])), width="content")
        st.metric("answers recorded", format_bytes(record.stat().st_size if record.is_file() else 0), width="content")
    _show_connection_state()
    rows = [
        [TableCell(title), TableCell(_format_site_value(world.about[name]))]
        for name, title in FIELD_LABELS.items()
        if name in world.about
    ]
    rows.append([TableCell("described"), TableCell(format_build_time(world.about))])
    show_table(("what", "value"), rows, key="origin", label="What the live world is")
    st.caption(
        "Every answer is recorded, given again for some days, and there for work offline. "
        f"`showhow world check {escape_markdown(world.name)}` tries every source once and tells what works."
    )


def _show_connection_state() -> None:
    found = services().settings
    if found.as_of is not None:
        st.info(f"It answers as it did on {found.as_of:%d %b %Y %H:%M %Z}, from its record (SHOWHOW_AS_OF).")
    elif found.offline:
        st.info("Showhow is offline: it answers what it has answered before, from its record (SHOWHOW_OFFLINE).")
    elif not found.contact:
        st.warning("No host is asked yet: set SHOWHOW_CONTACT to an e-mail address or a page where you can be reached.")


def _format_site_value(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


SIZE_FIELDS = ("people", "articles", "pages", "triples", "entities", "relations", "questions")
SOURCE_COLOURS = {
    "text": "#1f5fbf",
    "graph": "#b26a00",
    "web": "#2e7d4f",
    "text + graph": "#7a4fa3",
    "text + web": "#1b8a9e",
    "graph + web": "#8a7d1b",
    "text + graph + web": "#6b6f76",
}
RANGE_LIMITS = (5, 10, 20, 50, 100, 500, 1000)
"""Where the bars of large numbers end."""
MAX_BARS = 12
MAX_SHORTFALLS = 100


def show_world_overview(world: SelectedWorld) -> None:
    """Draw all of it, or say in one sentence what this world does not have."""
    if world.is_live:
        show_live_world(world)
        return
    sizes = {name: count for name in SIZE_FIELDS if isinstance(count := world.about.get(name), int) and count}
    with st.container(horizontal=True, key="sizes"):
        for name, count in sizes.items():
            st.metric(name, f"{count:,}", width="content")
        st.metric("on disk", format_bytes(world.disk_size()), width="content")
    _show_origin(world, sizes)
    _show_split(world)
    _show_charts(world)


def _show_origin(world: SelectedWorld, sizes: dict[str, int]) -> None:
    told = [
        (key, _format_value(value)) for key, value in world.about.items() if key not in (*sizes, "name", "shortfalls")
    ]
    with st.expander("How it was made"):
        rows = [[TableCell(key.replace("_", " ")), TableCell(value)] for key, value in told]
        show_table(("what", "value"), rows, key="origin", label="How the world was made")
        st.caption("The same seed, options and version make the same world again, with the same hash.")


def _format_value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (", ".join(map(str, value)) or "none") if isinstance(value, list) else str(value)


@lru_cache(maxsize=8)
def _load_fact_spread(folder: Path, _stamp: str) -> dict[str, dict[str, int]]:
    return count_by_sources(folder / UNIVERSE_FILE, folder / FACT_SOURCES_FILE)


def _show_split(world: SelectedWorld) -> None:
    st.subheader("Which source tells what", anchor=False)
    if not (world.folder / UNIVERSE_FILE).is_file() or not (world.folder / FACT_SOURCES_FILE).is_file():
        st.caption(
            "Only of a generated world is it known which source tells which fact; this world has no such record."
        )
        return
    found = _load_fact_spread(world.folder, world.stamp)
    columns = [sources for sources in SOURCE_COLOURS if any(sources in counts for counts in found.values())]
    with st.container(horizontal=True, gap="medium"):
        st.vega_lite_chart(_split_chart(found, columns), width=460)
        rows = [
            [TableCell(fact), *(TableCell(f"{counts.get(sources, 0):,}", number=True) for sources in columns)]
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
        "height": {"step": BAR_STEP},
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
                "scale": {"domain": columns, "range": [SOURCE_COLOURS[sources] for sources in columns]},
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
        show_bar_chart(
            "Difficulty", "difficulty", count_values(_known_numbers(h.difficulty for h in heads)), key="difficulty"
        )
        show_bar_chart("Answers per question", "answers", count_values(h.answers for h in heads), key="answers")
        show_bar_chart("Hops", "hops", count_values(_known_numbers(h.hops for h in heads)), key="hops")
        show_bar_chart("Sources that a question needs", "needs", _count_needs(heads), key="needs", wide=True)
    kinds = Counter(head.kind for head in heads)
    st.caption("Kinds: " + escape_markdown(", ".join(f"{kind} ({count:,})" for kind, count in kinds.most_common())))
    _show_shortfalls(world.about.get("shortfalls") or [])


def _show_shortfalls(shortfalls: list[str]) -> None:
    if not shortfalls:
        return
    with st.expander(f"{len(shortfalls):,} templates gave fewer questions than were asked for"):
        rows = [[TableCell(told)] for told in shortfalls[:MAX_SHORTFALLS]]
        show_table(("what was found",), rows, key="shortfalls", label="What could not be asked")
        if len(shortfalls) > MAX_SHORTFALLS:
            st.caption("And others, which world.toml names.")


def _known_numbers(values: Iterable[int | None]) -> Iterable[int]:
    return (value for value in values if value is not None)


def _count_needs(heads: tuple[QuestionSummary, ...]) -> dict[str, int]:
    counts = Counter(head.needs or "not known" for head in heads)
    kept = dict(counts.most_common(MAX_BARS))
    rest = sum(counts.values()) - sum(kept.values())
    return kept | ({"others": rest} if rest else {})


def count_values(values: Iterable[int]) -> dict[str, int]:
    """How often each number comes, as a person reads it; many different ones are put together to ranges."""
    counts = Counter(values)
    if len(counts) <= MAX_BARS:
        return {str(value): counts[value] for value in sorted(counts)}
    found = {str(value): counts[value] for value in sorted(counts) if value <= RANGE_LIMITS[0]}
    for low, high in zip(RANGE_LIMITS, (*RANGE_LIMITS[1:], None), strict=True):
        inside = sum(count for value, count in counts.items() if value > low and (high is None or value <= high))
        if inside:
            found[f"{low + 1:,}–{high:,}" if high else f"over {low:,}"] = inside
    return found
