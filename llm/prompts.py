"""Prompt templates: one Jinja file each, in the folder `prompts` of the package that uses them."""

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


class PromptTemplates:
    """The templates in the folder `prompts` of a package."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._environment: Environment | None = None

    def __call__(self, name: str, **values: Any) -> str:
        """Render a template; a variable without a value is an error."""
        if self._environment is None:
            # Created on first use, since the loader imports the package.
            self._environment = Environment(
                loader=PackageLoader(self._package, "prompts"),
                undefined=StrictUndefined,
                trim_blocks=True,
                lstrip_blocks=True,
                autoescape=False,  # noqa: S701 - prompts are plain text, not a page
            )
        return self._environment.get_template(f"{name}.jinja").render(values).strip()
