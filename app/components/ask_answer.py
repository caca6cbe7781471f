"""What a run came to, as the notebook shows it: the answer with its evidence, and how far the sources agree."""

from collections.abc import Mapping
from typing import Any

from db.record import TraceRecord
from reasoners.agreement import ALL, TWO
from reasoners.comparable import parts

SIGNS = {ALL: "good", TWO: "fair"}
"""How far an answer can be trusted by the agreement of its sources; poor otherwise."""
SOURCES = {
    "answer_text": "From the text",
    "answer_graph": "From the graph",
    "answer_model": "Known without a source",
    "final_thought": "Last thought",
}
MOST_SEEN = 8
"""Steps that are named as showing the answer; where a mere number stands in more than these, it says nothing."""


def conclusion(record: TraceRecord) -> dict[str, Any] | None:
    """The answer for the notebook; None while there is none."""
    trace, told = record.trace, record.trace.configuration
    if trace.final_answer is None:
        return None
    agreed, response = told.get("agreement"), told.get("response")
    links = told.get("links") or []
    return {
        "answer": trace.final_answer,
        "response": response if response != trace.final_answer else None,
        "links": links,
        "agreement": agreed and {"words": agreed["words"], "sign": SIGNS.get(agreed["state"], "poor")},
        "sources": [
            {"name": name, "value": value} for field, name in SOURCES.items() if (value := getattr(trace, field))
        ],
        "evidence": [] if links else evidence(record),
        "note": told.get("unwritten"),
    }


def evidence(record: TraceRecord) -> list[int]:
    """The steps whose observations show all parts of the answer, or else few of them that together show the most."""
    wanted = parts(record.trace.final_answer or "")
    seen = {
        step.position: {part for part in wanted if f" {part} " in _plain(step.observation)}
        for step in record.steps
        if step.observation
    }
    found = [position for position, shown in seen.items() if shown == wanted] or _together(seen)
    if len(found) > MOST_SEEN and all(part.isdigit() for part in wanted):
        return []
    return found[-MOST_SEEN:]


def _together(seen: Mapping[int, set[str]]) -> list[int]:
    """Steps each of which shows the most that those taken before it do not; of equals the one nearest to the answer."""
    taken: list[int] = []
    shown: set[str] = set()
    while best := max(seen, key=lambda position: (len(seen[position] - shown), position), default=None):
        if not seen[best] - shown:
            break
        taken.append(best)
        shown |= seen[best]
    return sorted(taken)


def _plain(text: str) -> str:
    """Written as the parts of an answer are, so that one is found in the other."""
    return f" {' '.join(' '.join(sorted(parts(line))) for line in text.splitlines())} "
