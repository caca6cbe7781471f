"""What tools are worth: a line a tool, one tool in charts, and the observations that were rated worst."""

from collections.abc import Sequence
from itertools import pairwise

import streamlit as st

from app.components.chart import show_bars
from app.components.plain import plain
from app.components.table import Entry, show_table
from app.spent import counted, money, seconds
from app.tool_reports import use_told
from db.tool_report import BOUNDS, Rated, ToolWorth

COLUMNS = ("tool", "calls", "failed", "half within", "95 % within", "longest", "mean rating", "ratings", "its model")
_SHORT = 90


def class_names() -> list[str]:
    """The classes of latencies, as people read them."""
    bounds = [f"{bound:g} s" for bound in BOUNDS]
    between = [f"{lower} – {upper}" for lower, upper in pairwise(bounds)]
    return [f"under {bounds[0]}", *between, f"{bounds[-1]} and more"]


def show_tools(tools: Sequence[ToolWorth]) -> None:
    """The table; a click on a tool's name opens its charts."""
    show_table(COLUMNS, [_row(each) for each in tools], key="tools", label="What the tools are worth", go=choose_tool)


def choose_tool(name: str) -> None:
    """Have the address name that tool."""
    st.session_state["tool"] = name


def _row(of: ToolWorth) -> list[Entry | None]:
    apart = [f"{of.interrupted:,} never finished"] * bool(of.interrupted) + [f"{of.undone:,} undone"] * bool(of.undone)
    return [
        Entry(of.tool, go=of.tool),
        Entry(f"{of.calls:,}", number=True, hint=", ".join(apart)),
        _failed(of),
        *_times(of),
        *_stars(of),
        _use(of),
    ]


def _failed(of: ToolWorth) -> Entry:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in of.failures.items())
    share = f"{of.failed:,} ({of.failed / of.calls:.1%})" if of.failed else "0"
    return Entry(share, number=True, bars=tuple(of.failures.values()), hint=kinds)


def _times(of: ToolWorth) -> list[Entry | None]:
    if of.latency is None:
        return [None, None, None]
    hint = ", ".join(
        f"{name}: {count:,}" for name, count in zip(class_names(), of.latency.classes, strict=True) if count
    )
    return [
        Entry(seconds(of.latency.p50), number=True, bars=of.latency.classes, hint=hint),
        Entry(seconds(of.latency.p95), number=True),
        Entry(seconds(of.latency.longest), number=True),
    ]


def _stars(of: ToolWorth) -> list[Entry | None]:
    if of.ratings is None:
        return [None, None]
    spread = f" ± {of.ratings.spread:.2f}" if of.ratings.spread is not None else ""
    hint = ", ".join(f"{star} of 5: {count:,}" for star, count in of.ratings.stars.items())
    return [
        Entry(f"{of.ratings.mean:.2f}{spread}", number=True),
        Entry(f"{of.ratings.count:,}", number=True, bars=tuple(of.ratings.stars.values()), hint=hint),
    ]


def _use(of: ToolWorth) -> Entry | None:
    if of.usage is None:
        return None
    known = "at least " if of.usage.unpriced and of.usage.cost is not None else ""
    return Entry(
        f"{counted(of.usage.calls, 'call')}, {known}{money(of.usage.cost)}", hint="; ".join(use_told(of.usage))
    )


def show_tool(of: ToolWorth) -> None:
    """One tool in three charts, each with its numbers beside it."""
    st.subheader(plain(of.tool), anchor=False)
    st.caption(plain(_told(of)))
    with st.container(horizontal=True, gap="medium", key="charts"):
        if of.failures:
            show_bars("Failures", "kind", of.failures, key="failures", of="calls")
        if of.latency:
            times = dict(zip(class_names(), of.latency.classes, strict=True))
            show_bars("Latency", "time", times, key="latency", of="calls")
        if of.ratings:
            stars = {f"{star} of 5": count for star, count in of.ratings.stars.items()}
            show_bars("Ratings", "stars", stars, key="stars", of="observations")


def _told(of: ToolWorth) -> str:
    parts = [counted(of.calls, "call")]
    parts += [f"{of.interrupted:,} begun and never finished, which have no time"] if of.interrupted else []
    parts += [f"{of.undone:,} more were undone and count nowhere else"] if of.undone else []
    parts += [f"its model took {', '.join(use_told(of.usage))}"] if of.usage else []
    return "; ".join(parts)


def show_worst(worst: Sequence[Rated]) -> None:
    """The lowest ratings first; a click opens the trace at its step."""
    low = {f"{each.trace_id}:{each.position}": each for each in worst if each.rating < 5}
    if not low:
        st.caption(
            "Every rated observation has five stars."
            if worst
            else "No observation is rated yet: the stars under each step do that, on the Annotate and the Ask page."
        )
        return

    def open_step(which: str) -> None:
        st.session_state["open_step"] = low[which]

    rows = [
        [
            Entry("★" * each.rating + "☆" * (5 - each.rating)),
            Entry(each.tool),
            Entry(_cut(each.question), go=which),
            Entry(_cut(each.thought)),
            Entry(f"{each.position}", number=True),
            Entry(f"{each.started_at:%Y-%m-%d %H:%M}"),
        ]
        for which, each in low.items()
    ]
    columns = ("rating", "tool", "question", "thought", "step", "when (UTC)")
    show_table(columns, rows, key="worst", label="Observations rated worst", go=open_step)


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHORT else f"{line[: _SHORT - 1]}…"
