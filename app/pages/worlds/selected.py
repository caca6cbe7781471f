"""The selected world: contents of its folder, cached per build."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from fiction.generator.build import PAGES_FILE
from fiction.generator.pages import load_marks_by_address
from fiction.generator.world_files import UNIVERSE_FILE
from fiction.questions.question_file import QUESTIONS_FILE, QuestionFile
from fiction.universe.universe import Universe
from runs.services import Services
from worlds.live.description import LIVE_KIND
from worlds.source import World


@dataclass(frozen=True, slots=True)
class SelectedWorld:
    """A world with the contents of its world.toml; missing files are None."""

    services: Services
    name: str
    about: dict[str, Any]

    @property
    def folder(self) -> Path:
        """Folder of the world."""
        return self.services.settings.worlds_folder / self.name

    @property
    def stamp(self) -> str:
        """Cache key that changes with every build."""
        return f"{self.about.get('hash')} {self.about.get('built')}"

    @property
    def is_live(self) -> bool:
        """Whether its sources are external servers."""
        return self.about.get("kind") == LIVE_KIND

    def open(self) -> World:
        """Open its sources."""
        return self.services.open_world(self.name)

    def disk_size(self) -> int:
        """Size on disk in bytes."""
        return _disk_size(self.folder, self.stamp)

    def questions(self) -> QuestionFile | None:
        """Its generated questions."""
        return _load_questions(self.folder / QUESTIONS_FILE, self.stamp)

    def has_universe(self) -> bool:
        """Whether it has a universe, the record of all true facts."""
        return (self.folder / UNIVERSE_FILE).is_file()

    def universe(self) -> Universe | None:
        """Its universe."""
        return _load_universe(self.folder / UNIVERSE_FILE, self.stamp)

    def page_errors(self) -> dict[str, list[dict[str, Any]]] | None:
        """False statements of its web pages by URL; None if there is no record."""
        return _load_page_errors(self.folder / PAGES_FILE, self.stamp)


@lru_cache(maxsize=256)
def _disk_size(folder: Path, _stamp: str) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@lru_cache(maxsize=8)
def _load_questions(file: Path, _stamp: str) -> QuestionFile | None:
    return QuestionFile(file) if file.is_file() else None


@lru_cache(maxsize=2)
def _load_page_errors(file: Path, _stamp: str) -> dict[str, list[dict[str, Any]]] | None:
    return load_marks_by_address(file) if file.is_file() else None


# A universe of a million people takes some hundred megabytes.
@lru_cache(maxsize=2)
def _load_universe(file: Path, _stamp: str) -> Universe | None:
    return Universe.load(file) if file.is_file() else None
