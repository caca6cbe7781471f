"""What a process keeps open."""

from pathlib import Path

import pytest

from runs import services
from settings import Settings
from worlds.build import WorldContents, build_world
from worlds.source import Article


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHOWHOW_HOME", str(tmp_path))
    services.settings.cache_clear()
    yield tmp_path
    services.settings.cache_clear()


def build(home: Path, text: str) -> None:
    graph = home / "graph.ttl"
    graph.write_text(
        f'<http://x/a> <http://www.w3.org/2000/01/rdf-schema#label> "{text}"@en ; <http://x/is> <http://x/b> .'
    )
    build_world(home / "worlds", "w", WorldContents([Article("A", (text,))], graph), replace=True)


def test_a_world_is_opened_once_and_again_after_it_was_built_anew(home):
    assert isinstance(services.settings(), Settings)
    build(home, "old")
    opened = services.open_world("w")
    assert services.open_world("w") is opened
    assert [entity.label for entity in opened.graph.entities(["http://x/a"])] == ["old"]
    build(home, "new")
    again = services.open_world("w")
    assert again is not opened
    assert again.text.article("A").sentences == ("new",)
    assert [entity.label for entity in again.graph.entities(["http://x/a"])] == ["new"]
    again.graph.close()


def test_the_language_model_is_the_one_that_is_set_up_and_none_where_none_is(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    build(home, "old")
    services.chat.cache_clear()
    assert services.chat() is None
    assert services.tool_context("w").chat is None
    for name, value in {"": "some-model", "_BASE_URL": "http://127.0.0.1:9/v1", "_PRICE": "1/2"}.items():
        monkeypatch.setenv(f"SHOWHOW_MODEL{name}", value)
    services.settings.cache_clear()
    services.chat.cache_clear()
    chat = services.chat()
    assert chat is not None
    assert (chat.name, chat.seconds) == ("some-model", 120.0)
    assert chat.price is not None
    assert (chat.price.input, chat.price.output) == (1.0, 2.0)
    assert services.tool_context("w").chat is chat
    services.chat.cache_clear()
