"""The form that generates a fictional world.

The options of a verb as fields of a form, so that the page offers what the command line does, in the same words.
The form that imports a world, from files on the server or from uploaded ones.
"""

import inspect
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as fields_of
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile
from typer.models import OptionInfo

from app.cli.world import generate, import_
from app.cli.world_published import INSTANCE_FORMAT
from app.jobs import JobError
from app.widgets.job_panel import list_world_jobs, start_world_job
from app.widgets.plain_text import escape_markdown
from fiction.generator.split import SPLIT_MODES, parse_split
from fiction.universe.options import GenerationOptions
from worlds.folder import WorldError, list_world_names, world_folder
from worlds.importers import ARTICLE_FORMATS

OptionValue = bool | int | float | str


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
    """The options of the verb by name, in their order."""
    hints = get_type_hints(verb, include_extras=True)
    options = {}
    for name, parameter in inspect.signature(verb).parameters.items():
        base, *notes = get_args(hints[name]) if get_origin(hints[name]) is Annotated else (hints[name],)
        option = next((note for note in notes if isinstance(note, OptionInfo)), None)
        if option is None:
            continue
        kind = next((part for part in get_args(base) if part is not NoneType), base)
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
        low, high = (None if limit is None else int(limit) for limit in (lowest, highest))
        return st.number_input(label, low, high, int(field.default), step=1, key=key)
    if field.kind is float:
        least, most = (None if limit is None else float(limit) for limit in (lowest, highest))
        return st.number_input(label, least, most, float(field.default), step=0.1, key=key)
    if choices:
        options = list(dict.fromkeys((str(field.default), *choices)))
        return st.selectbox(label, options, key=key, accept_new_options=True)
    return st.text_input(label, value=str(field.default or ""), key=key)


def build_command_arguments(values: Mapping[str, OptionValue], options: Mapping[str, VerbOption]) -> list[str]:
    """The values as arguments of the command line; defaults are left out."""
    arguments = []
    for name, value in values.items():
        option = options[name]
        if value == option.default:
            continue
        # Joined by "=", so that a value that begins with a dash is not taken for an option.
        arguments.append(option.flag if option.kind is bool else f"{option.flag}={value}")
    return arguments


ARTICLE_EXTENSIONS = ["jsonl", "ndjson", "json", "gz"]
GRAPH_EXTENSIONS = ["ttl", "nt", "gz"]
SERVER_FILES, UPLOAD = "Files on the server", "Upload"


@dataclass(frozen=True, slots=True)
class WorldImportRequest:
    """The values of the form; a source is a path on the server, an upload or None."""

    name: str
    articles: str | UploadedFile | None
    graph: str | UploadedFile | None
    article_format: str
    article_filter: str
    licence: str
    replace: bool


@st.dialog("Import a world", width="large")
def show_import_dialog(worlds_folder: Path) -> None:
    """Ask for the name and the sources; a failed import shows its error and leaves nothing."""
    help_of = {name: field.help for name, field in read_verb_options(import_).items()}
    name = st.text_input("Name", key="import_name", placeholder="mine", help="Letters, digits, - and _.")
    articles, graph = _show_source_fields(help_of)
    st.caption("Articles, a graph, or both. The folder of a published PhantomWiki instance goes under Articles.")
    form = st.selectbox("Format of the articles", _article_formats(), help=help_of["form"], key="import_form")
    with st.expander("More options"):
        where = st.text_input("Only articles with", help=help_of["where"], key="import_where", placeholder="side=text")
        licence = st.text_input("Licence", help=help_of["licence"], key="import_licence", placeholder="CC BY-SA 4.0")
    replace = st.checkbox("Replace the world of that name, if there is one", key="import_replace")
    if st.button("Import", key="import_now", type="primary"):
        request = WorldImportRequest(name.strip(), articles, graph, form, where.strip(), licence.strip(), replace)
        try:
            _check_request(worlds_folder, request)
            _start_import(request)
        except (WorldError, JobError) as error:
            st.error(escape_markdown(str(error)))
        else:
            st.rerun()


def _show_source_fields(help_of: Mapping[str, str]) -> tuple[str | UploadedFile | None, str | UploadedFile | None]:
    """The fields of the articles and of the graph, as paths on the server or as uploads."""
    place = st.segmented_control(
        "From", (SERVER_FILES, UPLOAD), default=SERVER_FILES, key="import_place", required=True
    )
    if place == UPLOAD:
        return (
            st.file_uploader("Articles", ARTICLE_EXTENSIONS, help=help_of["articles"], key="import_articles_file"),
            st.file_uploader("Graph", GRAPH_EXTENSIONS, help=help_of["graph"], key="import_graph_file"),
        )
    return (
        st.text_input("Articles", help=help_of["articles"], key="import_articles", placeholder="/data/articles.jsonl"),
        st.text_input("Graph", help=help_of["graph"], key="import_graph", placeholder="/data/facts.ttl"),
    )


