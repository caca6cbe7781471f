"""Ports and HTTP servers of this machine: no port is given out twice in a process.

Clients remember what the server at an address did, such as a wait of an hour or requests of the last minute; they would
apply it to the server of the next test.
"""

import selectors
import socket
import threading
from http.server import ThreadingHTTPServer
from typing import Any

_used_ports: set[int] = set()


def free_port() -> int:
    """A free port that nothing of this process had before."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if port not in _used_ports:
            _used_ports.add(port)
            return port


class QuietServer(ThreadingHTTPServer):
    """A server of many clients at once that prints nothing; port 0 is one that nothing of this process had before."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._stopping, self._stop = socket.socketpair()
        self._stopped = threading.Event()
        super().__init__(*arguments, **options)

    def serve_forever(self, poll_interval: float | None = None) -> None:
        """Handle requests until `shutdown`, which ends a wait for the next one at once."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.socket, selectors.EVENT_READ)
            selector.register(self._stopping, selectors.EVENT_READ)
            while self._stopping not in (ready := [key.fileobj for key, _ in selector.select(poll_interval)]):
                if ready:
                    self._handle_request_noblock()
        self._stopped.set()

    def shutdown(self) -> None:
        """End `serve_forever` in its thread."""
        self._stop.send(b"0")
        self._stopped.wait()

    def server_close(self) -> None:
        """Close the sockets."""
        super().server_close()
        self._stopping.close()
        self._stop.close()

    def server_bind(self) -> None:
        """Bind to the port of the address; to an unused one for port 0."""
        address = self.server_address
        super().server_bind()
        while address[1] == 0 and self.server_port in _used_ports:
            self.socket.close()
            self.socket = socket.socket(self.address_family, self.socket_type)
            self.server_address = address
            super().server_bind()
        _used_ports.add(self.server_port)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that closed the connection."""
