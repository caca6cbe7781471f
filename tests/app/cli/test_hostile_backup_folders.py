"""Backup folders of strangers: the manifest, the files and the database are checked before anything is replaced."""

import copy
import hashlib
import json
import os
import shutil
import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from showhow.app.cli.backup import INTERRUPTED_RESTORE_FILE, report_interrupted_restore
from tests.app.cli.in_process import run_in_process
from tests.app.cli.test_db import failure, import_questions, import_world, projects_of

run = run_in_process


@pytest.fixture(scope="module")
def folder_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup with the world w and the project P."""
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("backups") / "backup"
    import_world(home, "w", "Ada built quay 1.")
    import_questions(home, "P")
    assert run(home, "backup", folder).returncode == 0
    return folder


@pytest.fixture
def folder(folder_template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder_template, tmp_path / "backup"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with one project of its own, and no world of the backup."""
    home = tmp_path / "home"
    home.mkdir()
    import_world(home, "v", "Ben built quay 2.")
    import_questions(home, "mine", "v")
    return home


def snapshot(home: Path) -> set[tuple[str, int]]:
    """What is there, but for logs and locks."""
    return {
        (str(path.relative_to(home)), path.lstat().st_size)
        for path in home.rglob("*")
        if not path.name.endswith(("-wal", "-shm", "lock"))
    }


def manifests(whole: dict[str, Any]) -> dict[str, str]:
    """Manifests by what is wrong with them."""
    cases: dict[str, str] = {}

    def add(label: str, change: Callable[[dict[str, Any]], object]) -> None:
        value = copy.deepcopy(whole)
        change(value)
        cases[label] = json.dumps(value)

    for name in ("made", "database", "database_digest", "worlds"):
        add(f"no {name}", lambda value, name=name: value.pop(name))
        for odd in (None, 1, [], {}, True, [1], "x" * 1000, "\ud800", -1, 1e300):
            if (name, odd) != ("worlds", []):  # a backup without worlds
                add(f"{name} is {odd!r:.20}", lambda value, name=name, odd=odd: value.update({name: odd}))
    for name in ("name", "folder", "digest"):
        add(f"a world without {name}", lambda value, name=name: value["worlds"][0].pop(name))
        for odd in (None, 1, [], {}, "x" * 1000, "../w", "/etc", ".", "", "con", "a/b", "w\n", "ẃ", "w\0"):
            change = lambda value, name=name, odd=odd: value["worlds"][0].update({name: odd})  # noqa: E731
            add(f"a world's {name} is {odd!r:.20}", change)
    for path in (
        "/etc/passwd",
        "../home/showhow.db",
        "worlds",
        "backup.json",
        "",
        "database-1.db/../x",
        "database-1.db\n",
    ):
        add(f"database at {path!r}", lambda value, path=path: value.update(database=path))
    add("worlds twice", lambda value: value["worlds"].append(value["worlds"][0]))
    add("an unknown version", lambda value: value.update(version=2))
    add("an unknown field", lambda value: value.update(command="x"))
    add("another size", lambda value: value.update(database_bytes=5))
    add("another size of a world", lambda value: value["worlds"][0].update(bytes=5))
    add("10,001 worlds", lambda value: value.update(worlds=value["worlds"] * 10_001))
    cases["deep"] = "[" * 100_000
    cases["deep worlds"] = '{"worlds": ' + '{"a":' * 100_000
    cases["no number"] = '{"made": NaN}'
    cases["a long number"] = '{"version": ' + "9" * 100_000 + "}"
    cases["large"] = json.dumps(whole) + " " * 9_000_000
    cases["empty"] = ""
    cases["a list"] = "[]"
    cases["null"] = "null"
    cases["UTF-16"] = "\ufeff{}"
    return cases


def test_every_odd_manifest_is_refused_in_one_sentence_and_nothing_is_touched(home: Path, folder: Path):
    whole = json.loads((folder / "backup.json").read_text())
    before = snapshot(home)
    for label, content in manifests(whole).items():
        (folder / "backup.json").write_text(content)
        line = failure(run(home, "restore", folder))
        assert len(line) < 600, label
        assert snapshot(home) == before, label
    assert projects_of(home) == ["mine"]


