"""What the demonstrations of a question must not show: its entities and its answers, as a selection's guard says.

A person named in a demonstration and in the question, or an answer in its observations, would give the question away.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from showhow.db.traces.trace_record import TraceRecord
from showhow.db.unanswerable import read_unanswerable
from showhow.reasoners.answers.dates_and_numbers import DateNotation, write_date
from showhow.reasoners.answers.normalization import parse_answer
from showhow.reasoners.mentions import WorldWords, find_question_mentions, find_values, name_lookup
from showhow.tools.tool import ToolContext
from showhow.worlds.lexicon.english import nouns_for_kinds
from showhow.worlds.source import World

_NO_WORLD = World("none")


def list_withheld(
    guard: str, question: str, golds: Iterable[Mapping[str, Any]] = (), context: ToolContext | None = None
) -> list[str]:
    """The texts that no demonstration may show, by the guard of a selection (fewshot_library/selection.py).

    Names are those that the world of the context knows, and capitalized ones. Counts and yes or no are no answers that
    give something away, since nearly every demonstration shows them.
    """
    if guard == "question":
        return []
    world = context.world if context else _NO_WORLD
    words = WorldWords(world, context.encode if context else _encode_nothing)
    spans = find_question_mentions(question, words.knows, nouns_for_kinds())
    if name_lookup(world) is None:
        # Nothing tells a name at the beginning from another word, unless it has several.
        longer = [span for span in find_values(question) if " " in question[slice(*span)]]
        spans = longer + [span for span in spans if not any(a <= span[0] and span[1] <= b for a, b in longer)]
    names = [question[slice(*span)] for span in spans]
    answers = [text for gold in golds for text in _written_forms(gold)] if guard == "answers" else []
    return list(dict.fromkeys(text for text in (*names, *answers) if _identifies(text)))


def _written_forms(gold: Mapping[str, Any]) -> Iterator[str]:
    """The texts by which a demonstration may show a gold answer: a day in every notation, an entity also by its id."""
    for text in (gold.get("text") or "", *(gold.get("aliases") or ())):
        yield from (write_date(str(text), notation) for notation in DateNotation)
    yield str(gold.get("entity") or "")


def _identifies(text: str) -> bool:
    has_letters = any(map(str.isalpha, text)) or len(text.split("-")) > 2
    return has_letters and not parse_answer(text).is_yes_or_no and read_unanswerable(text) is None


def _encode_nothing(texts: Sequence[str]) -> np.ndarray:  # noqa: ARG001 - as every encoder takes it
    raise AssertionError("names are looked up without an encoder")


def write_shown_text(record: TraceRecord) -> str:
    """All that a trace may show in a prompt: question, steps and answer."""
    trace, parts = record.trace, [record.question.full_text]
    for step in record.steps:
        parts += [step.thought, json.dumps(step.arguments, ensure_ascii=False), step.observation or step.error or ""]
        parts.append(json.dumps(step.data, ensure_ascii=False) if step.skill else "")
    parts += [trace.final_thought or "", trace.final_answer or "", trace.answer_text or "", trace.answer_graph or ""]
    return "\n".join(parts)
