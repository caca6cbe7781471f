"""PostgreSQL's client programs, pg_dump and pg_restore, called with the address of a database."""

import os
import shutil
import subprocess
from collections.abc import Sequence

from sqlalchemy import URL

from db.database import StoreUnavailable


def run_client_program(name: str, options: Sequence[str], url: URL | None = None) -> None:
    """Run the program on that database; StoreUnavailable if it is not installed, or with its first error."""
    program = shutil.which(name)
    if program is None:
        raise StoreUnavailable(f"{name} is not installed; install PostgreSQL's client programs, then try again")
    address = []
    environment = dict(os.environ)
    if url is not None:
        # The password is passed in the environment: every user of the machine can read a command line.
        address = [f"--dbname={url.set(drivername='postgresql', password=None).render_as_string()}"]
        environment |= {"PGPASSWORD": str(url.password)} if url.password else {}
    process = subprocess.run(  # noqa: S603 - PostgreSQL's own program with the database's own address
        [program, *options, *address], capture_output=True, text=True, errors="replace", check=False, env=environment
    )
    if process.returncode != 0:
        first_line = process.stderr.strip().partition("\n")[0]
        raise StoreUnavailable(f"{name} failed: {first_line or 'no reason given'}")
