"""`showhow db`, `backup`, `restore` and the refusals of `run`: what they print, refuse and leave."""

import json
import os
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from showhow.db.database import Database
from showhow.db.storage.move import digest_table
from showhow.db.types import Base
from showhow.tasks.backup import choose_kept
from showhow.worlds.live.consent import CONSENT_FILE
from tests.app.cli.in_process import run_in_process
from tests.browser.server import Showhow
from tests.servers.loopback import free_port

SHOWHOW = Path(sys.executable).with_name("showhow")


run = run_in_process


def failure(done: "subprocess.CompletedProcess[str]") -> str:
    """The one line of a verb that failed."""
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def question_file(home: Path, number: int) -> Path:
    file = home / f"questions{number}.jsonl"
    file.write_text(json.dumps({"question": f"Who built quay {number}?", "answer": "Ada"}) + "\n")
    return file


def import_questions(home: Path, project: str, world: str = "w") -> None:
    done = run(home, "questions", "import", question_file(home, len(project)), "--project", project, "--world", world)
    assert done.returncode == 0, done.stderr


def import_world(home: Path, name: str, sentence: str, *options: str) -> None:
    done = run(home, "world", "import", name, "--articles", article_file(home, sentence), *options)
    assert done.returncode == 0, done.stderr


def article_file(home: Path, sentence: str) -> Path:
    file = home / "articles.jsonl"
    file.write_text(json.dumps({"title": "Harbour", "text": sentence}) + "\n")
    return file


