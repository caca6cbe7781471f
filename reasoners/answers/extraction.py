"""Extracts answers from the last message of a solution process, formats them, and finds the steps that show them.

The last message has the final answer, and below it the answer of each kind of source:

Final Answer: Lisbon
Text says: Lisbon
Graph says: Lisbon (Q597)
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from showhow.db.models import Trace
from showhow.db.traces.recording import TraceAnswers
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.unanswerable import read_unanswerable
from showhow.reasoners.answers.normalization import answers_equal, normalize_answer

NO_ANSWER = "none"
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
# "none" may be a final answer; as the answer of a source it means that the source has no answer.
_NO_SOURCE_ANSWER = re.compile(
    rf"(?:(?:{_UNKNOWN_PHRASES}|none|nothing|no (?:results?|match(?:es)?))(?: found| given| returned)?(?: \([^()]*\))?"
    r"|(?:the )?(?:articles?|texts?|graph) (?:have|has|give|gives|gave) (?:none|nothing|no answer))?[.!]?",
    re.IGNORECASE,
)
_KNOWING = (
    r"(?:know[ns]?|knowledge|information|data|answers?|evidence|find|found|determined?|confirm(?:s|ed)?|verif(?:y|ied)"
    r"|identif(?:y|ied)|mention(?:s|ed)?|state[sd]?|specif(?:y|ied)|provided?|contains?|recall|remember|access|available"
    r"|certain|sure|able to|established?|record(?:s|ed)?|say|said|tell|told|give[ns]?|included?|support(?:s|ed)?"
    r"|clear)\b"
)
# A sentence that denies knowledge. Its verb is in lower case, unlike that of a title such as "You Don't Know Jack"; a
# "no" that answers the question and is followed by a clause is an answer.
_DENIAL = re.compile(
    r"(?![Yy]es\b|[Nn]o[,.;:])(?:"
    r"[^.!?\n]{0,200}?(?:\b(?:do|does|did|is|are|was|were|has|have|had|can|could|will|would|am)(?: not|n['\u2019]t)\b"
    rf"|\bI['\u2019]m not\b|\bcan(?:not|['\u2019]t)\b|\bunable to\b|^Unable to\b)[^.!?\n]{{0,60}}?\b{_KNOWING}"
    r"|(?:[^.!?\n]{0,80}[,:] )?(?:[Tt]here (?:is|are|was|were) )?(?:[Nn]o|[Ii]nsufficient|[Nn]ot enough)"
    r"(?: [a-z]+){0,2} (?:information|data|evidence|knowledge|records?|mention|details)\b)"
)
_ANSWER_LABEL = re.compile(
    r"^[ \t>#*_-]*(?:(?:so|thus|hence|therefore),? )?(?:the |my )?(?:(?:final|short|correct|right) )?answer"
    r"(?P<verb>[*_ \t]*:[*_]*|[ \t]+is:?)[ \t]*",
    re.MULTILINE | re.IGNORECASE,
)
_WHOLLY_BOLD = re.compile(r"\*\*((?:(?!\*\*).)+)\*\*[.!]?", re.DOTALL)
_BOLD = re.compile(r"\*\*(\S(?:(?:(?!\*\*).)*\S)?)\*\*", re.DOTALL)
_CODE_FENCE = re.compile(r"\A```\w*\n|\n?```\Z")
_SENTENCE_END = re.compile(r"(?<=[a-z\d)\]*])\.$")
_SOURCE_LABEL = r"^[ \t>*_-]*(Text|Graph) says[*_]*:[*_]*[ \t]*"
_SOURCE_LINE = re.compile(
    rf"{_SOURCE_LABEL}(?:\n+(?!{_SOURCE_LABEL.replace('(Text', '(?:Text')}))?(.*)$", re.MULTILINE | re.IGNORECASE
)


def format_final_answer(trace: Trace, sources: str = "both") -> str | None:
    """Format the text after `Final Answer:` in a demonstration's last message; None if the trace has no answer.

    If the trace has an answer of any of the allowed `sources`, a line for each of them follows.
    """
    if trace.final_answer is None:
        return None
    answers = {"text": trace.answer_text, "graph": trace.answer_graph}
    allowed = {name: answer for name, answer in answers.items() if sources in ("both", name)}
    if not any(answer is not None for answer in allowed.values()):
        return trace.final_answer
    lines = [
        f"{name.title()} says: {' '.join((answer or '').split()) or NO_ANSWER}" for name, answer in allowed.items()
    ]
    return "\n".join([trace.final_answer, *lines])


def extract_answers(message: str, thought: str, source: str | None, sources: str = "both") -> TraceAnswers:
    """Extract the answers from the last message; the final answer is empty if the model says that it has none.

    `source` (text, graph or model) gets the answer if neither the message nor the thought before it names a source.
    Answers attributed to a source outside the allowed `sources` are ignored. Text after the answer or after the lines
    of the sources is appended to the final thought.
    """
    answer_by_source = {
        match[1].casefold(): strip_answer_markup(match[2]) for match in _SOURCE_LINE.finditer(f"{thought}\n{message}")
    }
    answer_by_source = {name: answer for name, answer in answer_by_source.items() if sources in ("both", name)}
    text, *remarks = [part.strip() for part in re.split(r"\n\s*\n", _SOURCE_LINE.sub("\n", message).strip())]
    final = strip_answer_markup(text)
    final = final_or_empty(final)
    if not answer_by_source and source is not None:
        answer_by_source[source] = final
    remarks = [remark for remark in remarks if remark.strip("`* \n")]
    return TraceAnswers(
        final_answer=final,
        answer_text=strip_or_none(answer_by_source.get("text")),
        answer_graph=strip_or_none(answer_by_source.get("graph")),
        answer_model=strip_or_none(answer_by_source.get("model")),
        final_thought="\n".join(filter(None, (_SOURCE_LINE.sub("", thought).strip(), *remarks))) or None,
    )


def final_or_empty(answer: str) -> str:
    """The final answer; empty if it says that the answer is not known, and not that there can be none."""
    if read_unanswerable(answer):
        return answer
    return "" if _NO_FINAL_ANSWER.fullmatch(answer) or _DENIAL.match(answer) else answer


def strip_or_none(answer: str | None) -> str | None:
    """The answer of a source, stripped of white space; None if it says that there is no answer."""
    text = (answer or "").strip()
    if read_unanswerable(text):
        return text
    return None if _NO_SOURCE_ANSWER.fullmatch(text) or _DENIAL.match(text) else text


def find_labelled_answer(text: str) -> str | None:
    """The text that a reply labels as its answer: `Answer: X`, `The answer is **X**` or JSON; None without a label.

    It may say that there is no answer: see strip_or_none.
    """
    labels = list(_ANSWER_LABEL.finditer(text))
    if labels:
        value = text[labels[-1].end() :].strip().split("\n\n", 1)[0]
        is_sentence = not labels[-1]["verb"].rstrip("*_ \t").endswith(":")
        return strip_answer_markup(_SENTENCE_END.sub("", value) if is_sentence else value)
    if _CODE_FENCE.sub("", text.strip()).lstrip()[:1] not in ("{", "["):
        return None
    unwrapped = strip_answer_markup(text)
    return None if unwrapped[:1] in ("{", "[") else unwrapped


def find_chosen_answer(text: str, candidates: Sequence[str]) -> str | None:
    """The answer in a reply that was asked to choose: a labelled one, or a text that equals a candidate; else None."""
    labelled = find_labelled_answer(text)
    if labelled is not None:
        return strip_or_none(labelled)
    plain = strip_answer_markup(text)
    return plain if any(answers_equal(plain, candidate) for candidate in candidates) else None


def join_answers(answers: Sequence[str]) -> str:
    """One text of a list of answers, from which evaluation/metrics reads the same list again."""
    if len(answers) < 2:
        return "".join(answers)
    has_separator = any(re.search(r"[,;&\n]|\band\b", answer) for answer in answers)
    return ("; " if has_separator else ", ").join(" ".join(answer.split()) for answer in answers)


def strip_code_fence(answer: str) -> str:
    """The answer without a code fence around it; JSON and everything else stays as it is."""
    return _CODE_FENCE.sub("", answer.strip()).strip()


def strip_answer_markup(answer: str) -> str:
    """The answer without code fences, bold, boxes, quotes and JSON; a JSON list is joined by commas."""
    text = strip_code_fence(answer)
    text = _BOLD.sub(r"\1", _WHOLLY_BOLD.sub(r"\1", text, count=1) if _WHOLLY_BOLD.fullmatch(text) else text)
    text = text.strip("*").strip()
    boxed = _BOXED.fullmatch(text)
    if boxed:
        text = boxed[1].strip()
    quoted = _QUOTED.fullmatch(text)
    if quoted:
        return quoted[2].strip()
    return _parse_json_answer(text) if text[:1] in ("{", "[") else text


def _parse_json_answer(text: str) -> str:
    """The answer in a JSON object or list; the unchanged text if it has no recognizable answer."""
    try:
        answer = _answer_from_value(json.loads(text))
    except (ValueError, RecursionError):
        return text
    return text if answer is None else answer


def _answer_from_value(value: Any) -> str | None:
    if isinstance(value, dict):
        only_value = next(iter(value.values())) if len(value) == 1 else None
        return _answer_from_value(next((value[name] for name in _ANSWER_KEYS if name in value), only_value))
    if isinstance(value, list):
        answers = [_answer_from_value(element) for element in value]
        return ", ".join(filter(None, answers)) if all(answers) else None
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if isinstance(value, str | int | float) else None


MAX_EVIDENCE_STEPS = 8
"""Maximum number of evidence steps; a number that occurs in more steps is not evidence."""


def find_evidence_steps(record: TraceRecord) -> list[int]:
    """Find the steps that show the answer: those that the run cites.

    Without them, the steps whose observations contain all parts of the answer, else a few steps that cover the most.
    """
    stored = record.trace.result
    if stored.cited_steps and join_answers(stored.answers) == record.trace.final_answer:
        return list(stored.cited_steps)
    answer_parts = normalize_answer(record.trace.final_answer or "")
    parts_by_step = {
        step.position: {part for part in answer_parts if f" {part} " in _normalize_text(step.observation)}
        for step in record.steps
        if step.observation
    }
    complete = [position for position, parts in parts_by_step.items() if parts == answer_parts]
    evidence = complete or _select_covering_steps(parts_by_step)
    if len(evidence) > MAX_EVIDENCE_STEPS and all(part.isdigit() for part in answer_parts):
        return []
    return evidence[-MAX_EVIDENCE_STEPS:]


def _select_covering_steps(parts_by_step: Mapping[int, set[str]]) -> list[int]:
    """Select steps greedily by the number of new parts; ties go to the later step."""
    selected: list[int] = []
    covered: set[str] = set()
    while best := max(
        parts_by_step, key=lambda position: (len(parts_by_step[position] - covered), position), default=None
    ):
        if not parts_by_step[best] - covered:
            break
        selected.append(best)
        covered |= parts_by_step[best]
    return sorted(selected)


def _normalize_text(text: str) -> str:
    """Normalize the text like an answer, so that parts of an answer can be found in it."""
    return f" {' '.join(' '.join(sorted(normalize_answer(line))) for line in text.splitlines())} "
