"""A tool is one function: its signature and docstring are its schema.

    def read(context: ToolContext, title: Annotated[str, "...", Accepts("title")], question: Annotated[str, "..."])
        -> Observation

It returns text for the prompt and data for the page and for replay, or raises a ToolError or SourceError with a message
of one plain sentence. All other metadata of a tool are fields of Tool or of its parameters.
"""

import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, get_args, get_type_hints
from uuid import UUID

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from showhow.guard.redaction import NOTHING_SECRET, Redactor
from showhow.llm.client import ChatClient
from showhow.llm.errors import ChatError
from showhow.llm.usage import Usage
from showhow.tools.arguments import Accepts, Label, NotOffered, Parameter, ToolError, parse_parameters
from showhow.tools.limits import ToolLimits, bound_data, bound_text
from showhow.worlds.source import ErrorKind, SourceError, World

if TYPE_CHECKING:
    from showhow.llm.telemetry import Telemetry


class EncodeFunction(Protocol):
    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Return one unit vector per text: float32, shape (len(texts), dimensions)."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The resources of a tool call: a world, a sentence encoder and, if one is configured, a language model."""

    world: World
    encode: EncodeFunction
    chat: ChatClient | None = None
    telemetry: "Telemetry | None" = None
    """Writes a span of each call; None writes none."""
    redactor: Redactor = NOTHING_SECRET
    """Removes secrets from what tools return, so that the reasoner, the page and the store have the same text."""
    by_person: bool = False
    """Whether a person typed the arguments; then `read` may open any page of the web, not only results of searches."""


class SourceKind(StrEnum):
    """The kind of source that a tool reads."""

    TEXT = "text"
    GRAPH = "graph"
    WEB = "web"


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of a tool: `text` for the prompt, `data` (JSON values only) for the page and for replay."""

    text: str
    data: dict[str, Any]

    def redacted(self, redactor: Redactor) -> "Observation":
        """The observation without secrets."""
        return Observation(redactor.redact(self.text), redactor.redact_json(self.data))

    def bounded(self) -> "Observation":
        """The observation at the size that a step stores; its text says what was cut."""
        data, notes = bound_data(self.data)
        return Observation("\n".join([bound_text(self.text), *notes]), data)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The outcome of a call: an observation or an error, and the seconds it took."""

    observation: Observation | None
    error: str | None
    seconds: float
    usage: Usage | None = None
    """The usage of the tool's own model calls, failed ones included; None if it made none."""
    error_kind: ErrorKind | None = None
    """The kind of the error; None without an error."""
    step_id: UUID | None = None
    """The id of the step that called the tool, set by the run that recorded it."""
    step_position: int | None = None


_SOURCE_NOUNS: Mapping[SourceKind | None, str] = {
    SourceKind.TEXT: "articles",
    SourceKind.GRAPH: "a graph",
    SourceKind.WEB: "web pages",
}
_MAX_ERROR_CHARACTERS = 500
ToolFunction = Callable[[ToolContext, Mapping[str, Any]], Observation]


