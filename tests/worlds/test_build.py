"""Build and open worlds: atomically, independent of order, and never over an existing world."""

import gzip
import os
import random
import signal
import subprocess
import sys
import tomllib
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from showhow.worlds.article_files import read_articles
from showhow.worlds.build import WorldContents, build_world, remove_half_built_worlds
from showhow.worlds.folder import InvalidWorldName, WorldError, WorldExists, WorldNotFound, list_world_names
from showhow.worlds.input_files import MalformedFile
from showhow.worlds.open import list_worlds, open_world, read_world_metadata
from showhow.worlds.source import Article
from tests.examples import examples

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
ARTICLES = [Article(f"Title {n}", (f"Sentence {n}.",), f"Q{n}" if n % 2 else None) for n in range(1, 8)]
TURTLE = """@prefix x: <http://x.example/> .
x:a x:knows x:b ; x:named "A"@en .
x:b x:knows [ x:named "somebody" ] .
"""
TRIPLES = '<http://x.example/a> <http://x.example/knows> <http://x.example/b> .\n_:b <http://x.example/n> "1" .\n'

one_folder = settings(
    max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def worlds(tmp_path) -> Path:
    return tmp_path / "worlds"


def left_behind(worlds: Path) -> list[str]:
    """The names of all files and folders in the folder of worlds, hidden ones included."""
    return sorted(path.name for path in worlds.iterdir()) if worlds.is_dir() else []


def hash_of(worlds: Path, sources: WorldContents) -> str:
    return build_world(worlds, "hashed", sources, replace=True)["hash"]


def test_a_world_has_its_metadata(worlds):
    metadata = build_world(
        worlds, "isle", WorldContents(read_articles(HERE / "isle.jsonl"), HERE / "isle.ttl", {"licence": "CC0"})
    )
    assert (metadata["name"], metadata["kind"], metadata["licence"]) == ("isle", "imported", "CC0")
    assert (metadata["articles"], metadata["triples"], metadata["relations"]) == (7, 29, 6)
    assert read_world_metadata(worlds, "isle") == metadata
    assert list_worlds(worlds) == [metadata]
    assert tomllib.loads((worlds / "isle" / "world.toml").read_text(encoding="utf-8")) == metadata


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,8}", fullmatch=True),
        st.one_of(st.text(), st.integers(-(2**62), 2**62), st.booleans(), st.lists(st.text(), max_size=3)),
        max_size=4,
    )
)
@settings(max_examples=examples(15), deadline=None)
def test_any_metadata_is_read_back(tmp_path_factory, extra):
    home = tmp_path_factory.mktemp("home")
    own = {"name", "articles", "triples", "entities", "hash", "built"}
    build_world(home, "w", WorldContents(ARTICLES[:1], metadata=extra))
    metadata = read_world_metadata(home, "w")
    assert {key: value for key, value in metadata.items() if key in extra and key not in own} == {
        key: value for key, value in extra.items() if key not in own
    }


def test_a_world_has_the_sources_it_was_built_from_and_no_others(worlds, tmp_path):
    (tmp_path / "g.ttl").write_text(TURTLE)
    build_world(worlds, "text", WorldContents(ARTICLES))
    build_world(worlds, "graph", WorldContents(graph=tmp_path / "g.ttl"))
    text, graph = open_world(worlds, "text"), open_world(worlds, "graph")
    assert text.graph is None
    assert graph.text is None
    assert text.text.article("Title 3") == ARTICLES[2]
    assert graph.graph.query("ASK { <http://x.example/a> <http://x.example/knows> <http://x.example/b> }").boolean
    graph.graph.close()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("name", ["g.ttl", "g.turtle", "g.nt", "g.ntriples", "G.TTL", "g.ttl.gz", "g.nt.gz"])
def test_turtle_and_n_triples_are_read_plain_and_gzipped(worlds, tmp_path, name, encoding):
    content = (TRIPLES if ".nt" in name else TURTLE).encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert build_world(worlds, "g", WorldContents(graph=tmp_path / name))["triples"] == (2 if ".nt" in name else 4)


