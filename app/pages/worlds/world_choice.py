"""The choice of a world: its list and the opened world; and its overview: sizes, origin, split of the facts, charts.

For a live world: its hosts, the connection settings, and the size of its response cache.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import streamlit as st

from showhow.app.widgets.page_layout import escape_markdown, format_when
from showhow.app.widgets.table import BAR_STEP, TableCell, show_bar_chart, show_table
from showhow.app.widgets.url_state import go_to_view, go_to_world
from showhow.fiction.generator.build import PAGES_FILE
from showhow.fiction.generator.web_pages import load_marks_by_address
from showhow.fiction.generator.world_files import FACT_SOURCES_FILE, UNIVERSE_FILE
from showhow.fiction.questions.question_file import QUESTIONS_FILE, QuestionFile, QuestionSummary
from showhow.fiction.universe.universe import Universe, count_by_sources
from showhow.runs.services import Services
from showhow.settings import Settings
from showhow.worlds.folder import LIVE_KIND, WorldError, list_world_names
from showhow.worlds.live.http.response_cache import RESPONSE_CACHE_FILE
from showhow.worlds.open import read_world_metadata
from showhow.worlds.source import World


@dataclass(frozen=True, slots=True)
class SelectedWorld:
    """A world with the contents of its world.toml; missing files are None."""

    services: Services
    name: str
    about: dict[str, Any]

    @property
    def folder(self) -> Path:
        """Folder of the world."""
        return self.services.settings.worlds_folder / self.name

    @property
    def stamp(self) -> str:
        """Cache key that changes with every build."""
        return f"{self.about.get('hash')} {self.about.get('built')}"

    @property
    def is_live(self) -> bool:
        """Whether its sources are external servers."""
        return self.about.get("kind") == LIVE_KIND

    def open(self) -> World:
        """Open its sources."""
        return self.services.open_world(self.name)

    def disk_size(self) -> int:
        """Size on disk in bytes."""
        return _disk_size(self.folder, self.stamp)

    def questions(self) -> QuestionFile | None:
        """Its generated questions."""
        return _load_questions(self.folder / QUESTIONS_FILE, self.stamp)

    def has_universe(self) -> bool:
        """Whether it has a universe, the record of all true facts."""
        return (self.folder / UNIVERSE_FILE).is_file()

    def universe(self) -> Universe | None:
        """Its universe."""
        return _load_universe(self.folder / UNIVERSE_FILE, self.stamp)

    def page_errors(self) -> dict[str, list[dict[str, Any]]] | None:
        """False statements of its web pages by URL; None if there is no record."""
        return _load_page_errors(self.folder / PAGES_FILE, self.stamp)


@lru_cache(maxsize=256)
def _disk_size(folder: Path, _stamp: str) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@lru_cache(maxsize=8)
def _load_questions(file: Path, _stamp: str) -> QuestionFile | None:
    return QuestionFile(file) if file.is_file() else None


@lru_cache(maxsize=2)
def _load_page_errors(file: Path, _stamp: str) -> dict[str, list[dict[str, Any]]] | None:
    return load_marks_by_address(file) if file.is_file() else None


# A universe of a million people takes some hundred megabytes.
@lru_cache(maxsize=2)
def _load_universe(file: Path, _stamp: str) -> Universe | None:
    return Universe.load(file) if file.is_file() else None


SIZE_FIELDS = ("people", "articles", "pages", "triples", "questions")


def choose_world(services: Services) -> SelectedWorld | None:
    """Show the list and return the world of the URL parameter, else the first one."""
    worlds, damaged = _load_worlds(services)
    requested = st.query_params.get("world")
    chosen = next((world for world in worlds if world.name == requested), worlds[0] if worlds else None)
    if requested and (chosen is None or chosen.name != requested) and requested not in damaged:
        st.warning(escape_markdown(f"There is no world {requested!r}{'; choose one from the list' if worlds else ''}."))
    for world in worlds:
        _show_row(world, chosen=world is chosen)
    for name, problem in damaged.items():
        st.error(escape_markdown(f"{name}: {problem}"))
    return chosen


def _load_worlds(services: Services) -> tuple[list[SelectedWorld], dict[str, str]]:
    worlds, damaged = [], {}
    folder = services.settings.worlds_folder
    for name in list_world_names(folder):
        try:
            worlds.append(SelectedWorld(services, name, read_world_metadata(folder, name)))
        except WorldError as error:
            damaged[name] = str(error)
    return worlds, damaged


def _show_row(world: SelectedWorld, *, chosen: bool) -> None:
    about = world.about
    with st.container(key=f"world_{world.name}", gap=None):
        st.button(
            world.name.replace("_", r"\_"),
            key=f"open_world_{world.name}",
            type="primary" if chosen else "tertiary",
            width="stretch",
            on_click=go_to_world,
            args=(world.name,),
        )
        st.caption(
            "  \n".join(
                (
                    escape_markdown(_format_kind(about)),
                    escape_markdown(_format_sizes(about)),
                    f"{format_bytes(world.disk_size())} · {format_build_time(about)}",
                )
            )
            if not world.is_live
            else "  \n".join(
                (f"live · {format_bytes(world.disk_size())} recorded", escape_markdown(_format_hosts(about)))
            )
        )


def _format_kind(about: dict[str, Any]) -> str:
    seed = f" · seed {about['seed']}" if "seed" in about else ""
    return f"{about.get('kind', 'unknown kind')}{seed}"


def _format_sizes(about: dict[str, Any]) -> str:
    return " · ".join(
        # A number stays beside its noun.
        f"{about[name]:,}\u00a0{name}"
        for name in SIZE_FIELDS
        if isinstance(about.get(name), int) and about[name]
    )


def _format_hosts(about: dict[str, Any]) -> str:
    # The word joiner keeps Markdown from linking www. addresses.
    return f"queries {', '.join(about.get('hosts', []))}".replace("www.", "www\u2060.")


def format_bytes(size: float) -> str:
    """Format a number of bytes."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:,.0f} {unit}" if size >= 10 or unit == "bytes" else f"{size:.1f} {unit}"


