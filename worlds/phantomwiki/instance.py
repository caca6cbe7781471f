"""An instance of a folder as a world: its articles, a graph of its facts, its questions with their answers."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from worlds.build import Sources, build_world
from worlds.generator.blocks import UNIVERSE
from worlds.generator.items import Items
from worlds.generator.statements import statements
from worlds.importers.files import MalformedFile, parse_json, whole_text
from worlds.phantomwiki.articles import PublishedArticle, read_articles, read_sentences
from worlds.phantomwiki.facts import Facts, read_facts
from worlds.phantomwiki.layout import Layout, find_layout
from worlds.phantomwiki.published import read_questions
from worlds.phantomwiki.queries import UnknownGoal
from worlds.phantomwiki.records import records
from worlds.phantomwiki.rows import Rows
from worlds.phantomwiki.stated import STATED, StatedFacts
from worlds.phantomwiki.values import Values
from worlds.questions.question_file import QUESTIONS
from worlds.source import Article

FORMAT = "phantomwiki"


def import_instance(
    worlds: Path, name: str, folder: Path, told: Mapping[str, str | None], *, replace: bool = False
) -> dict[str, Any]:
    """Build the world and give what its world.toml says, `told` with it; `split` there names one instance of several.

    MalformedFile when a file is not what it should be.
    """
    instance = _Instance(find_layout(folder, told.get("split")))
    with TemporaryDirectory(prefix="showhow-graph-") as made:
        graph = Path(made) / "graph.nt"
        with graph.open("wb") as stream:
            stream.writelines(statements(instance.facts.universe))
        return build_world(worlds, name, instance.sources(graph, told), replace=replace)


class _Instance:
    """Everything that a folder holds, read and checked."""

    def __init__(self, layout: Layout) -> None:
        self.facts = _facts(layout)
        self._values = Values(self.facts.universe)
        self._articles = list(self._checked(read_articles(layout.articles)))
        self._rows = [json.dumps(row, ensure_ascii=False) for row in self._questions(layout)]
        self._relations = _relations(layout)

    def sources(self, graph: Path, told: Mapping[str, str | None]) -> Sources:
        """What the world is built from."""
        universe = self.facts.universe
        about = {**told, "format": FORMAT, "people": len(universe), "questions": len(self._rows)}
        files = {UNIVERSE: universe.save, QUESTIONS: self._write_questions, STATED: self._stated().save}
        return Sources((self._article(each) for each in self._articles), graph, about, files)

    def _checked(self, articles: Iterator[PublishedArticle]) -> Iterator[PublishedArticle]:
        seen: set[str] = set()
        for article in articles:
            try:
                self._values.number("person", article.title)
            except ValueError as wrong:
                raise article.wrong(f"the article is about nobody: {wrong}") from wrong
            if article.title in seen:
                raise article.wrong(f"there are two articles about {article.title!r}")
            seen.add(article.title)
            yield article

    def _article(self, article: PublishedArticle) -> Article:
        row = self._values.number("person", article.title)
        sentences, sections = read_sentences(article.text)
        return Article(article.title, sentences, Items(self.facts.universe).person(row), sections)

    def _questions(self, layout: Layout) -> Iterator[dict[str, Any]]:
        rows = Rows(self._values)
        for record, question in read_questions(layout.questions):
            try:
                yield rows.row(question)
            except UnknownGoal as wrong:
                raise record.wrong(f"of the question {question.id}, {wrong}") from wrong

    def _write_questions(self, file: Path) -> None:
        file.write_text("".join(f"{row}\n" for row in self._rows), encoding="utf-8")

    def _stated(self) -> StatedFacts:
        facts = {article.title: list(article.facts) for article in self._articles}
        return StatedFacts(facts, dict(sorted(self.facts.attributes.items())), self._relations)


def _facts(layout: Layout) -> Facts:
    file = layout.facts[0]
    if file.suffix != ".parquet":
        return read_facts(file, whole_text(file))
    return read_facts(file, "\n".join(record.text("content") for each in layout.facts for record in records(each)))


def _relations(layout: Layout) -> dict[str, dict[str, list[str]]]:
    if layout.relations is None:
        return {}
    found = parse_json(whole_text(layout.relations), layout.relations, None)
    if not isinstance(found, dict) or not all(_are_cells(cells) for cells in found.values()):
        raise MalformedFile(layout.relations, None, "it is no object of relations, each an object of lists of people")
    return found


def _are_cells(cells: Any) -> bool:
    if not isinstance(cells, dict):
        return False
    return all(isinstance(found, list) and all(isinstance(each, str) for each in found) for found in cells.values())
