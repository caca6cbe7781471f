"""The marks in a response that name the steps it rests on."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from worlds.importers.jsonl import split

# Models join several steps in one mark, and use brackets of other kinds.
_MARK = re.compile(r"\s*[\[(【]\s*steps?\s*(\d(?:[\d\s,;&–-]|and|to|steps?)*)[\])】]", re.IGNORECASE)
_NUMBERS = re.compile(r"(\d{1,9})(?:\s*(?:-|–|to)\s*(\d{1,9}))?", re.IGNORECASE)
_LONGEST_RANGE = 100


@dataclass(frozen=True, slots=True)
class Linked:
    """A response whose marks all name a step that observed something."""

    text: str
    links: tuple[dict[str, Any], ...]
    """Of each mark the step and its place in the text."""
    dropped: int
    """Marks that named no such step."""
    unlinked: int
    """Sentences that rest on no step."""


def _named(mark: str) -> Iterator[int]:
    """The steps that a mark names, those of a range too."""
    for first, last in _NUMBERS.findall(mark):
        end = int(last or first)
        yield from range(int(first), end + 1) if 0 <= end - int(first) < _LONGEST_RANGE else (int(first), end)


def linked(text: str, steps: Collection[int]) -> Linked:
    """The response with the marks that name one of these steps; the others are taken out and counted."""
    dropped = 0

    def checked(found: re.Match[str]) -> str:
        nonlocal dropped
        named = list(dict.fromkeys(_named(found[1])))
        known = [number for number in named if number in steps]
        dropped += len(named) - len(known)
        return "".join(f" [step {number}]" for number in known)

    plain = _MARK.sub(checked, text).strip()
    links = tuple(
        {"step": int(found[1]), "start": found.start(), "end": found.end()}
        for found in re.finditer(r"\[step (\d+)\]", plain)
    )
    # A mark behind a full stop belongs to the sentence before it.
    moved = re.sub(r"([.!?])((?: \[step \d+\])+)", r"\2\1", plain)
    unlinked = sum("[step " not in sentence for sentence in split(moved))
    return Linked(plain, links, dropped, unlinked)
