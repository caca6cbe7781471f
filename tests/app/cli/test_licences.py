"""`showhow licences`: every installed package of others, with its licence."""

import json
from importlib.metadata import distributions
from pathlib import Path

from tests.app.cli.in_process import run_in_process


def test_every_installed_package_is_listed_with_a_licence_and_its_text(tmp_path: Path):
    done = run_in_process(tmp_path, "licences", "--json")
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert rows.keys() == {package.metadata["Name"] for package in distributions()} - {"showhow"}
    assert [name for name, row in rows.items() if row["licence"] in ("", "unknown", "UNKNOWN")] == []
    assert all("\n" not in row["licence"] for row in rows.values())
    assert rows["streamlit"]["licence"].startswith("Apache")
    assert rows["pydantic"]["licence"] == "MIT"
    with_text = [row for row in rows.values() if row["files"]]
    assert len(with_text) > 0.8 * len(rows)
    assert all(Path(file).is_file() for row in with_text for file in row["files"])


def test_licences_are_listed_one_package_a_line(tmp_path: Path):
    done = run_in_process(tmp_path, "licences")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) == len(json.loads(run_in_process(tmp_path, "licences", "--json").stdout))
    assert lines == sorted(lines, key=lambda line: line.split()[0].casefold())
    assert not any(line.startswith("showhow ") for line in lines)
    assert not any(tmp_path.iterdir()), "the verb needs no database"
