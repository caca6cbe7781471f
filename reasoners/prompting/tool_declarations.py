"""Tools as they are declared to a model: each takes the thought as its first argument, and `finish` ends the run.

The thought of a call is taken out before the tool runs. So thoughts are kept with every model, also with one that
writes no text beside its calls.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Any

from showhow.db.questions.answer_formats import AnswerFormat, AnswerKind
from showhow.db.questions.projects import DEFAULT_INSTRUCTION
from showhow.db.traces.recording import TraceAnswers
from showhow.db.unanswerable import UnanswerableReason, write_unanswerable
from showhow.reasoners.answers.extraction import final_or_empty, join_answers, strip_answer_markup, strip_or_none
from showhow.tools.tool import Tool

FINISH_NAME = "finish"
UNANSWERABLE_NAME = "cannot_be_answered"
"""The argument of finish with the reason why the question cannot be answered."""
_THOUGHT_NAMES = ("thought", "thought_before", "thought_before_call")
_THOUGHT_DESCRIPTION = "what you know, what is missing, why this helps"
_FINAL_THOUGHT_DESCRIPTION = "why this is the answer"
_FINISH_DESCRIPTION = "End with the answer, as soon as you know enough, or once you see that it cannot be found."
_MAX_ANSWERS = 1_000
_FREE_TEXT = AnswerFormat()


class InvalidFinish(ValueError):
    """The arguments of finish name no answer; the message says how to call it."""


@dataclass(frozen=True, slots=True)
class ToolDeclaration:
    """A tool as a model sees it."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Finish:
    """The arguments of `finish`; lists stay lists, since a comma may be part of an answer."""

    answers: tuple[str, ...]
    """Empty if the answer cannot be found."""
    text_says: tuple[str, ...] | None = None
    """None if the call does not say."""
    graph_says: tuple[str, ...] | None = None
    steps: tuple[int, ...] = ()
    """The steps that show the answer."""
    thought: str = ""
    value: str | None = None
    """The JSON value that is the answer, as text; None for free text, and if it cannot be found.

    That the question cannot be answered stands here and in `answers`, as its text.
    """
    is_done: bool = True
    """Whether the task is done."""

    def to_answers(self, last_source: str | None, sources: str) -> TraceAnswers:
        """The answers as a trace stores them.

        `last_source` (text, graph or model) gets the answer if the call names no source. Sources other than the allowed
        `sources` are ignored.
        """
        answer = join_answers(self.answers)
        by_source = {
            name: join_answers(answers)
            for name, answers in (("text", self.text_says), ("graph", self.graph_says))
            if answers is not None and sources in ("both", name)
        }
        if not by_source and last_source is not None:
            by_source[last_source] = answer
        return TraceAnswers(
            final_answer=answer,
            answer_text=by_source.get("text") or None,
            answer_graph=by_source.get("graph") or None,
            answer_model=by_source.get("model") or None,
            final_thought=self.thought or None,
        )


def declare_tools(
    tools: Sequence[Tool], sources: str, answer_format: AnswerFormat = _FREE_TEXT
) -> tuple[ToolDeclaration, ...]:
    """Declare the tools with the thought as their first argument, and finish for these sources and answers."""
    declared = [_declare_tool(tool) for tool in tools]
    schema = _finish_schema(sources if has_sources(tools) or not tools else None, answer_format)
    return (*declared, ToolDeclaration(finish_name(tool.name for tool in tools), _FINISH_DESCRIPTION, schema))


def has_sources(tools: Iterable[Tool]) -> bool:
    """Whether a tool reads a source of a world."""
    return any(tool.source is not None for tool in tools)


def finish_name(tools: Iterable[str]) -> str:
    """The name of finish, which no offered tool has."""
    taken = {name.casefold() for name in tools}
    name = FINISH_NAME
    while name in taken:
        name += "_run"
    return name


def thought_name(arguments: Collection[str]) -> str:
    """The name of the argument that holds the thought, for a tool with these arguments of its own."""
    return next((name for name in _THOUGHT_NAMES if name not in arguments), "_".join(_THOUGHT_NAMES))


def take_thought(arguments: Mapping[str, Any], tool_arguments: Collection[str]) -> tuple[str, dict[str, Any]]:
    """Split the arguments of a call into the thought, "" if there is none, and the arguments of the tool."""
    rest = dict(arguments)
    thought = rest.pop(thought_name(tool_arguments), None)
    if thought is None:
        return "", rest
    return (thought if isinstance(thought, str) else json.dumps(thought, ensure_ascii=False)).strip(), rest


