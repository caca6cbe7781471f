"""Writes reasoners/shots.jsonl: calls of every skill in gold traces of two small worlds; `make shots` runs it.

Every method answers with each of its presets, whose instructions may differ. In one world each fact is in one source,
in the other all facts are in all, as methods that only walk graphs need it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from showhow.db.models import SPAN_SKILL
from showhow.evaluation.scoring.gold_demonstrations import make_world_gold_traces
from showhow.fiction.generator.build import generate_world
from showhow.fiction.questions.question_file import QUESTIONS_FILE, QuestionFile, QuestionFilter
from showhow.fiction.universe.options import GenerationOptions
from showhow.reasoners import shots
from showhow.reasoners.registry import REASONERS
from showhow.reasoners.shots import BUNDLED_SHOTS, list_form, write_instructions
from showhow.reasoners.skills.skill import Shot, Skill, read_shot
from showhow.runs.services import Services
from showhow.settings import Settings
from showhow.worlds.folder import world_folder

SHOTS_OF_SKILL = 8
MAX_CHARACTERS = 3_000
"""Longer calls leave no room for others in a small context window."""
QUESTIONS_OF_KIND = 2
_WORLDS = {"apart": "text=50,graph=35,web=15", "together": "everywhere"}
_SEED = 2_500
_FURTHER_WAYS: tuple[tuple[str, dict[str, Any]], ...] = (("pdrr", {"mode": "beam", "width": 1}),)
"""Ways whose calls are shots of skills that no preset calls."""


def main() -> None:
    """Write the file beside the module that reads it."""
    with TemporaryDirectory() as home:
        services = Services(Settings.from_env({"SHOWHOW_HOME": home}), {})
        lines = [json.dumps(line, ensure_ascii=False) for line in _list_lines(services, Path(home))]
        services.close()
    Path(shots.__file__).with_name(BUNDLED_SHOTS).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _list_lines(services: Services, home: Path) -> Iterator[dict[str, Any]]:
    skills = {skill.reference: skill for entry in REASONERS.values() for skill in entry.skills}
    calls: dict[str, list[Shot[Any, Any]]] = {reference: [] for reference in skills}
    further: dict[str, list[Shot[Any, Any]]] = {reference: [] for reference in skills}
    for world, split in _WORLDS.items():
        options = GenerationOptions(people=60, seed=_SEED, depth=3, per_template=1, split=split)
        generate_world(home / "worlds", world, options)
        file = QuestionFile(world_folder(home / "worlds", world) / QUESTIONS_FILE)
        of_kinds: dict[str, list[dict[str, Any]]] = {}
        for row in map(file.load_row, file.select(QuestionFilter())):
            of_kinds.setdefault(row["kind"], []).append(row)
        rows = [row for kind in of_kinds.values() for row in kind[:QUESTIONS_OF_KIND]]
        ways = [
            (entry.name, options)
            for entry in REASONERS.values()
            for options in ({}, *entry.presets.values())
            if entry.skills
        ]
        for name, chosen in (*ways, *_FURTHER_WAYS):
            target = further if (name, chosen) in _FURTHER_WAYS else calls
            for record in make_world_gold_traces(services, world, rows, name, chosen):
                for step in record.steps if record.trace.status == "approved" else ():
                    if step.skill not in (None, SPAN_SKILL) and not (step.data or {}).get("fallback"):
                        shot = read_shot(skills[str(step.skill)], step)
                        target[str(step.skill)] += [] if shot is None else [shot]
    for reference, skill in sorted(skills.items()):
        by_instructions: dict[str, list[Shot[Any, Any]]] = {}
        for shot in calls[reference] or further[reference]:
            by_instructions.setdefault(write_instructions(skill, shot.request), []).append(shot)
        for shot in (shot for group in by_instructions.values() for shot in _choose(skill, group)):
            documents = (model.model_dump(mode="json", exclude_none=True) for model in (shot.request, shot.reply))
            yield dict(zip(("skill", "request", "reply"), (skill.name, *documents), strict=True))


def _choose(skill: Skill[Any, Any], calls: list[Shot[Any, Any]]) -> list[Shot[Any, Any]]:
    """The shortest calls, first one of each form."""
    by_length = sorted({shot.request.model_dump_json(): shot for shot in calls}.items(), key=lambda item: len(item[0]))
    firsts: list[Shot[Any, Any]] = []
    others: list[Shot[Any, Any]] = []
    forms: set[tuple[str, ...]] = set()
    for text, shot in by_length:
        form = tuple(list_form(skill, shot))
        if len(text) <= MAX_CHARACTERS:
            (others if form in forms else firsts).append(shot)
        forms.add(form)
    return [*firsts, *others][:SHOTS_OF_SKILL]


if __name__ == "__main__":
    main()
