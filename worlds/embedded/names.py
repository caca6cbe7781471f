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
"""Best first."""
_MAX_NAME_WORDS = 16


def _build_schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("key", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("words", tokenizer_name=ANALYZER_NAME)
    builder.add_text_field("entity", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("kind", stored=True, indexed=True)
    return builder.build()


class NameIndexWriter:
    """Writes a new index of names; what it added can be read once it is closed."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        with translate_write_errors(folder):
            index = tantivy.Index(_build_schema(), str(folder))
        index.register_tokenizer(ANALYZER_NAME, build_analyzer())
        self._writer = index.writer(32_000_000, 1)

    def add(self, name: str, entity: str, kind: str) -> None:
        """Add one name of an entity; kind is one of KINDS."""
        document = tantivy.Document()
        document.add_text("key", normalize_name(name))
        document.add_text("words", name)
        document.add_text("entity", entity)
        document.add_unsigned("kind", NAME_KINDS.index(kind))
        with translate_write_errors(self._folder):
            self._writer.add_document(document)

    def close(self) -> None:
        """Finish the index on disk."""
        with translate_write_errors(self._folder):
            self._writer.commit()
            self._writer.wait_merging_threads()


class NameIndex:
    """The names of a world folder; safe to share between threads."""

    def __init__(self, folder: Path) -> None:
        try:
            index = tantivy.Index.open(str(folder))
        except ValueError as broken:
            raise SourceUnavailable(
                f"The names in {folder} cannot be opened ({broken}); make the world again."
            ) from broken
        self._analyzer = build_analyzer()
        index.register_tokenizer(ANALYZER_NAME, self._analyzer)
        self._schema = index.schema
        self._searcher = index.searcher()

    def find(self, name: str, k: int) -> list[str]:
        """Ids of entities by name, best match first: whole names, then prefixes, then parts."""
        ids: dict[str, None] = dict.fromkeys(self._find_exact(name, k))
        words = self._analyzer.analyze(replace_surrogates(name))[:_MAX_NAME_WORDS]
        if len(ids) < k and words:
            normalized = normalize_name(name)
            places = self._run_query(self._containing_query(words), max(50, 4 * k))
            places.sort(key=lambda place: (not place[1].startswith(normalized), place[2], len(place[1])))
            ids |= dict.fromkeys(entity for entity, _, _ in places)
        return list(ids)[:k]

    def find_by_title(self, title: str) -> list[str]:
        """The ids of the entities whose article has that title, case aside."""
        all_words_query = Query.boolean_query(
            [
                (Occur.Must, self._exact_query(title)),
                (Occur.Must, Query.term_query(self._schema, "kind", NAME_KINDS.index("title"))),
            ]
        )
        return [entity for entity, _, _ in self._run_query(all_words_query, 5)]

    def has(self, name: str) -> bool:
        """Whether an entity has exactly that name, case aside."""
        return bool(self._run_query(self._exact_query(name), 1))

    def _find_exact(self, name: str, k: int) -> list[str]:
        places = self._run_query(self._exact_query(name), max(20, 2 * k))
        return [entity for entity, _, _ in sorted(places, key=lambda place: place[2])]

    def _exact_query(self, name: str) -> Query:
        return Query.term_query(self._schema, "key", normalize_name(name), "basic")

    def _containing_query(self, words: Sequence[str]) -> Query:
        *whole, last = words
        parts = [Query.term_query(self._schema, "words", word, "freq") for word in whole]
        begun = Query.regex_query(self._schema, "words", f"{last}.*")
        return Query.boolean_query([(Occur.Must, part) for part in [*parts, begun]])

    def _run_query(self, query: Query, limit: int) -> list[tuple[str, str, int]]:
        places = []
        for _, address in self._searcher.search(query, limit, count=False).hits:
            document = self._searcher.doc(address)
            places.append(
                (
                    str(document.get_first("entity")),
                    str(document.get_first("key")),
                    int(document.get_first("kind") or 0),
                )
            )
        return places
