"""Makes the exemplars of PhantomWiki's baselines from a world of 25 people, which no evaluation asks about.

    python -m showhow.oracles.exemplars > reasoners/baselines/exemplars.json

Each follows the facts that the gold reasoning of its question rests on, and its observations are those of the tools.
"""

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

from showhow.fiction.generator.build import generate_world
from showhow.fiction.questions.question_file import QUESTIONS_FILE
from showhow.fiction.universe.options import GenerationOptions
from showhow.reasoners.baselines.phantomwiki import PHANTOMWIKI_TOOLS, Exemplar
from showhow.tools.tool import ToolContext
from showhow.worlds.embedded.graph import EmbeddedGraph
from showhow.worlds.open import open_world

EXEMPLAR_COUNT = 10
MAX_CALLS = 6
"""Questions that need more articles are left out, so that the exemplars fit into prompts."""
_WORLD = "exemplars"
_OPTIONS = GenerationOptions(people=25, seed=2501, depth=10, per_template=2, plain=True)
_KINDS = ("who", "what", "how many")
"""The kinds of questions that PhantomWiki's grammar has."""
Fact = tuple[str, str, str]
"""Subject, relation and object."""


def make_exemplars() -> list[Exemplar]:
    """Generate the world and solve ten of its questions, each of another template, the easiest first."""
    with tempfile.TemporaryDirectory() as folder:
        worlds = Path(folder)
        generate_world(worlds, _WORLD, _OPTIONS)
        world = open_world(worlds, _WORLD)
        context = ToolContext(world, lambda _texts: NotImplemented)
        rows = [json.loads(line) for line in (worlds / _WORLD / QUESTIONS_FILE).read_text("utf-8").splitlines()]
        try:
            return list(_solve_rows(rows, context))
        finally:
            if isinstance(world.graph, EmbeddedGraph):
                world.graph.close()


def _solve_rows(rows: Sequence[dict[str, Any]], context: ToolContext) -> Iterator[Exemplar]:
    templates: set[str] = set()
    for row in sorted(rows, key=lambda row: row["difficulty"]):
        if row["kind"] not in _KINDS or row["structure"] != "chain" or row["template"] in templates:
            continue
        facts = [(fact["subject"], fact["relation"], fact["object"]) for fact in row["triples"]["completed"]]
        calls = _plan_calls(row["text"], facts)
        if len(calls) <= MAX_CALLS and len(templates) < EXEMPLAR_COUNT:
            templates.add(row["template"])
            yield _solve(row, calls, context)


def _plan_calls(question: str, facts: Sequence[Fact]) -> list[tuple[str, str, list[Fact]]]:
    """The calls of tools that show the facts, as (tool, argument, facts): a search for what has no known subject."""
    known: set[str] = {name for fact in facts for name in (fact[0],) if name in question}
    calls: list[tuple[str, str, list[Fact]]] = []
    retrieved: dict[str, list[Fact]] = {}
    for (relation, value), group in groupby(facts, key=lambda fact: (fact[1], fact[2] if fact[2] in question else "")):
        for fact in group:
            subject = fact[0]
            if subject not in known and value and not (calls and calls[-1][:2] == ("Search", value)):
                calls.append(("Search", value, []))
            if subject not in known and value:
                calls[-1][2].append(fact)
                continue
            if subject not in retrieved:
                retrieved[subject] = []
                calls.append(("RetrieveArticle", subject, retrieved[subject]))
            retrieved[subject].append(fact)
        known |= {name for fact in facts if fact[1] == relation for name in (fact[0], fact[2])}
    return calls


def _solve(row: dict[str, Any], calls: Sequence[tuple[str, str, list[Fact]]], context: ToolContext) -> Exemplar:
    tools = {tool.name: tool for tool in PHANTOMWIKI_TOOLS}
    answers = tuple(answer["text"] for answer in row["answers"])
    steps: list[dict[str, Any]] = []
    learnt, reasons = "", []
    for tool, argument, facts in calls:
        (parameter,) = tools[tool].parameters
        arguments = {parameter.name: argument}
        relations = " and the ".join(dict.fromkeys(relation for _, relation, _ in facts))
        plan = (
            f"I search for the articles that have {argument}."
            if tool == "Search"
            else f"I need the article about {argument} to see the {relations}."
        )
        observation = tools[tool].function(context, arguments).text
        thought = " ".join(filter(None, (learnt, plan)))
        steps.append({"thought": thought, "tool": tool, "arguments": arguments, "observation": observation})
        learnt = " ".join(
            f"The {relation} of {subject} is {', '.join(fact[2] for fact in group)}."
            for (subject, relation), group in groupby(facts, key=lambda fact: (fact[0], fact[1]))
        )
        reasons.append(learnt)
    conclusion = f"So the answer is {', '.join(answers)}."
    steps.append({"thought": f"{learnt} {conclusion}"})
    return Exemplar(row["text"], tuple(steps), " ".join([*reasons, conclusion]), answers)


if __name__ == "__main__":
    rows = [json.dumps(asdict(exemplar), ensure_ascii=False) for exemplar in make_exemplars()]
    sys.stdout.write("[\n" + ",\n".join(rows) + "\n]\n")
