"""The import folder: what is in it can be imported, and nothing tells what is outside."""

from pathlib import Path

import pytest

from showhow.app.pages.worlds.create_world import MAX_LISTED_SOURCES, list_import_sources, resolve_import_source
from showhow.worlds.folder import WorldError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with files and folders, and links of which some lead out; beside it lies what must not be found."""
    outside = tmp_path / "secret"
    outside.mkdir()
    (outside / "key.jsonl").write_text("secret\n")
    inside = tmp_path / "offered"
    (inside / "deep" / "er").mkdir(parents=True)
    (inside / "a.jsonl").write_text("{}\n")
    (inside / "deep" / "er" / "b.TTL").write_text("")
    (inside / "notes.txt").write_text("")
    (inside / "inner.jsonl").symlink_to(inside / "a.jsonl")
    (inside / "out.jsonl").symlink_to(outside / "key.jsonl")
    (inside / "out").symlink_to(outside)
    (inside / "leaky").mkdir()
    (inside / "leaky" / "x.jsonl").symlink_to(outside / "key.jsonl")
    (inside / "loop").symlink_to(inside / "loop")
    return inside


def test_files_with_the_extensions_and_folders_are_listed_without_links(folder: Path):
    assert list_import_sources(folder, ["jsonl", "ttl"]) == ["a.jsonl", "deep/", "deep/er/", "deep/er/b.TTL", "leaky/"]
    assert list_import_sources(folder / "none", ["jsonl"]) == []


def test_the_list_is_bounded(tmp_path: Path):
    for number in range(MAX_LISTED_SOURCES + 5):
        (tmp_path / f"{number}.jsonl").touch()
    assert len(list_import_sources(tmp_path, ["jsonl"])) == MAX_LISTED_SOURCES
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("showhow.app.pages.worlds.create_world.MAX_VISITED_ENTRIES", 100)
        assert len(list_import_sources(tmp_path, ["jsonl"])) == 100
        assert list_import_sources(tmp_path, ["ttl"]) == []


@pytest.mark.parametrize("name", ["a.jsonl", "deep/", "deep/er/b.TTL", "deep/../a.jsonl", "inner.jsonl"])
def test_a_source_within_the_folder_is_resolved_without_links(folder: Path, name: str):
    source = resolve_import_source(folder, name)
    assert source == (folder / name).resolve()
    assert source.is_relative_to(folder)


@pytest.mark.parametrize(
    "name",
    [
        "../secret/key.jsonl",
        "../secret/none.jsonl",
        "../offered-not/x",
        "deep/../../secret/key.jsonl",
        "out.jsonl",
        "out",
        "out/key.jsonl",
        "out/none.jsonl",
        "leaky",
        "leaky/x.jsonl",
        "loop",
        "/etc/passwd",
        "/etc/none",
        "..",
        "../offered2",
        "none.jsonl",
        "a.jsonl/x",
        "a\x00b",
        "x" * 5000,
        "~",
    ],
)
def test_whatever_is_not_within_the_folder_is_refused_with_the_same_words(folder: Path, name: str):
    with pytest.raises(WorldError) as refused:
        resolve_import_source(folder, name)
    assert str(refused.value) == f"There is no file or folder {name!r} in the import folder."


def test_the_import_folder_may_itself_be_a_link(folder: Path, tmp_path: Path):
    (tmp_path / "link").symlink_to(folder)
    assert resolve_import_source(tmp_path / "link", "a.jsonl") == folder / "a.jsonl"
    with pytest.raises(WorldError):
        resolve_import_source(tmp_path / "link", "../secret/key.jsonl")
