"""List of the worlds of this machine, with one selected."""

from datetime import datetime
from typing import Any

import streamlit as st

from app.pages.worlds.selected import SelectedWorld
from app.widgets.plain_text import escape_markdown
from app.widgets.url_state import go_to_world
from runs.services import Services
from worlds.folder import WorldError, list_world_names
from worlds.open import read_world_metadata

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
    for name, why in damaged.items():
        st.error(escape_markdown(f"{name}: {why}"))
    return chosen


def _load_worlds(services: Services) -> tuple[list[SelectedWorld], dict[str, str]]:
    worlds, damaged = [], {}
    folder = services.settings.worlds_folder
    for name in list_world_names(folder):
        try:
            worlds.append(SelectedWorld(services, name, read_world_metadata(folder, name)))
        except WorldError as broken:
            damaged[name] = str(broken)
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
        f"{about[name]:,} {name}" for name in SIZE_FIELDS if isinstance(about.get(name), int) and about[name]
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
        return f"{datetime.fromisoformat(str(about.get('built'))):%d %b %Y %H:%M} UTC"
    except ValueError:
        return "built at an unknown time"
