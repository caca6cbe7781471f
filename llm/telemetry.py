"""OpenTelemetry spans of runs, model calls and tool calls, by the semantic conventions for generative AI.

Off by default, and nothing of OpenTelemetry is imported then. The exporter is OTLP over HTTP; OpenTelemetry's own
variables, such as OTEL_EXPORTER_OTLP_ENDPOINT, configure it. A span has names, tokens, costs and kinds of errors; the
texts of prompts, replies, arguments and observations are sent only if `with_content`, and keys never.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import UUID

from showhow.guard.destinations import InvalidOrigin, SecretTable
from showhow.guard.proxy import HttpProxy, choose_proxy
from showhow.guard.redaction import NOTHING_SECRET, Redactor
from showhow.llm.errors import ChatUnavailable
from showhow.llm.types import NATIVE_PROVIDERS, ChatReply, ChatRequest, Message, ModelToolCall
from showhow.llm.usage import Usage

if TYPE_CHECKING:
    import requests
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

_INSTRUMENTATION_NAME = "showhow"
_PROVIDERS = {
    "google_genai": "gcp.gemini",
    "google_vertexai": "gcp.vertex_ai",
    "azure_openai": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "bedrock_converse": "aws.bedrock",
    "mistralai": "mistral_ai",
    "xai": "x_ai",
}
"""LangChain's names of providers, and those of the conventions where they differ."""


_ADDRESS_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


class SpanWriter:
    """Adds to an open span."""

    def __init__(self, span: "Span", *, with_content: bool, redactor: Redactor) -> None:
        self._span = span
        self._with_content = with_content
        self._redactor = redactor

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Set the attributes that have a value."""
        self._span.set_attributes(
            {name: self._redactor.redact_json(value) for name, value in attributes.items() if value is not None}
        )

    def set_content(self, name: str, value: Any) -> None:
        """Set an attribute to a text, or to a JSON value as text, without secrets; only if texts are sent."""
        if not self._with_content:
            return
        value = self._redactor.redact_json(value)
        self._span.set_attribute(
            name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        )

    def set_usage(self, usage: Usage) -> None:
        """Set tokens and cost; what the server did not report is left out."""
        self.set_attributes(
            {
                "gen_ai.usage.input_tokens": usage.input_tokens,
                "gen_ai.usage.output_tokens": usage.output_tokens,
                "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens or None,
                "gen_ai.usage.cache_creation.input_tokens": usage.cache_written_tokens or None,
                "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens or None,
                "gen_ai.usage.cost": usage.cost,
                "showhow.unreported_calls": usage.unreported_calls or None,
            }
        )

    def set_reply(self, reply: ChatReply) -> None:
        """Set the finish reason, the usage and the text of a reply."""
        self.set_attributes({"gen_ai.response.finish_reasons": [str(reply.stopped)]})
        self.set_usage(reply.usage)
        parts = [{"type": "reasoning", "content": reply.thoughts}] if reply.thoughts else []
        parts += _to_parts(reply.text, reply.calls)
        self.set_content(
            "gen_ai.output.messages", [{"role": "assistant", "parts": parts, "finish_reason": str(reply.stopped)}]
        )

    def set_error(self, kind: str, message: str) -> None:
        """Mark the span as failed; messages may quote a text of the model."""
        from opentelemetry.trace import StatusCode  # noqa: PLC0415 - an extra

        self._span.set_status(StatusCode.ERROR)
        self.set_attributes({"error.type": kind})
        self.set_content("error.message", message)


class Telemetry:
    """Opens spans; thread-safe. A span is the child of the one that is open in its thread's context."""

    def __init__(
        self,
        provider: "TracerProvider",
        session: "requests.Session",
        *,
        with_content: bool = False,
        redactor: Redactor = NOTHING_SECRET,
    ) -> None:
        self._provider = provider
        self._session = session
        self._tracer = provider.get_tracer(_INSTRUMENTATION_NAME)
        self._with_content = with_content
        self._redactor = redactor

    @contextmanager
    def agent_run(self, reasoner: str, question: str, trace_id: UUID) -> Iterator[SpanWriter]:
        """The span of one run; `trace_id` is the id of Showhow's trace."""
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": reasoner,
            "gen_ai.conversation.id": str(trace_id),
        }
        with self._open(f"invoke_agent {reasoner}", attributes) as span:
            span.set_content("gen_ai.input.messages", [{"role": "user", "parts": _to_parts(question)}])
            yield span

    @contextmanager
    def model_call(
        self, model: str, purpose: str, parameters: Mapping[str, Any], request: ChatRequest
    ) -> Iterator[SpanWriter]:
        """The span of one request to a model, with its retries."""
        address = urlsplit(parameters.get("base_url") or "")
        provider, name = _split_model(model, has_address=bool(address.hostname))
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
            "gen_ai.request.model": name,
            "gen_ai.request.temperature": (
                parameters.get("temperature") if request.temperature is None else request.temperature
            ),
            "gen_ai.request.max_tokens": parameters.get("reply_limit"),
            "gen_ai.request.stop_sequences": list(request.stop) or None,
            "gen_ai.request.stream": request.on_text is not None,
            "gen_ai.output.type": "text" if request.reply_schema is None else "json",
            "server.address": address.hostname,
            "server.port": address.port,
            "showhow.purpose": purpose,
        }
        with self._open(f"chat {name}", attributes, is_client=True) as span:
            instructions = [message for message in request.messages if message.role == "system"]
            others = [message for message in request.messages if message.role != "system"]
            span.set_content("gen_ai.system_instructions", [part for m in instructions for part in _to_parts(m.text)])
            span.set_content("gen_ai.input.messages", [_to_message(message) for message in others])
            if request.tools:
                span.set_content("gen_ai.tool.definitions", _to_definitions(request))
            yield span

    @contextmanager
    def tool_call(self, tool: str, arguments: Mapping[str, Any]) -> Iterator[SpanWriter]:
        """The span of one call of a tool."""
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.type": "function",
        }
        with self._open(f"execute_tool {tool}", attributes) as span:
            span.set_content("gen_ai.tool.call.arguments", dict(arguments))
            yield span

    def close(self) -> None:
        """Send the spans that were not sent; no span is written afterwards."""
        self._provider.shutdown()
        self._session.close()

    @contextmanager
    def _open(self, name: str, attributes: Mapping[str, Any], *, is_client: bool = False) -> Iterator[SpanWriter]:
        from opentelemetry.trace import SpanKind  # noqa: PLC0415 - an extra

        kind = SpanKind.CLIENT if is_client else SpanKind.INTERNAL
        with self._tracer.start_as_current_span(
            self._redactor.redact(name), kind=kind, record_exception=False, set_status_on_exception=False
        ) as span:
            writer = SpanWriter(span, with_content=self._with_content, redactor=self._redactor)
            writer.set_attributes(attributes)
            try:
                yield writer
            # Every exception, also KeyboardInterrupt, is written to the span, and raised again.
            except BaseException as error:
                writer.set_error(type(error).__name__, str(error))
                usage = getattr(error, "usage", None)
                if isinstance(usage, Usage):
                    writer.set_usage(usage)
                raise


