"""The pages of the test wiki: real articles with their entity ids, and a few pages written for it."""

import json
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

WRITTEN = Path(__file__).parent / "pages"
ITEMS = {
    "Northbridge": "Q9001",
    "Mercury (planet)": "Q308",
    "Mercury (element)": "Q925",
    "Mercury (mythology)": "Q1150",
    "Ada Reed": "Q9002",
}
"""The ids of the pages written for the test wiki."""
DISAMBIGUATION = ("Mercury", "Reed (disambiguation)")
REDIRECTS = {"North Bridge": "Northbridge", "Hydrargyrum": "Mercury (element)", "A. Reed": "Ada Reed"}
_DUMP = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">\n'
    "<siteinfo><sitename>Test Wiki</sitename><dbname>wiki</dbname></siteinfo>\n{}</mediawiki>\n"
)
_PAGE = (
    "<page><title>{title}</title><ns>{ns}</ns><id>{id}</id><revision><id>{id}</id>"
    "<timestamp>2024-05-01T00:00:00Z</timestamp><contributor><username>Import</username><id>1</id></contributor>"
    "<model>wikitext</model><format>text/x-wiki</format>"
    '<text bytes="{size}" xml:space="preserve">{text}</text></revision></page>\n'
)


@dataclass(frozen=True, slots=True)
class WikiPage:
    """A page in wikitext; `item` is its entity id."""

    title: str
    text: str
    item: str | None = None


def written_pages() -> list[WikiPage]:
    """Pages with every element: infobox, tables, references, templates, redirects, disambiguation."""
    pages = [
        WikiPage(file.stem.replace("~", ":"), file.read_text(encoding="utf-8"), ITEMS.get(file.stem))
        for file in sorted(WRITTEN.glob("*.wiki"))
    ]
    return pages + [WikiPage(title, f"#REDIRECT [[{to}]]") for title, to in REDIRECTS.items()]


def real_pages(shared: Path, count: int = 240) -> list[WikiPage]:
    """The articles of the first questions of the real hybrid world, then others, up to the given number."""
    world = shared / "world_2wiki"
    lines = (world / "paragraphs.jsonl").read_text(encoding="utf-8").splitlines()
    articles = {article["title"]: article for article in map(json.loads, lines)}
    questions = json.loads((world / "questions_300.json").read_text(encoding="utf-8"))
    needed = dict.fromkeys(title for question in questions for title in question["gold_titles"] if title in articles)
    about_items = dict.fromkeys(title for title, article in articles.items() if article["wikidata_id"])
    chosen = [title for title in {**needed, **about_items} if _possible(title)][:count]
    return [
        WikiPage(title, _wikitext(articles[title]["sentences"]), articles[title]["wikidata_id"]) for title in chosen
    ]


def dump(pages: list[WikiPage]) -> str:
    """The pages in MediaWiki's export format."""
    return _DUMP.format(
        "".join(
            _PAGE.format(
                title=escape(page.title),
                ns=10 if page.title.startswith("Template:") else 0,
                id=100 + place,
                size=len(page.text.encode()),
                text=escape(page.text),
            )
            for place, page in enumerate(pages)
        )
    )


def _possible(title: str) -> bool:
    """Whether MediaWiki accepts the title unchanged."""
    return title[:1] == title[:1].upper() and not set(title) & set("#<>[]|{}_") and not title.startswith(".")


def _wikitext(sentences: list[str]) -> str:
    text = " ".join(sentences).strip()
    for markup in ("''", "[[", "{{", "<", "~~"):
        text = text.replace(markup, "".join(f"&#{ord(sign)};" for sign in markup))
    return text.lstrip("*#:; ")
