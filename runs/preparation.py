"""What a reasoner is given to answer a question: the world's tools, and demonstrations of a library version."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from db.database import RowNotFound
from db.libraries import find_version, list_versions
from db.models import Library, Project, Question
from db.traces import load_traces
from fewshot_library.library import SelectedDemonstrations
from fewshot_library.selection import SelectionConfig
from reasoners.base import Reasoner, Task
from reasoners.humaniq.options import AgentOptions
from reasoners.registry import make_reasoner
from runs.budget import DEFAULT_MAX_STEPS
from runs.services import Services
from settings import DEFAULT_LIBRARY

REPLAY = "replay"
REPLAY_STEP_LIMIT = 300
"""The most steps where demonstrations are followed: that costs nothing, and a chain over many people is long."""
REPLAY_CANDIDATES = 50
"""Demonstrations that replay may try, the most alike first."""


@dataclass(frozen=True, slots=True)
class RunConfig:
    """How questions are to be answered."""

    reasoner: str = REPLAY
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the reasoner, by name."""
    library: str | None = None
    """NAME or NAME:NUMBER; without it the default one where there is one."""

    def make_reasoner(self, *, heard: bool = True) -> Reasoner:
        """The reasoner; `heard` says whether somebody follows the model's words as they come."""
        return make_reasoner(self.reasoner, self.options, heard=heard)

    @property
    def default_step_limit(self) -> int:
        """The most steps of a question, where nobody says otherwise."""
        return REPLAY_STEP_LIMIT if self.reasoner == REPLAY else DEFAULT_MAX_STEPS

    def selection_config(self) -> SelectionConfig:
        """Which demonstrations it wants."""
        if self.reasoner == REPLAY:
            return SelectionConfig(k=REPLAY_CANDIDATES, mode="relevance")
        return AgentOptions.from_mapping(self.options).selection_config()

    def library_version(self, services: Services) -> Library | None:
        """The library version that its demonstrations come from."""
        with services.database.read() as session:
            if self.library is None and not list_versions(session, DEFAULT_LIBRARY):
                return None
            return find_version(session, self.library or DEFAULT_LIBRARY)

    def pin(self, services: Services) -> "RunConfig":
        """Return the same configuration with the library version by its number."""
        version = self.library_version(services)
        return replace(self, library=None if version is None else f"{version.name}:{version.number}")

    def to_json(self) -> dict[str, Any]:
        """Return what a run stores; `pin` first, so that the library version is fixed."""
        return {"reasoner": self.reasoner, "options": dict(self.options), "library": self.library}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> "RunConfig":
        """The way that a run's configuration tells."""
        return cls(told["reasoner"], told["options"], told["library"])


@dataclass(frozen=True, slots=True)
class PreparedTask:
    """A reasoner's task with what its demonstrations were chosen by."""

    task: Task
    selection: SelectedDemonstrations | None
    """None where no library is there, or no demonstration is wanted."""


def build_bare_task(services: Services, question: Question, project: Project, way: RunConfig) -> Task:
    """The task of that question without demonstrations; replay's tools get no language model."""
    context = services.tool_context(project.world)
    if way.reasoner == REPLAY:
        context = replace(context, chat=None)
    return Task(question.text, context, services.tool_registry().available_tools(context.world, project.tools))


def prepare_task(services: Services, question: Question, project: Project, way: RunConfig) -> PreparedTask:
    """The task of that question: never with a demonstration that answers the question itself."""
    task = build_bare_task(services, question, project, way)
    used, wish = way.library_version(services), way.selection_config()
    if used is None or wish.k == 0:
        return PreparedTask(task, None)
    opened = services.open_library(f"{used.name}:{used.number}")[1]
    chosen = opened.select(question.text, wish, leave_out_itself=True)
    ids = [each.trace_id for each in chosen.demonstrations if each.question_id != question.id]
    with services.database.read() as session:
        shown = list(load_traces(session, ids))
    if len(shown) != len(ids):
        raise RowNotFound(f"the library {used.name}:{used.number} names traces that are gone; freeze a new version")
    return PreparedTask(replace(task, demonstrations=shown), chosen)
