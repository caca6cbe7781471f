"""A page of the documentation as something to do: its blocks, pictures, and the names and keys that it tells to use."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

DOCS = Path(__file__).resolve().parents[3] / "docs"
PROGRAMS = {"showhow", "make", "export", "python"}
"""What the lines of a block of commands begin with; `.venv/bin/showhow` counts as showhow."""
_KEY = re.compile(r"\b(?!Ctrl\+C\b)(?:(?:Ctrl|Alt|Shift)\+)+\w+")
"""Keys of pages; Ctrl+C is one of shells."""
_FILE = re.compile(r"[\w/-]+\.(?:py|toml|json|jsonl|csv|md|ttl|txt)")
_MARK = re.compile(r"<!-- not run: (.+?) -->\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Commands:
    """Lines for a shell."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class File:
    """The text of a file, or a further part of it, which the sentence before names."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, relative to docs/."""

    path: str


@dataclass(frozen=True, slots=True)
class NotRun:
    """A block that a comment marks, with the reason why it is not run."""

    reason: str


Item = Commands | File | Picture | NotRun


@dataclass(slots=True)
class Section:
    """What is below one heading: items in their order; names in italics, and keys."""

    heading: str
    items: list[Item] = field(default_factory=list)
    names: set[str] = field(default_factory=set)


def read_page(path: str) -> list[Section]:
    """The sections of a page, whose path is relative to docs/; raises ValueError for a block that is none of these."""
    return parse_page(path, read_text(path))


def read_text(path: str) -> str:
    """The text of a page."""
    return (DOCS / path).read_text(encoding="utf-8")


def parse_page(path: str, text: str) -> list[Section]:
    """The sections of a page with that text."""
    sections = [Section("")]
    before: Token | None = None
    """The sentence or the comment before a block."""
    for previous, token in pairwise([Token("", "", 0), *MarkdownIt("commonmark").enable("table").parse(text)]):
        section = sections[-1]
        if token.type == "inline" and previous.type == "heading_open":
            sections.append(Section(token.content))
        elif token.type == "inline":
            before = token
            section.names |= {*_list_names(token), *_list_keys(token)}
            section.items += (Picture(_relate(path, source)) for source in _list_pictures(token))
        elif token.type == "html_block":
            before = token
        elif token.type in ("code_block", "fence"):
            section.items.append(_read_block(path, before, token.content))
    return sections


def _list_names(token: Token) -> Iterator[str]:
    children = token.children or []
    starts = [number for number, child in enumerate(children) if child.type == "em_open"]
    for start in starts:
        end = next(number for number in range(start, len(children)) if children[number].type == "em_close")
        yield "".join(child.content for child in children[start:end])


def _list_keys(token: Token) -> Iterator[str]:
    for child in token.children or []:
        if child.type == "text":
            yield from _KEY.findall(child.content)


def _list_pictures(token: Token) -> Iterator[str]:
    return (str(child.attrs["src"]) for child in token.children or [] if child.type == "image")


def _relate(page: str, source: str) -> str:
    return (DOCS / page).parent.joinpath(source).resolve().relative_to(DOCS).as_posix()


def _read_block(path: str, before: Token | None, text: str) -> Item:
    if before is not None and before.type == "html_block" and (mark := _MARK.fullmatch(before.content)):
        return NotRun(" ".join(mark[1].split()))
    lines = tuple(line for line in text.splitlines() if line.strip())
    if all(line.split()[0].removeprefix(".venv/bin/") in PROGRAMS for line in lines):
        return Commands(lines)
    files = [child.content for child in (before and before.children) or [] if child.type == "code_inline"]
    named = [name for name in files if _FILE.fullmatch(name)]
    if not named:
        raise ValueError(f"{path}: what is done with this block? No file before it is named, and no reason:\n{text}")
    return File(named[-1], text)
