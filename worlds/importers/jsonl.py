"""Articles in JSON Lines: `title`, `text` or `sentences`, and an entity's id under any of its usual names."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sentencex import segment

from worlds.importers.files import MalformedFile, iter_json_objects, require_storable_text, require_text_field
from worlds.source import Article

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
"""These name an entity only where an item's id stands under them."""
ITEM_ID_PATTERN = re.compile(r"Q[1-9][0-9]*")


def read_jsonl(file: Path, where: Mapping[str, str]) -> Iterator[Article]:
    """The articles of the file whose fields equal those of `where`."""
    for line, record in iter_json_objects(file):
        article = _parse_article(record, file, line)
        if all(_field_text(record.get(field)) == expected for field, expected in where.items()):
            yield article


def _parse_article(record: dict[str, Any], file: Path, line: int) -> Article:
    title = require_text_field(record, "title", file, line).strip()
    if record.get("sentences") is not None:
        sentences = record["sentences"]
        if not isinstance(sentences, list) or not all(isinstance(sentence, str) for sentence in sentences):
            raise MalformedFile(file, line, "the field 'sentences' is no list of texts")
        return Article(
            title,
            tuple(require_storable_text(sentence, file, line) for sentence in sentences),
            _parse_entity(record, file, line),
        )
    if "text" not in record:
        raise MalformedFile(file, line, "the fields 'text' and 'sentences' are both missing")
    text = record["text"]
    if not isinstance(text, str):
        raise MalformedFile(file, line, "the field 'text' is no text")
    return Article(title, split_sentences(require_storable_text(text, file, line)), _parse_entity(record, file, line))


def split_sentences(text: str, language: str = "en") -> tuple[str, ...]:
    """The sentences of a text, a paragraph's end ending one too."""
    sentences = (sentence.strip() for part in text.splitlines() if part.strip() for sentence in segment(language, part))
    return tuple(sentence for sentence in sentences if sentence)


def _parse_entity(record: dict[str, Any], file: Path, line: int) -> str | None:
    for name in ENTITY_FIELDS:
        value = record.get(name)
        if value is None or _is_record_number(name, value) or (isinstance(value, str) and not value.strip()):
            continue
        if not isinstance(value, str):
            raise MalformedFile(file, line, f"the field {name!r} is no text")
        return require_storable_text(value.strip(), file, line)
    return None


def _is_record_number(name: str, value: object) -> bool:
    """Whether a field of so general a name holds something else than an item's id."""
    return name in GENERIC_ENTITY_FIELDS and not (isinstance(value, str) and ITEM_ID_PATTERN.fullmatch(value.strip()))


def _field_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
