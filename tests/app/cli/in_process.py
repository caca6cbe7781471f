"""Runs a verb in the test process with services of its own, for tests that do not need a separate process."""

import contextlib
import io
import os
import subprocess
from functools import cache
from pathlib import Path

from showhow.app.cli.main import main
from showhow.app.services import use_services
from showhow.fewshot_library.encoder import SentenceEncoder
from showhow.runs.services import Services
from showhow.settings import DEFAULT_ENCODER, Settings


@cache
def shared_encoder() -> SentenceEncoder:
    """The encoder of all verbs of this process; its model loads once."""
    return SentenceEncoder(DEFAULT_ENCODER)


def run_in_process(home: Path, *words: str | Path | bytes, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Run `showhow WORDS` in that home, with settings from `environ` only."""
    arguments = [os.fsdecode(word) for word in words]
    values = {**environ, "SHOWHOW_HOME": str(home)}
    services = Services(Settings.from_env(values), values)
    # The dataclass is frozen, but its cached properties are plain entries of its dictionary.
    vars(services)["encoder"] = shared_encoder()
    stdout, stderr = io.StringIO(), io.StringIO()
    status: int | str | None = 0
    with (
        contextlib.chdir(home),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
        use_services(services),
    ):
        try:
            main(arguments)
        except SystemExit as exit_:
            status = exit_.code
        finally:
            # What functions printed last is passed on when their process is closed.
            services.close()
    assert isinstance(status, int | None), status
    return subprocess.CompletedProcess(arguments, status or 0, stdout.getvalue(), stderr.getvalue())