@pytest.mark.parametrize("name", ["g.xml", "g.json", "g", "g.gz", "ttl"])
def test_a_graph_of_another_format_is_refused_with_the_known_ones(worlds, tmp_path, name):
    (tmp_path / name).write_text(TURTLE)
    with pytest.raises(MalformedFile, match=r"\.ttl, \.turtle, \.nt, \.ntriples"):
        build_world(worlds, "g", WorldContents(graph=tmp_path / name))
    assert left_behind(worlds) == []


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('<http://x/a> <http://x/b> "c" .\n<http://x/a> <http://x/b> .\n', 2),
        ("<http://x/a> <http://x/b> <not an iri> .\n", 1),
        ('<http://x/a> <http://x/b> "c" .\n\n\n<http://x/a> <http://x/b> "cut', 4),
        ("rubbish", 1),
    ],
)
def test_a_malformed_graph_is_named_with_file_and_line_and_leaves_nothing(worlds, tmp_path, content, line):
    (tmp_path / "g.nt").write_text(content)
    with pytest.raises(MalformedFile, match=rf"g\.nt, line {line}: ") as refused:
        build_world(worlds, "g", WorldContents(ARTICLES, tmp_path / "g.nt"))
    assert refused.value.line == line
    assert left_behind(worlds) == []


@pytest.mark.parametrize("name", ["g.ttl", "g.nt.gz"])
@pytest.mark.parametrize("hidden", ["", "# )>> \n"])
def test_triple_terms_that_are_too_deep_are_refused_and_others_are_read(worlds, tmp_path, name, hidden):
    file = tmp_path / name

    def write(depth: int) -> Path:
        opening, closing = f"<<( <http://e/a> <http://e/p> {hidden}", "<http://e/a> " + ")>> " * depth
        content = f'<http://e/a> <http://e/p> "<<( \\" <<(" .\n<http://e/a> <http://e/p> {opening * depth}{closing}.\n'
        file.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
        return file

    if name == "g.ttl" or not hidden:
        assert build_world(worlds, "flat", WorldContents(graph=write(256)))["triples"] == 2
    with pytest.raises(MalformedFile, match=r"more than 256 triple terms are within each other\. Nothing was imported"):
        build_world(worlds, "deep", WorldContents(graph=write(100_000)))
    assert list_world_names(worlds) == (["flat"] if name == "g.ttl" or not hidden else [])


def test_a_malformed_line_of_articles_stops_the_import_and_leaves_nothing(worlds, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"title": "A", "text": "B."}\n{"title": "C"}\n')
    with pytest.raises(MalformedFile, match=r"a\.jsonl, line 2: .*'text' and 'sentences' are both missing"):
        build_world(worlds, "w", WorldContents(read_articles(tmp_path / "a.jsonl"), HERE / "isle.ttl"))
    assert left_behind(worlds) == []


def test_the_error_names_a_missing_file(worlds, tmp_path):
    for sources in (WorldContents(read_articles(tmp_path / "no.jsonl")), WorldContents(graph=tmp_path / "no.ttl")):
        with pytest.raises(MalformedFile, match=r"no\.(jsonl|ttl)"):
            build_world(worlds, "w", sources)
    assert left_behind(worlds) == []


@st.composite
def broken_turtle(draw: st.DrawFn) -> bytes:
    content = bytearray((HERE / "isle.ttl").read_bytes())
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(content)))
        content[place : place + draw(st.integers(0, 4))] = draw(
            st.one_of(st.binary(max_size=3), st.just(b'"'), st.just(b"<"))
        )
    return bytes(content[: draw(st.integers(0, len(content)))] if draw(st.booleans()) else content)


@given(st.one_of(broken_turtle(), st.binary(max_size=60), st.just(b"[" * 50_000), st.just(b"(" * 50_000)))
@example(b'<http://x/a> <http://x/b> "\\uD800" .')
@example(b'<http://x/a> <http://x/b> "\\u0000" .')
@one_folder
def test_any_broken_turtle_is_refused_by_name_or_imported(tmp_path, content):
    file = tmp_path / "g.ttl"
    file.write_bytes(content)
    worlds = tmp_path / "worlds"
    try:
        build_world(worlds, "w", WorldContents(ARTICLES[:1], file), replace=True)
    except MalformedFile as refused:
        assert refused.file == file  # noqa: PT017 - being refused and being imported are both right
        assert [name for name in left_behind(worlds) if name != "w"] == []


