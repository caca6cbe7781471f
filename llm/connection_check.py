"""Tests the connection to a model: one request with a tool shows what its server can do."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from jsonschema import Draft202012Validator

from showhow.llm.errors import ChatBadRequest, ChatError
from showhow.llm.types import ChatModel, ChatReply, ChatRequest, Message, ModelProfile
from showhow.llm.usage import Usage
from showhow.llm.usage_bounds import price_usage

CHECK_SECONDS = 60.0
"""The longest time that a check waits for a reply."""
MAX_REPLY_CHARACTERS = 200
"""Characters of the reply that a report quotes."""
_PROMPT = (
    "First write the sentence: I look up both cities. Then call the tool population for Oslo and for Lima in the year "
    "2020, with both calls in this one message."
)
_STREAM_TYPES = ("text/event-stream", "application/x-ndjson")


@dataclass(frozen=True, slots=True)
class _CheckTool:
    name: str = "population"
    description: str = "The number of inhabitants of a city in a year."

    @property
    def schema(self) -> Mapping[str, Any]:
        properties = {
            "city": {"type": "string", "description": "The name of the city."},
            "year": {"type": "integer", "description": "The year, such as 1990."},
            "unit": {"enum": ["people", "thousands"], "description": "The unit of the number."},
        }
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }


@dataclass(frozen=True, slots=True)
class ConnectionReport:
    """What one request showed about a model and its server; None for what the reply does not show."""

    profile: str
    model: str
    seconds: float
    error: str | None = None
    """Why there is no reply, as a sentence; None if there is one."""
    tools: bool | None = None
    tools_error: str | None = None
    """Why the server refuses tools."""
    calls_in_text: bool | None = None
    """Whether the model wrote its calls as text, which Showhow parses."""
    parallel_calls: bool | None = None
    """Whether one message had several calls."""
    schema: bool | None = None
    """Whether the arguments of all calls follow their schema."""
    streaming: bool | None = None
    usage: bool | None = None
    """Whether the server reports tokens."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    reply: str = ""
    """The beginning of the reply's text."""

    def to_json(self) -> dict[str, Any]:
        """The report by field."""
        return asdict(self)

    def findings(self) -> list[tuple[str, bool | None, str]]:
        """The name, the value and an explanation of each capability."""
        return [
            ("Tools", self.tools, self._explain_tools()),
            (
                "Parallel calls",
                self.parallel_calls,
                "" if self.parallel_calls or not self.tools else "The model sent one call where two were asked for.",
            ),
            (
                "Argument schema",
                self.schema,
                "Arguments do not follow the schema of the tool." if self.schema is False else "",
            ),
            ("Streaming", self.streaming, "" if self.streaming else "The reply came in one piece."),
            ("Usage", self.usage, self._explain_usage()),
        ]

    def _explain_tools(self) -> str:
        if self.tools_error:
            return f"{self.tools_error} Prompts as plain text are used instead."
        if self.tools is False:
            return f"The model called no tool; it replied {self.reply!r}."
        if self.calls_in_text:
            return "The model writes calls as text, which Showhow reads; start the server with a parser of tool calls."
        return ""

    def _explain_usage(self) -> str:
        if not self.usage:
            return "No tokens are reported; limits of tokens and cost count the most that is possible."
        cost = "" if self.cost is None else f", ${self.cost:.4g}"
        return f"{self.input_tokens:,} tokens in, {self.output_tokens:,} out{cost}."


def check_connection(profile: ModelProfile) -> ConnectionReport:
    """Send one request with a tool, once more without it if the server refuses tools, and report what came back."""
    from showhow.llm.langchain_model import load_model  # noqa: PLC0415 - LangChain takes a second to import

    started = time.monotonic()
    report = ConnectionReport(profile.name, profile.model, 0.0)
    try:
        # No retries: a check reports what happens now.
        report = _check_model(load_model(profile), profile, report)
    except ChatError as error:
        report = replace(report, error=str(error))
    return replace(report, seconds=time.monotonic() - started)


def _check_model(model: ChatModel, profile: ModelProfile, report: ConnectionReport) -> ConnectionReport:
    seconds = min(profile.seconds, CHECK_SECONDS)
    probe = _Probe()
    try:
        reply = model.reply(probe.request([_CheckTool()]), seconds)
        tools_error = None
    except ChatBadRequest as error:
        tools_error = str(error)
        probe = _Probe()
        reply = model.reply(probe.request([]), seconds)
    usage = price_usage(reply.usage, profile.price, probe.request([]), reply, profile.reply_limit)
    return replace(
        report,
        tools=tools_error is None and bool(reply.calls),
        tools_error=tools_error,
        streaming=probe.is_streamed,
        reply=" ".join(reply.text.split())[:MAX_REPLY_CHARACTERS],
        **_describe_calls(reply),
        **_describe_usage(usage),
    )


class _Probe:
    """The request of a check, and how its reply arrived."""

    def __init__(self) -> None:
        self._pieces = 0
        self._content_type = ""

    def request(self, tools: Sequence[_CheckTool]) -> ChatRequest:
        return ChatRequest([Message("user", _PROMPT)], (), tools, self._count_piece, self._note_headers)

    def _count_piece(self, _text: str) -> None:
        self._pieces += 1

    def _note_headers(self, headers: Mapping[str, str]) -> None:
        self._content_type = headers.get("content-type", "").partition(";")[0].strip()

    @property
    def is_streamed(self) -> bool | None:
        """Whether the reply was streamed; None if neither its headers nor its text show it."""
        if self._content_type:
            return self._content_type in _STREAM_TYPES
        return True if self._pieces > 1 else None


def _describe_calls(reply: ChatReply) -> dict[str, Any]:
    if not reply.calls:
        return {}
    validator = Draft202012Validator(dict(_CheckTool().schema))
    return {
        "calls_in_text": reply.calls_in_text,
        "parallel_calls": len(reply.calls) > 1,
        "schema": all(call.name == _CheckTool().name and validator.is_valid(call.arguments) for call in reply.calls),
    }


def _describe_usage(usage: Usage) -> dict[str, Any]:
    is_reported = usage.input_tokens is not None and usage.output_tokens is not None
    return {
        "usage": is_reported,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost": usage.cost,
    }
