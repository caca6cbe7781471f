"""The gold atomic tree of AtomR: a question above its sub-questions, each leaf one operator or direct reasoning.

    tree(root: Node, things: Things) -> dict     `root` is Reasoning(things).root(expression, question)
    published(tree) -> dict                      the shape of the published trees: question -> sub-questions or call

A tree is {"number": 0, "question", "answers", "count", "children": [...]}; a leaf has, in place of children, "operator"
(Search, Relate, Filter, or DR for direct reasoning) and "arguments", where "[3]" stands for the answers of question 3;
a leaf of direct reasoning has "how": both, count, count each, earliest, latest, earlier, later, same, different,
overlap, within. Questions are numbered breadth first, as in the paper. Of many answers the first are written:
"count" tells how many there are and "left_off" how many are not written.
"""

from collections import deque
from typing import Any

from worlds.questions.reasoning import REASON, Node
from worlds.questions.things import Things


def tree(root: Node, things: Things) -> dict[str, Any]:
    """The tree as JSON objects, every question with its gold answers."""
    return _written(root, things, _numbers(root))


def _numbers(root: Node) -> dict[Node, int]:
    found: dict[Node, int] = {}
    waiting = deque([root])
    while waiting:
        node = waiting.popleft()
        found[node] = len(found)
        waiting.extend(node.children)
    return found


def _written(node: Node, things: Things, numbers: dict[Node, int]) -> dict[str, Any]:
    def told(part: str | Node) -> str:
        return part if isinstance(part, str) else f"[{numbers[part]}]"

    written: dict[str, Any] = {"number": numbers[node], "question": "".join(map(told, node.question))}
    written |= things.bounded(node.kind, node.values)
    if node.children:
        return written | {"children": [_written(child, things, numbers) for child in node.children]}
    written |= {"operator": node.operator, "arguments": [told(part) for part in node.arguments]}
    return written | {"how": node.relation} if node.operator == REASON else written


def published(tree: dict[str, Any]) -> dict[str, list[str] | str]:
    """The tree as the published files have it, without answers."""
    found: dict[str, list[str] | str] = {}
    _publish(tree, found)
    return found


def _publish(node: dict[str, Any], found: dict[str, list[str] | str]) -> None:
    children = node.get("children")
    if children is None:
        found[_key(node)] = _call(node)
        return
    found[_key(node)] = [_key(child) for child in children]
    for child in children:
        _publish(child, found)


def _key(node: dict[str, Any]) -> str:
    number, question = node["number"], node["question"]
    return f"{number}. {question}" if number else str(question)


def _call(leaf: dict[str, Any]) -> str:
    if leaf["operator"] == REASON:
        return "[END]"
    arguments = (text if _is_reference(text) else f'"{text}"' for text in leaf["arguments"])
    return f"{leaf['operator']}({', '.join(arguments)})"


def _is_reference(text: str) -> bool:
    return text[:1] == "[" and text[-1:] == "]" and text[1:-1].isdecimal()