def format_build_time(about: dict[str, Any]) -> str:
    """Format the build time of the world."""
    try:
        return format_when(datetime.fromisoformat(str(about.get("built"))))
    except ValueError:
        return "built at an unknown time"


FIELD_LABELS = {
    "title": "title",
    "articles of": "articles of",
    "language": "language",
    "graph of": "graph of",
    "web search of": "web search of",
    "web pages of": "web pages at",
    "hosts": "hosts",
    "licence": "licence",
    "hash": "hash of its description",
}


def show_live_world(world: SelectedWorld) -> None:
    """Show hosts, connection settings and description of a live world."""
    record = world.folder / RESPONSE_CACHE_FILE
    with st.container(horizontal=True, key="sizes"):
        st.metric("hosts", len(world.about.get("hosts", [])), width="content")
        st.metric("answers recorded", format_bytes(record.stat().st_size if record.is_file() else 0), width="content")
    _show_connection_state(world.services.settings)
    rows = [
        [TableCell(title), TableCell(_format_site_value(world.about[name]))]
        for name, title in FIELD_LABELS.items()
        if name in world.about
    ]
    rows.append([TableCell("added"), TableCell(format_build_time(world.about))])
    show_table(("field", "value"), rows, key="origin", label="Description of the live world")
    st.caption(
        "Every response is recorded, reused for some days, and available offline. "
        f"`showhow world check {escape_markdown(world.name)}` calls every source once and reports what works."
    )


def _show_connection_state(settings: Settings) -> None:
    if settings.as_of is not None:
        st.info(f"Responses are those recorded by {settings.as_of:%d %b %Y %H:%M %Z} (SHOWHOW_AS_OF).")
    elif settings.offline:
        st.info("Showhow is offline: only recorded responses are available (SHOWHOW_OFFLINE).")
    elif not settings.contact:
        st.warning(
            "No requests are sent yet: set SHOWHOW_CONTACT to an e-mail address or a page where you can be reached."
        )


