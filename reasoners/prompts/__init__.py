"""What language models are told: one template a file, rendered strictly."""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template


@cache
def _template(name: str) -> Template:
    return _environment().get_template(f"{name}.jinja")


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("reasoners", "prompts"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - prompts are plain text, not a page
    )


def prompt(name: str, **values: Any) -> str:
    """The prompt of that name with these values; one that the template names and nobody gave is an error."""
    return _template(name).render(values).strip()
