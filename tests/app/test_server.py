import sys
import tomllib
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

import showhow.app.server
from showhow.app.server import UNEXPECTED_ERROR, SecurityHeadersMiddleware, report_failure
from showhow.db.database import StoreError

CONFIG = Path(showhow.app.server.__file__).parent / ".streamlit" / "config.toml"


def page_that_fails(failure: Exception) -> None:
    from showhow.app.server import show_script_error  # noqa: PLC0415 - the script of a page imports for itself

    assert show_script_error(failure)


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        (KeyError("/root/secret/path.py"), UNEXPECTED_ERROR),
        (StoreError("the database is locked; try again"), r"The database is locked; try again\."),
    ],
)
def test_a_failed_page_shows_one_sentence_without_a_traceback(failure: Exception, sentence: str):
    page = AppTest.from_function(page_that_fails, args=(failure,)).run(timeout=20)
    assert [error.value for error in page.error] == [sentence]
    assert not page.exception


def test_a_request_that_fails_gets_one_sentence_with_the_headers_of_security():
    def fail(_request: Request) -> Response:
        raise KeyError("/root/secret/path.py")

    failing = Starlette(
        routes=[Route("/", fail)],
        middleware=[Middleware(SecurityHeadersMiddleware)],
        exception_handlers={Exception: report_failure},
    )
    with TestClient(failing, raise_server_exceptions=False) as client:
        reply = client.get("/")
    assert (reply.status_code, reply.text) == (500, UNEXPECTED_ERROR)
    assert reply.headers["X-Frame-Options"] == "DENY"


def test_runs_of_pages_soon_give_the_interpreter_to_the_event_loop(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(showhow.app.server, "load_for_first_visit", lambda: None)
    former = sys.getswitchinterval()
    try:
        with TestClient(Starlette(lifespan=showhow.app.server.load_while_serving)):
            assert sys.getswitchinterval() < 0.001
    finally:
        sys.setswitchinterval(former)


def test_streamlit_shows_no_details_of_errors_and_draws_no_bare_strings():
    config = tomllib.loads(CONFIG.read_text(encoding="utf-8"))
    assert config["client"]["showErrorDetails"] == "none"
    assert config["runner"]["magicEnabled"] is False
