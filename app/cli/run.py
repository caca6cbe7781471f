"""`showhow run`: serve the pages."""

import os
import socket
import sys
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

import typer

from showhow.app.capacity import raise_descriptor_limit
from showhow.app.cli.backup import report_interrupted_restore
from showhow.app.cli.output import CommandError
from showhow.app.cli.setup import prepare
from showhow.app.jobs import remove_abandoned_uploads
from showhow.app.removals import purge
from showhow.app.services import current_services
from showhow.db.people.logins import has_identity
from showhow.db.storage.restore import remove_abandoned_copy
from showhow.guard.environment import open_held_variables, read_environment
from showhow.guard.files import remove_abandoned_partials
from showhow.runs.resume import end_interrupted_runs
from showhow.runs.services import Services
from showhow.settings import LINKED_LOGINS
from showhow.tasks.imports import finish_interrupted_imports
from showhow.tasks.progress import print_progress
from showhow.worlds.build import remove_half_built_worlds

SERVER_PATH = Path(__file__).resolve().parents[1] / "server.py"


def clear_leftovers(services: Services) -> list[str]:
    """End and remove what killed processes left unfinished, and return a sentence about each; living ones go on."""
    return [
        *_clear_folder(report_interrupted_restore, services.settings.home),
        *_clear_folder(_remove_half_written_files, services.settings.home),
        *remove_abandoned_copy(services.database.url),
        *_clear_folder(remove_half_built_worlds, services.settings.worlds_folder),
        *_clear_folder(remove_abandoned_uploads, services.settings.uploads_folder),
        *end_interrupted_runs(services),
        *finish_interrupted_imports(services),
        *(f"Deleted for good: {name}." for name in purge(services).names),
    ]


def _remove_half_written_files(home: Path) -> list[str]:
    """Remove what killed processes wrote beside its place in the home; worlds have folders of their own for that."""
    removed = [
        path
        for folder in (home, *(home / "libraries").rglob("*/"))
        if folder.is_dir()
        for path in remove_abandoned_partials(folder)
    ]
    return [f"Removed {path}: the process that wrote it was killed." for path in removed]


def _clear_folder(clear: Callable[[Path], list[str]], folder: Path) -> list[str]:
    try:
        return clear(folder)
    except OSError as error:
        # The pages can be served nevertheless.
        return [f"What killed processes left in {folder} could not be removed ({error.strerror})."]


def refuse_unusable_address(address: str, port: int) -> None:
    """Raise CommandError if this machine cannot serve on that address and port."""
    advice = "choose another one with --address and --port"
    try:
        # An empty address would mean all addresses of the machine.
        family, kind, protocol, _, target = socket.getaddrinfo(address or ".", port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise CommandError(f"{address!r} is not an address of this machine ({error}); {advice}") from error
    with socket.socket(family, kind, protocol) as probe:
        # As servers do, so that a connection that was closed a moment ago is no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(target)
        except OSError as error:
            raise CommandError(f"{address} port {port} cannot be served on ({error.strerror}); {advice}") from error


def refuse_open_door(address: str, login: str) -> None:
    """Raise CommandError for an address that other machines reach, unless people log in."""
    addresses = {ip_address(str(entry[4][0]).partition("%")[0]) for entry in socket.getaddrinfo(address, None)}
    if not login and not all(entry.is_loopback for entry in addresses):
        raise CommandError(
            f"other machines reach {address}, and without a login whoever opens the pages could be anybody; set "
            "SHOWHOW_LOGIN=password (or oidc, proxy), or serve on 127.0.0.1"
        )


def run(
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to serve on.")] = 8501,
    address: Annotated[
        str, typer.Option(help="The address to serve on; one that other machines can reach needs a login.")
    ] = "127.0.0.1",
) -> None:
    """Prepare what is missing, then serve the pages until interrupted."""
    refuse_unusable_address(address, port)
    services = current_services()
    refuse_open_door(address, services.settings.login)
    raise_descriptor_limit()
    prepare(services)
    for message in clear_leftovers(services):
        print_progress(message)
    # One thread for the encoder: with more, threads that wait for each other slow down every page.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Two pools of memory for all threads: what one thread frees in a pool of its own, no other thread can use.
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    if services.settings.login in LINKED_LOGINS:
        with services.database.read() as session:
            if not has_identity(session, services.settings.login):
                print_progress("Nobody can log in yet: `showhow users add NAME --role admin` prints a link for that.")
    print_progress(f"Showhow is at http://{address}:{port} (stop it with Ctrl+C)")
    # -P: a folder named like one of our packages in the working directory must not shadow it.
    command = [sys.executable, "-P", "-X", "faulthandler", "-m", "showhow.app.capacity", "run", str(SERVER_PATH)]
    command += [f"--server.address={address}", f"--server.port={port}"]
    # The server has what only the memory of this process holds from a descriptor, and its environment shows none of it.
    environment, held = open_held_variables(read_environment())
    os.set_inheritable(held, True)  # noqa: FBT003 - the function takes no name
    os.environ.clear()
    os.environ.update(environment)
    os.execv(sys.executable, command)  # noqa: S606 - our own server
