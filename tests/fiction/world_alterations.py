"""Alterations of a world's folder that verification must report."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyoxigraph as ox

from showhow.worlds import terms
from showhow.worlds.embedded.text import EmbeddedText, TextWriter
from showhow.worlds.folder import GRAPH_FOLDER, TEXT_FOLDER
from showhow.worlds.source import Article


def change_rows(file: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    """Change the objects of a JSON Lines file."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    change(rows)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def change_stated(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the stated facts of an instance."""
    document = json.loads(gzip.decompress(file.read_bytes()))
    change(document)
    file.write_bytes(gzip.compress(json.dumps(document).encode()))


def change_article(folder: Path, title: str, change: Callable[[Article], Article | None]) -> None:
    """Rewrite the articles with one of them changed or removed."""
    index = EmbeddedText(folder / TEXT_FOLDER)
    articles = [index.article(title) for title in titles(folder)]
    assert title in [article.title for article in articles]
    shutil.rmtree(folder / TEXT_FOLDER)
    writer = TextWriter(folder / TEXT_FOLDER)
    for article in articles:
        changed = change(article) if article.title == title else article
        if changed is not None:
            writer.add(changed)
    writer.close()


def titles(folder: Path) -> list[str]:
    """Titles of the articles, from the sitelinks of the graph."""
    store = ox.Store.read_only(str(folder / GRAPH_FOLDER))
    pages = (quad.subject.value for quad in store.quads_for_pattern(None, ox.NamedNode(terms.SCHEMA_ABOUT), None))
    return sorted(title for page in pages if (title := terms.title_from_page_iri(page)))


def change_graph(folder: Path, change: Callable[[ox.Store], object]) -> None:
    """Add or remove triples."""
    store = ox.Store(str(folder / GRAPH_FOLDER))
    change(store)
    store.flush()
