"""The reference pages of the documentation, generated from what the code offers: verbs, settings, formats and so on."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from showhow.app.cli.main import VERBS, build_command_line
from showhow.evaluation.datasets import QUESTION_FORMATS
from showhow.fewshot_library.formats import FORMATS
from showhow.reasoners.registry import REASONERS
from showhow.tools.registry import BUILT_IN_TOOLS

ROOT = Path(__file__).resolve().parents[1]


def reference_pages() -> dict[str, str]:
    """The text of each generated page by its name."""
    writers = {
        "verbs": _write_verbs,
        "settings": _write_settings,
        "formats": _write_formats,
        "tools": _write_tools,
        "reasoners": _write_reasoners,
    }
    return {name: "\n".join(write()) + "\n" for name, write in writers.items()}


def commands() -> dict[str, Any]:
    """Each command of the command line by its words, such as `world import`, as Typer's objects."""
    leaves: dict[str, Any] = {}
    for name in VERBS:
        command = typer.main.get_command(build_command_line(name)).commands[name]  # type: ignore[attr-defined]
        children = getattr(command, "commands", None)
        leaves |= {f"{name} {word}": child for word, child in children.items()} if children else {name: command}
    return leaves


def _cell(text: object) -> str:
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;")


def _write_verbs() -> Iterator[str]:
    yield "# Reference: verbs\n"
    for words, command in commands().items():
        yield f"## showhow {words}\n\n{' '.join((command.help or '').split())}\n"
        yield "| Argument or option | Meaning |\n|---|---|"
        for parameter in command.params:
            is_option = parameter.param_type_name == "option"
            name = ", ".join(parameter.opts) if is_option else parameter.name.upper()
            required = "Required. " if parameter.required else ""
            yield f"| `{name}` | {required}{_cell(getattr(parameter, 'help', None) or '')} |"
        yield ""


def _write_settings() -> Iterator[str]:
    yield "# Reference: settings\n\nFrom the environment or a `.env` file.\n\n| Variable | Meaning |\n|---|---|"
    tree = ast.parse((ROOT / "showhow" / "settings.py").read_text(encoding="utf-8"))
    settings = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Settings")
    notes = {
        node.target.id: note.value.value
        for node, note in zip(settings.body, settings.body[1:], strict=False)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        if isinstance(note, ast.Expr) and isinstance(note.value, ast.Constant)
    }
    for keyword in (node for node in ast.walk(settings) if isinstance(node, ast.keyword) and node.arg):
        for name in (node.value for node in ast.walk(keyword.value) if isinstance(node, ast.Constant)):
            if isinstance(name, str) and name.startswith("SHOWHOW_"):
                yield f"| `{name}` | {_cell(notes[str(keyword.arg)])} |"
    home = "The folder of the database, the worlds and the profiles; default: the platform's folder of user data."
    yield f"| `SHOWHOW_HOME` | {home} |"


def _write_formats() -> Iterator[str]:
    yield "# Reference: formats\n\n## Traces\n\n| Format | Purpose | Import | Export |\n|---|---|---|---|"
    for entry in FORMATS.values():
        marks = ("yes" if usable else "no" for usable in (entry.read, entry.write))
        yield f"| `{entry.name}` | {_cell(entry.purpose)} | {' | '.join(marks)} |"
    yield "\n## Questions\n\n| Format | Data set or notation | Days in answers |\n|---|---|---|"
    for question_format in QUESTION_FORMATS.values():
        days = question_format.date_notation or "as most gold answers"
        yield f"| `{question_format.name}` | {_cell(question_format.title)} | {days} |"


def _write_tools() -> Iterator[str]:
    yield "# Reference: tools\n"
    for tool in BUILT_IN_TOOLS.values():
        names = ", ".join(parameter.name for parameter in tool.parameters)
        yield f"## {tool.name}({names})\n\n{' '.join(tool.description.split())}\n"
        yield "| Argument | Kind | Required | Meaning |\n|---|---|---|---|"
        for parameter in tool.parameters:
            required = "yes" if parameter.required else f"no; default {parameter.default}"
            yield f"| `{parameter.name}` | {parameter.kind} | {required} | {_cell(parameter.hint)} |"
        yield ""


def _write_reasoners() -> Iterator[str]:
    yield "# Reference: reasoners\n"
    for entry in REASONERS.values():
        yield f"## {entry.name}\n\n{entry.label}: {entry.description}.\n"
        yield f"- Cost: {entry.cost}\n- Needs: {entry.needs}"
        if entry.option_names:
            yield f"- Options: {', '.join(f'`{name}`' for name in entry.option_names)}"
        for preset, values in entry.presets.items():
            yield f"- Preset `{preset}`: {', '.join(f'`{name}={value}`' for name, value in values.items())}"
        yield ""
