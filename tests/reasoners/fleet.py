"""A small world of ships in articles, with demonstrations recorded on it."""

from pathlib import Path
from typing import Any

import numpy as np

from showhow.db.models import Project, Question, Step, Trace
from showhow.db.traces.trace_record import TraceRecord
from showhow.reasoners.provenance import collect_known_sentences, collect_known_values, find_origin
from showhow.tools.registry import BUILT_IN_TOOLS
from showhow.tools.tool import ToolContext
from showhow.worlds.build import WorldContents, build_world
from showhow.worlds.open import open_world
from showhow.worlds.source import Article

SHIPS = {
    "Sea Star": ("Ada Lund", "Gullhaven"),
    "Blue Wave": ("Bo Reed", "Saltmouth"),
    "Low Tide": ("Cy Holm", "Gullhaven"),
    "Grey Seal": (None, None),
}


FLEET_ITEMS = {
    "Q1": "Sea Star",
    "Q2": "Ada Lund",
    "Q3": "Gullhaven",
    "Q4": "Pilots Guild",
    "Q5": "Saltmouth",
    **{f"Q{number}": f"Pilot {number}" for number in range(100, 125)},
}
FLEET_RELATIONS = {
    "P10": "captain",
    "P11": "home port",
    "P12": "place of birth",
    "P13": "date of birth",
    "P14": "member of",
}
FLEET_FACTS = [
    ("Q1", "P10", "wd:Q2"),
    ("Q1", "P11", "wd:Q5"),
    ("Q2", "P12", "wd:Q3"),
    ("Q2", "P13", '"1931-03-05T00:00:00Z"^^xsd:dateTime'),
    *((f"Q{number}", "P14", "wd:Q4") for number in (2, *range(100, 125))),
]


def fleet_graph() -> str:
    """The graph of the fleet in Turtle; a guild has 26 members."""
    prefixes = {
        "wd": "http://www.wikidata.org/entity/",
        "wdt": "http://www.wikidata.org/prop/direct/",
        "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
        "xsd": "http://www.w3.org/2001/XMLSchema#",
    }
    lines = [f"@prefix {name}: <{iri}> ." for name, iri in prefixes.items()]
    lines += [f'wd:{id_} rdfs:label "{label}"@en .' for id_, label in (FLEET_ITEMS | FLEET_RELATIONS).items()]
    lines += [f"wd:{head} wdt:{relation} {tail} ." for head, relation, tail in FLEET_FACTS]
    return "\n".join(lines)


def articles(
    captain: str = "The captain of {ship} is {name}.", born: str = "{name} was born in {town}."
) -> list[Article]:
    """The articles about ships and captains."""
    articles_of_ships = []
    for ship, (name, town) in SHIPS.items():
        sentences = [captain.format(ship=ship, name=name)] if name else []
        articles_of_ships.append(Article(ship, (f"{ship} is a ship.", *sentences, "It has two masts."), None))
        if name and town:
            articles_of_ships.append(Article(name, (f"{name} likes rain.", born.format(name=name, town=town)), None))
    return articles_of_ships


def fleet(worlds: Path, name: str, articles: list[Article]) -> ToolContext:
    """Build a world of these articles, with an encoder that finds no similarities."""
    build_world(worlds, name, WorldContents(articles))
    return ToolContext(open_world(worlds, name), lambda texts: np.zeros((len(texts), 1), dtype=np.float32))


def recorded(
    context: ToolContext,
    question: str,
    steps: list[tuple[str, str, dict[str, Any]]],
    answer: str,
    final_thought: str = "",
) -> TraceRecord:
    """Record a demonstration: run the tools and derive the origins of their arguments, as the Annotate page does."""
    project = Project(name="fleet", world="fleet")
    asked = Question(project_id=project.id, position=1, text=question)
    trace = Trace(question_id=asked.id, status="approved", final_answer=answer, final_thought=final_thought)
    taken: list[Step] = []
    for position, (thought, tool, arguments) in enumerate(steps, 1):
        data = {step.position: step.data for step in taken}
        known, sentences = collect_known_values(data), collect_known_sentences(data)
        seen = BUILT_IN_TOOLS[tool].call(context, arguments).observation
        assert seen is not None
        origins = {name: find_origin(given, question, known, sentences) for name, given in arguments.items()}
        taken.append(
            Step(
                trace_id=trace.id,
                position=position,
                thought=thought,
                tool=tool,
                arguments=arguments,
                origins=origins,
                observation=seen.text,
                data=seen.data,
            )
        )
    return TraceRecord(project, asked, trace, taken)


def who_is_captain(context: ToolContext) -> TraceRecord:
    """Who is the captain of Sea Star?"""
    asked = "Who is the captain of Sea Star?"
    steps: list[tuple[str, str, dict[str, Any]]] = [
        ("First the ship.", "wikisearch", {"query": "Sea Star"}),
        ("Its article should name him or her.", "read", {"title": "Sea Star", "question": asked}),
    ]
    return recorded(context, asked, steps, "Ada Lund", "There it says so.")


def where_captain_was_born(context: ToolContext) -> TraceRecord:
    """In which town was the captain of Sea Star born?"""
    steps: list[tuple[str, str, dict[str, Any]]] = [
        ("First the ship.", "wikisearch", {"query": "Sea Star"}),
        ("Who commands it?", "read", {"title": "Sea Star", "question": "Who is the captain of Sea Star?"}),
        ("And now the captain.", "read", {"title": "Ada Lund", "question": "Where was Ada Lund born?"}),
    ]
    return recorded(context, "In which town was the captain of Sea Star born?", steps, "Gullhaven", "Gullhaven.")


def which_were_born(context: ToolContext) -> TraceRecord:
    """A demonstration of a question without an answer."""
    asked = "Who is the captain of Grey Seal?"
    steps: list[tuple[str, str, dict[str, Any]]] = [
        ("First the ship.", "wikisearch", {"query": "Grey Seal"}),
        ("Its article should name him or her.", "read", {"title": "Grey Seal", "question": asked}),
    ]
    return recorded(context, asked, steps, "no answer", "It has none.")
