"""Selection usage: how often each demonstration of a library is selected for the questions of a project.

Reports are cached beside the library, one for each project and selection configuration.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from showhow.db.database import RowNotFound
from showhow.db.models import Project
from showhow.db.questions.projects import count_questions, find_project, list_gold_answers, list_question_texts
from showhow.db.traces.libraries import Demonstration, find_version
from showhow.fewshot_library.dpp import IntArray
from showhow.fewshot_library.library import LoadedLibrary
from showhow.fewshot_library.selection import SelectionConfig
from showhow.guard.files import partial_path
from showhow.option_fields import group, option
from showhow.reasoners.withheld import list_withheld
from showhow.runs.services import Services

MAX_LISTED_UNUSED = 1000
"""The maximum number of never selected demonstrations in a report."""

Report = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SelectionUsage:
    """The selection counts over a number of questions."""

    questions: int
    counts: IntArray
    """How often each demonstration was selected, in the order of the library."""

    @property
    def selected(self) -> list[int]:
        """The indexes of the selected demonstrations, the most frequent first; ties keep their order."""
        order = np.argsort(-self.counts, kind="stable")
        return [int(place) for place in order[: np.count_nonzero(self.counts)]]

    @property
    def never_selected(self) -> list[int]:
        """The indexes of the demonstrations that were never selected."""
        return [int(place) for place in np.flatnonzero(self.counts == 0)]

    def to_json(self, demonstrations: Sequence[Demonstration]) -> dict[str, Any]:
        """The counts as JSON; lists at most MAX_LISTED_UNUSED of the demonstrations never selected."""
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


def count_selections(  # noqa: PLR0913 - what is selected from, for what, and how
    library: LoadedLibrary,
    questions: Sequence[str],
    config: SelectionConfig,
    *,
    leave_out_itself: bool = False,
    withheld: Sequence[Sequence[str]] | None = None,
    done: Callable[[int], None] = lambda _: None,
) -> SelectionUsage:
    """Select demonstrations for each question and count them; `done` gets the number of finished questions."""
    counts = np.zeros(len(library.demonstrations), np.int64)
    selections = library.select_each(questions, config, leave_out_itself=leave_out_itself, withheld=withheld)
    for finished, selected in enumerate(selections, start=1):
        counts[[pick.item for pick in selected.selection.picks]] += 1
        done(finished)
    return SelectionUsage(len(questions), counts)


def _demonstration_summary(demonstration: Demonstration) -> dict[str, Any]:
    return {"id": str(demonstration.trace_id), "question": demonstration.question}


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRequest:
    """The library, the project and the selection that a usage report is about."""

    library: str = option(help="NAME for its latest version, NAME:NUMBER for another.", is_argument=True)
    project: str = option(help="Select for the questions of this project.")
    selection_config: SelectionConfig = group(SelectionConfig, "Selection of demonstrations")
    leave_out_itself: bool = option(default=False, help="Never select the question itself.")


def load_usage(services: Services, request: UsageRequest) -> Report | None:
    """Load the cached report; None if there is none, or if the project has new questions since."""
    return load_report(_usage_path(services, request))


def compute_usage(services: Services, request: UsageRequest, done: Callable[[int, int], None]) -> Report:
    """Compute and cache the report; `done` is called with the number of finished questions and their total."""
    file = _usage_path(services, request)
    version, library = services.open_library(request.library)
    guard = request.selection_config.guard
    with services.database.read() as session:
        project = session.get_one(Project, _project_id(session, request.project))
        texts = list_question_texts(session, project.id)
        golds = list_gold_answers(session, project.id)
    context = None if guard == "question" else services.tool_context(project.world)
    withheld = [list_withheld(guard, text, gold, context) for text, gold in zip(texts, golds, strict=True)]
    usage = count_selections(
        library,
        texts,
        request.selection_config,
        leave_out_itself=request.leave_out_itself,
        withheld=withheld,
        done=lambda finished: done(finished, len(texts)),
    )
    scope = {"library": version.name, "number": version.number, "project": request.project}
    options = {
        name: getattr(request.selection_config, name) for name in ("k", "mode", "alpha", "gamma", "distance", "seed")
    }
    data = usage.to_json(library.demonstrations)
    report = {**scope, **options, "leave_out_itself": request.leave_out_itself, **data}
    save_report(file, report)
    return report


def _project_id(session: Any, name: str) -> Any:
    project = find_project(session, name)
    if project is None:
        raise RowNotFound(f"there is no project {name!r}; `showhow questions import` makes one")
    return project.id


def _usage_path(services: Services, request: UsageRequest) -> Path:
    """The file of the report, which depends on version, project, number of questions, encoder and configuration."""
    with services.database.read() as session:
        version = find_version(session, request.library)
        project = _project_id(session, request.project)
        questions = count_questions(session, project)
    config = asdict(request.selection_config) | {"left_out": sorted(request.selection_config.left_out)}
    key = [str(version.id), str(project), questions, services.settings.encoder, request.leave_out_itself, config]
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
    return services.library_folder(version.id) / "usage" / f"{digest[:24]}.json"


def load_report(file: Path) -> Report | None:
    """Load a cached report; None if there is none."""
    try:
        report: Report = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return report


def save_report(file: Path, report: Report) -> None:
    """Write a report atomically."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part_file = partial_path(file)
    try:
        part_file.write_text(json.dumps(report, ensure_ascii=False), encoding="utf-8")
        part_file.replace(file)
    finally:
        part_file.unlink(missing_ok=True)
