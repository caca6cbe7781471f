"""The environment of this process, without what others must not read in it.

A process shows its environment to every process of its user (/proc/PID/environ), and hands it to its children. Here a
process keeps only what the system and its libraries need; everything else, secret or not, is held in memory, and goes
to children that need it through an inherited descriptor.

    take_environment()        at the start: takes the other variables out of the environment, also of its first block
    read_environment()        all variables, those that were taken included
"""

import json
import os
import re
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from showhow.guard.redaction import is_secret

HELD_DESCRIPTOR = "SHOWHOW_HELD_DESCRIPTOR"
"""The variable with the descriptor from which a child reads the variables that are not in its environment."""
_NEEDED = re.compile(
    # The system, its languages and its certificates.
    r"PATH|HOME|USER|LOGNAME|SHELL|TERM|COLORTERM|(NO|FORCE)_COLOR|COLUMNS|LINES|LANG|LANGUAGE|LC_\w+|TZ|TZDIR"
    r"|PWD|HOSTNAME|TMPDIR|TMP|TEMP|XDG_\w+|SSL_CERT_(FILE|DIR)|(REQUESTS|CURL)_CA_BUNDLE|LD_(LIBRARY_PATH|PRELOAD)"
    r"|DYLD_\w+|MALLOC_\w+|GLIBC_TUNABLES|CI|VIRTUAL_ENV|PYTHON\w*"
    # Libraries that compute, the encoder's, PostgreSQL's, those that serve and report, and uvicorn's word for a proxy.
    r"|(OMP|GOMP|KMP|OPENBLAS|MKL|NUMEXPR|VECLIB|BLIS|TORCH|PYTORCH|CUDA|NVIDIA|ROCR|HIP|HSA|HF|TRANSFORMERS"
    r"|TOKENIZERS|SENTENCE_TRANSFORMERS|RAYON|PG|COVERAGE|RUST|STREAMLIT|OTEL|SHOWHOW)(_\w+)?|PG[A-Z]+"
    r"|FORWARDED_ALLOW_IPS"
)
"""Names of variables that stay, unless they are secret."""
_SECRET_WORD = re.compile(
    r"\w*(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)S?|PASS|PAT|AUTH|DSN|COOKIE|HEADERS", re.IGNORECASE
)
_SECRET_ENDING = re.compile(r"\w+_PWD", re.IGNORECASE)
_SETTING = re.compile(r"SHOWHOW_\w+_VARIABLE")
"""A setting of ours that holds the name of a variable."""
_DATABASE_URL = "SHOWHOW_DATABASE_URL"
_URL_PASSWORD = re.compile(r"://[^/@:\s]*:([^/@\s]+)@|[?&]password=([^&\s]+)")
_held: dict[str, str] = {}


def is_secret_name(variable: str) -> bool:
    """Whether the name of a variable says that its value is secret."""
    if _SETTING.fullmatch(variable):
        return False
    return any(map(_SECRET_WORD.fullmatch, variable.split("_"))) or _SECRET_ENDING.fullmatch(variable) is not None


def is_needed(variable: str, value: str) -> bool:
    """Whether the variable may stay in the environment: the system or a library needs it, and it is no secret."""
    is_secret = is_secret_name(variable) or _URL_PASSWORD.search(value) is not None
    return not is_secret and variable != _DATABASE_URL and _NEEDED.fullmatch(variable) is not None


def list_secrets(environ: Mapping[str, str], named: Collection[str] = ()) -> list[str]:
    """The secret values: of variables whose name says so or that are `named`, passwords of URLs, values of headers."""
    values: dict[str, None] = {}
    for name, value in environ.items():
        if is_secret_name(name) or (name in named and not is_needed(name, value)):
            values[value] = None
            if name.endswith("_HEADERS"):
                values |= dict.fromkeys(unquote(pair.partition("=")[2].strip()) for pair in value.split(","))
        for password in filter(None, (part for match in _URL_PASSWORD.findall(value) for part in match)):
            values |= {password: None, unquote(password): None}
    return [value for value in values if is_secret(value)]


def read_environment() -> dict[str, str]:
    """All variables of this process: those of its environment, and those that were taken out of it."""
    return {**os.environ, **_held}


def take_environment() -> None:
    """Take what is not needed out of the environment of this process, and what its parent handed over into memory."""
    if (descriptor := os.environ.pop(HELD_DESCRIPTOR, None)) is not None:
        with suppress(ValueError, OSError), open(int(descriptor), "rb") as stream:  # noqa: PTH123 - a descriptor
            stream.seek(0)
            _held.update(json.loads(stream.read()))
    taken = {name: value for name, value in os.environ.items() if not is_needed(name, value)}
    _held.update(taken)
    for name in taken:
        del os.environ[name]
    _overwrite_block()


def _overwrite_block() -> None:
    """Overwrite what is not needed in the block that the system made at the start, and shows in /proc/PID/environ."""
    if sys.platform != "linux":
        return
    import ctypes  # noqa: PLC0415 - it is needed here only

    try:
        # proc(5): fields 50 and 51 are the start and the end of the block; the second one may have spaces.
        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        start, end = int(fields[47]), int(fields[48])
    except (OSError, LookupError, ValueError):
        return
    if not 0 < start < end:
        return
    offset = start
    for entry in ctypes.string_at(start, end - start).split(b"\0"):
        name, _, value = entry.partition(b"=")
        if entry and not is_needed(os.fsdecode(name), os.fsdecode(value)):
            # It was removed from the environment before, so that nothing points to it.
            ctypes.memset(offset, 0, len(entry))
        offset += len(entry) + 1


def open_held_variables(environ: Mapping[str, str]) -> tuple[dict[str, str], int]:
    """What a child gets: its environment, and the descriptor of all other variables.

    The caller lets the child inherit the descriptor, and closes its own; the child reads it with `take_environment`.
    """
    needed = {name: value for name, value in environ.items() if is_needed(name, value)}
    content = json.dumps({name: value for name, value in environ.items() if name not in needed}).encode()
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("held")
    else:
        import tempfile  # noqa: PLC0415 - it is needed here only

        file = tempfile.TemporaryFile()  # noqa: SIM115 - only its descriptor is used
        descriptor = os.dup(file.fileno())
        file.close()
    while content:
        content = content[os.write(descriptor, content) :]
    return {**needed, HELD_DESCRIPTOR: str(descriptor)}, descriptor
