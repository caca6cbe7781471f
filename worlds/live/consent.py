"""Which environment variables a live world's headers send to which servers.

What an administrator allowed is in the table of the home (guard/destinations.py). Former versions kept it in a file
beside world.toml, which still counts.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from showhow.guard.destinations import Grant, parse_origin
from showhow.worlds.folder import WorldError
from showhow.worlds.live.description import LiveWorldConfig

CONSENT_FILE = "consent.json"


def list_sent_variables(config: LiveWorldConfig) -> list[Grant]:
    """The variables that the headers of this world send, sorted, each once."""
    addresses: list[tuple[str, Mapping[str, str]]] = []
    addresses += [(config.text.api, config.text.headers)] if config.text else []
    addresses += [(config.graph.url, config.graph.headers)] if config.graph else []
    addresses += [(config.web.search, config.web.headers)] if config.web else []
    return sorted({grant for address, headers in addresses for grant in variables_sent_to(address, headers)})


def variables_sent_to(address: str, headers: Mapping[str, str]) -> Iterator[Grant]:
    """The variables that these headers send to this address."""
    return (Grant(variable, str(parse_origin(address))) for variable in headers.values())


def load_former_consent(folder: Path) -> frozenset[Grant]:
    """What a former version was allowed to send for the world in this folder; WorldError if the file is damaged."""
    file = folder / CONSENT_FILE
    try:
        entries = json.loads(file.read_text(encoding="utf-8"))
        return frozenset(Grant(entry["variable"], str(parse_origin(entry["server"]))) for entry in entries)
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, TypeError, LookupError) as error:
        raise WorldError(
            f"{file} cannot be read ({error}); remove it and add the world again with --replace."
        ) from error
