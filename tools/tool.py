"""A tool is one function: its signature and docstring are its schema, in one place.

    def read(context: Context, title: Annotated[str, "..."], question: Annotated[str, "..."]) -> Observation

It returns text for the reader of the prompt and data for the page and for replay, or raises a ToolError or SourceError
whose message is one sentence in plain words.
"""

import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, get_args, get_type_hints

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from llm.client import ChatClient
from llm.errors import ChatError
from llm.usage import Usage
from tools.errors import ToolError
from tools.external.limits import ToolLimits
from tools.parameter import Parameter, parse_parameters
from worlds.source import ErrorKind, SourceError, World


class EncodeFunction(Protocol):
    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """One row of unit length a text: float32, shape (len(texts), dimensions)."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool works with: the world, for meaning an encoder of texts and, where one is set up, a language model."""

    world: World
    encode: EncodeFunction
    chat: ChatClient | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """What a tool found: `text` for the prompt, `data` (JSON values only) for the page and for replay."""

    text: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """How a call went: an observation or an error, and the seconds it took."""

    observation: Observation | None
    error: str | None
    seconds: float
    usage: Usage | None = None
    """What the tool's own calls of the language model took, failed ones too; None where there was none."""
    error_kind: ErrorKind | None = None
    """The kind of the error; None without an error."""


_MAX_ERROR_CHARACTERS = 500
ToolFunction = Callable[[ToolContext, Mapping[str, Any]], Observation]


@dataclass(frozen=True, eq=False)
class Tool:
    """What annotators and models call: one of ours, or somebody else's (tools/foreign/)."""

    name: str
    title: str
    """What the button says."""
    description: str
    schema: dict[str, Any]
    """The arguments as JSON Schema."""
    function: ToolFunction
    parameters: tuple[Parameter, ...]
    """The arguments in order, without the context."""
    needs_web: bool = False
    """Whether it is offered only where the world has web pages."""
    limits: ToolLimits | None = None
    """What a call of somebody else's tool is held to; ours are held by the sources of the world."""
    origin: str | None = None
    """Where somebody else's tool comes from, in words."""

    @classmethod
    def from_function(cls, name: str, title: str, function: Callable[..., Observation], *, web: bool = False) -> "Tool":
        """A function whose signature and docstring are the tool's schema; its first parameter is the context."""
        checked = _arguments_model(name, function)
        schema = _without_titles(checked.model_json_schema())
        parameters = tuple(replace(p, item_kind="id") if p.kind == "list" else p for p in parse_parameters(schema))
        work = partial(_run_validated, name, function, checked)
        return cls(name, title, inspect.cleandoc(function.__doc__ or ""), schema, work, parameters, web)

    def call(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """Run the tool; a wrong argument, a tool's error and a source's error become the outcome's error.

        So does whatever somebody else's tool fails with, and that it takes longer than its limit.
        """
        started = time.perf_counter()
        observation, error, error_kind = None, None, None
        chat = context.chat and context.chat.with_new_meter().with_purpose(f"tool:{self.name}")
        try:
            work = partial(self.function, replace(context, chat=chat), arguments)
            observation = self.limits.run_limited(self.name, work) if self.limits else work()
        except (ToolError, ChatError, SourceError) as failed:
            error, error_kind = _to_single_line(str(failed)), failed.kind
        usage = chat.total_usage if chat and chat.total_usage.calls else None
        return ToolResult(observation, error, time.perf_counter() - started, usage, error_kind)


def _to_single_line(error: str) -> str:
    """The sentence without what no line can hold, and without the middle of what is quoted in it at length."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in error).split())
    half = _MAX_ERROR_CHARACTERS // 2
    return line if len(line) <= _MAX_ERROR_CHARACTERS else f"{line[:half]} ... {line[-half:]}"


def _arguments_model(name: str, function: Callable[..., Observation]) -> type[BaseModel]:
    """The function's arguments as a pydantic model, which refuses unknown names."""
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for argument in list(inspect.signature(function).parameters)[1:]:
        hint = next((note for note in get_args(hints[argument])[1:] if isinstance(note, str)), "")
        fields[argument] = (hints[argument], Field(description=hint))
    return create_model(f"{name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)


def _without_titles(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without the second name that pydantic gives to everything."""
    properties = {name: {k: v for k, v in told.items() if k != "title"} for name, told in schema["properties"].items()}
    return {k: v for k, v in schema.items() if k != "title"} | {"properties": properties}


def _run_validated(
    name: str,
    function: Callable[..., Observation],
    checked: type[BaseModel],
    context: ToolContext,
    arguments: Mapping[str, Any],
) -> Observation:
    try:
        given = checked.model_validate(dict(arguments))
    except ValidationError as wrong:
        sentence = describe_argument_errors(name, wrong, checked.model_fields)
        raise ToolError(sentence, ErrorKind.WRONG_ARGUMENTS) from wrong
    return function(context, **{argument: getattr(given, argument) for argument in checked.model_fields})


def describe_argument_errors(name: str, wrong: ValidationError, known: Iterable[str]) -> str:
    """What is wrong with the arguments of a call, and which ones the tool takes."""
    places = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg'].lower()}" for e in wrong.errors())
    return f"{name} cannot run: {places}. It takes {', '.join(known)}."
