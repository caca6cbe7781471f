"""The generators of a run: the reasoner's own and those of its branches, and which of them can go on."""

from typing import Any

from reasoners.base import BranchGenerator, Move


class Strand:
    """One generator of a run: the reasoner's own, or that of a branch."""

    def __init__(self, name: str, moves: BranchGenerator, parent: "Strand | None" = None) -> None:
        self.name = name
        self.moves = moves
        self.parent = parent
        self.received: Any = None
        """What its next move is given: the result of its last one."""
        self.branches: list[Strand] = []
        self.waiting_for: set[str] = set()
        """The names of the other branches that must have ended before it begins."""
        self.has_ended = False
        self.result: Any = None


def next_move(strand: Strand) -> Move | None:
    """The strand's next move; None if it has ended."""
    received, strand.received = strand.received, None
    try:
        return strand.moves.send(received)
    except StopIteration as end:
        strand.has_ended, strand.result = True, end.value
        return None


def list_successors(ended: Strand) -> list[Strand]:
    """The strands that can go on because this one has ended: branches that waited for it, or else its parent."""
    parent = ended.parent
    if parent is None:
        return []
    unblocked = []
    for branch in parent.branches:
        if ended.name in branch.waiting_for:
            branch.waiting_for.discard(ended.name)
            if not branch.waiting_for:
                unblocked.append(branch)
    if unblocked or not all(branch.has_ended for branch in parent.branches):
        return unblocked
    parent.received = [branch.result for branch in parent.branches]
    return [parent]
