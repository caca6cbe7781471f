"""A world's web pages, in an index like that of the articles, by address."""

from pathlib import Path

from worlds.embedded.text import EmbeddedText, TextWriter
from worlds.source import Article, NotFound, WebHit, WebPage


class WebWriter:
    """Writes a new index of pages; what it added can be read once it is closed."""

    def __init__(self, folder: Path) -> None:
        self._writer = TextWriter(folder)

    def add(self, page: WebPage) -> None:
        """Add one page."""
        # What an article is about is looked up as it stands, and so is the address of a page.
        self._writer.add(Article(page.title, page.sentences, page.address, date=page.date))

    def close(self) -> None:
        """Finish the index on disk."""
        self._writer.close()


class EmbeddedWeb:
    """The web pages of a world folder; safe to share between threads."""

    def __init__(self, folder: Path) -> None:
        self._pages = EmbeddedText(folder)

    def __len__(self) -> int:
        return len(self._pages)

    def search(self, query: str, k: int) -> list[WebHit]:
        """The k best pages: those with every word first, then, marked relaxed, those with the most telling ones."""
        hits = []
        for hit in self._pages.search(query, k):
            address = hit.entity or ""
            hits.append(WebHit(hit.title, hit.snippet, address, hit.score, hit.relaxed, self.fetch(address).date))
        return hits

    def fetch(self, address: str) -> WebPage:
        """The page at that address; NotFound when there is none."""
        for page in self._pages.find_by_entity(address.strip()):
            return WebPage(address.strip(), page.title, page.sentences, page.date)
        raise NotFound(f"There is no page at {address!r}; take the address from a search.")