def test_a_manifest_of_a_former_version_is_restored(home: Path, folder: Path):
    manifest = json.loads((folder / "backup.json").read_text())
    for values in (manifest, *manifest["worlds"]):
        for name in ("version", "database_bytes", "bytes"):
            values.pop(name, None)
    (folder / "backup.json").write_text(json.dumps(manifest))
    restored = run(home, "restore", folder)
    assert restored.returncode == 0, restored.stderr
    assert projects_of(home) == ["P"]


def _bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        place = os.open(path.parent, os.O_RDONLY)
        # The path of a socket is short.
        listener.bind(f"/proc/self/fd/{place}/{path.name}")
        os.close(place)


SPECIAL_FILES: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to a file": lambda path: path.symlink_to("/etc/passwd"),
    "a link to a folder": lambda path: path.symlink_to("/etc"),
    "a link to itself": lambda path: path.symlink_to(path),
    "a folder": lambda path: path.mkdir(),
    "a socket": _bind,
}


@pytest.mark.parametrize("kind", SPECIAL_FILES)
def test_special_files_anywhere_in_a_backup_are_refused_before_anything_is_replaced(
    home: Path, folder: Path, tmp_path: Path, kind: str
):
    before = snapshot(home)
    manifest = json.loads((folder / "backup.json").read_text())
    world = f"worlds/{manifest['worlds'][0]['folder']}"
    for place in ("backup.json", manifest["database"], world, f"{world}/world.toml", f"{world}/new", f"{world}/text"):
        changed = Path(shutil.copytree(folder, tmp_path / "changed"))
        if (changed / place).is_dir():
            shutil.rmtree(changed / place)
        (changed / place).unlink(missing_ok=True)
        SPECIAL_FILES[kind](changed / place)
        if not (kind == "a folder" and place.endswith("new")):  # an empty folder is nothing
            failure(run(home, "restore", changed))
            assert snapshot(home) == before, place
        shutil.rmtree(changed)


def test_holes_and_a_database_with_triggers_in_a_folder_are_refused_or_left_out(home: Path, folder: Path):
    manifest = json.loads((folder / "backup.json").read_text())
    database = folder / manifest["database"]
    with closing(sqlite3.connect(database)) as raw:
        raw.execute("CREATE TRIGGER t AFTER INSERT ON user BEGIN UPDATE user SET roles = '[\"admin\"]'; END")
    manifest["database_digest"] = hashlib.sha256(database.read_bytes()).hexdigest()
    manifest["database_bytes"] = database.stat().st_size
    (folder / "backup.json").write_text(json.dumps(manifest))
    restored = run(home, "restore", folder)
    assert "the trigger t of user" in restored.stdout
    assert run(home, "db", "check").stdout == "the database is sound\n"
    with database.open("r+b") as file:
        file.truncate(30 * 1024**3)
    del manifest["database_bytes"]
    (folder / "backup.json").write_text(json.dumps(manifest))
    assert "mostly holes" in failure(run(home, "restore", folder))


def test_a_damaged_world_or_a_confusing_name_is_refused_before_the_database_is_replaced(home: Path, folder: Path):
    before = snapshot(home)
    manifest = json.loads((folder / "backup.json").read_text())
    (world,) = (folder / "worlds").iterdir()
    content = (world / "world.toml").read_bytes()
    (world / "world.toml").write_bytes(content.replace(b"imported", b"exported"))
    assert "is damaged or incomplete" in failure(run(home, "restore", folder))
    (world / "world.toml").write_bytes(content)
    for name in ("V", "con"):
        manifest["worlds"][0]["name"] = name
        (folder / "backup.json").write_text(json.dumps(manifest))
        assert "cannot name a world" in failure(run(home, "restore", folder))
    assert snapshot(home) == before


def test_an_interrupted_restore_is_reported_until_it_is_completed(home: Path, folder: Path):
    assert report_interrupted_restore(home) == []
    (home / INTERRUPTED_RESTORE_FILE).write_text(str(folder))
    (sentence,) = report_interrupted_restore(home)
    assert f"`showhow restore {folder}` again" in sentence
    assert run(home, "restore", folder).returncode == 0
    assert report_interrupted_restore(home) == []
