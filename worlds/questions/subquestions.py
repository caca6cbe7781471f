"""The gold sub-questions of GEEK, in StrategyQA's form: in order, with answers, facts, and whether to retrieve.

    subquestions(reasoning: Reasoning, root: Node) -> list[dict]

Each is {"question", "answers", "count", "facts", "retrieval"}; "#2" in a question stands for the answers of the second.
The last one's answer is the question's. Of many answers and facts the first are written: "count" tells how many answers
there are, "left_off" how many of them are not written, and "more_facts" that there are more facts.
"""

from itertools import islice
from typing import Any

from worlds.questions import phrases
from worlds.questions.reasoning import SEARCH, Node, Reasoning
from worlds.questions.things import MOST_SHOWN


def subquestions(reasoning: Reasoning, root: Node) -> list[dict[str, Any]]:
    """One sub-question an operation; what the question names needs none."""
    asked = [leaf for leaf in root.leaves() if leaf.retrieves or leaf.operator != SEARCH]
    places = {leaf: f"#{place}" for place, leaf in enumerate(asked, 1)}

    def told(part: str | Node) -> str:
        if isinstance(part, str):
            return part
        *_, last = part.leaves()
        return places.get(last) or reasoning.things.said(last.kind, int(last.values[0]))

    return [_written(leaf, reasoning) | {"question": "".join(map(told, leaf.question))} for leaf in asked]


def _written(leaf: Node, reasoning: Reasoning) -> dict[str, Any]:
    things = reasoning.things
    found = list(islice(dict.fromkeys(reasoning.facts(leaf)), MOST_SHOWN + 1))
    facts = [phrases.sentence(triple, things) for triple in found[:MOST_SHOWN]]
    written: dict[str, Any] = {"question": "", **things.bounded(leaf.kind, leaf.values), "facts": facts}
    if len(found) > MOST_SHOWN:
        written["more_facts"] = True
    return written | {"retrieval": leaf.retrieves}
