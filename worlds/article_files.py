"""Read files of articles, by format: records of articles, and question files; both in JSON Lines, JSON or Parquet.

A record has `title`, `text` or `sentences`, and optionally an entity's id in one of ENTITY_FIELDS. The questions
of HotpotQA and 2WikiMultihopQA come with paragraphs.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from worlds import terms
from worlds.folder import WorldError
from worlds.input_files import (
    MalformedFile,
    iter_records,
    require_storable_text,
    require_text_field,
    restore_rows,
)
from worlds.sentences import split_sentences
from worlds.source import Article


def read_contexts(file: Path, where: Mapping[str, str]) -> Iterator[Article]:
    """The paragraphs of the questions whose fields equal those of `where`, each title and text once."""
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for number, (_, record) in enumerate(iter_records(file), 1):
        if not isinstance(record, dict):
            raise MalformedFile(file, None, f"record {number} is not a JSON object")
        articles = _parse_paragraphs(record, file, number)
        if any(str(record.get(field, "")) != expected for field, expected in where.items()):
            continue
        for article in articles:
            if (article.title, article.sentences) not in seen:
                seen.add((article.title, article.sentences))
                yield article


def _parse_paragraphs(record: dict[str, Any], file: Path, number: int) -> list[Article]:
    context = restore_rows(record.get("context"))
    if not isinstance(context, list):
        raise MalformedFile(file, None, f"record {number} has no list 'context'")
    articles = []
    entities = _parse_entities(record)
    for paragraph in context:
        # Files of the hub name the parts of a paragraph: its title, and its sentences.
        parts = sorted(paragraph, key="title".__ne__) if isinstance(paragraph, dict) else ()
        match [paragraph[part] for part in parts] or paragraph:
            case [str(title), list(sentences)] if title.strip() and all(
                isinstance(sentence, str) for sentence in sentences
            ):
                texts = tuple(
                    require_storable_text(sentence.strip(), file, None) for sentence in sentences if sentence.strip()
                )
                articles.append(
                    Article(require_storable_text(title.strip(), file, None), texts, entities.get(title) or None)
                )
            case _:
                raise MalformedFile(file, None, f"record {number} has a paragraph that is not [title, [sentence, ...]]")
    return articles


def _parse_entities(record: dict[str, Any]) -> dict[str, str]:
    """Entity ids by title: 2WikiMultihopQA lists them for the supporting facts, in the order of their titles."""
    ids, facts = record.get("entity_ids"), restore_rows(record.get("supporting_facts"))
    if not isinstance(ids, str) or not isinstance(facts, list):
        return {}
    rows = ([fact.get("title")] if isinstance(fact, dict) else fact for fact in facts)
    titles = dict.fromkeys(row[0] for row in rows if isinstance(row, list) and row and isinstance(row[0], str))
    entities = ids.split("_")
    return dict(zip(titles, entities, strict=True)) if len(entities) == len(titles) else {}


ENTITY_FIELDS = (
    "entity",
    "entity_id",
    "wikidata_id",
    "wikidata",
    "wikibase_item",
    "qid",
    "wikidata_qid",
    "wikidataId",
    "wikidata_item",
    "kb_id",
    "item",
    "id",
    "_id",
)
GENERIC_ENTITY_FIELDS = {"id", "_id", "item"}
"""Fields that count as an entity only if their value is an item's id."""
ITEM_ID_PATTERN = re.compile(r"Q[1-9][0-9]*")


def read_records(file: Path, where: Mapping[str, str]) -> Iterator[Article]:
    """The articles of the file whose fields equal those of `where`."""
    for number, (line, record) in enumerate(iter_records(file), 1):
        if not isinstance(record, dict):
            raise MalformedFile(file, line, f"record {number} is not a JSON object")
        article = _parse_article(record, file, line)
        if all(_field_text(record.get(field)) == expected for field, expected in where.items()):
            yield article


def _parse_article(record: dict[str, Any], file: Path, line: int | None) -> Article:
    title = require_text_field(record, "title", file, line).strip()
    if record.get("sentences") is not None:
        sentences = record["sentences"]
        if not isinstance(sentences, list) or not all(isinstance(sentence, str) for sentence in sentences):
            raise MalformedFile(file, line, "the field 'sentences' is not a list of texts")
        return Article(
            title,
            tuple(require_storable_text(sentence, file, line) for sentence in sentences),
            _parse_entity(record, file, line),
        )
    if "text" not in record:
        raise MalformedFile(file, line, "the fields 'text' and 'sentences' are both missing")
    text = record["text"]
    if not isinstance(text, str):
        raise MalformedFile(file, line, "the field 'text' is not a text")
    return Article(title, split_sentences(require_storable_text(text, file, line)), _parse_entity(record, file, line))


def _parse_entity(record: dict[str, Any], file: Path, line: int | None) -> str | None:
    for name in ENTITY_FIELDS:
        value = record.get(name)
        if value is None or _is_record_number(name, value) or (isinstance(value, str) and not value.strip()):
            continue
        if not isinstance(value, str):
            raise MalformedFile(file, line, f"the field {name!r} is not a text")
        return require_storable_text(terms.strip_marks(value), file, line)
    return None


def _is_record_number(name: str, value: object) -> bool:
    """Whether a field with a generic name has a value that is not an item's id."""
    return name in GENERIC_ENTITY_FIELDS and not (
        isinstance(value, str) and ITEM_ID_PATTERN.fullmatch(terms.strip_marks(value))
    )


def _field_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


ArticleReader = Callable[[Path, Mapping[str, str]], Iterator[Article]]

ARTICLE_FORMATS: dict[str, ArticleReader] = {
    "jsonl": read_records,
    "hotpotqa": read_contexts,
    "2wiki": read_contexts,
}
ARTICLE_SUFFIXES = (".jsonl", ".jsonl.gz", ".ndjson", ".json", ".json.gz", ".parquet")


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


def _has_context(file: Path) -> bool:
    """Whether the first record is a question with its paragraphs, and not an article."""
    try:
        _, record = next(iter_records(file), (None, None))
    except MalformedFile:
        # The reader says what is wrong.
        return False
    return isinstance(record, dict) and "context" in record and "title" not in record


def _select_reader(file: Path, format_name: str) -> ArticleReader:
    if format_name == "auto":
        format_name = "2wiki" if _has_context(file) else "jsonl"
    if format_name not in ARTICLE_FORMATS:
        raise UnknownArticleFormat(
            f"There is no article format {format_name!r}; the formats are auto, {', '.join(ARTICLE_FORMATS)}."
        )
    return ARTICLE_FORMATS[format_name]
