"""Standard output and error: secrets are removed, also across writes, in logs and in tracebacks."""

import io
import json
import logging
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

from showhow.app.redacted_output import RedactedOutput
from showhow.guard.redaction import NOTHING_SECRET, REMOVED, Redactor

KEY = "sk-planted-0123456789"
DEFECT = """
import logging, os, sys
from showhow.app.cli.main import VERBS, main
from showhow.app.services import current_services

def fail():
    key = current_services().environ["PLANTED_API_KEY"]
    sys.stderr.write(key[:8]); sys.stderr.flush(); sys.stderr.write(key[8:] + "\\n")
    print(f"printed {key}")
    try:
        raise ValueError(f"header Bearer {key}")
    except ValueError:
        logging.getLogger("package").exception("it failed")
        raise

import showhow.app.cli.licences
showhow.app.cli.licences.licences = fail
sys.argv = ["showhow", "licences"]
main()
"""


def test_a_key_in_two_writes_a_log_and_a_traceback_are_removed():
    target = io.StringIO()
    output = RedactedOutput(target, lambda: Redactor([KEY]))
    handler = logging.StreamHandler(output)
    logger = logging.Logger("of a package")
    logger.addHandler(handler)
    output.write(KEY[:7])
    output.flush()
    output.write(f"{KEY[7:]} and more\nsk-")
    try:
        raise ValueError(f"Authorization: Bearer {KEY}")  # noqa: TRY301 - a traceback is wanted
    except ValueError:
        logger.exception("a page failed")
    assert target.getvalue().startswith(f"{REMOVED} and more\nsk-a page failed")
    assert f"Bearer {REMOVED}" in target.getvalue()
    assert KEY not in target.getvalue()


def test_lines_are_passed_on_at_their_end_and_nothing_waits_without_secrets():
    target = io.StringIO()
    redactor = NOTHING_SECRET
    output = RedactedOutput(target, lambda: redactor)
    output.write("sk-")
    assert target.getvalue() == "sk-"
    redactor = Redactor([KEY])
    output.write(" a line\nsk-pl")
    assert target.getvalue() == "sk- a line\n"
    output.finish()
    assert target.getvalue() == "sk- a line\nsk-pl"


def test_a_verb_that_fails_unexpectedly_prints_no_key(tmp_path):
    environment = {"PLANTED_API_KEY": KEY, "SHOWHOW_HOME": str(tmp_path), "PATH": "/usr/bin"}
    command = [sys.executable, "-c", DEFECT]
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert "ValueError: header Bearer [key removed]" in done.stderr
    assert f"printed {REMOVED}" in done.stdout
    assert KEY not in done.stdout + done.stderr


def test_a_terminal_obeys_nothing_in_the_texts_of_others(tmp_path: Path):
    odd = "title\x1b]0;mine\x07 \x9b31m \u202eback\r over\ud800 and \u05d0\u00e9"
    file = tmp_path / "predictions.jsonl"
    rows = [{"id": odd, "predicted": "Ada", "gold": ["Ada"], "type": odd}, {"id": "2", "predicted": "x", "gold": ["y"]}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    environ = {**os.environ, "SHOWHOW_HOME": str(tmp_path), "PYTHONIOENCODING": "utf-8"}
    showhow = Path(sys.executable).with_name("showhow")
    for words in ((), ("--json",)):
        command = [showhow, "score", file, "--metric", "f1", *words]
        done = subprocess.run(command, env=environ, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        shown = done.stdout.decode()
        assert not [sign for sign in shown if unicodedata.category(sign) in ("Cc", "Cf") and sign != "\n"]
        assert r"title\u001b]0;mine" in shown
        assert "\u05d0\u00e9" in shown
    assert odd in json.loads(shown)["by_kind"]
    missing = subprocess.run(
        [showhow, "score", tmp_path / "\udcff\x1b[2J.jsonl", "--metric", "f1"],
        env=environ,
        capture_output=True,
        check=False,
    )
    assert (missing.returncode, b"Traceback" in missing.stderr, b"\x1b" in missing.stderr) == (1, False, False)
