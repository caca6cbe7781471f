"""Import of a published PhantomWiki instance as a world: articles, a graph of its facts, and its questions.

Reads the layout of the published generator and that of the Hugging Face hub. Questions get gold parts in every
formalism.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from showhow.fiction.generator.world_files import UNIVERSE_FILE, generate_triples
from showhow.fiction.phantomwiki.articles import (
    STATED_FACTS_FILE,
    PublishedArticle,
    StatedFacts,
    parse_sentences,
    read_articles,
)
from showhow.fiction.phantomwiki.prolog import InstanceFacts, parse_facts
from showhow.fiction.phantomwiki.published_questions import (
    PublishedQuestion,
    UnknownPrologGoal,
    parse_query,
    read_questions,
    to_chain,
)
from showhow.fiction.phantomwiki.records import ValueCodec, iter_records
from showhow.fiction.questions.evaluate import FACT_VALUE_KINDS
from showhow.fiction.questions.expressions import Count, Expression, Fact
from showhow.fiction.questions.names import NameFormatter
from showhow.fiction.questions.question import GoldBuilder
from showhow.fiction.questions.question_file import QUESTIONS_FILE
from showhow.fiction.universe.items import ItemCatalog
from showhow.fiction.universe.universe import FACTS, GRAPH, TEXT, FactSources, Universe
from showhow.worlds.build import WorldContents, create_world_folder, write_world
from showhow.worlds.input_files import MalformedFile, parse_json, read_text_file
from showhow.worlds.source import Article

_FACT_FILES = ("facts.pl", "facts.pl.gz")
_ARTICLE_FILES = ("articles.json", "articles.json.gz", "articles.jsonl", "articles.jsonl.gz")
# The first that exists is read; the slim files have the same content.
_QUESTION_FILES = (
    "questions.json",
    "questions.json.gz",
    "questions.jsonl",
    "questions.jsonl.gz",
    "questions.slim.jsonl",
    "questions.slim.jsonl.gz",
)
_RELATION_FILES = ("relations.json", "relations.json.gz")
_HUB_FOLDERS = ("database", "text-corpus", "question-answer")
_SHARD_PATTERN = re.compile(r"(.+)-\d{5}-of-\d{5}\.parquet")
_TYPE_FILE_PATTERN = re.compile(r"type(\d+)\.json(?:\.gz)?")


@dataclass(frozen=True, slots=True)
class InstanceLayout:
    """Files of one instance."""

    facts: tuple[Path, ...]
    articles: tuple[Path, ...]
    questions: tuple[Path, ...]
    relations: Path | None = None
    """Precomputed tables of all relations, if present."""


def is_instance_folder(folder: Path) -> bool:
    """Whether the folder has the facts of an instance, or of several, in a layout that is read."""
    if not folder.is_dir():
        return False
    places = (folder, *(path for path in folder.iterdir() if path.is_dir()))
    return any(_find_first(place, _FACT_FILES) for place in places) or all((folder / n).is_dir() for n in _HUB_FOLDERS)


def find_instance_layout(folder: Path, split: str | None = None) -> InstanceLayout:
    """Find the files of an instance in a folder; `split` selects one of several."""
    if not folder.is_dir():
        raise MalformedFile(folder, None, "there is no such folder; an instance is a folder of facts and questions")
    if (folder / _HUB_FOLDERS[0]).is_dir():
        return _hub_layout(folder, split)
    if not _find_first(folder, _FACT_FILES):
        return _split_layout(folder, split)
    articles = _find_first(folder, _ARTICLE_FILES) or _sort_paths((folder / "articles").glob("*.txt"))
    questions = _find_first(folder, _QUESTION_FILES) or _sort_by_type((folder / "questions").glob("type*"))
    for files, expected in (
        (articles, f"{_ARTICLE_FILES[0]} or articles/"),
        (questions, f"{_QUESTION_FILES[0]} or questions/"),
    ):
        if not files:
            raise MalformedFile(folder, None, f"the folder has no {expected}")
    relations = _find_first(folder, _RELATION_FILES)
    return InstanceLayout(_find_first(folder, _FACT_FILES), articles, questions, relations[0] if relations else None)


def _split_layout(folder: Path, split: str | None) -> InstanceLayout:
    splits = {
        path.name: path for path in _sort_paths(folder.iterdir()) if path.is_dir() and _find_first(path, _FACT_FILES)
    }
    if not splits:
        raise MalformedFile(folder, None, f"neither the folder nor a folder in it has a {_FACT_FILES[0]}")
    return find_instance_layout(splits[_choose_split(folder, sorted(splits), split)])


def _hub_layout(folder: Path, split: str | None) -> InstanceLayout:
    shards = {part: _group_shards(folder / part) for part in _HUB_FOLDERS}
    name = _choose_split(folder, sorted(shards[_HUB_FOLDERS[0]]), split)
    for part in _HUB_FOLDERS:
        if name not in shards[part]:
            raise MalformedFile(folder / part, None, f"it has no split {name}")
    facts, articles, questions = (tuple(shards[part][name]) for part in _HUB_FOLDERS)
    return InstanceLayout(facts, articles, questions)


def _group_shards(folder: Path) -> dict[str, list[Path]]:
    shards: dict[str, list[Path]] = {}
    for path in _sort_paths(folder.glob("*.parquet")):
        shard = _SHARD_PATTERN.fullmatch(path.name)
        shards.setdefault(shard[1] if shard else path.stem, []).append(path)
    return shards


def _choose_split(folder: Path, splits: list[str], split: str | None) -> str:
    if split in splits:
        return str(split)
    if split is None and len(splits) == 1:
        return splits[0]
    problem = f"there is no split {split}" if split else "it contains several instances"
    names = ", ".join(splits) or "there are none"
    raise MalformedFile(folder, None, f"{problem}; name one with --where split=NAME: {names}")


def _find_first(folder: Path, names: Iterable[str]) -> tuple[Path, ...]:
    return tuple(folder / name for name in names if (folder / name).is_file())[:1]


def _sort_by_type(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Sort by number: type2 before type10."""
    numbered = {int(match[1]): path for path in paths if (match := _TYPE_FILE_PATTERN.fullmatch(path.name))}
    return tuple(numbered[number] for number in sorted(numbered))


