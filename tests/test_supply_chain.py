"""What is installed is what the lock files name, and no index can supply anything else."""

import hashlib
import os
import re
import subprocess
import sys
import zipfile
from importlib.metadata import distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
LOCKS = {"requirements.txt": "requirements.lock", "requirements-dev.txt": "requirements-dev.lock"}
ENTRY = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+)(?P<hashes>(?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE
)


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins_of(file: str) -> dict[str, str]:
    lines = [line.partition("#")[0].strip() for line in (ROOT / file).read_text(encoding="utf-8").splitlines()]
    return {normalized(name): version for name, version in (line.split("==") for line in lines if line)}


def locked(file: str) -> dict[str, re.Match[str]]:
    return {normalized(entry["name"]): entry for entry in ENTRY.finditer((ROOT / file).read_text(encoding="utf-8"))}


def commands(target: str, *variables: str) -> list[str]:
    """The pip commands that the target would run in a fresh checkout, without running them."""
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", target, *variables], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [part for line in done.stdout.splitlines() for part in re.split(r"\|\||&&", line) if "pip install" in part]


@pytest.mark.parametrize(("pins", "lock"), LOCKS.items())
def test_a_lock_file_has_exactly_the_pins_each_with_hashes_and_nothing_else(pins: str, lock: str):
    entries = locked(lock)
    assert {name: entry["version"] for name, entry in entries.items()} == pins_of(pins)
    rest = ENTRY.sub("", (ROOT / lock).read_text(encoding="utf-8"))
    assert [line for line in rest.splitlines() if line and not line.startswith("#")] == []


def test_the_installed_packages_are_those_of_the_lock_files():
    pins = {name: version for file in LOCKS for name, version in pins_of(file).items()}
    installed = {normalized(package.metadata["Name"]): package.version for package in distributions()}
    # pip came with the environment; torch is the build for CPUs of the pinned version.
    assert {
        name: version.partition("+")[0] for name, version in installed.items() if name not in {"pip", "showhow"}
    } == pins


@pytest.mark.parametrize("target", [".venv/installed", ".venv/installed-dev"])
def test_only_torch_is_installed_without_hashes_and_only_it_from_another_index(target: str):
    torch = f"torch=={pins_of('requirements.txt')['torch']}+cpu"
    for command in commands(target):
        words = command.split()
        assert "--no-deps" in words, command
        assert "--extra-index-url" not in command
        if "--editable" in words:
            # Showhow itself: what builds it is installed already, with its hash.
            assert {"--no-index", "--no-build-isolation"} <= set(words)
        elif torch not in words:
            assert {"--require-hashes", "--only-binary", ":all:"} <= set(words), command
        if "--index-url" in words:
            assert [word for word in words if "==" in word] == [torch]
    assert any("--require-hashes" in command for command in commands(target))


def test_no_file_of_the_project_names_an_extra_index():
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        file = ROOT / name
        if file.is_file() and file.name != Path(__file__).name:
            assert b"extra-index-url" not in file.read_bytes().lower(), name


def test_another_file_of_a_pinned_package_is_refused_wherever_it_comes_from(tmp_path: Path):
    """An index that offers the pinned version of idna with other contents."""
    entry = locked("requirements.lock")["idna"]
    wheel = tmp_path / f"idna-{entry['version']}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("idna/__init__.py", "raise SystemExit('mine now')\n")
        folder = f"idna-{entry['version']}.dist-info"
        archive.writestr(f"{folder}/METADATA", f"Metadata-Version: 2.1\nName: idna\nVersion: {entry['version']}\n")
        archive.writestr(f"{folder}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{folder}/RECORD", "")
    lock = tmp_path / "idna.lock"
    lock.write_text(f"{entry.group()}\n")
    [command] = [command for command in commands(".venv/installed") if "--require-hashes" in command]
    flags = command[command.index("pip install") :].split()[2:-2]
    install = [sys.executable, "-m", "pip", "install", *flags, "--target", str(tmp_path / "into")]
    offer = ["--no-index", "--find-links", str(tmp_path)]
    environ = {**os.environ, "PIP_CONFIG_FILE": os.devnull}
    refused = subprocess.run(
        [*install, *offer, "--requirement", lock], env=environ, capture_output=True, text=True, check=False
    )
    assert refused.returncode == 1
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in refused.stderr
    assert not (tmp_path / "into").exists()
    # The same command installs the file if the lock names its hash, so the hash is what refuses it.
    lock.write_text(f"idna=={entry['version']} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n")
    subprocess.run([*install, *offer, "--requirement", lock], env=environ, capture_output=True, check=True)
    assert (tmp_path / "into" / "idna" / "__init__.py").exists()
