"""The arguments of a function by its signature: as JSON Schema, and checked and converted for a call."""

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, Field, create_model

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Loose(Exception):
    """Arguments without a name of their own, of which no form can be made."""


class Signature:
    """What a function takes; whatever is wrong with its types is raised by making one."""

    def __init__(self, function: Callable[..., Any]) -> None:
        parameters = inspect.signature(function).parameters.values()
        if loose := [parameter.name for parameter in parameters if parameter.kind not in _NAMED]:
            raise Loose(", ".join(loose))
        hints = get_type_hints(function, include_extras=True)
        # Pydantic's fields have names of ours, because its own, and ones with a _ before them, no field can have.
        self._fields = {f"argument_{n}": parameter.name for n, parameter in enumerate(parameters)}
        fields: dict[str, Any] = {
            field: _field(hints.get(parameter.name, Any), parameter)
            for field, parameter in zip(self._fields, parameters, strict=True)
        }
        self._model: type[BaseModel] = create_model("arguments", **fields)
        self.schema: dict[str, Any] = self._model.model_json_schema()

    def bound(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call; a ValidationError names those that the types do not take."""
        checked = self._model.model_validate(dict(given))
        return {name: getattr(checked, field) for field, name in self._fields.items()}


def _field(hint: Any, parameter: inspect.Parameter) -> tuple[Any, Any]:
    notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    if about := next((note for note in notes if isinstance(note, str)), None):
        hint = Annotated[hint, Field(description=about)]
    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    return hint, Field(default, alias=parameter.name)
