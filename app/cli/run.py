"""`showhow run`: serve the pages."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from app.cli.setup import prepare
from app.progress import print_progress
from app.services import services

SERVER_PATH = Path(__file__).resolve().parents[1] / "server.py"


def run(
    port: Annotated[int, typer.Option(help="The port to serve on.")] = 8501,
    address: Annotated[
        str, typer.Option(help="The address to serve on; protect any address that other machines can reach.")
    ] = "127.0.0.1",
) -> None:
    """Prepare what is missing, then serve the pages until interrupted."""
    prepare(services())
    options = {
        "server.address": address,
        "server.port": str(port),
        "server.enableAgentApi": os.environ.get("SHOWHOW_AGENT_API", "false"),
    }
    # One thread for the encoder: with more, threads that wait for each other slow down every page.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    print_progress(f"Showhow is at http://{address}:{port} (stop it with Ctrl+C)")
    flags = [f"--{name}={value}" for name, value in options.items()]
    # -P: a folder named like one of our packages in the working directory must not shadow it.
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(SERVER_PATH), *flags]
    os.execv(sys.executable, command)  # noqa: S606 - our own server