def start_telemetry(
    *,
    with_content: bool,
    redactor: Redactor,
    environ: Mapping[str, str] | None = None,
    proxy: HttpProxy | None = None,
) -> Telemetry:
    """Start the exporter of spans; they are sent in batches, the last one when the process ends.

    `environ` has the variables with headers, which hold keys. ChatUnavailable if the packages of the extra `telemetry`
    are missing, or if headers or texts would go over http:// beyond this machine.
    """
    try:
        import requests  # noqa: PLC0415 - of the exporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
        from opentelemetry.util.re import parse_env_headers  # noqa: PLC0415
    except ImportError as error:
        raise ChatUnavailable(
            f"SHOWHOW_TELEMETRY needs a package ({error}); install showhow[telemetry], or set it to off."
        ) from error
    variables = environ or {}
    written = variables.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS") or variables.get("OTEL_EXPORTER_OTLP_HEADERS", "")
    address = next((variables[name] for name in _ADDRESS_VARIABLES if variables.get(name)), None)
    if (written or with_content) and address is not None:
        _require_private(address)
    # No proxy and no .netrc of the environment, and no redirect that takes the headers elsewhere.
    session = requests.Session()
    session.trust_env, session.max_redirects = False, 0
    exporter = OTLPSpanExporter(headers=parse_env_headers(written, liberal=True), session=session)
    if address is not None and (chosen := _choose_proxy(proxy, address)) is not None:
        session.proxies = {"http": chosen.url, "https": chosen.url}
    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        # Neither OTEL_SERVICE_NAME nor OTEL_RESOURCE_ATTRIBUTES names the service.
        resource = resource.merge(Resource({SERVICE_NAME: "showhow"}))
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return Telemetry(provider, session, with_content=with_content, redactor=redactor)


def _require_private(address: str) -> None:
    if unsafe := SecretTable.find_unsafe("OTEL_EXPORTER_OTLP_HEADERS", address):
        raise ChatUnavailable(f"Telemetry is not sent: {unsafe}")


def _choose_proxy(proxy: HttpProxy | None, address: str) -> HttpProxy | None:
    try:
        return choose_proxy(proxy, address)
    except InvalidOrigin as error:
        raise ChatUnavailable(f"Telemetry is not sent: the address {address!r} {error}.") from error


def _split_model(model: str, *, has_address: bool) -> tuple[str, str]:
    """The provider and the name of a model; servers at an address speak OpenAI's API unless a provider is named."""
    provider, colon, name = model.partition(":")
    is_named = provider in NATIVE_PROVIDERS or provider == "openai" or not has_address
    return (provider, name) if colon and is_named else ("openai", model)


def _to_parts(text: str, calls: Sequence[ModelToolCall] = ()) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"type": "text", "content": text}] if text else []
    return parts + [
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments} for call in calls
    ]


def _to_message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        parts = [{"type": "tool_call_response", "id": message.answers, "response": message.text}]
        return {"role": "tool", "parts": parts}
    return {"role": message.role, "parts": _to_parts(message.text, message.calls)}


def _to_definitions(request: ChatRequest) -> list[dict[str, Any]]:
    return [
        {"type": "function", "name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}
        for tool in request.tools
    ]
