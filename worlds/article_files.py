"""Read files of articles, by format: records and question files, in JSON Lines, JSON or Parquet, and documents.

A record has `title`, `text` or `sentences`, and optionally an entity's id in one of ENTITY_FIELDS. The questions
of HotpotQA and 2WikiMultihopQA come with paragraphs.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from showhow.worlds import terms
from showhow.worlds.documents import (
    ARCHIVE_SUFFIX,
    DOCUMENT_SUFFIXES,
    UnreadableDocument,
    is_document,
    read_document,
    unpack_archive,
)
from showhow.worlds.folder import WorldError
from showhow.worlds.input_files import (
    MalformedFile,
    iter_records,
    require_storable_text,
    require_text_field,
    restore_rows,
)
from showhow.worlds.sentences import split_paragraphs
from showhow.worlds.source import Article


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
    sentences, paragraphs = split_paragraphs(require_storable_text(text, file, line))
    return Article(title, sentences, _parse_entity(record, file, line), paragraphs=paragraphs)


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


def read_one_document(file: Path, where: Mapping[str, str]) -> Iterator[Article]:
    """The document as one article; it has no fields to be chosen by."""
    if where:
        raise MalformedFile(file, None, "a document has no fields to choose articles by")
    yield read_document(file)


ARTICLE_FORMATS: dict[str, ArticleReader] = {
    "jsonl": read_records,
    "hotpotqa": read_contexts,
    "2wiki": read_contexts,
    "document": read_one_document,
}
RECORD_SUFFIXES = (".jsonl", ".jsonl.gz", ".ndjson", ".json", ".json.gz", ".parquet")
ARTICLE_SUFFIXES = (*RECORD_SUFFIXES, *DOCUMENT_SUFFIXES, ARCHIVE_SUFFIX)


class UnknownArticleFormat(WorldError):
    """There is no article format with this name."""


def read_articles(
    source: Path,
    format_name: str = "auto",
    where: Mapping[str, str] | None = None,
    left_out: list[str] | None = None,
) -> Iterator[Article]:
    """The articles of a file, of a zip archive, or of every article file in a folder in the order of their names.

    `where` selects records whose fields have these values. Of several documents, those that cannot be read are left
    out, and `left_out` gets a sentence about each; UnreadableDocument if none can be read.
    """
    if source.is_file() and source.suffix.lower() == ARCHIVE_SUFFIX:
        with TemporaryDirectory(prefix="showhow-archive-") as folder:
            unpack_archive(source, Path(folder))
            files = _select_files(sorted(Path(folder).glob("*/*")), source, "archive")
            yield from _read_files(files, format_name, where or {}, left_out)
        return
    yield from _read_files(_list_files(source), format_name, where or {}, left_out)


def _read_files(
    files: Sequence[Path], format_name: str, where: Mapping[str, str], left_out: list[str] | None
) -> Iterator[Article]:
    problems: list[str] = []
    for file in files:
        try:
            yield from _select_reader(file, format_name)(file, where)
        except UnreadableDocument as error:
            problems.append(str(error))
            if len(problems) == len(files):
                more = f" (and {len(problems) - 1:,} more)" if len(problems) > 1 else ""
                raise UnreadableDocument(f"No document could be read: {problems[0]}{more}.") from error
    if left_out is not None:
        left_out += problems


def _list_files(source: Path) -> list[Path]:
    if not source.exists():
        raise MalformedFile(source, None, "there is no such file or folder")
    if not source.is_dir():
        return [source]
    # What is no regular file is refused where it is opened.
    paths = (path for path in source.rglob("*") if not path.is_dir())
    hidden = (".", "__MACOSX")
    visible = (path for path in paths if not any(part.startswith(hidden) for part in path.relative_to(source).parts))
    # Documents are often in folders of folders; a file of JSON in one of them may be anything.
    files = [path for path in visible if path.parent == source or is_document(path.name)]
    return _select_files(sorted(files), source, "folder")


def _select_files(paths: Sequence[Path], source: Path, kind: str) -> list[Path]:
    """The files of records, or the documents where there are none: a text beside records describes them."""
    records = [path for path in paths if path.name.lower().endswith(RECORD_SUFFIXES)]
    files = records or [path for path in paths if is_document(path.name)]
    if not files:
        raise MalformedFile(source, None, f"the {kind} has no file that ends in {', '.join(ARTICLE_SUFFIXES)}")
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
    if format_name == "auto" and is_document(file.name):
        format_name = "document"
    if format_name == "auto":
        format_name = "2wiki" if _has_context(file) else "jsonl"
    if format_name not in ARTICLE_FORMATS:
        raise UnknownArticleFormat(
            f"There is no article format {format_name!r}; the formats are auto, {', '.join(ARTICLE_FORMATS)}."
        )
    return ARTICLE_FORMATS[format_name]
