"""Some gold traces to learn from: spread over the kinds of questions, short enough to be read."""

from collections.abc import Iterator, Sequence

from db.models import Project
from db.trace_record import TraceRecord
from evaluation.datasets.record import QuestionRecord
from evaluation.gold_traces.traces import GoldWorld, make_gold_trace

MAX_DEMONSTRATION_STEPS = 12
"""Of a demonstration that is read at a sitting and fits a prompt."""


def make_demonstrations(
    records: Sequence[QuestionRecord], world: GoldWorld, project: Project, count: int
) -> Iterator[TraceRecord]:
    """As many gold traces, of each kind of question in turn; fewer where fewer succeed in few steps.

    Of a kind a question comes first whose combination of sources has not been shown yet.
    """
    made = 0
    used_sources: set[str] = set()
    for position, record in _round_robin(records, used_sources):
        if made == count:
            return
        gold = make_gold_trace(record, world, project, position)
        if gold.trace.status == "approved" and 1 < len(gold.steps) <= MAX_DEMONSTRATION_STEPS:
            used_sources.add(_required_sources(record))
            made += 1
            yield gold


def _round_robin(records: Sequence[QuestionRecord], used_sources: set[str]) -> Iterator[tuple[int, QuestionRecord]]:
    """Of each kind a question, and again, until there are none; with their places among all."""
    left: dict[str | None, list[tuple[int, QuestionRecord]]] = {}
    for position, record in enumerate(records, 1):
        left.setdefault(record.kind, []).append((position, record))
    while any(left.values()):
        for entries in filter(None, left.values()):
            fresh = next((entry for entry in entries if _required_sources(entry[1]) not in used_sources), entries[0])
            entries.remove(fresh)
            yield fresh


def _required_sources(record: QuestionRecord) -> str:
    return str(record.details["needs"])
