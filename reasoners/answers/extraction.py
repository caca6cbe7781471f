"""How a solution process ends: the answer, and below it what each kind of source says.

Final Answer: Lisbon
Text says: Lisbon
Graph says: Lisbon (Q597)
"""

import re

from db.models import Trace
from db.recording import TraceAnswers
from reasoners.answers.normalization import strip_answer_markup

NO_ANSWER = "none"
FINAL_ANSWER_LABEL = "Final Answer:"
_UNKNOWN_PHRASES = (
    r"(?:(?:the )?(?:answer|information|it|this|that) (?:is|was) |information )?"
    r"(?:unknown|not (?:found|known|available|mentioned|stated|given|specified))"
    r"|(?:(?:the answer|it|this) )?(?:cannot|can't|can not|could not|couldn't) be (?:found|determined|answered)"
    r"|(?:no|insufficient|not enough) (?:information|data|evidence)(?: (?:is |was )?(?:found|available|given))?"
    r"|n/?a|null|-|i (?:do not|don't) know"
)
_NO_FINAL_ANSWER = re.compile(rf"(?:{_UNKNOWN_PHRASES})?[.!]?", re.IGNORECASE)
# That there is no answer may be the answer; what a source does not say is another thing.
_NO_SOURCE_ANSWER = re.compile(
    rf"(?:(?:{_UNKNOWN_PHRASES}|none|nothing|no (?:results?|match(?:es)?))(?: found| given| returned)?(?: \([^()]*\))?"
    r"|(?:the )?(?:articles?|texts?|graph) (?:have|has|give|gives|gave) (?:none|nothing|no answer))?[.!]?",
    re.IGNORECASE,
)
_SOURCE_LABEL = r"^[ \t>*_-]*(Text|Graph) says[*_]*:[*_]*[ \t]*"
_SOURCE_LINE = re.compile(
    rf"{_SOURCE_LABEL}(?:\n+(?!{_SOURCE_LABEL.replace('(Text', '(?:Text')}))?(.*)$", re.MULTILINE | re.IGNORECASE
)


def format_final_answer(trace: Trace, sources: str = "both") -> str | None:
    """What a demonstration's last message says behind `Final Answer:`; None where it has no answer.

    Of the sources that may be asked it says what each told, if it says so of any.
    """
    if trace.final_answer is None:
        return None
    told = {"text": trace.answer_text, "graph": trace.answer_graph}
    asked = {name: answer for name, answer in told.items() if sources in ("both", name)}
    if not any(answer is not None for answer in asked.values()):
        return trace.final_answer
    lines = [f"{name.title()} says: {' '.join((answer or '').split()) or NO_ANSWER}" for name, answer in asked.items()]
    return "\n".join([trace.final_answer, *lines])


def extract_answers(ending: str, thought: str, source: str | None, sources: str = "both") -> TraceAnswers:
    """The answers of an ending, the final one empty where the model has none.

    Where neither it nor the thought before it says which source gave the answer, `source` (text, graph or model) did.
    What it says of a source that is not one of those asked (`sources`) is from nowhere and does not count.
    What is written behind the answer, or behind what the sources say, is remarked upon and joins the thought.
    """
    says = {
        match[1].casefold(): strip_answer_markup(match[2]) for match in _SOURCE_LINE.finditer(f"{thought}\n{ending}")
    }
    says = {name: answer for name, answer in says.items() if sources in ("both", name)}
    told, *remarks = [part.strip() for part in re.split(r"\n\s*\n", _SOURCE_LINE.sub("\n", ending).strip())]
    final = strip_answer_markup(told)
    final = "" if _NO_FINAL_ANSWER.fullmatch(final) else final
    if not says and source is not None:
        says[source] = final
    remarks = [remark for remark in remarks if remark.strip("`* \n")]
    return TraceAnswers(
        final_answer=final,
        answer_text=strip_or_none(says.get("text")),
        answer_graph=strip_or_none(says.get("graph")),
        answer_model=strip_or_none(says.get("model")),
        final_thought="\n".join(filter(None, (_SOURCE_LINE.sub("", thought).strip(), *remarks))) or None,
    )


def strip_or_none(answer: str | None) -> str | None:
    """What a source says, without the white space round it; None where it says nothing."""
    told = (answer or "").strip()
    return None if _NO_SOURCE_ANSWER.fullmatch(told) else told
