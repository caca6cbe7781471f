"""Tantivy index of entity names, so that finding an entity by name never scans the graph."""

from collections.abc import Sequence
from pathlib import Path

import tantivy
from tantivy import Occur, Query

from worlds.source import SourceUnavailable
from worlds.text_normalization import (
    ANALYZER_NAME,
    build_analyzer,
    normalize_name,
    replace_surrogates,
    translate_write_errors,
)

NAME_KINDS = ("label", "title", "alias")
"""Kinds of names, best match first."""
_MAX_NAME_WORDS = 16


def _build_schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("key", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("words", tokenizer_name=ANALYZER_NAME)
    builder.add_text_field("entity", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("kind", stored=True, indexed=True)
    return builder.build()


class NameIndexWriter:
    """Writes a new index of names, which can be read after close()."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        with translate_write_errors(folder):
            index = tantivy.Index(_build_schema(), str(folder))
        index.register_tokenizer(ANALYZER_NAME, build_analyzer())
        self._writer = index.writer(32_000_000, 1)

    def add(self, name: str, entity: str, kind: str) -> None:
        """Add one name of an entity; kind is one of NAME_KINDS."""
        document = tantivy.Document()
        document.add_text("key", normalize_name(name))
        document.add_text("words", name)
        document.add_text("entity", entity)
        document.add_unsigned("kind", NAME_KINDS.index(kind))
        with translate_write_errors(self._folder):
            self._writer.add_document(document)

    def close(self) -> None:
        """Commit the index to disk."""
        with translate_write_errors(self._folder):
            self._writer.commit()
            self._writer.wait_merging_threads()


class NameIndex:
    """The names of a world folder; safe to share between threads."""

    def __init__(self, folder: Path) -> None:
        try:
            index = tantivy.Index.open(str(folder))
        except ValueError as error:
            raise SourceUnavailable(
                f"The names in {folder} cannot be opened ({error}); build the world again."
            ) from error
        self._analyzer = build_analyzer()
        index.register_tokenizer(ANALYZER_NAME, self._analyzer)
        self._schema = index.schema
        self._searcher = index.searcher()

    def find(self, name: str, k: int) -> list[str]:
        """Ids of entities by name, best match first: whole names, then prefixes, then names that contain the words."""
        ids: dict[str, None] = dict.fromkeys(self._find_exact(name, k))
        words = self._analyzer.analyze(replace_surrogates(name))[:_MAX_NAME_WORDS]
        if len(ids) < k and words:
            normalized = normalize_name(name)
            matches = self._run_query(self._containing_query(words), max(50, 4 * k))
            matches.sort(key=lambda match: (not match[1].startswith(normalized), match[2], len(match[1])))
            ids |= dict.fromkeys(entity for entity, _, _ in matches)
        return list(ids)[:k]

    def find_by_title(self, title: str) -> list[str]:
        """The ids of the entities whose article has this title, ignoring case."""
        title_query = Query.boolean_query(
            [
                (Occur.Must, self._exact_query(title)),
                (Occur.Must, Query.term_query(self._schema, "kind", NAME_KINDS.index("title"))),
            ]
        )
        return [entity for entity, _, _ in self._run_query(title_query, 5)]

    def has(self, name: str) -> bool:
        """Whether an entity has exactly this name, ignoring case."""
        return bool(self._run_query(self._exact_query(name), 1))

    def _find_exact(self, name: str, k: int) -> list[str]:
        matches = self._run_query(self._exact_query(name), max(20, 2 * k))
        return [entity for entity, _, _ in sorted(matches, key=lambda match: match[2])]

    def _exact_query(self, name: str) -> Query:
        return Query.term_query(self._schema, "key", normalize_name(name), "basic")

    def _containing_query(self, words: Sequence[str]) -> Query:
        *whole_words, prefix = words
        word_queries = [Query.term_query(self._schema, "words", word, "freq") for word in whole_words]
        prefix_query = Query.regex_query(self._schema, "words", f"{prefix}.*")
        return Query.boolean_query([(Occur.Must, query) for query in [*word_queries, prefix_query]])

    def _run_query(self, query: Query, limit: int) -> list[tuple[str, str, int]]:
        matches = []
        for _, address in self._searcher.search(query, limit, count=False).hits:
            document = self._searcher.doc(address)
            matches.append(
                (
                    str(document.get_first("entity")),
                    str(document.get_first("key")),
                    int(document.get_first("kind") or 0),
                )
            )
        return matches
