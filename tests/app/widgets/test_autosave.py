from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID, uuid4

import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from app.services import use_services
from app.widgets import autosave
from db import projects, recording
from db.drafts import find_draft
from runs.services import Services
from settings import Settings


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    built = Services(Settings.from_env({"SHOWHOW_HOME": str(tmp_path)}))
    with use_services(built):
        yield built
    built.close()


@pytest.fixture
def client(services: Services):
    app = Starlette(routes=[Route("/drafts/{trace_id:uuid}", autosave.save_draft, methods=["POST"])])
    with TestClient(app) as opened:
        yield opened


@pytest.fixture
def trace(services: Services) -> UUID:
    question = SimpleNamespace(
        text="?", source_id=None, dataset=None, split=None, kind=None, gold_answers=[], decomposition=[], details={}
    )
    with services.database.begin() as session:
        project = projects.create_project(session, "P", "w")
        projects.add_questions(session, project.id, [question])
        asked = projects.list_questions(session, project.id)[0]
        ada = projects.get_or_create_user(session, "ada")
        return recording.start_trace(session, asked.id, ada.id).id


def test_a_draft_is_kept_and_the_moment_is_told(client: TestClient, services: Services, trace: UUID):
    content = {"step": 1, "fields": {"thought": "Half a tho😀"}, "opened": 5.0}
    reply = client.post(f"/drafts/{trace}?token={autosave.draft_token(trace)}", json=content)
    assert reply.status_code == 200
    with services.database.read() as session:
        draft = find_draft(session, trace)
    assert draft is not None
    assert draft.content == content
    assert reply.json()["saved_at"] == draft.saved_at.isoformat()


def test_an_older_page_does_not_replace_what_a_newer_one_keeps(client: TestClient, trace: UUID):
    door = f"/drafts/{trace}?token={autosave.draft_token(trace)}"
    assert client.post(door, json={"opened": 9.0, "fields": {"thought": "newer"}}).status_code == 200
    reply = client.post(door, json={"opened": 3.0, "fields": {"thought": "older"}})
    assert reply.status_code == 503
    assert "newer tab" in reply.json()["error"]


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"no json", 400), (b"[1]", 400), (b'{"a": "' + b"x" * autosave.MAX_DRAFT_BYTES + b'"}', 413)],
)
def test_what_is_no_draft_is_refused_with_the_reason(client: TestClient, trace: UUID, body: bytes, status: int):
    reply = client.post(f"/drafts/{trace}?token={autosave.draft_token(trace)}", content=body)
    assert reply.status_code == status
    assert reply.json()["error"]


def test_nobody_writes_a_draft_without_the_pages_token(client: TestClient, trace: UUID):
    assert client.post(f"/drafts/{trace}?token={autosave.draft_token(uuid4())}", json={}).status_code == 403
    assert client.post(f"/drafts/{trace}", json={}).status_code == 403


def test_a_trace_that_is_gone_is_said_to_be_so(client: TestClient):
    gone = uuid4()
    reply = client.post(f"/drafts/{gone}?token={autosave.draft_token(gone)}", json={})
    assert reply.status_code == 503
    assert "no longer there" in reply.json()["error"]
