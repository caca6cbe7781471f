"""Runs a verb in this process with services of its own, for tests whose subject is not the process itself."""

import contextlib
import io
import os
import subprocess
from functools import cache
from pathlib import Path

from app.cli.main import main
from app.services import use_services
from fewshot_library.encoder import SentenceEncoder
from runs.services import Services
from settings import DEFAULT_ENCODER, Settings


@cache
def shared_encoder() -> SentenceEncoder:
    """One encoder for all verbs of this process, so that its model loads once."""
    return SentenceEncoder(DEFAULT_ENCODER)


def run_in_process(home: Path, *words: str | Path | bytes, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Run `showhow WORDS` in that home; the settings come from `environ` alone."""
    arguments = [os.fsdecode(word) for word in words]
    values = {"SHOWHOW_HOME": str(home), **environ}
    services = Services(Settings.from_env(values), values)
    # The dataclass is frozen, but its cached parts are ordinary entries that may be put there.
    vars(services)["encoder"] = shared_encoder()
    stdout, stderr = io.StringIO(), io.StringIO()
    status: int | str | None = 0
    try:
        with (
            contextlib.chdir(home),
            contextlib.redirect_stdout(stdout),
            contextlib.redirect_stderr(stderr),
            use_services(services),
        ):
            main(arguments)
    except SystemExit as exit_:
        status = exit_.code
    finally:
        services.close()
    assert isinstance(status, int | None), status
    return subprocess.CompletedProcess(arguments, status or 0, stdout.getvalue(), stderr.getvalue())
