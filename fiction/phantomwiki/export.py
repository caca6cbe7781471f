"""Export of a generated world in the file layout of the published PhantomWiki generator and evaluator.

facts.pl is a Prolog program with the rules of the relations and the facts.
"""

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fiction.generator.world_files import UNIVERSE_FILE
from fiction.phantomwiki.articles import derive_facts, format_article
from fiction.phantomwiki.prolog import format_fact, quote_string
from fiction.phantomwiki.published_questions import (
    GRAMMAR_DEPTH,
    PublishedQuestion,
    RelationChain,
    parse_query,
    to_chain,
)
from fiction.phantomwiki.records import ValueCodec
from fiction.questions.evaluate import ExpressionEvaluator
from fiction.questions.expressions import decode_expression
from fiction.questions.question import compute_difficulty
from fiction.questions.question_file import read_question_rows
from fiction.universe.relations import DOWN, FRIEND, RELATIONS, SIDE, SPOUSE, UP, KinshipRelation
from fiction.universe.universe import NONE, Universe
from worlds.folder import WorldError, world_folder
from worlds.open import read_world_metadata

_BASE_RULES = (
    ":- dynamic parent/2, married_/2, friend_/2.",
    'female(X) :- gender(X, "female").',
    'male(X) :- gender(X, "male").',
    "child(X, Y) :- parent(Y, X).",
    "sibling(X, Y) :- parent(X, A), parent(Y, A), X \\= Y.",
    "married(X, Y) :- parent(A, X), parent(A, Y), X \\= Y.",
    "married(X, Y) :- married_(X, Y).",
    "married(X, Y) :- married_(Y, X).",
    "friend(X, Y) :- friend_(X, Y).",
    "friend(X, Y) :- friend_(Y, X).",
)
_STEP_PREDICATES = {UP: "parent", DOWN: "child", SIDE: "sibling", SPOUSE: "married", FRIEND: "friend"}


def generate_rules() -> Iterator[str]:
    """Prolog rules of all relations."""
    yield from _BASE_RULES
    yield from (
        _format_rule(relation) for relation in RELATIONS.values() if relation.name not in _STEP_PREDICATES.values()
    )


def _format_rule(relation: KinshipRelation) -> str:
    variables = ["X", *(chr(ord("A") + index) for index in range(len(relation.steps) - 1)), "Y"]
    steps = zip(relation.steps, variables, variables[1:], strict=False)
    goals = [f"{_STEP_PREDICATES[step]}({left}, {right})" for step, left, right in steps]
    if relation.women is not None:
        goals.append("female(Y)" if relation.women else "male(Y)")
    return f"{relation.name}(X, Y) :- {', '.join(goals)}."


def generate_facts(values: ValueCodec) -> Iterator[str]:
    """Prolog facts of all people, kind by kind."""
    universe, titles = values.universe, values.universe.titles
    yield from (f"type({quote_string(title)}, person)." for title in titles)
    for name in ("gender", "dob", "job", "hobby"):
        for row in range(len(universe)):
            yield from (str(fact) for fact in derive_facts(values, row, (name,)))
    yield from (format_fact("attribute", value) for value in values.iter_attributes())
    for child, parents in enumerate(zip(universe.father.tolist(), universe.mother.tolist(), strict=True)):
        yield from (format_fact("parent", titles[child], titles[parent]) for parent in parents if parent > NONE)
    yield from (format_fact("married_", titles[one], titles[other]) for one, other in _childless_couples(universe))
    yield from (format_fact("friend_", titles[one], titles[other]) for one, other in universe.friends.pairs.tolist())


def _childless_couples(universe: Universe) -> Iterator[tuple[int, int]]:
    """Couples without a common child."""
    both = (universe.father > NONE) & (universe.mother > NONE)
    parents = set(universe.father[both].tolist())
    parents |= set(universe.mother[both].tolist())
    for one, other in enumerate(universe.spouse.tolist()):
        if other > one and one not in parents:
            yield one, other