def _declare_tool(tool: Tool) -> ToolDeclaration:
    properties = tool.schema.get("properties", {})
    name = thought_name(properties)
    schema = {
        **tool.schema,
        "properties": {name: {"description": _THOUGHT_DESCRIPTION, "type": "string"}, **properties},
        "required": [name, *tool.schema.get("required", ())],
    }
    return ToolDeclaration(tool.name, tool.description, schema)


def _finish_schema(sources: str | None, answer_format: AnswerFormat) -> dict[str, Any]:
    """The arguments of finish; without `sources` there are no answers by source."""
    value_schema, definitions = _embed_schema(answer_format.schema, "#/properties/value")
    texts = {"type": "array", "items": {"type": "string"}}
    source_answers = {
        "text_says": {"description": "the answers that articles or web pages gave; [] if they gave none", **texts},
        "graph_says": {"description": "the answers that the graph gave; [] if it gave none", **texts},
    }
    allowed = {name: field for name, field in source_answers.items() if sources in ("both", name.removesuffix("_says"))}
    answers: dict[AnswerKind, dict[str, Any]] = {
        AnswerKind.TEXT: {
            "answers": {
                "description": "the answer itself, as short as possible; one text for each answer, [] if not found",
                **texts,
            },
            **allowed,
        },
        # One that cannot be found needs no value, so that it is not required.
        AnswerKind.JSON: {"value": value_schema},
        AnswerKind.NONE: {},
    }
    unanswerable = {
        "description": "why there can be no answer",
        "type": "string",
        "enum": [str(reason) for reason in UnanswerableReason if reason.is_stated],
    }
    done = "whether the question is answered" if answer_format.kind == AnswerKind.TEXT else "whether the task is done"
    properties = {
        "thought": {"description": _FINAL_THOUGHT_DESCRIPTION, "type": "string"},
        **answers[answer_format.kind],
        **({} if answer_format.kind == AnswerKind.NONE else {UNANSWERABLE_NAME: unanswerable}),
        "found": {"description": done, "type": "boolean"},
        "steps": {
            "description": "the numbers of the steps that show the answer",
            "type": "array",
            "items": {"type": "integer"},
        },
    }
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in ("steps", "value", UNANSWERABLE_NAME)],
        "additionalProperties": False,
        **definitions,
    }


_DEFINITIONS = ("$defs", "definitions")
_SCHEMAS_BY_NAME = {*_DEFINITIONS, "properties", "patternProperties", "dependentSchemas"}
_VALUES = {"const", "enum", "default", "examples"}
"""The keywords whose parts are values of any kind, not schemas."""


