"""compose.yaml, without Docker: what the containers may do, and that the verbs they run exist as they are written.

The benchmark of load starts the same pieces on loopback, with the same haproxy.cfg.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "compose.yaml").read_text(encoding="utf-8")
COMPOSED = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSED["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
SHOWHOW = Path(sys.executable).with_name("showhow")


def test_there_are_the_pieces_of_a_team_server():
    assert set(SERVICES) == {"db", "migrate", "app", "worker", "proxy", "backup"}
    assert set(OURS) == {"migrate", "app", "worker", "backup"}
    assert SERVICES["app"]["deploy"]["replicas"] > 1
    # Only the proxy can be reached from outside.
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["proxy"]
    started = {"service_completed_successfully"}
    assert {
        service["depends_on"]["migrate"]["condition"] for name, service in OURS.items() if name != "migrate"
    } == started


@pytest.mark.parametrize("name", [*OURS, "proxy"])
def test_a_container_writes_to_its_data_only_has_no_rights_and_bounded_memory(name: str):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert re.fullmatch(r"\d+[gm]", service["mem_limit"])
    assert "user" not in service, "the image says who runs it"


def test_only_the_one_that_makes_worlds_may_change_them():
    mounts = [(name, mount) for name, service in OURS.items() for mount in service["volumes"]]
    worlds = {name: mount for name, mount in mounts if mount.startswith("worlds:")}
    assert {name for name, mount in worlds.items() if not mount.endswith(":ro")} == {"migrate"}
    assert set(worlds) == set(OURS)
    owned = next(line for line in (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines() if "--owner" in line)
    targets = {mount.split(":")[1] for _, mount in mounts}
    assert targets <= set(owned.split()), "a volume that the user of the container does not own"


def test_secrets_are_files_and_in_no_variable_of_a_container():
    assert all(set(secret) == {"file"} for secret in COMPOSED["secrets"].values())
    values = [value for service in SERVICES.values() for value in service.get("environment", {}).values()]
    assert not any(re.search(r"://[^/@]*:[^/@]*@", value) for value in values)
    assert not any(
        "PASSWORD" in name.removesuffix("_FILE") and not name.endswith("_FILE")
        for service in SERVICES.values()
        for name in service.get("environment", {})
    )
    assert "/secrets/" in (ROOT / ".gitignore").read_text(encoding="utf-8").split()


def test_the_password_reaches_the_program_from_its_file(tmp_path: Path):
    (tmp_path / "database_password").write_text("4f 'x\n", encoding="utf-8")
    entrypoint = [word.replace("$$", "$").replace("/run/secrets", str(tmp_path)) for word in OURS["app"]["entrypoint"]]
    printed = subprocess.run([*entrypoint, "printenv", "PGPASSWORD"], check=True, capture_output=True, text=True).stdout
    assert printed == "4f 'x\n"


@pytest.mark.long
@pytest.mark.parametrize("name", list(OURS))
def test_the_verbs_take_the_options_that_are_written(name: str, tmp_path: Path):
    command = OURS[name]["command"]
    script = command[2] if command[:2] == ["sh", "-c"] else shlex.join(command)
    [words] = [shlex.split(part) for part in re.findall(r"showhow [^;&|]*", script)]
    shown = subprocess.run(
        [SHOWHOW, *words[1:], "--help"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "SHOWHOW_HOME": str(tmp_path), "COLUMNS": "200"},
    ).stdout
    assert {word for word in words if word.startswith("--")} <= set(re.findall(r"--[\w-]+", shown))


def test_the_proxy_serves_at_the_published_port_with_the_certificate():
    text = (ROOT / "haproxy.cfg").read_text(encoding="utf-8")
    port = SERVICES["proxy"]["ports"][0].split(":")[1]
    assert f"bind :{port} ssl crt /run/secrets/certificate " in text
