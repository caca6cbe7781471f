"""The dialog with which an administrator generates a fictional world, and what the dialog of imports shares with it.

Fields are made from the options of the verbs, so that the page and the command line have the same options and texts.
"""

import inspect
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as fields_of
from itertools import islice
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile
from typer.models import OptionInfo

from app.cli.world import generate
from app.jobs import JobError
from app.widgets.job_panel import list_world_jobs, start_world_job
from app.widgets.page_layout import escape_markdown, format_sentence
from db.database import StoreError
from db.models import User
from db.users import ADMIN, register_user, require_role
from fiction.generator.source_split import SPLIT_MODES, parse_split
from fiction.universe.options import GenerationOptions
from runs.services import Services
from worlds.folder import WorldError, list_world_names, new_world_folder

OptionValue = bool | int | float | str
BASIC_OPTIONS = ("people", "seed", "split", "split_by")
"""The options at the top of the form; all others are under More options."""
EXCLUDED_OPTIONS = ("replace", "as_json")
"""Options that the form draws itself, or that only the command line has."""
OPTION_LABELS = {
    "split": "Sources of the facts",
    "split_by": "Split by",
    "depth": "Depth of the questions",
    "per_template": "Questions of each template",
    "family_size": "Size of a family",
    "branching": "Children of a couple",
    "friends": "Friends of a person",
    "collisions": "Share of namesakes",
    "plain": "Plain articles",
    "each_count": "Counts per person",
    "pairs": "Pairs with and without a fact",
}
OPTION_CHOICES = {
    "split": ("text=50,graph=50", "text=50,graph=35,web=15", "text=100", "graph=100"),
    "split_by": SPLIT_MODES,
}
MAX_LISTED_SOURCES = 1000
"""Files and folders that are offered; more belong into several folders."""
MAX_VISITED_ENTRIES = 20_000
"""Entries that are looked at, since the list is made each time the dialog is drawn."""


@dataclass(frozen=True, slots=True)
class VerbOption:
    """One option of a verb: its type, default, help text, flag and, for a number, its bounds."""

    name: str
    kind: type
    default: Any
    help: str
    flag: str
    minimum: float | None = None
    maximum: float | None = None


def read_verb_options(verb: Callable[..., None]) -> dict[str, VerbOption]:
    """Return the options of the verb by name, in order."""
    hints = get_type_hints(verb, include_extras=True)
    options = {}
    for name, parameter in inspect.signature(verb).parameters.items():
        base, *notes = get_args(hints[name]) if get_origin(hints[name]) is Annotated else (hints[name],)
        option = next((note for note in notes if isinstance(note, OptionInfo)), None)
        if option is None:
            continue
        kind = next((union_member for union_member in get_args(base) if union_member is not NoneType), base)
        options[name] = VerbOption(
            name, kind, parameter.default, option.help or "", _option_flag(name, option), option.min, option.max
        )
    return options


def _option_flag(name: str, option: OptionInfo) -> str:
    # In an annotation Typer keeps the first of the option's names as its default.
    names = (option.default, *(option.param_decls or ()))
    flags = (flag for flag in names if isinstance(flag, str) and flag.startswith("--"))
    return next(flags, f"--{name.replace('_', '-')}")


def show_option_field(field: VerbOption, key: str, label: str, choices: Sequence[str] = ()) -> OptionValue:
    """Draw the field with its help text below; a text field with choices also takes other text."""
    value = _show_option_widget(field, key, label, choices)
    st.caption(escape_markdown(field.help))
    return value


def _show_option_widget(field: VerbOption, key: str, label: str, choices: Sequence[str]) -> OptionValue:
    # The largest seed is beyond the integers of a browser.
    bounds = (field.minimum, field.maximum)
    lowest, highest = (None if limit is None or abs(limit) > 2**53 else limit for limit in bounds)
    if field.kind is bool:
        return st.checkbox(label, value=bool(field.default), key=key)
    if field.kind is int:
        minimum, maximum = (None if limit is None else int(limit) for limit in (lowest, highest))
        return st.number_input(label, minimum, maximum, int(field.default), step=1, key=key)
    if field.kind is float:
        minimum_float, maximum_float = (None if limit is None else float(limit) for limit in (lowest, highest))
        return st.number_input(label, minimum_float, maximum_float, float(field.default), step=0.1, key=key)
    if choices:
        options = list(dict.fromkeys((str(field.default), *choices)))
        return st.selectbox(label, options, key=key, accept_new_options=True)
    return st.text_input(label, value=str(field.default or ""), key=key)


def build_command_arguments(values: Mapping[str, OptionValue], options: Mapping[str, VerbOption]) -> list[str]:
    """Format the values as arguments of the command line; defaults are left out."""
    arguments = []
    for name, value in values.items():
        option = options[name]
        if value == option.default:
            continue
        # Joined by "=", so that a value with a leading dash is not parsed as an option.
        arguments.append(option.flag if option.kind is bool else f"{option.flag}={value}")
    return arguments


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
    options = read_verb_options(generate)
    st.caption("A fictional world of families: articles, a graph and web pages, with questions and all gold answers.")
    name = st.text_input("Name", value=_unused_name(worlds_folder), key="generate_name").strip()
    basic = [options[option] for option in BASIC_OPTIONS if option in options]
    others = [option for option in options.values() if option not in basic and option.name not in EXCLUDED_OPTIONS]
    values = _show_option_fields(basic)
    with st.expander("More options"):
        values |= _show_option_fields(others)
    replace = st.checkbox("Replace an existing world of that name", key="generate_replace")
    st.caption("A thousand people take seconds; a million take minutes and some gigabytes of disk.")
    if st.button("Generate", key="generate_now", type="primary"):
        arguments = ["world", "generate", name, *build_command_arguments(values, options)]
        try:
            require_administrator(services, person)
            _check_generation(worlds_folder, name, values, replace=replace)
            start_world_job(services.database, name, "Generating", [*arguments, *(["--replace"] if replace else [])])
        except (StoreError, WorldError, JobError) as error:
            st.error(format_sentence(str(error)))
        else:
            st.rerun()


def _show_option_fields(options: Sequence[VerbOption]) -> dict[str, OptionValue]:
    """Draw the fields in rows of two, so that they line up."""
    values: dict[str, OptionValue] = {}
    for pair in (options[start : start + 2] for start in range(0, len(options), 2)):
        for column, field in zip(st.columns(2), pair, strict=False):
            with column:
                label = OPTION_LABELS.get(field.name, field.name.replace("_", " ").capitalize())
                choices = OPTION_CHOICES.get(field.name, ())
                values[field.name] = show_option_field(field, f"generate_{field.name}", label, choices)
    return values


def _unused_name(worlds_folder: Path) -> str:
    used = {*list_world_names(worlds_folder), *(job.name for job in list_world_jobs())}
    return next(name for number in range(1, len(used) + 2) if (name := f"world-{number}") not in used)


def _check_generation(folder: Path, name: str, values: Mapping[str, OptionValue], *, replace: bool) -> None:
    """Raise a WorldError if the name is taken or an option is out of range."""
    require_free_name(folder, name, replace=replace)
    if "split" in values:
        parse_split(str(values["split"]), str(values.get("split_by", "both")))
    options: dict[str, Any] = {
        option.name: values[option.name] for option in fields_of(GenerationOptions) if option.name in values
    }
    GenerationOptions(**options).check()


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
