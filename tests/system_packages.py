"""Before the tests: the real browser, the real servers and what they run on, installed where that is possible."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
"""The programs that can show the pages, best first; the first is a Debian package of that name."""
PHP = {"php-cli": "Core", "php-sqlite3": "sqlite3", "php-mbstring": "mbstring", "php-xml": "xml", "php-intl": "intl"}
"""What MediaWiki needs, each with the module of PHP that shows it is here."""


def missing() -> list[str]:
    """The Debian packages that the tests need and that are not here."""
    here: dict[str, object] = {
        BROWSERS[0]: any(map(shutil.which, BROWSERS)),
        "postgresql": shutil.which("initdb") or next(Path("/usr/lib/postgresql").glob("*/bin/initdb"), None),
    }
    here["haproxy"] = shutil.which("haproxy") or Path("/usr/sbin/haproxy").exists()
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
    required = missing()
    # Any of the browsers is enough; the first is the fastest.
    preferred = [] if shutil.which(BROWSERS[0]) or BROWSERS[0] in required else [BROWSERS[0]]
    if os.geteuid() == 0 and shutil.which("apt-get"):
        for packages in filter(None, (required, preferred)):
            _install(packages)
        required = missing()
    if required:
        names = " ".join(required)
        sys.stderr.write(
            f"the tests need packages that are missing and could not be installed: apt-get install {names}\n"
        )
    return 1 if required else 0


def _install(packages: list[str]) -> None:
    sys.stderr.write(f"installing {' and '.join(packages)} for the tests ...\n")
    quiet = {"stdout": subprocess.DEVNULL, "env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}}
    for command in (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", *packages]):
        if subprocess.run(command, check=False, **quiet).returncode != 0:
            sys.stderr.write(f"{' '.join(command)} failed\n")


if __name__ == "__main__":
    sys.exit(main())