def _format_site_value(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


MAX_LISTED_DOCUMENTS = 10
OVERVIEW_SIZE_FIELDS = ("people", "articles", "pages", "triples", "entities", "relations", "questions")
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
"""Upper limits of the bars of large numbers."""
MAX_BARS = 12
MAX_SHORTFALLS = 100


def show_world_overview(world: SelectedWorld) -> None:
    """Show all parts of the overview; a caption says which parts the world lacks."""
    if world.is_live:
        show_live_world(world)
        return
    sizes = {name: count for name in OVERVIEW_SIZE_FIELDS if isinstance(count := world.about.get(name), int) and count}
    with st.container(horizontal=True, key="sizes"):
        for name, count in sizes.items():
            st.metric(name, f"{count:,}", width="content")
        st.metric("on disk", format_bytes(world.disk_size()), width="content")
    if left_out := world.about.get("left_out"):
        lines = "\n".join(f"- {escape_markdown(str(sentence))}" for sentence in left_out[:MAX_LISTED_DOCUMENTS])
        more = len(left_out) - MAX_LISTED_DOCUMENTS
        st.warning(f"**Documents that could not be read**\n\n{lines}" + (f"\n- and {more:,} more" if more > 0 else ""))
    _show_origin(world, sizes)
    _show_split(world)
    _show_charts(world)


def _show_origin(world: SelectedWorld, sizes: dict[str, int]) -> None:
    fields = [
        (key, _format_value(value))
        for key, value in world.about.items()
        if key not in (*sizes, "name", "shortfalls", "left_out")
    ]
    with st.expander("How it was made"):
        rows = [[TableCell(key.replace("_", " ")), TableCell(value)] for key, value in fields]
        show_table(("field", "value"), rows, key="origin", label="How the world was made")
        st.caption("The same seed, options and version generate the same world, with the same hash.")


def _format_value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (", ".join(map(str, value)) or "none") if isinstance(value, list) else str(value)


@lru_cache(maxsize=8)
def _load_fact_spread(folder: Path, _stamp: str) -> dict[str, dict[str, int]]:
    return count_by_sources(folder / UNIVERSE_FILE, folder / FACT_SOURCES_FILE)


def _show_split(world: SelectedWorld) -> None:
    st.header("Facts by source", anchor=False)
    if not (world.folder / UNIVERSE_FILE).is_file() or not (world.folder / FACT_SOURCES_FILE).is_file():
        st.caption("Only generated worlds record the sources of each fact; this world has no such record.")
        return
    spread = _load_fact_spread(world.folder, world.stamp)
    columns = [sources for sources in SOURCE_COLOURS if any(sources in counts for counts in spread.values())]
    with st.container(horizontal=True, gap="medium"):
        st.vega_lite_chart(_split_chart(spread, columns), width=460)
        rows = [
            [TableCell(fact), *(TableCell(f"{counts.get(sources, 0):,}", number=True) for sources in columns)]
            for fact, counts in spread.items()
        ]
        with st.container(width=440):
            show_table(("fact", *columns), rows, key="split", label="Facts by source")
    st.caption("Facts of each kind, by the sources that state them. Names and genders are in every source.")


def _split_chart(spread: dict[str, dict[str, int]], columns: list[str]) -> dict[str, Any]:
    rows = [
        {"fact": fact, "sources": sources, "facts": counts[sources], "order": columns.index(sources)}
        for fact, counts in spread.items()
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
                "sort": list(spread),
                "title": None,
                "axis": {"labelOverlap": False},
            },
            "x": {"field": "facts", "type": "quantitative", "title": "facts", "axis": {"tickCount": 4}},
            "color": {
                "field": "sources",
                "type": "nominal",
                "scale": {"domain": columns, "range": [SOURCE_COLOURS[sources] for sources in columns]},
                "legend": {"orient": "bottom", "columns": 4},
            },
            "order": {"field": "order", "type": "quantitative"},
            "tooltip": [{"field": name} for name in ("fact", "sources", "facts")],
        },
    }


def _show_charts(world: SelectedWorld) -> None:
    with st.spinner("Reading the questions …"):
        questions = world.questions()
    if questions is None or not questions.heads:
        return
    st.header("Questions", anchor=False)
    heads = questions.heads
    st.button(f"Show the {len(heads):,} questions", key="see_questions", on_click=go_to_view, args=("questions",))
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
    with st.expander(f"{len(shortfalls):,} templates have fewer questions than requested"):
        rows = [[TableCell(shortfall)] for shortfall in shortfalls[:MAX_SHORTFALLS]]
        show_table(("shortfall",), rows, key="shortfalls", label="Templates with too few questions")
        if len(shortfalls) > MAX_SHORTFALLS:
            st.caption("world.toml lists all of them.")


def _known_numbers(values: Iterable[int | None]) -> Iterable[int]:
    return (value for value in values if value is not None)


def _count_needs(heads: tuple[QuestionSummary, ...]) -> dict[str, int]:
    counts = Counter(head.needs or "unknown" for head in heads)
    largest = dict(counts.most_common(MAX_BARS))
    other_count = sum(counts.values()) - sum(largest.values())
    return largest | ({"others": other_count} if other_count else {})


def count_values(values: Iterable[int]) -> dict[str, int]:
    """Count each number, with labels for a chart; many distinct numbers are grouped into ranges."""
    counts = Counter(values)
    if len(counts) <= MAX_BARS:
        return {str(value): counts[value] for value in sorted(counts)}
    bars = {str(value): counts[value] for value in sorted(counts) if value <= RANGE_LIMITS[0]}
    for low, high in zip(RANGE_LIMITS, (*RANGE_LIMITS[1:], None), strict=True):
        range_count = sum(count for value, count in counts.items() if value > low and (high is None or value <= high))
        if range_count:
            bars[f"{low + 1:,}–{high:,}" if high else f"over {low:,}"] = range_count
    return bars
