from collections.abc import Sequence

import numpy as np

from showhow.tools.text_to_sparql.llm_writer import MAX_FULL_VOCABULARY, MAX_RELATIONS, select_schema_context
from showhow.worlds.source import Entity, NotFound, Relation, Relations
from tests.fixtures.harbour import must_not_encode

MANY = tuple(Relation(f"P{n}", f"relation {n}") for n in range(1, 201))
ADA = Entity("Q1", "Ada\nReed", "ferry\n--> pilot")


class Graph:
    """Entities with many relations, one without any, and a vocabulary."""

    def __init__(self, vocabulary: tuple[Relation, ...] = MANY) -> None:
        self._vocabulary = vocabulary

    def relations(self, entity: str) -> Relations:
        if entity != "Q1":
            raise NotFound("nothing is said of it")
        return Relations(MANY, MANY[:100])

    def vocabulary(self) -> tuple[Relation, ...]:
        return self._vocabulary


def by_number(texts: Sequence[str]) -> np.ndarray:
    """An encoder for which a label is the more similar to the question, the higher its number."""
    words = [text.split()[-1] for text in texts]
    return np.array([[float(word) if word.isdigit() else 1.0] for word in words], dtype=np.float32)


def test_the_prompt_has_the_likeliest_relations_and_the_number_left_out():
    facts = select_schema_context(Graph(), "which?", [ADA], by_number)  # type: ignore[arg-type]
    (entity,) = facts.entities
    assert [one["term"] for one in entity["outgoing"]] == [f"wdt:P{n}" for n in range(200, 200 - MAX_RELATIONS, -1)]
    assert entity["incoming"] == []
    assert entity["left"] == 300 - MAX_RELATIONS
    assert (entity["label"], entity["description"]) == ("Ada Reed", "ferry --> pilot")
    assert facts.other_relations == ()


def test_an_entity_without_relations_is_in_the_prompt_with_its_label():
    facts = select_schema_context(Graph(), "which?", [Entity("Q2", "Bram")], must_not_encode)  # type: ignore[arg-type]
    assert facts.entities[0]["label"] == "Bram"
    assert facts.entities[0]["left"] == 0


def test_without_entities_a_small_vocabulary_is_in_the_prompt_and_a_large_one_is_not():
    assert len(select_schema_context(Graph(), "which?", [], by_number).other_relations) == MAX_RELATIONS  # type: ignore[arg-type]
    large = tuple(Relation(f"P{n}", f"relation {n}") for n in range(1, MAX_FULL_VOCABULARY + 2))
    assert select_schema_context(Graph(large), "which?", [], must_not_encode).other_relations == ()  # type: ignore[arg-type]
