"""What an instance states beside its questions, kept in the world's folder to be compared with what is derived."""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from worlds.folder import WorldError
from worlds.importers.files import UNREADABLE
from worlds.phantomwiki.articles import Stated

STATED = "stated.json.gz"


@dataclass(frozen=True, slots=True)
class StatedFacts:
    """The facts under each article; the bare attributes with how often; the cells of relations where they are given."""

    articles: Mapping[str, list[Stated]]
    attributes: Mapping[str, int]
    relations: Mapping[str, Mapping[str, list[str]]]

    def save(self, file: Path) -> None:
        """Write everything to one file; the same facts give the same bytes."""
        told = {"articles": self.articles, "attributes": self.attributes, "relations": self.relations}
        text = json.dumps(told, ensure_ascii=False)
        file.write_bytes(gzip.compress(text.encode(), mtime=0))

    @classmethod
    def load(cls, file: Path) -> "StatedFacts":
        """The facts of a file; WorldError when there is none or it is damaged."""
        try:
            told: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
            articles = {title: [Stated(*each) for each in facts] for title, facts in told["articles"].items()}
            return cls(articles, told["attributes"], told["relations"])
        except (*UNREADABLE, ValueError, TypeError, KeyError, AttributeError) as broken:
            raise WorldError(f"The facts {file} cannot be read ({broken}); import the world again.") from broken
