"""A collector of OpenTelemetry spans on loopback, which speaks OTLP over HTTP."""

import gzip
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.servers.loopback import QuietServer
from tests.servers.model import QuietHandler


@dataclass(frozen=True)
class CollectedSpan:
    """One span as it arrived."""

    name: str
    kind: str
    attributes: dict[str, Any]
    id: bytes
    parent: bytes
    trace: bytes
    is_error: bool
    service: str


class OtlpServer:
    """The collector; use it with `with`."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self._http = _Server(("127.0.0.1", 0), self)

    @property
    def url(self) -> str:
        """The base URL, as OTEL_EXPORTER_OTLP_ENDPOINT has it."""
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def spans(self) -> list[CollectedSpan]:
        """The spans that arrived, in the order of their ends."""
        return [
            _to_span(span, resource.resource.attributes)
            for body in self.bodies
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def __enter__(self) -> "OtlpServer":
        self._serving = threading.Thread(target=self._http.serve_forever, daemon=True)
        self._serving.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._serving.join()
        self._http.server_close()


def _to_span(span: Span, resource: Any) -> CollectedSpan:
    service = next(attribute.value.string_value for attribute in resource if attribute.key == "service.name")
    return CollectedSpan(
        span.name,
        Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower(),
        {attribute.key: _to_value(attribute.value) for attribute in span.attributes},
        span.span_id,
        span.parent_span_id,
        span.trace_id,
        span.status.code == Status.STATUS_CODE_ERROR,
        service,
    )


def _to_value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return [_to_value(item) for item in value.array_value.values] if kind == "array_value" else getattr(value, kind)


class _Server(QuietServer):
    def __init__(self, address: tuple[str, int], collector: OtlpServer) -> None:
        self.collector = collector
        super().__init__(address, _Handler)


class _Handler(QuietHandler):
    server: _Server

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        """Take a batch of spans."""
        body = self.rfile.read(int(self.headers["content-length"]))
        assert (self.path, self.headers["content-type"]) == ("/v1/traces", "application/x-protobuf")
        is_packed = self.headers.get("content-encoding") == "gzip"
        self.server.collector.bodies.append(gzip.decompress(body) if is_packed else body)
        self.server.collector.headers.append(dict(self.headers))
        reply = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)
