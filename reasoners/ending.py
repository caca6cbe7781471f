"""How a solution process ends: the answer, and below it what each kind of source says.

Final Answer: Lisbon
Text says: Lisbon
Graph says: Lisbon (Q597)
"""

import re

from db.models import Trace
from db.recording import Answers

NOTHING = "none"
ANSWER = "Final Answer:"
_ABSENT = re.compile(
    r"(?:none|nothing|no answer|not (?:found|known|available)|unknown|n/?a|null|-|i (?:do not|don't) know)?[.!]?",
    re.IGNORECASE,
)
_SOURCE = re.compile(r"^[ \t*]*(Text|Graph) says:\**[ \t]*(.*)$", re.MULTILINE | re.IGNORECASE)


def ending_of(trace: Trace) -> str | None:
    """What a demonstration's last message says behind `Final Answer:`; None where it has no answer."""
    if trace.final_answer is None:
        return None
    told = [trace.final_answer]
    for source, answer in (("Text", trace.answer_text), ("Graph", trace.answer_graph)):
        if answer is not None:
            told.append(f"{source} says: {' '.join(answer.split()) or NOTHING}")
    return "\n".join(told)


def answers_in(ending: str, thought: str) -> Answers:
    """The answers of an ending; the final one is empty where the model has none."""
    says = {match[1].casefold(): match[2] for match in _SOURCE.finditer(ending)}
    final = _SOURCE.sub("", ending).strip()
    return Answers(
        final_answer=present(final) or "",
        answer_text=present(says.get("text")),
        answer_graph=present(says.get("graph")),
        final_thought=thought.strip() or None,
    )


def present(answer: str | None) -> str | None:
    """The answer without the white space round it; None where it says that there is none."""
    told = (answer or "").strip()
    return None if _ABSENT.fullmatch(told) else told
