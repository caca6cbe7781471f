"""The help texts of verbs, built anew after something was registered."""

import importlib
import sys
from types import ModuleType
from typing import Any

import typer


def option_help(module: str, verb: str, option: str) -> str:
    """The help of an option, such as --format, from the verb's module as the registries are now."""
    return next(parameter.help or "" for parameter in _command(module, verb).params if option in parameter.opts)


def _command(module: str, verb: str) -> Any:
    loaded = _reload(module)
    app = getattr(loaded, "app", None)
    if app is None:
        app = typer.Typer()
        app.command(verb)(getattr(loaded, verb))
    command = typer.main.get_command(app)
    commands = getattr(command, "commands", {verb: command})
    return commands[verb]


def _reload(module: str) -> ModuleType:
    """A fresh copy of the module, which replaces none that is loaded."""
    known = sys.modules.pop(module, None)
    try:
        return importlib.import_module(module)
    finally:
        if known is not None:
            sys.modules[module] = known
