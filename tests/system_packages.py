"""Before the tests: the real browser and the real database server, installed where that is possible."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGES = {"chromium": "chromium", "postgresql": "postgresql"}


def missing() -> list[str]:
    """The Debian packages that the tests need and that are not here."""
    here = {
        "chromium": shutil.which("chromium") or shutil.which("google-chrome"),
        "postgresql": shutil.which("initdb") or next(Path("/usr/lib/postgresql").glob("*/bin/initdb"), None),
    }
    return [PACKAGES[name] for name, found in here.items() if not found]


def main() -> int:
    """Install what is missing; 1 and one line on what to do where that is not possible."""
    wanted = missing()
    if not wanted:
        return 0
    line = f"the tests need {' and '.join(wanted)}: apt-get install {' '.join(wanted)}"
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        sys.stderr.write(line + "\n")
        return 1
    sys.stderr.write(f"installing {' and '.join(wanted)} for the tests ...\n")
    quiet = {"stdout": subprocess.DEVNULL, "env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}}
    for command in (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", *wanted]):
        if subprocess.run(command, check=False, **quiet).returncode != 0:
            sys.stderr.write(f"{' '.join(command)} failed; {line}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
