"""Ports and servers of this machine."""

import pytest

from tests.servers.faulty_server import run_faulty_server
from tests.servers.loopback import free_port
from tests.servers.model import ModelServer


@pytest.mark.long
def test_no_server_has_the_port_of_an_earlier_one():
    ports = []
    for _ in range(300):
        ports.append(free_port())
        with ModelServer([]) as server:
            ports.append(int(server.url.split(":")[2].split("/")[0]))
        with run_faulty_server() as faulty:
            ports.append(int(faulty.url.rpartition(":")[2]))
    assert len(set(ports)) == len(ports)
