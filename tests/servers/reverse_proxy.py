"""A reverse proxy on this machine: it passes bytes on, and adds headers to each request as proxies do."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from tests.servers.loopback import free_port

HEAD_END = b"\r\n\r\n"


@contextmanager
def reverse_proxy(target_port: int, headers: Sequence[str] = (), host: str | None = None) -> Iterator[str]:
    """Serve the server at that port of this machine; yields the proxy's URL.

    Each request has the headers (`Name: value`), and `host` in place of the name that the client asked for.
    """
    port = free_port()
    with socket.create_server(("127.0.0.1", port), backlog=64) as listener:
        arguments = (listener, target_port, headers, host)
        threading.Thread(target=_accept, args=arguments, daemon=True).start()
        yield f"http://127.0.0.1:{port}"
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, target_port: int, headers: Sequence[str], host: str | None) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_serve, args=(client, target_port, headers, host), daemon=True).start()


def _serve(client: socket.socket, target_port: int, headers: Sequence[str], host: str | None) -> None:
    with client, socket.create_connection(("127.0.0.1", target_port)) as server, suppress(OSError):
        received = b""
        while HEAD_END not in received:
            part = client.recv(65_536)
            if not part:
                return
            received += part
        head, _, body = received.partition(HEAD_END)
        server.sendall("\r\n".join(_change_head(head.decode("latin-1"), headers, host)).encode("latin-1"))
        server.sendall(HEAD_END + body)
        back = threading.Thread(target=_copy, args=(server, client), daemon=True)
        back.start()
        _copy(client, server)
        back.join()


def _change_head(head: str, headers: Sequence[str], host: str | None) -> list[str]:
    lines = head.split("\r\n")
    if host is not None:
        lines = [f"Host: {host}" if line.lower().startswith("host:") else line for line in lines]
    if "upgrade: websocket" not in head.lower():
        # One request a connection, so that each of them gets the headers.
        lines = [line for line in lines if not line.lower().startswith("connection:")] + ["Connection: close"]
    return [*lines, *headers]


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while part := source.recv(65_536):
            target.sendall(part)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
