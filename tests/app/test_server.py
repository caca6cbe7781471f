import tomllib
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import app.server
from app.server import UNEXPECTED_ERROR
from db.database import StoreError

CONFIG = Path(app.server.__file__).parent / ".streamlit" / "config.toml"


def page_that_fails(failure: Exception) -> None:
    from app.server import show_script_error  # noqa: PLC0415 - the script of a page imports for itself

    assert show_script_error(failure)


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        (KeyError("/root/secret/path.py"), UNEXPECTED_ERROR),
        (StoreError("The database is locked; try again."), "The database is locked; try again."),
    ],
)
def test_a_failed_page_shows_one_sentence_without_a_traceback(failure: Exception, sentence: str):
    page = AppTest.from_function(page_that_fails, args=(failure,)).run(timeout=20)
    assert [error.value for error in page.error] == [sentence]
    assert not page.exception


def test_streamlit_shows_no_details_of_errors_and_draws_no_bare_strings():
    config = tomllib.loads(CONFIG.read_text(encoding="utf-8"))
    assert config["client"]["showErrorDetails"] == "none"
    assert config["runner"]["magicEnabled"] is False
