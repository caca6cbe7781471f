"""The dialog with which an administrator generates a fictional world, and what the dialog of imports shares with it."""

import os
import shutil
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from showhow.app.jobs import JobError
from showhow.app.widgets.job_panel import list_world_jobs, start_world_job
from showhow.app.widgets.option_form import show_option_fields
from showhow.app.widgets.page_layout import errors_shown
from showhow.db.database import StoreError
from showhow.db.models import User
from showhow.db.people.users import ADMIN, register_user, require_role
from showhow.fiction.generator.source_split import parse_split
from showhow.option_fields import build_request, list_options
from showhow.runs.services import Services
from showhow.tasks.task import dump_call
from showhow.tasks.worlds import GenerateWorld, generate
from showhow.worlds.folder import WorldError, list_world_names, new_world_folder

BASIC_OPTIONS = ("people", "seed", "split", "split_by")
"""The options at the top of the form; all others are under More options."""
MAX_LISTED_SOURCES = 1000
"""Files and folders that are offered; more belong into several folders."""
MAX_VISITED_ENTRIES = 20_000
"""Entries that are looked at, since the list is made each time the dialog is drawn."""


def require_administrator(services: Services, person: User) -> None:
    """StoreError unless the person is an administrator now; the role may have changed since the page was opened."""
    with services.database.begin() as session:
        require_role(session, register_user(session, person.name).id, ADMIN)


def require_free_name(worlds_folder: Path, name: str, *, replace: bool) -> None:
    """Raise a WorldError if there is a world of that name, unless it is to be replaced."""
    if new_world_folder(worlds_folder, name).exists() and not replace:
        raise WorldError(f"There is already a world {name!r}. Choose another name, or replace it.")


def write_upload(upload: UploadedFile, target: Path, extensions: Sequence[str]) -> Path:
    """Write the upload to `target`, with those of its extensions that identify its format; WorldError if it cannot."""
    suffixes = [suffix for suffix in Path(upload.name).suffixes[-2:] if suffix[1:].lower() in extensions]
    file = target.with_name(target.name + "".join(suffixes).lower())
    try:
        with file.open("wb") as stream:
            upload.seek(0)
            shutil.copyfileobj(upload, stream)
    except OSError as error:
        raise WorldError(f"The upload cannot be stored in {target.parent} ({error.strerror}).") from error
    return file


@st.dialog("Generate a world", width="medium")
def show_generate_dialog(services: Services, person: User) -> None:
    """Ask for the name and the options, check them, and start the generation; for administrators only."""
    worlds_folder = services.settings.worlds_folder
    options = [entry for entry in list_options(GenerateWorld) if entry.name not in ("name", "replace")]
    st.caption("A fictional world of families: articles, a graph and web pages, with questions and all gold answers.")
    name = st.text_input("Name", value=_unused_name(worlds_folder), key="generate_name").strip()
    values = show_option_fields([entry for entry in options if entry.name in BASIC_OPTIONS], "generate")
    with st.expander("More options"):
        values |= show_option_fields([entry for entry in options if entry.name not in BASIC_OPTIONS], "generate")
    replace = st.checkbox("Replace an existing world of that name", key="generate_replace")
    st.caption("A thousand people take seconds; a million take minutes and some gigabytes of disk.")
    if st.button("Generate", key="generate_now", type="primary"):
        request = build_request(GenerateWorld, {**values, "name": name, "replace": replace})
        with errors_shown(StoreError, WorldError, JobError):
            require_administrator(services, person)
            require_free_name(worlds_folder, name, replace=replace)
            parse_split(request.options.split, request.options.split_by)
            request.options.check()
            start_world_job(services.database, name, "Generating", dump_call(generate, request))
            st.rerun()


def _unused_name(worlds_folder: Path) -> str:
    used = {*list_world_names(worlds_folder), *(job.name for job in list_world_jobs())}
    return next(name for number in range(1, len(used) + 2) if (name := f"world-{number}") not in used)


def list_import_sources(folder: Path, extensions: Sequence[str]) -> list[str]:
    """The files with these extensions and the folders within the folder, as relative paths; links are left out."""
    endings = tuple(f".{extension}" for extension in extensions)
    entries = islice(_iterate_entries(folder), MAX_VISITED_ENTRIES)
    names = (name for name in entries if name.endswith("/") or name.lower().endswith(endings))
    return sorted(islice(names, MAX_LISTED_SOURCES))


def _iterate_entries(folder: Path) -> Iterator[str]:
    """The relative paths of files, and of folders with a slash at the end; without links."""
    for root, folders, files in os.walk(folder):
        for name, ending in (*((name, "/") for name in folders), *((name, "") for name in files)):
            path = Path(root, name)
            if not path.is_symlink():
                yield f"{path.relative_to(folder)}{ending}"


def resolve_import_source(folder: Path, name: str) -> Path:
    """The file or folder of that relative path within the folder, without links.

    WorldError if there is none, or if it, or anything within it, is a link that leads out of the folder. The message
    is the same whether or not something exists elsewhere.
    """
    root = folder.resolve()
    try:
        source = (root / name).resolve(strict=True)
        is_within = source.is_relative_to(root) and all(
            path.resolve().is_relative_to(root) for path in _iterate_links(source)
        )
    except (OSError, ValueError, RuntimeError):
        # It does not exist or cannot be read, has a NUL in its name, or is a loop of links.
        is_within = False
    if not is_within:
        raise WorldError(f"There is no file or folder {name!r} in the import folder.")
    return source


def _iterate_links(source: Path) -> Iterator[Path]:
    """The links within a folder; a file has none."""
    if not source.is_dir():
        return
    for root, folders, files in os.walk(source, onerror=_raise):
        yield from (path for name in (*folders, *files) if (path := Path(root, name)).is_symlink())


def _raise(error: OSError) -> None:
    raise error
