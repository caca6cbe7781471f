"""Before the tests: the real browser, the real servers and what they run on, installed where that is possible."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

PHP = {"php-cli": "Core", "php-sqlite3": "sqlite3", "php-mbstring": "mbstring", "php-xml": "xml", "php-intl": "intl"}
"""What MediaWiki needs, each with the module of PHP that shows it is here."""


def missing() -> list[str]:
    """The Debian packages that the tests need and that are not here."""
    here: dict[str, object] = {
        "chromium": shutil.which("chromium") or shutil.which("google-chrome"),
        "postgresql": shutil.which("initdb") or next(Path("/usr/lib/postgresql").glob("*/bin/initdb"), None),
    }
    here["virtuoso-minimal"] = shutil.which("virtuoso-t") and shutil.which("isql-vt")
    modules = _php_modules()
    here |= {package: module in modules for package, module in PHP.items()}
    return [package for package, found in here.items() if not found]


def _php_modules() -> frozenset[str]:
    if shutil.which("php") is None:
        return frozenset()
    return frozenset(subprocess.run(["php", "-m"], check=True, capture_output=True, text=True).stdout.split())


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