@given(st.lists(st.sampled_from([*ARTICLES, Article("Title 1", ("Another text.",))]), max_size=9), st.data())
@one_folder
def test_duplicate_articles_and_their_order_do_not_change_the_hash(tmp_path, articles, data):
    shuffled = data.draw(st.permutations([*articles, *articles[:2]]))
    worlds = tmp_path / "worlds"
    if not articles:
        with pytest.raises(WorldError, match="would be empty"):
            build_world(worlds, "w", WorldContents(articles))
        return
    assert build_world(worlds, "w", WorldContents(articles), replace=True)["articles"] == len(set(articles))
    assert hash_of(worlds, WorldContents(articles)) == hash_of(worlds, WorldContents(shuffled))


def test_other_contents_have_another_hash(worlds):
    hashes = {hash_of(worlds, WorldContents(ARTICLES[:n])) for n in range(1, 7)}
    hashes.add(hash_of(worlds, WorldContents([Article("Title 1", ("Sentence 1.",), "Q2")])))
    hashes.add(hash_of(worlds, WorldContents([Article("Title 1", ("Sentence 1", "."), "Q1")])))
    assert len(hashes) == 8


def test_the_hash_of_a_graph_depends_neither_on_its_order_nor_on_names_of_blank_nodes(worlds, tmp_path):
    lines = [*TRIPLES.splitlines(keepends=True), '_:b <http://x.example/n> "2" .\n']
    hashes = set()
    for number, order in enumerate(permutations(lines)):
        (tmp_path / f"{number}.nt").write_text("".join(order).replace("_:b", f"_:n{number}"))
        hashes.add(hash_of(worlds, WorldContents(graph=tmp_path / f"{number}.nt")))
    assert len(hashes) == 1
    (tmp_path / "g.ttl").write_text(TURTLE)
    assert hash_of(worlds, WorldContents(graph=tmp_path / "g.ttl")) == hash_of(
        worlds, WorldContents(graph=tmp_path / "g.ttl")
    )