def _sort_paths(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(sorted(paths))


def assign_text_and_graph(universe: Universe) -> FactSources:
    """Sources of an instance: text and graph both state everything."""
    masks = {fact: np.full(len(universe), TEXT | GRAPH, np.uint8) for fact in FACTS}
    return FactSources(masks, np.full(len(universe.friends.pairs), TEXT | GRAPH, np.uint8))


class QuestionRowBuilder:
    """Builds rows of questions.jsonl from the published questions of one instance."""

    def __init__(self, values: ValueCodec) -> None:
        self._values = values
        universe = values.universe
        self._gold = GoldBuilder(universe, assign_text_and_graph(universe), NameFormatter(universe, plain=True))

    def build_row(self, question: PublishedQuestion) -> dict[str, Any]:
        """Build a row: answers, difficulty, query and template number as published, gold reasoning as derived by us.

        UnknownPrologGoal if the query cannot be parsed.
        """
        expression = parse_query(question.goals, question.variable, self._values)
        chain = to_chain(expression)
        kind = chain.kind if chain else "", " ".join(question.template)
        return {
            **self._gold.build(0, expression, question.text, kind).to_row(),
            "id": question.id,
            "answers": [{"text": text, "entity": self._find_entity(expression, text)} for text in question.answers],
            "difficulty": question.difficulty,
            "type": question.type,
            "prolog": question.encode_query(),
            **({} if question.counts is None else {"is_aggregation_question": question.counts}),
        }

    def _find_entity(self, expression: Expression, text: str) -> str | None:
        items = ItemCatalog(self._values.universe)
        kind = _classify_answer(expression)
        item_of = {"person": items.person, "job": items.job, "hobby": items.hobby}.get(kind)
        try:
            return item_of(self._values.parse_value(kind, text)) if item_of else None
        except ValueError:
            # A wrong answer may name an unknown person; verification reports it, the import accepts it.
            return None


def _classify_answer(expression: Expression) -> str:
    match expression:
        case Fact(fact):
            return FACT_VALUE_KINDS[fact]
        case Count():
            return "number"
    return "person"


INSTANCE_FORMAT = "phantomwiki"


def import_instance(
    worlds: Path, name: str, folder: Path, metadata: Mapping[str, str | None], *, replace: bool = False
) -> dict[str, Any]:
    """Build a world from an instance and return the contents of its world.toml, which includes `metadata`.

    metadata["split"] selects one instance of several. MalformedFile if a file is malformed.
    """
    instance = _InstanceReader(find_instance_layout(folder, metadata.get("split")))
    with create_world_folder(worlds, name, replace=replace) as world:
        graph = world / "triples.nt"
        with graph.open("wb") as stream:
            stream.writelines(generate_triples(instance.facts.universe))
        written = write_world(world, name, instance.build_contents(graph, metadata))
        graph.unlink()
    return written


class _InstanceReader:
    """Reads and checks all files of an instance."""

    def __init__(self, layout: InstanceLayout) -> None:
        self.facts = _read_facts(layout)
        self._values = ValueCodec(self.facts.universe)
        self._articles = list(self._check_articles(read_articles(layout.articles)))
        self._solutions: dict[str, list[dict[str, str | int]]] = {}
        self._rows = [json.dumps(row, ensure_ascii=False) for row in self._read_questions(layout)]
        self._relations = _read_relations(layout)

    def build_contents(self, graph: Path, metadata: Mapping[str, str | None]) -> WorldContents:
        """Contents to build the world from."""
        universe = self.facts.universe
        description = {**metadata, "format": INSTANCE_FORMAT, "people": len(universe), "questions": len(self._rows)}
        files = {
            UNIVERSE_FILE: universe.save,
            QUESTIONS_FILE: self._write_questions,
            STATED_FACTS_FILE: self._collect_stated_facts().save,
        }
        return WorldContents((self._build_article(article) for article in self._articles), graph, description, files)

    def _check_articles(self, articles: Iterator[PublishedArticle]) -> Iterator[PublishedArticle]:
        seen_titles: set[str] = set()
        for article in articles:
            try:
                self._values.parse_value("person", article.title)
            except ValueError as error:
                raise article.malformed_error(f"the article is not about a person of the facts: {error}") from error
            if article.title in seen_titles:
                raise article.malformed_error(f"there are two articles about {article.title!r}")
            seen_titles.add(article.title)
            yield article

    def _build_article(self, article: PublishedArticle) -> Article:
        row = self._values.parse_value("person", article.title)
        sentences, sections = parse_sentences(article.text)
        return Article(article.title, sentences, ItemCatalog(self.facts.universe).person(row), sections)

    def _read_questions(self, layout: InstanceLayout) -> Iterator[dict[str, Any]]:
        rows = QuestionRowBuilder(self._values)
        for record, question in read_questions(layout.questions):
            if question.solutions:
                self._solutions[question.id] = list(question.solutions)
            try:
                yield rows.build_row(question)
            except UnknownPrologGoal as error:
                raise record.malformed_error(f"question {question.id}: {error}") from error

    def _write_questions(self, file: Path) -> None:
        file.write_text("".join(f"{row}\n" for row in self._rows), encoding="utf-8")

    def _collect_stated_facts(self) -> StatedFacts:
        facts = {article.title: list(article.facts) for article in self._articles}
        attributes = dict(sorted(self.facts.attributes.items()))
        return StatedFacts(facts, attributes, self._relations, self.facts.rules, self._solutions)


def _read_facts(layout: InstanceLayout) -> InstanceFacts:
    file = layout.facts[0]
    if file.suffix != ".parquet":
        return parse_facts(file, read_text_file(file))
    return parse_facts(
        file, "\n".join(record.require_text("content") for shard in layout.facts for record in iter_records(shard))
    )


def _read_relations(layout: InstanceLayout) -> dict[str, dict[str, list[str]]]:
    if layout.relations is None:
        return {}
    document = parse_json(read_text_file(layout.relations), layout.relations, None)
    if not isinstance(document, dict) or not all(_is_cell_table(cells) for cells in document.values()):
        raise MalformedFile(layout.relations, None, "it is not an object of relations with lists of people by person")
    return document


def _is_cell_table(cells: Any) -> bool:
    if not isinstance(cells, dict):
        return False
    return all(
        isinstance(people, list) and all(isinstance(person, str) for person in people) for people in cells.values()
    )
