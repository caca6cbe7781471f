"""Files that are no files: every importer refuses them at once, in one sentence."""

import gzip
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from showhow.evaluation.datasets import read_questions
from showhow.fewshot_library.formats import read_traces
from showhow.fewshot_library.formats.format import FormatError
from showhow.fiction.phantomwiki.instance import import_instance
from showhow.guard.files import open_regular
from showhow.worlds.article_files import read_articles
from showhow.worlds.build import WorldContents, build_world
from showhow.worlds.folder import WorldError
from showhow.worlds.input_files import MalformedFile, iter_lines, read_text_file

KINDS = ("a folder", "a named pipe", "a socket", "a device")


def make_special(folder: Path, kind: str, name: str) -> Path:
    path = folder / name
    match kind:
        case "a folder":
            path.mkdir()
        case "a named pipe":
            os.mkfifo(path)
        case "a socket":
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(str(path))
        case _:
            # An endless device; a link to one, since making a device needs privileges.
            path.symlink_to("/dev/zero")
    return path


def read_all(results: Iterator[object]) -> None:
    for _ in results:
        pass


IMPORTS: dict[str, tuple[str, Callable[[Path, Path], object]]] = {
    "articles": ("a.jsonl", lambda file, _: read_all(read_articles(file))),
    "gzipped articles": ("a.jsonl.gz", lambda file, _: read_all(read_articles(file, "jsonl"))),
    "paragraphs": ("a.json", lambda file, _: read_all(read_articles(file, "2wiki"))),
    "graph": ("a.ttl", lambda file, home: build_world(home, "w", WorldContents(graph=file))),
    "gzipped graph": ("a.nt.gz", lambda file, home: build_world(home, "w", WorldContents(graph=file))),
    "questions": ("a.jsonl", lambda file, _: read_questions(file)),
    "questions as CSV": ("a.csv", lambda file, _: read_questions(file)),
    "traces": ("a.jsonl", lambda file, _: read_all(read_traces(file))),
    "traces as text": ("a.txt", lambda file, _: read_all(read_traces(file, "react"))),
    "traces as Parquet": ("a.parquet", lambda file, _: read_all(read_traces(file, "parquet"))),
    "Inspect's logs": ("a.json", lambda file, _: read_all(read_traces(file, "inspect"))),
}


# A reader that waits for the writer of a pipe would wait for ever.
@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", IMPORTS)
def test_a_special_file_is_refused_at_once_in_one_sentence(tmp_path: Path, kind: str, name: str):
    file_name, read = IMPORTS[name]
    path = make_special(tmp_path, kind, file_name)
    if kind == "a folder" and ("articles" in name or name == "paragraphs"):
        kind = "the folder has no file"  # Articles may be a folder of files.
    with pytest.raises((WorldError, FormatError)) as refused:
        read(path, tmp_path / "worlds")
    assert kind in str(refused.value)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("file", ["facts.pl", "articles.json", "questions.json"])
def test_a_pipe_in_a_published_instance_is_refused(tmp_path: Path, file: str):
    instance = tmp_path / "instance"
    instance.mkdir()
    for name in ("facts.pl", "articles.json", "questions.json"):
        (instance / name).write_text("[]" if name.endswith("json") else "")
    (instance / file).unlink()
    os.mkfifo(instance / file)
    with pytest.raises(WorldError):
        import_instance(tmp_path / "worlds", "w", instance, {})
    assert not (tmp_path / "worlds" / "w").exists()


@pytest.mark.timeout(30)
def test_a_pipe_among_the_files_of_a_folder_is_refused(tmp_path: Path):
    (tmp_path / "1.jsonl").write_text('{"title": "A", "text": "B."}\n')
    os.mkfifo(tmp_path / "2.jsonl")
    with pytest.raises(MalformedFile, match=r"2\.jsonl: it cannot be read \(it is a named pipe"):
        read_all(read_articles(tmp_path))


def test_a_refused_file_leaves_no_descriptor_open(tmp_path: Path):
    process = psutil.Process()
    before, refusals = process.num_fds(), 50
    for kind in KINDS:
        path = make_special(tmp_path, kind, kind.replace(" ", "-"))
        for _ in range(refusals):
            with pytest.raises(OSError, match=kind):
                open_regular(path)
    # What threads of earlier tests open or close meanwhile is far less than one for each refusal of one kind.
    assert abs(process.num_fds() - before) < refusals / 2


@pytest.mark.parametrize("ending", ["ttl", "nt"])
@pytest.mark.parametrize("text", ["x", "é"])
def test_a_literal_is_imported_up_to_16_mb_and_refused_beyond_in_one_sentence(tmp_path: Path, ending: str, text: str):
    file = tmp_path / f"long.{ending}"
    size = len(text.encode())

    def write(length: int) -> None:
        file.write_text(f'<http://e.org/a> <http://e.org/b> "{text * (length // size)}" .\n', encoding="utf-8")

    write(15 * 2**20)
    assert build_world(tmp_path / "worlds", "long", WorldContents(graph=file))["triples"] == 1
    write(17 * 2**20)
    with pytest.raises(MalformedFile) as refused:
        build_world(tmp_path / "worlds", "longer", WorldContents(graph=file))
    assert str(refused.value) == (
        f"{file}: one of its literals, names or comments is longer than 16 MB, the limit of the graph's parser. "
        "Nothing was imported; correct the file and import it again."
    )
    assert sorted(path.name for path in (tmp_path / "worlds").iterdir()) == ["long"]


def test_a_file_that_has_to_be_read_as_a_whole_is_bounded_also_when_it_is_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("showhow.worlds.input_files.MAX_DOCUMENT_BYTES", 2**20)
    file = tmp_path / "bomb.json.gz"
    file.write_bytes(gzip.compress(b" " * 2**21))
    with pytest.raises(MalformedFile, match=r"bomb\.json\.gz: it is longer than 1 MB, and has to be read as a whole"):
        read_text_file(file)


def test_a_packed_file_of_blank_lines_ends_at_its_bound(tmp_path: Path):
    file = tmp_path / "blank.jsonl.gz"
    file.write_bytes(gzip.compress(b"\n" * 2**21))
    with pytest.raises(MalformedFile, match="it expands to more than 64 MB"):
        sum(1 for _ in iter_lines(file))
