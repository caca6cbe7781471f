"""`showhow reasoners list | show NAME`: the methods that answer questions, and the options of each."""

from dataclasses import MISSING
from typing import Annotated, Any

import typer

from showhow.app.cli.output import AsJson, CommandError, emit
from showhow.app.field_docstrings import read_field_docstrings
from showhow.reasoners.registry import DEFAULT_PRESET, REASONERS, ReasonerEntry, UnknownReasoner, find_reasoner

app = typer.Typer(no_args_is_help=True, help="List the reasoners, and show the options of one.")


@app.command("list")
def list_reasoners(*, as_json: AsJson = False) -> None:
    """List the reasoners."""
    rows = [_describe(entry) for entry in REASONERS.values()]
    lines = [f"{row['name']:22} {row['description']}" + ("" if row["needs_model"] else "; no model") for row in rows]
    emit(rows, "\n".join(lines), as_json=as_json)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A reasoner that `reasoners list` lists.")], *, as_json: AsJson = False
) -> None:
    """Show what a reasoner does and costs, its skills, and its options with their choices and defaults."""
    try:
        entry = find_reasoner(name)
    except UnknownReasoner as error:
        raise CommandError(str(error)) from error
    options = _list_options(entry)
    skills = [skill.name for skill in entry.skills]
    presets: dict[str, Any] = {DEFAULT_PRESET: {}} | {name: dict(values) for name, values in entry.presets.items()}
    described = _describe(entry) | {"skills": skills, "presets": presets, "options": options}
    lines = [f"{entry.label}: {entry.description}"]
    lines += [f"costs {entry.cost}"] if entry.cost else []
    lines += [f"needs {entry.needs}"] if entry.needs else []
    lines += [f"at most {entry.default_step_limit:,} steps, unless --steps says otherwise"]
    lines += [f"skills: {', '.join(skills)}"] if skills else []
    lines += [f"presets: {', '.join(presets)}"] if len(presets) > 1 else []
    for option in options:
        choices = f" ({', '.join(option['choices'])})" if option["choices"] else ""
        preset = "".join(f", {value} with --preset {name}" for name, value in option["presets"].items())
        line = f"  --option {option['name']}={option['default']}{choices}{preset}  {option['meaning']}"
        lines.append(" ".join(line.rstrip().splitlines()))
    emit(described, "\n".join(lines), as_json=as_json)


def _describe(entry: ReasonerEntry) -> dict[str, Any]:
    names = (
        "name",
        "label",
        "description",
        "cost",
        "needs",
        "needs_model",
        "uses_demonstrations",
        "default_step_limit",
    )
    return {name: getattr(entry, name) for name in names}


def _list_options(entry: ReasonerEntry) -> list[dict[str, Any]]:
    meanings = read_field_docstrings(entry.options)
    return [
        {
            "name": field.name,
            "default": None if field.default is MISSING else field.default,
            "choices": list(entry.list_choices(field)),
            "presets": {name: values[field.name] for name, values in entry.presets.items() if field.name in values},
            "meaning": meanings.get(field.name, ""),
        }
        for field in entry.own_options
    ]
