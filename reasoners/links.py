"""The marks in a response that name the steps it rests on."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from worlds.importers.jsonl import split

_MARK = re.compile(r"\s*\[steps?\s+([\d,\sand]+?)\]", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")


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


def linked(text: str, steps: Collection[int]) -> Linked:
    """The response with the marks that name one of these steps; the others are taken out and counted."""
    dropped = 0

    def checked(found: re.Match[str]) -> str:
        nonlocal dropped
        named = list(dict.fromkeys(int(number) for number in _NUMBER.findall(found[1])))
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
