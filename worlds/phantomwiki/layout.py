"""Where the parts of an instance lie in a folder: as its generator writes them, or as the hub keeps it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from worlds.importers.files import MalformedFile

_FACTS = ("facts.pl", "facts.pl.gz")
_ARTICLES = ("articles.json", "articles.json.gz", "articles.jsonl", "articles.jsonl.gz")
# The first of them that is there: the slim ones say the same in fewer words.
_QUESTIONS = (
    "questions.json",
    "questions.json.gz",
    "questions.jsonl",
    "questions.jsonl.gz",
    "questions.slim.jsonl",
    "questions.slim.jsonl.gz",
)
_RELATIONS = ("relations.json", "relations.json.gz")
_HUB = ("database", "text-corpus", "question-answer")
_SHARD = re.compile(r"(.+)-\d{5}-of-\d{5}\.parquet")
_TYPE = re.compile(r"type(\d+)\.json(?:\.gz)?")


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of one instance."""

    facts: tuple[Path, ...]
    articles: tuple[Path, ...]
    questions: tuple[Path, ...]
    relations: Path | None = None
    """Every cell of every relation, where somebody has computed them."""


def find_layout(folder: Path, split: str | None = None) -> Layout:
    """The files of the instance in a folder, or of the split of that name in a folder of several."""
    if not folder.is_dir():
        raise MalformedFile(folder, None, "there is no such folder; an instance is a folder of facts and questions")
    if (folder / _HUB[0]).is_dir():
        return _on_the_hub(folder, split)
    if not _first(folder, _FACTS):
        return _of_a_split(folder, split)
    articles = _first(folder, _ARTICLES) or _sorted((folder / "articles").glob("*.txt"))
    questions = _first(folder, _QUESTIONS) or _by_type((folder / "questions").glob("type*"))
    for found, wanted in ((articles, f"{_ARTICLES[0]} or articles/"), (questions, f"{_QUESTIONS[0]} or questions/")):
        if not found:
            raise MalformedFile(folder, None, f"the folder has no {wanted}")
    relations = _first(folder, _RELATIONS)
    return Layout(_first(folder, _FACTS), articles, questions, relations[0] if relations else None)


def _of_a_split(folder: Path, split: str | None) -> Layout:
    splits = {path.name: path for path in _sorted(folder.iterdir()) if path.is_dir() and _first(path, _FACTS)}
    if not splits:
        raise MalformedFile(folder, None, f"the folder has no {_FACTS[0]}, nor has any folder in it")
    return find_layout(splits[_chosen(folder, sorted(splits), split)])


def _on_the_hub(folder: Path, split: str | None) -> Layout:
    shards = {part: _shards(folder / part) for part in _HUB}
    name = _chosen(folder, sorted(shards[_HUB[0]]), split)
    for part in _HUB:
        if name not in shards[part]:
            raise MalformedFile(folder / part, None, f"it has no split {name}")
    facts, articles, questions = (tuple(shards[part][name]) for part in _HUB)
    return Layout(facts, articles, questions)


def _shards(folder: Path) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in _sorted(folder.glob("*.parquet")):
        shard = _SHARD.fullmatch(path.name)
        found.setdefault(shard[1] if shard else path.stem, []).append(path)
    return found


def _chosen(folder: Path, splits: list[str], split: str | None) -> str:
    if split in splits:
        return str(split)
    if split is None and len(splits) == 1:
        return splits[0]
    told = f"there is no split {split}" if split else "it holds several instances"
    there = ", ".join(splits) or "none is there"
    raise MalformedFile(folder, None, f"{told}; name one with --where split=NAME: {there}")


def _first(folder: Path, names: Iterable[str]) -> tuple[Path, ...]:
    return tuple(folder / name for name in names if (folder / name).is_file())[:1]


def _by_type(paths: Iterable[Path]) -> tuple[Path, ...]:
    """In the order of the numbers, type2 before type10."""
    numbered = {int(found[1]): path for path in paths if (found := _TYPE.fullmatch(path.name))}
    return tuple(numbered[number] for number in sorted(numbered))


def _sorted(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(sorted(paths))