def _embed_schema(schema: Mapping[str, Any], place: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema as part of another one at this place, and its definitions, which stand at the root of that one."""
    embedded = _move_references({name: part for name, part in schema.items() if name not in ("$id", "$schema")}, place)
    definitions = {name: embedded.pop(name) for name in _DEFINITIONS if name in embedded}
    return embedded, definitions


def _move_references(schema: Any, place: str) -> Any:
    if isinstance(schema, list):
        return [_move_references(part, place) for part in schema]
    # References in a part with an identity of its own are relative to that part.
    if not isinstance(schema, Mapping) or "$id" in schema:
        return schema
    return {keyword: _move_keyword(keyword, part, place) for keyword, part in schema.items()}


def _move_keyword(keyword: str, part: Any, place: str) -> Any:
    if keyword in _VALUES:
        return part
    if keyword == "$ref":
        return _move_reference(part, place)
    if keyword in _SCHEMAS_BY_NAME:
        return {name: _move_references(schema, place) for name, schema in part.items()}
    return _move_references(part, place)


def _move_reference(reference: str, place: str) -> str:
    is_definition = reference.startswith(tuple(f"#/{name}/" for name in _DEFINITIONS))
    is_place = reference == "#" or reference.startswith("#/")
    return place + reference[1:] if is_place and not is_definition else reference


def parse_finish(arguments: Mapping[str, Any], answer_format: AnswerFormat = _FREE_TEXT) -> Finish:
    """Parse the arguments of finish; a text counts as a list of one. InvalidFinish if they do not fit together."""
    thought, values = take_thought(arguments, ())
    is_found = values.get("found")
    reason = _parse_reason(values.get(UNANSWERABLE_NAME))
    answers = _parse_texts(values.get("answers", values.get("answer")), final_or_empty)
    # Models fill in fields that they need not: beside an answer, the reason says nothing.
    has_answer = bool(answers) if answer_format.kind == AnswerKind.TEXT else values.get("value") is not None
    if reason is not None and not has_answer and answer_format.kind != AnswerKind.NONE:
        answer, steps = write_unanswerable(reason), _parse_steps(values.get("steps"))
        return Finish((answer,), steps=steps, thought=thought, value=answer)
    says_unknown = is_found is False or (isinstance(is_found, str) and is_found.strip().casefold() in ("false", "no"))
    if answer_format.kind != AnswerKind.TEXT:
        return Finish(
            (), None, None, _parse_steps(values.get("steps")), thought, _parse_value(values), not says_unknown
        )
    if not says_unknown and not answers and (answers is None or is_found is not None):
        raise InvalidFinish(
            'finish was called without answers. Call it with {"answers": ["..."], "found": true}, or with '
            '{"answers": [], "found": false} if the answer cannot be found.'
        )
    return Finish(
        answers=() if says_unknown else answers or (),
        text_says=_parse_texts(values.get("text_says"), strip_or_none),
        graph_says=_parse_texts(values.get("graph_says"), strip_or_none),
        steps=_parse_steps(values.get("steps")),
        thought=thought,
        is_done=not says_unknown,
    )


def _parse_reason(value: Any) -> UnanswerableReason | None:
    """The reason why there can be no answer; one in other words is not told apart from none that is given."""
    text = value.strip().casefold() if isinstance(value, str) else ""
    if text in ("", "none", "null", "false"):
        return None
    return UnanswerableReason(text) if text in list(UnanswerableReason) else UnanswerableReason.UNSTATED


def _parse_value(values: Mapping[str, Any]) -> str | None:
    return json.dumps(values["value"], ensure_ascii=False) if "value" in values else None


def _parse_texts(value: Any, check: Callable[[str], str | None]) -> tuple[str, ...] | None:
    """The distinct texts of a list, or of a single value, that `check` lets through; None for no value."""
    if value is None:
        return None
    elements = value if isinstance(value, list) else [value]
    texts = (check(strip_answer_markup(_to_text(element)).strip()) for element in elements[:_MAX_ANSWERS])
    return tuple(dict.fromkeys(text for text in texts if text))


def _to_text(element: Any) -> str:
    if isinstance(element, bool):
        return "yes" if element else "no"
    return element if isinstance(element, str) else json.dumps(element, ensure_ascii=False)


def _parse_steps(value: Any) -> tuple[int, ...]:
    elements = value if isinstance(value, list) else [value]
    numbers = (int(number) for element in elements for number in re.findall(r"\d{1,9}", str(element)))
    return tuple(dict.fromkeys(numbers))


_HASH_CHARS = 12
_OWN_TEMPLATES = {
    "step": ("instructions", "chat", "react", "cue"),
    "own answer": ("own_answer",),
    "response": ("response",),
}
"""The templates of the agents' requests, by purpose."""
_TOOL_TEMPLATES = {
    "tool:read": ("read", "read_question"),
    "tool:generateQuery": ("query", "query_question", "query_repair"),
}


def prompt_versions(
    tools: Sequence[Tool],
    sources: str,
    instruction: str = DEFAULT_INSTRUCTION,
    answer_format: AnswerFormat = _FREE_TEXT,
) -> dict[str, str]:
    """The version of each prompt by the purpose of its requests, for an agent with these tools and this task."""
    declared = [
        (tool.name, tool.description, dict(tool.schema)) for tool in declare_tools(tools, sources, answer_format)
    ]
    declared += [] if instruction == DEFAULT_INSTRUCTION else [("", instruction, {})]
    names = {f"tool:{tool.name}" for tool in tools}
    own = {
        purpose: _hash("showhow.reasoners.prompting", templates, declared if purpose == "step" else [])
        for purpose, templates in _OWN_TEMPLATES.items()
    }
    return own | {
        purpose: _hash("showhow.tools", templates, [])
        for purpose, templates in _TOOL_TEMPLATES.items()
        if purpose in names
    }


def _hash(package: str, templates: Sequence[str], declared: Sequence[tuple[str, str, dict[str, Any]]]) -> str:
    folder = files(package).joinpath("prompts")
    texts = [folder.joinpath(f"{name}.jinja").read_text(encoding="utf-8") for name in templates]
    return sha256(json.dumps([*texts, *declared], sort_keys=True).encode()).hexdigest()[:_HASH_CHARS]
