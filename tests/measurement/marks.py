"""What is measured of a module: first lines of statements, and branches of `if`, `for`, `while` and `match`."""

import ast
from collections.abc import Iterator

Branch = tuple[int, int]
"""The line that decides and the line that follows; 0 where the statement is left and no block of it was chosen."""


def _is_silent(node: ast.stmt) -> bool:
    """Whether the statement does nothing, as a docstring, or must stay in its place."""
    is_constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
    return is_constant or is_future or isinstance(node, ast.Global | ast.Nonlocal)


def _can_pass(node: ast.AST) -> bool:
    """Whether the statement can end with no block chosen; where it can, nothing in the source stands for that."""
    match node:
        case ast.While(test=ast.Constant()):
            return False
        case ast.If(orelse=[]) | ast.For(orelse=[]) | ast.AsyncFor(orelse=[]) | ast.While(orelse=[]):
            return True
        case ast.Match(cases=[*_, ast.match_case(pattern=ast.MatchAs(pattern=None), guard=None)]):
            return False
    return isinstance(node, ast.Match)


def _blocks(node: ast.AST) -> list[list[ast.stmt]]:
    blocks = (getattr(node, name, None) for name in ("body", "orelse", "finalbody"))
    return [block for block in blocks if isinstance(block, list) and block]


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Iterate over the nodes, without what only type checkers read."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING"):
            yield from _walk(child)


def _branches(node: ast.AST) -> Iterator[Branch]:
    match node:
        case ast.Match():
            yield from ((node.lineno, case.body[0].lineno) for case in node.cases)
        case ast.While(test=ast.Constant()):
            return
        case ast.If() | ast.For() | ast.AsyncFor() | ast.While():
            yield from ((node.lineno, block[0].lineno) for block in _blocks(node))
    if _can_pass(node):
        yield node.lineno, 0


def find_points(module: ast.Module) -> tuple[set[int], set[Branch]]:
    """The first lines of the measured statements, and the branches."""
    nodes = list(_walk(module))
    lines = {node.lineno for node in nodes if isinstance(node, ast.stmt) and not _is_silent(node)}
    return lines, {branch for node in nodes for branch in _branches(node)}


def byte_of(point: int | Branch) -> int:
    """Which byte of its module notes the line or the branch; a branch to a line is noted by that line."""
    if isinstance(point, int):
        return 2 * point
    line, following = point
    return 2 * following or 2 * line + 1


def count_bytes(source: bytes) -> int:
    """How many bytes a module needs."""
    return 2 * (source.count(b"\n") + 2)


def _set_byte(point: int | Branch, near: ast.stmt) -> ast.stmt:
    [statement] = ast.parse(f"__hits__[{byte_of(point)}] = 1").body
    for node in ast.walk(statement):
        ast.copy_location(node, near)
    return statement


def _mark_block(block: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in block:
        if not _is_silent(statement):
            yield _set_byte(statement.lineno, statement)
        yield statement


def mark(source: str | bytes | ast.Module, path: str) -> ast.Module:
    """Return the module with statements that set the byte of each line and branch in `sitecustomize.hits_of(path)`."""
    module = source if isinstance(source, ast.Module) else ast.parse(source)
    for node in list(_walk(module)):
        for block in _blocks(node):
            block[:] = _mark_block(block)
        if _can_pass(node):
            passing = [_set_byte((node.lineno, 0), node)]
            if isinstance(node, ast.Match):
                node.cases.append(ast.match_case(ast.copy_location(ast.MatchAs(), node), body=passing))
            else:
                node.orelse = passing
    start = next((index for index, node in enumerate(module.body) if not _is_silent(node)), len(module.body))
    module.body[start:start] = ast.parse(f"__hits__ = __import__('sitecustomize').hits_of({path!r})").body
    return module
