"""Import articles from question files: HotpotQA and 2WikiMultihopQA have paragraphs with every question."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from worlds.importers.files import MalformedFile, read_json_list, require_storable_text
from worlds.source import Article


def read_contexts(file: Path, where: Mapping[str, str]) -> Iterator[Article]:
    """The paragraphs of the questions whose fields equal those of `where`, each title and text once."""
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for place, record in enumerate(read_json_list(file), 1):
        if not isinstance(record, dict):
            raise MalformedFile(file, None, f"record {place} is no JSON object")
        articles = _parse_paragraphs(record, file, place)
        if any(str(record.get(field, "")) != expected for field, expected in where.items()):
            continue
        for article in articles:
            if (article.title, article.sentences) not in seen:
                seen.add((article.title, article.sentences))
                yield article


def _parse_paragraphs(record: dict[str, Any], file: Path, place: int) -> list[Article]:
    context = record.get("context")
    if not isinstance(context, list):
        raise MalformedFile(file, None, f"record {place} has no list 'context'")
    articles = []
    entities = _parse_entities(record)
    for paragraph in context:
        match paragraph:
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
                raise MalformedFile(file, None, f"record {place} has a paragraph that is no [title, [sentence, ...]]")
    return articles


def _parse_entities(record: dict[str, Any]) -> dict[str, str]:
    """2WikiMultihopQA names the entities of the gold paragraphs, in the order in which their titles first appear."""
    ids, facts = record.get("entity_ids"), record.get("supporting_facts")
    if not isinstance(ids, str) or not isinstance(facts, list):
        return {}
    titles = dict.fromkeys(fact[0] for fact in facts if isinstance(fact, list) and fact and isinstance(fact[0], str))
    parts = ids.split("_")
    return dict(zip(titles, parts, strict=True)) if len(parts) == len(titles) else {}
