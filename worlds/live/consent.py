"""The operator's consent to a live world's headers: which environment variable may be sent to which server.

It is a file beside world.toml. A variable or a server that world.toml names later is not part of it, so nothing is sent
there until the operator is asked again.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from worlds.folder import WorldError
from worlds.live.description import LiveWorldConfig
from worlds.live.http.request import get_host

CONSENT_FILE = "consent.json"


@dataclass(frozen=True, slots=True, order=True)
class SentVariable:
    """An environment variable whose value is sent to a server with every request."""

    variable: str
    server: str
    """Scheme and host: http:// does not stand for https://."""

    def __str__(self) -> str:
        return f"{self.variable} to {self.server}"


def sent_variables(config: LiveWorldConfig) -> list[SentVariable]:
    """The variables that the headers of this world send, sorted, each once."""
    addresses: list[tuple[str, Mapping[str, str]]] = []
    addresses += [(config.text.api, config.text.headers)] if config.text else []
    addresses += [(config.graph.url, config.graph.headers)] if config.graph else []
    addresses += [(config.web.search, config.web.headers)] if config.web else []
    return sorted({variable for address, headers in addresses for variable in variables_sent_to(address, headers)})


def variables_sent_to(address: str, headers: Mapping[str, str]) -> list[SentVariable]:
    """The variables that these headers send to this address."""
    server = f"{urlsplit(address).scheme}://{get_host(address)}"
    return [SentVariable(variable, server) for variable in headers.values()]


def load_consent(folder: Path) -> frozenset[SentVariable]:
    """What may be sent for the world in this folder; WorldError if the file is damaged."""
    file = folder / CONSENT_FILE
    try:
        return frozenset(SentVariable(**entry) for entry in json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, TypeError) as error:
        raise WorldError(
            f"{file} cannot be read ({error}); remove it and add the world again with --replace."
        ) from error


def store_consent(folder: Path, allowed: Iterable[SentVariable]) -> None:
    """Store what may be sent for the world in this folder, in place of what was allowed before."""
    if not (allowed := sorted(allowed)) and not (folder / CONSENT_FILE).exists():
        return
    new_file = folder / f"{CONSENT_FILE}.new"
    try:
        with new_file.open("w", encoding="utf-8") as stream:
            json.dump([asdict(variable) for variable in allowed], stream)
            stream.flush()
            os.fsync(stream.fileno())
        new_file.replace(folder / CONSENT_FILE)
    except OSError as error:
        raise WorldError(f"{folder / CONSENT_FILE} cannot be written ({error}); check the write permission.") from error
