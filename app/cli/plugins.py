"""`showhow plugins`: what other installed packages add, and what of it is left out."""

from dataclasses import asdict

from showhow.app.cli.output import AsJson, emit
from showhow.app.plugins import list_plugin_problems, list_plugins
from showhow.app.services import current_services


def plugins(*, as_json: AsJson = False) -> None:
    """List what other installed packages add, by package, and why anything of them is left out."""
    entries, problems = list_plugins(), list(list_plugin_problems())
    lines = [f"{entry.kind} {entry.name}: {entry.package}" for entry in entries] + problems
    if not lines:
        is_on = current_services().settings.plugins
        lines = ["No other package adds anything." if is_on else "Plugins are turned off by SHOWHOW_PLUGINS."]
    value = {"plugins": [asdict(entry) for entry in entries], "problems": problems}
    emit(value, "\n".join(lines), as_json=as_json)
