"""What would be chosen for the questions of a project: counted once for each way to choose, kept beside the library."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from app.libraries import open_library
from app.reports import Report, keep_report, kept_report
from app.resources import database, settings
from db.database import Missing
from db.libraries import version
from db.projects import project_by_name, question_count, question_texts
from fewshot_library.selection import Wish
from fewshot_library.usage import usage


@dataclass(frozen=True, slots=True)
class Asked:
    """Which usage is meant."""

    library: str
    """NAME or NAME:NUMBER."""
    project: str
    wish: Wish
    leave_out_itself: bool


def kept_usage(asked: Asked) -> Report | None:
    """The report, if it was made before and the project has had no new question since."""
    return kept_report(_file(asked))


def make_usage(asked: Asked, done: Callable[[int, int], None]) -> Report:
    """Choose for every question of the project, and keep the report; `done` hears how many of how many are done."""
    file = _file(asked)
    found, opened = open_library(asked.library)
    with database().read() as session:
        texts = question_texts(session, _project(session, asked.project))
    counted = usage(
        opened,
        texts,
        asked.wish,
        leave_out_itself=asked.leave_out_itself,
        done=lambda number: done(number, len(texts)),
    )
    named = {"library": found.name, "number": found.number, "project": asked.project}
    ways = {name: getattr(asked.wish, name) for name in ("k", "mode", "alpha", "gamma", "distance", "seed")}
    told = counted.value(opened.demonstrations)
    report = {**named, **ways, "leave_out_itself": asked.leave_out_itself, **told}
    keep_report(file, report)
    return report


def _project(session: Any, name: str) -> Any:
    project = project_by_name(session, name)
    if project is None:
        raise Missing(f"there is no project {name!r}; `showhow questions import` makes one")
    return project.id


def _file(asked: Asked) -> Path:
    """Where the report is kept: another place for every version, way to choose, encoder and number of questions."""
    with database().read() as session:
        found = version(session, asked.library)
        project = _project(session, asked.project)
        questions = question_count(session, project)
    way = asdict(asked.wish) | {"left_out": sorted(asked.wish.left_out)}
    key = [str(found.id), str(project), questions, settings().encoder, asked.leave_out_itself, way]
    told = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
    return settings().home / "libraries" / found.name / f"{found.number}-usage" / f"{told[:24]}.json"
