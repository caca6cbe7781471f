"""What a process keeps open."""

from pathlib import Path

import pytest

from app import resources
from settings import Settings
from worlds.build import Sources, build_world
from worlds.source import Article


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHOWHOW_HOME", str(tmp_path))
    resources.settings.cache_clear()
    yield tmp_path
    resources.settings.cache_clear()


def build(home: Path, text: str) -> None:
    graph = home / "graph.ttl"
    graph.write_text(
        f'<http://x/a> <http://www.w3.org/2000/01/rdf-schema#label> "{text}"@en ; <http://x/is> <http://x/b> .'
    )
    build_world(home / "worlds", "w", Sources([Article("A", (text,))], graph), replace=True)


def test_a_world_is_opened_once_and_again_after_it_was_built_anew(home):
    assert isinstance(resources.settings(), Settings)
    build(home, "old")
    opened = resources.open_world("w")
    assert resources.open_world("w") is opened
    assert [entity.label for entity in opened.graph.entities(["http://x/a"])] == ["old"]
    build(home, "new")
    again = resources.open_world("w")
    assert again is not opened
    assert again.text.article("A").sentences == ("new",)
    assert [entity.label for entity in again.graph.entities(["http://x/a"])] == ["new"]
    again.graph.close()
