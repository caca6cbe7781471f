"""The shots of a run: which calls of a library's traces, or bundled ones, each call of a skill is shown."""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any
from uuid import UUID

from showhow.db.models import Library, Question
from showhow.db.run_spec import MODEL_SKILLS, RunSpec
from showhow.db.traces.libraries import load_skill_steps
from showhow.fewshot_library.selection import SelectionConfig
from showhow.reasoners.registry import ReasonerEntry
from showhow.reasoners.shots import MAX_POOL, ShotPool, load_bundled_shots
from showhow.reasoners.skills.skill import Shot, Skill, SkillCall, read_shot
from showhow.runs.services import Services

_pools: dict[tuple[str, UUID | None, str], ShotPool] = {}
"""By encoder, library version, which never changes, and skill."""
_building = Lock()
"""Held while the requests of a pool are encoded, so that they are encoded once."""


def make_shot_chooser(
    services: Services, library: Library | None, question: Question, spec: RunSpec, entry: ReasonerEntry
) -> Callable[[SkillCall[Any, Any]], Sequence[Shot[Any, Any]]] | None:
    """Chooses the shots of a call, none from a trace of this question; None if a model is shown none."""
    counts = {skill.name: entry.count_shots(spec.options, skill) for skill in entry.skills}
    if not any(counts.values()) or spec.skills != MODEL_SKILLS:
        return None
    left_out: set[UUID] = set()
    if library is not None:
        _, demonstrations = services.open_library(f"{library.name}:{library.number}")
        same = demonstrations.select(question.full_text, SelectionConfig(k=0), leave_out_itself=True).excluded
        left_out = {row.trace_id for row in same}
        left_out |= {row.trace_id for row in demonstrations.demonstrations if row.question_id == question.id}
    version_id = None if library is None else library.id

    def choose(call: SkillCall[Any, Any]) -> Sequence[Shot[Any, Any]]:
        count = counts.get(call.skill.name, 0)
        return open_shots(services, version_id, call.skill).choose(call.request, count, left_out) if count else ()

    return choose


def open_shots(services: Services, version_id: UUID | None, skill: Skill[Any, Any]) -> ShotPool:
    """The answered requests of a skill in a library version; those that come with Showhow where it has none."""
    key = services.encoder.name, version_id, skill.reference
    with _building:
        if key not in _pools:
            shots: list[Shot[Any, Any]] = []
            file = None
            if version_id is not None:
                file = services.library_folder(version_id) / f"{skill.name}.npz"
                with services.library_database.read() as session:
                    steps = load_skill_steps(session, version_id, skill.name, MAX_POOL)
                shots = [shot for step in steps if (shot := read_shot(skill, step)) is not None]
            _pools[key] = ShotPool(skill, shots or load_bundled_shots(skill), services.encoder, file)
        return _pools[key]
