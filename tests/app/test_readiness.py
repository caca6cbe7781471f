"""The readiness of a server, on real databases that go away, change their schema, and come back."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from showhow.app.readiness import readiness_endpoint
from showhow.db.database import Database
from showhow.db.questions.projects import create_project
from showhow.db.storage.schema import latest_revision
from showhow.runs.services import Services
from showhow.settings import Settings
from showhow.worlds.open import NO_WORLD
from tests.servers.postgresql import PostgresqlServer


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    opened = Services(Settings.from_env({"SHOWHOW_HOME": str(tmp_path / "home")}))
    yield opened
    opened.close()


def ask(services: Services) -> tuple[int, str]:
    with TestClient(Starlette(routes=[Route("/readyz", readiness_endpoint(services))])) as client:
        reply = client.get("/readyz")
    assert "\n" not in reply.text
    return reply.status_code, reply.text


def set_revision(database: Database, revision: str) -> None:
    with database.begin() as session:
        session.execute(text("UPDATE alembic_version SET version_num = :at"), {"at": revision})


@pytest.mark.parametrize(("revision", "remedy"), [("0012", "showhow db upgrade"), ("9999", "update the program")])
def test_a_server_is_not_ready_while_the_schema_is_another(services: Services, revision: str, remedy: str):
    assert ask(services) == (200, "ok")
    set_revision(services.database, revision)
    status, sentence = ask(services)
    assert (status, revision in sentence, remedy in sentence) == (503, True, True)
    set_revision(services.database, latest_revision())
    assert ask(services) == (200, "ok")


def test_a_server_is_ready_while_one_world_is_removed_and_not_while_all_are_missing_or_one_is_damaged(
    services: Services,
):
    with services.database.begin() as session:
        create_project(session, "harbours", "harbour")
    status, sentence = ask(services)
    assert (status, str(services.settings.worlds_folder) in sentence) == (503, True)
    with services.database.begin() as session:
        create_project(session, "own tools", NO_WORLD, tools=["lookup"])
    assert ask(services) == (200, "ok")
    world = services.settings.worlds_folder / "harbour"
    (world / "text").mkdir(parents=True)
    (world / "world.toml").write_text('name = "harbour"\nkind = "imported"\n', encoding="utf-8")
    assert ask(services)[0] == 503


def test_a_server_is_not_ready_while_its_database_is_gone(services: Services):
    assert ask(services) == (200, "ok")
    file = services.settings.home / "showhow.db"
    moved = file.rename(file.with_name("moved"))
    services.database.engine.dispose()
    assert ask(services)[0] == 503
    moved.rename(file)
    assert ask(services) == (200, "ok")


@pytest.mark.long
def test_a_server_is_ready_again_once_postgresql_answers_again(tmp_path: Path):
    with PostgresqlServer() as server:
        address = server.create_database("ready")
        services = Services(Settings.from_env({"SHOWHOW_HOME": str(tmp_path), "SHOWHOW_DATABASE_URL": address}))
        assert ask(services) == (200, "ok")
        server.stop()
        assert ask(services)[0] == 503
        server.start()
        assert ask(services) == (200, "ok")
        services.close()
