"""A world's articles in a Tantivy index, each stored with its sentences, and its web pages in one like it."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import tantivy
from tantivy import Occur, Query

from showhow.worlds.source import Article, NotFound, SearchHit, SourceUnavailable, WebHit, WebPage
from showhow.worlds.text_normalization import (
    ANALYZER_NAME,
    STOP_WORDS,
    build_analyzer,
    normalize_name,
    replace_surrogates,
    translate_write_errors,
)

_MAX_QUERY_WORDS = 64
"""Maximum words of a query that are used, so that a pasted page still gets a result."""
_MAX_NAME_WORDS = 8
_MAX_SNIPPET_LENGTH = 300


def _build_schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("title", stored=True, tokenizer_name=ANALYZER_NAME)
    builder.add_text_field("text", tokenizer_name=ANALYZER_NAME)
    builder.add_text_field("key", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("spelled", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("entity", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_bytes_field("sentences", stored=True)
    builder.add_bytes_field("sections", stored=True)
    builder.add_bytes_field("paragraphs", stored=True)
    builder.add_text_field("date", stored=True, tokenizer_name="raw", index_option="basic")
    return builder.build()


class IndexWriter:
    """Writes a new index, which can be read after close()."""

    def __init__(self, folder: Path, schema: tantivy.Schema, memory_bytes: int) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._analyzer = build_analyzer()
        with translate_write_errors(folder):
            index = tantivy.Index(schema, str(folder))
        index.register_tokenizer(ANALYZER_NAME, self._analyzer)
        # One thread keeps the order of the documents, so that the same files always give the same ranking.
        self._writer = index.writer(memory_bytes, 1)

    def add_document(self, document: tantivy.Document) -> None:
        """Add one document."""
        with translate_write_errors(self._folder):
            self._writer.add_document(document)

    def close(self) -> None:
        """Commit the index to disk."""
        with translate_write_errors(self._folder):
            self._writer.commit()
            self._writer.wait_merging_threads()


class IndexReader:
    """An index of a world folder; safe to share between threads. SourceUnavailable if it cannot be opened."""

    def __init__(self, folder: Path, content: str) -> None:
        try:
            index = tantivy.Index.open(str(folder))
        except ValueError as error:
            raise SourceUnavailable(
                f"The {content} in {folder} cannot be opened ({error}); import the world again."
            ) from error
        self._analyzer = build_analyzer()
        index.register_tokenizer(ANALYZER_NAME, self._analyzer)
        self._schema = index.schema
        self._searcher = index.searcher()


class TextWriter(IndexWriter):
    """Writes a new index of articles."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, _build_schema(), 64_000_000)

    def add(self, article: Article) -> None:
        """Add one article; its title is also indexed as a whole name, to match names inside questions."""
        document = tantivy.Document()
        document.add_text("title", article.title)
        document.add_text("text", article.text)
        document.add_text("key", normalize_name(article.title))
        for spelling in {
            " ".join(self._analyzer.analyze(name)) for name in (article.title, strip_parenthesis(article.title))
        }:
            document.add_text("spelled", spelling)
        if article.entity is not None:
            document.add_text("entity", article.entity)
        document.add_bytes("sentences", json.dumps(article.sentences, ensure_ascii=False).encode())
        if article.sections:
            document.add_bytes("sections", json.dumps(article.sections, ensure_ascii=False).encode())
        if article.paragraphs:
            document.add_bytes("paragraphs", json.dumps(article.paragraphs).encode())
        if article.date is not None:
            document.add_text("date", article.date)
        self.add_document(document)


def strip_parenthesis(title: str) -> str:
    """The title without the final parenthesis that disambiguates it."""
    before, opening, inside = title.rstrip().removesuffix(")").rpartition("(")
    is_final = opening and title.rstrip().endswith(")") and ")" not in inside
    return (before.rstrip() if is_final else title) or title


