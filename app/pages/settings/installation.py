"""The parts of the Settings page about the person and about the installation: storage, backup, live worlds, tools."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from showhow.app.plugins import list_plugin_problems, list_plugins
from showhow.app.widgets.job_panel import JobKind, show_verb_job, start_verb_job
from showhow.app.widgets.page_layout import (
    SHORTCUTS_COOKIE,
    choose_theme,
    escape_markdown,
    format_sentence,
    format_when,
    shortcuts_are_on,
)
from showhow.app.widgets.person import show_name_field
from showhow.app.widgets.table import TableCell, show_table
from showhow.app.widgets.tour import start_tour
from showhow.db.models import User
from showhow.db.people.users import ADMIN
from showhow.runs.services import Services
from showhow.tasks.backup import MakeBackup, back_up
from showhow.tasks.task import dump_call
from showhow.tools.arguments import ToolError
from showhow.worlds.folder import WorldError
from showhow.worlds.open import list_worlds

BACKUP_JOB = JobKind(
    "backup",
    "Backing up to",
    "The backup to {} was stopped; the former one is still complete.",
    "was not written",
    "Copying the database and the worlds …",
    roles=(ADMIN,),
)
BACKUPS_FOLDER = "backups"
NAME_WIDTH = 420
"""Pixels of the field of a name."""
_UNITS = ("bytes", "kB", "MB", "GB")


def format_size(size: float) -> str:
    """Format a number of bytes, such as 12.3 MB."""
    unit = 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.0f} {_UNITS[unit]}" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def measure_folder(folder: Path) -> int:
    """The bytes of all files below the folder; a file that is removed meanwhile counts as nothing."""
    return sum(_iterate_sizes(folder))


def _iterate_sizes(folder: Path) -> Iterator[int]:
    for path in folder.rglob("*"):
        try:
            if path.is_file() and not path.is_symlink():
                yield path.stat().st_size
        except FileNotFoundError:
            continue


def show_person(person: User) -> None:
    """Draw what belongs to the person: name, time zone, theme and shortcuts."""
    with st.container(width=NAME_WIDTH):
        show_name_field(person)
    zone = st.context.timezone or "UTC"
    st.markdown(
        f"**Time zone:** {escape_markdown(zone)}, where it is {_local_time(zone)} now; taken from your browser."
    )
    choose_theme("settings_theme")
    st.button("Take the tour", key="take_tour", icon=":material/tour:", on_click=start_tour)
    is_on = st.toggle("Shortcuts", value=shortcuts_are_on(), key="shortcuts_switch")
    st.session_state[SHORTCUTS_COOKIE] = is_on
    st.caption(
        "`?` opens the help of a page, which lists its shortcuts. Switch them off if they get in the way of a screen "
        "reader or of the browser's own keys; Ctrl+Enter and the arrow keys keep working. The browser remembers both "
        "choices."
    )


def _local_time(zone: str) -> str:
    try:
        return f"{datetime.now(ZoneInfo(zone)):%H:%M}"
    except (ZoneInfoNotFoundError, ValueError):
        return f"{datetime.now(ZoneInfo('UTC')):%H:%M} in UTC"


def show_installation(services: Services, person: User) -> None:
    """Draw the database and the worlds with sizes, the encoder, the contact of live worlds, the proxy, the tools."""
    settings = services.settings
    st.header("Storage", anchor=False)
    database = services.database
    place = Path(database.url.database or "") if database.is_sqlite else None
    parts = [
        [
            TableCell("Database"),
            TableCell(str(place) if place else database.url.render_as_string(hide_password=True)),
            TableCell(format_size(place.stat().st_size) if place else "on its server", number=True),
        ]
    ]
    for world in list_worlds(settings.worlds_folder):
        folder = settings.worlds_folder / str(world["name"])
        parts.append([TableCell(f"World {world['name']}"), TableCell(str(folder)), _size_cell(folder)])
    show_table(("part", "place", "size"), parts, key="storage", label="Storage")
    if ADMIN in person.roles:
        _show_backup(services)
    st.header("Server", anchor=False)
    encoder = services.encoder
    offline = "Live worlds answer from their recorded answers only." if settings.offline else ""
    contact = (
        f"Live worlds are asked on behalf of {settings.contact}. {offline}"
        if settings.contact
        else f"No contact is set, so live worlds are not asked: set SHOWHOW_CONTACT and restart. {offline}"
    )
    st.markdown(
        f"**Encoder:** {escape_markdown(encoder.name)}, {'loaded' if encoder.is_loaded else 'loading'}.  \n"
        f"**Live worlds:** {escape_markdown(contact)}  \n"
        f"**Proxy:** {f'`{settings.proxy}`' if settings.proxy else 'none; SHOWHOW_PROXY names one'}."
    )
    _show_live_worlds(services)
    st.header("Tools of others", anchor=False)
    _show_external_tools(services)
    st.header("Plugins", anchor=False)
    _show_plugins(services)


def _show_plugins(services: Services) -> None:
    """Draw what other installed packages add, and what of it is left out."""
    entries = list_plugins()
    rows = [[TableCell(entry.name), TableCell(entry.kind), TableCell(entry.package)] for entry in entries]
    if rows:
        show_table(("name", "kind", "package"), rows, key="plugins", label="Plugins")
    if problems := list(list_plugin_problems()):
        st.warning("\n\n".join(map(escape_markdown, problems)))
    if not services.settings.plugins:
        st.caption("They are turned off by SHOWHOW_PLUGINS=0.")
    elif not rows and not problems:
        st.caption(
            "No other installed package adds reasoners, tools, metrics, formats, selection modes or skill sources."
        )


def _size_cell(folder: Path) -> TableCell:
    return TableCell(format_size(measure_folder(folder)), number=True)


def _show_backup(services: Services) -> None:
    """Draw the button that backs up the database and the worlds into the home, and its progress."""
    folder = services.settings.home / BACKUPS_FOLDER
    if show_verb_job(services.database, BACKUP_JOB, str(folder)):
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if st.button("Back up now", key="backup_now", icon=":material/save:", shortcut="Alt+U"):
            start_verb_job(services.database, BACKUP_JOB, str(folder), dump_call(back_up, MakeBackup(folder=folder)))
            st.rerun()
        manifest = folder / "backup.json"
        made = datetime.fromtimestamp(manifest.stat().st_mtime, UTC) if manifest.is_file() else None
        st.caption(
            f"The last backup in {escape_markdown(str(folder))}: {format_when(made)}. Copy it to another machine."
            if made
            else f"There is no backup in {escape_markdown(str(folder))} yet. `showhow backup FOLDER` writes elsewhere."
        )


def _show_live_worlds(services: Services) -> None:
    folder = services.settings.worlds_folder
    live = [str(world["name"]) for world in list_worlds(folder) if world.get("kind") == "live"]
    if not live:
        st.caption("There is no live world. `showhow world add NAME --preset wikipedia` adds one.")
        return
    rows = []
    for name in live:
        try:
            world = services.open_world(name)
            sources = [kind for kind in ("text", "graph", "web") if getattr(world, kind) is not None]
            rows.append([TableCell(name), TableCell(", ".join(sources)), TableCell("ready")])
        except WorldError as error:
            rows.append([TableCell(name), TableCell(""), TableCell(str(error))])
    show_table(("world", "sources", "state"), rows, key="live_worlds", label="Live worlds")


def _show_external_tools(services: Services) -> None:
    """Draw the functions and servers that the file of tools declares, each with its tools or what is wrong."""
    place = escape_markdown(str(services.tools_path))
    try:
        providers = [entry for entry in services.tool_registry().provider_statuses() if not entry.is_installed]
    except ToolError as error:
        st.error(format_sentence(str(error)))
        return
    if not providers:
        st.caption(f"None is declared. Functions, LangChain tools and MCP servers are declared in {place}.")
        return
    st.caption(f"Declared in {place}. `showhow tools check` calls each of them.")
    rows = [
        [
            TableCell(entry.name),
            TableCell(entry.kind),
            TableCell(", ".join(tool.title for tool in entry.tools), hint=", ".join(tool.name for tool in entry.tools)),
            TableCell(entry.problem or "ready"),
        ]
        for entry in providers
    ]
    show_table(("name", "kind", "tools", "state"), rows, key="external_tools", label="Tools of others")
