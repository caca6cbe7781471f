"""The table of English ways to ask, read from english.toml."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

from tools.grammar.words import key_of

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Asking:
    """What a word leads to, by how the question begins: paths in the notation of the table."""

    name: str
    """The first form of the word."""
    to: tuple[str, ...]
    by_question: dict[str, tuple[str, ...]]

    def paths(self, asked: str | None) -> tuple[str, ...]:
        """The paths for a question that begins with where, when, why or who, or with none of them."""
        return self.by_question.get(asked or "", self.to)


@dataclass(frozen=True, slots=True)
class Than:
    """A comparison: the end of the order it wants, and the relations it compares when the question names none.

    `span` names two dates whose distance is compared; `counts` says that it may compare how many there are.
    """

    most: bool
    of: tuple[str, ...]
    span: tuple[str, ...]
    counts: bool


@dataclass(frozen=True, slots=True)
class English:
    """The whole table, by phrase."""

    names: dict[Key, tuple[str, ...]]
    words: dict[Key, Asking]
    thans: dict[Key, Than]


@cache
def english() -> English:
    """The table, read once."""
    table = tomllib.loads(resources.files("tools.grammar").joinpath("english.toml").read_text(encoding="utf-8"))
    words: dict[Key, Asking] = {}
    for entry in table["word"]:
        by_question = {asked: tuple(entry[asked]) for asked in ("where", "when", "why", "who") if asked in entry}
        words.update(dict.fromkeys(map(key_of, entry["ask"]), Asking(entry["ask"][0], tuple(entry["to"]), by_question)))
    thans: dict[Key, Than] = {}
    for entry in table["than"]:
        than = Than(
            entry["order"] == "most", tuple(entry.get("of", ())), tuple(entry.get("span", ())), "counts" in entry
        )
        thans.update(dict.fromkeys(map(key_of, entry["ask"]), than))
    return English({key_of(name): tuple(others) for name, others in table["names"].items()}, words, thans)
