"""The Dockerfile, without Docker: its steps are those of a checkout, and its program runs from what it copies."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.browser.server import copy_prepared_home
from tests.servers.loopback import free_port

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[1]
INSTRUCTION = re.compile(r"^([A-Z]+) ((?:.*\\\n)*.*)$", re.MULTILINE)
STEPS = [
    (word, rest.replace("\\\n", " "))
    for word, rest in INSTRUCTION.findall((ROOT / "Dockerfile").read_text(encoding="utf-8"))
]
IGNORED = [
    line
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def the(word: str) -> str:
    """What stands after the only instruction of that name."""
    [rest] = [rest for name, rest in STEPS if name == word]
    return rest


def index_of(word: str, rest: str) -> int:
    return next(number for number, step in enumerate(STEPS) if step[0] == word and step[1].startswith(rest))


def copied_files() -> list[Path]:
    """What `COPY . .` takes from a checkout: what .dockerignore excepts from its `*`, without what it then excludes."""
    excepted = {line[1:] for line in IGNORED if line.startswith("!")}
    excluded = {line.removeprefix("**/") for line in IGNORED if line.startswith("**/")}
    assert IGNORED[0] == "*"
    assert len(excepted) + len(excluded) + 1 == len(IGNORED), "a pattern that this test does not know"
    paths = [path for name in sorted(excepted) for path in (ROOT / name, *(ROOT / name).rglob("*"))]
    return [path for path in paths if path.is_file() and not excluded & set(path.relative_to(ROOT).parts)]


def test_the_server_runs_as_a_user_without_rights_who_owns_only_the_data():
    user = the("USER")
    created = next(rest for word, rest in STEPS if word == "RUN" and "useradd" in rest)
    assert re.search(rf"useradd .*--uid [1-9]\d{{3,}} {user}\b", created)
    assert f"--owner {user} " in created
    assert the("VOLUME") in created
    assert f"SHOWHOW_HOME={the('VOLUME')}" in the("ENV")
    # The program is copied and installed before, by root, and what follows runs as the user.
    assert index_of("COPY", ".") < index_of("RUN", "make install") < index_of("USER", user) < index_of("CMD", "[")
    assert "--chown" not in the("COPY")


def test_the_steps_are_those_of_a_checkout():
    assert ("RUN", "make install") in STEPS
    assert re.search(r"^install: \$\(VENV\)/installed", MAKEFILE, re.MULTILINE)
    last = MAKEFILE.split("\nrun: ")[1].split("\n")[1].strip("\t@")
    assert last == "$(BIN)/showhow run"
    command = json.loads(the("CMD"))
    assert command[:2] == ["showhow", "run"]
    # In a container nobody reaches the address of this machine, and whoever reaches another one logs in.
    assert command[2:] == ["--address", "0.0.0.0"]  # noqa: S104 - the address inside the container
    assert "SHOWHOW_LOGIN=password" in the("ENV")
    assert f"PATH={the('WORKDIR')}/.venv/bin:$PATH" in the("ENV")
    page = (ROOT / "docs" / "how-to" / "install-and-serve.md").read_text(encoding="utf-8")
    for option in (f"--publish 127.0.0.1:{the('EXPOSE')}:{the('EXPOSE')}", f"--volume showhow:{the('VOLUME')}"):
        assert option in page


def test_the_image_has_every_part_of_the_program_and_nothing_else():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    rooms = set(project["package-dir"].values())
    names = {path.relative_to(ROOT).parts[0] for path in copied_files()}
    read_by_make = {"Makefile", "pyproject.toml", "requirements.lock"}
    assert names == {
        *rooms,
        *read_by_make,
        "LICENSE",
        "README.md",
        "docs",
    }
    assert {line[1:] for line in IGNORED if line.startswith("!")} == names, "an exception names nothing"
    assert not any(path.name == ".env" or path.suffix in {".db", ".pyc"} for path in copied_files())


@pytest.fixture
def container(tmp_path: Path) -> Path:
    """The folders of the image: the program, and the data."""
    for path in copied_files():
        target = tmp_path / "showhow" / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    copy_prepared_home(tmp_path / "data")
    # An environment that has the packages of this one, but for Showhow, which is installed from there.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    [packages] = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (packages / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    install = ["install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--ignore-installed"]
    pip = [sys.executable, "-m", "pip", "--python", tmp_path / "venv" / "bin" / "python"]
    subprocess.run([*pip, *install, "--editable", tmp_path / "showhow"], check=True)
    return tmp_path


@contextlib.contextmanager
def serving(container: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    """Run CMD in the folder of the program."""
    command = [*json.loads(the("CMD")), "--port", str(port)]
    command = ["127.0.0.1" if word == "0.0.0.0" else word for word in command]  # noqa: S104 - likewise
    environ = {
        "PATH": f"{container / 'venv' / 'bin'}:{os.environ['PATH']}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SHOWHOW_HOME": str(container / "data"),
        "SHOWHOW_LOGIN": "password",
        "HOME": str(container / "data"),
    }
    with subprocess.Popen(
        command, cwd=container / "showhow", env=environ, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def healthcheck(port: int) -> int:
    """Run the command of HEALTHCHECK; its exit status."""
    arguments = json.loads(the("HEALTHCHECK").split("CMD ", 1)[1])
    assert arguments[0] == "python"
    program = [argument.replace(the("EXPOSE"), str(port)) for argument in arguments[1:]]
    return subprocess.run([sys.executable, *program], capture_output=True, check=False).returncode


def test_the_program_runs_from_the_copied_files_and_the_health_check_tells_whether_it_does(container: Path):
    port = free_port()
    program = sorted((container / "showhow").rglob("*"))
    assert healthcheck(port) != 0
    with serving(container, port) as process:
        end = time.monotonic() + 120
        while healthcheck(port) != 0:
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
            assert time.monotonic() < end
        served = Path(f"/proc/{process.pid}/cmdline").read_text(encoding="utf-8").split("\0")
        assert str(container / "showhow" / "app" / "server.py") in served
        # A container serves other machines, so people log in.
        first_page = urllib.request.Request(f"http://127.0.0.1:{port}/", headers={"Accept": "text/html"})
        with urllib.request.urlopen(first_page, timeout=10) as page:  # noqa: S310 - this machine
            assert urlsplit(page.url).path == "/login"
            assert b"<html" in page.read().lower()
    assert healthcheck(port) != 0
    # The user of the container could not write there.
    assert sorted((container / "showhow").rglob("*")) == program