def test_the_world_hash_does_not_depend_on_the_hash_seed(tmp_path):
    program = """
import sys
from pathlib import Path
from showhow.worlds.build import WorldContents, build_world, remove_half_built_worlds
from showhow.worlds.article_files import read_articles
here, home = Path(sys.argv[1]), Path(sys.argv[2])
print(build_world(home, "w", WorldContents(read_articles(here / "isle.jsonl"), here / "isle.ttl"))["hash"])
"""
    outputs = set()
    for seed in ("0", "4242"):
        done = subprocess.run(
            [sys.executable, "-c", program, HERE, tmp_path / seed],
            env={**os.environ, "PYTHONHASHSEED": seed}, cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        outputs.add(done.stdout)
    assert len(outputs) == 1


def test_an_existing_world_is_only_overwritten_with_replace(worlds):
    build_world(worlds, "w", WorldContents(ARTICLES[:1]))
    with pytest.raises(WorldExists, match=r"'w' already.*--replace"):
        build_world(worlds, "w", WorldContents(ARTICLES[:2]))
    assert read_world_metadata(worlds, "w")["articles"] == 1
    build_world(worlds, "w", WorldContents(ARTICLES[:2]), replace=True)
    assert read_world_metadata(worlds, "w")["articles"] == 2
    assert left_behind(worlds) == ["w"]


def test_a_replacement_that_fails_leaves_the_world_as_it_was(worlds, tmp_path):
    build_world(worlds, "w", WorldContents(ARTICLES[:1]))
    with pytest.raises(MalformedFile):
        build_world(worlds, "w", WorldContents(read_articles(tmp_path / "no.jsonl")), replace=True)
    assert open_world(worlds, "w").text.article("Title 1") == ARTICLES[0]
    assert left_behind(worlds) == ["w"]


def test_an_open_world_stays_readable_while_it_is_replaced(worlds):
    build_world(worlds, "w", WorldContents(ARTICLES[:1]))
    opened = open_world(worlds, "w")
    build_world(worlds, "w", WorldContents(ARTICLES[1:2]), replace=True)
    assert opened.text.article("Title 1") == ARTICLES[0]
    assert open_world(worlds, "w").text.article("Title 2") == ARTICLES[1]


def test_a_killed_build_leaves_no_partial_world_and_the_next_build_removes_its_files(worlds):
    program = """
import sys, time
from pathlib import Path
from showhow.worlds.build import WorldContents, build_world, remove_half_built_worlds
from showhow.worlds.source import Article
def endless():
    for n in range(200):
        yield Article(f"Title {n}", ("x",))
    print("halfway", flush=True)
    time.sleep(60)
build_world(Path(sys.argv[1]), "half", WorldContents(endless()))
"""
    with subprocess.Popen([sys.executable, "-c", program, worlds], stdout=subprocess.PIPE, cwd=ROOT) as build:
        assert build.stdout.readline() == b"halfway\n"
        [folder, lock] = left_behind(worlds)
        assert (lock.rpartition(".")[2], folder.rpartition("-")[2]) == ("lock", "half.new")
        # The folder of a running build is not removed.
        build_world(worlds, "other", WorldContents(ARTICLES[:1]))
        assert remove_half_built_worlds(worlds) == []
        assert left_behind(worlds) == [folder, lock, "other"]
        build.send_signal(signal.SIGKILL)
    assert list_world_names(worlds) == ["other"]
    with pytest.raises(WorldNotFound):
        open_world(worlds, "half")
    assert remove_half_built_worlds(worlds) == [
        "Removed the half-built world half: the process that built it was killed."
    ]
    assert left_behind(worlds) == ["other"]
    build_world(worlds, "half", WorldContents(ARTICLES[:1]))
    assert left_behind(worlds) == ["half", "other"]


@pytest.mark.parametrize("moment", ["the first rename", "the second rename"])
def test_a_replacement_killed_between_its_renames_leaves_one_whole_world(worlds, moment):
    build_world(worlds, "w-x", WorldContents(ARTICLES[:1]))
    # The process is killed as it fsyncs the new world's file, or the folder of worlds after both renames.
    program = """
import os, signal, sys
from pathlib import Path
from showhow.worlds import build
from showhow.worlds.source import Article
def killed(path, *_):
    if not (Path(sys.argv[1]) / "w-x").exists() or sys.argv[2] == "the second rename":
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(path, *_)
rename = Path.rename
if sys.argv[2] == "the first rename":
    Path.rename = killed
else:
    build.shutil.rmtree = killed
build.build_world(Path(sys.argv[1]), "w-x", build.WorldContents([Article("Title 2", ("x",))]), replace=True)
"""
    killed = subprocess.run([sys.executable, "-c", program, worlds, moment], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    [message] = {message for message in remove_half_built_worlds(worlds) if "half-built" not in message}
    assert left_behind(worlds) == ["w-x"]
    if moment == "the first rename":
        assert message == "The world w-x is as it was: a process was killed while it replaced the world."
        assert open_world(worlds, "w-x").text.article("Title 1") == ARTICLES[0]
    else:
        assert message == "Removed the former world w-x: the process that replaced it was killed before it could."
        assert open_world(worlds, "w-x").text.article("Title 2").sentences == ("x",)


@pytest.mark.parametrize("limit", [1000, 20_000])
@pytest.mark.parametrize(
    "source", ["WorldContents(Article(f'T{n}', (str(n) * 50,)) for n in range(5000))", "WorldContents(graph=graph)"]
)
def test_a_full_disk_is_reported_in_one_sentence_and_leaves_no_files(worlds, tmp_path, source, limit):
    triples = "".join(f'<http://x/{n}> <http://x/p> "{n}" .\n' for n in range(20_000))
    (tmp_path / "g.nt").write_text(triples)
    program = f"""
import resource, sys
from pathlib import Path
from showhow.worlds.build import WorldContents, build_world, remove_half_built_worlds
from showhow.worlds.folder import WorldError
from showhow.worlds.source import Article
graph = Path(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
try:
    build_world(Path(sys.argv[1]), "w", {source})
except WorldError as refused:
    print(refused)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, worlds, tmp_path / "g.nt"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"The world w cannot be written to {worlds} (")
    assert "File too large" in done.stdout
    assert left_behind(worlds) == []


def test_a_gzipped_graph_that_is_cut_off_or_damaged_is_named(worlds, tmp_path):
    packed = gzip.compress((HERE / "isle.ttl").read_bytes())
    for content in (packed[:-30], packed[:40] + b"\xff" * 40 + packed[80:], b"no gzip at all"):
        (tmp_path / "g.ttl.gz").write_bytes(content)
        with pytest.raises(MalformedFile, match=r"g\.ttl\.gz"):
            build_world(worlds, "w", WorldContents(graph=tmp_path / "g.ttl.gz"))
    assert left_behind(worlds) == []


def test_an_interrupt_leaves_nothing(worlds):
    def interrupted():
        yield ARTICLES[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_world(worlds, "w", WorldContents(interrupted()))
    assert left_behind(worlds) == []


@pytest.mark.parametrize(
    "name", ["../x", "a/b", " ", ".", "..", ".hidden", "-x", "a b", "ä", "x\n", "x" * 65, "C:", "a\x00"]
)
def test_an_unsafe_name_is_refused(worlds, name):
    with pytest.raises(InvalidWorldName, match="letters, digits"):
        build_world(worlds, name, WorldContents(ARTICLES))
    with pytest.raises(InvalidWorldName):
        open_world(worlds, name)
    assert left_behind(worlds.parent) == []


@pytest.mark.parametrize("name", ["CON", "nul", "lpt1", "Isle", "1sle", "lsle", "ISLE"])
def test_a_reserved_name_or_one_that_looks_like_another_worlds_is_refused(worlds, name):
    build_world(worlds, "Isle" if name in ("1sle", "lsle") else "isle", WorldContents(ARTICLES[:1]))
    before = left_behind(worlds)
    with pytest.raises(InvalidWorldName, match=r"cannot name a world: (Windows|it is easily taken for)"):
        build_world(worlds, name, WorldContents(ARTICLES[:1]))
    assert left_behind(worlds) == before


def test_an_unknown_world_lists_the_known_ones(worlds):
    with pytest.raises(WorldNotFound, match="none yet"):
        open_world(worlds, "w")
    for name in ("b", "a"):
        build_world(worlds, name, WorldContents(ARTICLES[:1]))
    with pytest.raises(WorldNotFound, match="'w'; there are: a, b"):
        open_world(worlds, "w")
    assert list_world_names(worlds) == ["a", "b"]


def test_a_damaged_world_toml_is_an_error(worlds):
    build_world(worlds, "w", WorldContents(ARTICLES[:1]))
    number = b"articles = " + b"9" * 5_000
    for damage in (
        b"name = ",
        b"\xff",
        b'people = "many"',
        b"articles = -1",
        b"articles = true",
        b"left_out = 7",
        number,
    ):
        (worlds / "w" / "world.toml").write_bytes(damage)
        with pytest.raises(WorldError, match=r"world\.toml cannot be read.*--replace"):
            open_world(worlds, "w")


def test_the_real_graph_contains_every_triple_of_its_table(worlds, shared_data):
    source = shared_data / "world_2wiki"
    build_world(worlds, "real", WorldContents(graph=source / "kg_full.ttl"))
    graph = open_world(worlds, "real").graph
    rows = [line.split(",") for line in (source / "triples.csv").read_text(encoding="utf-8").splitlines()[1:]]
    plain = [row for row in rows if len(row) == 10 and row[0].startswith("Q") and row[5].startswith("Q")]
    assert len(plain) > 1000
    chance = random.Random(3)
    for row in chance.sample(plain, 60):
        assert graph.query(f"ASK {{ wd:{row[0]} wdt:{row[4]} wd:{row[5]} }}").boolean
    graph.close()
