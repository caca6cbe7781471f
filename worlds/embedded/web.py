"""A world's web pages, in an index like that of the articles, by address."""

from pathlib import Path

from worlds.embedded.text import EmbeddedText, TextWriter
from worlds.source import Article, NotFound, WebHit, WebPage


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
        hits = []
        for hit in self._pages.search(query, k):
            address = hit.entity or ""
            hits.append(WebHit(hit.title, hit.snippet, address, hit.score, hit.relaxed, self.fetch(address).date))
        return hits

    def fetch(self, address: str, *, typed: bool = False) -> WebPage:  # noqa: ARG002 - every page of the folder is read
        """The page at this address; NotFound if there is none."""
        for page in self._pages.find_by_entity(address.strip()):
            return WebPage(address.strip(), page.title, page.sentences, page.date)
        raise NotFound(f"There is no page at {address!r}; use an address from a search result.")