class EmbeddedText(IndexReader):
    """The articles of a world folder; safe to share between threads."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "articles")

    def __len__(self) -> int:
        return self._searcher.num_docs

    def search(self, query: str, k: int) -> list[SearchHit]:
        """The k best articles: first those with every word, then (`relaxed`) those with the most content words."""
        return [hit for hit, _ in self.search_with_articles(query, k)]

    def search_with_articles(self, query: str, k: int) -> list[tuple[SearchHit, Article]]:
        """The results of search, each with its article."""
        query = replace_surrogates(query)
        words = self._unique_words(query)[:_MAX_QUERY_WORDS]
        if not words or k < 1:
            return []
        content_words = [word for word in words if word not in STOP_WORDS] or words
        relevance = self._relevance_query(query, content_words)
        stages = [
            (self._all_words_query(words, relevance), False),
            (self._all_words_query(content_words, relevance), True),
            (relevance, True),
        ]
        hits: dict[tuple[int, int], tuple[SearchHit, Article]] = {}
        for stage, relaxed in stages:
            for score, address in self._searcher.search(stage, k, count=False).hits:
                position = (address.segment_ord, address.doc)
                if position not in hits and len(hits) < k:
                    article = self._load_article(address)
                    snippet = self._select_snippet(article, frozenset(content_words))
                    hit = SearchHit(article.title, snippet, article.entity, round(score, 3), relaxed)
                    hits[position] = hit, article
            if len(hits) == k:
                break
        return list(hits.values())

    def article(self, title: str) -> Article:
        """The article with exactly this title, else the first whose title differs in case only.

        NotFound names the nearest titles.
        """
        articles = [self._load_article(address) for address in self._find_addresses("key", normalize_name(title), 20)]
        for article in articles:
            if article.title == title:
                return article
        if articles:
            return articles[0]
        nearest = list(dict.fromkeys(hit.title for hit in self.search(title, 3)))
        advice = f"; the nearest are {', '.join(repr(name) for name in nearest)}" if nearest else ""
        raise NotFound(f"There is no article titled {title!r}{advice}.")

    def list_articles(self, k: int) -> list[Article]:
        """The first k articles of the index."""
        matches = self._searcher.search(Query.all_query(), k, count=False).hits
        return [self._load_article(address) for _, address in matches]

    def list_titles(self, k: int) -> list[str]:
        """The titles of the first k articles of the index."""
        return [article.title for article in self.list_articles(k)]

    def has_title(self, title: str) -> bool:
        """Whether an article has this title, ignoring case."""
        return bool(self._find_addresses("key", normalize_name(title), 1))

    def find_by_entity(self, entity: str) -> list[Article]:
        """The articles about the entity with this id."""
        return [self._load_article(address) for address in self._find_addresses("entity", entity, 5)]

    def _find_addresses(self, field: str, value: str, limit: int) -> list[tantivy.DocAddress]:
        query = Query.term_query(self._schema, field, value, "basic")
        addresses = [address for _, address in self._searcher.search(query, limit, count=False).hits]
        return sorted(addresses, key=lambda address: (address.segment_ord, address.doc))

    def _load_article(self, address: tantivy.DocAddress) -> Article:
        document = self._searcher.doc(address)
        sentences = json.loads(bytes(document.get_first("sentences") or b"[]"))
        sections = json.loads(bytes(document.get_first("sections") or b"[]"))
        paragraphs = json.loads(bytes(document.get_first("paragraphs") or b"[]"))
        return Article(
            str(document.get_first("title")),
            tuple(sentences),
            document.get_first("entity"),
            tuple((heading, sentence_index) for heading, sentence_index in sections),
            document.get_first("date"),
            paragraphs=tuple(paragraphs),
        )

    def _select_snippet(self, article: Article, content_words: frozenset[str]) -> str:
        best = max(
            article.sentences, key=lambda s: len(content_words.intersection(self._analyzer.analyze(s))), default=""
        )
        return best if len(best) <= _MAX_SNIPPET_LENGTH else best[: _MAX_SNIPPET_LENGTH - 1].rstrip() + "…"

    def _unique_words(self, text: str) -> list[str]:
        return list(dict.fromkeys(self._analyzer.analyze(text)))

    def _all_words_query(self, words: Sequence[str], relevance: Query) -> Query:
        word_queries = [
            Query.boolean_query(
                [(Occur.Should, self._term_query("title", word)), (Occur.Should, self._term_query("text", word))]
            )
            for word in words
        ]
        return Query.boolean_query(
            [(Occur.Must, Query.const_score_query(query, 0.0)) for query in word_queries] + [(Occur.Should, relevance)]
        )

    def _relevance_query(self, query: str, content_words: Sequence[str]) -> Query:
        parts = []
        for word in content_words:
            parts.append(Query.boost_query(self._term_query("title", word), 2.0))
            parts.append(self._term_query("text", word))
        parts.extend(self._title_queries(query))
        return Query.boolean_query([(Occur.Should, part) for part in parts])

    def _title_queries(self, query: str) -> Iterator[Query]:
        """A query for each run of words that may be a whole title; longer runs score higher.

        Runs without a capital or a digit are skipped, unless they are the whole query.
        """
        words = re.findall(r"\w+", query)[:_MAX_QUERY_WORDS]
        for start in range(len(words)):
            for end in range(start + 1, min(start + _MAX_NAME_WORDS, len(words)) + 1):
                run = words[start:end]
                if len(run) < len(words) and not any(word[0].isupper() or word[0].isdigit() for word in run):
                    continue
                if run[0].lower() in STOP_WORDS and len(run) == 1:
                    continue
                spelling = " ".join(self._analyzer.analyze(" ".join(run)))
                if spelling:
                    name = self._term_query("spelled", spelling)
                    yield Query.const_score_query(name, 10.0 + 5.0 * (end - start))

    def _term_query(self, field: str, word: str) -> Query:
        return Query.term_query(self._schema, field, word, "basic" if field == "spelled" else "freq")


class WebWriter:
    """Writes a new index of pages, which can be read after close()."""

    def __init__(self, folder: Path) -> None:
        self._writer = TextWriter(folder)

    def add(self, page: WebPage) -> None:
        """Add one page."""
        # The address is stored as the entity, a field that is matched exactly.
        self._writer.add(Article(page.title, page.sentences, page.address, date=page.date))

    def close(self) -> None:
        """Commit the index to disk."""
        self._writer.close()


class EmbeddedWeb:
    """The web pages of a world folder; safe to share between threads."""

    def __init__(self, folder: Path) -> None:
        self._pages = EmbeddedText(folder)

    def __len__(self) -> int:
        return len(self._pages)

    def search(self, query: str, k: int) -> list[WebHit]:
        """The k best pages: first those with every word, then (`relaxed`) those with the most content words."""
        return [
            WebHit(hit.title, hit.snippet, hit.entity or "", hit.score, hit.relaxed, page.date)
            for hit, page in self._pages.search_with_articles(query, k)
        ]

    def fetch(self, address: str, *, typed: bool = False) -> WebPage:  # noqa: ARG002 - every page of the folder is read
        """The page at this address; NotFound if there is none."""
        for page in self._pages.find_by_entity(address.strip()):
            return WebPage(address.strip(), page.title, page.sentences, page.date)
        raise NotFound(f"There is no page at {address!r}; use an address from a search result.")
