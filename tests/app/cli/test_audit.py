"""`showhow audit`: what verbs did is listed, exported and verified, and a changed entry ends with status 1."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.app.cli.in_process import run_in_process


def run(home: Path, *words: str) -> str:
    done = run_in_process(home, *words, SHOWHOW_LOGIN="password")
    assert done.returncode == 0, f"showhow {' '.join(words)}: {done.stderr}"
    return done.stdout


def test_what_verbs_did_is_listed_exported_and_verified_until_an_entry_is_changed(tmp_path: Path):
    run(tmp_path, "users", "add", "lea", "--role", "admin")
    run(tmp_path, "users", "add", "ben", "--role", "annotator")
    link = json.loads(run(tmp_path, "users", "invite", "ben", "--json"))["link"]
    run(tmp_path, "users", "disable", "ben")
    run(tmp_path, "traces", "export", str(tmp_path / "traces.jsonl"))
    run(tmp_path, "db", "backup", str(tmp_path / "backup.db"))
    run(tmp_path, "backup", str(tmp_path / "backups"))
    listed = json.loads(run(tmp_path, "audit", "list", "--json"))
    assert [(entry["action"], entry["object_kind"]) for entry in listed] == [
        *(("registered", "person"), ("changed roles", "person"), ("invited", "person")),
        *(("registered", "person"), ("invited", "person"), ("invited", "person"), ("switched off", "person")),
        *(("exported", "traces"), ("backed up", "database"), ("backed up", "database")),
    ]
    assert len(run(tmp_path, "audit", "list", "--limit", "2").splitlines()) == 2
    digest = json.loads(run(tmp_path, "audit", "verify", "--json"))["digest"]
    assert digest == listed[-1]["digest"]
    exported = tmp_path / "audit.jsonl"
    run(tmp_path, "audit", "export", str(exported))
    lines = [json.loads(line) for line in exported.read_text(encoding="utf-8").splitlines()]
    assert lines[:-1] == listed
    assert (lines[-1]["action"], lines[-1]["object_kind"]) == ("exported", "audit log")
    assert link.rpartition("/")[2] not in exported.read_text(encoding="utf-8")
    again = run_in_process(tmp_path, "audit", "export", str(exported))
    assert (again.returncode, "exists already" in again.stderr) == (1, True)
    run(tmp_path, "audit", "verify", "--digest", digest)
    # The backup has its own entry.
    with closing(sqlite3.connect(tmp_path / "backup.db")) as copy:
        assert copy.execute("SELECT action FROM audit_entry ORDER BY position DESC").fetchone() == ("backed up",)
    cut = run_in_process(tmp_path, "audit", "verify", "--digest", "0" * 64)
    assert (cut.returncode, "so it was cut or replaced" in cut.stderr) == (1, True)
    with closing(sqlite3.connect(tmp_path / "showhow.db")) as raw:
        raw.execute("DROP TRIGGER audit_entry_no_update")
        raw.execute("UPDATE audit_entry SET action = 'nothing' WHERE position = 4")
        raw.commit()
    broken = run_in_process(tmp_path, "audit", "verify")
    assert (broken.returncode, "broken at position 4: the entry 4 was changed" in broken.stderr) == (1, True)


def test_a_database_of_another_version_is_backed_up_without_an_entry(tmp_path: Path):
    run(tmp_path, "users", "add", "lea")
    with closing(sqlite3.connect(tmp_path / "showhow.db")) as raw:
        raw.execute("CREATE TRIGGER t AFTER INSERT ON audit_entry BEGIN DELETE FROM user; END")
        raw.commit()
    run(tmp_path, "db", "backup", str(tmp_path / "backup.db"))
    with closing(sqlite3.connect(tmp_path / "backup.db")) as copy:
        assert copy.execute("SELECT name FROM user").fetchall() == [("lea",)]
