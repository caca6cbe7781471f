import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID, uuid4

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route
from starlette.testclient import TestClient

from showhow.app.widgets import autosave
from showhow.app.widgets.autosave import DraftPage
from showhow.app.widgets.queue import OpenedTrace
from showhow.db.database import Database
from showhow.db.models import Draft
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.removal import removals
from showhow.db.traces import recording, traces
from showhow.db.traces.recording import find_draft
from showhow.db.types import utc_now
from showhow.runs.services import Services
from showhow.settings import Settings


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    built = Services(Settings.from_env({"SHOWHOW_HOME": str(tmp_path)}))
    yield built
    built.close()


@pytest.fixture
def client(services: Services):
    endpoint = autosave.draft_endpoint(services)
    app = Starlette(routes=[Route("/drafts/{trace_id:uuid}", endpoint, methods=["POST"])])
    with TestClient(app) as opened:
        yield opened


@dataclass(frozen=True)
class Scene:
    """Ada's trace, and a question that nobody has begun."""

    database: Database
    trace: UUID
    new_question: UUID

    def page(self, number: int, person: str = "ada") -> DraftPage:
        """A page that shows Ada's trace to this person."""
        return DraftPage(OpenedTrace(self.trace, person), number, is_local=True)


@pytest.fixture
def scene(services: Services) -> Scene:
    sample = SimpleNamespace(
        source_id=None, dataset=None, split=None, kind=None, gold_answers=[], decomposition=[], details={}
    )
    with services.database.begin() as session:
        project = projects.create_project(session, "P", "w")
        for text in ("?", "new?"):
            sample.text = text
            projects.add_questions(session, project.id, [sample])
        begun, new = projects.list_questions(session, project.id)
        ada = users.register_user(session, "ada")
        return Scene(services.database, recording.start_trace(session, begun.id, ada.id).id, new.id)


def stored_draft(scene: Scene, trace_id: UUID) -> Draft | None:
    with scene.database.read() as session:
        return find_draft(session, trace_id)


def test_a_draft_is_stored_and_the_reply_has_the_time(client: TestClient, scene: Scene):
    content = {"step": 1, "fields": {"thought": "Half a tho😀"}, "active": 12}
    reply = client.post(scene.page(5).url, json=content)
    assert reply.status_code == 200
    draft = stored_draft(scene, scene.trace)
    assert draft is not None
    assert draft.content == content
    assert reply.json()["saved_at"] == draft.saved_at.isoformat()


def test_an_older_page_does_not_replace_the_draft_of_a_newer_one(client: TestClient, scene: Scene):
    assert client.post(scene.page(9).url, json={"fields": {"thought": "newer"}}).status_code == 200
    reply = client.post(scene.page(3).url, json={"fields": {"thought": "older"}})
    assert reply.status_code == 503
    assert "newer tab" in reply.json()["error"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"no json", "not JSON"),
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"fields": {"thought": ' + b"[" * 100_000 + b"}}", "nested too deeply"),
        (b'{"fields": {"thought": ["a"]}}', "not texts"),
        (b'{"fields": {"thought": null}}', "not texts"),
        (b'{"fields": [1]}', "not texts"),
        (b'{"active": NaN}', "'active' is not a number"),
        (b'{"active": 1e300}', "'active' is not a number"),
        (b'{"active": -Infinity}', "'active' is not a number"),
        (b'{"active": -1}', "'active' is not a number"),
        (b'{"active": true}', "'active' is not a number"),
        (b'{"step": "1"}', "'step' is not a number"),
        (b'{"step": ' + b"9" * 5_000 + b"}", "not JSON"),
        (b'{"opened": 1e300}', "unknown field 'opened'"),
    ],
)
def test_an_odd_draft_is_refused_with_the_reason_and_blocks_nothing(
    client: TestClient, scene: Scene, body: bytes, reason: str
):
    reply = client.post(scene.page(1).url, content=body)
    assert reply.status_code == 400
    assert reason in reply.json()["error"]
    assert client.post(scene.page(1).url, json={"fields": {"thought": "fine"}}).status_code == 200


def test_text_that_cannot_be_stored_is_refused_in_a_sentence(client: TestClient, scene: Scene):
    reply = client.post(scene.page(1).url, content=rb'{"fields": {"thought": "\ud800"}}')
    assert (reply.status_code, "U+D800" in reply.json()["error"]) == (503, True)


def test_a_body_over_the_limit_is_refused_without_reading_it_all(client: TestClient, scene: Scene):
    read_chunks = []

    def body() -> Iterator[bytes]:
        for _ in range(300):
            read_chunks.append(1)
            yield b"x" * 1024 * 1024

    async def receive() -> dict[str, object]:
        chunk = next(chunks, None)
        return {"type": "http.request", "body": chunk or b"", "more_body": chunk is not None}

    chunks = body()
    request = Request({"type": "http", "headers": []}, receive)
    # In a thread of its own, since Playwright's event loop runs in that of the browser tests.
    with ThreadPoolExecutor() as pool:
        assert pool.submit(lambda: asyncio.run(autosave.read_body(request, autosave.MAX_DRAFT_BYTES))).result() is None
    assert len(read_chunks) == 5
    reply = client.post(scene.page(1).url, content=b"x" * (autosave.MAX_DRAFT_BYTES + 1))
    assert reply.status_code == 413
    assert reply.headers["Connection"] == "close"


