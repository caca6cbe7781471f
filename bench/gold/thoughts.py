"""What is thought before each call of a tool, in plain words made from the gold reasoning."""

from collections.abc import Sequence

from worlds.questions import phrases
from worlds.questions.reasoning import FILTER, REASON, RELATE, Node
from worlds.questions.things import Things
from worlds.questions.wording import LABELS

_FEW = 3
_SEVERAL = {
    "person": "people",
    "town": "towns",
    "region": "regions",
    "country": "countries",
    "job": "occupations",
    "hobby": "hobbies",
    "day": "days",
    "number": "numbers",
    "truth": "answers",
}


def named(things: Things, kind: str, values: Sequence[int]) -> str:
    """The values by name, or how many there are."""
    if not values:
        return f"no {_SEVERAL[kind]}"
    if len(values) > _FEW:
        return f"these {len(values)} {_SEVERAL[kind]}"
    texts = [things.said(kind, value) for value in values]
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


def asked(things: Things, leaf: Node) -> str:
    """The question of an operation with the answers that it takes."""
    each = "each of " if leaf.operator == RELATE and len(leaf.heads[0].values) > 1 else ""
    return "".join(part if isinstance(part, str) else each + _answers(things, part) for part in leaf.question)


def asked_of(things: Things, leaf: Node, head: int) -> str:
    """The question of an operation about one of the things that it starts from."""
    name = things.said(leaf.heads[0].kind, head)
    if leaf.operator == FILTER:
        return phrases.WHAT[leaf.relation].format(name)
    return "".join(part if isinstance(part, str) else name for part in leaf.question)


def sought(leaf: Node) -> str:
    """What an operation looks up of the things that it starts from, in a word: child, date of birth."""
    return LABELS[leaf.relation] if leaf.relation in LABELS else str(leaf.arguments[1])


def found(things: Things, leaf: Node) -> str:
    """What an operation has come to."""
    return f"{asked(things, leaf)} {_first(named(things, leaf.kind, leaf.values.tolist()))}."


def _first(text: str) -> str:
    return text[:1].upper() + text[1:]


def _answers(things: Things, node: Node) -> str:
    return named(things, node.kind, node.values.tolist())


def last(things: Things, leaf: Node, answer: str) -> str:
    """What is thought when the answer is known."""
    if leaf.operator == REASON:
        return f"{asked(things, leaf)} {_first(answer)}."
    return f"So the answer is: {answer}."
