"""`showhow world around | family | questions | trace | traces`: what the Worlds page shows of a world."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.output import CommandError, emit, print_progress
from app.services import services
from fiction.family import Family, GraphKinshipSource, build_family, build_universe_family
from fiction.generator.world_files import UNIVERSE_FILE
from fiction.questions.question_file import QUESTIONS_FILE, QuestionFile, QuestionFilter, QuestionSummary
from fiction.universe.universe import Universe
from worlds.folder import world_folder
from worlds.neighbourhood import MAX_VALUES, Branch, load_neighbourhood
from worlds.open import read_world_metadata
from worlds.source import GraphSource

_PROGRESS_INTERVAL = 25
"""Traces after which it is told how many there are."""
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def around(
    name: str,
    entity: str,
    most: Annotated[int, typer.Option(min=1, max=100, help="Values of each relation.")] = MAX_VALUES,
    *,
    as_json: AsJson = False,
) -> None:
    """What the graph says of an entity: its relations and some values of each."""
    found = load_neighbourhood(_graph_source(name), entity, most)
    lines = [f"{found.centre.label} ({found.centre.id})", *map(_format_branch, found.branches)]
    emit(asdict(found), "\n".join(lines), as_json=as_json)


def show_family(
    name: str,
    entity: str,
    *,
    told: Annotated[bool, typer.Option("--told", help="As the graph tells it, not as it is.")] = False,
    as_json: AsJson = False,
) -> None:
    """A person's family, from grandparents to grandchildren."""
    file = _checked_folder(name) / UNIVERSE_FILE
    if told or not file.is_file():
        found = build_family(GraphKinshipSource(_graph_source(name)), entity)
    else:
        found = build_universe_family(Universe.load(file), entity)
    if found is None:
        raise CommandError(f"{entity} has no family in the world {name}")
    emit(asdict(found), "\n".join(_format_family(found)), as_json=as_json)


def questions(  # noqa: PLR0913, PLR0917 - every option of the verb is one parameter
    name: str,
    text: Annotated[str, typer.Option(help="Only those that have this in their text.")] = "",
    kind: Annotated[str, typer.Option(help="Only those of this kind.")] = "",
    needs: Annotated[str, typer.Option(help='Only those that need these sources: "graph or text + web".')] = "",
    lowest: Annotated[int | None, typer.Option(help="The least difficulty.")] = None,
    highest: Annotated[int | None, typer.Option(help="The greatest difficulty.")] = None,
    limit: Annotated[int, typer.Option(min=1)] = 20,
    after: Annotated[int, typer.Option(min=0, help="Leave so many off.")] = 0,
    *,
    as_json: AsJson = False,
) -> None:
    """A generated world's own questions; with --json everything of their gold."""
    known = _open_questions(name)
    found = known.select(QuestionFilter(text, kind, needs, lowest, highest))[after : after + limit]
    rows: list[dict[str, Any]] = [known.load_row(head) for head in found] if as_json else []
    emit(rows, "\n".join(map(_format_question, found)) or "no questions", as_json=as_json)


def trace(name: str, question: str, *, as_json: AsJson = False) -> None:
    """The gold trace of a generated world's question, made by really running the tools; nothing is stored."""
    # Their libraries serve this verb only.
    from app.cli.traces import format_trace  # noqa: PLC0415
    from evaluation.gold_traces.world import make_world_gold_trace  # noqa: PLC0415
    from fewshot_library.formats.showhow import record_to_json  # noqa: PLC0415

    known = _open_questions(name)
    head = known.find(question)
    if head is None:
        raise CommandError(f"the world {name} has no question {question}; `showhow world questions {name}` has its own")
    record = make_world_gold_trace(services(), name, known.load_row(head))
    emit(record_to_json(record), "\n".join(format_trace(record)), as_json=as_json)
    if record.trace.status == "failed":
        raise CommandError(record.trace.final_thought or "there is no gold trace")


def traces(  # noqa: PLR0913 - every option of the verb is one parameter
    name: str,
    to: Annotated[Path, typer.Option(help="The file to write, as `showhow traces import` reads it.")],
    kind: Annotated[str, typer.Option(help="Only for questions of this kind.")] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="For at most so many questions.")] = None,
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """The gold traces of a generated world's questions, into a file; what fails is told with its reason."""
    # Their libraries serve this verb only.
    from app.cli.output import open_atomically  # noqa: PLC0415
    from evaluation.gold_traces.world import make_world_gold_traces  # noqa: PLC0415
    from fewshot_library.formats.showhow import record_to_json  # noqa: PLC0415

    known = _open_questions(name)
    rows = map(known.load_row, known.select(QuestionFilter(kind=kind))[:limit])
    written, failed = 0, []
    with open_atomically(to, force=force) as stream:
        for record in make_world_gold_traces(services(), name, rows):
            if record.trace.status == "failed":
                failed.append({"question": record.question.source_id, "reason": record.trace.final_thought})
                print_progress(f"{record.question.source_id}: {record.trace.final_thought}")
                continue
            stream.write(json.dumps(record_to_json(record), ensure_ascii=False).encode() + b"\n")
            written += 1
            if not written % _PROGRESS_INTERVAL:
                print_progress(f"{written} traces made")
    emit({"written": written, "failed": failed}, f"{written} traces written, {len(failed)} failed", as_json=as_json)


def _open_questions(name: str) -> QuestionFile:
    file = _checked_folder(name) / QUESTIONS_FILE
    if not file.is_file():
        raise CommandError(f"the world {name} has no questions of its own; a generated one has")
    return QuestionFile(file)


def _checked_folder(name: str) -> Path:
    read_world_metadata(services().settings.worlds_folder, name)
    return world_folder(services().settings.worlds_folder, name)


def _graph_source(name: str) -> GraphSource:
    found = services().open_world(name).graph
    if found is None:
        raise CommandError(f"the world {name} has no graph")
    return found


def _format_branch(branch: Branch) -> str:
    values = ", ".join(value.label for value in branch.values)
    return f"{branch.relation.label} {'->' if branch.outgoing else '<-'} {values}{', ...' if branch.more else ''}"


def _format_family(found: Family) -> list[str]:
    label = {person.id: person.label for person in found.people.values()}
    kin = {
        "parents": found.parents.get(found.centre, ()),
        "siblings": found.siblings,
        "partners": found.partners.get(found.centre, ()),
        "children": found.children(found.centre),
    }
    lines = [f"{what}: {', '.join(label[one] for one in people)}" for what, people in kin.items() if people]
    return [f"{label[found.centre]} ({found.centre})", *lines]


def _format_question(head: QuestionSummary) -> str:
    return f"{head.id}: {head.text} ({head.kind}, {head.answers} answers, needs {head.needs or 'not known'})"
