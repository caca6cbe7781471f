"""A tool is one function: its signature and docstring are its schema, in one place.

    def read(context: Context, title: Annotated[str, "..."], question: Annotated[str, "..."]) -> Observation

It returns text for the reader of the prompt and data for the page and for replay, or raises a ToolError or SourceError
whose message is one sentence in plain words.
"""

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Protocol, get_args, get_origin, get_type_hints

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from worlds.source import SourceError, World


class ToolError(Exception):
    """A tool cannot do what it was asked; the message says why and what to do next."""


class Encode(Protocol):
    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """One row of unit length a text: float32, shape (len(texts), dimensions)."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a tool works with: the world and, for meaning, an encoder of texts."""

    world: World
    encode: Encode


@dataclass(frozen=True, slots=True)
class Observation:
    """What a tool found: `text` for the prompt, `data` (JSON values only) for the page and for replay."""

    text: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call went: an observation or an error, and the seconds it took."""

    observation: Observation | None
    error: str | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a tool: `kind` is text or list (of texts), `hint` one phrase for the form."""

    name: str
    kind: str
    hint: str


@dataclass(frozen=True)
class Tool:
    """A function as annotators and models see it."""

    name: str
    title: str
    """What the button says."""
    function: Callable[..., Observation]
    web: bool = False
    """Whether it is offered only where the world has web pages."""

    @property
    def description(self) -> str:
        """The function's docstring."""
        return inspect.cleandoc(self.function.__doc__ or "")

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The arguments in order, without the context."""
        hints = get_type_hints(self.function, include_extras=True)
        found = []
        for name in list(inspect.signature(self.function).parameters)[1:]:
            base, *notes = get_args(hints[name]) if get_origin(hints[name]) is Annotated else (hints[name],)
            found.append(
                Parameter(name, "list" if get_origin(base) is list else "text", str(notes[0]) if notes else "")
            )
        return tuple(found)

    @cached_property
    def schema(self) -> type[BaseModel]:
        """The arguments as a pydantic model, which refuses unknown names."""
        hints = get_type_hints(self.function, include_extras=True)
        fields: dict[str, Any] = {p.name: (hints[p.name], Field(description=p.hint)) for p in self.parameters}
        return create_model(f"{self.name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)

    def call(self, context: Context, arguments: Mapping[str, Any]) -> Outcome:
        """Run the tool; a wrong argument, a tool's error and a source's error become the outcome's error."""
        started = time.perf_counter()
        observation, error = None, None
        try:
            checked = self.schema.model_validate(dict(arguments))
            observation = self.function(
                context, **{name: getattr(checked, name) for name in type(checked).model_fields}
            )
        except ValidationError as wrong:
            error = self._explain(wrong)
        except (ToolError, SourceError) as failed:
            error = str(failed)
        return Outcome(observation, error, time.perf_counter() - started)

    def _explain(self, wrong: ValidationError) -> str:
        places = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg'].lower()}" for e in wrong.errors())
        return f"{self.name} cannot run: {places}. It takes {', '.join(p.name for p in self.parameters)}."
