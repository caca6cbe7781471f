"""Tasks over whole worlds: generate, import, verify and export one."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from showhow.fiction.universe.options import GenerationOptions
from showhow.option_fields import group, option
from showhow.runs.services import Services
from showhow.tasks.progress import make_stage_printer, print_progress
from showhow.tasks.task import TaskError, fail_on_interrupt, require_role
from showhow.worlds.article_files import read_articles
from showhow.worlds.build import WorldContents, build_world

if TYPE_CHECKING:
    from showhow.fiction.phantomwiki.articles import InstanceExport
    from showhow.fiction.verification import VerificationReport
    from showhow.tasks.imports import QuestionImportPlan

# The libraries of generated worlds and of the store are large, so that each task imports its own.

ADMIN = "admin"
INSTANCE_FORMAT = "phantomwiki"
_REPLACE_HELP = "Replace an existing world of that name."


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateWorld:
    """A fictional world of families: articles, a graph and web pages, with questions and gold answers."""

    name: str = option(is_argument=True)
    options: GenerationOptions = group(GenerationOptions, "People, facts and questions")
    processes: int = option(0, "Processes that write articles; 0 chooses the number.", minimum=0, maximum=64)
    replace: bool = option(default=False, help=_REPLACE_HELP)


def generate(services: Services, request: GenerateWorld) -> dict[str, Any]:
    """Generate the world; returns the metadata of its world.toml."""
    require_role(services, ADMIN)
    from showhow.fiction.generator.build import generate_world  # noqa: PLC0415

    with fail_on_interrupt(f"The generation was stopped; the world {request.name} was not made."):
        return generate_world(
            services.settings.worlds_folder,
            request.name,
            request.options,
            progress=make_stage_printer(),
            replace=request.replace,
            processes=request.processes or None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportWorld:
    """A world from files, and if wanted a project over it."""

    name: str = option(is_argument=True)
    articles: Path | None = option(
        None, "A file, a folder or a zip archive: JSON Lines, or documents (.txt, .md, .html, .pdf, .docx)."
    )
    graph: Path | None = option(None, "A Turtle or N-Triples file, plain or .gz.")
    form: str = option(
        "auto",
        "auto, jsonl, hotpotqa, 2wiki, document or phantomwiki; auto recognizes each.",
        label="Format of the articles",
        flag="--format",
    )
    where: tuple[str, ...] = option((), "Only articles with FIELD=VALUE; may be repeated.", label="Only articles with")
    licence: str | None = option(None, "The licence of the texts.")
    project: str | None = option(None, "Also make a project of this name over the world.")
    questions: Path | None = option(None, "A file with the questions of the project.")
    column: tuple[str, ...] = option((), "As of `showhow questions import`: question=Frage; may be repeated.")
    replace: bool = option(default=False, help=_REPLACE_HELP)


@dataclass(frozen=True, slots=True)
class ImportedWorld:
    """The metadata of the world.toml, and what was made in lines for people."""

    metadata: dict[str, Any]
    lines: list[str]


def import_(services: Services, request: ImportWorld) -> ImportedWorld:
    """Make the world; after a malformed line the unfinished world is removed."""
    require_role(services, ADMIN)
    plan = _plan_project(services, request)
    articles, graph = request.articles, request.graph
    if articles is None and graph is None:
        raise TaskError("name what to import: --articles, --graph or both")
    conditions = dict(map(_parse_condition, request.where))
    is_instance = request.form == INSTANCE_FORMAT or (
        request.form == "auto" and graph is None and _is_instance_folder(articles)
    )
    left_out: list[str] = []
    print_progress(f"importing {request.name} ...")
    with fail_on_interrupt(f"The import was stopped; the world {request.name} was not made."):
        if is_instance:
            metadata = _import_instance(services, request, conditions)
        else:
            description = {
                "licence": request.licence,
                "where": [f"{name}={value}" for name, value in conditions.items()] or None,
                # It is filled while the documents are read, and written after that.
                "left_out": left_out,
            }
            records = None if articles is None else read_articles(articles, request.form, conditions, left_out)
            contents = WorldContents(records, graph, description)
            metadata = build_world(services.settings.worlds_folder, request.name, contents, replace=request.replace)
    units = ("people", "articles", "triples", "questions") if is_instance else ("articles", "triples")
    lines = [f"{request.name}: {', '.join(f'{metadata[unit]:,} {unit}' for unit in units)}"]
    lines += [f"left out: {sentence}" for sentence in left_out]
    if plan is not None:
        lines.append(_make_project(services, plan, request.questions))
    return ImportedWorld(metadata, lines)


def _is_instance_folder(articles: Path | None) -> bool:
    if articles is None or not articles.is_dir():
        return False
    # Loaded for folders only, since the Parquet library is large.
    from showhow.fiction.phantomwiki.instance import is_instance_folder  # noqa: PLC0415

    return is_instance_folder(articles)


def _import_instance(services: Services, request: ImportWorld, conditions: dict[str, str]) -> dict[str, Any]:
    from showhow.fiction.phantomwiki.instance import import_instance  # noqa: PLC0415

    if request.articles is None or request.graph is not None:
        raise TaskError("name the folder of the instance with --articles; its graph is made from its facts")
    if unknown := sorted(set(conditions) - {"split"}):
        raise TaskError(f"an instance takes only --where split=NAME, not {unknown[0]!r}")
    folder, options = services.settings.worlds_folder, {"licence": request.licence, **conditions}
    return import_instance(folder, request.name, request.articles, options, replace=request.replace)


def _parse_condition(text: str) -> tuple[str, str]:
    field, equals, value = text.partition("=")
    if not equals or not field:
        raise TaskError(f"--where takes FIELD=VALUE, not {text!r}")
    return field, value


def _plan_project(services: Services, request: ImportWorld) -> "QuestionImportPlan | None":
    """What becomes a project over the world, checked before the world is made; None without a project."""
    if request.project is None:
        if request.questions is not None:
            raise TaskError("name the project of the questions with --project")
        return None
    from showhow.db.questions.projects import find_project  # noqa: PLC0415
    from showhow.evaluation.datasets import open_question_file  # noqa: PLC0415
    from showhow.guard.input_bounds import bounded_work  # noqa: PLC0415
    from showhow.tasks.imports import QuestionImportPlan  # noqa: PLC0415
    from showhow.tasks.questions import parse_column  # noqa: PLC0415

    with services.database.read() as session:
        if find_project(session, request.project) is not None:
            raise TaskError(f"there is a project {request.project!r} already; choose another name")
    plan = QuestionImportPlan(request.project, request.name, columns=dict(map(parse_column, request.column)))
    if request.questions is not None:
        with bounded_work(request.questions):
            open_question_file(request.questions, plan.form, plan.language, plan.columns).survey()
    return plan


def _make_project(services: Services, plan: "QuestionImportPlan", questions: Path | None) -> str:
    """Make the project with its questions; returns a line about it."""
    from showhow.db.questions.projects import create_project  # noqa: PLC0415
    from showhow.guard.input_bounds import bounded_work  # noqa: PLC0415
    from showhow.tasks.imports import import_questions  # noqa: PLC0415

    if questions is None:
        with services.database.begin() as session:
            create_project(session, plan.project, plan.world or "")
        return f"{plan.project}: a project without questions"
    with bounded_work(questions):
        report = import_questions(services, questions, plan)
    return f"{plan.project}: {'; '.join(report.lines())}"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyWorld:
    """A generated or published world whose statements are derived again."""

    name: str = option(is_argument=True)


def verify(services: Services, request: VerifyWorld) -> "VerificationReport":
    """Derive every answer and fact of the world again, and compare."""
    from showhow.fiction.verification import verify_world  # noqa: PLC0415

    return verify_world(services.settings.worlds_folder, request.name, lambda check: print_progress(str(check)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportWorld:
    """A generated world in the file layout of others."""

    name: str = option(is_argument=True)
    to: Path = option(help="A new or empty folder.")
    form: str = option(INSTANCE_FORMAT, f"{INSTANCE_FORMAT}.", flag="--format")


def export(services: Services, request: ExportWorld) -> "InstanceExport":
    """Write the files, so that PhantomWiki's evaluator can run on them."""
    from showhow.fiction.phantomwiki.articles import export_instance  # noqa: PLC0415

    if request.form != INSTANCE_FORMAT:
        raise TaskError(f"there is no export format {request.form!r} for worlds; use {INSTANCE_FORMAT}")
    return export_instance(services.settings.worlds_folder, request.name, request.to)
