"""The project's regular expressions, and texts that make a backtracking engine work hard on them.

`list_patterns` reads the code of all rooms: patterns written in a call of `re`, also with parts that the module
defines, with the methods that use them. `find_superlinear` derives texts from a pattern's parse tree: what leads to a
repetition, what it repeats, and a sign that it cannot match. It measures processor time at two lengths, so that a busy
machine changes nothing: four times the length costs four times as much, or sixteen times.
"""

import ast
import importlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from tests.test_shape import package_of

METHODS = ("match", "fullmatch", "search", "split", "sub", "subn", "findall", "finditer")
SHORT, LONG = 4_000, 16_000
SUSPICIOUS_SECONDS = 0.004
"""What a linear pattern stays below at the short length."""
LONG_SECONDS = 0.03
"""What a quadratic pattern exceeds at the long length."""
SUPERLINEAR_RATIO = 8.0
TAILS = ("", "\ue000", "!")
FILLING = "Xy"
"""What stands in a pattern for a part that is known only when the program runs."""
_MAX_EXAMPLES = 6


@dataclass(frozen=True)
class OwnPattern:
    """A regular expression of the code."""

    place: str
    """Its module, and its name or line."""
    pattern: str
    flags: int
    methods: tuple[str, ...]


def list_patterns(root: Path, modules: list[Path]) -> list[OwnPattern]:
    """Every pattern that is given to `re` in these modules."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in modules}
    uses: dict[str, set[str]] = {}
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in METHODS:
                value = node.value
                name = value.id if isinstance(value, ast.Name) else getattr(value, "attr", "")
                uses.setdefault(_scope(path, name), set()).add(node.attr)
    return [pattern for path, tree in trees.items() for pattern in _list_module(root, path, tree, uses)]


def _scope(path: Path, name: str) -> str:
    """A private name is that of its module."""
    return f"{path}:{name}" if name.startswith("_") else name


def _list_module(root: Path, path: Path, tree: ast.Module, uses: dict[str, set[str]]) -> Iterator[OwnPattern]:
    place = path.relative_to(root)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_call_of_re(node)]
    if not calls:
        return
    names = {
        id(node.value): target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Tuple)
            and isinstance(node.targets[0], ast.Tuple)
        ):
            names |= {
                id(value): getattr(t, "id", "") for value, t in zip(node.value.elts, node.targets[0].elts, strict=True)
            }
    module = importlib.import_module(package_of(path))
    for call in calls:
        assert isinstance(call.func, ast.Attribute)
        text = _evaluate(call.args[0], vars(module))
        if not isinstance(text, str | bytes):
            continue
        flags = next((_evaluate(word.value, vars(module)) for word in call.keywords if word.arg == "flags"), 0)
        position = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(call.func.attr, 2)
        if len(call.args) > position:
            flags = _evaluate(call.args[position], vars(module))
        methods = (
            {call.func.attr}
            if call.func.attr in METHODS
            else uses.get(_scope(path, names.get(id(call), "?")), {"search"})
        )
        yield OwnPattern(
            f"{place}:{names.get(id(call), call.lineno)}",
            text if isinstance(text, str) else text.decode("latin-1"),
            int(flags or 0),
            tuple(sorted(methods)),
        )


def _is_call_of_re(node: ast.Call) -> bool:
    function = node.func
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "re"
        and function.attr in (*METHODS, "compile")
        and bool(node.args)
    )


def _evaluate(node: ast.expr, names: dict[str, Any]) -> Any:
    """The value of an expression of the module; parts that only a running function knows are FILLING."""
    if isinstance(node, ast.JoinedStr):
        parts = [
            part.value if isinstance(part, ast.Constant) else _evaluate(getattr(part, "value", part), names)
            for part in node.values
        ]
        return "".join(part if isinstance(part, str) else FILLING for part in parts)
    try:
        return eval(compile(ast.Expression(node), "<pattern>", "eval"), dict(names))  # noqa: S307 - our own code
    except Exception:  # noqa: BLE001 - a name of a function, or its arguments
        return None


def find_superlinear(pattern: str, flags: int, methods: list[str]) -> str | None:
    """A text on which one of the methods takes more than linear time, as a formula; None if there is none."""
    compiled = re.compile(pattern, flags)
    for method in methods:
        for head, pump, tail in list_attacks(pattern, flags):
            if _grows(compiled, method, head, pump, tail):
                return f"{method}: {head!r} + {pump!r} * n + {tail!r}"
    return None


def _grows(compiled: "re.Pattern[str]", method: str, head: str, pump: str, tail: str) -> bool:
    def measure(length: int) -> float:
        text = head + pump * (length // len(pump)) + tail
        start = time.process_time()
        if method in ("sub", "subn"):
            compiled.sub("", text)
        elif method == "finditer":
            for _ in compiled.finditer(text):
                pass
        else:
            getattr(compiled, method)(text)
        return time.process_time() - start

    # A pattern that is exponential is caught by its deadline at this length already.
    measure(60)
    if measure(SHORT) < SUSPICIOUS_SECONDS:
        return False
    long = min(measure(LONG) for _ in range(3))
    if long < LONG_SECONDS or long < SUPERLINEAR_RATIO * min(measure(SHORT) for _ in range(3)):
        return False
    # Once more with twice the length, since another process may have slowed the longer measurement.
    return min(measure(2 * LONG) for _ in range(2)) > 3 * min(measure(LONG) for _ in range(2))


def list_attacks(pattern: str, flags: int) -> list[tuple[str, str, str]]:
    """Heads, pumps and tails of texts that may be hard for the pattern."""
    tree = list(parser.parse(pattern, flags))
    repeats = list(dict.fromkeys(_list_repeats(tree, "", set())))
    wholes = _examples(tree, set())
    heads = sorted({head for head, _ in repeats if head}, key=len)
    signs = sorted({sign for _, pump in repeats for sign in pump} | set("".join(wholes)), key=_rank)
    pumps = sorted({pump for _, pump in repeats} | set(signs), key=len)
    attacks = {(head, pump, tail): None for head in ("", *heads[:8]) for pump in pumps for tail in TAILS}
    # What leads to a repetition may repeat itself, as may a whole match, or two signs in turn.
    pairs = [first + second for first in signs[:12] for second in signs[:12] if first != second]
    long_pumps = [*heads, *(head + pump for head, pump in repeats if head), *wholes, *pairs]
    attacks |= {("", pump, TAILS[1]): None for pump in long_pumps if pump}
    return [attack for attack in attacks if attack[1]]


def _rank(sign: str) -> int:
    return CANDIDATES.find(sign) if sign in CANDIDATES else len(CANDIDATES)


def _list_repeats(items: list[Any], head: str, seen: set[int]) -> Iterator[tuple[str, str]]:
    """What leads to each long repetition, and what it repeats."""
    for code, value in items:
        if code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            _, most, body = value
            if most > 20:
                for pump in _examples(list(body), seen):
                    yield head, pump
            yield from _list_repeats(list(body), head, seen)
        else:
            for branch in _branches(code, value):
                yield from _list_repeats(branch, head, seen)
        head = (head + next(iter(_examples([(code, value)], seen)), ""))[-200:]


def _branches(code: Any, value: Any) -> list[list[Any]]:
    if code is op.SUBPATTERN:
        return [list(value[3])]
    if code is op.BRANCH:
        return [list(branch) for branch in value[1]]
    if code in (op.ASSERT, op.ASSERT_NOT):
        return [list(value[1])] if value[0] > 0 else []
    if code is op.ATOMIC_GROUP:
        return [list(value)]
    return []


def _examples(items: list[Any], seen: set[int]) -> list[str]:
    """Texts that the items match, a few of them."""
    texts = [""]
    for code, value in items:
        texts = [text + more for more in _item_examples(code, value, seen) for text in texts][:_MAX_EXAMPLES]
    return list(dict.fromkeys(texts))


def _item_examples(code: Any, value: Any, seen: set[int]) -> list[str]:  # noqa: PLR0911 - a case for each code
    if code is op.LITERAL:
        return [chr(value)]
    if code in (op.NOT_LITERAL, op.ANY, op.IN, op.CATEGORY):
        return _signs_of([(code, value)] if code is not op.IN else value)
    if code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        least, most, body = value
        return [text * max(1 if most else 0, min(least, 40)) for text in _examples(list(body), seen)]
    if code is op.SUBPATTERN:
        return _examples(list(value[3]), seen)
    if code is op.BRANCH:
        return [text for branch in value[1] for text in _examples(list(branch), seen)[:2]][:_MAX_EXAMPLES]
    if code is op.ATOMIC_GROUP:
        return _examples(list(value), seen)
    return [""]


CANDIDATES = " a1._A\n\\\"\t,-:;'()[]{}<>*#/\\&|!?@$%+=~^`Zzé\u3000"


def _signs_of(parts: list[Any]) -> list[str]:
    """A few signs of a set."""
    is_negated = any(code is op.NEGATE for code, _ in parts)
    signs = [sign for sign in CANDIDATES if any(_has(code, value, sign) for code, value in parts) != is_negated]
    signs += [chr(value) for code, value in parts if code is op.LITERAL and not is_negated and chr(value) not in signs]
    return signs[:4] or ["x"]


def _has(code: Any, value: Any, sign: str) -> bool:
    if code is op.LITERAL:
        return ord(sign) == value
    if code is op.NOT_LITERAL:
        return ord(sign) != value
    if code is op.RANGE:
        return bool(value[0] <= ord(sign) <= value[1])
    if code is op.ANY:
        return sign != "\n"
    if code is op.CATEGORY:
        name = str(value)
        kind = {"SPACE": sign.isspace(), "DIGIT": sign.isdigit(), "WORD": sign.isalnum() or sign == "_"}
        plain = next(held for word, held in kind.items() if name.endswith(word))
        return plain != ("NOT" in name)
    return False
