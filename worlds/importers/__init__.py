"""Readers of article files, by format."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from worlds.folder import WorldError
from worlds.importers import articles
from worlds.importers.files import MalformedFile, iter_nonblank_lines
from worlds.source import Article

ArticleReader = Callable[[Path, Mapping[str, str]], Iterator[Article]]

ARTICLE_FORMATS: dict[str, ArticleReader] = {
    "jsonl": articles.read_jsonl,
    "hotpotqa": articles.read_contexts,
    "2wiki": articles.read_contexts,
}
ARTICLE_SUFFIXES = (".jsonl", ".jsonl.gz", ".ndjson", ".json", ".json.gz")


class UnknownArticleFormat(WorldError):
    """There is no article format with this name."""


def read_articles(source: Path, format_name: str = "auto", where: Mapping[str, str] | None = None) -> Iterator[Article]:
    """The articles of a file, or of every article file in a folder in the order of their names.

    `where` selects records whose fields have these values.
    """
    for file in _list_files(source):
        yield from _select_reader(file, format_name)(file, where or {})


def _list_files(source: Path) -> list[Path]:
    if not source.exists():
        raise MalformedFile(source, None, "there is no such file or folder")
    if not source.is_dir():
        return [source]
    files = sorted(path for path in source.iterdir() if path.name.endswith(ARTICLE_SUFFIXES))
    if not files:
        raise MalformedFile(source, None, f"the folder has no file that ends in {', '.join(ARTICLE_SUFFIXES)}")
    return files


def _select_reader(file: Path, format_name: str) -> ArticleReader:
    if format_name == "auto":
        _, first_line = next(iter_nonblank_lines(file), (0, ""))
        format_name = "2wiki" if first_line.lstrip().startswith("[") else "jsonl"
    if format_name not in ARTICLE_FORMATS:
        raise UnknownArticleFormat(
            f"There is no article format {format_name!r}; the formats are auto, {', '.join(ARTICLE_FORMATS)}."
        )
    return ARTICLE_FORMATS[format_name]
