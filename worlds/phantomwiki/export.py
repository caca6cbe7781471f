"""A world in the files that the published generator writes and the published evaluator reads."""

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from worlds.folder import WorldError, world_folder
from worlds.generator.blocks import UNIVERSE
from worlds.open import about_world
from worlds.phantomwiki.articles import article_text, derived_facts
from worlds.phantomwiki.chains import DEPTH, Chain, chain_of
from worlds.phantomwiki.database import facts, rules
from worlds.phantomwiki.published import PublishedQuestion
from worlds.phantomwiki.queries import read_query
from worlds.phantomwiki.values import Values
from worlds.questions.difficulty import difficulty
from worlds.questions.evaluate import Evaluation
from worlds.questions.expressions import from_json
from worlds.questions.question_file import question_rows
from worlds.universe.universe import Universe


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written; `left_out` are the questions that the published grammar cannot ask."""

    people: int
    questions: int
    left_out: int
    split: str
    """The name that the published evaluator wants the folder to have."""


def export_instance(worlds: Path, name: str, folder: Path) -> Exported:
    """Write the world to a new or empty folder; WorldError, and nothing written, when that cannot be done."""
    about = about_world(worlds, name)
    source = world_folder(worlds, name)
    if not (source / UNIVERSE).is_file():
        raise WorldError(f"The world {name} has no universe; only generated worlds can be written in this layout.")
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise WorldError(f"{folder} is not empty; name a new folder.")
    try:
        return _export(source, about, folder)
    except OSError as failed:
        raise WorldError(
            f"{folder} cannot be written ({failed}); see that there is room and you may write."
        ) from failed


def _export(source: Path, about: dict[str, Any], folder: Path) -> Exported:
    values = Values(Universe.load(source / UNIVERSE))
    rows = question_rows(source)
    chains = [(row["id"], chain) for row in rows if (chain := _chain(row, values)) is not None]
    depth = max([int(about.get("depth", DEPTH)), *(chain.depth for _, chain in chains)])
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        partial.chmod(0o755)
        _write(partial / "facts.pl", (f"{line}\n" for line in (*rules(), *facts(values))))
        _write(partial / "articles.json", _listed(_articles(values)))
        _write(partial / "questions.json", _listed(_question(*each, values, depth) for each in chains))
        partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    size = len(values.universe)
    split = f"depth_{depth}_size_{size}_seed_{about.get('seed', 1)}"
    return Exported(size, len(chains), len(rows) - len(chains), split)


def _chain(row: dict[str, Any], values: Values) -> Chain | None:
    """The question in the published grammar, if it can be said there and means the same."""
    chain = chain_of(from_json(row["expression"]))
    if chain is None:
        return None
    # There "how many" is a set of numbers, one a person; here it may be one number of all together.
    same = _answers(chain, values) == sorted(each["text"] for each in row["answers"])
    return chain if same else None


def _answers(chain: Chain, values: Values) -> list[str]:
    return values.answers(Evaluation(values.universe).answer(read_query(*chain.goals(values), values)))


def _question(question: str, chain: Chain, values: Values, depth: int) -> dict[str, Any]:
    goals, variable = chain.goals(values)
    return PublishedQuestion(
        id=question,
        text=chain.text(values),
        answers=tuple(_answers(chain, values)),
        goals=tuple(goals),
        variable=variable,
        template=tuple(chain.template()),
        type=chain.type(depth),
        difficulty=difficulty(read_query(goals, variable, values)),
    ).to_record()


def _articles(values: Values) -> Iterator[dict[str, Any]]:
    for row, title in enumerate(values.universe.titles):
        told = list(derived_facts(values, row))
        yield {"title": title, "article": article_text(title, told), "facts": [str(each) for each in told]}


def _listed(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """A JSON list, never whole in memory."""
    before = "[\n"
    for row in rows:
        yield before + json.dumps(row, ensure_ascii=False, indent=4)
        before = ",\n"
    yield "\n]\n" if before != "[\n" else "[]\n"


def _write(file: Path, parts: Iterable[str]) -> None:
    with file.open("w", encoding="utf-8") as stream:
        stream.writelines(parts)
