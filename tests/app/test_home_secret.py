"""The secret that the processes of a home share."""

import subprocess
import sys
from pathlib import Path

from showhow.app.home_secret import SECRET_FILE, derive_key

KEY_OF_DRAFTS = (
    "import sys; from pathlib import Path; from showhow.app.home_secret import derive_key;"
    "print(derive_key(Path(sys.argv[1]), 'drafts').hex())"
)


def test_processes_that_start_at_once_have_one_key_for_each_purpose(tmp_path: Path):
    home = tmp_path / "home"
    command = [sys.executable, "-c", KEY_OF_DRAFTS, str(home)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    keys = {process.communicate()[0].strip() for process in started}
    assert keys == {derive_key(home, "drafts").hex()}
    assert derive_key(home, "visitors") != derive_key(home, "drafts")
    assert (home / SECRET_FILE).stat().st_mode & 0o077 == 0
    assert derive_key(tmp_path / "other", "drafts").hex() not in keys
