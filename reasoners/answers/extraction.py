"""How a solution process ends: the answer, and below it what each kind of source says.

Final Answer: Lisbon
Text says: Lisbon
Graph says: Lisbon (Q597)
"""

import json
import re
from typing import Any

from db.models import Trace
from db.recording import TraceAnswers

NO_ANSWER = "none"
FINAL_ANSWER_LABEL = "Final Answer:"
_BOXED = re.compile(r"\$?\\boxed\{(.*)\}\$?", re.DOTALL)
_QUOTED = re.compile(r"([\"'`“])([^\"'`”]*)[\"'`”]")
_ANSWER_KEYS = ("answer", "final_answer", "answers")
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
    answers = {"text": trace.answer_text, "graph": trace.answer_graph}
    asked = {name: answer for name, answer in answers.items() if sources in ("both", name)}
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
    text, *remarks = [part.strip() for part in re.split(r"\n\s*\n", _SOURCE_LINE.sub("\n", ending).strip())]
    final = strip_answer_markup(text)
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
    text = (answer or "").strip()
    return None if _NO_SOURCE_ANSWER.fullmatch(text) else text


def strip_answer_markup(written: str) -> str:
    """The answer itself; several that stand in a JSON list come with commas between."""
    text = re.sub(r"\A```\w*\n|\n?```\Z", "", written.strip()).strip().strip("*").strip()
    boxed = _BOXED.fullmatch(text)
    if boxed:
        text = boxed[1].strip()
    quoted = _QUOTED.fullmatch(text)
    if quoted:
        return quoted[2].strip()
    return _parse_json_answer(text) if text[:1] in ("{", "[") else text


def _parse_json_answer(text: str) -> str:
    """The answer that a JSON object or list holds; the text as it stands where that cannot be told."""
    try:
        answer = _answer_from_value(json.loads(text))
    except (ValueError, RecursionError):
        return text
    return text if answer is None else answer


def _answer_from_value(value: Any) -> str | None:
    if isinstance(value, dict):
        only = next(iter(value.values())) if len(value) == 1 else None
        return _answer_from_value(next((value[name] for name in _ANSWER_KEYS if name in value), only))
    if isinstance(value, list):
        parts = [_answer_from_value(item) for item in value]
        return ", ".join(filter(None, parts)) if all(parts) else None
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if isinstance(value, str | int | float) else None