@dataclass(frozen=True, slots=True)
class InstanceExport:
    """Result of an export; `left_out` counts questions that the published grammar cannot express."""

    people: int
    questions: int
    left_out: int
    split: str
    """Folder name that the published evaluator expects."""


def export_instance(worlds: Path, name: str, folder: Path) -> InstanceExport:
    """Write the world to a new or empty folder; WorldError, and nothing is written, if that fails."""
    metadata = read_world_metadata(worlds, name)
    source = world_folder(worlds, name)
    if not (source / UNIVERSE_FILE).is_file():
        raise WorldError(f"The world {name} has no universe; only generated worlds can be written in this layout.")
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise WorldError(f"{folder} is not empty; name a new folder.")
    try:
        return _write_instance(source, metadata, folder)
    except OSError as error:
        raise WorldError(f"{folder} cannot be written ({error}); check free space and permissions.") from error


def _write_instance(source: Path, metadata: dict[str, Any], folder: Path) -> InstanceExport:
    values = ValueCodec(Universe.load(source / UNIVERSE_FILE))
    rows = read_question_rows(source)
    chains = [(row["id"], chain) for row in rows if (chain := _to_published_chain(row, values)) is not None]
    depth = max([int(metadata.get("depth", GRAMMAR_DEPTH)), *(chain.depth for _, chain in chains)])
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        _write_file(partial / "facts.pl", (f"{line}\n" for line in (*generate_rules(), *generate_facts(values))))
        _write_file(partial / "articles.json", _encode_json_list(_encode_articles(values)))
        _write_file(
            partial / "questions.json", _encode_json_list(_encode_question(*entry, values, depth) for entry in chains)
        )
        partial.rename(folder)
    # After every exception, also KeyboardInterrupt, the partial folder is removed and the exception raised again.
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    size = len(values.universe)
    split = f"depth_{depth}_size_{size}_seed_{metadata.get('seed', 1)}"
    return InstanceExport(size, len(chains), len(rows) - len(chains), split)


def _to_published_chain(row: dict[str, Any], values: ValueCodec) -> RelationChain | None:
    """Convert a question to the published grammar; None if it cannot be expressed or its answers would differ."""
    chain = to_chain(decode_expression(row["expression"]))
    if chain is None:
        return None
    # Published "how many" answers are a set with one number per person; ours may be a single total.
    same = _answer_texts(chain, values) == sorted(answer["text"] for answer in row["answers"])
    return chain if same else None


def _answer_texts(chain: RelationChain, values: ValueCodec) -> list[str]:
    return values.format_answers(
        ExpressionEvaluator(values.universe).evaluate(parse_query(*chain.build_goals(values), values))
    )


def _encode_question(question: str, chain: RelationChain, values: ValueCodec, depth: int) -> dict[str, Any]:
    goals, variable = chain.build_goals(values)
    return PublishedQuestion(
        id=question,
        text=chain.format_text(values),
        answers=tuple(_answer_texts(chain, values)),
        goals=tuple(goals),
        variable=variable,
        template=tuple(chain.build_template()),
        type=chain.template_number(depth),
        difficulty=compute_difficulty(parse_query(goals, variable, values)),
    ).to_record()


def _encode_articles(values: ValueCodec) -> Iterator[dict[str, Any]]:
    for row, title in enumerate(values.universe.titles):
        facts = list(derive_facts(values, row))
        yield {"title": title, "article": format_article(title, facts), "facts": [str(fact) for fact in facts]}


def _encode_json_list(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Encode a JSON list incrementally."""
    before = "[\n"
    for row in rows:
        yield before + json.dumps(row, ensure_ascii=False, indent=4)
        before = ",\n"
    yield "\n]\n" if before != "[\n" else "[]\n"


def _write_file(file: Path, parts: Iterable[str]) -> None:
    with file.open("w", encoding="utf-8") as stream:
        stream.writelines(parts)