@dataclass(frozen=True, eq=False)
class Tool:
    """A tool that annotators and agents call: a built-in one, or an external one (tools/external/)."""

    name: str
    title: str
    """The label of its button."""
    description: str
    schema: dict[str, Any]
    """The arguments as JSON Schema."""
    function: ToolFunction
    parameters: tuple[Parameter, ...]
    """The arguments in order, without the context."""
    source: SourceKind | None = None
    """The kind of source that it reads; None for external tools."""
    other_source: SourceKind | None = None
    """The kind of source that it reads too, where the world has it."""
    needs_source: bool = False
    """Whether it is offered only in worlds that have this source."""
    next_tool: str | None = None
    """The name of the tool that usually uses its observation, which forms then suggest."""
    not_offered: tuple[Parameter, ...] = ()
    """The parameters that only buttons set."""
    limits: ToolLimits | None = None
    """The limits of a call of an external tool; None for built-in tools, which the sources of the world limit."""
    origin: str | None = None
    """A phrase that names the provider of an external tool."""

    @classmethod
    def from_function(
        cls,
        name: str,
        title: str,
        function: Callable[..., Observation],
        source: SourceKind,
        *,
        next_tool: str | None = None,
    ) -> "Tool":
        """Make a tool of a function; its first parameter is the context, the others become the schema.

        What is marked as NotOffered stays out of it: buttons set it, such as that for more results.
        """
        model = _arguments_model(name, function)
        schema = _without_titles(model.model_json_schema())
        hints = get_type_hints(function, include_extras=True)
        every = tuple(_annotate(parameter, hints[parameter.name]) for parameter in parse_parameters(schema))
        offered = {
            n: f for n, f in schema["properties"].items() if NotOffered not in getattr(hints[n], "__metadata__", ())
        }
        schema |= {"properties": offered}
        parameters = tuple(parameter for parameter in every if parameter.name in offered)
        not_offered = tuple(parameter for parameter in every if parameter.name not in offered)
        run = partial(_run_validated, name, function, model)
        description = inspect.cleandoc(function.__doc__ or "")
        return cls(
            name, title, description, schema, run, parameters, source, next_tool=next_tool, not_offered=not_offered
        )

    def has_source_in(self, world: World | None) -> bool:
        """Whether the world has a source that the tool reads, if it reads one."""
        read = [kind for kind in (self.source, self.other_source) if kind is not None]
        return not read or any(_list_sources(world).get(kind) is not None for kind in read)

    def is_available_in(self, world: World | None) -> bool:
        """Whether the world has the source that the tool needs."""
        if self.needs_source:
            return self.source is not None and self.has_source_in(world)
        # A tool whose source another one may replace says so when it is called; without any source none has a use.
        return self.has_source_in(world) or world is None or any(_list_sources(world).values())

    def missing_source_message(self) -> str:
        """The sentence for a world that does not have the source."""
        return f"{self.name} needs a world with {_SOURCE_NOUNS.get(self.source, 'its source')}."

    def call(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """Run the tool; a ToolError, SourceError or ChatError becomes the error of the result."""
        if context.telemetry is None:
            return self._call(context, arguments)
        with context.telemetry.tool_call(self.name, arguments) as span:
            result = self._call(context, arguments)
            if result.error is not None:
                span.set_error(str(result.error_kind), result.error)
            elif result.observation is not None:
                span.set_content("gen_ai.tool.call.result", result.observation.text)
            return result

    def _call(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        started = time.perf_counter()
        observation, error, error_kind = None, None, None
        chat = context.chat and context.chat.with_new_meter().with_purpose(f"tool:{self.name}")
        try:
            work = partial(self.function, replace(context, chat=chat), arguments)
            complete = self.limits.run_limited(self.name, work) if self.limits else work()
            # A secret that is cut in two could not be recognized.
            observation = complete.redacted(context.redactor).bounded()
        except (ToolError, ChatError, SourceError) as failure:
            error, error_kind = to_single_line(context.redactor.redact(str(failure))), failure.kind
        usage = chat.total_usage if chat and chat.total_usage.calls else None
        return ToolResult(observation, error, time.perf_counter() - started, usage, error_kind)


def to_single_line(error: str) -> str:
    """The message as one line of printable characters; the middle of a long message is cut."""
    line = " ".join("".join(char if char.isprintable() else " " for char in error).split())
    half = _MAX_ERROR_CHARACTERS // 2
    return line if len(line) <= _MAX_ERROR_CHARACTERS else f"{line[:half]} ... {line[-half:]}"


def _list_sources(world: World | None) -> dict[SourceKind, object]:
    if world is None:
        return {}
    return {SourceKind.TEXT: world.text, SourceKind.GRAPH: world.graph, SourceKind.WEB: world.web}


def _arguments_model(name: str, function: Callable[..., Observation]) -> type[BaseModel]:
    """The function's arguments, with their defaults, as a pydantic model that refuses unknown names."""
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        hint = hints[parameter.name]
        description = next((text for text in get_args(hint)[1:] if isinstance(text, str)), "")
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[parameter.name] = (hint, Field(default, description=description))
    return create_model(f"{name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)


def _annotate(parameter: Parameter, hint: Any) -> Parameter:
    """The parameter with what its annotation declares: the values that it accepts, and its label."""
    for annotation in get_args(hint)[1:]:
        if isinstance(annotation, Accepts):
            is_id_list = parameter.kind == "list" and "entity" in annotation.kinds
            item_kind = "id" if is_id_list else parameter.item_kind
            parameter = replace(parameter, accepts=annotation.kinds, item_kind=item_kind)
        elif isinstance(annotation, Label):
            parameter = replace(parameter, title=annotation.text)
    return parameter


def _without_titles(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without the titles that pydantic adds."""
    properties = {
        name: {key: value for key, value in field.items() if key != "title"}
        for name, field in schema["properties"].items()
    }
    return {key: value for key, value in schema.items() if key != "title"} | {"properties": properties}


def _run_validated(
    name: str,
    function: Callable[..., Observation],
    model: type[BaseModel],
    context: ToolContext,
    arguments: Mapping[str, Any],
) -> Observation:
    try:
        values = model.model_validate(dict(arguments))
    except ValidationError as error:
        message = describe_argument_errors(name, error, model.model_fields)
        raise ToolError(message, ErrorKind.WRONG_ARGUMENTS) from error
    return function(context, **{field: getattr(values, field) for field in model.model_fields})


def describe_argument_errors(name: str, error: ValidationError, parameters: Iterable[str]) -> str:
    """One message with the errors of a call's arguments and the names of the tool's parameters."""
    problems = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg'].lower()}" for e in error.errors())
    return f"{name} cannot run: {problems}. It takes {', '.join(parameters)}."
