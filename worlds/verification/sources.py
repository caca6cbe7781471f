"""Whether a generated world is sound, and its articles and web pages say what its universe tells them."""

import json
from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from worlds.folder import TEXT, WEB, WorldError
from worlds.generator.build import PAGES
from worlds.generator.items import Items
from worlds.generator.pages import MarkedPage, pages
from worlds.generator.prose import articles
from worlds.generator.split import parse_split, tell
from worlds.importers.files import json_objects
from worlds.source import Article, NotFound
from worlds.text import EmbeddedText
from worlds.universe.constraints import violations
from worlds.universe.options import Options
from worlds.universe.universe import FACTS, Told, Universe
from worlds.universe.universe import TEXT as BY_TEXT
from worlds.verification.check import Check
from worlds.web import EmbeddedWeb


def options_of(about: dict[str, Any]) -> Options:
    """The options with which a world was generated; WorldError when its world.toml does not tell them."""
    names = [each.name for each in fields(Options)]
    missing = [name for name in names if name not in about]
    if missing:
        raise WorldError(f"Its world.toml does not tell {missing[0]}; generate the world again with --replace.")
    return Options(**{name: about[name] for name in names})


def check_constraints(universe: Universe, options: Options) -> Check:
    """Everybody's life and family, and what the options ask for."""
    check = Check("people", checked=len(universe))
    for sentence in violations(universe, options):
        check.differs("constraints", sentence, "that it holds")
    return check


def check_split(universe: Universe, told: Told, options: Options) -> Check:
    """Which sources tell each fact and friendship."""
    check = Check("masks of facts")
    anew = tell(universe, parse_split(options.split, options.split_by), options.seed)
    kinds = [(fact, told.masks[fact], anew.masks[fact]) for fact in FACTS]
    for kind, stated, derived in [*kinds, ("friend", told.friends, anew.friends)]:
        if stated.shape != derived.shape:
            raise WorldError(f"The split of {kind} is another universe's; generate the world again with --replace.")
        check.checked += len(stated)
        for place in np.flatnonzero(stated != derived).tolist():
            check.differs(f"sources of {kind} {place}", str(stated[place]), str(derived[place]))
    return check


def check_articles(folder: Path, universe: Universe, told: Told, options: Options) -> Check:
    """Every sentence of every article."""
    check = Check("sentences of articles")
    text = EmbeddedText(folder / TEXT)
    known = universe.told_by(told, BY_TEXT)
    count = 0
    for article in articles(known, Items(known), options):
        count += 1
        _compare_article(check, text, article)
    check.require("number of articles", len(text), count)
    return check


def _compare_article(check: Check, text: EmbeddedText, article: Article) -> None:
    found = _article(text, article)
    check.compare_each(article.title, found.sentences, article.sentences)
    # The same sentences under other headings, in another order or about somebody else are another article.
    if sorted(found.sentences) == sorted(article.sentences) and found != article:
        check.differs(article.title, str(found), str(article))


def _article(text: EmbeddedText, wanted: Article) -> Article:
    try:
        return text.article(wanted.title)
    except NotFound:
        return Article(wanted.title, ())


def check_pages(folder: Path, universe: Universe, told: Told, options: Options) -> Check:
    """Every sentence of every web page, and every mark of what is wrong there."""
    check = Check("sentences of web pages")
    made = pages(universe, told, options)
    if (first := next(made, None)) is None and not (folder / WEB).is_dir():
        return check
    web = EmbeddedWeb(folder / WEB)
    rows = []
    for marked in chain([first] if first else [], made):
        check.compare_each(marked.page.address, _said(web, marked), marked.page.sentences)
        rows.append(_in_order(marked.to_row(universe)))
    check.require("number of pages", len(web), len(rows))
    check.compare_each("marks", (_in_order(row) for _, row in json_objects(folder / PAGES)), rows)
    return check


def _said(web: EmbeddedWeb, marked: MarkedPage) -> tuple[str, ...]:
    try:
        return web.fetch(marked.page.address).sentences
    except NotFound:
        return ()


def _in_order(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, sort_keys=True)
