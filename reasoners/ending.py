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
_UNKNOWN = r"unknown|not (?:found|known|available)|cannot be found|n/?a|null|-|i (?:do not|don't) know"
_NOT_FOUND = re.compile(rf"(?:{_UNKNOWN})?[.!]?", re.IGNORECASE)
# That there is no answer may be the answer; what a source does not say is another thing.
_ABSENT = re.compile(rf"(?:{_UNKNOWN}|none|nothing)?[.!]?", re.IGNORECASE)
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


def answers_in(ending: str, thought: str, source: str | None) -> Answers:
    """The answers of an ending, the final one empty where the model has none.

    Where it does not say which source gave the answer, `source` (text, graph or model) did.
    """
    says = {match[1].casefold(): match[2] for match in _SOURCE.finditer(ending)}
    final = _SOURCE.sub("", ending).strip()
    final = "" if _NOT_FOUND.fullmatch(final) else final
    if not says and source is not None:
        says[source] = final
    return Answers(
        final_answer=final,
        answer_text=present(says.get("text")),
        answer_graph=present(says.get("graph")),
        answer_model=present(says.get("model")),
        final_thought=thought.strip() or None,
    )


def present(answer: str | None) -> str | None:
    """What a source says, without the white space round it; None where it says nothing."""
    told = (answer or "").strip()
    return None if _ABSENT.fullmatch(told) else told