def _article_formats() -> list[str]:
    return ["auto", *ARTICLE_FORMATS, INSTANCE_FORMAT]


def _check_request(worlds_folder: Path, request: WorldImportRequest) -> None:
    """Raise a WorldError if the form cannot be imported as it is."""
    if world_folder(worlds_folder, request.name).exists() and not request.replace:
        raise WorldError(f"There is a world {request.name!r} already; choose another name, or have it replaced.")
    if request.article_format == INSTANCE_FORMAT and not isinstance(request.articles, str):
        raise WorldError("A published instance is a folder; put it on the server and name it there.")
    if not request.articles and not request.graph:
        raise WorldError("Name what to import: articles, a graph, or both.")
    for source in (request.articles, request.graph):
        if isinstance(source, str) and source and not Path(source).expanduser().exists():
            raise WorldError(f"There is no file or folder {source} on the server.")


def _start_import(request: WorldImportRequest) -> None:
    scratch = Path(tempfile.mkdtemp(prefix="showhow-upload-"))
    arguments = ["world", "import", request.name, f"--format={request.article_format}"]
    for flag, source, extensions in (
        ("articles", request.articles, ARTICLE_EXTENSIONS),
        ("graph", request.graph, GRAPH_EXTENSIONS),
    ):
        if source:
            arguments.append(f"--{flag}={_resolve_source(source, scratch / flag, extensions)}")
    for flag, text in (("where", request.article_filter), ("licence", request.licence)):
        if text:
            arguments.append(f"--{flag}={text}")
    if request.replace:
        arguments.append("--replace")
    try:
        start_world_job(request.name, "Importing", arguments, scratch)
    except JobError:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def _resolve_source(source: str | UploadedFile, target: Path, extensions: list[str]) -> Path:
    """The path of the source; an upload is written to the target, with the extensions that tell its format."""
    if isinstance(source, str):
        return Path(source).expanduser().resolve()
    suffixes = [suffix for suffix in Path(source.name).suffixes[-2:] if suffix[1:].lower() in extensions]
    file = target.with_name(target.name + "".join(suffixes).lower())
    with file.open("wb") as stream:
        shutil.copyfileobj(source, stream)
    return file


BASIC_OPTIONS = ("people", "seed", "split", "split_by")
"""The options at the top of the form; the others are under More options."""
EXCLUDED_OPTIONS = ("replace", "as_json")
"""Options that the form asks for itself, or that only the command line needs."""
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
    "each_count": "Count for each person",
}
OPTION_CHOICES = {
    "split": ("text=50,graph=50", "text=50,graph=35,web=15", "text=100", "graph=100"),
    "split_by": SPLIT_MODES,
}


@st.dialog("Generate a world", width="large")
def show_generate_dialog(worlds_folder: Path) -> None:
    """Ask for the name and the options; errors are shown before any work begins."""
    options = read_verb_options(generate)
    st.caption("A fictional world of families: articles, a graph and web pages, with questions and every right answer.")
    name = st.text_input("Name", value=_unused_name(worlds_folder), key="generate_name").strip()
    basic = [options[option] for option in BASIC_OPTIONS if option in options]
    others = [option for option in options.values() if option not in basic and option.name not in EXCLUDED_OPTIONS]
    values = _show_option_fields(basic)
    with st.expander("More options"):
        values |= _show_option_fields(others)
    replace = st.checkbox("Replace the world of that name, if there is one", key="generate_replace")
    st.caption("A thousand people take seconds, a million some minutes and some gigabytes of disk.")
    if st.button("Generate", key="generate_now", type="primary"):
        arguments = ["world", "generate", name, *build_command_arguments(values, options)]
        try:
            _check_generation(worlds_folder, name, values, replace=replace)
            start_world_job(name, "Generating", [*arguments, *(["--replace"] if replace else [])])
        except (WorldError, JobError) as error:
            st.error(escape_markdown(str(error)))
        else:
            st.rerun()


def _show_option_fields(options: Sequence[VerbOption]) -> dict[str, OptionValue]:
    """Draw the fields in rows of two, so that each row is level."""
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
    """Raise a WorldError if the world cannot be made."""
    if world_folder(folder, name).exists() and not replace:
        raise WorldError(f"There is a world {name!r} already; choose another name, or have it replaced.")
    if "split" in values:
        parse_split(str(values["split"]), str(values.get("split_by", "both")))
    options: dict[str, Any] = {
        option.name: values[option.name] for option in fields_of(GenerationOptions) if option.name in values
    }
    GenerationOptions(**options).check()