def test_a_draft_without_the_token_of_the_page_is_refused(client: TestClient, scene: Scene):
    url = scene.page(3).url
    other = DraftPage(OpenedTrace(uuid4(), "ada"), 3, is_local=True).url
    forged = [
        f"/drafts/{scene.trace}",
        f"/drafts/{scene.trace}?{other.partition('?')[2]}",
        url.replace("person=ada", "person=ben"),
        url.replace("question=", f"question={scene.new_question}"),
        url.replace("question=", "question=x"),
        url.replace("opened_at=", "opened_at=yesterday"),
        f"{url}%C3%A9",
        *(url.replace("page=3", f"page={number}") for number in ("1e300", "9" * 18, "-1", "9" * 5_000, "%D9%A4", "")),
    ]
    for address in forged:
        assert client.post(address, json={}).status_code == 403, address


def test_a_draft_of_a_missing_trace_is_refused(client: TestClient, scene: Scene):
    reply = client.post(DraftPage(OpenedTrace(uuid4(), "ada"), 1, is_local=True).url, json={})
    assert reply.status_code == 503
    assert "no longer exists" in reply.json()["error"]


def test_nobody_stores_a_draft_of_the_trace_of_another_person(client: TestClient, scene: Scene):
    reply = client.post(scene.page(1, person="ben").url, json={"fields": {"thought": "not mine"}})
    assert reply.status_code == 503
    assert "this trace is ada's" in reply.json()["error"]
    assert stored_draft(scene, scene.trace) is None
    with scene.database.read() as session:
        assert users.find_user(session, "ben") is None


def test_a_first_draft_that_is_posted_while_the_page_loads_makes_its_trace_no_one_elses(
    client: TestClient, scene: Scene
):
    opened = OpenedTrace.of_question(scene.database, scene.new_question, "ben", utc_now())
    record, same_person = opened.load(scene.database)
    assert record.trace.author_id == same_person.id
    assert client.post(DraftPage(opened, 1, is_local=True).url, json={"fields": {"thought": "new"}}).status_code == 200
    record, stored_person = opened.load(scene.database)
    assert record.trace.author_id == stored_person.id


def test_a_question_whose_draft_was_discarded_is_begun_with_a_new_trace_in_every_process(
    client: TestClient, scene: Scene
):
    first = OpenedTrace.of_question(scene.database, scene.new_question, "ada", utc_now())
    assert client.post(DraftPage(first, 1, is_local=True).url, json={"fields": {"thought": "x"}}).status_code == 200
    with scene.database.begin() as session:
        removal = removals.remove(session, removals.Kind.DRAFT, first.id)
    again = OpenedTrace.of_question(scene.database, scene.new_question, "ada", utc_now())
    assert again.id != first.id
    assert client.post(DraftPage(again, 2, is_local=True).url, json={"fields": {"thought": "y"}}).status_code == 200
    with scene.database.begin() as session:
        removals.restore(session, removal.id)
    assert OpenedTrace.of_question(scene.database, scene.new_question, "ada", utc_now()).id == first.id


def test_the_first_draft_of_a_new_trace_begins_it(client: TestClient, scene: Scene):
    opened_at = utc_now() - timedelta(minutes=2)
    opened = OpenedTrace.of_question(scene.database, scene.new_question, "ben", opened_at)
    assert OpenedTrace.of_question(scene.database, scene.new_question, "ben", utc_now()).id == opened.id
    assert OpenedTrace.of_question(scene.database, scene.new_question, "cleo", opened_at).id != opened.id
    for text in ("Who", "Who is"):
        assert (
            client.post(DraftPage(opened, 1, is_local=True).url, json={"fields": {"thought": text}}).status_code == 200
        )
    with scene.database.read() as session:
        record = traces.load_trace(session, opened.id)
    assert (record.author, record.trace.started_at) == ("ben", opened_at)
    draft = stored_draft(scene, opened.id)
    assert draft is not None
    assert draft.content["fields"]["thought"] == "Who is"
    # The question is reserved now.
    reply = client.post(
        DraftPage(OpenedTrace.of_question(scene.database, scene.new_question, "cleo", opened_at), 2, is_local=True).url,
        json={},
    )
    assert reply.status_code == 503
    assert "somebody else has begun it" in reply.json()["error"]
    with scene.database.read() as session:
        assert users.find_user(session, "cleo") is None
    # Who chose the question may answer it beside the others.
    chosen = OpenedTrace.of_question(scene.database, scene.new_question, "cleo", opened_at, is_chosen=True)
    assert client.post(DraftPage(chosen, 2, is_local=True).url, json={}).status_code == 200
    assert stored_draft(scene, chosen.id) is not None
