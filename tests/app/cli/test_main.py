import json
import subprocess
import sys
from pathlib import Path

from tests.browser.server import Showhow

HEAVY = ("torch", "transformers", "sentence_transformers", "langchain", "langchain_core", "pandas", "faker")


def loaded_by(statement: str, tmp_path: Path) -> set[str]:
    code = f"import json, sys; sys.argv = ['showhow', '--help']\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    environment = {**Showhow(tmp_path, empty=True).environment, "STREAMLIT_LOGGER_LEVEL": "error"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_help_loads_no_room_and_no_heavy_library(tmp_path: Path):
    loaded = loaded_by("import app.cli.main; app.cli.main.build_command_line(None)", tmp_path)
    assert not loaded & {*HEAVY, "sqlalchemy", "streamlit", "tantivy", "pyoxigraph", "numpy"}


def test_what_a_page_needs_loads_no_heavy_library(tmp_path: Path):
    loaded = loaded_by("import app.server, app.pages.annotate.recorder, app.widgets.queue, app.cli.setup", tmp_path)
    assert not loaded & (set(HEAVY) - {"pandas"})


def test_every_verb_has_a_help(tmp_path: Path):
    showhow = Showhow(tmp_path, empty=True)
    for verb in ("setup", "run", "world", "questions", "traces", "tool", "db"):
        assert "Usage: showhow" in showhow.run(verb, "--help")


def test_wrong_usage_is_status_2_and_a_failure_status_1_with_one_line(tmp_path: Path):
    showhow = Showhow(tmp_path, empty=True)

    def status(*words: str) -> tuple[int, str]:
        command = [str(Path(sys.executable).with_name("showhow")), *words]
        done = subprocess.run(command, env=showhow.environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    assert status("nonsense")[0] == 2
    assert status("world", "search")[0] == 2
    code, said = status("world", "info", "nowhere")
    assert code == 1
    assert said.count("\n") == 1
    assert said.startswith("showhow: There is no world 'nowhere'")