def projects_of(home: Path) -> list[str]:
    listed = run(home, "project", "list", "--json")
    assert listed.returncode == 0, listed.stderr
    return [project["name"] for project in json.loads(listed.stdout)]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a small world and one project over it."""
    home = tmp_path_factory.mktemp("home")
    import_world(home, "w", "Ada built quay 1.")
    import_questions(home, "P")
    return home


@pytest.fixture
def home(prepared: Path, tmp_path: Path) -> Path:
    """A copy of the prepared home."""
    return Path(shutil.copytree(prepared, tmp_path / "home"))


def test_a_database_is_restored_after_a_crash_that_left_a_log(home: Path):
    assert run(home, "db", "backup", home / "b.db").returncode == 0
    import_questions(home, "PP")
    (home / "showhow.db-wal").write_text("not a wal")
    done = run(home, "db", "restore", home / "b.db", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["findings"], report["missing_worlds"]) == ([], [])
    assert Path(report["former"]).is_file()
    assert run(home, "db", "check").stdout == "the database is sound\n"
    assert projects_of(home) == ["P"]


def test_a_restore_names_the_worlds_that_are_missing(home: Path):
    run(home, "db", "backup", home / "b.db")
    shutil.rmtree(home / "worlds" / "w")
    restored = run(home, "db", "restore", home / "b.db")
    assert "missing world: w" in restored.stdout


def test_a_backup_folder_has_the_worlds_and_restores_what_is_missing_or_changed(home: Path, tmp_path: Path):
    folder = tmp_path / "backup"
    backed_up = run(home, "backup", folder, "--json")
    assert backed_up.returncode == 0, backed_up.stderr
    (world,) = json.loads(backed_up.stdout)["worlds"]
    content_hash = json.loads(run(home, "world", "info", "w", "--json").stdout)["hash"]
    assert (world["name"], world["hash"]) == ("w", content_hash)

    import_questions(home, "PP")
    shutil.rmtree(home / "worlds" / "w")
    restored = run(home, "restore", folder, "--json")
    assert restored.returncode == 0, restored.stderr
    report = json.loads(restored.stdout)
    assert (report["restored_worlds"], report["former_worlds"], report["missing_worlds"]) == (["w"], [], [])
    assert json.loads(run(home, "world", "info", "w", "--json").stdout)["hash"] == content_hash
    assert projects_of(home) == ["P"]
    assert "Ada built quay 1." in run(home, "world", "article", "w", "Harbour").stdout

    import_world(home, "w", "Ben built quay 2.", "--replace")
    report = json.loads(run(home, "restore", folder, "--json").stdout)
    assert report["restored_worlds"] == ["w"]
    assert Path(report["former_worlds"][0], "world.toml").is_file()
    assert json.loads(run(home, "world", "info", "w", "--json").stdout)["hash"] == content_hash
    assert json.loads(run(home, "restore", folder, "--json").stdout)["restored_worlds"] == []


def test_a_backup_has_what_links_lead_to_and_survives_files_of_the_system(home: Path, tmp_path: Path):
    text = home / "worlds" / "w" / "text"
    text.rename(tmp_path / "elsewhere")
    text.symlink_to(tmp_path / "elsewhere")
    folder = tmp_path / "backup"
    assert run(home, "backup", folder).returncode == 0
    (folder / "worlds" / ".DS_Store").write_text("")
    done = run(home, "backup", folder)
    assert done.returncode == 0, done.stderr
    other = tmp_path / "other"
    other.mkdir()
    restored = run(other, "restore", folder)
    assert restored.returncode == 0, restored.stderr
    shutil.rmtree(tmp_path / "elsewhere")
    assert "Ada built quay 1." in run(other, "world", "article", "w", "Harbour").stdout


def test_consent_to_send_headers_is_in_no_backup(home: Path, tmp_path: Path):
    consent = home / "worlds" / "w" / CONSENT_FILE
    consent.write_text("[]")
    folder = tmp_path / "backup"
    assert run(home, "backup", folder).returncode == 0
    assert list(folder.rglob(CONSENT_FILE)) == []
    # Also not from the backup of a stranger who put it there.
    (world,) = (folder / "worlds").iterdir()
    (world / CONSENT_FILE).write_text("[]")
    other = tmp_path / "other"
    other.mkdir()
    restored = run(other, "restore", folder)
    assert restored.returncode == 0, restored.stderr
    assert list(other.rglob(CONSENT_FILE)) == []


def test_a_second_backup_to_the_same_folder_copies_only_new_worlds(home: Path, tmp_path: Path):
    folder = tmp_path / "backup"
    run(home, "backup", folder)
    (world,) = (folder / "worlds").iterdir()
    made = world.stat().st_ino
    import_questions(home, "PP")
    import_world(home, "v", "Ben built quay 2.")
    assert run(home, "backup", folder).returncode == 0
    assert sorted(path.name[:2] for path in (folder / "worlds").iterdir()) == ["v-", "w-"]
    assert world.stat().st_ino == made
    assert len(list(folder.glob("database-*"))) == 1
    shutil.rmtree(home)
    home.mkdir()
    assert run(home, "restore", folder).returncode == 0
    assert projects_of(home) == ["P", "PP"]
    assert sorted(path.name for path in (home / "worlds").iterdir()) == ["v", "w"]


def digests(home: Path) -> dict[str, object]:
    with closing(Database(f"sqlite:///{home / 'showhow.db'}")) as database, database.engine.connect() as connection:
        return {table.name: digest_table(connection, table) for table in Base.metadata.sorted_tables}


def test_nightly_backups_keep_the_last_of_days_and_weeks_and_one_restores_every_row_without_the_others(
    home: Path, tmp_path: Path
):
    folder = tmp_path / "nightly"
    keep = ["--keep-daily", "2", "--keep-weekly", "2"]
    assert run(home, "backup", folder, *keep).returncode == 0
    (first,) = (path for path in folder.iterdir() if path.is_dir())
    before = digests(home)
    # As if they had been made in other nights; the last one was killed.
    for name in ("2026-01-04T020000Z", "2026-01-05T020000Z", "2026-01-06T020000Z", "2026-01-06T030000Z"):
        shutil.copytree(first, folder / name)
    shutil.rmtree(first)
    (folder / "2026-01-06T030000Z" / "backup.json").unlink()
    import_questions(home, "PP")
    done = run(home, "backup", folder, *keep, "--json")
    assert done.returncode == 0, done.stderr
    made = Path(json.loads(done.stdout)["folder"])
    # Two days, and two weeks: the last of the week that began on January 5.
    kept = folder / "2026-01-06T020000Z"
    assert {path for path in folder.iterdir() if path.is_dir()} == {made, kept}
    assert len(json.loads(done.stdout)["removed"]) == 3
    (world,) = (made / "worlds").iterdir()
    (former,) = (kept / "worlds").iterdir()
    assert (world / "world.toml").samefile(former / "world.toml")
    shutil.rmtree(kept)
    after = digests(home)
    assert after != before
    import_questions(home, "PPP")
    shutil.rmtree(home / "worlds" / "w")
    assert run(home, "restore", made).returncode == 0
    assert digests(home) == after
    assert "Ada built quay 1." in run(home, "world", "article", "w", "Harbour").stdout


def test_the_rotation_keeps_seven_days_and_four_weeks_of_a_year_of_nights():
    nights = [datetime(2026, 1, 1, 2, tzinfo=UTC) + timedelta(days=day) for day in range(365)]
    kept: list[Path] = []
    for night in nights:
        kept = sorted(choose_kept([*kept, Path(f"{night:%Y-%m-%dT%H%M%SZ}")], 7, 4))
    last = [Path(f"{night:%Y-%m-%dT%H%M%SZ}") for night in nights[-7:]]
    sundays = [Path(f"{night:%Y-%m-%dT%H%M%SZ}") for night in nights if night.isoweekday() == 7][-3:]
    assert kept == sorted({*last, *sundays})
    assert choose_kept(last, 0, 1) == choose_kept(last, 1, 0) == {last[-1]}


def test_a_backup_that_is_damaged_or_no_backup_is_refused(home: Path, tmp_path: Path):
    folder = tmp_path / "backup"
    run(home, "backup", folder)
    damaged = tmp_path / "damaged"
    shutil.copytree(folder, damaged)
    (database,) = damaged.glob("database-*")
    database.write_bytes(database.read_bytes()[:-1])
    assert "is damaged or missing" in failure(run(home, "restore", damaged))
    shutil.rmtree(damaged)
    shutil.copytree(folder, damaged)
    file = next((damaged / "worlds").rglob("articles*"), None) or next((damaged / "worlds").rglob("*.toml"))
    file.unlink()
    shutil.rmtree(home / "worlds" / "w")
    assert "the world w in" in failure(run(home, "restore", damaged))
    assert "is no backup" in failure(run(home, "restore", tmp_path))
    assert "`showhow restore" in failure(run(home, "db", "restore", folder))
    assert "holds other files" in failure(run(home, "backup", home))
    assert projects_of(home) == ["P"]


@pytest.mark.long
def test_a_backup_killed_at_any_moment_leaves_the_former_one(home: Path, tmp_path: Path):
    folder = tmp_path / "backup"
    environment = Showhow(home, empty=True).environment
    started = time.monotonic()
    subprocess.run([SHOWHOW, "backup", folder], env=environment, capture_output=True, check=True)
    seconds = time.monotonic() - started
    shutil.rmtree(folder)
    for part in (0.8, 0.9, 1.0):
        process = subprocess.Popen([SHOWHOW, "backup", folder], env=environment, stderr=subprocess.DEVNULL)
        time.sleep(seconds * part)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if (folder / "backup.json").exists():
            assert run(home, "restore", folder).returncode == 0
    assert run(home, "backup", folder).returncode == 0
    assert len(list((folder / "worlds").iterdir())) == 1
    assert {path.name.partition("-")[0] for path in folder.iterdir()} == {
        ".showhow",
        "backup.json",
        "database",
        "worlds",
    }


def test_a_database_of_a_newer_version_is_refused_by_every_verb(home: Path):
    with closing(sqlite3.connect(home / "showhow.db")) as raw, raw:
        raw.execute("UPDATE alembic_version SET version_num = '9999'")
    for words in (("db", "upgrade"), ("run", "--port", str(free_port())), ("project", "list"), ("db", "check")):
        done = run(home, *words)
        assert done.returncode == 1
        assert "update the program" in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_a_home_with_foreign_objects_is_opened_by_no_verb_until_its_rows_are_taken_over(home: Path):
    with closing(sqlite3.connect(home / "showhow.db")) as raw, raw:
        raw.execute("CREATE TRIGGER t AFTER INSERT ON step BEGIN UPDATE step SET thought = 'changed'; END")
        raw.execute("CREATE VIEW v AS SELECT * FROM user")
    for words in (("project", "list"), ("run", "--port", str(free_port())), ("db", "upgrade"), ("traces", "list")):
        assert "has what Showhow did not make (the trigger t of step; the view v)" in failure(run(home, *words))
    assert "has what Showhow did not make" in run(home, "db", "check").stdout
    assert run(home, "db", "backup", home / "b.db").returncode == 0
    restored = run(home, "db", "restore", home / "b.db")
    assert "only its rows were taken over: the trigger t of step; the view v" in restored.stdout
    assert run(home, "db", "check").stdout == "the database is sound\n"
    assert projects_of(home) == ["P"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--address", "no.such.host.invalid"), "is not an address of this machine"),
        (("--address", ""), "is not an address of this machine"),
        (("--address", "192.0.2.1"), "cannot be served on"),
        (("--address", "a" * 400), "is not an address of this machine"),
    ],
)
def test_an_address_that_cannot_be_served_is_refused_in_one_sentence(tmp_path: Path, words, sentence):
    assert sentence in failure(run(tmp_path, "run", *words))


def test_a_port_out_of_range_is_wrong_usage_and_one_in_use_is_refused(tmp_path: Path):
    for port in ("0", "99999", "http"):
        done = run(tmp_path, "run", "--port", port)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "cannot be served on" in failure(run(tmp_path, "run", "--port", port))


@pytest.mark.parametrize("verb", [("db", "check"), ("run", "--port"), ("project", "list")])
@pytest.mark.parametrize(
    "url",
    [
        "sqlite:////dev/zero",
        "nonsense",
        "postgresql://me:word@here:port/x",
        "sqlite:////proc/x/y.db",
        "postgresql://me@127.0.0.1:1/x",
    ],
)
def test_a_database_address_that_cannot_be_used_is_refused_in_one_sentence(tmp_path: Path, url: str, verb):
    words = (*verb, str(free_port())) if verb[0] == "run" else verb
    line = failure(run(tmp_path, *words, SHOWHOW_DATABASE_URL=url))
    assert "Traceback" not in line
    assert "word" not in line


def run_verbs(home: Path, *verbs: tuple[str, ...]) -> None:
    """Run the verbs in one new process, with its own umask."""
    program = (
        "import json, sys\nfrom showhow.app.cli.main import main\nfor words in json.loads(sys.argv[1]):\n"
        "    try:\n        main(words)\n    except SystemExit as ending:\n        assert not ending.code, words"
    )
    subprocess.run(
        [sys.executable, "-c", program, json.dumps(verbs)],
        env={**os.environ, "SHOWHOW_HOME": str(home), "SHOWHOW_DATABASE_URL": ""},
        cwd=Path(__file__).resolve().parents[3],
        capture_output=True,
        check=True,
    )


@pytest.mark.long
def test_everything_in_the_home_and_every_export_is_readable_by_its_owner_only(prepared: Path, tmp_path: Path):
    umask = os.umask(0o022)
    try:
        home = tmp_path / "new" / "home"
        (tmp_path / "new").mkdir()
        run_verbs(
            home,
            ("world", "import", "w", "--articles", str(article_file(tmp_path, "Ada built quay 1."))),
            ("questions", "import", str(question_file(tmp_path, 1)), "--project", "P", "--world", "w"),
            ("db", "backup", str(tmp_path / "b.db")),
            ("traces", "export", str(tmp_path / "traces.jsonl"), "--status", "draft"),
            ("backup", str(tmp_path / "backup")),
        )
        opened = Path(shutil.copytree(prepared, tmp_path / "opened"))
        opened.chmod(0o755)
        other = tmp_path / "other"
        other.mkdir()
        (other / "notes.txt").touch()
        for folder in (opened, other):
            run_verbs(folder, ("project", "list"))
    finally:
        os.umask(umask)
    written = [tmp_path / "b.db", tmp_path / "traces.jsonl"]
    for folder in (home, tmp_path / "backup"):
        written += [folder, *folder.rglob("*")]
    open_to_others = [path for path in written if path.stat().st_mode & 0o077]
    assert open_to_others == []
    assert (home / "showhow.db") in written
    assert stat.S_IMODE(opened.stat().st_mode) == 0o700
    # A folder that holds something else keeps its mode; what is written into it is closed.
    assert stat.S_IMODE(other.stat().st_mode) == 0o755
    assert stat.S_IMODE((other / "showhow.db").stat().st_mode) == 0o600
