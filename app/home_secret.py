"""The secret of the home, which all processes that serve it share: with it, each knows what another one has signed."""

import hmac
import os
import secrets
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

SECRET_FILE = "cookie_secret"  # noqa: S105 - the name of a file
"""The file of the home with the secret, which only its owner reads; processes on several machines need the same one."""
_SECRET_BYTES = 32


@cache
def read_secret(home: Path) -> bytes:
    """The secret of this home, made by the first process that needs it."""
    path = home / SECRET_FILE
    try:
        home.mkdir(parents=True, exist_ok=True)
        # The file appears complete, and readable by its owner only.
        with tempfile.NamedTemporaryFile(dir=home) as made, suppress(FileExistsError):
            made.write(secrets.token_bytes(_SECRET_BYTES))
            made.flush()
            os.link(made.name, path)
        secret = path.read_bytes()
    except OSError:
        secret = b""
    # Without a usable file, what this process has signed is worth nothing after its end.
    return secret if len(secret) >= _SECRET_BYTES else secrets.token_bytes(_SECRET_BYTES)


def derive_key(home: Path, purpose: str) -> bytes:
    """A key for one purpose: what is signed with it says nothing about the others."""
    return hmac.digest(read_secret(home), f"key of {purpose}".encode(), "sha256")
