"""An HTTP proxy on loopback that asks for a name and a password, and servers that speak TLS with its certificates.

with run_proxy({"models.example:443": server.port}) as proxy:
    proxy.url       with the name and the password
    proxy.asked     what it was asked for: "CONNECT models.example:443", "GET http://wiki.example/page"
"""

import base64
import http.client
import selectors
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import quote, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.servers.faulty_server import FaultyServer, Handler
from tests.servers.loopback import QuietServer

NAME, PASSWORD = "ada", "planted@proxy:password-51"


class ProxyServer:
    """The proxy's address, the servers behind it by host and port, and what it was asked for."""

    def __init__(self, port: int, servers: Mapping[str, int]) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.url = f"http://{NAME}:{quote(PASSWORD, safe='')}@127.0.0.1:{port}"
        self.servers = servers
        self.asked: list[str] = []


class ProxyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: ProxyServer

    def do_CONNECT(self) -> None:
        if (port := self._admit(self.path)) is None:
            return
        with socket.create_connection(("127.0.0.1", port)) as server:
            self.send_response(200)
            self.end_headers()
            with suppress(OSError):
                _carry(self.connection, server)
        self.close_connection = True

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if (port := self._admit(f"{parts.hostname}:{parts.port or 80}")) is None:
            return
        headers = {name: value for name, value in self.headers.items() if not name.lower().startswith("proxy-")}
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request(self.command, f"{parts.path}?{parts.query}".rstrip("?"), body, headers)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self) -> None:
        self.do_GET()

    def _admit(self, target: str) -> int | None:
        """The port of the server behind the proxy; None after a refusal."""
        self.state.asked.append(f"{self.command} {self.path}")
        expected = "Basic " + base64.b64encode(f"{NAME}:{PASSWORD}".encode()).decode()
        port = self.state.servers.get(target)
        if self.headers.get("Proxy-Authorization") == expected and port is not None:
            return port
        self.send_response(407 if port is not None else 502)
        self.send_header("Content-Length", "0")
        self.end_headers()
        return None

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""


def _carry(one: socket.socket, other: socket.socket) -> None:
    """Hand on what each end sends, until one of them closes."""
    with selectors.DefaultSelector() as selector:
        selector.register(one, selectors.EVENT_READ, other)
        selector.register(other, selectors.EVENT_READ, one)
        while True:
            for key, _ in selector.select():
                data = key.fileobj.recv(65_536)
                if not data:
                    return
                key.data.sendall(data)


@contextmanager
def run_proxy(servers: Mapping[str, int]) -> Iterator[ProxyServer]:
    """Run a proxy through which these servers are reached, each a port of this machine by its host and port."""
    server = QuietServer(("127.0.0.1", 0), type("OwnProxy", (ProxyHandler,), {}))
    state = ProxyServer(server.server_port, servers)
    server.RequestHandlerClass.state = state  # type: ignore[attr-defined]
    with _serving(server):
        yield state


@contextmanager
def run_tls_server(folder: Path, *hosts: str) -> Iterator[tuple[FaultyServer, Path]]:
    """Run a server of these hosts, and give the file of the certificate by which clients know it."""
    certificate, key = _write_certificate(folder, hosts)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    server = QuietServer(("127.0.0.1", 0), type("OwnTls", (Handler,), {}))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    state = FaultyServer(server.server_port)
    server.RequestHandlerClass.state = state  # type: ignore[attr-defined]
    with _serving(server):
        yield state, certificate


@contextmanager
def _serving(server: QuietServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _write_certificate(folder: Path, hosts: tuple[str, ...]) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])]), datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "certificate.pem", folder / "key.pem"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    encoding, kind = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    files[1].write_bytes(key.private_bytes(encoding, kind, serialization.NoEncryption()))
    return files
