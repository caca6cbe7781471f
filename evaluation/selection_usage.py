"""What would be chosen for the questions of a project: counted once for each way to choose, kept beside the library.

How often each demonstration of a library is selected over many questions.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from db.database import RowNotFound
from db.libraries import Demonstration, find_version
from db.projects import count_questions, find_project, list_question_texts
from evaluation.report_cache import Report, load_report, save_report
from fewshot_library.dpp import IntArray
from fewshot_library.library import LoadedLibrary
from fewshot_library.selection import SelectionConfig
from runs.services import Services

MAX_LISTED_UNUSED = 1000
"""Of the demonstrations that are never selected, this many are listed."""


@dataclass(frozen=True, slots=True)
class SelectionUsage:
    """The selections for a number of questions, counted."""

    questions: int
    counts: IntArray
    """Times that each demonstration was selected, in the order of the library."""

    @property
    def selected(self) -> list[int]:
        """The indexes of the selected demonstrations, the most frequent first, then in order."""
        order = np.argsort(-self.counts, kind="stable")
        return [int(place) for place in order[: np.count_nonzero(self.counts)]]

    @property
    def never_selected(self) -> list[int]:
        """The indexes of the demonstrations that were never selected."""
        return [int(place) for place in np.flatnonzero(self.counts == 0)]

    def to_json(self, demonstrations: Sequence[Demonstration]) -> dict[str, Any]:
        """The counts as JSON; of those never selected at most MAX_LISTED_UNUSED are listed."""
        never = self.never_selected
        return {
            "questions": self.questions,
            "demonstrations": len(demonstrations),
            "picks": int(self.counts.sum()),
            "used": [
                _demonstration_summary(demonstrations[place]) | {"times": int(self.counts[place])}
                for place in self.selected
            ],
            "never": len(never),
            "never_used": [_demonstration_summary(demonstrations[place]) for place in never[:MAX_LISTED_UNUSED]],
        }


def count_selections(
    library: LoadedLibrary,
    questions: Sequence[str],
    wish: SelectionConfig,
    *,
    leave_out_itself: bool = False,
    done: Callable[[int], None] = lambda _: None,
) -> SelectionUsage:
    """Select for each question and count; `done` is called with the number of questions done."""
    times = np.zeros(len(library.demonstrations), np.int64)
    chosen = library.select_each(questions, wish, leave_out_itself=leave_out_itself)
    for number, choice in enumerate(chosen, start=1):
        times[[pick.item for pick in choice.selection.picks]] += 1
        done(number)
    return SelectionUsage(len(questions), times)


def _demonstration_summary(demonstration: Demonstration) -> dict[str, Any]:
    return {"id": str(demonstration.trace_id), "question": demonstration.question}


@dataclass(frozen=True, slots=True)
class UsageRequest:
    """Which usage is meant."""

    library: str
    """NAME or NAME:NUMBER."""
    project: str
    selection_config: SelectionConfig
    leave_out_itself: bool


def load_usage(services: Services, request: UsageRequest) -> Report | None:
    """The report, if it was made before and the project has had no new question since."""
    return load_report(_usage_path(services, request))


def compute_usage(services: Services, request: UsageRequest, done: Callable[[int, int], None]) -> Report:
    """Choose for every question of the project, and keep the report; `done` hears how many of how many are done."""
    file = _usage_path(services, request)
    version, opened = services.open_library(request.library)
    with services.database.read() as session:
        texts = list_question_texts(session, _project_id(session, request.project))
    counted = count_selections(
        opened,
        texts,
        request.selection_config,
        leave_out_itself=request.leave_out_itself,
        done=lambda number: done(number, len(texts)),
    )
    named = {"library": version.name, "number": version.number, "project": request.project}
    ways = {
        name: getattr(request.selection_config, name) for name in ("k", "mode", "alpha", "gamma", "distance", "seed")
    }
    data = counted.to_json(opened.demonstrations)
    report = {**named, **ways, "leave_out_itself": request.leave_out_itself, **data}
    save_report(file, report)
    return report


def _project_id(session: Any, name: str) -> Any:
    project = find_project(session, name)
    if project is None:
        raise RowNotFound(f"there is no project {name!r}; `showhow questions import` makes one")
    return project.id


def _usage_path(services: Services, request: UsageRequest) -> Path:
    """Where the report is kept: another place for every version, way to choose, encoder and number of questions."""
    with services.database.read() as session:
        version = find_version(session, request.library)
        project = _project_id(session, request.project)
        questions = count_questions(session, project)
    way = asdict(request.selection_config) | {"left_out": sorted(request.selection_config.left_out)}
    key = [str(version.id), str(project), questions, services.settings.encoder, request.leave_out_itself, way]
    data = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
    return services.settings.home / "libraries" / version.name / f"{version.number}-usage" / f"{data[:24]}.json"
